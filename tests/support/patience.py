"""Time limits of tests, scaled by the speed of the machine and by its load.

A limit in a test says how long an operation takes on a quiet machine of usual speed, with room to spare. `seconds`
and `milliseconds` scale it, so that a slow or busy machine does not fail a test of something else. A longer limit costs
nothing where the operation succeeds.
"""

from __future__ import annotations

import os
import time
from functools import cache

USUAL_LOOP_S = 0.012  # the loop of `slowness` on the machines that the limits were chosen on
MAX_FACTOR = 6.0  # a limit of 30 s becomes 3 minutes at most, so that a failure ends soon
ROOM = 2.0  # for what neither the loop nor the load average sees: other guests of the host, slow disks


def seconds(limit: float) -> float:
    """`limit` seconds, scaled."""
    return limit * factor()


def milliseconds(limit_s: float) -> float:
    """`limit_s` seconds in milliseconds, scaled: the unit of Playwright."""
    return 1e3 * seconds(limit_s)


def factor() -> float:
    """The factor that scales a limit at this moment, from ROOM to MAX_FACTOR."""
    return min(MAX_FACTOR, ROOM * max(1.0, slowness()) * max(1.0, load_per_core()))


@cache
def slowness() -> float:
    """Time of a fixed loop, the fastest of five, relative to a usual machine. Measured once in a process."""
    return min(_loop_s() for _ in range(5)) / USUAL_LOOP_S


def load_per_core() -> float:
    """Processes that run or wait to run, per core, over the last minute (1 where the system does not say)."""
    if not hasattr(os, "getloadavg"):
        return 1.0
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def _loop_s() -> float:
    began = time.perf_counter()
    total = 0
    for number in range(200_000):
        total += number * number & 7
    return time.perf_counter() - began

"""Times of a kernel with their spread, from a worker process: a crash or an endless loop costs that worker alone.

The workers are those of the search (`compile/workers.py`); the results are compared with those of the heuristics'
choice before anything is timed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tinyexplore.compile.candidate import request_of
from tinyexplore.compile.workers import answer
from tinyexplore.kernel import Kernel
from tinyexplore.uop import UOp
from tinyexplore.uop.plain import to_plain

LIMIT_S = 20.0  # for compiling and running both; a person is waiting
SAMPLES = 20
NOT_ITS_FAULT = ("it took longer", "no worker process", "this worker is another machine", "DeviceUnavailable")


class Lost(Exception):
    """A kernel that is no good, and why: it crashed, or its results are wrong."""


class Untimed(Exception):
    """Why there are no times, though nothing speaks against the kernel."""


@dataclass(frozen=True)
class Measured:
    """Microseconds of one run, in the order in which they were measured. `note`: what a reader must know of them."""

    times_us: tuple[float, ...]
    note: str = ""


Measure = Callable[[str, Kernel, Kernel], Measured]


def measured(device: str, kernel: Kernel, reference: Kernel) -> Measured:
    """The times of `kernel`, by a worker."""
    return Measured(tuple(measured_us(device, kernel, reference)))


def measured_us(device: str, kernel: Kernel, reference: Kernel, program: Sequence[UOp] | None = None) -> list[float]:
    """Microseconds of one run, measured up to `SAMPLES` times, in their order.

    `reference`: a kernel of the same results, made in another way. `program`: the linear program that `kernel` became,
    where other passes than the engine's made it; a worker knows only those. Untimed, Lost.
    """
    try:
        more = {} if program is None else {"program": to_plain(program)}
        request = request_of("sample", kernel, device, reference, samples=SAMPLES, **more)
    except TypeError as error:
        raise Untimed(f"not timed: {error}") from None
    reply = json.loads(answer(request, kernel.original.digest, LIMIT_S))
    if "seconds" in reply:
        return [round(seconds * 1e6, 3) for seconds in reply["seconds"]]
    why = str(reply.get("lost", f"a worker answered {reply}"))
    if why.startswith(NOT_ITS_FAULT):
        raise Untimed(f"not timed: {why}")
    raise Lost(why)


__all__ = ["LIMIT_S", "SAMPLES", "Lost", "Measure", "Measured", "Untimed", "measured", "measured_us"]

"""Times of a kernel with their spread, from a worker process: a crash or an endless loop costs that worker alone.

The workers are those of the search (`compile/workers.py`); the results are compared with those of the heuristics'
choice before anything is timed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tinyexplore.compile.candidate import request_of
from tinyexplore.compile.workers import answer
from tinyexplore.explore.analysis.comparing.noise import Verdict, compare_times
from tinyexplore.explore.recording.drafts import quantile
from tinyexplore.explore.tracefile.model import Run
from tinyexplore.kernel import Kernel
from tinyexplore.uop import UOp
from tinyexplore.uop.plain import to_plain
from tinyexplore.util import config

LIMIT_S = 20.0  # for compiling and running both; a person is waiting
SAMPLES = 20
NOT_ITS_FAULT = ("it took longer", "no worker process", "this worker runs on another machine", "DeviceUnavailable")


class Lost(Exception):
    """A kernel that cannot be used, and why: it crashed, or its results are wrong."""


class Untimed(Exception):
    """A valid kernel without times. The message says why."""


@dataclass(frozen=True)
class Measurement:
    """The times of a kernel, in microseconds.

    times_us: of one run each, in the order measured.
    base_times_us: those of the kernel that it is compared with, taken alternately.
    note: a remark for the reader, "" for none.
    """

    times_us: tuple[float, ...]
    base_times_us: tuple[float, ...] = ()
    note: str = ""

    def fields(self) -> dict[str, Any]:
        """The fields of a KernelVariant that say how long it takes, and how long its base."""
        base = {f"base_{name}": value for name, value in quartiles(self.base_times_us).items()}
        if not (self.times_us and self.base_times_us):
            return {**quartiles(self.times_us), **base}
        return {**quartiles(self.times_us), **base, "verdict": verdict_of(self.times_us, self.base_times_us)}


def quartiles(times_us: Sequence[float]) -> dict[str, Any]:
    """Samples, their median and their quartiles, by the names of the fields."""
    ordered = sorted(times_us)
    if not ordered:
        return {"times_us": (), "median_us": None, "low_us": None, "high_us": None}
    return {
        "times_us": tuple(times_us),
        "median_us": round(median(ordered), 3),
        "low_us": round(quantile(ordered, 0.25), 3),
        "high_us": round(quantile(ordered, 0.75), 3),
    }


def verdict_of(times_us: Sequence[float], base_times_us: Sequence[float]) -> Verdict:
    """The verdict on samples against those of their base, which were measured alternately."""
    base, mine = (Run(0, 0, warm=True, **quartiles(samples)) for samples in (base_times_us, times_us))
    return compare_times(base, mine).verdict


Measure = Callable[[str, Kernel, Kernel, Kernel | None, Sequence[UOp]], Measurement]


def measured(
    device: str, kernel: Kernel, reference: Kernel, base: Kernel | None, program: Sequence[UOp]
) -> Measurement:
    """Microseconds of one run of `kernel`, and of `base` alternately, up to `SAMPLES` each, by a worker.

    `reference`: a kernel of the same results, made in another way. `base`: what it is compared with; None where it is
    that itself. `program`: the linear program that `kernel` became. The worker renders it and loads its machine code
    from the disk cache, so that a kernel is lowered and compiled once. Untimed, Lost.
    """
    try:
        others = (reference,) if base is None else (reference, base)
        request = request_of(
            "sample",
            kernel,
            device,
            *others,
            cache_level=config().CACHELEVEL,
            samples=SAMPLES,
            program=to_plain(program),
        )
    except TypeError as error:
        raise Untimed(f"not timed: {error}") from None
    reply = json.loads(answer(request, kernel.original.digest, LIMIT_S))
    if "seconds" in reply:
        mine, base_us = (
            tuple([round(seconds * 1e6, 3) for seconds in reply[name]]) for name in ("seconds", "base_seconds")
        )
        return Measurement(mine, base_us)
    why = str(reply.get("lost", f"a worker answered {reply}"))
    if why.startswith(NOT_ITS_FAULT):
        raise Untimed(f"not timed: {why}")
    raise Lost(why)


__all__ = ["LIMIT_S", "SAMPLES", "Lost", "Measure", "Measurement", "Untimed", "measured", "quartiles", "verdict_of"]

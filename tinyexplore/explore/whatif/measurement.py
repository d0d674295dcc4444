"""Measures the times of a kernel in a worker process: a crash or an endless loop only costs that worker.

The workers are those of the search (`compile/workers.py`). Before any timing, the results are compared with those of
the heuristics' kernel.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tinyexplore.compile.search_worker import request_of
from tinyexplore.compile.workers import ask_worker
from tinyexplore.explore.analysis.comparisons.noise import Verdict, compare_times
from tinyexplore.explore.recording.row_builders import quantile
from tinyexplore.explore.tracefile.model import Run
from tinyexplore.kernel import Kernel
from tinyexplore.uop import UOp
from tinyexplore.uop.serialization import to_plain
from tinyexplore.util import config

LIMIT_S = 20.0  # seconds for compiling and running both kernels
KERNEL_SAMPLES = 20
UNRELATED_FAILURES = ("it took longer", "no worker process", "this worker runs on another machine", "DeviceUnavailable")


class KernelFailed(Exception):
    """The kernel cannot be used: it crashed, or its results are wrong. The message has the reason."""


class KernelNotTimed(Exception):
    """The kernel is valid but was not timed. The message has the reason."""


@dataclass(frozen=True)
class Measurement:
    """The times of a kernel, in microseconds.

    times_us: the times of single runs, in the order measured.
    base_times_us: the times of its base, measured alternately.
    note: a remark for the reader, "" for none.
    """

    times_us: tuple[float, ...]
    base_times_us: tuple[float, ...] = ()
    note: str = ""

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a KernelVariant with its times and those of its base."""
        base = {f"base_{name}": value for name, value in quartiles(self.base_times_us).items()}
        if not (self.times_us and self.base_times_us):
            return {**quartiles(self.times_us), **base}
        return {**quartiles(self.times_us), **base, "verdict": compare_measurements(self.times_us, self.base_times_us)}


def quartiles(times_us: Sequence[float]) -> dict[str, Any]:
    """Returns samples, their median and their quartiles, by the names of the fields."""
    ordered = sorted(times_us)
    if not ordered:
        return {"times_us": (), "median_us": None, "low_us": None, "high_us": None}
    return {
        "times_us": tuple(times_us),
        "median_us": round(median(ordered), 3),
        "low_us": round(quantile(ordered, 0.25), 3),
        "high_us": round(quantile(ordered, 0.75), 3),
    }


def compare_measurements(times_us: Sequence[float], base_times_us: Sequence[float]) -> Verdict:
    """Returns the verdict on samples against those of their base, which were measured alternately."""
    base, variant_run = (Run(0, 0, warm=True, **quartiles(samples)) for samples in (base_times_us, times_us))
    return compare_times(base, variant_run).verdict


Measure = Callable[[str, Kernel, Kernel, Kernel | None, Sequence[UOp]], Measurement]


def measure_in_worker(
    device: str, kernel: Kernel, reference: Kernel, base: Kernel | None, program: Sequence[UOp]
) -> Measurement:
    """Lets a worker measure up to `KERNEL_SAMPLES` runs of `kernel` and, alternately, of `base`.

    reference: a kernel with the same results, generated in another way.
    base: the kernel to compare it with; None if `kernel` is the base itself.
    program: the linear program of `kernel`. The worker renders it and loads its machine code from the disk cache, so
        that a kernel is lowered and compiled once.

    Raises:
        KernelNotTimed: the kernel is valid but cannot be timed here.
        KernelFailed: the kernel crashed, or its results are wrong.
    """
    try:
        others = (reference,) if base is None else (reference, base)
        request = request_of(
            "sample",
            kernel,
            device,
            *others,
            cache_level=config().CACHELEVEL,
            samples=KERNEL_SAMPLES,
            program=to_plain(program),
        )
    except TypeError as error:
        raise KernelNotTimed(f"not timed: {error}") from None
    reply = json.loads(ask_worker(request, kernel.original.digest, LIMIT_S))
    if "seconds" in reply:
        variant_times, base_us = (
            tuple([round(seconds * 1e6, 3) for seconds in reply[name]]) for name in ("seconds", "base_seconds")
        )
        return Measurement(variant_times, base_us)
    why = str(reply.get("lost", f"a worker answered {reply}"))
    if why.startswith(UNRELATED_FAILURES):
        raise KernelNotTimed(f"not timed: {why}")
    raise KernelFailed(why)


__all__ = [
    "LIMIT_S",
    "KERNEL_SAMPLES",
    "KernelFailed",
    "Measure",
    "Measurement",
    "KernelNotTimed",
    "measure_in_worker",
    "quartiles",
    "compare_measurements",
]

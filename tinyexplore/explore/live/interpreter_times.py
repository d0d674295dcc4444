"""Estimates a kernel's time in a browser: the number of UOps that a run executes, and the interpreter's time.

Neither is the time of the captured machine, and both texts state this.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from tinyexplore.compile.lowering import compile_given, compile_optimized
from tinyexplore.compile.search_worker import scratch_buffers
from tinyexplore.device import Buffer
from tinyexplore.execute.runner import Runner
from tinyexplore.explore.live.interpreted_devices import INTERPRETER
from tinyexplore.explore.whatif.kernel_variant import count_executed
from tinyexplore.explore.whatif.measurement import KernelFailed, KernelNotTimed, Measurement
from tinyexplore.kernel import Kernel
from tinyexplore.renderer.python import memory_format
from tinyexplore.runtime.python import cast_view
from tinyexplore.uop import UOp

MAX_OPERATIONS = 1_500_000  # most operations of one run, counted by lane: about a second in a browser
INTERPRETER_SAMPLES = 5
SECONDS_PER_RUN = 0.2
TOLERANCE = 1e-2  # for sums in another order, and 16-bit floats


def time_interpreted(
    device: str, kernel: Kernel, reference: Kernel, base: Kernel | None, program: Sequence[UOp]
) -> Measurement:
    """Measures the interpreter's time for `kernel` and, alternately, for `base`.

    The results are compared with those of `reference`. The times are the kernel's own only on the device PYTHON; for
    other devices they are reported in a note.

    program: the linear program of `kernel`.
    """
    runner = compile_given(device, kernel, program)
    work = count_executed(runner.spec.uops, lanes=True)
    if not work:
        raise KernelNotTimed("not timed: its loops have sizes that only a run knows")
    if work > MAX_OPERATIONS:
        raise KernelNotTimed(f"not run: {work:,} operations, lane by lane, take too long to interpret in a page")
    buffers = scratch_buffers(device, kernel.original)
    runs = [_bind_run(runner, buffers)]
    if base is not None and device == INTERPRETER:
        beside = compile_optimized(device, base)
        if 0 < count_executed(beside.spec.uops, lanes=True) <= MAX_OPERATIONS:
            runs.append(_bind_run(beside, scratch_buffers(device, kernel.original)))
    times, *base_times = alternate_times(runs)
    other = compile_optimized(device, reference)
    if reference.applied != kernel.applied and 0 < count_executed(other.spec.uops, lanes=True) <= MAX_OPERATIONS:
        expected = scratch_buffers(device, kernel.original)
        _bind_run(other, expected)()
        for position in sorted(runner.spec.writes):
            _compare(buffers[position], expected[position], position)
    if device == INTERPRETER:
        return Measurement(times, tuple(*base_times), "the time is that of the interpreter in this browser")
    base_us = sorted(times)[len(times) // 2] / 1e3
    return Measurement(
        (), note=f"UOps are counted: a browser has no times of {device}; interpreting one run took {base_us:.3g} ms"
    )


def _bind_run(runner: Runner, buffers: Sequence[Buffer]) -> Callable[[], None]:
    run, stop = runner.program.bind(buffers), runner.spec.thread_extent or 0
    return lambda: run(0, stop)


def alternate_times(
    runs: Sequence[Callable[[], None]], clock: Callable[[], float] = time.perf_counter
) -> list[tuple[float, ...]]:
    """Returns the times of single runs of each function, in microseconds, measured alternately, at least once."""
    samples: list[list[float]] = [[] for _ in runs]
    began = clock()
    for turn in range(INTERPRETER_SAMPLES):
        if turn and clock() - began > SECONDS_PER_RUN * len(runs):
            break
        numbers = range(len(runs))
        for number in reversed(numbers) if turn % 2 else numbers:
            start = clock()
            runs[number]()
            samples[number].append(round((clock() - start) * 1e6, 1))
    return [tuple(sample) for sample in samples]


def _compare(actual: Buffer, expected: Buffer, position: int) -> None:
    """Raises KernelFailed if the error of an element is larger than rounding explains."""
    actual_values, expected_values = _read_elements(actual), _read_elements(expected)
    scale = max((abs(value) for value in expected_values if math.isfinite(value)), default=1)
    for element, (a, b) in enumerate(zip(actual_values, expected_values)):
        both_nan = a != a and b != b
        if not (a == b or both_nan or abs(a - b) <= TOLERANCE * max(abs(b), 1e-2 * scale)):
            raise KernelFailed(
                f"its results are wrong: data{position}[{element}] is {a}, by the heuristics' kernel {b}"
            )


def _read_elements(buffer: Buffer) -> Sequence[Any]:
    elements: list[Any] = cast_view(buffer.memoryview(), memory_format(buffer.dtype)).tolist()
    return elements


__all__ = ["MAX_OPERATIONS", "time_interpreted", "alternate_times"]

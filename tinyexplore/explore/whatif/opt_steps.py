"""A kernel opt by opt: its loops and its time after each of its opts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from tinyexplore.compile.lowering import compile_optimized
from tinyexplore.explore.recording.loops import axis_size
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import NestLine
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table
from tinyexplore.explore.tracefile.texts import duration_text, figures_text
from tinyexplore.explore.whatif.annotated_nest import annotated_nest
from tinyexplore.explore.whatif.kernel_compiler import KernelCompiler
from tinyexplore.explore.whatif.measurement import KernelFailed, KernelNotTimed, quartiles
from tinyexplore.kernel import Kernel
from tinyexplore.trace import recording

BUDGET_S = 8.0  # seconds after which no further kernel is timed
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, repr=False)
class MeasuredOptStep(DisplayableRow):
    """The kernel after its first opts. A worker process runs it on its own memory and measures the times.

    opt: the last opt; "" for the kernel without opts.
    nest: its loops and statements.
    axes: name, kind and size of each axis.
    median_us: median of the samples, in microseconds; None if it was not timed.
    low_us: lower quartile, in microseconds.
    high_us: upper quartile, in microseconds.
    samples: number of samples.
    note: why it was not timed.
    """

    opt: str
    nest: tuple[NestLine, ...]
    axes: tuple[tuple[str, str, int | str], ...]
    median_us: float | None = None
    low_us: float | None = None
    high_us: float | None = None
    samples: int = 0
    note: str = ""


@dataclass(frozen=True, repr=False)
class OptSteps(DisplayableResult):
    """A kernel after each of its opts. It displays as a table, also on the story's page of loops.

    kernel: the kernel's number.
    steps: first without opts, last with all of them.
    """

    kernel: int
    steps: tuple[MeasuredOptStep, ...]

    def table(self) -> Table:
        """Returns one row per opt, with the time after it and the factor against the previous row."""
        rows = []
        before: float | None = None
        for step in self.steps:
            time_us = step.median_us
            gain = f"{figures_text(before / time_us)}×" if before and time_us else ""
            rows.append(
                (step.opt or "as written", duration_text(time_us) if time_us else step.note or "not timed", gain)
            )
            before = time_us or before
        return Table(
            f"kernel {self.kernel} after each of {count_text(len(self.steps) - 1, 'opt')}",
            ("opt", "median", "faster"),
            tuple(rows),
            code=frozenset(("opt",)),
        )


def opt_steps(compiler: KernelCompiler, number: int, *, timed: bool, clock: Clock = time.perf_counter) -> OptSteps:
    """Compiles kernel `number` after each of its captured opts.

    Args:
        compiler: compiles and times kernels.
        number: the kernel's number in the trace.
        timed: whether to time each kernel; none is begun after BUDGET_S.
        clock: returns seconds.
    """
    applied = compiler.subjects[number].applied
    began = clock()
    steps = []
    for count in range(len(applied) + 1):
        with recording(None):
            kernel = compiler.under_settings(lambda count=count: compiler.with_opts(number, applied[:count]))  # type: ignore[misc]
        late = clock() - began > BUDGET_S
        steps.append(_measure_step(compiler, number, kernel, str(applied[count - 1]) if count else "", timed, late))
    return OptSteps(number, tuple(steps))


def _measure_step(
    compiler: KernelCompiler, number: int, kernel: Kernel, opt: str, timed: bool, late: bool
) -> MeasuredOptStep:
    """Returns the kernel after one opt, timed if requested and not too late."""
    axes = tuple((axis.arg.name, axis.arg.kind.value, axis_size(axis)) for axis in kernel.axes)
    nest = tuple(annotated_nest(kernel, compiler.names.get(number, ())))
    if not timed or late:
        return MeasuredOptStep(opt, nest, axes, note="not timed: the time budget was used up" if timed else "")
    device = compiler.subjects[number].device
    reference = compiler.under_settings(lambda: compiler.apply_heuristics(number))
    try:
        with recording(None):
            runner = compiler.under_settings(lambda: compile_optimized(device, kernel))
            times = compiler.under_settings(lambda: compiler.measure(device, kernel, reference, None, runner.spec.uops))
    except (KernelNotTimed, KernelFailed) as error:
        return MeasuredOptStep(opt, nest, axes, note=str(error))
    spread = quartiles(times.times_us)
    return MeasuredOptStep(
        opt, nest, axes, spread["median_us"], spread["low_us"], spread["high_us"], len(times.times_us), times.note
    )


__all__ = ["BUDGET_S", "MeasuredOptStep", "OptSteps", "opt_steps"]

"""Schedules a captured graph again with the user's cuts and joins, compiles it, and compares it with the captured
schedule.

Both schedules run alternately, over the same generated inputs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, TypeVar

from tinyexplore.compile.search_worker import TOLERANCE, differ, numbers, sample_elements
from tinyexplore.device import Buffer
from tinyexplore.engine import (
    ExecItem,
    Sampling,
    compile_many,
    create_schedule,
    further_listings,
    plan_memory,
    sampling,
    step_by_step,
)
from tinyexplore.explore.recording.capture_recorder import CaptureRecorder
from tinyexplore.explore.recording.captured_graph import CapturedGraph, RebuiltGraph
from tinyexplore.explore.recording.trace_builder import build_trace, compared_row
from tinyexplore.explore.tracefile.model import Decision, FusedKernel, OutputCheck, ScheduleVariant
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.editing.output_comparison import compare_without_numpy
from tinyexplore.explore.whatif.kernel_variant import executed_flops
from tinyexplore.explore.whatif.measurement import Measurement, quartiles
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.trace import Recorder, ScheduleDecided, recording

R = TypeVar("R")
Step = Callable[[str], None]
SCHEDULE_SAMPLES = 20
SAMPLING_S = 1.0  # seconds for measuring both schedules
MIN_SAMPLES, PATIENCE_S = 5, 4.0  # fewest samples for a verdict, and the seconds that they may take
MUCH_WORK = 1 << 32  # operations; a larger schedule runs only if it has few more than the captured one
MUCH_MORE = 4


class ScheduleNotRun(Exception):
    """A schedule was not run. The message has the reason."""


@dataclass(eq=False)
class CompiledSchedule:
    """A schedule that was compiled.

    made: its rebuilt graph.
    items: its kernels and copies, in order.
    decisions: the scheduler's last decision on each LazyBuffer.
    ready: the compiled items.
    """

    made: RebuiltGraph
    items: Sequence[ScheduleItem]
    decisions: tuple[Decision, ...]
    ready: list[ExecItem]

    @property
    def flops(self) -> int:
        return sum(flops_of(item) for item in self.ready)

    def outputs(self) -> dict[LazyBuffer, Buffer]:
        """Returns the requested LazyBuffers with their memory."""
        memory = {node: buffer for item in self.items for node, buffer in zip(item.outputs, item.buffers, strict=False)}
        return {node: memory[node] for node in self.made.outputs}

    def fill(self) -> None:
        """Fills the inputs with numbers of ordinary magnitude, always the same ones."""
        for seed, buffer in enumerate(self.made.inputs):
            pattern = numbers(buffer.dtype, seed)
            repeats = -(-buffer.nbytes // len(pattern))
            buffer.allocate().copyin((pattern * repeats)[: buffer.nbytes])

    def run(self) -> list[float]:
        """Runs the items in order, and returns the seconds of each."""
        return [item.measure(1)[0] for item in self.ready]


@dataclass(frozen=True, eq=False)
class Rescheduler:
    """Compiles and runs the schedules of a capture again.

    graphs: the captured graphs, by the stage that scheduled each.
    kernels: for each captured kernel, the LazyBuffers that it stores.
    under: runs a function under the capture's configuration.
    interpreted: most operations to interpret if native code cannot run; there are no times then. None for native code.
    """

    graphs: Mapping[int, CapturedGraph]
    kernels: Mapping[tuple[int, ...], int]
    under: Callable[[Callable[[], Any]], Any]
    interpreted: int | None = None

    def variant(
        self, stage: int, cut: frozenset[int], join: frozenset[int], step: Step
    ) -> tuple[ScheduleVariant, str, str]:
        """Compiles and runs the schedule with these overrides.

        step: called before each part; an exception from it ends the work.

        Returns:
            The variant, the reason why it was not run, and the reason why it cannot be used; "" for no reason.
        """
        with recording(None):
            variant: tuple[ScheduleVariant, str, str] = self.under(lambda: self._make_variant(stage, cut, join, step))
        return variant

    def _make_variant(
        self, stage: int, cut: frozenset[int], join: frozenset[int], step: Step
    ) -> tuple[ScheduleVariant, str, str]:
        graph = self.graphs[stage]
        step("compiling the schedule as captured")
        base = self.attempt(graph, frozenset(), frozenset())
        captured = self._describe_kernels(base, None)
        step("compiling the schedule")
        attempt = self.attempt(graph, cut, join)
        kernel_of = {(kernel.digest, kernel.roots): kernel.kernel for kernel in captured}
        plan = plan_memory(attempt.items, list(attempt.outputs().values()))
        variant = ScheduleVariant(
            stage=stage,
            cut=tuple(sorted(cut)),
            join=tuple(sorted(join)),
            kernels=tuple(self._describe_kernels(attempt, kernel_of)),
            decisions=attempt.decisions,
            total_bytes=plan.total_bytes,
            peak_bytes=plan.peak_bytes,
        )
        try:
            self._check_may_run(graph, base, attempt)
            step("comparing the results")
            checks = compare_outputs(base, attempt)
        except ScheduleNotRun as error:
            return variant, f"not run: {error}", ""
        variant = replace(variant, outputs=tuple(checks))
        if wrong := [check.node for check in checks if not check.same]:
            nodes = ", ".join(map(str, wrong))
            return variant, "", f"its results differ from those of the captured schedule (node {nodes})"
        if self.interpreted is not None:
            return variant, "the results are the same; a page interprets them, and has no times", ""
        step("timing")
        return time_alternately(variant, base, attempt, step), "", ""

    def attempt(self, graph: CapturedGraph, cut: frozenset[int], join: frozenset[int]) -> CompiledSchedule:
        """Schedules and compiles `graph` with these overrides."""
        rebuilt = graph.rebuild()
        recorder = Recorder()
        with recording(recorder):
            items = create_schedule(rebuilt.outputs, rebuilt.writes, rebuilt.overrides(cut, join))
        decisions = tuple(find_last_decisions(recorder, rebuilt.numbers))
        return CompiledSchedule(rebuilt, items, decisions, compile_many(items))

    def _describe_kernels(
        self, attempt: CompiledSchedule, kernel_of: Mapping[tuple[str, tuple[int, ...]], int | None] | None
    ) -> list[FusedKernel]:
        """Returns the kernels of a schedule as data.

        kernel_of: the captured kernels by digest and stored LazyBuffers; None for the captured schedule itself.
        """
        numbers = attempt.made.numbers
        kernels = []
        for item in attempt.ready:
            roots = known_of(item.item.outputs, numbers)
            digest = "copy" if item.item.ast is None else item.item.ast.digest[:12]
            captured = self.kernels.get(roots) if kernel_of is None else kernel_of.get((digest, roots))
            kernels.append(
                FusedKernel(
                    name="copy" if item.runner is None else item.runner.spec.name,
                    device=item.item.device,
                    kernel=captured,
                    digest=digest,
                    nodes=tuple(sorted(known_of(item.item.members, numbers))),
                    roots=roots,
                    reads=known_of(item.item.reads, numbers),
                    flops=flops_of(item),
                    bytes_moved=item.bytes_moved,
                )
            )
        return kernels

    def _check_may_run(self, graph: CapturedGraph, base: CompiledSchedule, attempt: CompiledSchedule) -> None:
        """Raises ScheduleNotRun if the schedule cannot run, or would take too much time or memory."""
        if reason := graph.cannot_rerun():
            raise ScheduleNotRun(reason)
        refusals = [item.runner.program.refusal for item in attempt.ready if item.runner is not None]
        if refusal := next(filter(None, refusals), ""):
            raise ScheduleNotRun(refusal)
        if self.interpreted is not None and max(attempt.flops, base.flops) > self.interpreted:
            raise ScheduleNotRun(f"{max(attempt.flops, base.flops):,} operations take too long to interpret in a page")
        if attempt.flops > max(MUCH_WORK, MUCH_MORE * base.flops):
            flops_text = f"{attempt.flops:.3g} operations, where the captured schedule has {base.flops:.3g}"
            raise ScheduleNotRun(f"the schedule would take {flops_text}")
        needed = sum(
            buffer.nbytes for schedule in (base, attempt) for item in schedule.ready for buffer in set(item.buffers)
        )
        if needed > physical_bytes() / 2:
            raise ScheduleNotRun(f"the schedule would take {needed / 1e9:.3g} GB more than the program")

    def trace_of(
        self, stage: int, cut: frozenset[int], join: frozenset[int], title: str, names: Mapping[int, str]
    ) -> Trace:
        """Schedules and runs the graph again, and returns the trace. `names` has the user's names of its nodes."""
        graph = self.graphs[stage]

        def work() -> Trace:
            recorder = CaptureRecorder()
            with recording(None):
                rebuilt = graph.rebuild()
                attempt = CompiledSchedule(rebuilt, (), (), [])
                attempt.fill()
            with step_by_step(), recording(recorder), sampling(Sampling(MIN_SAMPLES)):
                items = create_schedule(rebuilt.outputs, rebuilt.writes, rebuilt.overrides(cut, join))
                for item in compile_many(items):
                    item.run()
            called = {node.number: names[number] for node, number in rebuilt.numbers.items() if names.get(number)}
            return build_trace(recorder, title=title, listings=further_listings, names=called)

        trace: Trace = self.under(work)
        return trace


def flops_of(item: ExecItem) -> int:
    """Returns the floating-point operations that one run executes. Recomputed values count each time."""
    return 0 if item.runner is None else executed_flops(item.runner.spec.uops) or item.flops


def find_last_decisions(recorder: Recorder, numbers: Mapping[LazyBuffer, int]) -> Iterable[Decision]:
    """Returns the last recorded decision on each LazyBuffer of the user."""
    decisions: dict[int, Decision] = {}
    for event in recorder.events:
        if isinstance(event, ScheduleDecided) and event.lazybuffer in numbers:
            number = numbers[event.lazybuffer]
            rows = tuple([compared_row(figure) for figure in event.compared])
            equal = numbers.get(event.equal_to)
            reason = event.reason if equal is None else f"{event.reason}: node {equal}"
            decisions[number] = Decision(number, event.decision, reason, rows, event.legality_error)
    return decisions.values()


def known_of(nodes: Iterable[LazyBuffer], numbers: Mapping[LazyBuffer, int]) -> tuple[int, ...]:
    """Returns the ids of `nodes`, except for those that the scheduler introduced."""
    return tuple([numbers[node] for node in nodes if node in numbers])


def compare_outputs(base: CompiledSchedule, variant_attempt: CompiledSchedule) -> list[OutputCheck]:
    """Runs both schedules once, and compares their outputs."""
    for attempt in (base, variant_attempt):
        attempt.fill()
        attempt.run()
    try:
        import numpy
    except ImportError:
        return _compare_without_numpy(base, variant_attempt)
    checks = []
    for (node, right), (_, buffer) in zip(base.outputs().items(), variant_attempt.outputs().items(), strict=True):
        expected, values = sample_elements(right), sample_elements(buffer)
        with numpy.errstate(all="ignore"):
            differences = numpy.abs(values.astype("float64") - expected.astype("float64"))
            finite = differences[numpy.isfinite(differences)]
        difference = float(finite.max()) if finite.size else 0.0
        same = not differ(values, expected, buffer.dtype)
        reached = numpy.abs(expected[numpy.isfinite(expected)].astype("float64"))
        largest = float(reached.max()) if reached.size else 0.0
        allowed = TOLERANCE.get(buffer.dtype, 0.0)
        checks.append(
            OutputCheck(base.made.numbers[node], difference, same, buffer.dtype.name, largest, allowed),
        )
    return checks


def _compare_without_numpy(base: CompiledSchedule, attempt: CompiledSchedule) -> list[OutputCheck]:
    checks = []
    for (node, right), (_, buffer) in zip(base.outputs().items(), attempt.outputs().items(), strict=True):
        comparison = compare_without_numpy([("", buffer.dtype)], {0: buffer.copyout()}, {0: right.copyout()})
        largest = comparison["largest_error"] or 0.0
        same = comparison["differing"] == 0
        scale, allowed = comparison["magnitude"], comparison["tolerance"]
        checks.append(OutputCheck(base.made.numbers[node], largest, same, buffer.dtype.name, scale, allowed))
    return checks


def time_alternately(
    variant: ScheduleVariant,
    base: CompiledSchedule,
    attempt: CompiledSchedule,
    step: Step,
    clock: Callable[[], float] = perf_counter,
) -> ScheduleVariant:
    """Returns `variant` with its times and those of the captured schedule, measured alternately.

    Every second round runs the items in reverse order. The first run of each is discarded. `step` is called between
    rounds.
    """
    samples: dict[bool, list[list[float]]] = {False: [], True: []}  # key: whether it is the captured schedule
    base.run()
    attempt.run()
    began = clock()
    for turn in range(SCHEDULE_SAMPLES):
        step("timing")
        for is_base in (turn % 2 == 0, turn % 2 == 1):
            samples[is_base].append((base if is_base else attempt).run())
        if clock() - began > (SAMPLING_S if turn + 1 >= MIN_SAMPLES else PATIENCE_S):
            break
    kernels = []
    for number, kernel in enumerate(variant.kernels):
        figures = quartiles([sample[number] * 1e6 for sample in samples[False]])
        del figures["times_us"]
        kernels.append(replace(kernel, **figures))
    totals, base_totals = (
        tuple([round(sum(sample) * 1e6, 3) for sample in samples[is_base]]) for is_base in (False, True)
    )
    return replace(variant, kernels=tuple(kernels), **Measurement(totals, base_totals).fields())


def physical_bytes() -> float:
    """Returns the bytes of this machine's memory; infinity if the system does not report them."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return float("inf")


__all__ = ["ScheduleNotRun", "Rescheduler"]

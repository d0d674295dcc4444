"""The branches of a session: a command starts at a branch, and its result is another branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, RLock, get_ident
from typing import TYPE_CHECKING

from tinyexplore.compile import workers
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.recording.captured_graph import CapturedGraph
from tinyexplore.explore.recording.captured_kernel import CapturedKernel
from tinyexplore.explore.recording.sources import rule_text
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import (
    Branch,
    FiringCheck,
    KernelVariant,
    RuleFiring,
    Run,
    ScheduleVariant,
    Stage,
)
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.command import Command, CommandContext, schedule_of
from tinyexplore.explore.whatif.commands import (
    AsCaptured,
    AsScheduled,
    SearchOpts,
    SetOpts,
    UseHeuristics,
    from_info,
    info_of,
)
from tinyexplore.explore.whatif.commands.rules import passes_of
from tinyexplore.explore.whatif.editing.client import EditResult, Text, dismiss, warm_up
from tinyexplore.explore.whatif.editing.stages import stage_text
from tinyexplore.explore.whatif.kernel_compiler import KernelCompiler, KernelSubject
from tinyexplore.explore.whatif.measurement import LIMIT_S, Measure
from tinyexplore.explore.whatif.outcome import Cancelled, CommandOutcome, CommandRejected
from tinyexplore.explore.whatif.rescheduler import Rescheduler
from tinyexplore.kernel import Kernel
from tinyexplore.util import Config

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparisons.comparison import Comparison
    from tinyexplore.explore.whatif.opt_steps import OptSteps

NOT_HERE = "this trace came from a file and has no program to change; capture the program again"
BUSY = "another command is running; view.whatif.cancel() ends a search"
CANCELLED = "cancelled: no branch was created"


@dataclass(frozen=True, slots=True, repr=False)
class Progress(DisplayableRow):
    """The progress of a long command.

    text: the current part of the work.
    done: the number of finished parts.
    of: the number of all parts.
    """

    text: str
    done: float
    of: int


class Branches(DisplayableResult, tuple[Branch, ...]):
    """A tuple of branches that displays as a table."""

    def table(self) -> Table:
        """Returns one row per branch: number, parent, kernel, command, time, outcome."""
        rows = []
        for branch in self:
            parent = "" if branch.parent is None else str(branch.parent)
            kernel = "" if branch.kernel is None else str(branch.kernel)
            arguments = ", ".join(str(value) for name, value in branch.command.arguments if name != "kernel")
            times = [variant.median_us for variant in branch.kernels if variant.median_us is not None]
            time = duration_text(sum(times)) if times else ""
            rows.append((str(branch.id), parent, kernel, f"{branch.command.kind} {arguments}", time, branch.status))
        columns = ("#", "from", "kernel", "command", "time", "status")
        return Table(count_text(len(rows), "branch", "branches"), columns, tuple(rows), code=frozenset(("command",)))


class WhatIf(DisplayableResult):
    """The what-if branches of one capture: `do(command)` returns a branch, `branches` has all of them.

    Each kernel and each schedule has a current branch, from which commands continue unless a parent is given. Only one
    command runs at a time. Another thread waits for its end, but not for the end of a search.

    Args:
        trace: the capture.
        kernels: the captured kernels by number; none for a trace from a file.
        settings: the configuration of the capture.
        captured: the stored data of the kernels, by number.
        graphs: the scheduled graphs, by stage.

    Attributes:
        on_change: called with each new branch in the order of numbers, and again with a branch that gets a label or the
            listings of a candidate.
        on_move: called after `go`.
        on_progress: called while a command runs.
        on_end: called when a command has ended or failed.
    """

    def __init__(
        self,
        trace: Trace,
        kernels: Mapping[int, Kernel] | None = None,
        settings: Config | None = None,
        captured: Mapping[int, CapturedKernel] | None = None,
        graphs: Mapping[int, CapturedGraph] | None = None,
    ) -> None:
        self._branches: list[Branch] = list(trace.branches)
        self._sent_count = len(
            self._branches
        )  # the number of branches that the trace has or that were passed to `on_change`
        self.on_change: Callable[[Branch], None] | None = None
        self.on_move: Callable[[], None] | None = None
        self.on_progress: Callable[[Progress], None] | None = None
        self.on_end: Callable[[], None] | None = None
        self._cancelled = Event()
        self._count = len(trace.kernels)
        self._again: Callable[[], Trace] = lambda: trace
        finished = [branch for branch in self._branches if branch.status == "done"]
        self._at_schedule = {branch.schedule.stage: branch.id for branch in finished if branch.schedule is not None}
        self._at: dict[int, int] = {branch.kernel: branch.id for branch in self._branches if branch.kernel is not None}
        self._turn = RLock()
        self._running: Command | None = None
        self._searching: int | None = None  # the thread that runs a search
        self._compiler: KernelCompiler | None = None
        self._extended: tuple[Trace, Trace] | None = None
        if kernels and settings is not None:
            subjects = {
                number: KernelSubject.of(trace.kernels[number].device, captured_kernel)
                for number, captured_kernel in kernels.items()
            }
            names = {info.id: tuple(trace.buffers[number].name for number in info.buffers) for info in trace.kernels}
            self._compiler = KernelCompiler(subjects, settings, names, captured or {})
            roots = {info.roots: info.id for info in reversed(trace.kernels)}
            self._rescheduling = Rescheduler(graphs or {}, roots, self._compiler.under_settings)

    def interpret(
        self, measure: Measure, try_text: Callable[[Text, CapturedKernel | None], EditResult], most_work: int
    ) -> None:
        """Runs no native code from now on.

        measure: times kernels instead.
        try_text: tries edits instead.
        most_work: a schedule with more operations is not run.
        """
        if self._compiler is not None:
            self._compiler = replace(self._compiler, measure=measure, try_text=try_text)
            self._rescheduling = replace(self._rescheduling, interpreted=most_work)

    @property
    def graphs(self) -> Mapping[int, CapturedGraph]:
        """Returns the graphs that can be scheduled again, by the stages that scheduled them."""
        return {} if self._compiler is None else self._rescheduling.graphs

    def ask_for_trace(self, again: Callable[[], Trace]) -> None:
        """Drops the reference to the trace; call `again` to get the trace when a command needs it."""
        self._again, self._extended = again, None

    @property
    def _trace(self) -> Trace:
        return self._again()

    def compare(self, a: Branch | int, b: Branch | int) -> Comparison:
        """Compares the kernels of two branches side by side, listing by listing."""
        from tinyexplore.explore.analysis.comparisons.comparison import compare

        return compare(self.trace_of(a), self.trace_of(b))

    def table(self) -> Table:
        """Returns the branches as a table."""
        return self.branches.table()

    # *** queries ***

    @property
    def branches(self) -> Branches:
        """Returns all branches, in the order of creation."""
        return Branches(self._branches)

    @property
    def is_live(self) -> bool:
        """Whether the session has kernels or schedules that can be compiled again."""
        return self._compiler is not None

    def of_kernel(self, kernel: int) -> tuple[Branch, ...]:
        """Returns the branches of one kernel, in the order of creation."""
        return tuple(branch for branch in self._branches if branch.kernel == kernel)

    def at(self, kernel: int) -> Branch | None:
        """Returns the current branch of a kernel; None before its first command."""
        number = self._at.get(kernel)
        return None if number is None else self._branches[number]

    def of_schedule(self, schedule: int) -> tuple[Branch, ...]:
        """Returns the branches of one schedule."""
        return tuple(branch for branch in self._branches if dict(branch.command.arguments).get("schedule") == schedule)

    def at_schedule(self, schedule: int) -> Branch | None:
        """Returns the current branch of a schedule; None before its first command."""
        number = self._at_schedule.get(schedule)
        return None if number is None else self._branches[number]

    @property
    def schedules(self) -> tuple[int, ...]:
        """Returns the stages whose graphs can be scheduled again."""
        return () if self._compiler is None else tuple(self._rescheduling.graphs)

    def schedule_of(self, src: int, dst: int) -> int | None:
        """Returns the schedule in which LazyBuffer `dst` reads `src`; of several, the first that has a branch."""
        if self._compiler is None:
            return None
        nodes = self._trace.nodes
        if not 0 <= dst < len(nodes) or src not in nodes[dst].src:
            return None
        having = [stage for stage, graph in self._rescheduling.graphs.items() if dst in graph.computed]
        tried_stages = [stage for stage in having if stage in self._at_schedule]
        return next(iter(tried_stages or having), None)

    def compiler(self, kernel: int | None = None) -> KernelCompiler:
        """Returns the compiler of the session's kernels.

        Raises:
            WhatIfError: this kernel cannot be compiled again.
        """
        if self._compiler is None:
            raise WhatIfError(NOT_HERE)
        if kernel is not None and kernel not in self._compiler.subjects:
            if 0 <= kernel < self._count:
                raise WhatIfError(f"kernel {kernel} is a copy between devices: there are no loops to change")
            raise WhatIfError(f"no kernel {kernel}; this trace has kernels 0 … {self._count - 1}")
        return self._compiler

    def opt_steps(self, kernel: int, *, timed: bool) -> OptSteps:
        """Returns the kernel after each of its opts.

        Raises:
            WhatIfError: the kernel cannot be compiled again.
        """
        from tinyexplore.explore.whatif.opt_steps import opt_steps

        return opt_steps(self.compiler(kernel), kernel, timed=timed)

    def extend_trace(self, trace: Trace) -> Trace:
        """Returns `trace` with all branches of this session; returns it unchanged if it has them already."""
        if len(self._branches) == len(trace.branches) and tuple(self._branches) == trace.branches:
            return trace
        if self._extended is not None and self._extended[0] is trace:
            trace_so_far = self._extended[1]
            if trace_so_far.branches == tuple(self._branches):
                return trace_so_far
        extended = replace(trace, branches=tuple(self._branches))
        self._extended = (trace, extended)
        return extended

    # *** commands ***

    def do(self, command: Command, parent: Branch | int | None = None) -> Branch:
        """Executes `command` from `parent` on (by default from the current branch), and makes the result the current
        branch.

        An earlier branch with the same result is returned instead of a new one. A failed branch has the reason and does
        not become the current one. A cancelled or interrupted command adds no branch, except for the candidates that a
        search had tried.

        Raises:
            WhatIfError: the command is invalid, or `cancel` was called.
        """
        with self._wait_for_turn():
            return self._do(command, parent)

    @contextmanager
    def _wait_for_turn(self) -> Iterator[None]:
        is_searching = self._searching not in (None, get_ident())
        if is_searching or not self._turn.acquire(timeout=2 * LIMIT_S):
            raise WhatIfError(BUSY)
        try:
            yield
        finally:
            self._turn.release()

    def _do(self, command: Command, parent: Branch | int | None) -> Branch:
        number = command.about
        compiler = self.compiler(number)
        origin = self._find_origin(command, parent)
        self._cancelled.clear()
        self._running = command
        self._searching = get_ident() if isinstance(command, SearchOpts) else None
        try:
            outcome = command.carry_out(self._make_context(compiler, origin))
            self._check_cancelled(command)
        except Cancelled:
            raise WhatIfError(CANCELLED) from None
        except CommandRejected as error:
            self._check_cancelled(command)  # the command failed because `cancel` ended its worker
            return self._add(command, origin, error.outcome, "failed")
        finally:
            self._running = self._searching = None
            if self.on_end is not None:
                self.on_end()
        if outcome.same is not None:
            return self._update_branch(outcome.same, command.label, outcome)
        light = None if outcome.edited is not None else self._find_candidate(number, outcome)
        if light is not None:
            return self._update_branch(
                self._replace_row(replace(light, kernels=outcome.kernels)), command.label, outcome
            )
        return self._add(command, origin, outcome, "done")

    def _check_cancelled(self, command: Command) -> None:
        """Raises WhatIfError after `cancel`, except for a search: its branch keeps the candidates."""
        if self._cancelled.is_set() and not isinstance(command, SearchOpts):
            raise WhatIfError(CANCELLED)

    def _make_context(self, compiler: KernelCompiler, origin: Branch | None) -> CommandContext:
        def candidate(kernel: int, opts: tuple[str, ...], time_us: float | None, note: str) -> None:
            self._add_candidate(origin, kernel, opts, time_us, note)

        def progress(text: str, done: float, total: int) -> None:
            if self.on_progress is not None:
                self.on_progress(Progress(text, done, total))

        is_cancelled, has_progress = self._cancelled.is_set, self.on_progress is not None
        trace = self._trace
        return CommandContext(
            compiler, self._rescheduling, trace, self._branches, origin, candidate, progress, is_cancelled, has_progress
        )

    def cancel(self) -> None:
        """Cancels the running command.

        A search ends at its next candidate. For other commands, the worker process is ended immediately.
        """
        self._cancelled.set()
        if self._running is not None and not isinstance(self._running, SearchOpts):
            workers.dismiss()
            dismiss()

    def begin(self, kernel: int) -> Branch:
        """Adds the branches for comparison: the kernel without opts, with the heuristics' opts, and as captured.

        The last one becomes the current branch.
        """
        with self._wait_for_turn():
            root = self.do(AsCaptured(kernel))
            self.do(SetOpts(kernel, ""), root)
            self.do(UseHeuristics(kernel), root)
            return self.go(root.id)

    def all_places(self) -> dict[str, int]:
        """Returns the number of the current branch of each kernel and schedule, by "kernel 0", "schedule 4"."""
        kernels = {f"kernel {number}": branch for number, branch in self._at.items()}
        return {**kernels, **{f"schedule {stage}": branch for stage, branch in self._at_schedule.items()}}

    def go(self, branch: Branch | int) -> Branch:
        """Makes `branch` the current branch of its kernel or schedule."""
        row = self._resolve_branch(branch)
        self._make_current(row)
        if self.on_move is not None:
            self.on_move()
        return row

    def _make_current(self, branch: Branch) -> None:
        if branch.kernel is not None:
            self._at[branch.kernel] = branch.id
        elif branch.schedule is not None:
            self._at_schedule[branch.schedule.stage] = branch.id

    def complete_branch(self, branch: Branch | int) -> Branch:
        """Returns `branch` with its listings, nest and offers. A candidate of a search is compiled to get them."""
        row = self._resolve_branch(branch)
        if row.kernel is None or row.status == "failed" or all(kernel.listings for kernel in row.kernels):
            return row
        return self.do(SetOpts(row.kernel, ", ".join(row.kernels[0].opts)), row)

    def text(self, kernel: int, stage: str, branch: Branch | int | None = None) -> str:
        """Returns the text of an editable stage ("opts", "uops", "llvm", "c"), by default in the current branch."""
        compiler = self.compiler(kernel)
        warm_up()
        origin = self.at(kernel) or self.do(AsCaptured(kernel)) if branch is None else self._resolve_branch(branch)
        return stage_text(self._make_context(compiler, origin), kernel, stage)

    def replay(self, branches: Iterable[Branch]) -> tuple[Branch, ...]:
        """Runs the commands of `branches` in order. They may come from another capture of the same program."""
        replayed: dict[int, Branch] = {}
        for branch in branches:
            parent = None if branch.parent is None else replayed.get(branch.parent)
            replayed[branch.id] = self.do(from_info(branch.command), parent)
        return tuple(replayed.values())

    def trace_of(self, branch: Branch | int, kernel: int | None = None) -> Trace:
        """Compiles the kernel of `branch` again, and returns it as a trace of its own.

        The trace has every stage, step and listing, the times of the branch, and the verdicts on its firings.

        kernel: which kernel of the branch, by default the first.
        """
        row = self._resolve_branch(branch)
        if row.schedule is not None:
            return self._schedule_trace(row, row.schedule)
        numbers = [kernel_variant.kernel or 0 for kernel_variant in row.kernels] + [
            firing.kernel for firing in row.firings
        ]
        if not numbers or (row.kernel is None and not row.rule_law):
            raise WhatIfError(f"what-if branch {row.id} changed no kernel: {row.reason or 'nothing can be traced'}")
        if kernel is not None and kernel not in numbers:
            raise WhatIfError(
                f"what-if branch {row.id} has the kernels {', '.join(map(str, dict.fromkeys(numbers)))}, not {kernel}"
            )
        if row.edited is not None:
            raise WhatIfError(f"what-if branch {row.id} is an edited text and has listings only")
        number = numbers[0] if kernel is None else kernel
        variant = next((candidate for candidate in row.kernels if (candidate.kernel or 0) == number), None)
        compiler = self.compiler(number)
        context = self._make_context(compiler, row)
        before = None if row.parent is None else self._resolve_branch(row.parent)
        passes = passes_of(from_info(row.command), self._make_context(compiler, before), number)
        trace = compiler.recorded(number, lambda: context.kernel(number), passes).trace
        trace = with_checks(trace, [firing for firing in row.firings if firing.kernel == number])
        if variant is None or variant.median_us is None or variant.low_us is None or variant.high_us is None:
            return trace
        return replace(
            trace, runs=(Run(0, 0, variant.times_us, variant.median_us, variant.low_us, variant.high_us, warm=True),)
        )

    def _schedule_trace(self, branch: Branch, variant: ScheduleVariant) -> Trace:
        self.compiler()
        trace = self._trace
        title = f"{trace.title} · what-if branch {branch.id}"
        names = {node.id: node.name for node in trace.nodes if node.name}
        return self._rescheduling.trace_of(variant.stage, frozenset(variant.cut), frozenset(variant.join), title, names)

    # *** storage ***

    def _resolve_branch(self, branch: Branch | int) -> Branch:
        number = branch if isinstance(branch, int) else branch.id
        if not 0 <= number < len(self._branches):
            raise WhatIfError(f"no what-if branch {number}; there are {len(self._branches)}")
        return self._branches[number]

    def _find_origin(self, command: Command, parent: Branch | int | None) -> Branch | None:
        """Returns the branch from which a command starts: its parent, the current branch, or the kernel as captured."""
        if parent is not None:
            return self._resolve_branch(parent)
        schedule = schedule_of(command)
        if schedule is not None and not isinstance(command, AsScheduled):
            return self.at_schedule(schedule) or self.do(AsScheduled(schedule))
        if command.about is None or isinstance(command, AsCaptured):
            return None
        return self.at(command.about) or self.do(AsCaptured(command.about))

    def _find_candidate(self, number: int | None, outcome: CommandOutcome) -> Branch | None:
        """Returns a branch of a search with the same opts, which has times but no listings; None if there is none."""
        if number is None or not outcome.kernels:
            return None
        for branch in self.of_kernel(number):
            if branch.status == "done" and branch.kernels and not branch.kernels[0].listings:
                if branch.kernels[0].opts == outcome.kernels[0].opts:
                    return branch
        return None

    def _add_candidate(
        self, origin: Branch | None, kernel: int, opts: tuple[str, ...], time_us: float | None, note: str
    ) -> None:
        """Adds a candidate of a search as a branch without listings, below the branch that shares most of its opts."""
        plain = [branch for branch in self.of_kernel(kernel) if branch.kernels and branch.edited is None]
        branch_of = {branch.kernels[0].opts: branch for branch in plain}
        if opts in branch_of:
            return
        parent = next(
            (branch_of[opts[:count]] for count in reversed(range(len(opts))) if opts[:count] in branch_of), origin
        )
        variant = KernelVariant(
            kernel=kernel,
            name="",
            device=self.compiler().subjects[kernel].device,
            opts=opts,
            times_us=() if time_us is None else (time_us,),
            median_us=time_us,
            low_us=time_us,
            high_us=time_us,
        )
        branch = Branch(
            id=len(self._branches),
            parent=None if parent is None else parent.id,
            kernel=kernel,
            command=info_of(SetOpts(kernel, ", ".join(opts))),
            status="failed" if time_us is None else "done",
            reason=note,
            kernels=(variant,),
        )
        self._branches.append(branch)
        self._report(branch)

    def _add(self, command: Command, parent: Branch | None, outcome: CommandOutcome, status: str) -> Branch:
        branch = Branch(
            id=len(self._branches),
            parent=None if parent is None else parent.id,
            kernel=command.about,
            command=info_of(command),
            status=status,
            reason=outcome.note,
            kernels=outcome.kernels,
            labels=(command.label,) if command.label and status == "done" else (),
            rule_law="" if outcome.rule is None else outcome.rule.law,
            rule_text="" if outcome.rule is None else rule_text(outcome.rule),
            firings=outcome.firings,
            edited=outcome.edited,
            schedule=outcome.schedule,
            search=outcome.search,
        )
        self._branches.append(branch)
        if status == "done":
            self._make_current(branch)
        self._report(branch)
        return branch

    def _update_branch(self, branch: Branch, label: str, outcome: CommandOutcome) -> Branch:
        """Adds the label, note or search result of `outcome` to an earlier branch, and makes it the current one."""
        if label and label not in branch.labels:
            branch = self._replace_row(replace(branch, labels=(*branch.labels, label)))
        if outcome.note and outcome.note != branch.reason:
            branch = self._replace_row(replace(branch, reason=outcome.note))
        if outcome.search is not None:
            branch = self._replace_row(replace(branch, search=outcome.search))
        self._make_current(branch)
        self._report(branch)
        return branch

    def _replace_row(self, branch: Branch) -> Branch:
        self._branches[branch.id] = branch
        return branch

    def _report(self, branch: Branch) -> None:
        """Calls `on_change` with the branches that an interrupt delayed, and then with `branch`."""
        new = self._branches[self._sent_count :]
        self._sent_count = len(self._branches)
        if self.on_change is not None:
            for changed in new if branch in new else [*new, branch]:
                self.on_change(changed)


def with_checks(trace: Trace, firings: Sequence[RuleFiring]) -> Trace:
    """Returns `trace` with the check of each of `firings`, at the step where the rule fired."""
    checks = []
    for firing in firings:
        stage = next((stage.id for stage in trace.stages if _has_fired(trace, stage, firing)), None)
        if stage is not None:
            checks.append(
                FiringCheck(
                    stage, firing.step, firing.verdict, firing.says, firing.inputs, firing.was, firing.has_become
                )
            )
    return replace(trace, checks=tuple(checks))


def _has_fired(trace: Trace, stage: Stage, firing: RuleFiring) -> bool:
    if stage.name != firing.stage or not 0 < firing.step <= len(stage.steps):
        return False
    rule = stage.steps[firing.step - 1].rule
    return rule is not None and trace.rules[rule].name == firing.rule


__all__ = ["BUSY", "CANCELLED", "Branches", "Progress", "WhatIf", "with_checks"]

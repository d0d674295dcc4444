"""WhatIf: the branches of a session. A command is carried out from a branch on, and becomes another branch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event, RLock, get_ident
from typing import TYPE_CHECKING

from tinyexplore.compile import workers
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.recording.kept import CapturedKernel
from tinyexplore.explore.recording.rows import KeptGraph
from tinyexplore.explore.recording.sources import rule_text
from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.model import (
    Branch,
    FiringCheck,
    KernelVariant,
    RuleFiring,
    Run,
    ScheduleVariant,
    Stage,
)
from tinyexplore.explore.tracefile.readable import Readable, ReadableRow, Table
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.bench import KernelBench, KernelSubject
from tinyexplore.explore.whatif.commands import (
    AsCaptured,
    AsScheduled,
    HandCode,
    SearchOpts,
    SetOpts,
    from_info,
    info_of,
)
from tinyexplore.explore.whatif.commands.rules import passes_of
from tinyexplore.explore.whatif.editing.asking import EditResult, Text, dismiss, warm_up
from tinyexplore.explore.whatif.editing.stages import stage_text
from tinyexplore.explore.whatif.measure import LIMIT_S, Measure
from tinyexplore.explore.whatif.outcome import Cancelled, Outcome, Refused
from tinyexplore.explore.whatif.place import Command, CommandContext, schedule_of
from tinyexplore.explore.whatif.rescheduled import Rescheduling
from tinyexplore.kernel import Kernel
from tinyexplore.util import Config

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.comparing.comparison import Comparison
    from tinyexplore.explore.whatif.opt_steps import OptSteps

NOT_HERE = "this trace came from a file: it says what was, and has no program to change; capture it again"
BUSY = "another command is being carried out; view.whatif.cancel() ends a search"
CANCELLED = "cancelled: it made no branch"


@dataclass(frozen=True, slots=True, repr=False)
class Progress(ReadableRow):
    """How far a long command is: `done` of `of`, in words."""

    text: str
    done: float
    of: int


class Branches(Readable, tuple[Branch, ...]):
    """Branches as a tuple. It displays as a table."""

    def table(self) -> Table:
        """One row per branch: number, parent, kernel, command, time, outcome."""
        rows = []
        for branch in self:
            parent = "" if branch.parent is None else str(branch.parent)
            kernel = "" if branch.kernel is None else str(branch.kernel)
            arguments = ", ".join(str(value) for name, value in branch.command.arguments if name != "kernel")
            times = [one.median_us for one in branch.kernels if one.median_us is not None]
            time = duration_text(sum(times)) if times else ""
            rows.append((str(branch.id), parent, kernel, f"{branch.command.kind} {arguments}", time, branch.status))
        columns = ("#", "from", "kernel", "command", "time", "status")
        return Table(count_text(len(rows), "branch", "branches"), columns, tuple(rows), code=frozenset(("command",)))


class WhatIf(Readable):
    """The what-ifs of one capture: `do(command)` gives a branch, `branches` are all of them.

    kernels: the captured kernels by their numbers, none where a trace came from a file; kept: what else is kept of
    them. graphs: those that were scheduled, by their stages. Each kernel and each schedule has a branch at which its
    reader is; commands go on from there, unless they are told another one. One is carried out at a time; another
    thread waits for its end, but not for that of a search.

    Attributes:
        on_change: called with each new branch, in the order of their numbers, and with an earlier one of which there is
            more to say: a label, or the listings of a candidate of a search.
        on_move: called after `go`.
        on_progress: called while a command is carried out.
    """

    def __init__(
        self,
        trace: Trace,
        kernels: Mapping[int, Kernel] | None = None,
        settings: Config | None = None,
        kept: Mapping[int, CapturedKernel] | None = None,
        graphs: Mapping[int, KeptGraph] | None = None,
    ) -> None:
        self._branches: list[Branch] = list(trace.branches)
        self._told = len(self._branches)  # so many were given to `on_change`, or are of the trace
        self.on_change: Callable[[Branch], None] | None = None
        self.on_move: Callable[[], None] | None = None
        self.on_progress: Callable[[Progress], None] | None = None
        self._cancelled = Event()
        self._count = len(trace.kernels)
        self._again: Callable[[], Trace] = lambda: trace
        told = [branch for branch in self._branches if branch.status == "done"]
        self._at_schedule = {branch.schedule.stage: branch.id for branch in told if branch.schedule is not None}
        self._at: dict[int, int] = {branch.kernel: branch.id for branch in self._branches if branch.kernel is not None}
        self._turn = RLock()
        self._running: Command | None = None
        self._searching: int | None = None  # the thread that does
        self._bench: KernelBench | None = None
        self._extended: tuple[Trace, Trace] | None = None
        if kernels and settings is not None:
            subjects = {number: KernelSubject.of(trace.kernels[number].device, one) for number, one in kernels.items()}
            names = {info.id: tuple(trace.buffers[number].name for number in info.buffers) for info in trace.kernels}
            self._bench = KernelBench(subjects, settings, names, kept or {})
            roots = {info.roots: info.id for info in reversed(trace.kernels)}
            self._rescheduling = Rescheduling(graphs or {}, roots, self._bench.under_settings)

    def interpret(
        self, measure: Measure, try_text: Callable[[Text, CapturedKernel | None], EditResult], most_work: int
    ) -> None:
        """From now on nothing is native: `measure` says how long kernels take, `try_text` what becomes of edits, and
        schedules of more than `most_work` operations are not run."""
        if self._bench is not None:
            self._bench = replace(self._bench, measure=measure, try_text=try_text)
            self._rescheduling = replace(self._rescheduling, interpreted=most_work)

    @property
    def graphs(self) -> Mapping[int, KeptGraph]:
        """Those that can be scheduled again, by the stages that did."""
        return {} if self._bench is None else self._rescheduling.graphs

    def ask_for_trace(self, again: Callable[[], Trace]) -> None:
        """From now on the trace is not held here: `again` gives it where a command needs it."""
        self._again, self._extended = again, None

    @property
    def _trace(self) -> Trace:
        return self._again()

    def compare(self, a: Branch | int, b: Branch | int) -> Comparison:
        """The kernels of two branches side by side, listing by listing."""
        from tinyexplore.explore.analysis.comparing.comparison import compare

        return compare(self.trace_of(a), self.trace_of(b))

    def table(self) -> Table:
        """The branches as rows."""
        return self.branches.table()

    # *** asking ***

    @property
    def branches(self) -> Branches:
        """All branches, in the order in which they were made."""
        return Branches(self._branches)

    @property
    def is_live(self) -> bool:
        """Whether there is anything to compile again."""
        return self._bench is not None

    def of_kernel(self, kernel: int) -> tuple[Branch, ...]:
        """The branches about one kernel, in the order in which they were made."""
        return tuple(branch for branch in self._branches if branch.kernel == kernel)

    def at(self, kernel: int) -> Branch | None:
        """The branch at which the reader is; None where nothing was asked of that kernel yet."""
        number = self._at.get(kernel)
        return None if number is None else self._branches[number]

    def of_schedule(self, schedule: int) -> tuple[Branch, ...]:
        """The branches about one schedule."""
        return tuple(branch for branch in self._branches if dict(branch.command.arguments).get("schedule") == schedule)

    def at_schedule(self, schedule: int) -> Branch | None:
        """The branch at which the reader of a schedule is; None where nothing was asked of it yet."""
        number = self._at_schedule.get(schedule)
        return None if number is None else self._branches[number]

    @property
    def schedules(self) -> tuple[int, ...]:
        """The stages whose graphs can be scheduled again."""
        return () if self._bench is None else tuple(self._rescheduling.graphs)

    def schedule_of(self, src: int, dst: int) -> int | None:
        """The schedule in which LazyBuffer `dst` reads `src`: the one that was asked last, of several."""
        if self._bench is None:
            return None
        nodes = self._trace.nodes
        if not 0 <= dst < len(nodes) or src not in nodes[dst].src:
            return None
        having = [stage for stage, graph in self._rescheduling.graphs.items() if dst in graph.computed]
        asked = [stage for stage in having if stage in self._at_schedule]
        return next(iter(asked or having), None)

    def bench(self, kernel: int | None = None) -> KernelBench:
        """What compiles; WhatIfError where this kernel cannot be compiled again."""
        if self._bench is None:
            raise WhatIfError(NOT_HERE)
        if kernel is not None and kernel not in self._bench.subjects:
            if 0 <= kernel < self._count:
                raise WhatIfError(f"kernel {kernel} is a copy between devices: there are no loops to change")
            raise WhatIfError(f"no kernel {kernel}; this trace has kernels 0 … {self._count - 1}")
        return self._bench

    def opt_steps(self, kernel: int, *, timed: bool) -> OptSteps:
        """The kernel after each of its opts. WhatIfError where it cannot be compiled again."""
        from tinyexplore.explore.whatif.opt_steps import opt_steps

        return opt_steps(self.bench(kernel), kernel, timed=timed)

    def extended(self, trace: Trace) -> Trace:
        """`trace` with the branches; itself where there are none but its own."""
        if len(self._branches) == len(trace.branches) and tuple(self._branches) == trace.branches:
            return trace
        if self._extended is not None and self._extended[0] is trace:
            known = self._extended[1]
            if known.branches == tuple(self._branches):
                return known
        extended = replace(trace, branches=tuple(self._branches))
        self._extended = (trace, extended)
        return extended

    # *** doing ***

    def do(self, command: Command, parent: Branch | int | None = None) -> Branch:
        """The branch that `command` leads to from `parent` on (by default from where the reader is), which is where the
        reader is then; an earlier one where that is the same.

        A branch that failed says why, and leaves the reader where he was. WhatIfError for what cannot be asked, and
        after `cancel`: a command that was cancelled leaves no branch but what a search had tried. So does an interrupt.
        """
        with self._my_turn():
            return self._do(command, parent)

    @contextmanager
    def _my_turn(self) -> Iterator[None]:
        is_searching = self._searching not in (None, get_ident())
        if is_searching or not self._turn.acquire(timeout=2 * LIMIT_S):
            raise WhatIfError(BUSY)
        try:
            yield
        finally:
            self._turn.release()

    def _do(self, command: Command, parent: Branch | int | None) -> Branch:
        number = command.about
        bench = self.bench(number)
        origin = self._origin(command, parent)
        self._cancelled.clear()
        self._running = command
        self._searching = get_ident() if isinstance(command, SearchOpts) else None
        try:
            outcome = command.carry_out(self._place(bench, origin))
            self._check_cancelled(command)
        except Cancelled:
            raise WhatIfError(CANCELLED) from None
        except Refused as error:
            self._check_cancelled(command)  # then it was refused because its worker was ended
            return self._add(command, origin, error.outcome, "failed")
        finally:
            self._running = self._searching = None
        if outcome.same is not None:
            return self._know(outcome.same, command.label, outcome)
        light = None if outcome.edited is not None else self._light(number, outcome)
        if light is not None:
            return self._know(self._put(replace(light, kernels=outcome.kernels)), command.label, outcome)
        return self._add(command, origin, outcome, "done")

    def _check_cancelled(self, command: Command) -> None:
        """WhatIfError after `cancel`. A search keeps what it tried, and says in its branch that it was cancelled."""
        if self._cancelled.is_set() and not isinstance(command, SearchOpts):
            raise WhatIfError(CANCELLED)

    def _place(self, bench: KernelBench, origin: Branch | None) -> CommandContext:
        def candidate(kernel: int, opts: tuple[str, ...], time_us: float | None, note: str) -> None:
            self._try(origin, kernel, opts, time_us, note)

        def progress(text: str, done: float, of: int) -> None:
            if self.on_progress is not None:
                self.on_progress(Progress(text, done, of))

        is_cancelled, shown = self._cancelled.is_set, self.on_progress is not None
        trace = self._trace
        return CommandContext(
            bench, self._rescheduling, trace, self._branches, origin, candidate, progress, is_cancelled, shown
        )

    def cancel(self) -> None:
        """Ends the command that is being carried out. A search ends at its next candidate; a worker that compiles or
        times for any other command is ended at once."""
        self._cancelled.set()
        if self._running is not None and not isinstance(self._running, SearchOpts):
            workers.dismiss()
            dismiss()

    def begin(self, kernel: int) -> Branch:
        """What a reader compares with: a kernel without opts, by the heuristics, and as captured, where he is then."""
        with self._my_turn():
            root = self.do(AsCaptured(kernel))
            self.do(SetOpts(kernel, ""), root)
            self.do(HandCode(kernel), root)
            return self.go(root.id)

    def all_places(self) -> dict[str, int]:
        """Where the reader of each kernel and schedule is: a branch's number, by "kernel 0", "schedule 4"."""
        kernels = {f"kernel {number}": branch for number, branch in self._at.items()}
        return {**kernels, **{f"schedule {stage}": branch for stage, branch in self._at_schedule.items()}}

    def go(self, branch: Branch | int) -> Branch:
        """Makes `branch` the one at which the reader of its kernel is."""
        found = self._branch(branch)
        self._stand_at(found)
        if self.on_move is not None:
            self.on_move()
        return found

    def _stand_at(self, branch: Branch) -> None:
        if branch.kernel is not None:
            self._at[branch.kernel] = branch.id
        elif branch.schedule is not None:
            self._at_schedule[branch.schedule.stage] = branch.id

    def whole(self, branch: Branch | int) -> Branch:
        """`branch` with its listings, nest and offers: what a search timed is compiled for that."""
        found = self._branch(branch)
        if found.kernel is None or found.status == "failed" or all(one.listings for one in found.kernels):
            return found
        return self.do(SetOpts(found.kernel, ", ".join(found.kernels[0].opts)), found)

    def text(self, kernel: int, stage: str, branch: Branch | int | None = None) -> str:
        """The text of a stage that can be edited ("opts", "uops", "llvm", "c"), as it is in `branch`, or where the
        reader is."""
        bench = self.bench(kernel)
        warm_up()
        origin = self.at(kernel) or self.do(AsCaptured(kernel)) if branch is None else self._branch(branch)
        return stage_text(self._place(bench, origin), kernel, stage)

    def replay(self, branches: Iterable[Branch]) -> tuple[Branch, ...]:
        """The commands of `branches` (of another capture of the same program, say) carried out here, in their order."""
        made: dict[int, Branch] = {}
        for branch in branches:
            parent = None if branch.parent is None else made.get(branch.parent)
            made[branch.id] = self.do(from_info(branch.command), parent)
        return tuple(made.values())

    def trace_of(self, branch: Branch | int, kernel: int | None = None) -> Trace:
        """The kernel of `branch` compiled once more as a trace of its own: every stage, step and listing, the times of
        the branch, and the verdicts on its firings at their steps. `kernel`: which of several, by default the first."""
        found = self._branch(branch)
        if found.schedule is not None:
            return self._schedule_trace(found, found.schedule)
        numbers = [one.kernel or 0 for one in found.kernels] + [one.kernel for one in found.firings]
        if not numbers or (found.kernel is None and not found.rule_law):
            raise WhatIfError(f"branch {found.id} has no kernel: {found.reason or 'it is about none'}")
        if kernel is not None and kernel not in numbers:
            raise WhatIfError(f"branch {found.id} is about {', '.join(map(str, dict.fromkeys(numbers)))}, not {kernel}")
        if found.edited is not None:
            raise WhatIfError(f"branch {found.id} is an edited text: its listings are all that there is of it")
        number = numbers[0] if kernel is None else kernel
        variant = next((one for one in found.kernels if (one.kernel or 0) == number), None)
        bench = self.bench(number)
        place = self._place(bench, found)
        before = None if found.parent is None else self._branch(found.parent)
        passes = passes_of(from_info(found.command), self._place(bench, before), number)
        trace = bench.recorded(number, lambda: place.kernel(number), passes).trace
        trace = with_checks(trace, [one for one in found.firings if one.kernel == number])
        if variant is None or variant.median_us is None or variant.low_us is None or variant.high_us is None:
            return trace
        return replace(
            trace, runs=(Run(0, 0, variant.times_us, variant.median_us, variant.low_us, variant.high_us, warm=True),)
        )

    def _schedule_trace(self, branch: Branch, variant: ScheduleVariant) -> Trace:
        self.bench()
        trace = self._trace
        title = f"{trace.title} · branch {branch.id}"
        names = {node.id: node.name for node in trace.nodes if node.name}
        return self._rescheduling.trace_of(variant.stage, frozenset(variant.cut), frozenset(variant.join), title, names)

    # *** keeping ***

    def _branch(self, branch: Branch | int) -> Branch:
        number = branch if isinstance(branch, int) else branch.id
        if not 0 <= number < len(self._branches):
            raise WhatIfError(f"no branch {number}; there are {len(self._branches)}")
        return self._branches[number]

    def _origin(self, command: Command, parent: Branch | int | None) -> Branch | None:
        """Where a command goes on from: the first one about a kernel is about the kernel as it was captured."""
        if parent is not None:
            return self._branch(parent)
        schedule = schedule_of(command)
        if schedule is not None and not isinstance(command, AsScheduled):
            return self.at_schedule(schedule) or self.do(AsScheduled(schedule))
        if command.about is None or isinstance(command, AsCaptured):
            return None
        return self.at(command.about) or self.do(AsCaptured(command.about))

    def _light(self, number: int | None, outcome: Outcome) -> Branch | None:
        """A branch that a search has timed, and nobody has looked at."""
        if number is None or not outcome.kernels:
            return None
        for branch in self.of_kernel(number):
            if branch.status == "done" and branch.kernels and not branch.kernels[0].listings:
                if branch.kernels[0].opts == outcome.kernels[0].opts:
                    return branch
        return None

    def _try(self, origin: Branch | None, kernel: int, opts: tuple[str, ...], time_us: float | None, note: str) -> None:
        """What a search tried: a light branch, below the one that has the most of its opts already."""
        plain = [branch for branch in self.of_kernel(kernel) if branch.kernels and branch.edited is None]
        known = {branch.kernels[0].opts: branch for branch in plain}
        if opts in known:
            return
        parent = next((known[opts[:count]] for count in reversed(range(len(opts))) if opts[:count] in known), origin)
        variant = KernelVariant(
            kernel=kernel,
            name="",
            device=self.bench().subjects[kernel].device,
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
        self._tell(branch)

    def _add(self, command: Command, parent: Branch | None, outcome: Outcome, status: str) -> Branch:
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
            self._stand_at(branch)
        self._tell(branch)
        return branch

    def _know(self, branch: Branch, label: str, outcome: Outcome) -> Branch:
        """`branch`, of which there is something more to say now."""
        if label and label not in branch.labels:
            branch = self._put(replace(branch, labels=(*branch.labels, label)))
        if outcome.note and outcome.note != branch.reason:
            branch = self._put(replace(branch, reason=outcome.note))
        if outcome.search is not None:
            branch = self._put(replace(branch, search=outcome.search))
        self._stand_at(branch)
        self._tell(branch)
        return branch

    def _put(self, branch: Branch) -> Branch:
        self._branches[branch.id] = branch
        return branch

    def _tell(self, branch: Branch) -> None:
        """Gives `branch` to `on_change`; and before it what an interrupt kept from being given."""
        new = self._branches[self._told :]
        self._told = len(self._branches)
        if self.on_change is not None:
            for one in new if branch in new else [*new, branch]:
                self.on_change(one)


def with_checks(trace: Trace, firings: Sequence[RuleFiring]) -> Trace:
    """`trace` with what the check says of `firings` of its kernel, each at its step."""
    checks = []
    for one in firings:
        stage = next((stage.id for stage in trace.stages if _has_fired(trace, stage, one)), None)
        if stage is not None:
            checks.append(FiringCheck(stage, one.step, one.verdict, one.says, one.inputs, one.was, one.has_become))
    return replace(trace, checks=tuple(checks))


def _has_fired(trace: Trace, stage: Stage, firing: RuleFiring) -> bool:
    if stage.name != firing.stage or not 0 < firing.step <= len(stage.steps):
        return False
    rule = stage.steps[firing.step - 1].rule
    return rule is not None and trace.rules[rule].name == firing.rule


__all__ = ["BUSY", "CANCELLED", "Branches", "Progress", "WhatIf", "with_checks"]

"""The fusion board as data: the scheduler's cuts and joins, the legal changes, and their results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.tracefile.fusions import Edge, Fusions
from tinyexplore.explore.tracefile.hints import AttributeHints
from tinyexplore.explore.tracefile.model import Branch, FusedKernel, Node, ScheduleVariant
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.texts import ratio_text, spread_text
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.command import Command
from tinyexplore.explore.whatif.commands import AsScheduled, Cut, Join, Leave

if TYPE_CHECKING:
    from tinyexplore.explore.whatif.session_view import SessionView
    from tinyexplore.widgets import PartWidget


@dataclass(frozen=True, slots=True, repr=False)
class FusionChange(DisplayableRow):
    """The difference between two branches of one schedule.

    before: the first branch.
    after: the second branch.
    kept: the kernels of both, as pairs.
    vanished: the kernels only in `before`.
    appeared: the kernels only in `after`.
    """

    before: ScheduleVariant
    after: ScheduleVariant
    kept: tuple[tuple[FusedKernel, FusedKernel], ...]
    vanished: tuple[FusedKernel, ...]
    appeared: tuple[FusedKernel, ...]

    @property
    def rows(self) -> tuple[tuple[str, str, str], ...]:
        """Returns the counts and measurements as (name, before, after)."""
        a, b = self.before, self.after
        base = _time_text(b.base_median_us, b.base_low_us, b.base_high_us)
        variant_time = _time_text(b.median_us, b.low_us, b.high_us)
        time = ("time", base, variant_time)
        if a.cut or a.join:  # the branches were timed separately: compare each with its own base times
            base_text = f"as captured then: {_time_text(a.base_median_us, a.base_low_us, a.base_high_us)}"
            time = (
                "time",
                f"{_time_text(a.median_us, a.low_us, a.high_us)}, {base_text}",
                f"{variant_time}, as captured then: {base}",
            )
        return (
            ("kernels", str(len(a.kernels)), str(len(b.kernels))),
            ("bytes moved", f"{a.bytes_moved:,}", f"{b.bytes_moved:,}"),
            ("operations", f"{a.flops:,}", f"{b.flops:,}"),
            ("peak of intermediates", f"{a.peak_bytes:,} B", f"{b.peak_bytes:,} B"),
            time,
        )

    def __str__(self) -> str:
        lines = [f"{label:22} {before:>28} → {after}" for label, before, after in self.rows]
        after = self.after
        if (after.cut or after.join) and not (self.before.cut or self.before.join):
            ratio = ratio_text(after.median_us, after.base_median_us, after.verdict)
            lines[-1] += f" · {ratio}" if ratio else ""
        lines += [f"- {kernel.name}" for kernel in self.vanished]
        lines += [f"+ {kernel.name}" for kernel in self.appeared]
        return "\n".join(lines)

    __repr__ = __str__


def _time_text(median_us: float | None, low_us: float | None, high_us: float | None) -> str:
    return spread_text(median_us, low_us, high_us) or "not run"


def change(before: ScheduleVariant, after: ScheduleVariant) -> FusionChange:
    """Returns the change of the kernels from `before` to `after`.

    Two kernels are equal if they store the same LazyBuffers with the same loops.
    """
    left: dict[tuple[str, tuple[int, ...]], list[FusedKernel]] = {}
    for kernel in before.kernels:
        left.setdefault((kernel.digest, kernel.roots), []).append(kernel)
    unchanged: list[tuple[FusedKernel, FusedKernel]] = []
    appeared: list[FusedKernel] = []
    for kernel in after.kernels:
        same = left.get((kernel.digest, kernel.roots))
        if same:
            unchanged.append((same.pop(0), kernel))
        else:
            appeared.append(kernel)
    vanished = [kernel for kernels in left.values() for kernel in kernels]
    return FusionChange(before, after, tuple(unchanged), tuple(vanished), tuple(appeared))


class FusionBoard(AttributeHints):
    """Changes the fusion of a capture: `cut`, `join`, `leave` and `undo` return a Branch each.

    An edge is an `Edge` of `edges()`, or a pair (src, dst) of LazyBuffers or their ids. A single LazyBuffer stands for
    all edges on which other LazyBuffers read it. If a capture scheduled several graphs, the edge selects the schedule;
    methods with a `schedule` argument use the first one by default. A notebook displays the board.
    """

    def __init__(self, view: SessionView) -> None:
        self._view = view

    @property
    def _trace(self) -> Trace:
        return self._view.trace

    @property
    def schedules(self) -> tuple[int, ...]:
        """Returns the stages whose graphs can be scheduled again, in order; none for a trace from a file."""
        return self._view.whatif.schedules

    # *** queries ***

    def edges(self, branch: Branch | int | None = None) -> tuple[Edge, ...]:
        """Returns every edge between LazyBuffers of the capture, or of a branch.

        An edge has the scheduler's decision, its reason, and the legality errors of cutting (`against_cut`) and joining
        (`against_join`), "" for none.
        """
        return Fusions(self._trace, None if branch is None else self._require_variant(branch)).edges()

    def edge(self, src: Node | int, dst: Node | int, branch: Branch | int | None = None) -> Edge:
        """Returns the edge from `src` to `dst`."""
        fusions = Fusions(self._trace, None if branch is None else self._require_variant(branch))
        return fusions.edge(_number(src), _number(dst))

    def branch(self, schedule: int | None = None) -> Branch:
        """Returns the current branch of a schedule: the result of the last command, else the captured schedule."""
        number = self._find_first_schedule() if schedule is None else schedule
        return self._view.whatif.at_schedule(number) or self._view.whatif.do(AsScheduled(number))

    def branches(self, schedule: int | None = None) -> tuple[Branch, ...]:
        """Returns the branches of one schedule, or of all schedules."""
        branches = self._view.whatif.branches
        about = [(branch, dict(branch.command.arguments).get("schedule")) for branch in branches]
        return tuple(branch for branch, stage in about if stage is not None and schedule in (None, stage))

    def compare(self, after: Branch | int | None = None, before: Branch | int | None = None) -> FusionChange:
        """Compares the schedule of a branch (default: the selected one) with another (default: the captured one)."""
        variant = self._require_variant(self.branch() if after is None else after)
        if before is not None:
            return change(self._require_variant(before), variant)
        root = next(
            branch for branch in self.branches(variant.stage) if branch.status == "done" and branch.schedule is not None
        )
        return change(self._require_variant(root), variant)

    # *** changes ***

    def cut(self, edge: Any, dst: Node | int | None = None, *, branch: Branch | int | None = None) -> Branch:
        """Stores the value of an edge in memory: `cut(edge)`, `cut(src, dst)`, or `cut(node)` for all its edges."""
        schedule, src, into = self._locate_edge(edge, dst)
        return self._do(Cut(schedule, src, into), branch)

    def join(self, edge: Any, dst: Node | int | None = None, *, branch: Branch | int | None = None) -> Branch:
        """Stores nothing at an edge: each reading kernel computes the value, even several times."""
        schedule, src, into = self._locate_edge(edge, dst)
        return self._do(Join(schedule, src, into), branch)

    def leave(self, node: Any, *, branch: Branch | int | None = None) -> Branch:
        """Removes the cut or join at a LazyBuffer, so that the scheduler decides."""
        schedule, src, _ = self._locate_edge(node, None)
        return self._do(Leave(schedule, src), branch)

    def undo(self, schedule: int | None = None) -> Branch:
        """Returns to the parent of the current branch."""
        current = self.branch(schedule)
        return current if current.parent is None else self._view.whatif.go(current.parent)

    def go(self, branch: Branch | int) -> Branch:
        """Goes to another branch."""
        return self._view.whatif.go(branch)

    def _do(self, command: Command, branch: Branch | int | None) -> Branch:
        return self._view.whatif.do(command, branch)

    # *** lookups ***

    def _require_variant(self, branch: Branch | int) -> ScheduleVariant:
        resolved = self._view.whatif.branches[branch] if isinstance(branch, int) else branch
        if resolved.schedule is None:
            raise WhatIfError(
                f"what-if branch {resolved.id} has no schedule: {resolved.reason or 'it belongs to a kernel'}"
            )
        return resolved.schedule

    def _find_first_schedule(self) -> int:
        self._view.whatif.compiler()
        if not self.schedules:
            raise WhatIfError("this capture has no schedule; capture code that realizes a Tensor")
        return self.schedules[0]

    def _locate_edge(self, edge: Any, dst: Node | int | None) -> tuple[int, int, int]:
        """Returns the schedule, source and destination of an edge; for a node, those of its first edge."""
        self._find_first_schedule()
        if isinstance(edge, Edge):
            src, into = edge.src, edge.dst
        elif isinstance(edge, tuple):
            src, into = (_number(end) for end in edge)
        elif dst is not None:
            src, into = _number(edge), _number(dst)
        else:
            src = _number(edge)
            into = next((node.id for node in self._trace.nodes if node.kind == "lazybuffer" and src in node.src), -1)
        schedule = self._view.whatif.schedule_of(src, into)
        if schedule is None:
            raise WhatIfError(f"no schedule of this capture has an edge {src} → {into}; view.fusion.edges() has them")
        return schedule, src, into

    # *** display ***

    @property
    def widget(self) -> PartWidget:
        """Returns the widget that contains only the board."""
        widget: PartWidget = self._view.panels.fusion
        return widget

    def _ipython_display_(self) -> None:
        from IPython.display import display

        display(self.widget)

    def __repr__(self) -> str:
        if not self._view.whatif.is_live:
            return f"FusionBoard({len(self.branches())} branches; the trace has no program to schedule again)"
        return f"FusionBoard(\n{self.compare()}\n)"


def _number(node: Node | int) -> int:
    return node.id if isinstance(node, Node) else node


__all__ = ["FusionBoard", "FusionChange", "change"]

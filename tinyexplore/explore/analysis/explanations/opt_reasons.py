"""Explains a kernel's opts: each decision of the heuristics, its numbers, and the opts without it."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.device import Device, DeviceUnavailable
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuiltUOps
from tinyexplore.explore.analysis.explanations.rules import settings_of
from tinyexplore.explore.tracefile.fusions import compared_text
from tinyexplore.explore.tracefile.model import Choice, OptionScores, OptStep, Stage
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table, join_lines
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.kernel import Kernel
from tinyexplore.kernel.heuristics import apply_heuristics
from tinyexplore.trace import Recorder, recording
from tinyexplore.util import Context


@dataclass(frozen=True, slots=True, repr=False)
class HeuristicResult(DisplayableRow):
    """One heuristic and its effect.

    choice: the recorded decision.
    opts: the opts that it proposed.
    instead: the kernel's opts without this heuristic. None if they are unknown here, or if it proposed nothing.
    """

    choice: Choice
    opts: tuple[OptStep, ...]
    instead: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, repr=False)
class WhyOpts(DisplayableResult):
    """The opts of a kernel and the decisions that led to them. It displays as a table.

    kernel: the kernel's number in the trace.
    name: its name.
    opts: its opts, in order.
    chosen: the decisions, in the order in which the heuristics ran.
    """

    kernel: int
    name: str
    opts: tuple[str, ...]
    chosen: tuple[HeuristicResult, ...]

    def table(self) -> Table:
        """Returns one row per decision; a note has the number of those without an opt."""
        title = f"kernel {self.kernel} ({self.name}): {', '.join(self.opts) or 'no opts'}"
        applicable = [
            decision for decision in self.chosen if decision.opts or decision.choice.weighed or decision.choice.compared
        ]
        rows = tuple(map(_make_row, applicable))
        others = [_explain_not_applied(decision.choice) for decision in self.chosen if decision not in applicable]
        notes = (f"Decisions without effect: {', '.join(others)}.",) if others else ()
        columns = ("decision", "opts and reasons", "numbers compared", "opts without this decision")
        return Table(title, columns, rows, notes, frozenset((columns[0], columns[3])))

    def __getitem__(self, decision: str) -> HeuristicResult:
        """Returns the decision with this name."""
        for row in self.chosen:
            if row.choice.name == decision:
                return row
        raise KeyError(f"no decision {decision!r}; available: {', '.join(row.choice.name for row in self.chosen)}")


def find_next_best(weighed: OptionScores) -> tuple[str, float] | None:
    """Returns the best of the options that were not chosen."""
    others = [option for option in weighed.options if option[0] != weighed.chosen]
    best = min if weighed.least else max
    return best(others, key=lambda option: option[1], default=None)


def describe_scores(weighed: OptionScores) -> str:
    """Returns the chosen option and the next best one as text: "rows per iteration: 6 (1.02); next best 5 (1.04)"."""
    scores = dict(weighed.options)
    text = f"{weighed.what}: {weighed.chosen}"
    if weighed.chosen in scores:
        text += f" ({scores[weighed.chosen]:.3g})"
    following = find_next_best(weighed)
    return text if following is None else f"{text}; next best {following[0]} ({following[1]:.3g})"


def _explain_not_applied(choice: Choice) -> str:
    return f"{choice.name} ({choice.settled_by} came first)" if choice.settled_by else choice.name


def _make_row(row: HeuristicResult) -> tuple[str, str, str, str]:
    """Returns the row of a decision: its name, its opts, the numbers it compared, and the opts without it."""
    opts = [f"{opt.opt}: {opt.reason}" if opt.applied else f"{opt.opt} is illegal: {opt.reason}" for opt in row.opts]
    numbers = [*map(describe_scores, row.choice.weighed), *map(compared_text, row.choice.compared)]
    without = "" if row.instead is None else ", ".join(row.instead) or "no opts"
    return row.choice.name, join_lines(opts) or "none", join_lines(numbers), without


def why_opts(trace: Trace, kernel: int = 0) -> WhyOpts:
    """Explains a kernel's opts decision by decision, with the numbers that each decision compared.

    If the device is available here, each row also has the opts without that decision.
    """
    if not 0 <= kernel < len(trace.kernels):
        raise ValueError(f"kernel {kernel}: this trace has kernels 0 … {len(trace.kernels) - 1}")
    info = trace.kernels[kernel]
    owner = kernel if info.same_as is None else info.same_as
    stage = next((candidate for candidate in trace.stages if candidate.kernel == owner and candidate.choices), None)
    if stage is None:
        return WhyOpts(kernel, info.name, info.opts, ())
    started = kernel_before(trace, stage)
    chosen = []
    for choice in stage.choices:
        opts = tuple(stage.opts[number] for number in choice.opts)
        instead = None
        if started is not None and any(opt.applied for opt in opts):
            with Context(**settings_of(trace)), recording(Recorder()):  # so that no other recorder gets its events
                instead = tuple(map(str, apply_heuristics(started, frozenset((choice.name,))).applied))
        chosen.append(HeuristicResult(choice, opts, instead))
    return WhyOpts(kernel, info.name, info.opts, tuple(chosen))


def kernel_before(trace: Trace, stage: Stage) -> Kernel | None:
    """Returns the kernel before the decisions; None if its device is not available."""
    assert stage.kernel is not None
    try:
        with Context(**settings_of(trace)):  # including TARGET
            target = Device[trace.kernels[stage.kernel].device].target
    except (DeviceUnavailable, ValueError, KeyError):
        return None
    (ast,) = stage.before
    return Kernel.of(RebuiltUOps(trace).uop(ast), target)


__all__ = ["HeuristicResult", "WhyOpts", "kernel_before", "find_next_best", "describe_scores", "why_opts"]

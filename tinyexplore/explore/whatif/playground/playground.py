"""`view.rules`: the rules of the pipeline and the user's rules, on the kernels of one capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.recording.sources import package_path
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import Branch, KernelInfo
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.commands import DisableRule, FireRule, InsertRule, SkipFiring
from tinyexplore.explore.whatif.playground.firing_checks import CheckedFiring, check_firings
from tinyexplore.explore.whatif.playground.matches import RuleMatch, RuleMatches, matches_of
from tinyexplore.explore.whatif.playground.modified_pipeline import rewrites
from tinyexplore.explore.whatif.playground.proof import describe_certainty
from tinyexplore.explore.whatif.playground.user_rules import find_written_rule, register_rule, written_rules
from tinyexplore.uop import Rule

if TYPE_CHECKING:
    from tinyexplore.explore.whatif.session_view import SessionView
    from tinyexplore.widgets import PartWidget

MAX_LISTED_RULES = 20


@dataclass(frozen=True, slots=True, repr=False)
class RuleRow(DisplayableRow):
    """A rule in the list of rules.

    name: the name of the rule.
    law: the law that it states.
    doc: its docstring.
    passes: the passes that have it.
    firings: the number of its firings in the capture.
    file: the file that defines it.
    line: the first line of the definition.
    own: whether the user defined it in this session.
    """

    name: str
    law: str
    doc: str
    passes: tuple[str, ...]
    firings: int
    file: str
    line: int
    own: bool = False

    def __str__(self) -> str:
        passes = ", ".join(self.passes) or "in no pass"
        return f"{self.name}: {self.law}  ({self.firings} firings; {passes})"


@dataclass(frozen=True, slots=True, repr=False)
class RuleList(DisplayableRow):
    """All rules, in the order of the panel of rules."""

    rows: tuple[RuleRow, ...]
    """The user's rules, then those of the pipeline."""
    proves: str
    """Whether firings can be proved, or why not."""


class Playground(DisplayableResult):
    """Tries rules on the kernels of an Explorer.

    Each command returns a `Branch`: the kernels that changed, with source, times beside the captured ones, and the
        verdict
    on each firing.
    """

    def __init__(self, view: SessionView) -> None:
        self._view = view

    @property
    def _trace(self) -> Trace:
        return self._view.trace

    @property
    def proves(self) -> str:
        """Returns whether firings can be proved, or why not, as text."""
        return describe_certainty()

    def of(self, stage: str | None = None) -> tuple[RuleRow, ...]:
        """Returns the rules of the pipeline (or of one pass) in order, and the user's rules."""
        return rule_rows(self._trace, stage)

    def matches(
        self, rule: Rule | str, kernel: KernelInfo | int | None = None, stage: str | None = None
    ) -> RuleMatches:
        """Returns every node where `rule` would fire, with the result of the rule and whether it has the same value.

        Each node is listed in the first pass that contains it, or in `stage`.
        """
        return matches_of(self._trace, find_rule(rule), None if kernel is None else _number(kernel), stage)

    def fire(self, rule: Rule | str, place: RuleMatch, branch: Branch | int | None = None) -> Branch:
        """Fires `rule` at one of its `matches`, then runs the rest of that pass and of the pipeline."""
        command = FireRule(_require_known(rule).name, place.kernel, place.name, place.step, place.digest)
        return self._view.whatif.do(command, branch)

    def fire_all(
        self, rule: Rule | str, kernel: KernelInfo | int = 0, stage: str = "simplify", step: int = 0
    ) -> Branch:
        """Fires `rule` wherever it matches in the graph after `step` steps of `stage`, then runs all later passes."""
        return self._view.whatif.do(FireRule(_require_known(rule).name, _number(kernel), stage, step, ""))

    def insert(
        self, rule: Rule | str, stage: str = "simplify", position: int = -1, branch: Branch | int | None = None
    ) -> Branch:
        """Compiles all kernels with `rule` in pass `stage`.

        position: the position before which the rule is inserted; -1 appends it.
        branch: a branch whose changes of the pipeline also apply.
        """
        return self._view.whatif.do(InsertRule(_require_known(rule).name, stage, position), branch)

    def disable(self, rule: Rule | str, branch: Branch | int | None = None) -> Branch:
        """Compiles all kernels without this rule."""
        return self._view.whatif.do(DisableRule(rule if isinstance(rule, str) else rule.name), branch)

    def fork(
        self, kernel: KernelInfo | int, stage: str, step: int, rule: Rule | str | None = None, node: Any = ""
    ) -> Branch:
        """Compiles a kernel from the middle of a pass on.

        Without a `rule`, the firing that is step `step` of `stage` is skipped. With a `rule`, it fires on the graph
        after `step` steps, on `node` (a node of the trace, or a digest; "" for every node that it matches).
        """
        if rule is None:
            return self._view.whatif.do(SkipFiring(_number(kernel), stage, step))
        digest = node if isinstance(node, str) else self._trace.nodes[node if isinstance(node, int) else node.id].digest
        return self._view.whatif.do(FireRule(_require_known(rule).name, _number(kernel), stage, step, digest))

    def check(self, stages: Iterable[int] | None = None, rule: str | None = None) -> tuple[CheckedFiring, ...]:
        """Checks the firings of the capture, or those of some stages or of one rule."""
        return check_firings(self._trace, stages=stages, rule=rule)

    @property
    def widget(self) -> PartWidget:
        """Returns the panel of rules as a widget."""
        widget: PartWidget = self._view.panels.rules
        return widget

    def table(self) -> Table:
        """Returns the rules that fired in the capture and the user's rules, the most frequent first."""
        rules = self.of()
        listed = sorted(
            (candidate for candidate in rules if candidate.firings or candidate.own),
            key=lambda rule: (not rule.own, -rule.firings),
        )
        rows = tuple((row.name, row.law, ", ".join(row.passes), str(row.firings)) for row in listed[:MAX_LISTED_RULES])
        notes = (
            f"Checks of firings: {self.proves}.",
            "`.of(stage)` lists all; `.matches(rule)` shows where one fires.",
        )
        title = f"{count_text(len(rules), 'rule')}, of which {len(listed)} fired or are your own"
        return Table(title, ("rule", "law", "passes", "firings"), rows, notes, frozenset(("rule", "law")))

    def _ipython_display_(self) -> None:
        from IPython.display import display

        try:
            display(self.widget)
        except ImportError:
            display({"text/plain": str(self), "text/html": self._repr_html_()}, raw=True)


def rule_rows(trace: Trace, stage: str | None = None) -> tuple[RuleRow, ...]:
    """Returns the rules of the pipeline with their firings in a capture, and the user's rules."""
    fired = Counter(
        trace.rules[step.rule].name
        for row in trace.stages
        if stage in (None, row.name)
        for step in row.steps
        if step.rule is not None
    )
    passes: dict[Rule, list[str]] = {}
    for step in rewrites():
        for rule in step.table.rules:
            if stage in (None, step.name):
                passes.setdefault(rule, []).append(step.name)
    unused_rules = [rule for rule in written_rules() if rule not in passes]
    return tuple(
        RuleRow(
            name=rule.name,
            law=rule.law,
            doc=rule.doc,
            passes=tuple(passes.get(rule, ())),
            firings=fired[rule.name],
            file=package_path(rule.file),
            line=rule.line,
            own=rule in unused_rules,
        )
        for rule in (*unused_rules, *passes)
    )


def find_rule(rule: Rule | str) -> Rule:
    """Returns the rule with this name: the user's, or the engine's."""
    if isinstance(rule, Rule):
        return rule
    for step in rewrites():
        for candidate in step.table.rules:
            if candidate.name == rule:
                return candidate
    return find_written_rule(rule).rule


def _require_known(rule: Rule | str) -> Rule:
    """Returns the registered rule with the name of `rule`, for commands, which refer to rules by name."""
    known_rule = find_rule(rule)
    try:
        current = find_written_rule(known_rule.name).rule
    except KeyError:
        current = None
    return known_rule if current is known_rule else register_rule(known_rule)


def _number(kernel: KernelInfo | int) -> int:
    return kernel if isinstance(kernel, int) else kernel.id


__all__ = ["Playground", "RuleRow", "find_rule", "rule_rows"]

"""Finds where a rule would match before it fires: the node, the pass and the step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyexplore.explore.analysis.explanations.match_attempts import match_rule, node_text
from tinyexplore.explore.analysis.explanations.rebuilt_uops import RebuildError, RebuiltUOps
from tinyexplore.explore.analysis.explanations.rules import context_of, settings_of
from tinyexplore.explore.recording.expression import Printer
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import Stage
from tinyexplore.explore.tracefile.pictures.drawn_graph import reachable
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.playground.equivalence import Verdict
from tinyexplore.explore.whatif.playground.modified_pipeline import pass_named, rewrites
from tinyexplore.explore.whatif.playground.trials import FiringChecker
from tinyexplore.uop import Rule
from tinyexplore.util import Context


@dataclass(frozen=True, slots=True, repr=False)
class RuleMatch(DisplayableRow):
    """A node at which a rule would fire.

    rule: the name of the rule.
    kernel: the kernel that the pass processed.
    stage: the id of the pass.
    name: the name of the pass.
    step: the number of steps before the match.
    node: the id of the node in the trace.
    digest: the digest of the node.
    before: the node, as text.
    after: the result of the rule, as text.
    verdict: whether both have the same value.
    """

    rule: str
    kernel: int
    stage: int
    name: str
    step: int
    node: int
    digest: str
    before: str
    after: str
    verdict: Verdict

    def __str__(self) -> str:
        position = f"kernel {self.kernel}, {self.name}, step {self.step}, node {self.node}"
        return f"{position}: {self.before}  →  {self.after}: {self.verdict}"


@dataclass(frozen=True, slots=True, repr=False)
class MatchList(DisplayableRow):
    """The matches of one rule, in the order of the panel of rules."""

    places: tuple[RuleMatch, ...]
    """Nodes at which the rule would fire, in the order of the passes."""


class RuleMatches(tuple[RuleMatch, ...]):
    """Matches of a rule that print as one line each."""

    def __repr__(self) -> str:
        kernels = len({match.kernel for match in self})
        head = f"{count_text(len(self), 'place')} in {count_text(kernels, 'kernel')}"
        return "\n".join([head, *(f"  {match}" for match in self)])


def matches_of(
    trace: Trace, rule: Rule, kernel: int | None = None, stage: str | None = None, checks: FiringChecker | None = None
) -> RuleMatches:
    """Returns every node on which `rule` would fire, in the first pass with rules (or in `stage`) that contains it."""
    if stage is not None:
        pass_named(stage)
    return RuleMatches(_find_matches(trace, rule, kernel, stage, checks or FiringChecker()))


def _find_matches(
    trace: Trace, rule: Rule, kernel: int | None, stage: str | None, checks: FiringChecker
) -> Iterator[RuleMatch]:
    """Yields the nodes of each graph at which a rule matches, each node once per kernel."""
    rebuilt = RebuiltUOps(trace)
    names = {stage} if stage is not None else {step.name for step in rewrites()}
    visited: set[tuple[int | None, int]] = set()
    with Context(**settings_of(trace)):
        for row in trace.stages:
            if row.name not in names or row.kernel is None or kernel not in (None, row.kernel):
                continue
            context = context_of(trace, row, rebuilt)
            printer = Printer()
            for node, step in _nodes_of(trace, row):
                if (row.kernel, node) in visited:
                    continue
                visited.add((row.kernel, node))
                try:
                    uop = rebuilt.uop(node)
                except RebuildError:
                    continue
                if rule.pattern.ops is not None and uop.op not in rule.pattern.ops:
                    continue
                after = match_rule(rule, uop, context, places=False).after
                if after is not None:
                    yield RuleMatch(
                        rule=rule.name,
                        kernel=row.kernel,
                        stage=row.id,
                        name=row.name,
                        step=step,
                        node=node,
                        digest=checks.digests.of(uop),
                        before=node_text(uop, printer),
                        after=node_text(after, printer),
                        verdict=checks.verdict(rule, row.name, uop, after),
                    )


def _nodes_of(trace: Trace, stage: Stage) -> Iterator[tuple[int, int]]:
    """Yields the nodes that occur in a pass, each with the number of steps after which it exists."""
    nodes = dict(enumerate(trace.nodes))
    visited = set()
    for node in reachable(nodes, stage.before):
        visited.add(node.id)
        yield node.id, 0
    for number, step in enumerate(stage.steps, 1):
        fresh = [step.after]
        while fresh:
            new_node = fresh.pop()
            if new_node not in visited:
                visited.add(new_node)
                yield new_node, number
                fresh.extend(trace.nodes[new_node].src)


__all__ = ["RuleMatch", "MatchList", "RuleMatches", "matches_of"]

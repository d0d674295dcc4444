"""Modified pipelines: with one more rule, without a rule, or from the middle of a pass on.

Each is a tuple of passes derived from `PASSES`, which `lower` and `compile_optimized` take as an argument. No global
setting selects the rules. Caches (plans, kernels, files on disk) therefore never contain kernels of modified pipelines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tinyexplore.codegen import PASSES, GraphPass, Pass, Rewrite
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.uop import Ops, PatternMatcher, Rule, UOp
from tinyexplore.uop.pattern import Candidates


class UnknownPassError(ValueError):
    """The pass does not exist, or does not have the rule."""


@dataclass(frozen=True, slots=True)
class RuleInsertion:
    """Change of a pipeline: one more rule in a pass.

    rule: the rule.
    stage: the name of the pass.
    position: the position in the pass's table before which the rule is inserted; -1 appends it.
    """

    rule: Rule
    stage: str
    position: int = -1


@dataclass(frozen=True, slots=True)
class RuleRemoval:
    """Change of a pipeline: one rule less.

    rule: the name of the rule.
    """

    rule: str


Change = RuleInsertion | RuleRemoval


class SingleNodeRules(PatternMatcher):
    """A table of rules that match only on one node."""

    def __init__(self, rules: Iterable[Rule], node: UOp) -> None:
        super().__init__(rules)
        self.node = node

    def candidates(self, node: UOp) -> Candidates:
        return super().candidates(node) if node is self.node else ()


class ExcludedNodeRules(PatternMatcher):
    """A table of rules in which one rule does not match on one node."""

    def __init__(self, table: PatternMatcher, rule: str, node: UOp) -> None:
        super().__init__(table.rules, within=table.kinds)
        self.rule = rule
        self.node = node

    def candidates(self, node: UOp) -> Candidates:
        matches = super().candidates(node)
        return matches if node is not self.node else tuple([match for match in matches if match[0].name != self.rule])


def rewrites() -> tuple[Rewrite, ...]:
    """Returns the passes that have rules, in order."""
    return tuple(step for step in PASSES if isinstance(step, Rewrite))


def pass_named(name: str) -> Rewrite:
    """Returns the pass with this name; it must have rules."""
    for step in rewrites():
        if step.name == name:
            return step
    raise UnknownPassError(
        f"no pass {name!r} has rules; those that have are: {', '.join(step.name for step in rewrites())}"
    )


def passes_with(changes: Sequence[Change], passes: Sequence[Pass] = PASSES) -> tuple[Pass, ...]:
    """Returns the pipeline with these changes, applied one after another."""
    for change in changes:
        if isinstance(change, RuleInsertion):
            pass_named(change.stage)
            passes = [_insert_rule(step, change) for step in passes]
        else:
            names = {rule.name for step in passes if isinstance(step, Rewrite) for rule in step.table.rules}
            if change.rule not in names:
                raise UnknownPassError(f"no rule {change.rule!r} in any pass; `view.rules` lists the rules")
            passes = [_remove_rule(step, change.rule) for step in passes]
    return tuple(passes)


def _insert_rule(step: Pass, change: RuleInsertion) -> Pass:
    if not isinstance(step, Rewrite) or step.name != change.stage:
        return step
    rules = list(step.table.rules)
    rules.insert(len(rules) if change.position < 0 else change.position, change.rule)
    return replace(step, table=PatternMatcher(rules))


def _remove_rule(step: Pass, name: str) -> Pass:
    if not isinstance(step, Rewrite) or all(rule.name != name for rule in step.table.rules):
        return step
    table = step.table
    rules = [rule for rule in table.rules if rule.name != name]
    return replace(step, table=PatternMatcher(rules, within=table.kinds, remembers=table.remembers))


def passes_from(stage: str, root: UOp, firing: Rewrite | None = None) -> tuple[Pass, ...]:
    """Returns the rest of the pipeline from `root` on, a graph in the middle of pass `stage`.

    firing: a pass to run before it, None for none.
    """
    step = pass_named(stage)

    def resumed(_: UOp, lowering: Lowering) -> UOp:
        """Returns the graph at that step."""
        for _number in range(1 + max((accumulator.arg for accumulator in root.find(Ops.DEFINE_ACC)), default=-1)):
            next(lowering.numbers)
        return root

    start = GraphPass("as it was", resumed, PASSES[0].before, step.before)
    return (start, *([] if firing is None else [firing]), *PASSES[PASSES.index(step) :])


def fired_once(stage: str, rule: Rule, node: UOp) -> Rewrite:
    """Returns a pass that fires `rule` once, on `node`."""
    step = pass_named(stage)
    return Rewrite(f"fire {rule.name}", SingleNodeRules((rule,), node), step.before, step.before, step.context)


def fired_everywhere(stage: str, rule: Rule) -> Rewrite:
    """Returns a pass that applies only `rule`, until it matches nowhere."""
    step = pass_named(stage)
    return Rewrite(f"fire {rule.name}", PatternMatcher((rule,)), step.before, step.before, step.context)


def passes_skipping(stage: str, rule: str, node: UOp) -> tuple[Pass, ...]:
    """Returns the pipeline in which `rule` of pass `stage` does not fire on `node`."""
    step = pass_named(stage)
    without = replace(step, table=ExcludedNodeRules(step.table, rule, node))
    return tuple(without if candidate is step else candidate for candidate in PASSES)


__all__ = [
    "Change",
    "RuleRemoval",
    "RuleInsertion",
    "UnknownPassError",
    "fired_everywhere",
    "fired_once",
    "pass_named",
    "passes_from",
    "passes_skipping",
    "passes_with",
    "rewrites",
]

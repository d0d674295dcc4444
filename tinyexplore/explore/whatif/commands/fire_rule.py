"""FireRule: fire a rule in the middle of a pass, and continue the pipeline from there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.codegen import Pass
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.recording.tables import UopDigests
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.rules import rule_named, try_out_rule
from tinyexplore.explore.whatif.outcome import CommandOutcome
from tinyexplore.explore.whatif.playground.intermediate_graph import graph_at
from tinyexplore.explore.whatif.playground.modified_pipeline import fired_everywhere, fired_once, passes_from


@dataclass(frozen=True, slots=True)
class FireRule:
    """Fire a rule on a kernel's graph after some steps of a pass, then run the rest of that pass and the pipeline.

    kernel: the number of the kernel.
    stage: the name of the pass.
    step: the number of steps that run before.
    rule: the name of the rule.
    node: the digest of the node on which it fires; "" for every node that it matches.
    """

    rule: str
    kernel: int
    stage: str
    step: int
    node: str
    label: ClassVar[str] = ""

    @property
    def about(self) -> None:
        return None

    def pipeline(self, context: CommandContext, _: int) -> Sequence[Pass]:
        """Returns the passes for the kernel."""
        rule = rule_named(self.rule)
        graph = graph_at(context.compiler, self.kernel, self.stage, self.step)
        if not self.node:
            return passes_from(self.stage, graph.root, fired_everywhere(self.stage, rule))
        digests = UopDigests()
        node = next((candidate for candidate in graph.root.toposort() if digests.is_named(candidate, self.node)), None)
        if node is None:
            raise WhatIfError(f"no node {self.node} in kernel {self.kernel} after step {self.step} of {self.stage}")
        return passes_from(self.stage, graph.root, fired_once(self.stage, rule, node))

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        rule = rule_named(self.rule)
        context.compiler.subjects[self.kernel]
        passes = self.pipeline(context, self.kernel)
        return try_out_rule(context, rule, self.rule, [self.kernel], lambda _: passes, lambda fired: fired.rule is rule)

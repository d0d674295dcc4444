"""SkipFiring: compile a kernel without one firing of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.codegen import Pass
from tinyexplore.explore.analysis.opts import WhatIfError
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.rules import try_out_rule
from tinyexplore.explore.whatif.outcome import CommandOutcome
from tinyexplore.explore.whatif.playground.intermediate_graph import graph_at
from tinyexplore.explore.whatif.playground.modified_pipeline import passes_skipping
from tinyexplore.uop import Rule, UOp


@dataclass(frozen=True, slots=True)
class SkipFiring:
    """Compile a kernel without one firing: at that step the rule is not tried on that node. Other rules are.

    kernel: the number of the kernel.
    stage: the name of the pass.
    step: the number of the firing in the pass.
    """

    kernel: int
    stage: str
    step: int
    label: ClassVar[str] = ""

    @property
    def about(self) -> None:
        return None

    def pipeline(self, context: CommandContext, _: int) -> Sequence[Pass]:
        """Returns the passes for the kernel."""
        rule, node = self._find_firing(context)
        return passes_skipping(self.stage, rule.name, node)

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        rule, _ = self._find_firing(context)
        passes = self.pipeline(context, self.kernel)
        label = f"without {rule.name} at step {self.step} of {self.stage}"
        return try_out_rule(context, rule, label, [self.kernel], lambda _: passes, lambda fired: False)

    def _find_firing(self, context: CommandContext) -> tuple[Rule, UOp]:
        graph = graph_at(context.compiler, self.kernel, self.stage, self.step)
        if graph.fired is None:
            raise WhatIfError(
                f"step {self.step} of {self.stage} is not a firing; it rebuilt a node whose sources changed"
            )
        return graph.fired.rule, graph.fired.before

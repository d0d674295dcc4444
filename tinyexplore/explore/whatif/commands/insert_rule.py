"""InsertRule: compile all kernels with one more rule in the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.codegen import Pass
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.rules import pipeline_with, rule_named, try_out_rule
from tinyexplore.explore.whatif.outcome import CommandOutcome
from tinyexplore.explore.whatif.playground.modified_pipeline import RuleInsertion


@dataclass(frozen=True, slots=True)
class InsertRule:
    """Compile every kernel with one more rule in a pass. Each of its firings is checked.

    rule: the name of one of the user's rules.
    stage: the name of the pass.
    position: the position in the pass's table before which it is inserted; -1 appends it.
    """

    rule: str
    stage: str
    position: int
    label: ClassVar[str] = ""

    @property
    def about(self) -> None:
        return None

    def pipeline(self, context: CommandContext, _: int) -> Sequence[Pass]:
        """Returns the passes for a kernel."""
        return pipeline_with(context, RuleInsertion(rule_named(self.rule), self.stage, self.position))

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        rule = rule_named(self.rule)
        passes = self.pipeline(context, 0)
        kernels = sorted(context.compiler.subjects)
        return try_out_rule(context, rule, self.rule, kernels, lambda _: passes, lambda fired: fired.rule is rule)

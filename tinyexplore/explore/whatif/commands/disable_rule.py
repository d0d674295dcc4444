"""DisableRule: compile all kernels without one rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.codegen import Pass
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.rules import changes_of, pipeline_with, try_out_rule
from tinyexplore.explore.whatif.outcome import CommandOutcome
from tinyexplore.explore.whatif.playground.modified_pipeline import RuleRemoval, rewrites
from tinyexplore.uop import Rule


@dataclass(frozen=True, slots=True)
class DisableRule:
    """Compile every kernel without one rule in the tables of all passes.

    Transforms that simplify graphs internally still use all rules.

    rule: the name of the rule.
    """

    rule: str
    label: ClassVar[str] = ""

    @property
    def about(self) -> None:
        return None

    def pipeline(self, context: CommandContext, _: int) -> Sequence[Pass]:
        """Returns the passes for a kernel."""
        return pipeline_with(context, RuleRemoval(self.rule))

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        passes = self.pipeline(context, 0)
        rule = self._find_rule(context)
        kernels = sorted(context.compiler.subjects)
        return try_out_rule(context, rule, f"without {self.rule}", kernels, lambda _: passes, lambda fired: False)

    def _find_rule(self, context: CommandContext) -> Rule | None:
        of_passes = [rule for step in rewrites() for rule in step.table.rules]
        inserted = [rule for change in changes_of(context, context.parent) if (rule := getattr(change, "rule", None))]
        return next((rule for rule in of_passes + inserted if getattr(rule, "name", "") == self.rule), None)

"""AsScheduled: run a schedule as captured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.overrides import reschedule
from tinyexplore.explore.whatif.outcome import CommandOutcome


@dataclass(frozen=True, slots=True)
class AsScheduled:
    """Run the captured schedule under the same conditions as all other branches of its tree.

    schedule: the stage that scheduled the graph.
    """

    schedule: int
    label: ClassVar[str] = "as captured"

    @property
    def about(self) -> None:
        return None

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        return reschedule(context, self.schedule, frozenset(), frozenset())

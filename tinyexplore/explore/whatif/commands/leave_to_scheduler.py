"""Leave: remove the cut or join at a LazyBuffer, so that the scheduler decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.overrides import overrides_at, reschedule
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected


@dataclass(frozen=True, slots=True)
class Leave:
    """Remove the cut or join at a LazyBuffer, so that the scheduler decides.

    schedule: the stage that scheduled the graph.
    src: the LazyBuffer.
    """

    schedule: int
    src: int
    label: ClassVar[str] = ""

    @property
    def about(self) -> None:
        return None

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        cut, join = overrides_at(context)
        if self.src not in cut | join:
            raise CommandRejected(
                f"node {self.src} is neither cut nor joined in this branch; view.fusion.edges() lists the edges"
            )
        return reschedule(context, self.schedule, cut - {self.src}, join - {self.src})

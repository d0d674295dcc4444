"""Join: store no value between two LazyBuffers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.overrides import edge_at, overrides_at, reschedule
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected


@dataclass(frozen=True, slots=True)
class Join:
    """Compute `src` in the kernel of `dst`, and in every other kernel that reads `src`, at any cost.

    schedule: the stage that scheduled the graph.
    src: the LazyBuffer that `dst` reads.
    dst: the LazyBuffer that reads `src`.
    """

    schedule: int
    src: int
    dst: int
    label: ClassVar[str] = ""

    @property
    def about(self) -> None:
        return None

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        edge = edge_at(context, self.schedule, self.src, self.dst)
        if edge.against_join:
            raise CommandRejected(edge.against_join)
        cut, join = overrides_at(context)
        return reschedule(context, self.schedule, cut - {self.src}, join | {self.src})

"""UseHeuristics: compile a kernel with the opts that the heuristics choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import CommandOutcome


@dataclass(frozen=True, slots=True)
class UseHeuristics:
    """Apply the opts that the heuristics choose, each with its reason, and record those that were rejected.

    kernel: the number of the kernel.
    """

    kernel: int
    label: ClassVar[str] = "heuristics"

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        return try_out(context, self.kernel, lambda: context.compiler.apply_heuristics(self.kernel))

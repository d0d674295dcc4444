"""AsCaptured: compile a kernel with its captured opts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import CommandOutcome
from tinyexplore.kernel import Kernel
from tinyexplore.trace import recording


@dataclass(frozen=True, slots=True)
class AsCaptured:
    """Compile and time the kernel with its captured opts, under the same conditions as all other branches of its tree.

    Unit axes are merged first, as the heuristics do. A capture with NOOPT does not merge them.

    kernel: the number of the kernel.
    """

    kernel: int
    label: ClassVar[str] = "as captured"

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        def make() -> Kernel:
            """Builds the captured kernel. If the heuristics chose its opts, they run again to record their reasons."""
            with recording(None):
                as_chosen = context.compiler.apply_heuristics(self.kernel).applied
            same = as_chosen == context.compiler.subjects[self.kernel].applied
            return context.compiler.apply_heuristics(self.kernel) if same else context.compiler.captured(self.kernel)

        return try_out(context, self.kernel, make)

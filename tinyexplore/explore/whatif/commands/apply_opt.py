"""ApplyOpt: add one opt to a kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.analysis.opts import to_opt
from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected
from tinyexplore.kernel import apply_opt


@dataclass(frozen=True, slots=True)
class ApplyOpt:
    """Add one opt to the kernel of the branch.

    kernel: the number of the kernel.
    opt: the opt, such as "UPCAST(0, 4)".
    """

    kernel: int
    opt: str
    label: ClassVar[str] = ""

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        opt = to_opt(self.opt)
        if context.parent is not None and context.parent.edited is not None:
            raise CommandRejected(
                "an opt changes the loops of a kernel, and this branch is an edited text; undo the edit first"
            )
        return try_out(context, self.kernel, lambda: apply_opt(context.kernel(self.kernel), opt))

"""UndoOpt: compile a kernel without its last opt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.command import CommandContext
from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import CommandOutcome, CommandRejected
from tinyexplore.kernel import undo_opt


@dataclass(frozen=True, slots=True)
class UndoOpt:
    """Return to the kernel of the branch without its last opt.

    An earlier branch with these opts is reused. For an edited text, the result is the branch in which it was edited.

    kernel: the number of the kernel.
    """

    kernel: int
    label: ClassVar[str] = ""

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, context: CommandContext) -> CommandOutcome:
        if context.parent is not None and context.parent.edited is not None and context.parent.parent is not None:
            return CommandOutcome(same=context.branches[context.parent.parent])
        if not context.compiler.under_settings(lambda: context.kernel(self.kernel)).applied:
            raise CommandRejected("no opt was applied, so there is nothing to undo")
        return try_out(context, self.kernel, lambda: undo_opt(context.kernel(self.kernel)))

"""UndoOpt: a kernel without its last opt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.outcome import Outcome, Refused
from tinyexplore.explore.whatif.place import CommandContext
from tinyexplore.kernel import undo_opt


@dataclass(frozen=True, slots=True)
class UndoOpt:
    """The kernel of the branch without its last opt: an earlier branch, where there is one with these opts. Of a text
    that was edited, the branch that it was edited in."""

    kernel: int
    label: ClassVar[str] = ""

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, place: CommandContext) -> Outcome:
        if place.parent is not None and place.parent.edited is not None and place.parent.parent is not None:
            return Outcome(same=place.branches[place.parent.parent])
        if not place.bench.under_settings(lambda: place.kernel(self.kernel)).applied:
            raise Refused("no opt was applied, so there is nothing to undo")
        return try_out(place, self.kernel, lambda: undo_opt(place.kernel(self.kernel)))

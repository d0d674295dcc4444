"""AsCaptured: a kernel with the opts that it was captured with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tinyexplore.explore.whatif.commands.opts import try_out
from tinyexplore.explore.whatif.place import Outcome, Place


@dataclass(frozen=True, slots=True)
class AsCaptured:
    """The kernel with the opts that it was captured with, timed as all other branches are: the root of their tree.

    Axes that are one are merged first, as the heuristics do it; a capture with NOOPT leaves them apart.
    """

    kernel: int
    label: ClassVar[str] = "as captured"

    @property
    def about(self) -> int:
        return self.kernel

    def carry_out(self, place: Place) -> Outcome:
        return try_out(place, self.kernel, lambda: place.bench.captured(self.kernel))

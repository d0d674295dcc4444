"""The elements of a view of memory as a grid: the position of each, for the drawable part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tinyexplore.explore.analysis.shapes.cells import Box, Cell, cells_of, shown_box
from tinyexplore.explore.analysis.shapes.indices import IndexText, index_texts
from tinyexplore.explore.analysis.shapes.moves import MovementStep
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.shape import ShapeTracker, View


@dataclass(frozen=True, slots=True, repr=False)
class OtherView(DisplayableRow):
    """Another view of the same memory.

    name: the name of the view.
    tracker: its ShapeTracker.
    node: its LazyBuffer in the trace, None for none.
    """

    name: str
    tracker: ShapeTracker
    node: int | None = None


@dataclass(frozen=True)
class ShapeGrid:
    """A view of memory, its movements, and the visible part.

    steps: the movements; the first entry is the start.
    size: the number of positions in memory.
    name: the name of the memory.
    window: the index at which the visible part begins.
    others: further views of the same memory.
    """

    steps: tuple[MovementStep, ...]
    size: int
    name: str = "memory"
    window: tuple[int, ...] = ()
    others: tuple[OtherView, ...] = ()

    @property
    def tracker(self) -> ShapeTracker:
        return self.steps[-1].tracker

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tracker.shape

    @property
    def views(self) -> tuple[View, ...]:
        return self.tracker.views

    @property
    def law(self) -> str:
        """The effect of the last movement as text; "" without a movement."""
        return self.steps[-1].law

    @property
    def formula(self) -> str:
        """The formula of the last movement: "y[i0, i1] = x[i1, i0]"."""
        return self.steps[-1].formula

    # *** cells ***

    @cached_property
    def box(self) -> Box:
        """The visible part: at most some hundred cells, from `window` on."""
        return shown_box(self.shape, self.window)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The visible elements, in row-major order."""
        return tuple(cells_of(self.tracker, self.box))

    @property
    def is_whole(self) -> bool:
        """Whether the whole view is visible."""
        return all(bounds == (0, size) for bounds, size in zip(self.box, self.shape))

    def cell(self, *index: int) -> Cell:
        """Returns one element, visible or not."""
        if len(index) != len(self.shape) or any(not 0 <= i < size for i, size in zip(index, self.shape)):
            raise ShapeError(f"no element {index} in shape {self.shape}")
        return Cell(index, self.tracker.index(index))

    def readers(self, offset: int) -> tuple[Cell, ...]:
        """Returns the visible elements at a position in memory: several if a stride is 0, none for unused memory."""
        return tuple(cell for cell in self.cells if cell.offset == offset)

    # *** the index expression ***

    @cached_property
    def _texts(self) -> tuple[IndexText, IndexText]:
        return index_texts(self.tracker)

    @property
    def before(self) -> IndexText:
        """The index expression of element (i0, i1, …), before simplification."""
        return self._texts[0]

    @property
    def after(self) -> IndexText:
        """The index expression after the compiler's rules."""
        return self._texts[1]


__all__ = ["OtherView", "ShapeGrid"]

"""A shape as grids: logical index ↔ position in memory ↔ mask, for the drawable part.

`explore.shape(tracker)` is a ShapeView. Its cells are data, it prints as text, a notebook draws it, and every movement
returns another ShapeView.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tinyexplore.explore.analysis.shapes.cells import reach_of
from tinyexplore.explore.analysis.shapes.grid import OtherView, ShapeGrid
from tinyexplore.explore.analysis.shapes.indices import index_texts
from tinyexplore.explore.analysis.shapes.moves import LAWS, MovementStep, apply_movement, read_argument, suggestion
from tinyexplore.explore.analysis.shapes.picture import shape_svg
from tinyexplore.explore.analysis.shapes.text import shape_grid_text
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.shape import ShapeTracker, View
from tinyexplore.tensor import Tensor
from tinyexplore.uop import OpGroups

MAX_OTHER_VIEWS = 6  # most views of the same memory


# shape, strides, offset, and mask: start and stop of each axis, None if every element is valid
ViewData = tuple[tuple[int, ...], tuple[int, ...], int, tuple[tuple[int, int], ...] | None]


@dataclass(frozen=True, slots=True, repr=False)
class ShapeStepData(DisplayableRow):
    """A movement, as the panel of shapes draws it."""

    op: str
    """The movement, or the operation that computes the memory."""
    arg: str
    """Its argument, as text."""
    law: str
    """Its effect, as text."""
    formula: str
    """Its effect, as a formula."""
    node: int | None
    """Its node in the trace."""
    shape: tuple[int, ...]
    """The shape after it."""
    views: tuple[ViewData, ...]
    """Shape, strides, offset and mask of each view; the first view accesses memory."""
    before: tuple[str, str]
    """Index in memory before simplification, and the condition under which the element exists ("": always)."""
    after: tuple[str, str]
    """Index and condition after simplification."""


@dataclass(frozen=True, slots=True, repr=False)
class OtherViewData(DisplayableRow):
    """Another view of the same memory, as the panel of shapes draws it."""

    name: str
    """Name of the view."""
    node: int | None
    """Its node in the trace."""
    views: tuple[ViewData, ...]
    """As in `ShapeStepData`."""


@dataclass(frozen=True, slots=True, repr=False)
class ShapeData(DisplayableRow):
    """The memory positions of a node's elements, as the panel of shapes draws them."""

    name: str
    """Name of the memory."""
    size: int
    """Number of its elements."""
    node: int | None
    """The node of the last movement in the trace."""
    steps: tuple[ShapeStepData, ...]
    """The movements, memory first."""
    others: tuple[OtherViewData, ...]
    """Other views of the same memory."""
    moves: tuple[tuple[str, str, str], ...]
    """Name, a valid argument, and effect of each further movement."""


@dataclass(frozen=True, repr=False)
class ShapeView(ShapeGrid):
    """A grid that can be moved, scrolled and displayed."""

    def at(self, *index: int) -> ShapeView:
        """Returns the view with `index` as the first visible element."""
        return replace(self, window=tuple(index))

    # *** movements ***

    def moved(self, op: str, arg: Any) -> ShapeView:
        """Returns the view after one movement: `moved("permute", (1, 0))`, or with its argument as text."""
        value = read_argument(op, arg) if isinstance(arg, str) else arg
        return replace(self, steps=(*self.steps, apply_movement(self.tracker, op, value)), window=())

    def reshape(self, *shape: int) -> ShapeView:
        return self.moved("reshape", shape)

    def permute(self, *order: int) -> ShapeView:
        return self.moved("permute", order)

    def expand(self, *shape: int) -> ShapeView:
        return self.moved("expand", shape)

    def pad(self, *amounts: tuple[int, int]) -> ShapeView:
        """Returns the view with padding (before, after) each axis."""
        return self.moved("pad", amounts)

    def shrink(self, *bounds: tuple[int, int]) -> ShapeView:
        """Returns the range (start, stop) of each axis."""
        return self.moved("shrink", bounds)

    def flip(self, *axes: int) -> ShapeView:
        return self.moved("flip", axes)

    def stride(self, *steps: int) -> ShapeView:
        """Returns every k-th element of each axis, backwards if k is negative."""
        return self.moved("stride", steps)

    def window_of(self, axis: int, size: int, stride: int = 1, dilation: int = 1) -> ShapeView:
        """Returns sliding windows along `axis`."""
        return self.moved("window", (axis, size, stride, dilation))

    def diagonal(self, first: int, second: int) -> ShapeView:
        return self.moved("diagonal", (first, second))

    def back(self) -> ShapeView:
        """Returns the view without its last movement."""
        return self if len(self.steps) == 1 else replace(self, steps=self.steps[:-1], window=())

    # *** display ***

    def as_data(self) -> ShapeData:
        """Returns the data for the panel of shapes. It has no cells: the front end computes them from `views`."""
        return ShapeData(
            self.name,
            self.size,
            max([step.node for step in self.steps if step.node is not None], default=None),
            tuple([_step_data(step) for step in self.steps]),
            tuple([OtherViewData(other.name, other.node, _views_to_data(other.tracker)) for other in self.others]),
            tuple([(op.lower(), suggestion(op, self.shape), law) for op, law in LAWS.items()]),
        )

    def svg(self) -> str:
        """Returns the grids as a picture."""
        return shape_svg(self)

    def __repr__(self) -> str:
        return shape_grid_text(self)

    def _repr_svg_(self) -> str:
        return self.svg()


def shape(what: Any, *others: Any, size: int | None = None, name: str = "") -> ShapeView:
    """Returns a ShapeTracker, View, LazyBuffer or Tensor as grids.

    what: the view; a shape (a tuple) stands for memory in that shape.
    others: further views of the same memory.
    size: the number of positions in memory; by default up to the last position that a view reaches.
    name: the name of the memory.
    """
    steps = steps_of(what)
    beside = tuple(OtherView(f"view {number}", steps_of(other)[-1].tracker) for number, other in enumerate(others, 2))
    reach = max(
        [reach_of(step.tracker) for step in (*steps, *(MovementStep("VIEW", None, other.tracker) for other in beside))]
    )
    return ShapeView(steps, reach if size is None else size, name or _name_of(what), (), beside)


def steps_of(value: Any) -> tuple[MovementStep, ...]:
    """Returns the movements of a LazyBuffer or Tensor; for other views only the view itself."""
    if isinstance(value, Tensor):
        value = value.lazydata
    if isinstance(value, LazyBuffer):
        moves = []
        while value.op in OpGroups.MOVEMENT and value.buffer is None:
            moves.append(value)
            value = value.src[0]
        steps = [MovementStep("BUFFER", None, ShapeTracker.from_shape(_check_sizes(value.shape)))]
        for move in reversed(moves):
            steps.append(apply_movement(steps[-1].tracker, move.op.name, move.arg))
        return tuple(steps)
    if isinstance(value, tuple):
        return (MovementStep("BUFFER", None, ShapeTracker.from_shape(_check_sizes(value))),)
    if isinstance(value, View):
        value = ShapeTracker((value,))
    if not isinstance(value, ShapeTracker):
        raise TypeError(f"explore.shape of a {type(value).__name__}: give a ShapeTracker, View, Tensor or a shape")
    return (MovementStep("BUFFER" if value.contiguous else "VIEW", None, value),)


def _check_sizes(sizes: Sequence[Any]) -> tuple[int, ...]:
    if not all(type(size) is int for size in sizes):
        raise ShapeError(f"the shape {tuple(sizes)} has sizes that change from call to call and cannot be drawn")
    return tuple(sizes)


def _name_of(value: Any) -> str:
    return "buffer" if isinstance(value, Tensor | LazyBuffer) else "memory"


def _views_to_data(tracker: ShapeTracker) -> tuple[ViewData, ...]:
    return tuple([(view.shape, view.strides, view.offset, view.mask) for view in tracker.views])


def _step_data(step: MovementStep) -> ShapeStepData:
    before, after = index_texts(step.tracker)
    return ShapeStepData(
        step.op,
        "" if step.arg is None else ", ".join(map(str, step.arg)),
        step.law,
        step.formula,
        step.node,
        step.tracker.shape,
        _views_to_data(step.tracker),
        (before.place, before.valid),
        (after.place, after.valid),
    )


__all__ = ["MAX_OTHER_VIEWS", "OtherView", "ShapeData", "ShapeView", "shape", "steps_of"]

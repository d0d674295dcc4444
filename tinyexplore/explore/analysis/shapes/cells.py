"""The elements of the drawable part of a view: logical index and position in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.shape import ShapeTracker

MAX_CELLS = 256  # most drawn cells, of the shape and of memory
MAX_COLUMNS = 16
MAX_ROWS = 16

Box = tuple[tuple[int, int], ...]  # start and stop of each axis


@dataclass(frozen=True, slots=True, repr=False)
class Cell(DisplayableRow):
    """An element of a view.

    index: its logical index.
    offset: its position in memory, None in the padding.
    """

    index: tuple[int, ...]
    offset: int | None

    @property
    def valid(self) -> bool:
        """Whether the element exists; a padding element reads no memory."""
        return self.offset is not None


def reach_of(tracker: ShapeTracker) -> int:
    """Returns the number of memory elements that a view needs: the last position that it reaches, plus one."""
    view = tracker.views[0]
    if 0 in view.shape or view.has_no_valid_element:
        return 0
    mask = view.mask or tuple((0, size) for size in view.shape)
    ends = [(stop - 1 if stride > 0 else start) * stride for (start, stop), stride in zip(mask, view.strides)]
    return view.offset + sum(ends) + 1


def cells_of(tracker: ShapeTracker, box: Box) -> Iterator[Cell]:
    """Yields the elements in a box of the logical index, in row-major order."""
    for index in product(*(range(start, stop) for start, stop in box)):
        yield Cell(index, tracker.index(index))


def shown_box(shape: Sequence[int], window: Sequence[int] = ()) -> Box:
    """Returns the part of a tensor to draw, from position `window` on: columns, rows, and as many planes as fit."""
    first = [*window, *[0] * (len(shape) - len(window))][: len(shape)]
    left = MAX_CELLS
    box: list[tuple[int, int]] = []
    for axis in reversed(range(len(shape))):
        depth = len(shape) - 1 - axis
        most_cells = MAX_COLUMNS if depth == 0 else MAX_ROWS if depth == 1 else left
        count = max(min(shape[axis], most_cells, left), 1 if shape[axis] else 0)
        start = max(0, min(first[axis], shape[axis] - count))
        box.append((start, start + count))
        left //= max(count, 1)
    return tuple(reversed(box))


def memory_width(trackers: Sequence[ShapeTracker]) -> int:
    """Returns the number of elements in a drawn row of memory: the last axis of the first contiguous view with rows.

    If that is too long, or there is no such view, it is MAX_ROWS.
    """
    plain = [tracker.shape for tracker in trackers if tracker.contiguous]
    sizes = [size for shape in plain if sum(size > 1 for size in shape) > 1 for size in shape[-1:]]
    return sizes[0] if sizes and 1 < sizes[0] <= MAX_COLUMNS else MAX_ROWS


def memory_window(size: int, width: int, first: int) -> tuple[int, int]:
    """Returns the drawn range of `size` memory positions, in rows of `width`, from the row of `first` on."""
    most_cells = MAX_CELLS // width * width
    rows = -(-size // width)
    start = max(0, min(first // width, rows - most_cells // width)) * width
    return start, min(size, start + most_cells)


__all__ = [
    "MAX_CELLS",
    "Box",
    "Cell",
    "cells_of",
    "memory_width",
    "memory_window",
    "reach_of",
    "shown_box",
]

"""The memory offsets of a moved tensor's elements, as index arithmetic: expressions for tests of laws."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.shape import ShapeTracker, View
from tinyexplore.uop import UOp, index_const


def to_indexed(tracker: ShapeTracker, idxs: Sequence[UOp]) -> tuple[UOp, UOp | None]:
    """The memory offset of an element and its validity (None: always valid), from one index UOp per axis."""
    top, *below = reversed(tracker.views)
    place, conditions = _place(top, idxs)
    for view in below:
        place, more = _place(view, _coordinates(place, view.shape))
        conditions += more
    valid = None
    for condition in dict.fromkeys(conditions):
        valid = condition if valid is None else valid & condition
    return place, valid


def _coordinates(position: UOp, sizes: Sequence[int]) -> list[UOp]:
    """Split a row-major position into one index per axis. The first axis needs no remainder."""
    coords = []
    inner = 1
    for axis in range(len(sizes) - 1, -1, -1):
        coordinate = position if inner == 1 else position // inner
        coords.append(coordinate if axis == 0 else coordinate % sizes[axis])
        inner *= sizes[axis]
    return coords[::-1]


def _place(view: View, idxs: Sequence[UOp]) -> tuple[UOp, list[UOp]]:
    """offset + Σ idx * stride, and the conditions of the mask under which it is valid."""
    place = index_const(view.offset)
    conditions: list[UOp] = []
    for size, stride, (start, stop), idx in zip(
        view.shape, view.strides, view.mask or [(0, size) for size in view.shape], idxs
    ):
        if start >= stop:
            return index_const(0), [UOp.const(dtypes.bool, False)]
        if start > 0:
            conditions.append(idx >= start)
        if stop < size:
            conditions.append(idx < stop)
        if stride != 0:
            place = idx * stride + place
    return place, conditions

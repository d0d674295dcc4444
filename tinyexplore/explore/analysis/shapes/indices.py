"""The index expression of a ShapeTracker: the memory position of element (i0, i1, …), and its validity condition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from tinyexplore.dtype import dtypes
from tinyexplore.explore.analysis.shapes.moves import axes_of, printer_of
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.shape import ShapeTracker, View
from tinyexplore.trace import Recorder, recording
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.rewrite import graph_rewrite


@dataclass(frozen=True, slots=True, repr=False)
class IndexText(DisplayableRow):
    """The index arithmetic of a view, as text.

    place: the position of an element in memory.
    valid: the condition under which the element is not padding, "" for always.
    """

    place: str
    valid: str = ""

    def __str__(self) -> str:
        return f"{self.place}  if {self.valid}" if self.valid else self.place


def index_uops(tracker: ShapeTracker) -> tuple[tuple[UOp, ...], UOp, UOp | None]:
    """Returns the axis counters, the position and the validity condition (None: always valid), unsimplified."""
    axes = axes_of(tracker.shape)
    coords: tuple[UOp, ...] = axes
    index: UOp = index_const(0)
    conditions: list[UOp] = []
    for number, view in enumerate(reversed(tracker.views)):
        if number:
            coords = _compute_coordinates(index, view.shape)
        index = _compute_offset(view, coords)
        conditions += _list_conditions(view, coords)
    valid = reduce(lambda a, b: a.alu(Ops.AND, b), conditions) if conditions else None
    return axes, index, valid


def index_texts(tracker: ShapeTracker) -> tuple[IndexText, IndexText]:
    """Returns the index expression according to the views, and after the compiler's rules."""
    axes, index, valid = index_uops(tracker)
    with recording(Recorder()):  # so that no other recorder gets its events
        after = graph_rewrite(index, SIMPLIFY)
        valid_after = None if valid is None else graph_rewrite(valid, SIMPLIFY)
    printer = printer_of(axes)

    def index_text(index: UOp, valid: UOp | None) -> IndexText:
        always = valid is None or (valid.op is Ops.CONST and bool(valid.arg))
        return IndexText(printer.text(index), "" if always or valid is None else printer.text(valid))

    return index_text(index, valid), index_text(after, valid_after)


def _compute_offset(view: View, coords: tuple[UOp, ...]) -> UOp:
    """Returns offset + Σ i * stride, without zero terms."""
    terms = [
        coord if stride == 1 else coord.alu(Ops.MUL, index_const(stride))
        for coord, stride in zip(coords, view.strides)
        if stride
    ]
    if view.offset or not terms:
        terms.append(index_const(view.offset))
    return reduce(lambda a, b: a.alu(Ops.ADD, b), terms)


def _list_conditions(view: View, coords: tuple[UOp, ...]) -> list[UOp]:
    conditions: list[UOp] = []
    for coord, size, (start, stop) in zip(coords, view.shape, view.mask or ()):
        if start >= stop:
            return [UOp.const(dtypes.bool, False)]
        if start > 0:
            conditions.append(index_const(start - 1).alu(Ops.CMPLT, coord))
        if stop < size:
            conditions.append(coord.alu(Ops.CMPLT, index_const(stop)))
    return conditions


def _compute_coordinates(index: UOp, shape: tuple[int, ...]) -> tuple[UOp, ...]:
    """Returns the coordinates of a row-major position in `shape`."""
    coords = []
    below = 1
    for axis in reversed(range(len(shape))):
        coord = index if below == 1 else index.alu(Ops.IDIV, index_const(below))
        if axis:
            coord = coord.alu(Ops.MOD, index_const(shape[axis]))
        coords.append(coord)
        below *= shape[axis]
    return tuple(reversed(coords))


__all__ = ["IndexText", "index_texts", "index_uops"]

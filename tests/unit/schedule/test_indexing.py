"""Movement ops as index arithmetic agree with the ShapeTracker's definition, element by element."""

from __future__ import annotations

from hypothesis import given, settings

from tests.graphs import graphs
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.indexing import flat_index, source_index
from tinyexplore.uop import OpGroups, Ops, UOp, index_const


def value(expr: UOp) -> int:
    """The value of an index of constants (floor division, as the padded reads that matter are not negative)."""
    if expr.op is Ops.CONST:
        return int(expr.arg)
    a, b = (value(src) for src in expr.src)
    match expr.op:
        case Ops.ADD:
            return a + b
        case Ops.MUL:
            return a * b
        case Ops.IDIV:
            return a // b
        case Ops.MOD:
            return a % b
        case Ops.CMPLT:
            return int(a < b)
    raise AssertionError(expr)


def places(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    result: list[tuple[int, ...]] = [()]
    for size in shape:
        result = [(*head, i) for head in result for i in range(size)]
    return result[:: max(1, len(result) // 50)]


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_chain_and_shapetracker_read_the_same_element(node: LazyBuffer) -> None:
    for place in places(node.shape):
        idxs = tuple(index_const(i) for i in place)
        here, holds = node, True
        while here.op in OpGroups.MOVEMENT and holds:
            idxs, conditions = source_index(here, idxs)
            holds = all(value(condition) for condition in conditions)
            here = here.src[0]
        expected = node.st.index(place)
        assert (value(flat_index(here.shape, idxs)) if holds else None) == expected

"""Index arithmetic of any shape has the same value at every point after simplification by the whole table."""

from __future__ import annotations

from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws.meaning import type_error, written
from tests.support.numpy_uops import evaluate_in_numpy
from tests.support.places import to_indexed
from tinyexplore.dtype import dtypes
from tinyexplore.shape import ShapeTracker
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, graph_rewrite, index_const
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.bounds import bounds

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=3)
CONSTANTS = st.one_of(st.integers(-8, 13), st.sampled_from([16, 24, 36, 100, -32]))
DIVISORS = st.sampled_from([1, 2, 3, 4, 6, 8, 12, 24])
EXTREME = st.sampled_from([-(1 << 63), (1 << 63) - 1, 1 << 62, -(1 << 62) - 1, 1 << 40])


def loops(sizes: list[int]) -> list[UOp]:
    return [UOp.range(size, Axis(number, AxisKind.GLOBAL)) for number, size in enumerate(sizes)]


def points(ranges: list[UOp]) -> dict[UOp, np.ndarray]:
    """Every point of the iteration space."""
    grid = np.indices([loop.size for loop in ranges])
    return {loop: grid[number].ravel().astype(np.int64) for number, loop in enumerate(ranges)}


def indices(ranges: list[UOp], constants: st.SearchStrategy[int]) -> st.SearchStrategy[UOp]:
    """Expressions over loop variables: sums, multiples, divisions, remainders, choices and extremes."""
    leaves = st.one_of(st.sampled_from(ranges), constants.map(index_const))

    def larger(inner: st.SearchStrategy[UOp]) -> st.SearchStrategy[UOp]:
        conditions = st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] < pair[1]),
            st.tuples(inner, constants).map(lambda pair: pair[0] < pair[1]),
            st.tuples(constants, inner).map(lambda pair: index_const(pair[0]) <= pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0].ne(pair[1])),
        )
        both = st.tuples(conditions, conditions, st.booleans()).map(lambda t: t[0] & t[1] if t[2] else t[0] | t[1])
        return st.one_of(
            st.tuples(inner, inner).map(lambda pair: pair[0] + pair[1]),
            st.tuples(inner, constants).map(lambda pair: pair[0] * pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0] - pair[1]),
            st.tuples(inner, DIVISORS).map(lambda pair: pair[0] // pair[1]),
            st.tuples(inner, DIVISORS).map(lambda pair: pair[0] % pair[1]),
            st.tuples(inner, inner).map(lambda pair: pair[0].maximum(pair[1])),
            st.tuples(inner, inner).map(lambda pair: pair[0].minimum(pair[1])),
            st.tuples(st.one_of(conditions, both), inner, inner).map(lambda t: t[0].where(t[1], t[2])),
        )

    return st.recursive(leaves, larger, max_leaves=12)


@st.composite
def expressions(draw: st.DrawFn, constants: st.SearchStrategy[int]) -> tuple[list[UOp], UOp]:
    ranges = loops(draw(SIZES))
    return ranges, draw(indices(ranges, constants))


def assert_same_everywhere(before: UOp, after: UOp, ranges: list[UOp]) -> None:
    shown = f"{written(before)}  →  {written(after)}"
    assert type_error(after) is None, f"{shown}: {type_error(after)}"
    at = points(ranges)
    count = prod(loop.size for loop in ranges)
    expected = np.broadcast_to(evaluate_in_numpy(before, at), count)
    found = np.broadcast_to(evaluate_in_numpy(after, at), count)
    np.testing.assert_array_equal(found, expected, err_msg=shown)


def assert_within_bounds(node: UOp, ranges: list[UOp]) -> None:
    low, high = bounds(node)
    values = evaluate_in_numpy(node, points(ranges))
    assert low <= values.min() and values.max() <= high, f"{written(node)} leaves {low}..{high}"


@given(expressions(CONSTANTS))
@settings(max_examples=400, deadline=None)
def test_simplified_index_arithmetic_has_the_same_value(case: tuple[list[UOp], UOp]) -> None:
    ranges, expr = case
    assert_same_everywhere(expr, graph_rewrite(expr, SIMPLIFY), ranges)


@given(expressions(st.one_of(CONSTANTS, EXTREME)))
@settings(max_examples=300, deadline=None)
def test_simplified_index_arithmetic_has_the_same_value_when_it_wraps(case: tuple[list[UOp], UOp]) -> None:
    ranges, expr = case
    assert_same_everywhere(expr, graph_rewrite(expr, SIMPLIFY), ranges)


@given(expressions(st.one_of(CONSTANTS, EXTREME)))
@settings(max_examples=150, deadline=None)
def test_bounds_hold_for_all_values(case: tuple[list[UOp], UOp]) -> None:
    ranges, expr = case
    for node in expr.toposort():
        if node.dtype is dtypes.index:
            assert_within_bounds(node, ranges)


@given(expressions(CONSTANTS))
@settings(max_examples=150, deadline=None)
def test_simplifying_again_changes_nothing(case: tuple[list[UOp], UOp]) -> None:
    once = graph_rewrite(case[1], SIMPLIFY)
    assert graph_rewrite(once, SIMPLIFY) is once, written(once)


@st.composite
def reshaped(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes of the same size."""
    size = draw(st.sampled_from([12, 24, 36, 48, 60]))
    shapes = []
    for _ in range(2):
        left, shape = size, []
        while left > 1:
            shape.append(draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0])))
            left //= shape[-1]
        shapes.append(tuple(shape))
    return shapes[0], shapes[1]


@given(reshaped(), st.data())
@settings(max_examples=150, deadline=None)
def test_offsets_of_moved_tensors_simplify_to_the_same_offsets(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    first, second = shapes
    order = data.draw(st.permutations(range(len(first))))
    flipped = data.draw(st.sets(st.integers(0, len(second) - 1)))
    padding = tuple((data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))) for _ in second)
    tracker = ShapeTracker.from_shape(first).permute(order).reshape(second).flip(sorted(flipped)).pad(padding)
    tracker = tracker.reshape((tracker.size,))
    ranges = loops(list(tracker.shape))
    place, valid = to_indexed(tracker, ranges)
    inside = UOp.const(dtypes.bool, True) if valid is None else valid
    whole = inside.where(place, -1)
    assert whole.op is Ops.WHERE
    assert_same_everywhere(whole, graph_rewrite(whole, SIMPLIFY), ranges)

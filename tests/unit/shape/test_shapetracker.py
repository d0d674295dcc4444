"""ShapeTracker: random chains of movements agree with NumPy on an array of offsets."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.places import to_indexed
from tinyexplore.shape import ShapeTracker, View
from tinyexplore.uop import Axis, AxisKind, Ops, UOp

MAX_RANK = 5
MAX_SIZE = 400


@st.composite
def reshapes(draw, size):
    """A shape of `size` elements."""
    if size == 0:
        shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
        return (*shape, 0) if 0 not in shape else tuple(shape)
    shape = []
    while size > 1 and len(shape) < MAX_RANK - 1:
        divisors = [n for n in range(2, size + 1) if size % n == 0]
        shape.append(draw(st.sampled_from(divisors)))
        size //= shape[-1]
    if size > 1:
        shape.append(size)
    shape = list(draw(st.permutations(shape)))
    if len(shape) < MAX_RANK and draw(st.booleans()):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


@st.composite
def movements(draw, shape):
    """A movement that fits `shape`: the name of a method of ShapeTracker and its arguments."""
    rank = len(shape)
    names = ["reshape"]
    if rank:
        names += ["permute", "shrink", "flip", "reshape"]
        if prod(max(size, 1) for size in shape) < MAX_SIZE:
            names.append("pad")
    if 1 in shape:
        names.append("expand")
    if rank and rank < MAX_RANK and max(shape) > 1:
        names.append("window")
    pairs = [(a, b) for b in range(rank) for a in range(b) if shape[a] == shape[b]]
    if pairs:
        names.append("diagonal")
    name = draw(st.sampled_from(names))
    if name == "reshape":
        return name, (draw(reshapes(prod(shape))),)
    if name == "permute":
        return name, (tuple(draw(st.permutations(range(rank)))),)
    if name == "flip":
        return name, (tuple(sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1)))),)
    if name == "pad":
        return name, (tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in shape),)
    if name == "shrink":
        bounds = []
        for size in shape:
            start = draw(st.integers(0, min(2, size)))
            stop = draw(st.integers(max(start, size - 2), size))
            bounds.append((start, stop))
        return name, (tuple(bounds),)
    if name == "expand":
        return name, (tuple(draw(st.sampled_from((1, 2, 3, 0))) if size == 1 else size for size in shape),)
    if name == "diagonal":
        return name, draw(st.sampled_from(pairs))
    axis = draw(st.sampled_from([axis for axis, size in enumerate(shape) if size]))
    size = draw(st.integers(1, min(3, shape[axis])))
    dilation = draw(st.integers(1, max(1, (shape[axis] - 1) // max(size - 1, 1))))
    return name, (axis, size, draw(st.integers(1, 3)), dilation)


def in_numpy(places, name, args):
    """The movement done to an array; padding is -1."""
    if name == "reshape":
        return places.reshape(args[0])
    if name == "permute":
        return places.transpose(args[0])
    if name == "flip":
        return np.flip(places, args[0])
    if name == "pad":
        return np.pad(places, args[0], constant_values=-1)
    if name == "shrink":
        return places[tuple(slice(start, stop) for start, stop in args[0])]
    if name == "expand":
        return np.broadcast_to(places, args[0])
    if name == "diagonal":
        first, second = args
        return np.moveaxis(np.diagonal(places, axis1=first, axis2=second), -1, first)
    axis, size, stride, dilation = args
    reach = dilation * (size - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(places, reach, axis=axis)
    steps = [slice(None)] * windows.ndim
    steps[axis], steps[-1] = slice(None, None, stride), slice(None, None, dilation)
    return windows[tuple(steps)]


@st.composite
def chains(draw):
    """(start shape, movements, the places that NumPy finds)"""
    start = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 4, 6)), max_size=3)))
    places = np.arange(prod(start)).reshape(start)
    steps = []
    for _ in range(draw(st.integers(1, 9))):
        name, args = draw(movements(places.shape))
        moved = in_numpy(places, name, args)
        if moved.size > 4 * MAX_SIZE:
            continue
        steps.append((name, args))
        places = moved
    return start, steps, places


def apply(start, steps):
    tracker = ShapeTracker.from_shape(start)
    for name, args in steps:
        tracker = getattr(tracker, name)(*args)
    return tracker


def places_of(tracker):
    found = [tracker.index(coords) for coords in np.ndindex(*tracker.shape)]
    return np.array([-1 if place is None else place for place in found], dtype=np.int64).reshape(tracker.shape)


@given(chains())
@settings(max_examples=600, deadline=None)
def test_every_element_has_numpys_offset(chain):
    start, steps, expected = chain
    tracker = apply(start, steps)
    assert tracker.shape == expected.shape
    np.testing.assert_array_equal(places_of(tracker), expected)


@given(chains())
@settings(max_examples=400, deadline=None)
def test_simplify_preserves_the_offsets(chain):
    start, steps, expected = chain
    tracker = apply(start, steps)
    simple = tracker.simplify()
    assert len(simple.views) <= len(tracker.views)
    np.testing.assert_array_equal(places_of(simple), expected)
    assert simple.simplify() == simple


@given(chains())
@settings(max_examples=200, deadline=None)
def test_contiguous_means_the_identity(chain):
    start, steps, expected = chain
    tracker = apply(start, steps)
    if tracker.contiguous:
        np.testing.assert_array_equal(expected.ravel(), np.arange(expected.size))


@given(chains())
@settings(max_examples=200, deadline=None)
def test_a_real_stride_is_the_step_between_valid_neighbors(chain):
    start, steps, expected = chain
    for axis, stride in enumerate(apply(start, steps).real_strides):
        if stride is None:
            continue
        walked = np.moveaxis(expected, axis, 0)
        steps_taken = walked[1:] - walked[:-1]
        valid = np.minimum(walked[1:], walked[:-1]) >= 0
        assert (steps_taken[valid] == stride).all()


def evaluate(node, values, done):
    """Index arithmetic on arrays; division truncates towards zero."""
    if node in done:
        return done[node]
    if node.op is Ops.CONST:
        found = np.array(node.arg)
    elif node.op is Ops.RANGE:
        found = values[node.arg.id]
    else:
        a, b = (evaluate(src, values, done) for src in node.src)
        match node.op:
            case Ops.ADD:
                found = a + b
            case Ops.MUL:
                found = a * b
            case Ops.IDIV:
                found = np.trunc(a / b).astype(np.int64)
            case Ops.MOD:
                found = np.fmod(a, b)
            case Ops.CMPLT:
                found = a < b
            case Ops.CMPLE:
                found = a <= b
            case Ops.AND:
                found = a & b
            case _:
                raise AssertionError(f"{node.op} in index arithmetic")
    done[node] = found
    return found


@given(chains())
@settings(max_examples=400, deadline=None)
def test_to_indexed_computes_the_offsets(chain):
    start, steps, expected = chain
    tracker = apply(start, steps)
    ranges = [UOp.range(size, Axis(axis, AxisKind.GLOBAL)) for axis, size in enumerate(tracker.shape)]
    place, valid = to_indexed(tracker, ranges)
    values = np.indices(expected.shape)
    done = {}
    found = np.broadcast_to(evaluate(place, values, done), expected.shape)
    if valid is not None:
        found = np.where(evaluate(valid, values, done), found, -1)
    np.testing.assert_array_equal(found, expected)


def test_movements_that_fit_one_view_make_one_view():
    base = ShapeTracker.from_shape((4, 6))
    cases = [
        base.reshape((2, 2, 6)).reshape((4, 2, 3)),
        base.permute((1, 0)).reshape((3, 2, 4)).reshape((6, 4)),
        base.permute((1, 0)).reshape((6, 2, 2)),
        base.pad(((1, 1), (0, 0))).reshape((36,)).reshape((6, 2, 3)),
        base.pad(((2, 2), (0, 0))).reshape((2, 4, 6)).reshape((8, 6)),
        base.flip((0,)).reshape((2, 2, 6)),
        base.flip((0, 1)).reshape((24,)).flip((0,)),
        base.reshape((24,)).window(0, 5, 2, 3),
        base.shrink(((1, 3), (0, 6))).reshape((12,)),
        base.reshape((4, 1, 6)).expand((4, 5, 6)).reshape((2, 2, 5, 6)),
        base.reshape((1, 24)).expand((3, 24)).reshape((3, 4, 6)),
    ]
    assert [len(tracker.views) for tracker in cases] == [1] * len(cases)
    assert cases[6].contiguous


def test_a_view_is_merged_once_it_fits_one_view():
    """The reshape of a transpose needs a second View; undone, or seen through rows of it, it does not."""
    turned = ShapeTracker.from_shape((4, 6)).permute((1, 0)).reshape((24,))
    assert len(turned.views) == 2
    assert turned.reshape((6, 4)).simplify() == ShapeTracker.from_shape((4, 6)).permute((1, 0))
    assert len(turned.reshape((6, 4)).permute((1, 0)).reshape((4, 2, 3)).views) == 1
    assert turned.shrink(((4, 8),)).simplify().views == (View.create((4,), (6,), 1),)


def test_repr_shows_the_views():
    tracker = ShapeTracker.from_shape((4, 6)).permute((1, 0)).pad(((0, 2), (0, 0)))
    assert repr(tracker) == "ShapeTracker(View((8, 4), strides=(1, 6), mask=0:6×0:4))"
    assert repr(ShapeTracker.from_shape(())) == "ShapeTracker(View(()))"


def test_one_element_of_padding_is_a_scalar_without_an_offset():
    tracker = ShapeTracker.from_shape((1,)).pad(((1, 0),)).shrink(((0, 1),)).reshape(())
    assert tracker.index(()) is None
    place, valid = to_indexed(tracker, [])
    assert (place.arg, valid.arg) == (0, False)


def test_a_tracker_needs_a_view():
    with pytest.raises(ValueError, match="at least one View"):
        ShapeTracker(())


def test_a_hundred_thousand_movements_share_their_views():
    tracker = ShapeTracker.from_shape((4, 6))
    for _ in range(25_000):
        tracker = tracker.permute((1, 0)).reshape((4, 6)).pad(((1, 1), (0, 0))).shrink(((1, 5), (0, 6)))
    assert len(tracker.views) == 25_001

"""A scatter is one kernel: a copy of the destination, then one step for each value, in order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import from_numpy, numbers, to_numpy
from tests.reference import evaluate
from tests.support.kernels import MACHINE
from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_heuristics, apply_opt
from tinyexplore.kernel.transforms.axes import with_split_axes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import Context

HOW = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN, None)


def rows_scattered(width: int, outer: int = 1, count: int = 30) -> LazyBuffer:
    places = np.random.default_rng(count).integers(-1, 7, (count,)).astype(np.int32)
    index = from_numpy(places).reshape((1, count, 1)).expand((outer, count, width))
    return from_numpy(numbers(outer, 6, width)).scatter(Ops.ADD, 1, index, from_numpy(numbers(outer, count, width)))


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_scatters_agree_with_numpy(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    axis = data.draw(st.integers(0, rank - 1))
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 8, 16, 20]), min_size=rank, max_size=rank)))
    length = data.draw(st.sampled_from([0, 1, 2, 5, 9]))
    given_shape = (*shape[:axis], length, *shape[axis + 1 :])
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    kind = data.draw(st.sampled_from([np.float32, np.float64, np.int8, np.int64, np.bool_, np.float16]))
    x, values = (random.integers(-2, 3, size).astype(kind) for size in (shape, given_shape))
    shared = data.draw(st.booleans())  # one index for all, or each its own; some are out of range
    named = tuple(size if at == axis or not shared else 1 for at, size in enumerate(given_shape))
    places = random.integers(-2, shape[axis] + 2, named).astype(data.draw(st.sampled_from([np.int32, np.int64])))
    device = data.draw(st.sampled_from(["LLVM", "PYTHON"]))
    target = from_numpy(x, device)
    if data.draw(st.booleans()):
        target = target.alu(Ops.ADD, target)
    if data.draw(st.booleans()):
        target = LazyBuffer.const(0, target.dtype, device, shape)
    index = from_numpy(places, device).expand(given_shape)
    moved = from_numpy(values, device).flip((axis,))
    node = target.scatter(data.draw(st.sampled_from(HOW)), axis, index, moved)
    if data.draw(st.booleans()):
        node = node.alu(Ops.MAX, target.alu(Ops.NEG) if kind is not np.bool_ else target)
    with Context(SPEC=1, NOOPT=data.draw(st.integers(0, 1))), np.errstate(all="ignore"):
        np.testing.assert_array_equal(to_numpy(node), evaluate(node))


def _first_rows(x: LazyBuffer) -> LazyBuffer:
    """The first row of all, for each."""
    one = x.shrink((*((0, 1) for _ in x.shape[:-1]), (0, x.shape[-1])))
    return one.expand(x.shape)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_fetch_and_add_runs_in_order(data: st.DataObject) -> None:
    outer = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 8, 16]), max_size=2)))
    bins, length = data.draw(st.integers(1, 20)), data.draw(st.sampled_from([1, 2, 5, 40]))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    kind = data.draw(st.sampled_from([np.int32, np.int64, np.uint8]))
    device = data.draw(st.sampled_from(["LLVM", "PYTHON"]))
    counters = from_numpy(random.integers(0, 100, (*outer, bins)).astype(kind), device)
    if data.draw(st.booleans()):
        counters = data.draw(st.sampled_from([counters.alu(Ops.ADD, counters), _first_rows(counters)]))
    index = from_numpy(random.integers(-1, bins + 1, (*outer, length)).astype(np.int32), device)
    node = counters.fetch_add(index)
    if data.draw(st.booleans()):
        node = node.alu(Ops.ADD, node.reduce(Ops.ADD, (len(outer),)).expand(node.shape))
    with Context(SPEC=1, NOOPT=data.draw(st.integers(0, 1))):
        np.testing.assert_array_equal(to_numpy(node), evaluate(node))


def test_threads_divide_the_rows_of_a_fetch_and_add() -> None:
    index = from_numpy(np.zeros((64, 4096), np.int32))
    *_, item = create_schedule([LazyBuffer.const(0, dtypes.int32, "LLVM", (64, 9)).fetch_add(index)])
    kernel = apply_heuristics(Kernel.of(item.ast, MACHINE))
    kinds = {axis.arg.id: axis.arg.kind for axis in kernel.axes}
    assert kinds[0] is AxisKind.THREAD and kinds[1] is AxisKind.SCAN
    with pytest.raises(OptError, match="steps of a scatter"):
        apply_opt(kernel, Opt(OptOps.VECTOR, 1, 16))


def test_scattered_indices_out_of_range_are_ignored() -> None:
    places = from_numpy(np.array([3, -1, 0, 7, 2], np.int32))
    node = LazyBuffer.const(0, dtypes.float32, "LLVM", (5,)).contiguous().written_at(places, from_numpy(numbers(5)))
    found = numbers(5)
    np.testing.assert_array_equal(to_numpy(node), [found[2], 0, found[4], found[0], 0])


def test_one_kernel_copies_and_then_scatters_in_order() -> None:
    (item,) = create_schedule([rows_scattered(32, outer=3)])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    kinds = [(axis.arg.kind, axis.size) for axis in kernel.axes]
    assert kinds == [(AxisKind.GLOBAL, 3), (AxisKind.SCAN, 30), (AxisKind.GLOBAL, 32), (AxisKind.ROW, 6 * 32)]
    assert [axis.arg.kind for axis in apply_heuristics(kernel).axes].count(AxisKind.VECTOR) == 2


def test_no_step_is_repeated_or_precedes_the_copy() -> None:
    (item,) = create_schedule([rows_scattered(20, outer=6)])
    kernel = Kernel.of(item.ast, MACHINE)
    refused = {
        Opt(OptOps.VECTOR, 2, 16): "size 20 is not a multiple",
        Opt(OptOps.UPCAST, 0, 4): "size 6 is not a multiple",
        Opt(OptOps.SWAP, 0, 2): "steps of a scatter must",
        Opt(OptOps.UPCAST, 1, 2): "the axis is scan",
        Opt(OptOps.VECTOR, 0, 2): "lanes would need separate buffers",
    }
    for opt, why in refused.items():
        with pytest.raises(OptError, match=why):
            apply_opt(kernel, opt)
    for opt in (Opt(OptOps.VECTOR, 2, 4), Opt(OptOps.UPCAST, 0, 3), Opt(OptOps.THREAD, 0), Opt(OptOps.VECTOR, 3, 16)):
        kernel = apply_opt(kernel, opt)
    (item,) = create_schedule([rows_scattered(16)])
    with pytest.raises(OptError, match="each thread would copy"):
        apply_opt(Kernel.of(item.ast, MACHINE), Opt(OptOps.THREAD, 1))


def test_repeated_indices_read_earlier_writes() -> None:
    """Nothing that the steps read depends on the step but what they themselves write."""
    nowhere = LazyBuffer.const(2, dtypes.int32, "LLVM", (1000,))
    ones = LazyBuffer.const(1.0, dtypes.float32, "LLVM", (1000,))
    zeros = from_numpy(np.zeros(5, np.float32))
    assert to_numpy(zeros.scatter(Ops.ADD, 0, nowhere, ones)).tolist() == [0, 0, 1000, 0, 0]
    assert to_numpy(zeros.scatter(None, 0, nowhere, ones)).tolist() == [0, 0, 1, 0, 0]
    counted = LazyBuffer.iota(1000, dtypes.float32, "LLVM")
    assert to_numpy(zeros.scatter(None, 0, nowhere, counted)).tolist() == [0, 0, 999, 0, 0]


def test_the_copy_stays_outside_where_other_axes_are_split() -> None:
    """The padding divides the outer axis into 9 by 6 rows, and both stand outside the steps."""
    padded = from_numpy(numbers(6, 3, 4)).pad(((0, 0), (3, 3), (0, 0))).reshape((54, 4))
    values = padded.alu(Ops.MAX, padded.alu(Ops.NEG)).alu(Ops.ADD, padded)
    index = from_numpy(np.array([1, 0, 1, 1], np.int32)).reshape((1, 4)).expand((54, 4))
    node = from_numpy(numbers(54, 2)).scatter(Ops.ADD, 1, index, values)
    np.testing.assert_allclose(to_numpy(node), evaluate(node), rtol=1e-6)
    (item,) = create_schedule([from_numpy(numbers(54, 2)).scatter(Ops.ADD, 1, index, values)])
    kernel = with_split_axes(Kernel.of(item.ast, Device["LLVM"].target))
    kinds = [axis.arg.kind for axis in kernel.output_axes]
    assert kinds == [AxisKind.GLOBAL, AxisKind.GLOBAL, AxisKind.SCAN]


def test_shapes_that_do_not_fit_raise_an_error() -> None:
    x, index = from_numpy(numbers(4, 3)), from_numpy(np.zeros((2, 3), np.int32))
    with pytest.raises(ShapeError, match=r"scatter \(2, 4\) into \(4, 3\) along axis 0"):
        x.scatter(Ops.ADD, 0, index, from_numpy(numbers(2, 4)))
    with pytest.raises(TypeError, match="scatter float32 into float32 by float32"):
        x.scatter(Ops.ADD, 0, from_numpy(numbers(2, 3)), from_numpy(numbers(2, 3)))

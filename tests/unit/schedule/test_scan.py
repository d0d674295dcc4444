"""A scan is one sequential loop of linear cost, for any operations before and after it."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.graphs import from_numpy, numbers, to_numpy
from tests.reference import buffer_array, evaluate
from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import compile_optimized, create_schedule, target_of
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_opt
from tinyexplore.kernel.transforms.axes import with_split_axes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, splitting
from tinyexplore.schedule.splitting import split_reductions
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import Context

MACHINE = Target("TEST", "any", "any", "", 64, 32, 2, 32768, 1 << 20, frozenset(), ())
SUMMED = (np.float32, np.float16, np.int64)
EXTREMES = (Ops.ADD, Ops.MAX, Ops.MIN)


def test_the_loop_of_a_scan_is_the_innermost_and_takes_no_opt_but_lanes() -> None:
    (item,) = create_schedule([from_numpy(numbers(8, 40)).scan(Ops.ADD, 0)])
    kernel = Kernel.of(item.ast, MACHINE)
    assert [(axis.arg.kind, axis.size) for axis in kernel.axes] == [(AxisKind.GLOBAL, 40), (AxisKind.SCAN, 8)]
    with pytest.raises(OptError, match="the axis is scan"):
        apply_opt(kernel, Opt(OptOps.UPCAST, 1, 2))
    with pytest.raises(OptError, match="loop of a scan"):
        apply_opt(kernel, Opt(OptOps.LOCAL, 0, 4))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lanes_along_a_scan_change_no_result(data: st.DataObject) -> None:
    """Whole numbers, so that the order of additions does not matter; sizes that lanes do not divide, special values."""
    shape = data.draw(st.integers(1, 3)), data.draw(st.integers(2, 70))
    lanes = data.draw(st.sampled_from([n for n in (2, 4, 8, 16) if n <= shape[1]]))
    op, kinds = data.draw(st.sampled_from([(Ops.MUL, (np.int32, np.uint8)), *[(op, SUMMED) for op in EXTREMES]]))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 4, shape)
    values = values.astype(data.draw(st.sampled_from(kinds)))
    if values.dtype.kind == "f":
        row, column = data.draw(st.integers(0, shape[0] - 1)), data.draw(st.integers(0, shape[1] - 1))
        values[row, column] = data.draw(st.sampled_from([1, np.nan, np.inf, -np.inf]))
    x = from_numpy(values, "LLVM")
    node = (x.flip((1,)).alu(Ops.MAX, x) if data.draw(st.booleans()) else x).scan(op, 1)
    (item,) = create_schedule([node])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    assume(lanes <= kernel.lanes)
    with Context(SPEC=1), np.errstate(all="ignore"):
        kernel = apply_opt(kernel, Opt(OptOps.VECTOR, scan_axis(kernel), lanes))
        ExecItem(item, compile_optimized("LLVM", kernel), None, item.buffers).run()
        np.testing.assert_array_equal(buffer_array(item.buffers[0], shape), evaluate(node))


def scan_axis(kernel: Kernel) -> int:
    return next(int(axis.arg.id) for axis in kernel.axes if axis.arg.kind is AxisKind.SCAN)


def test_running_products_of_floats_and_recurrences_have_no_lanes() -> None:
    """[0, 1e30, 1e30] would be [0, 0, NaN]: lanes are combined with each other before what comes before them."""
    x = from_numpy(np.array([0, 1e30, 1e30, 1], np.float32))
    for node, words in (
        (x.scan(Ops.MUL, 0), "multiplying lanes first may overflow"),
        (x.recurrence(x, 0), "lanes cannot run in parallel"),
    ):
        (item,) = create_schedule([node])
        kernel = Kernel.of(item.ast, MACHINE)
        with pytest.raises(OptError, match=words):
            apply_opt(kernel, Opt(OptOps.VECTOR, scan_axis(kernel), 4))
    np.testing.assert_array_equal(to_numpy(x.scan(Ops.MUL, 0)), [0, 0, 0, 0])


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_scans_agree_with_numpy(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    op = data.draw(st.sampled_from([Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN]))
    kind = data.draw(st.sampled_from([np.float32, np.float64, np.int32]))
    values = np.random.default_rng(data.draw(st.integers(0, 99))).integers(-2, 3, shape).astype(kind)
    node: LazyBuffer = from_numpy(values, data.draw(st.sampled_from(["LLVM", "PYTHON"])))
    if data.draw(st.booleans()):
        node = node.flip((axis,)).alu(Ops.ADD, node)
    node = node.scan(op, axis)
    if data.draw(st.booleans()):
        node = node.alu(Ops.NEG).reduce(Ops.ADD, (axis,))
    with Context(SPEC=1, NOOPT=data.draw(st.integers(0, 1))), np.errstate(all="ignore"):
        np.testing.assert_allclose(to_numpy(node), evaluate(node), rtol=1e-5)


def test_a_scan_stays_innermost_where_other_axes_are_split() -> None:
    """The padding divides the outer axis into 9 by 6 rows; the scan's steps still come one after the other."""
    x = numbers(6, 3, 4)
    padded = from_numpy(x).pad(((0, 0), (3, 3), (0, 0))).reshape((54, 4))
    node = padded.alu(Ops.MAX, padded.alu(Ops.NEG)).scan(Ops.ADD, 1)
    np.testing.assert_allclose(to_numpy(node), evaluate(node), rtol=1e-6)
    (item,) = create_schedule([padded.alu(Ops.MAX, padded.alu(Ops.NEG)).scan(Ops.ADD, 1)])
    kernel = with_split_axes(Kernel.of(item.ast, MACHINE))
    assert [axis.arg.kind for axis in kernel.axes] == [AxisKind.GLOBAL, AxisKind.GLOBAL, AxisKind.SCAN]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_recurrences_agree_with_numpy(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 5, 16, 33]), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    kind = data.draw(st.sampled_from([np.float32, np.float64, np.float16]))
    device = data.draw(st.sampled_from(["LLVM", "PYTHON"]))
    x, factor = (from_numpy((numbers(*shape, seed=seed) / 2).astype(kind), device) for seed in (0, 1))
    if data.draw(st.booleans()):
        factor = factor.flip((axis,)).alu(Ops.MUL, factor)
    node = x.recurrence(factor, axis)
    with Context(SPEC=1, NOOPT=data.draw(st.integers(0, 1))):
        np.testing.assert_allclose(to_numpy(node), evaluate(node), rtol=1e-2 if kind is np.float16 else 1e-5, atol=1e-3)


@pytest.mark.parametrize("axis, kernels", [(1, 2), (0, 1)])
def test_a_reduction_with_lanes_is_not_a_scan(axis: int, kernels: int) -> None:
    """Along the last axis running products and scatters have no lanes; along another they have those of the columns."""
    grown = from_numpy(numbers(64, 128)).alu(Ops.EXP)
    assert len(create_schedule([grown.scan(Ops.MUL, axis)])) == kernels
    assert len(create_schedule([grown.scan(Ops.ADD, axis)])) == 1
    index = from_numpy(np.zeros((64, 128), np.int32))
    target = from_numpy(numbers(64, 128))
    assert len(create_schedule([target.scatter(Ops.ADD, axis, index, grown)])) == kernels
    few = from_numpy(numbers(4, 8)).alu(Ops.EXP)
    assert len(create_schedule([few.scan(Ops.MUL, axis)])) == 1


def walked_by(node: LazyBuffer) -> tuple[int, ...]:
    """The shape over which the running sum `node` is scheduled; what was written stays as it is."""
    assert node.op is Ops.SCAN_AXIS
    (found,) = split_reductions([node], NO_WRITES, target_of).outputs
    assert node.shape == node.src[0].shape and (found is node or found.op is Ops.SCAN_AXIS)
    return found.shape


@pytest.mark.pinned
@pytest.mark.parametrize(
    ("shape", "axis", "cores", "walked"),
    [
        ((1 << 20,), 0, 2, (2, 1 << 19)),
        ((1 << 20,), 0, 3, (4, 1 << 18)),  # the next number that divides the size
        ((3, 1 << 20), 1, 8, (3, 4, 1 << 18)),
        ((3, 1 << 20), 1, 3, (3, 1 << 20)),  # each core has a row
        ((1 << 19, 3), 0, 6, (2, 1 << 18, 3)),
        ((1 << 20,), 0, 1, (1 << 20,)),
        ((1048583,), 0, 2, (1048583,)),  # a prime number
        ((1 << 19,), 0, 2, (1 << 19,)),  # little
    ],
)
def test_a_long_running_sum_has_a_block_for_each_core(
    shape: tuple[int, ...], axis: int, cores: int, walked: tuple[int, ...]
) -> None:
    x = LazyBuffer.const(1, dtypes.int32, "LLVM", shape)
    with Context(THREADS=cores):
        assert walked_by(x.scan(Ops.ADD, axis)) == walked
        assert walked_by(x.scan(Ops.MAX, axis)) == shape
    with Context(THREADS=cores, SPLIT_REDUCEOP=0):
        assert walked_by(x.scan(Ops.ADD, axis)) == shape


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_running_sums_in_blocks_are_the_same(data: st.DataObject) -> None:
    """Whole numbers, so that the order of additions does not matter."""
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 5, 16, 45, 96]), min_size=1, max_size=3)))
    axis, cores = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.integers(2, 6))
    kind = data.draw(st.sampled_from([np.float32, np.int32, np.uint8, np.bool_]))
    values = (numbers(*shape) * 3).astype(np.int32).astype(kind)
    flips = data.draw(st.booleans())
    with patch.object(splitting, "MUCH_TO_SCAN", 0), Context(SPEC=1, THREADS=cores):
        x = from_numpy(values)
        node = (x.flip((axis,)) if flips else x).scan(Ops.ADD, axis)
        given = np.flip(values, axis) if flips else values
        np.testing.assert_array_equal(to_numpy(node), np.add.accumulate(given, axis, dtype=kind))


def test_a_scan_of_a_constant_counts() -> None:
    ones = LazyBuffer.const(1, from_numpy(np.zeros(1, np.int32)).dtype, "LLVM", (7,))
    np.testing.assert_array_equal(to_numpy(ones.scan(Ops.ADD, 0)), np.arange(1, 8))

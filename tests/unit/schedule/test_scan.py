"""A scan is one loop in order: linear, whatever stands before and after it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import from_numpy, numbers, to_numpy
from tests.reference import evaluate
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps
from tinyexplore.kernel.merge import with_split_axes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import create_schedule
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import Context

MACHINE = Target("TEST", "any", "any", "", 64, 32, 2, 32768, 1 << 20, frozenset(), ())


def test_the_loop_of_a_scan_is_the_innermost_and_takes_no_opts() -> None:
    (item,) = create_schedule([from_numpy(numbers(8, 40)).scan(Ops.ADD, 0)])
    kernel = Kernel.of(item.ast, MACHINE)
    assert [(axis.arg.kind, axis.size) for axis in kernel.axes] == [(AxisKind.GLOBAL, 40), (AxisKind.SCAN, 8)]
    with pytest.raises(OptError, match="the axis is scan"):
        kernel.apply(Opt(OptOps.UPCAST, 1, 2))
    with pytest.raises(OptError, match="the loop of a scan must stay innermost"):
        kernel.apply(Opt(OptOps.LOCAL, 0, 4))


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
def test_what_lanes_do_faster_is_not_done_in_order(axis: int, kernels: int) -> None:
    """Along the last axis a scan has no lanes; along another it has those of the columns."""
    grown = from_numpy(numbers(64, 128)).alu(Ops.EXP)
    assert len(create_schedule([grown.scan(Ops.ADD, axis)])) == kernels
    index = from_numpy(np.zeros((64, 128), np.int32))
    target = from_numpy(numbers(64, 128))
    assert len(create_schedule([target.scatter(Ops.ADD, axis, index, grown)])) == kernels
    few = from_numpy(numbers(4, 8)).alu(Ops.EXP)
    assert len(create_schedule([few.scan(Ops.ADD, axis)])) == 1


def test_a_scan_of_a_constant_counts() -> None:
    ones = LazyBuffer.const(1, from_numpy(np.zeros(1, np.int32)).dtype, "LLVM", (7,))
    np.testing.assert_array_equal(to_numpy(ones.scan(Ops.ADD, 0)), np.arange(1, 8))

"""Axes that are split where they are divided."""

from __future__ import annotations

import pytest

from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore import Tensor
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel import Kernel
from tinyexplore.kernel.analysis.scratch import copy_barriers
from tinyexplore.kernel.transforms.axes import with_split_axes
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.uop.divmod import linear_terms


def strides(place: UOp) -> dict[int, int]:
    """Of each loop in a sum, by the loop's size: what a step of it counts."""
    terms, rest = linear_terms(place)
    assert rest == 0 and all(term.op is Ops.RANGE for term in terms)
    return {term.size: factor for term, factor in terms.items()}


def test_an_axis_divided_by_several_numbers_becomes_a_loop_for_each_digit() -> None:
    axis = UOp.range(120, Axis(0, AxisKind.GLOBAL))
    result, source = (UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 120), (), place) for place in range(2))
    turned = axis // 24 + (axis % 24 // 4) * 5 + (axis % 4) * 30
    value = UOp(Ops.LOAD, dtypes.float32, (source.index(turned),))
    store = UOp(Ops.STORE, dtypes.void, (result.index(axis), value))
    kernel = with_split_axes(Kernel.of(UOp.sink(store), MACHINE))
    (store,) = kernel.ast.src
    assert strides(store.src[0].src[1]) == {5: 24, 6: 4, 4: 1}
    assert strides(store.src[1].src[0].src[1]) == {5: 1, 6: 5, 4: 30}


def test_an_axis_divided_after_a_step_is_split_as_well() -> None:
    axis = UOp.range(64, Axis(0, AxisKind.GLOBAL))
    result, source = (UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 70), (), place) for place in range(2))
    value = UOp(Ops.LOAD, dtypes.float32, (source.index((axis + 1) // 2 + (axis + 1) % 2 * 33),))
    store = UOp(Ops.STORE, dtypes.void, (result.index(axis), value))
    kernel = with_split_axes(Kernel.of(UOp.sink(store), MACHINE))
    assert [loop.size for loop in kernel.axes] == [32, 2]
    (store,) = kernel.ast.src
    assert strides(store.src[0].src[1]) == {32: 2, 2: 1}
    half, _ = kernel.axes
    terms, _ = linear_terms(store.src[1].src[0].src[1])
    assert terms[half] == 1 and not any(half in term.ranges for term in terms if term is not half)


@pytest.mark.parametrize(("heads", "keys"), [(8, 2), (6, 3), (4, 1)])
def test_a_row_buffer_is_outside_the_loop_that_rereads_it(heads: int, keys: int) -> None:
    """Heads that share keys are the digits of one axis. All of them stand outside the columns of the result."""
    q, k, v = (Tensor(unread(2, count, 256, 64)) for count in (heads, keys, keys))
    repeated = (x.repeat_interleave(heads // keys, 1) for x in (k, v))
    kernel = with_split_axes(kernel_of(q.scaled_dot_product_attention(*repeated).lazydata))
    *outside, columns = kernel.output_axes
    assert columns.size == 64 and heads // keys in [loop.size for loop in outside]
    assert copy_barriers(kernel)
    for row in copy_barriers(kernel):
        assert columns not in row.ranges and row.ranges.issuperset(outside)

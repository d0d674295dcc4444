"""Panels of a product with a transposed factor: registers transpose the packed panels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tests.graphs import attention, from_numpy, matmul, to_numpy
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore.codegen import lower
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, OptOps, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer.llvm.effort import is_assembled_from_lanes
from tinyexplore.tensor import Tensor
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import Context


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
@pytest.mark.parametrize(("rows", "steps", "columns"), [(96, 128, 64), (97, 137, 83), (64, 4, 64)])
def test_a_product_with_a_transposed_factor_is_exact(dtype: type, rows: int, steps: int, columns: int) -> None:
    rng = np.random.default_rng(steps)
    x, y = (rng.integers(-99, 100, shape).astype(dtype) for shape in ((rows, steps), (columns, steps)))
    with Context(SPEC=1):
        found = to_numpy(matmul(from_numpy(x), from_numpy(y).permute((1, 0))))
    np.testing.assert_array_equal(found, x @ y.T)


@pytest.mark.parametrize(("columns", "is_packed"), [(160, False), (192, True)])
def test_operands_of_a_third_of_an_l2_cache_are_packed(columns: int, is_packed: bool) -> None:
    """The columns, and rows that the sum walks in strides."""
    assert MACHINE.l2_bytes == 1 << 20
    plain = apply_heuristics(kernel_of(matmul(unread(512, 520), unread(520, columns))))
    assert sum(opt.op is OptOps.STAGE for opt in plain.applied) == is_packed
    turned = apply_heuristics(kernel_of(matmul(unread(520, 520).permute((1, 0)), unread(520, columns))))
    assert sum(opt.op is OptOps.STAGE for opt in turned.applied) == 2 * is_packed


def test_rows_are_read_in_quarter_vectors() -> None:
    """16 rows of 4: a quarter of the shuffles of a square, and a third of the program."""
    kernel = apply_heuristics(kernel_of(matmul(unread(512, 512), unread(512, 512).permute((1, 0)))))
    uops = lower(kernel)
    read = [node for node in uops if node.op is Ops.LOAD and node.dtype.count == 4]
    assert len(read) == 16
    columns = [node for node in uops if node.op is Ops.VECTORIZE and len(set(node.src)) == 16]
    assert [{lane.src[0] for lane in column.src} for column in columns] == [set(read)] * 4


@pytest.mark.parametrize("registers", [16, 32])
def test_vector_accumulators_fit_the_registers(registers: int) -> None:
    """Of 16 registers, 4 × 4 sums would leave none for what is loaded: there a large factor is packed instead."""
    target = replace(MACHINE, vector_bytes=32, vector_registers=registers)
    few = apply_heuristics(kernel_of(matmul(unread(24, 56), unread(40, 56).permute((1, 0))), target))
    assert accumulators(few) <= registers - 4 and not packs(few)
    many = apply_heuristics(kernel_of(matmul(unread(1024, 2048), unread(512, 2048).permute((1, 0))), target))
    assert accumulators(many) <= registers - 3 and packs(many)


def accumulators(kernel: Kernel) -> int:
    """Of the sum's vectors, those that a tile has at one time."""
    return prod([axis.size for axis in kernel.output_axes if axis.arg.kind is AxisKind.UPCAST])


def packs(kernel: Kernel) -> bool:
    return any(opt.op is OptOps.STAGE for opt in kernel.applied)


def masked() -> LazyBuffer:
    product, row, column = sums_and_places()
    return row.alu(Ops.CMPLT, column).alu(Ops.WHERE, product, product.alu(Ops.NEG))


def with_places() -> LazyBuffer:
    product, _, column = sums_and_places()
    return product.alu(Ops.ADD, column.cast(dtypes.float32))


def sums_and_places() -> tuple[LazyBuffer, LazyBuffer, LazyBuffer]:
    """A product with a transposed factor, and the row and the column of each of its elements."""
    product = matmul(unread(512, 512), unread(512, 512).permute((1, 0)))
    numbers = LazyBuffer.iota(512, dtypes.int32, product.device)
    places = [numbers.reshape(shape).expand(product.shape) for shape in ((512, 1), (1, 512))]
    return product, places[0], places[1]


def causal() -> LazyBuffer:
    return attention(unread(512, 64), unread(512, 64), unread(512, 64), causal=True)


@pytest.mark.pinned
@pytest.mark.parametrize("node", [masked, with_places, causal])
def test_computed_indices_transpose_square_tiles(node: Callable[[], LazyBuffer]) -> None:
    """Lanes of quarters would be put together one by one there."""
    uops = lower(apply_heuristics(kernel_of(node())))
    assert any(one.op is Ops.DEFINE_LOCAL and one.arg.startswith("packed") for one in uops)
    assert not any(is_assembled_from_lanes(one) for one in uops)


@pytest.mark.parametrize(("columns", "is_packed"), [(1024, True), (1040, False)])
def test_columns_whose_lines_share_one_set_of_the_cache_are_packed(columns: int, is_packed: bool) -> None:
    """Rows of 4 KiB: each step of the sum reads lines that displace those of the step before, whatever L2 holds."""
    target = replace(MACHINE, l2_bytes=1 << 22)
    assert packs(apply_heuristics(kernel_of(matmul(unread(256, 256), unread(256, columns)), target))) is is_packed


@pytest.mark.pinned
@pytest.mark.parametrize(("registers", "tile"), [(16, [2, 6]), (32, [4, 6])])
def test_row_buffers_have_a_tile_that_fits_the_registers(registers: int, tile: list[int]) -> None:
    """Rather more rows than vectors side by side: each row more has the keys and values read once less."""
    target = replace(MACHINE, vector_registers=registers)
    kernel = apply_heuristics(kernel_of(attention(*(unread(512, 64) for _ in range(3))), target))
    assert [opt.amount for opt in kernel.applied if opt.op is OptOps.UPCAST][-2:] == tile


@pytest.mark.pinned
@pytest.mark.parametrize("transposed", ["q", "k", "v", "kv", "qkv"])
def test_transposed_operands_do_not_change_the_tile_of_attention(transposed: str) -> None:
    """Operands that all rows read are packed into panels: their layout in memory does not choose the lanes."""

    def kernel_with(transposed: str) -> Kernel:
        q, k, v = (unread(64, 512).permute((1, 0)) if name in transposed else unread(512, 64) for name in "qkv")
        return apply_heuristics(kernel_of(attention(q, k, v), MACHINE))

    kinds = [(opt.op, opt.amount) for opt in kernel_with(transposed).applied]
    assert kinds == [(opt.op, opt.amount) for opt in kernel_with("").applied]
    assert (OptOps.STAGE, 0) in kinds and OptOps.UNROLL not in {op for op, _ in kinds}


MASK_SHAPES = [(2, 3, 128, 128), (2, 1, 128, 128), (2, 1, 1, 128), (1, 1, 1, 128), (128, 128), (128,), (2, 1, 128, 1)]
MASKED = {
    "added to the scores": lambda scores, mask: scores + mask,
    "chooses scores": lambda scores, mask: (mask > -1).where(scores, float("-inf")),
    "times the exponentials": lambda scores, mask: (scores - scores.max(-1, keepdim=True)).exp() * mask,
}


@pytest.mark.pinned
@pytest.mark.parametrize("how", MASKED)
@pytest.mark.parametrize("shape", MASK_SHAPES, ids=str)
def test_a_mask_does_not_change_the_tile_of_attention(shape: tuple[int, ...], how: str) -> None:
    """A maximum or sum of masked scores may read a mask that all rows share. It is no product for that."""
    queries, keys, values = (Tensor(unread(2, 3, 128, 64)) for _ in range(3))
    weights = MASKED[how](queries @ keys.transpose(-1, -2), Tensor(unread(*shape)))
    if how == "times the exponentials":
        weights = weights / weights.sum(-1, keepdim=True)
    else:
        weights = weights.softmax(-1)
    *_, last = create_schedule([(weights @ values).lazydata])
    assert last.ast is not None
    applied = apply_heuristics(Kernel.of(last.ast, MACHINE)).applied
    assert [opt.amount for opt in applied if opt.op is OptOps.UPCAST] == [4, 4, 6]
    assert [opt.op for opt in applied].count(OptOps.STAGE) == 1


@pytest.mark.pinned
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("rows", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("turned", [False, True])
def test_a_few_rows_read_a_large_matrix_once(lanes: int, rows: int, turned: bool) -> None:
    """One tile has all rows, or a packed panel serves their tiles, or these are inside the loop of the columns.

    Where few rows are packed instead, each block of them has 8 rows or more.
    """
    target = replace(MACHINE, vector_bytes=4 * lanes, vector_registers=32 if lanes == 16 else 16)
    matrix = unread(4096, 2048).permute((1, 0)) if turned else unread(2048, 4096)
    kernel = apply_heuristics(kernel_of(matmul(unread(rows, 2048), matrix), target))
    loads = [access.node for access in kernel.accesses if access.node.src[0].dtype.size == 4096 * 2048]
    loops = [axis for axis in kernel.output_axes if axis.arg.kind in (AxisKind.GLOBAL, AxisKind.THREAD)]
    again = prod([axis.size for axis in loops if all(axis not in load.ranges for load in loads)])
    outermost = min(loops, key=lambda axis: axis.arg.id)
    assert again == 1 or any(outermost in load.ranges for load in loads) or (packs(kernel) and 8 * again <= rows)


@pytest.mark.parametrize(("columns", "rows"), [(56, 3), (64, 4)])
def test_loads_that_cross_cache_lines_are_shared_by_more_rows(columns: int, rows: int) -> None:
    """Vectors of a convolution start at each element. Seven of them, in two rows of 56, serve three channels, not
    two."""
    pictures, weights = Tensor(unread(4, 64, columns, columns)), Tensor(unread(64, 64, 3, 3))
    schedule = create_schedule([pictures.conv2d(weights, padding=1).lazydata])
    kernel = apply_heuristics(Kernel.of(schedule[-1].ast, MACHINE))
    assert accumulators(kernel) == rows * (7 if columns == 56 else 4)

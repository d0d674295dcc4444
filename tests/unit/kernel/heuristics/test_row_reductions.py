"""Sums of rows from memory: which kernels process several rows at once, with correct results at awkward sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import from_numpy, to_numpy
from tests.support.kernels import MACHINE, WIDE, kernel_of, unread
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops
from tinyexplore.util import Context

SUMS = (Ops.ADD, (1,))


def times_vector(matrix: LazyBuffer, vector: LazyBuffer) -> LazyBuffer:
    rows, columns = (int(side) for side in matrix.shape)
    return matrix.alu(Ops.MUL, vector.reshape((1, columns)).expand((rows, columns))).reduce(*SUMS)


@pytest.mark.parametrize(
    ("node", "opts"),
    [
        (lambda: unread(4096, 4096).reduce(*SUMS), ["UPCAST(0, 8)", "PREFETCH(0, 1)"]),
        (lambda: unread(256, 65536).reduce(*SUMS), ["UPCAST(0, 8)", "GROUP(1, 256)", "PREFETCH(4, 32)"]),
        (lambda: times_vector(unread(4096, 4096), unread(4096)), ["UPCAST(0, 8)", "PREFETCH(0, 1)"]),
        (lambda: unread(4096, 4096).alu(Ops.MUL, unread(4096, 4096)).reduce(*SUMS), ["UPCAST(0, 4)", "PREFETCH(0, 1)"]),
        (lambda: unread(2048, 2048).reduce(*SUMS), []),  # a cache has it
        (lambda: unread(65536, 256).reduce(*SUMS), []),  # short rows follow each other
        (lambda: unread(16, 1 << 20).reduce(*SUMS), []),  # too few
        (lambda: unread(4096, 4096).alu(Ops.EXP).reduce(*SUMS), []),  # takes longer than memory does
        (lambda: unread(4096, 4096).reduce(Ops.MAX, (1,)), ["UPCAST(0, 8)", "PREFETCH(0, 1)"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_rows_side_by_side(node: Callable[[], LazyBuffer], opts: list[str]) -> None:
    found = [str(opt) for opt in apply_heuristics(kernel_of(node())).applied]
    assert [opt for opt in found if opt.startswith(("UPCAST", "GROUP", "PREFETCH"))] == opts


def channels(*shape: int) -> LazyBuffer:
    """The sum of each channel, the second axis, over all pictures."""
    return unread(*shape).reduce(Ops.ADD, (0, 2, 3))


@pytest.mark.pinned
@pytest.mark.parametrize(
    ("node", "opts"),
    [
        (lambda: unread(1 << 24).reduce(Ops.ADD, (0,)), ["UNROLL(1, 8)", "PREFETCH(2, 32)"]),
        (lambda: unread(4096, 4096).reduce(Ops.ADD, (0, 1)), ["UNROLL(1, 8)", "PREFETCH(2, 32)"]),
        (lambda: unread(1 << 26).reduce(Ops.ADD, (0,)), ["UNROLL(1, 8)", "GROUP(2, 256)", "PREFETCH(5, 32)"]),
        (lambda: unread(1 << 22).reduce(Ops.ADD, (0,)), ["UNROLL(1, 4)"]),  # a cache has it
        (lambda: unread(1 << 24).reduce(Ops.MAX, (0,)), ["UPCAST(0, 8)", "GROUP(1, 256)", "PREFETCH(4, 32)"]),
        (lambda: unread(1 << 24).alu(Ops.EXP).reduce(Ops.ADD, (0,)), ["UNROLL(1, 4)"]),  # dear
        (lambda: channels(32, 128, 56, 56), ["UNROLL(1, 8)", "PREFETCH(2, 32)"]),
        (lambda: channels(36, 128, 56, 56), ["UNROLL(1, 4)", "PREFETCH(2, 32)"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else None,
)
def test_pieces_of_a_row_side_by_side(node: Callable[[], LazyBuffer], opts: list[str]) -> None:
    with Context(TARGET=WIDE):
        first, *_ = create_schedule([node()])
    assert first.ast is not None
    found = [str(opt) for opt in apply_heuristics(Kernel.of(first.ast, MACHINE)).applied]
    assert [opt for opt in found if opt.startswith(("UPCAST", "UNROLL", "GROUP", "PREFETCH"))] == opts


@pytest.mark.parametrize(
    ("node", "opts"),
    [
        (lambda: unread(4096, 4096).reduce(*SUMS), ["UPCAST(0, 4)"]),
        (lambda: unread(256, 65536).reduce(*SUMS), ["UPCAST(0, 4)", "GROUP(1, 256)"]),
        (lambda: unread(4096, 4096).alu(Ops.MUL, unread(4096, 4096)).reduce(*SUMS), ["UPCAST(0, 2)", "UNROLL(1, 4)"]),
        (lambda: channels(36, 128, 56, 56), ["UNROLL(1, 4)"]),
    ],
    ids=["rows", "long rows", "two operands", "channels"],
)
def test_a_target_may_read_fewer_rows_without_prefetches(node: Callable[[], LazyBuffer], opts: list[str]) -> None:
    target = replace(MACHINE, streams=4, prefetches_streams=False)
    with Context(TARGET=WIDE):
        kernel = kernel_of(node(), target)
    found = [str(opt) for opt in apply_heuristics(kernel).applied]
    assert [opt for opt in found if opt.startswith(("UPCAST", "GROUP", "PREFETCH", "UNROLL(1, 4"))] == opts


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("shape", [(7 << 20,), (8 * 1003, 1009), ((7 << 20) + 16,), (24, 77, 64, 64)], ids=str)
def test_every_piece_is_summed(shape: tuple[int, ...], dtype: str) -> None:
    values = np.random.default_rng(0).integers(-3, 4, shape).astype(dtype)
    array = from_numpy(values)
    assert to_numpy(array.reduce(Ops.ADD, tuple(range(len(shape))))).ravel() == values.sum()
    if len(shape) == 4:
        np.testing.assert_array_equal(to_numpy(array.reduce(Ops.ADD, (0, 2, 3))).ravel(), values.sum((0, 2, 3)))


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        (np.random.default_rng(0).random(1 << 23, np.float32), 1e-6),
        (np.full(1 << 23, 0.1, np.float32), 3e-5),  # each addition rounds the same way; in one chain: 5e-2
    ],
    ids=["random", "constant"],
)
def test_a_large_sum_loses_few_of_its_last_bits(values: np.ndarray, limit: float) -> None:
    found = float(to_numpy(from_numpy(values).reduce(Ops.ADD, (0,))).ravel()[0])
    assert abs(found / values.sum(dtype=np.float64) - 1) < limit


@pytest.mark.parametrize("rows", [4099, 12_295])
def test_the_last_rows_are_summed_as_well(rows: int) -> None:
    columns = (7 << 20) // rows // 16 * 16
    values = np.random.default_rng(0).integers(-3, 4, (rows, columns)).astype(np.float32)
    vector = np.arange(columns, dtype=np.float32) % 5
    matrix = from_numpy(values)
    (sums, products) = matrix.reduce(*SUMS), times_vector(matrix, from_numpy(vector))
    np.testing.assert_array_equal(to_numpy(sums).ravel(), values.sum(1))
    np.testing.assert_array_equal(to_numpy(products).ravel(), values @ vector)


@pytest.mark.pinned
def test_long_sums_are_done_in_blocks() -> None:
    values = np.full((64, 112_016), 0.1, np.float32)
    (sums,) = {float(found) for found in to_numpy(from_numpy(values).reduce(*SUMS)).ravel()}
    assert abs(sums / (float(values[0, 0]) * values.shape[1]) - 1) < 1e-5  # one after the other: 3e-5

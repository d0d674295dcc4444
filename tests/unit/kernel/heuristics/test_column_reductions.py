"""Sums of columns: short rows are read whole, in parts for several cores; of long rows, more is read at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, to_numpy
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel, OptOps, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def amounts(kernel: Kernel, op: OptOps) -> list[int]:
    return [opt.amount for opt in apply_heuristics(kernel).applied if opt.op is op]


@pytest.mark.parametrize(
    ("shape", "vectors", "rows"),
    [
        ((64, 512, 512), [32], []),
        ((64, 512, 320), [20], []),
        ((64, 512, 128), [8], []),
        ((64, 512, 64), [4], [2]),
        ((64, 512, 1024), [8], [3]),  # too long for the registers
        ((64, 512, 500), [8], [3]),  # the last vector of a row overlaps the one before
    ],
)
def test_short_rows_are_unrolled_completely(shape: tuple[int, ...], vectors: list[int], rows: list[int]) -> None:
    kernel = kernel_of(unread(*shape).reduce(Ops.ADD, (1,)))
    assert amounts(kernel, OptOps.UPCAST) == vectors
    assert amounts(kernel, OptOps.UNROLL)[:1] == rows


@pytest.mark.parametrize(
    ("window", "written_out"),
    [((2, 2), [2, 2]), ((3, 3), [3]), ((4, 2), [4])],  # of longer windows one side at most
)
def test_a_short_window_is_unrolled_completely(window: tuple[int, int], written_out: list[int]) -> None:
    rows, columns = window
    kernel = kernel_of(unread(64, rows, 32, columns).reduce(Ops.MAX, (1, 3)))
    assert amounts(kernel, OptOps.UNROLL) == written_out


def test_rows_are_split_among_cores_if_there_is_no_other_parallelism() -> None:
    kernel = kernel_of(unread(512, 512).reduce(Ops.ADD, (0,)))
    assert amounts(kernel, OptOps.UPCAST) == [8]
    assert amounts(replace(kernel, target=replace(MACHINE, threads=1)), OptOps.UPCAST) == [32]
    assert amounts(kernel_of(unread(4096, 4096).reduce(Ops.MAX, (0,))), OptOps.UPCAST) == [16]


@pytest.mark.parametrize(
    ("rows", "columns", "tall"),
    [(2048, 2048, []), (65536, 256, []), (256, 16384, [4]), (1 << 18, 64, [4]), (512, 512, [4]), (4096, 4096, [8])],
)
def test_a_matrix_times_a_vector_tiles_rows_by_the_memory_level(rows: int, columns: int, tall: list[int]) -> None:
    """Out of a cache one, unless the vector fills L1, rows are very short, or all is in L2; out of memory eight."""
    vector = unread(1, columns).expand((rows, columns))
    kernel = kernel_of(unread(rows, columns).alu(Ops.MUL, vector).reduce(Ops.ADD, (1,)))
    assert amounts(kernel, OptOps.UPCAST) == tall


@pytest.mark.parametrize(
    ("rows", "columns", "wide", "ahead"),
    [
        (4096, 4096, 16, ["PREFETCH(1, 64)"]),
        (2048, 2048, 16, ["PREFETCH(1, 64)"]),  # out of a cache past L2
        (768, 3072, 16, ["PREFETCH(1, 64)"]),
        (16384, 1024, 8, ["PREFETCH(1, 128)"]),  # short rows, out of memory
        (2048, 256, 8, []),  # too short for two threads
        (512, 512, 8, []),
    ],
)
def test_a_vector_times_a_matrix_uses_wide_vectors_and_prefetches(
    rows: int, columns: int, wide: int, ahead: list[str]
) -> None:
    kernel = apply_heuristics(kernel_of(matmul(unread(1, rows), unread(rows, columns))))
    assert [opt.amount for opt in kernel.applied if opt.op is OptOps.UPCAST] == [wide]
    assert [str(opt) for opt in kernel.applied if opt.op is OptOps.PREFETCH] == ahead


def test_columns_read_twice_or_from_two_operands_are_tiled() -> None:
    x, y = unread(4096, 4096), unread(4096, 4096)
    distance = x.alu(Ops.ADD, x.reduce(Ops.MAX, (0,)).alu(Ops.NEG).expand(x.shape))
    twice = apply_heuristics(kernel_of(distance.alu(Ops.MUL, distance).reduce(Ops.ADD, (0,))))
    assert [str(opt) for opt in twice.applied][1:] == ["UPCAST(0, 8)", "THREAD(0)", "PREFETCH(0, 1)"]
    products = apply_heuristics(kernel_of(x.alu(Ops.MUL, y).reduce(Ops.ADD, (0,))))
    assert [str(opt) for opt in products.applied][1:] == ["UPCAST(0, 16)", "THREAD(0)", "PREFETCH(1, 64)"]


def test_a_few_rows_times_a_matrix_prefetch() -> None:
    for rows, looks in ((2, True), (4, True), (16, False), (64, False)):
        kernel = apply_heuristics(kernel_of(matmul(unread(rows, 4096), unread(4096, 4096))))
        assert any(opt.op is OptOps.PREFETCH for opt in kernel.applied) is looks


def steps(node: LazyBuffer) -> int:
    return len(create_schedule([node]))


def test_many_short_rows_are_summed_in_two_steps() -> None:
    assert steps(unread(8192, 512).reduce(Ops.ADD, (0,))) == 2
    assert steps(unread(64, 128, 512).reduce(Ops.MAX, (0, 1))) == 2
    assert steps(unread(8192, 513).reduce(Ops.ADD, (0,))) == 1  # long rows
    assert steps(unread(1024, 512).reduce(Ops.ADD, (0,))) == 1  # few
    assert steps(unread(8191, 520).reduce(Ops.ADD, (0,))) == 1  # a prime number of them
    assert steps(unread(8192, 16, 64).reduce(Ops.ADD, (0, 2))) == 1  # no rows
    with Context(SPLIT_REDUCEOP=0):
        assert steps(unread(8192, 512).reduce(Ops.ADD, (0,))) == 1


@pytest.mark.parametrize(
    ("shape", "order", "parts"),
    [
        ((64, 4096), (0, 1), 64),  # each a row; along the longest axis they would lie in pieces
        ((64, 4096), (1, 0), 64),  # seen as columns
        ((8, 300, 500), (0, 1, 2), 150),  # 8 are too few
        ((31, 37, 1024), (0, 1, 2), 31),
    ],
)
def test_a_full_sum_is_split_into_partial_sums(shape: tuple[int, ...], order: tuple[int, ...], parts: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    node = from_numpy(x).permute(order).reduce(Ops.ADD, tuple(range(len(shape))))
    first, _ = create_schedule([node])
    assert first.outputs[0].size == parts
    assert to_numpy(node).item() == x.sum(dtype=np.float64)


@pytest.mark.parametrize("shape", [(16384, 256), (96, 300, 160), (131072, 36)])
def test_sums_of_many_short_rows_are_right(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    axes = tuple(range(len(shape) - 1))
    with Context(SPEC=1):
        found = to_numpy(from_numpy(x).reduce(Ops.ADD, axes))
    np.testing.assert_array_equal(found.reshape(-1), x.sum(axes, dtype=np.float64))

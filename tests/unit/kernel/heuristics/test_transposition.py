"""Transpositions: the inner loop follows the loads if stores bypass the caches, otherwise the stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import from_numpy, to_numpy
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore.device import Buffer
from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel import OptOps, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def transposed(*shape: int) -> LazyBuffer:
    rank = len(shape)
    return unread(*shape).permute((*range(rank - 2), rank - 1, rank - 2)).contiguous()


@pytest.mark.parametrize(
    ("node", "swaps"),
    [
        (lambda: transposed(4096, 4096), True),
        (lambda: transposed(32, 64, 3136), True),  # NCHW to NHWC
        (lambda: transposed(16384, 1024), True),  # the walk across is long
        (lambda: transposed(16, 1024, 1024), False),  # a cache has the lines that are half read
        (lambda: transposed(32, 3136, 64), False),
        (lambda: transposed(2048, 2048), False),  # what is stored stays in a cache
        (lambda: transposed(3000, 5000), False),  # the last rows of stores overlap
        (lambda: transposed(4098, 4096), False),  # rows do not begin at cache lines
        (lambda: unread(1 << 20, 16).permute((1, 0)).contiguous(), False),
    ],
)
def test_loop_order_follows_the_loads_if_stores_bypass_the_cache(node: Callable[[], LazyBuffer], swaps: bool) -> None:
    kernel = apply_heuristics(kernel_of(node()))
    assert any(opt.op is OptOps.SWAP for opt in kernel.applied) is swaps
    assert sum(opt.op in (OptOps.VECTOR, OptOps.UPCAST) and opt.amount == 16 for opt in kernel.applied) == 2


@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float16, dtypes.int16])
def test_pure_copies_use_vectors_of_the_stored_type(dtype: DType) -> None:
    """Half floats are computed in float32, of which a vector has half as many lanes."""
    x = LazyBuffer.from_buffer(Buffer("LLVM", 1 << 24, dtype), (4096, 4096))
    moved, computed = x.permute((1, 0)).contiguous(), x.alu(Ops.MUL, x).permute((1, 0)).contiguous()
    assert kernel_of(moved).lanes == 32
    assert kernel_of(computed).lanes == (16 if dtypes.is_float(dtype) else 32)


@pytest.mark.parametrize("device", ["LLVM", "CLANG"])
@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float16])
def test_half_floats_are_moved_bit_by_bit(dtype: DType, device: str) -> None:
    """Every pattern of 16 bits, NaNs with what they carry among them."""
    bits = from_numpy(np.arange(1 << 16, dtype=np.uint16).reshape(256, 256), device)
    moved = bits.bitcast(dtype).contiguous().permute((1, 0)).contiguous().bitcast(dtypes.uint16)
    with Context(SPEC=1):
        np.testing.assert_array_equal(to_numpy(moved), np.arange(1 << 16).reshape(256, 256).T)


def test_the_new_outermost_loop_has_steps_for_all_threads() -> None:
    node = unread(64, 512, 512).permute((1, 2, 0)).contiguous()
    for threads, swaps in ((2, True), (16, False)):
        kernel = apply_heuristics(kernel_of(node, replace(MACHINE, threads=threads)))
        assert any(opt.op is OptOps.SWAP for opt in kernel.applied) is swaps


@pytest.mark.parametrize(
    ("node", "lines"),
    [
        (lambda: transposed(4096, 4096), 4),  # rows of the result at whole pages from each other
        (lambda: transposed(4096, 4000), 4),
        (lambda: transposed(4000, 4096), 2),
        (lambda: transposed(4096, 16384), 2),  # a cache has room for fewer rows that far apart
        (lambda: transposed(4096 + 64, 4096), 2),
        (lambda: transposed(128, 131072), 2),  # rows of the result 512 bytes apart
        (lambda: transposed(64, 262144), 0),  # 256: a page has all rows of a tile
        (lambda: transposed(40, 128, 3136), 2),
        (lambda: transposed(32, 64, 3136), 0),
        (lambda: transposed(80, 262144), 0),  # a third pair would do half of its rows again
        (lambda: transposed(2048, 2048), 0),  # stored in a cache
    ],
)
def test_adjacent_cache_lines_are_stored_close_in_time(node: Callable[[], LazyBuffer], lines: int) -> None:
    kernel = apply_heuristics(kernel_of(node()))
    assert [opt.amount for opt in kernel.applied if opt.op is OptOps.LOCAL] == [lines] * bool(lines)
    if lines:
        assert sum(axis.arg.ahead for axis in kernel.axes) == 4


@pytest.mark.parametrize("shape", [(2048, 4096), (3, 1024, 2064), (4112, 2048)])
def test_a_large_transposition_is_right(shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    node = from_numpy(x).permute((*range(len(shape) - 2), len(shape) - 1, len(shape) - 2)).contiguous()
    with Context(SPEC=1):
        np.testing.assert_array_equal(to_numpy(node), x.swapaxes(-1, -2))

"""Counts of the bytes that each row of a kernel rereads, from each cache and from memory."""

from __future__ import annotations

import pytest

from tinyexplore import Tensor
from tinyexplore.schedule.row_loops import RowLoops, bytes_every_row_reads
from tinyexplore.uop import Axis, AxisKind, UOp


def with_dilated_blocks(x: Tensor, blocks: int) -> Tensor:
    """A residual network: each block adds the sums of three elements, twice as far apart as in the block before."""
    for number in range(blocks):
        reach = 2**number
        x = x + x.pad(((0, 0), (reach, reach)))._window(1, 3, dilation=reach).sum(-1)
    return x


def read_by_each_row(x: Tensor) -> int | None:
    rows, columns = (UOp.range(size, Axis(axis, AxisKind.GLOBAL)) for axis, size in enumerate(x.shape))
    return bytes_every_row_reads(x.lazydata, (rows, columns), RowLoops((1,), (rows,)))


def test_rows_share_loop_invariant_values() -> None:
    x, shared = Tensor.rand(8, 64).realize(), Tensor.rand(1, 64).realize()
    assert read_by_each_row(x + 1) == 0
    assert read_by_each_row(x + shared.expand(8, 64)) == 4  # of the element at one column
    assert read_by_each_row(x + shared.sum(1, keepdim=True).expand(8, 64)) == 256


@pytest.mark.parametrize("blocks", [1, 4])
def test_reads_of_a_short_residual_network_are_counted(blocks: int) -> None:
    assert read_by_each_row(with_dilated_blocks(Tensor.rand(8, 4096).realize(), blocks)) == 0


def test_reads_that_double_with_each_block_are_not_all_followed() -> None:
    assert read_by_each_row(with_dilated_blocks(Tensor.rand(8, 2**20).realize(), 18)) is None

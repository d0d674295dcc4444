"""Tensors of more than 2**32 elements: every index is 64 bits wide, in reads, writes, reductions and gathers."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import GlobalCounters, Tensor, dtypes

SIZE = (1 << 32) + 17
MARKS = {0: 1, (1 << 31) - 1: 2, (1 << 31) + 5: 3, (1 << 32) + 3: 4, SIZE - 1: 5}


def mostly_nothing() -> np.ndarray:
    """4 GiB of address space: what was never written to takes no memory."""
    array = np.zeros(SIZE, dtype=np.uint8)
    for place, value in MARKS.items():
        array[place] = value
    return array


@pytest.fixture(params=["LLVM", "CLANG"])
def large(request: pytest.FixtureRequest) -> Tensor:
    return Tensor(mostly_nothing(), device=request.param)


def test_slices_and_indices_beyond_four_gib(large: Tensor) -> None:
    assert large.nbytes() == SIZE
    assert large[-14:].tolist() == [4, *[0] * 12, 5]
    assert (large[(1 << 31) - 2 : (1 << 31) + 6] * 2).tolist() == [0, 4, 0, 0, 0, 0, 0, 6]
    assert large.flip(0)[:2].tolist() == [5, 0]
    assert large[1 << 31 :: 1 << 31].tolist() == [0, 0]
    assert large[3 :: 1 << 32].tolist() == [0, 4]
    places = Tensor([*MARKS, 7, -1], dtype=dtypes.int64, device=large.device)
    assert large[places].tolist() == [*MARKS.values(), 0, 5]
    rows = large[1:].reshape(16, (1 << 28) + 1)
    assert rows[15, -2:].tolist() == [0, 5]
    assert rows.T[-1].tolist() == [*[0] * 15, 5]


@pytest.mark.slow
def test_operations_on_more_than_four_gib() -> None:
    GlobalCounters.reset()
    before = GlobalCounters.mem_used
    large = Tensor(mostly_nothing())
    assert (large != 0).sum().item() == len(MARKS)
    assert large.max().item() == 5
    assert large.argmax().item() == SIZE - 1
    plus = (large.pad(((1, 0),)) + 1).contiguous().realize()  # every element is written at another place
    assert plus[-2:].tolist() == [1, 6]
    places = Tensor([1 << 31, (1 << 31) + 6, (1 << 32) + 4], dtype=dtypes.int64)
    assert plus[places].tolist() == [3, 4, 5]
    del plus
    counted = Tensor.arange(SIZE, dtype=dtypes.int64)
    assert (counted * 3)[-2:].tolist() == [3 * SIZE - 6, 3 * SIZE - 3]
    assert GlobalCounters.mem_peak - before < SIZE + (1 << 24)

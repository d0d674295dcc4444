"""While a kernel is compiled, and no longer, the memory of its result is made ready."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest

from tests.graphs import from_numpy
from tinyexplore import Tensor
from tinyexplore.engine.runner import MOST_ROOM_BYTES, STEP_BYTES, make_room
from tinyexplore.runtime.host import HOST_ALLOCATOR
from tinyexplore.schedule import ScheduleItem, create_schedule
from tinyexplore.uop import Ops
from tinyexplore.util import GlobalCounters


def scheduled(*sizes: int) -> Sequence[ScheduleItem]:
    """Kernels with a result of as many float32 each."""
    x = from_numpy(np.zeros(1, np.float32))
    return create_schedule([x.expand((size,)).alu(Ops.NEG).contiguous() for size in sizes])


def stock(*sizes: int) -> int:
    """How many bytes more the allocator has in stock once there is room for results of as many float32."""
    items = scheduled(*sizes)
    HOST_ALLOCATOR.empty_cache()
    used, peak = GlobalCounters.mem_used, GlobalCounters.mem_peak
    make_room(items, lambda: True)
    assert GlobalCounters.mem_used == used
    assert GlobalCounters.mem_peak <= max(peak, used + 4 * max(sizes))
    assert all(not buffer.is_allocated for item in items for buffer in item.buffers[:1])
    return HOST_ALLOCATOR.cached_bytes


def test_memory_for_a_result_is_in_stock() -> None:
    assert stock(1 << 20) == 4 << 20
    assert stock(MOST_ROOM_BYTES) == 4 * MOST_ROOM_BYTES  # of one kernel all is wanted for certain


def test_neither_little_nor_very_much_of_several() -> None:
    assert stock(1 << 10) == 0
    assert stock(1 << 20, MOST_ROOM_BYTES) == 4 << 20


def test_it_ends_when_the_kernel_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[int] = []
    touch = ctypes.memset

    def noted(address: int, value: int, nbytes: int) -> None:
        touched.append(address)
        touch(address, value, nbytes)

    monkeypatch.setattr(ctypes, "memset", noted)
    (item,) = scheduled(4 << 20)
    make_room([item], lambda: len(touched) < 3)
    assert [address - touched[0] for address in touched] == [0, STEP_BYTES, 2 * STEP_BYTES]
    result = (Tensor.zeros(4 << 20).contiguous().realize() - 1.28515625).realize()  # kernels that nobody made before
    assert (result.numpy() == np.float32(-1.28515625)).all()

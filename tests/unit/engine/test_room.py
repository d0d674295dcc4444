"""While a kernel is compiled, the memory of its result is made ready."""

from __future__ import annotations

import numpy as np

from tests.graphs import from_numpy
from tinyexplore.engine.runner import MOST_ROOM_BYTES, make_room
from tinyexplore.runtime.host import HOST_ALLOCATOR
from tinyexplore.schedule import create_schedule
from tinyexplore.uop import Ops
from tinyexplore.util import GlobalCounters


def stock(elements: int) -> int:
    """How many bytes more the allocator has in stock once there is room for a result of as many float32."""
    x = from_numpy(np.zeros(1, np.float32)).expand((elements,))
    items = create_schedule([x.alu(Ops.NEG).contiguous()])
    HOST_ALLOCATOR.empty_cache()
    used, peak = GlobalCounters.mem_used, GlobalCounters.mem_peak
    make_room(items)
    assert GlobalCounters.mem_used == used
    assert GlobalCounters.mem_peak <= max(peak, used + 4 * elements)
    assert all(not buffer.is_allocated for item in items for buffer in item.buffers[:1])
    return HOST_ALLOCATOR.cached_bytes


def test_memory_for_a_result_is_in_stock() -> None:
    assert stock(1 << 20) == 4 << 20


def test_neither_little_nor_very_much() -> None:
    assert stock(1 << 10) == 0
    assert stock(MOST_ROOM_BYTES) == 0

"""Selects the first elements of long rows without sorting the rows.

    for each bit, the highest first: n-th key |= bit if fewer than n keys < n-th key | bit     # a sum
    for each key: less, equal += key < n-th key, key == n-th key                               # a scan
    candidates[less or, behind those, equal] = index                                           # SCATTER
    candidates.sort()

Each bit takes one sum over a row. One kernel computes the sums of a few bits and reads a row repeatedly while it is in
a cache.
"""

from __future__ import annotations

from typing import TypeVar

from tinyexplore.dtype import dtypes
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.radix import comparable

T = TypeVar("T", bound="Indexing")
# 8 bits: as fast, but twice as long to compile. All kernels share one program, because the bit is in memory
BITS_OF_KERNEL = 4
SHORT_COUNTS = 1 << 15  # shorter rows are counted in 16 bits


def is_selected(length: int, count: int) -> bool:
    """Whether `selected_indices`, with a sort of the selection, takes less time than sorting the rows."""
    return 2 * count <= length


def selected_indices(x: T, count: int, descending: bool) -> T:
    """Returns for each row of `x` (rows, length) the indices of its first `count` elements in sorted order, unsorted.

    Of equal elements, those with the lowest indices are selected. Equal selected elements are in the order of their
    indices.
    """
    key = comparable(x)
    key = (key ^ -1 if descending else key).contiguous()
    last_key = nth_key(key, count)
    less_count, equal_count = _count_up_to(key, last_key)
    column = (key < last_key).where(less_count - 1, key.eq(last_key).where(less_count[:, -1:] + equal_count - 1, count))
    selected = key._const(0, dtypes.default_int, (key.shape[0], count))
    positions = key._positions_along(1, selected.dtype)._broadcast_to(key.shape)
    return selected._scatter_into(None, 1, column, positions)


def nth_index(x: T, count: int) -> T:
    """Returns for each row of `x` (rows, length) the index of the element that sorting would put at position `count` -
    1."""
    key = comparable(x).contiguous()
    nth = nth_key(key, count)
    less_count, equal_count = _count_up_to(key, nth)
    is_it = key.eq(nth) & (less_count[:, -1:] + equal_count).eq(count)
    return is_it.where(key._positions_along(1, dtypes.default_int), 0).max(1, keepdim=True)


def nth_key(key: T, count: int) -> T:
    """Returns the `count`-th least element of each row of ints, as (rows, 1)."""
    rows, lowest = key.shape[0], int(dtypes.min(key.dtype))
    result = key._const(lowest, key.dtype, (rows, 1)).contiguous()
    bit = key._const(lowest, key.dtype, (1, 1)).contiguous()  # the search starts at `lowest`, so bits are inverted
    for start_bit in range(0, 8 * key.dtype.itemsize, BITS_OF_KERNEL):
        for _ in range(BITS_OF_KERNEL):
            candidate = result ^ bit
            less_count = (key < candidate).sum(1, keepdim=True, dtype=dtypes.default_int)
            result = (less_count < count).where(candidate, result)
            bit = (bit >> 1) & int(dtypes.max(key.dtype))
        # another shape than the next kernel's result, so that the scheduler does not fuse them
        shape = (rows, 1) if start_bit // BITS_OF_KERNEL % 2 else (1, rows)
        result, bit = result.reshape(shape).contiguous().reshape((rows, 1)), bit.contiguous()
    return result


def _count_up_to(key: T, pivot: T) -> tuple[T, T]:
    """Counts the keys up to each position that are less than `pivot` of the row, and those equal to it."""
    dtype, half_bits = (dtypes.int32, 16) if key.shape[1] < SHORT_COUNTS else (dtypes.int64, 32)
    packed_counts = ((key < pivot).cast(dtype) + (key.eq(pivot).cast(dtype) << half_bits)).cumsum(1)
    return (packed_counts & ((1 << half_bits) - 1)).cast(dtypes.default_int), (packed_counts >> half_bits).cast(
        dtypes.default_int
    )

"""Radix sort of long axes, lowest digit first: one pass of five kernels for each digit.

    for each block of a row: count[digit of x] += 1                            # SCATTER
    first[digit, block] = number of elements that come before                  # a running sum of the counts
    for each block: position = first[digit of x]; first[digit of x] += 1       # FETCH_ADD
    y[position] = x                                                            # WRITE

A pass is stable, so after the last pass all digits are in order. Threads share the blocks. The position of the digit is
a number in memory, so the same kernels do all passes.

If the indices are needed, an element is one int64: its key in the upper half, its index in the lower half. So equal
elements keep their order, and the sort gathers nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer, ShardedBuffer
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    pass

T = TypeVar("T", bound="Indexing")
MAX_DIGIT_BITS = 11  # the written positions must fit in an L2 cache, and the counts in L1
STEP_COST, COUNT_COST = 3, 2  # approximate costs of an element and of a count, in a pass
SHORTEST_BLOCK = 1 << 14
MAX_BLOCKS = 16
PLACE_BITS = 32
LOWER = (1 << PLACE_BITS) - 1
MAX_SELECTED_ELEMENTS = 128  # up to this many first elements are found one by one, with one or two kernels each
MAX_READS_PER_ELEMENT = 24  # how often each element may be examined; more takes as long as sorting
TWO_LEVEL_RATIO = 2  # the factor of fewer examined elements that pays for the further kernels


def sorted_indices(x: T, descending: bool) -> T:
    """Returns for each row of `x` (rows, length) the indices that sort it, as int64. Equal elements keep their
    order."""
    key = ordered_int(x)
    if descending:
        key = key ^ -1
    if x.dtype.itemsize < 8:
        return _sort_indices(key)
    # 64 bits and an index do not fit into one int64: sort by the lower half, then, keeping that order, by the upper
    by_low_word = _sort_indices((key & 0xFFFFFFFF) - (1 << 31))
    by_high_word = _sort_indices((key >> 32).gather(1, by_low_word))
    return by_low_word.gather(1, by_high_word)


def first_indices(x: T, count: int, descending: bool) -> T:
    """Returns the first `count` columns of `sorted_indices`, by searching `count` times for the next least element.

    For elements of less than 64 bits. A long row is divided into runs. Only the `count` runs with the least minima are
    searched: each run that has one of the first elements has its own minimum among them.
    """
    key = ordered_int(x)
    rows, length = x.shape
    packed = _pack_with_indices(key ^ -1 if descending else key)
    size = run_size(length, count)
    if size == 1:
        return _find_least_elements(packed.contiguous(), count) & LOWER
    runs = -(-length // size)
    padded = packed.pad(((0, 0), (0, runs * size - length)), value=dtypes.max(dtypes.int64))
    run_minima = padded.reshape((rows, runs, size)).min(2).contiguous()
    run_numbers = (_find_least_elements(run_minima, count) & LOWER) // size
    indices = (run_numbers.unsqueeze(2) * size + x._wrap(LazyBuffer.iota(size, dtypes.int64, x.device))).reshape(
        (rows, count * size)
    )
    is_inside = indices < length
    values_there = ordered_int(x.gather(1, indices.minimum(length - 1)))
    candidates = _combine_with_indices(values_there ^ -1 if descending else values_there, indices)
    return _find_least_elements(is_inside.where(candidates, dtypes.max(dtypes.int64)).contiguous(), count) & LOWER


def run_size(length: int, count: int) -> int:
    """Returns the length of the runs of a row whose minima are found first. 1: the whole row is searched.

    The row is examined once, its runs `count` times, and the elements of `count` runs `count` times. The sum is least
    at √(length / count).
    """
    size = math.isqrt(length // max(count, 1))
    return size if _count_examined(length, count, size) < count * length // TWO_LEVEL_RATIO else 1


def _count_examined(length: int, count: int, size: int) -> int:
    """Returns the number of elements that `first_indices` examines with runs of `size`."""
    return length + 2 * count * count * size


def is_search_cheaper(length: int, count: int) -> bool:
    """Whether `first_indices` takes less time than sorting, because it examines each element only a few times."""
    size = run_size(length, count)
    looks = count * length if size == 1 else _count_examined(length, count, size)
    return count <= MAX_SELECTED_ELEMENTS and looks <= MAX_READS_PER_ELEMENT * length


def _find_least_elements(packed: T, count: int) -> T:
    """Returns the `count` least elements of each row, in order. All elements differ."""
    rows = packed.lazydata
    largest = _fill_like(int(dtypes.max(dtypes.int64)), rows)
    minima = [rows.reduce(Ops.MIN, (1,))]
    while len(minima) < count:
        is_later = minima[-1].expand(rows.shape).alu(Ops.CMPLT, rows)
        minima.append(is_later.alu(Ops.WHERE, rows, largest).reduce(Ops.MIN, (1,)))
    first_minimum, *later_minima = map(packed._wrap, minima)
    return first_minimum.cat(*later_minima, dim=1)


def sort_rows(x: T, descending: bool) -> T:
    """Sorts each row of `x` (rows, length), without indices. All NaNs become the same NaN.

    Equal elements need no order, so an element of 32 bits is not packed with its index.
    """
    key = _order(x)
    rows = _sort_rows(key ^ -1 if descending else key, 0)
    return _undo_order(rows ^ -1 if descending else rows, x)


def _order(x: T) -> T:
    """Converts elements to int32 (int64 for 64 bits) of the same order. -0.0 is less than 0.0, and NaN is last.

    The ints have as many bits as the floats. `_undo_order` is the inverse.
    """
    int_dtype = dtypes.int64 if x.dtype.itemsize == 8 else dtypes.int32
    if dtypes.is_unsigned(x.dtype) and x.dtype.itemsize == int_dtype.itemsize:
        return x.bitcast(int_dtype) ^ dtypes.min(int_dtype)
    if not dtypes.is_float(x.dtype):
        return x.cast(int_dtype)
    x = x.cast(dtypes.float64 if int_dtype is dtypes.int64 else dtypes.float32)
    return x.isnan().where(dtypes.max(int_dtype), _reverse_negative(x.bitcast(int_dtype)))


def _undo_order(key: T, like: T) -> T:
    """Inverts `_order`, for elements of the dtype of `like`."""
    if dtypes.is_unsigned(like.dtype) and like.dtype.itemsize == key.dtype.itemsize:
        return (key ^ dtypes.min(key.dtype)).bitcast(like.dtype)
    if not dtypes.is_float(like.dtype):
        return key.cast(like.dtype)
    float_dtype = dtypes.float64 if key.dtype is dtypes.int64 else dtypes.float32
    return _reverse_negative(key).bitcast(float_dtype).cast(like.dtype)


def _reverse_negative(bits: T) -> T:
    """Converts the bits of floats to ints of the same order (the bits of negative floats descend), and back."""
    return (bits < 0).where(bits ^ dtypes.max(bits.dtype), bits)


def comparable(x: T) -> T:
    """Converts elements to int32 (int64 for 64 bits) of the same order. NaN is last, and -0.0 equals 0.0."""
    return _order(x.eq(0).where(0, x) if dtypes.is_float(x.dtype) else x)


def ordered_int(x: T) -> T:
    """Converts elements to int64 of the same order, using 32 bits unless `x` has 64. NaN is last, and -0.0 equals
    0.0."""
    return comparable(x).cast(dtypes.int64)


def _pack_with_indices(key: T) -> T:
    """Packs each 32-bit key with its index: the key in the upper half, the index in the lower half."""
    return _combine_with_indices(key, key._positions_along(1, dtypes.int64))


def _combine_with_indices(key: T, indices: T) -> T:
    return (key << PLACE_BITS) | indices


def _sort_indices(key: T) -> T:
    """Returns the original indices of the keys of each row in sorted order, as int64 of 32 bits."""
    return _sort_rows(_pack_with_indices(key), PLACE_BITS) & LOWER


def _sort_rows(x: T, lowest: int) -> T:
    """Sorts each row of `x`, int32 or int64, by the bits from `lowest` on."""
    rows = x.lazydata
    if not isinstance(rows, ShardedBuffer):
        return x._wrap(_sort_bits(rows, lowest))
    rows = rows.whole() if rows.axis == 1 else rows
    return x._wrap(ShardedBuffer([_sort_bits(row_part, lowest) for row_part in rows.parts], rows.axis))


def _sort_bits(x: LazyBuffer, lowest: int) -> LazyBuffer:
    """Sorts each row of `x` (rows, length) by the bits from `lowest` on."""
    rows, length = x.shape
    bits = 8 * x.dtype.itemsize - lowest
    blocks = max(1, min(MAX_BLOCKS // rows, length // SHORTEST_BLOCK))
    padded = length + -length % blocks
    count = digit_size(bits, padded // blocks)
    # inverting all bits but the sign gives the descending order; 0 becomes the greatest, so padding is last
    inverting_mask = _fill_like(int(dtypes.max(x.dtype)), x)
    x = x.alu(Ops.XOR, inverting_mask).pad(((0, 0), (0, padded - length)))
    x = x.reshape((rows * blocks, padded // blocks)).contiguous()
    scratch = _fill_like(0, x).contiguous()
    shift = _fill_like(lowest, x, (1, 1)).contiguous()
    for _ in range(0, bits, count):
        digits = x.alu(Ops.SHR, shift.expand(x.shape)).alu(Ops.XOR, _fill_like(-1, x))
        digits = digits.alu(Ops.AND, _fill_like((1 << count) - 1, x)).cast(dtypes.int32)
        x, scratch = scratch.written_at(_find_positions(digits, 1 << count, rows), x), x
        shift = shift.alu(Ops.ADD, _fill_like(count, shift)).contiguous()
    return x.reshape((rows, padded)).shrink(((0, rows), (0, length))).alu(Ops.XOR, inverting_mask)


def digit_size(bits: int, length: int) -> int:
    """Returns the number of bits of a digit, for blocks of `length` elements. A pass processes the elements and all
    counts."""

    def cost(size: int) -> int:
        return -(-bits // size) * (STEP_COST * length + (COUNT_COST << size))

    return min(range(1, MAX_DIGIT_BITS + 1), key=cost)


def _find_positions(digits: LazyBuffer, count: int, rows: int) -> LazyBuffer:
    """Returns the position of each element over all rows. `digits` (blocks of rows, length) have `count` different
    values."""
    blocks, length = digits.shape
    blocks_per_row = blocks // rows
    dtype = dtypes.int32 if blocks * length < 1 << 31 else dtypes.int64
    none, one = (LazyBuffer.const(number, dtype, digits.device) for number in (0, 1))
    counts = none.reshape((1, 1)).expand((blocks, count))
    counts = counts.scatter(Ops.ADD, 1, digits, one.reshape((1, 1)).expand(digits.shape))
    # over all digits of a row, and for each digit over all blocks, in this order
    in_order = counts.reshape((rows, blocks_per_row, count)).permute((0, 2, 1)).reshape((rows, count * blocks_per_row))
    less_count = in_order.scan(Ops.ADD, 1).alu(Ops.ADD, in_order.alu(Ops.NEG))
    row = LazyBuffer.iota(rows, dtype, digits.device).reshape((rows, 1)).expand(less_count.shape)
    less_count = less_count.alu(Ops.ADD, row.alu(Ops.MUL, _fill_like(blocks_per_row * length, row)))
    less_count = less_count.reshape((rows, count, blocks_per_row)).permute((0, 2, 1)).reshape((blocks, count))
    return less_count.fetch_add(digits)


def _fill_like(value: int, like: LazyBuffer, shape: tuple[int, ...] | None = None) -> LazyBuffer:
    """Returns a tensor filled with `value`, in the shape of `like` unless `shape` is given."""
    return LazyBuffer.const(value, like.dtype, like.device, like.shape if shape is None else shape)

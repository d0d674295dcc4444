"""Sorting long axes by their digits, the lowest first (radix sort): a pass of five kernels for each digit.

    for each block of a row: count[digit of x] += 1                     # SCATTER
    first[digit, block] = how many come before those                    # a running sum of the counts
    for each block: place = first[digit of x], which is one more then   # FETCH_ADD
    y[place] = x                                                        # WRITE

A pass keeps the order of what it finds equal, so that after the last one all digits are in order. Threads share the
blocks. Which bits the digit is depends on a number that is read from memory: all passes are done by the same kernels.

Where places are wanted, an element is one int64: its order in the upper half, which has the digits, and its place in
the lower. So equal elements keep their order, and nothing is gathered.
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
MOST_DIGIT_BITS = 11  # the places that so many digits are written to lie in an L2 cache, the counts in L1
STEP_COST, COUNT_COST = 3, 2  # of an element and of a count in a pass, about
SHORTEST_BLOCK = 1 << 14
MOST_BLOCKS = 16
PLACE_BITS = 32
LOWER = (1 << PLACE_BITS) - 1
WORTH_TWO_LEVELS = 2  # so many times less must be examined for the further kernels


def sorted_indices(x: T, descending: bool) -> T:
    """For each row of `x` (rows, length) the places of its elements in order, as int64; equal ones keep their order."""
    key = ordered_int(x)
    if descending:
        key = key ^ -1
    if x.dtype.itemsize < 8:
        return _sorted_places(key)
    # 64 bits and a place do not fit into one int64: first by the lower half, then, keeping that order, by the upper
    first = _sorted_places((key & 0xFFFFFFFF) - (1 << 31))
    second = _sorted_places((key >> 32).gather(1, first))
    return first.gather(1, second)


def first_indices(x: T, count: int, descending: bool) -> T:
    """The first `count` columns of `sorted_indices`: each is the least of what comes after the one before.

    For elements of less than 64 bits. Of a long row they are looked for in `count` runs of it only: those with the
    least first elements, for each run that has one of the first has its own least element among them.
    """
    key = ordered_int(x)
    rows, length = x.shape
    packed = _packed(key ^ -1 if descending else key)
    size = run_size(length, count)
    if size == 1:
        return _least(packed.contiguous(), count) & LOWER
    runs = -(-length // size)
    padded = packed.pad(((0, 0), (0, runs * size - length)), value=dtypes.max(dtypes.int64))
    least = padded.reshape((rows, runs, size)).min(2).contiguous()
    chosen = (_least(least, count) & LOWER) // size
    places = (chosen.unsqueeze(2) * size + x._wrap(LazyBuffer.iota(size, dtypes.int64, x.device))).reshape(
        (rows, count * size)
    )
    inside = places < length
    there = ordered_int(x.gather(1, places.minimum(length - 1)))
    candidates = _at_indices(there ^ -1 if descending else there, places)
    return _least(inside.where(candidates, dtypes.max(dtypes.int64)).contiguous(), count) & LOWER


def run_size(length: int, count: int) -> int:
    """How long the runs of a row are, of which the least elements are found first; 1: the whole row is looked through.

    The row once, then `count` times its runs and `count` times what `count` runs have: least at √(length / count).
    """
    size = math.isqrt(length // max(count, 1))
    return size if length + 2 * count * count * size < count * length // WORTH_TWO_LEVELS else 1


def _least(packed: T, count: int) -> T:
    """The `count` least elements of each row, no two of which are equal, in order."""
    smallest = [packed.min(1, keepdim=True)]
    while len(smallest) < count:
        smallest.append((packed > smallest[-1]).where(packed, dtypes.max(dtypes.int64)).min(1, keepdim=True))
    return smallest[0].cat(*smallest[1:], dim=1)


def in_order(x: T, descending: bool) -> T:
    """Each row of `x` (rows, length) sorted, without the places: elements that are equal have no order, so that one of
    32 bits need not be packed with its own. Every NaN becomes the same one.
    """
    key = _order(x)
    rows = _sorted_rows(key ^ -1 if descending else key, 0)
    return _of_order(rows ^ -1 if descending else rows, x)


def _order(x: T) -> T:
    """int32s (for elements of 64 bits, int64s) that compare as the elements of `x` do, and -0.0 as less than 0.0; NaN
    comes last. As many bits as floats have, from which `_of_order` makes them again."""
    same = dtypes.int64 if x.dtype.itemsize == 8 else dtypes.int32
    if dtypes.is_unsigned(x.dtype) and x.dtype.itemsize == same.itemsize:
        return x.bitcast(same) ^ dtypes.min(same)
    if not dtypes.is_float(x.dtype):
        return x.cast(same)
    x = x.cast(dtypes.float64 if same is dtypes.int64 else dtypes.float32)
    return x.isnan().where(dtypes.max(same), _ascending(x.bitcast(same)))


def _of_order(key: T, like: T) -> T:
    """What `_order` makes of the elements of `like`, made elements again."""
    if dtypes.is_unsigned(like.dtype) and like.dtype.itemsize == key.dtype.itemsize:
        return (key ^ dtypes.min(key.dtype)).bitcast(like.dtype)
    if not dtypes.is_float(like.dtype):
        return key.cast(like.dtype)
    wide = dtypes.float64 if key.dtype is dtypes.int64 else dtypes.float32
    return _ascending(key).bitcast(wide).cast(like.dtype)


def _ascending(bits: T) -> T:
    """The bits of floats, of which those of negative ones descend, as ints that ascend with them all; and back."""
    return (bits < 0).where(bits ^ dtypes.max(bits.dtype), bits)


def ordered_int(x: T) -> T:
    """int64s that compare as the elements of `x` do: of 32 bits, unless `x` has 64. NaN comes last, -0.0 is 0.0."""
    one_zero = x.eq(0).where(0, x) if dtypes.is_float(x.dtype) else x
    return _order(one_zero).cast(dtypes.int64)


def _packed(key: T) -> T:
    """Keys of 32 bits, each with its place below it."""
    return _at_indices(key, key._places(1, dtypes.int64))


def _at_indices(key: T, places: T) -> T:
    return (key << PLACE_BITS) | places


def _sorted_places(key: T) -> T:
    """Where the keys of each row, int64s of 32 bits, come from once they are sorted."""
    return _sorted_rows(_packed(key), PLACE_BITS) & LOWER


def _sorted_rows(x: T, lowest: int) -> T:
    """The rows of `x`, int32s or int64s, each in order of the bits from `lowest` on."""
    rows = x.lazydata
    if not isinstance(rows, ShardedBuffer):
        return x._wrap(_in_order(rows, lowest))
    rows = rows.whole() if rows.axis == 1 else rows
    return x._wrap(ShardedBuffer([_in_order(part, lowest) for part in rows.parts], rows.axis))


def _in_order(x: LazyBuffer, lowest: int) -> LazyBuffer:
    """`x` (rows, length), each row in order of the bits from `lowest` on."""
    rows, length = x.shape
    bits = 8 * x.dtype.itemsize - lowest
    blocks = max(1, min(MOST_BLOCKS // rows, length // SHORTEST_BLOCK))
    padded = length + -length % blocks
    count = digit_size(bits, padded // blocks)
    # all bits but the sign turned round are the order from the greatest, a 0, down: what is padded comes last
    turned = _filled(int(dtypes.max(x.dtype)), x)
    x = x.alu(Ops.XOR, turned).pad(((0, 0), (0, padded - length)))
    x = x.reshape((rows * blocks, padded // blocks)).contiguous()
    other = _filled(0, x).contiguous()
    shift = _filled(lowest, x, (1, 1)).contiguous()
    for _ in range(0, bits, count):
        digits = x.alu(Ops.SHR, shift.expand(x.shape)).alu(Ops.XOR, _filled(-1, x))
        digits = digits.alu(Ops.AND, _filled((1 << count) - 1, x)).cast(dtypes.int32)
        x, other = other.written_at(_places(digits, 1 << count, rows), x), x
        shift = shift.alu(Ops.ADD, _filled(count, shift)).contiguous()
    return x.reshape((rows, padded)).shrink(((0, rows), (0, length))).alu(Ops.XOR, turned)


def digit_size(bits: int, length: int) -> int:
    """How many bits a digit has, of blocks of `length` elements: a pass goes through these and through all counts."""

    def cost(size: int) -> int:
        return -(-bits // size) * (STEP_COST * length + (COUNT_COST << size))

    return min(range(1, MOST_DIGIT_BITS + 1), key=cost)


def _places(digits: LazyBuffer, count: int, rows: int) -> LazyBuffer:
    """Where each element goes, counted through all rows; of `digits` (blocks of rows, length) there are `count`."""
    blocks, length = digits.shape
    parts = blocks // rows
    dtype = dtypes.int32 if blocks * length < 1 << 31 else dtypes.int64
    none, one = (LazyBuffer.const(number, dtype, digits.device) for number in (0, 1))
    counts = none.reshape((1, 1)).expand((blocks, count))
    counts = counts.scatter(Ops.ADD, 1, digits, one.reshape((1, 1)).expand(digits.shape))
    # of all digits of a row, and of each in all of its blocks, in this order
    in_order = counts.reshape((rows, parts, count)).permute((0, 2, 1)).reshape((rows, count * parts))
    before = in_order.scan(Ops.ADD, 1).alu(Ops.ADD, in_order.alu(Ops.NEG))
    row = LazyBuffer.iota(rows, dtype, digits.device).reshape((rows, 1)).expand(before.shape)
    before = before.alu(Ops.ADD, row.alu(Ops.MUL, _filled(parts * length, row)))
    before = before.reshape((rows, count, parts)).permute((0, 2, 1)).reshape((blocks, count))
    return before.fetch_add(digits)


def _filled(value: int, like: LazyBuffer, shape: tuple[int, ...] | None = None) -> LazyBuffer:
    """`value` everywhere, in the shape of `like` unless told otherwise."""
    return LazyBuffer.const(value, like.dtype, like.device, like.shape if shape is None else shape)

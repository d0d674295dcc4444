"""Sorting long axes by Batcher's bitonic network: log² n / 2 rounds in which each element meets one other.

An element becomes one int64: its order in the upper half, its place in the lower. So equal elements keep their order
by themselves, one `min` and one `max` exchange a pair together with its places, and nothing is ever gathered. Where
only the elements are wanted, they are int32s without places.

    for m in 1 … log n:                  # pairs of sorted runs of 2^(m-1), one of each in descending order, are merged
        for bit in m-1 … 0:
            for each pair that differs in this bit of its place alone:
                a[i], a[j] = min, max        # or max, min, in every second run of 2^m: it is to descend

What is to descend lies there complemented, so that all runs ascend; the last kernel of a merge complements what the
next merge wants otherwise. Which rounds a kernel does and what it complements depends on the length of a run, and that
it reads from memory: all merges are done by the same few kernels, one for each three bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

# Rounds per kernel. k rounds on k bits compute each element from 2^k others, the first round 2^(k-1) times over before
# common work is found again; above 3 that is more than fusion's limit for light repeats, and the memory traffic that
# is left to save does not pay for the longer kernels. Without a cut every round would double the expression.
ROUNDS = 3
LINE_BYTES = 64  # of neighbours in memory that go through the network side by side
PLACE_BITS = 32
LOWER = (1 << PLACE_BITS) - 1
WORTH_TWO_LEVELS = 2  # so many times less must be looked at for the further kernels


def places_in_order(x: Tensor, descending: bool) -> Tensor:
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


def first_places(x: Tensor, count: int, descending: bool) -> Tensor:
    """The first `count` columns of `places_in_order`: each is the least of what comes after the one before.

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
    places = (chosen.unsqueeze(2) * size + chosen._counted(size, dtypes.int64)).reshape((rows, count * size))
    inside = places < length
    there = ordered_int(x.gather(1, places.minimum(length - 1)))
    candidates = _at_places(there ^ -1 if descending else there, places)
    return _least(inside.where(candidates, dtypes.max(dtypes.int64)).contiguous(), count) & LOWER


def run_size(length: int, count: int) -> int:
    """How long the runs of a row are, of which the least elements are found first; 1: the whole row is looked through.

    The row once, then `count` times its runs and `count` times what `count` runs have: least at √(length / count).
    """
    size = math.isqrt(length // max(count, 1))
    return size if length + 2 * count * count * size < count * length // WORTH_TWO_LEVELS else 1


def _least(packed: Tensor, count: int) -> Tensor:
    """The `count` least elements of each row, no two of which are equal, in order."""
    found = [packed.min(1, keepdim=True)]
    while len(found) < count:
        found.append((packed > found[-1]).where(packed, dtypes.max(dtypes.int64)).min(1, keepdim=True))
    return found[0].cat(*found[1:], dim=1)


def in_order(x: Tensor, descending: bool) -> Tensor:
    """Each row of `x` (rows, length) sorted, without the places: elements that are equal have no order, so that one of
    32 bits need not be packed with its own. Every NaN becomes the same one.
    """
    key = _order(x)
    rows = _sorted_rows(key ^ -1 if descending else key)
    return _of_order(rows ^ -1 if descending else rows, x)


def _order(x: Tensor) -> Tensor:
    """int32s (for elements of 64 bits, int64s) that compare as the elements of `x` do, and -0.0 as less than 0.0; NaN
    comes last. As many bits as floats have, from which `_of_order` makes them again."""
    same = dtypes.int64 if x.dtype.itemsize == 8 else dtypes.int32
    if dtypes.is_unsigned(x.dtype) and x.dtype.itemsize == same.itemsize:
        return x.bitcast(same) ^ dtypes.min(same)
    if not dtypes.is_float(x.dtype):
        return x.cast(same)
    x = x.cast(dtypes.float64 if same is dtypes.int64 else dtypes.float32)
    return x.isnan().where(dtypes.max(same), _ascending(x.bitcast(same)))


def _of_order(key: Tensor, like: Tensor) -> Tensor:
    """What `_order` makes of the elements of `like`, made elements again."""
    if dtypes.is_unsigned(like.dtype) and like.dtype.itemsize == key.dtype.itemsize:
        return (key ^ dtypes.min(key.dtype)).bitcast(like.dtype)
    if not dtypes.is_float(like.dtype):
        return key.cast(like.dtype)
    wide = dtypes.float64 if key.dtype is dtypes.int64 else dtypes.float32
    return _ascending(key).bitcast(wide).cast(like.dtype)


def _ascending(bits: Tensor) -> Tensor:
    """The bits of floats, of which those of negative ones descend, as ints that ascend with them all; and back."""
    return (bits < 0).where(bits ^ dtypes.max(bits.dtype), bits)


def ordered_int(x: Tensor) -> Tensor:
    """int64s that compare as the elements of `x` do: of 32 bits, unless `x` has 64. NaN comes last, -0.0 is 0.0."""
    one_zero = (x == 0).where(0, x) if dtypes.is_float(x.dtype) else x
    return _order(one_zero).cast(dtypes.int64)


def _packed(key: Tensor) -> Tensor:
    """Keys of 32 bits, each with its place below it."""
    return _at_places(key, key._places(1, dtypes.int64))


def _at_places(key: Tensor, places: Tensor) -> Tensor:
    return (key << PLACE_BITS) | places


def _sorted_places(key: Tensor) -> Tensor:
    """Where the keys of each row, int64s of 32 bits, come from once they are sorted."""
    return _sorted_rows(_packed(key)) & LOWER


def _sorted_rows(x: Tensor) -> Tensor:
    """The rows of `x`, int32s or int64s, each in order."""
    rows, length = x.shape
    bits = max(1, (length - 1).bit_length())
    # What stands side by side in memory: the rows, and where these are few, columns that one row is cut into. Places in
    # the order are counted down the columns: most rounds then are between whole lines of memory, lane by lane.
    across = 0
    while rows << across < LINE_BYTES // x.dtype.itemsize and across < bits // 2:
        across += 1
    down = bits - across
    padded = x.pad(((0, 0), (0, (1 << bits) - length)), value=dtypes.max(x.dtype))
    lines = padded.reshape((rows, 1 << down, 1 << across)).permute((1, 0, 2))
    # from here on in LazyBuffers: there are thousands of them, and no gradient of a place
    in_order = lines._wrap(_sorted_lines(lines.lazydata, down, bits))
    return in_order.permute((1, 2, 0)).reshape((rows, 1 << bits)).shrink(((0, rows), (0, length)))


def _sorted_lines(lines: LazyBuffer, down: int, bits: int) -> LazyBuffer:
    """`lines`, (2^down, rows, columns), each row's 2^bits elements in order, counted down the columns."""
    begun = min(2, down)  # merges in the first kernel
    run = _filled(1 << begun, lines, (1,))
    orders = _orders(lines, 0)
    lines = _complemented(lines, orders.alu(Ops.AND, _filled(1 << begun, orders))).contiguous()
    lines = _complemented(_first_runs(lines, begun), _turns(lines, 0, run)).contiguous()
    run = run.contiguous()
    for merged in range(begun + 1, bits + 1):
        run = run.alu(Ops.ADD, run).contiguous()
        cuts = [*range(0, min(merged, down), ROUNDS), *((down,) if merged > down else ())]
        for low in reversed(cuts):
            lines = _rounds(lines, run, low, down)
    return lines


def _first_runs(lines: LazyBuffer, merged: int) -> LazyBuffer:
    """Single elements become sorted runs of 2^merged."""
    shape = lines.shape
    lines = lines.reshape((shape[0] >> merged, *(2,) * merged, *shape[1:]))
    for top in range(1, merged + 1):
        axes = tuple(range(merged - top + 1, merged + 1))
        lines = _exchanged(lines, axes[0], axes)  # mirrored, both halves may ascend
        for axis in axes[1:]:
            lines = _exchanged(lines, axis, (axis,))
    return lines.reshape(shape)


def _rounds(lines: LazyBuffer, run: LazyBuffer, low: int, down: int) -> LazyBuffer:
    """The rounds of one kernel in the merge to runs of length `run`.

    They are those on up to ROUNDS bits from `low` on: of higher bits than a run has, none changes anything.
    """
    shape = lines.shape
    tiled: tuple[int, ...]
    if low == down:  # the bits above `down` are in the last axis
        count, first = shape[2].bit_length() - 1, 2
        tiled = (*shape[:2], *(2,) * count)
    else:
        count, first = min(ROUNDS, down - low), 1
        below = (1 << low, shape[1] * shape[2]) if low else shape[1:]
        tiled = (shape[0] >> (low + count), *(2,) * count, *below)
    lines = lines.reshape(tiled)
    length = _spread(run, lines)
    for axis in range(first, first + count):
        bit = low + count - 1 - (axis - first)
        happens = _filled(1 << bit, lines).alu(Ops.CMPLT, length)
        lines = happens.alu(Ops.WHERE, _exchanged(lines, axis, (axis,)), lines)
    if not low:  # the last kernel of this merge
        lines = _complemented(lines, _turns(lines, count, run))
    return lines.reshape(shape).contiguous()  # in the one shape from which every tiling is plain strides


def _exchanged(lines: LazyBuffer, axis: int, mirrored: tuple[int, ...]) -> LazyBuffer:
    """Of each element and its partner, mirrored in some axes: the smaller where `axis` is 0, the larger where it is 1.

    No halves are cut out and joined again: a kernel that computes both sides of `axis` in one step has each pair once.
    """
    partner = lines.flip(mirrored)
    second = LazyBuffer.iota(2, dtypes.bool, lines.device)
    second = second.reshape(tuple([2 if place == axis else 1 for place in range(len(lines.shape))]))
    smaller, larger = lines.alu(Ops.MIN, partner), lines.alu(Ops.MAX, partner)
    return second.expand(lines.shape).alu(Ops.WHERE, larger, smaller)


def _orders(lines: LazyBuffer, count: int) -> LazyBuffer:
    """The place in the order of each element of `lines`, without its lowest bits: those are the axes 1 to `count`."""
    height, *middle, columns = lines.shape
    places = LazyBuffer.iota(height * columns, lines.dtype, lines.device)
    return places.reshape((columns, height)).permute((1, 0)).reshape((height, *(1 for _ in middle), columns))


def _turns(lines: LazyBuffer, count: int, run: LazyBuffer) -> LazyBuffer:
    """Not 0 where a run of length `run` descends in the merge to come, or descended in the one done, but not in both.

    Runs descend whose number is odd: two neighbours are bitonic then. Adding `run` to a place carries that bit into
    the next one, which says so of the runs of twice the length.
    """
    orders = _orders(lines, count)
    run = run.alu(Ops.SHR, _filled(count, run))
    return orders.alu(Ops.ADD, _spread(run, orders)).alu(Ops.AND, _spread(run.alu(Ops.ADD, run), orders))


def _complemented(lines: LazyBuffer, where: LazyBuffer) -> LazyBuffer:
    """What descends (`where` is not 0), so that it ascends."""
    descends = where.alu(Ops.CMPNE, _filled(0, where)).expand(lines.shape)
    return descends.alu(Ops.WHERE, lines.alu(Ops.XOR, _filled(-1, lines)), lines)


def _filled(value: int, like: LazyBuffer, shape: tuple[int, ...] | None = None) -> LazyBuffer:
    """`value` everywhere, in the shape of `like` unless told otherwise."""
    return LazyBuffer.const(value, like.dtype, like.device, like.shape if shape is None else shape)


def _spread(number: LazyBuffer, like: LazyBuffer) -> LazyBuffer:
    """The one element of `number` in the shape of `like`."""
    return number.reshape((1,) * len(like.shape)).expand(like.shape)

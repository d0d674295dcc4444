"""Sorting long axes by Batcher's bitonic network: log² n / 2 rounds in which each element meets one other.

An element becomes one int64: its order in the upper half, its place in the lower. So equal elements keep their order
by themselves, one `min` and one `max` exchange a pair together with its places, and nothing is ever gathered.

    for m in 1 … log n:                      # sorted runs of 2^(m-1) are merged to runs of 2^m
        for each pair mirrored in its run:   # a[i], a[2^m - 1 - i]: both halves ascend, mirrored they are bitonic
            a[i], a[j] = min, max
        for bit in m-2 … 0:
            for each pair that differs in this bit of its place alone:
                a[i], a[j] = min, max
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

# Rounds per kernel. k rounds on k bits compute each element from 2^k others, the first round 2^(k-1) times over before
# common work is found again; above 3 that is more than fusion's limit for light repeats, and the memory traffic that
# is left to save does not pay for the longer kernels. Without a cut every round would double the expression.
ROUNDS = 3
LANES = 8  # neighbours in memory that go through the network side by side
PLACE_BITS = 32


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

    For elements of less than 64 bits.
    """
    key = ordered_int(x)
    packed = _packed(key ^ -1 if descending else key).contiguous()
    found = [packed.min(1, keepdim=True)]
    while len(found) < count:
        found.append((packed > found[-1]).where(packed, dtypes.max(dtypes.int64)).min(1, keepdim=True))
    return found[0].cat(*found[1:], dim=1) & ((1 << PLACE_BITS) - 1)


def ordered_int(x: Tensor) -> Tensor:
    """int64s that compare as the elements of `x` do: of 32 bits, unless `x` has 64. NaN comes last."""
    dtype = x.dtype
    if dtype is dtypes.uint64:
        return x.bitcast(dtypes.int64) ^ dtypes.min(dtypes.int64)
    if dtype is dtypes.uint32:
        return x.cast(dtypes.int64) - (1 << 31)
    if not dtypes.is_float(dtype):
        return x.cast(dtypes.int64)
    wide = dtypes.float64 if dtype is dtypes.float64 else dtypes.float32
    same_bits = dtypes.int64 if wide is dtypes.float64 else dtypes.int32
    largest = dtypes.max(same_bits)
    x = x.cast(wide)
    bits = (x == 0).where(0.0, x).bitcast(same_bits)  # -0.0 is 0.0
    # the bits of floats ascend as the floats do; those of negative ones descend
    ascending = (bits < 0).where(bits ^ largest, bits)
    return x.isnan().where(largest, ascending).cast(dtypes.int64)


def _packed(key: Tensor) -> Tensor:
    """Keys of 32 bits, each with its place below it."""
    return (key << PLACE_BITS) | key._places(1, dtypes.int64)


def _sorted_places(key: Tensor) -> Tensor:
    """Where the keys of each row, int64s of 32 bits, come from once they are sorted."""
    rows, length = key.shape
    bits = max(1, (length - 1).bit_length())
    # What stands side by side in memory: the rows, and where these are few, columns that one row is cut into. Places in
    # the order are counted down the columns: most rounds then are between whole lines of memory, lane by lane.
    across = 0
    while rows << across < LANES and across < bits // 2:
        across += 1
    down = bits - across
    padded = _packed(key).pad(((0, 0), (0, (1 << bits) - length)), value=dtypes.max(dtypes.int64))
    lines = padded.reshape((rows, 1 << down, 1 << across)).permute((1, 0, 2)).contiguous()
    for merged in range(1, bits + 1):
        lines = _merge(lines, merged, down)
    in_order = lines.permute((1, 2, 0)).reshape((rows, 1 << bits)).shrink(((0, rows), (0, length)))
    return in_order & ((1 << PLACE_BITS) - 1)


def _merge(lines: Tensor, merged: int, down: int) -> Tensor:
    """Pairs of sorted runs of 2^(merged - 1) become sorted runs of 2^merged; `lines` is (2^down, rows, columns)."""
    shape = lines.shape
    tiled: tuple[int, ...]
    below: tuple[int, ...]
    top = merged
    while top > 0:
        # cuts at the same bits in every merge: all but the first kernel of a merge are those of the merge before
        start = down if top > down else 0  # the bits above `down` are in the last axis
        low = start + (top - 1 - start) // ROUNDS * ROUNDS
        sides = (2,) * (top - low)
        if start:
            tiled = (*shape[:2], shape[2] >> (top - down), *sides, 1 << (low - down))
            first, below = 3, (0, 3 + len(sides))  # the axes of lower bits
        else:
            tiled = (shape[0] >> top, *sides, 1 << low, prod(shape[1:]))
            first, below = 1, (1 + len(sides),)
        axes = tuple(range(first, first + len(sides)))
        lines = lines.reshape(tiled)
        for axis in axes:
            mirrored = (*axes, *below) if top == merged and axis == first else (axis,)
            lines = _exchanged(lines, axis, mirrored)
        lines = lines.reshape(shape)
        if merged > 1:  # the single round of the first merge goes with those of the second
            lines = lines.contiguous()  # in the one shape from which every tiling is plain strides
        top = low
    return lines


def _exchanged(lines: Tensor, axis: int, mirrored: tuple[int, ...]) -> Tensor:
    """Of each element and its partner, mirrored in some axes: the smaller where `axis` is 0, the larger where it is 1.

    No halves are cut out and joined again: a kernel that computes both sides of `axis` in one step has each pair once.
    """
    partner = lines.flip(mirrored)
    smaller, larger = lines._alu(Ops.MIN, partner), lines._alu(Ops.MAX, partner)
    return (lines._places(axis) == 0).where(smaller, larger)

"""Collectives on the parts of a sharded value: concatenation, and reductions over all parts."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.lazy.lazybuffer import LazyBuffer
from tinyexplore.uop import OpGroups, Ops

MIN_RING_ELEMENTS = 1 << 18  # elements: with fewer, each device reduces the whole value itself


def bounds_of(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the (start, stop) of each of several consecutive parts of the given sizes."""
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes))]
    return [(stop - size, stop) for stop, size in zip(ends, sizes)]


def axis_bounds(shape: Sequence[int], axis: int, bounds: tuple[int, int]) -> list[tuple[int, int]]:
    """Returns the bounds of a shrink of one axis."""
    return [bounds if number == axis else (0, size) for number, size in enumerate(shape)]


def as_bits(value: LazyBuffer) -> LazyBuffer:
    """Reinterprets floats as unsigned ints, so that adding zeros does not change minus zero and NaN."""
    if not dtypes.is_float(value.dtype):
        return value
    bits = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}[value.dtype.itemsize]
    return value.bitcast(bits)


def concatenate(parts: Sequence[LazyBuffer], axis: int) -> LazyBuffer:
    """Concatenates values on one device along `axis`."""
    if len(parts) == 1:
        return parts[0]
    bounds = bounds_of([part.shape[axis] for part in parts])
    padded = []
    for part, (start, stop) in zip(parts, bounds):
        amounts = [(start, bounds[-1][1] - stop) if number == axis else (0, 0) for number in range(len(part.shape))]
        padded.append(as_bits(part).pad(amounts))
    total = _combine(Ops.ADD, padded)
    return total if total.dtype is parts[0].dtype else total.bitcast(parts[0].dtype)


def all_reduce(op: Ops, parts: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """Reduces equally shaped values, one on each device, by `op`. All devices get the same result, bit by bit."""
    assert op in OpGroups.ALU
    if len(parts) < 3 or parts[0].size < MIN_RING_ELEMENTS:
        return [
            _combine(op, [part.contiguous().copy_to_device(own_part.device) for part in parts]) for own_part in parts
        ]
    return _reduce_in_ring(op, parts)


def _combine(op: Ops, values: Sequence[LazyBuffer]) -> LazyBuffer:
    total, *others = values
    for value in others:
        total = total.alu(op, value)
    return total


def _reduce_in_ring(op: Ops, parts: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """Combines `parts`, one per device, by `op`. Returns the result on each device (ring all-reduce).

    Each device combines one piece, which passes around the ring. A second round copies the results.

    Each link carries 2 · (n - 1) / n of the value, for any number of devices n (Patarasuk and Yuan, 2009).
    """
    count, size = len(parts), parts[0].size
    step = -(-size // count)
    flat = [part.contiguous().reshape((size,)) for part in parts]
    pieces: list[list[LazyBuffer]] = [[] for _ in parts]  # the pieces for each device, in the order of the value
    for start in range(0, size, step):
        bounds = [(start, min(start + step, size))]
        owner = start // step
        collected = flat[owner].shrink(bounds)
        for hop in range(1, count):
            sent = flat[(owner + hop) % count]
            collected = collected.contiguous().copy_to_device(sent.device).alu(op, sent.shrink(bounds))
        shared_piece = collected.contiguous()
        device_number = (owner + count - 1) % count
        for _ in range(count):
            pieces[device_number].append(shared_piece)
            device_number = (device_number + 1) % count
            shared_piece = shared_piece.copy_to_device(parts[device_number].device)
    return [concatenate(device_pieces, 0).reshape(parts[0].shape) for device_pieces in pieces]

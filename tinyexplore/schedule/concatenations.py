"""Replaces concatenations of repeated parts: a stack of equal rows is one row, expanded.

`Tensor.cat` adds up ints, each part with zeros around it. If the parts repeat, the concatenation becomes one of fewer
parts: each part is repeated over consecutive positions, and the whole sequence is repeated again.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import OpGroups, Ops

MAX_PARTS = 64


@dataclass(frozen=True)
class Concatenation:
    """A concatenation of parts of equal size.

    parts: the parts, in order.
    axis: the axis along which they are joined.
    """

    parts: Sequence[LazyBuffer]
    axis: int

    @staticmethod
    def of(node: LazyBuffer, in_memory: Collection[LazyBuffer]) -> Concatenation | None:
        """Returns the concatenation that `node` computes, or None. A value `in_memory` counts as one part."""
        if node.op is not Ops.ADD or node.buffer is not None or dtypes.is_float(node.dtype):
            return None  # x + 0.0 changes -0.0
        axis = _find_padded_axis(node.src[1])
        if axis is None:
            return None
        expected_stop = node.shape[axis]
        parts: list[LazyBuffer] = []
        waiting = [node.src[0], node.src[1]]
        while waiting and len(parts) < MAX_PARTS:
            part = waiting.pop()
            if part.op is Ops.ADD and part.buffer is None and part not in in_memory:
                waiting += part.src
                continue
            if _find_padded_axis(part) != axis or part in in_memory:
                return None
            (source,) = part.src
            start, padding_after = part.arg[axis]
            if start + source.shape[axis] != expected_stop or expected_stop + padding_after != node.shape[axis]:
                return None
            expected_stop = start
            parts.append(source)
        if waiting or expected_stop != 0 or len({part.shape[axis] for part in parts}) != 1:
            return None
        return Concatenation(parts[::-1], axis)

    def find_repetition(self) -> LazyBuffer | None:
        """Computes the same values as a repetition of fewer parts; None if no part repeats regularly."""
        keys = [_make_part_key(part) for part in self.parts]
        run = max(
            [size for size in _find_divisors(len(keys)) if keys == [key for key in keys[::size] for _ in range(size)]]
        )
        keys = keys[::run]
        period = min([size for size in _find_divisors(len(keys)) if keys == keys[:size] * (len(keys) // size)])
        if period == len(self.parts):
            return None
        different_parts = self.parts[::run][:period]
        outer_sizes, size, inner_sizes = self._split_sizes_at_axis(different_parts[0])
        joined = self._join_parts(different_parts).reshape((*outer_sizes, 1, period, 1, size, *inner_sizes))
        repetition = joined.expand((*outer_sizes, len(keys) // period, period, run, size, *inner_sizes))
        return repetition.reshape((*outer_sizes, len(self.parts) * size, *inner_sizes))

    def _join_parts(self, parts: Sequence[LazyBuffer]) -> LazyBuffer:
        outer_sizes, size, inner_sizes = self._split_sizes_at_axis(parts[0])
        padded = []
        for number, part in enumerate(parts):
            amounts = (number * size, (len(parts) - 1 - number) * size)
            padded.append(part.pad([*[(0, 0)] * len(outer_sizes), amounts, *[(0, 0)] * len(inner_sizes)]))
        total, *other_parts = padded
        for padded_part in other_parts:
            total = total.alu(Ops.ADD, padded_part)
        return total

    def _split_sizes_at_axis(self, part: LazyBuffer) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
        """Returns the sizes before the axis, along it and after it."""
        return part.shape[: self.axis], part.shape[self.axis], part.shape[self.axis + 1 :]


def _find_padded_axis(node: LazyBuffer) -> int | None:
    """Returns the only axis along which `node` pads a value with zeros; None if there is none, or if sizes are
    symbolic."""
    if node.op is not Ops.PAD or node.buffer is not None or not all([isinstance(size, int) for size in node.shape]):
        return None
    axes = [axis for axis, amounts in enumerate(node.arg) if amounts != (0, 0)]
    return axes[0] if len(axes) == 1 else None


def _make_part_key(part: LazyBuffer) -> Hashable:
    """Returns a key that is equal for parts that are the same view of the same value."""
    steps = []
    while part.op in OpGroups.MOVEMENT and part.buffer is None:
        steps.append((part.op, part.arg, part.shape))
        part = part.src[0]
    return (part, *steps)


def _find_divisors(count: int) -> list[int]:
    return [size for size in range(1, count + 1) if count % size == 0]


__all__ = ["Concatenation"]

"""Memory traffic of a kernel, in bytes: strides, footprints, and whether a cache may hold the data."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

LOOPS = (AxisKind.GLOBAL, AxisKind.THREAD, AxisKind.REDUCE)


def buffer_bytes(pointer: UOp) -> int:
    return int(pointer.dtype.size * pointer.dtype.base.itemsize)


def comes_from_memory(load: IndexStrides, target: Target) -> bool:
    """Whether the buffer is too large for the caches. For a smaller one, a prefetch costs more than it saves."""
    return buffer_bytes(load.node.src[0]) >= target.min_memory_bytes


def step_bytes(load: IndexStrides, axis: UOp) -> int:
    """Returns how far a step of `axis` moves the address, in bytes; 0 if that varies."""
    return abs(load.stride(axis) or 0) * int(load.node.src[0].dtype.base.itemsize)


def axes_read_by_step(load: IndexStrides, axis: UOp) -> frozenset[UOp]:
    """Returns the axes along which one step of `axis` reads an operand."""
    return frozenset(
        [
            inner_axis
            for inner_axis in load.node.ranges
            if inner_axis.arg.kind not in LOOPS or inner_axis.arg.id > axis.arg.id
        ]
    )


def footprint_bytes(load: IndexStrides, axis: UOp) -> int:
    """Returns how many bytes of an operand one step of `axis` reads."""
    return prod(inner_axis.size for inner_axis in axes_read_by_step(load, axis)) * int(
        load.node.src[0].dtype.base.itemsize
    )


def is_read_once(kernel: Kernel, load: IndexStrides) -> bool:
    """Whether each element is used for only one result, or for one term of it."""
    axes, elements = load.node.ranges, int(load.node.src[0].dtype.size)
    return axes.issuperset(kernel.output_axes) and prod(axis.size for axis in axes) <= 5 * elements // 4

"""What a kernel reads of memory, in bytes: how far apart, how much, and whether a cache may have it."""

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
    """True for what no cache holds: of the rest, asking costs more than it brings."""
    return buffer_bytes(load.node.src[0]) >= target.from_memory_bytes


def step_bytes(load: IndexStrides, axis: UOp) -> int:
    """By how much a step of `axis` moves the address; 0 where that differs from step to step."""
    return abs(load.stride(axis) or 0) * int(load.node.src[0].dtype.base.itemsize)


def inside(load: IndexStrides, axis: UOp) -> frozenset[UOp]:
    """The axes along which an operand is read in one step of `axis`."""
    return frozenset([other for other in load.node.ranges if other.arg.kind not in LOOPS or other.arg.id > axis.arg.id])


def footprint_bytes(load: IndexStrides, axis: UOp) -> int:
    """What is read of an operand in one step of `axis`."""
    return prod(other.size for other in inside(load, axis)) * int(load.node.src[0].dtype.base.itemsize)


def is_read_once(kernel: Kernel, load: IndexStrides) -> bool:
    """True where each element goes into one result, or one term of it, only."""
    axes, elements = load.node.ranges, int(load.node.src[0].dtype.size)
    return axes.issuperset(kernel.output_axes) and prod(axis.size for axis in axes) <= 5 * elements // 4

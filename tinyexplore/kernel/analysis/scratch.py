"""Scratch memory: row buffers, the copy before the steps of a scatter, and the layout of a tile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.barriers import fills_row_buffer
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.divmod import from_terms

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

PACKING_ORDER = {
    AxisKind.ROW: 0,
    AxisKind.REDUCE: 1,
    AxisKind.GROUP: 2,
    AxisKind.UNROLL: 3,
    AxisKind.UPCAST: 4,
    AxisKind.TILE: 5,
    AxisKind.VECTOR: 6,
}


def copy_barriers(kernel: Kernel) -> list[UOp]:
    """Returns every BARRIER of the kernel. Loads of scratch memory wait for it."""
    return kernel.find(Ops.BARRIER)


def is_after_copy(kernel: Kernel, axis: UOp) -> bool:
    """Whether `axis` is a loop over the steps of a scatter, outside the copy of the memory that it writes."""
    return any(axis not in barrier.ranges for barrier in kernel.result_copies)


def barriers_along(kernel: Kernel, axis: UOp) -> list[UOp]:
    """Returns the BARRIERs of scratch memory with a separate content for each step of `axis`."""
    return [barrier for barrier in copy_barriers(kernel) if fills_row_buffer(barrier) and axis in barrier.ranges]


def row_major(axes: list[UOp]) -> UOp:
    """Returns the row-major index of an element. The last of `axes` has stride 1."""
    terms: dict[UOp, int] = {}
    stride = 1
    for axis in reversed(axes):
        terms[axis] = stride
        stride *= axis.size
    return from_terms(dict(reversed(terms.items())), 0)

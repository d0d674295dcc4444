"""Memory access patterns of a kernel: the facts that all heuristics use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel


def is_inside_reduction(access: IndexStrides) -> bool:
    return any(axis.arg.kind is AxisKind.REDUCE for axis in access.node.ranges)


def is_outer_of(axis: UOp, lanes: UOp, accesses: Sequence[IndexStrides]) -> bool:
    """Whether `axis` is the loop over the vectors that `lanes` was split from."""
    if axis.arg.kind is not AxisKind.GLOBAL:
        return False
    return any(
        access.is_store and access.stride(lanes) == 1 and access.stride(axis) == lanes.size for access in accesses
    )


def shares_loads(axis: UOp, loads: Sequence[IndexStrides]) -> bool:
    """Whether steps along `axis` use some of the same loaded values."""
    return any(axis not in load.node.ranges for load in loads)


def lanes_for(kernel: Kernel, axis: UOp) -> int:
    """Returns the largest power of two of lanes that the machine has and the axis fills."""
    lanes = kernel.lanes
    while lanes > axis.size or (kernel.result_copies and axis in kernel.output_axes and axis.size % lanes):
        lanes //= 2
    return lanes


def outer_row_axis(kernel: Kernel, axis: UOp) -> bool:
    """Whether `axis` counts rows that the kernel reduces and then reads again. Lanes then belong inside it."""
    walks = [store.ranges for store in kernel.ast.src]
    for reduce in kernel.reduces:
        if any(not walk <= reduce.ranges for walk in walks) and axis in reduce.ranges:
            return True
    return False


def best_block(size: int, largest: int, limit: int) -> int:
    """Returns the largest block of at most `largest` and `limit` rows that wastes at most an eighth of the work."""
    largest = min(largest, limit, size)
    for block in range(largest, 1, -1):
        computed_rows = -(-size // block) * block
        if computed_rows * 8 <= size * 9:
            return block
    return largest if largest > 1 else 1

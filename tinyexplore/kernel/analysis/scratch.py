"""Scratch memory: which rows are kept there, what a scatter copies first, and in what order a tile lies there."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    AxisKind.VECTOR: 5,
}


def filling(kernel: Kernel) -> list[UOp]:
    """Every BARRIER: what scratch memory waits for."""
    return kernel.find(Ops.BARRIER)


def scratch_of(barrier: UOp) -> UOp:
    """The memory that a BARRIER's store fills: scratch memory, or a scatter's result."""
    return barrier.src[0].src[0].src[0]


def keeps_row(barrier: UOp) -> bool:
    """True for a row that the scheduler keeps, and for what a scatter copies; False for what STAGE copies."""
    return changes_in_steps(barrier) or scratch_of(barrier).arg.startswith("row")


def copies_result(barrier: UOp) -> bool:
    """True for the copy of what a scatter writes into, which comes before its steps."""
    return scratch_of(barrier).op is Ops.DEFINE_GLOBAL


def changes_in_steps(barrier: UOp) -> bool:
    """True for that copy, and for the numbers of a FETCH_ADD, which are in scratch memory: each step changes one."""
    return copies_result(barrier) or scratch_of(barrier).arg.startswith("counts")


def is_after_copy(kernel: Kernel, axis: UOp) -> bool:
    """True for a loop over the steps of a scatter, which the copy of what it writes into does not share."""
    return any(axis not in barrier.ranges for barrier in kernel.result_copies)


def kept_along(kernel: Kernel, axis: UOp) -> list[UOp]:
    """The BARRIERs of scratch memory whose contents differ from step to step of `axis`."""
    return [barrier for barrier in filling(kernel) if keeps_row(barrier) and axis in barrier.ranges]


def row_major(axes: list[UOp]) -> UOp:
    """The place of an element where the last of `axes` is the fastest."""
    terms: dict[UOp, int] = {}
    stride = 1
    for axis in reversed(axes):
        terms[axis] = stride
        stride *= axis.size
    return from_terms(dict(reversed(terms.items())), 0)

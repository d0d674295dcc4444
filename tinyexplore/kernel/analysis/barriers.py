"""What a BARRIER waits for: a row that the scheduler buffers, a tile that STAGE copies, or the result of a scatter."""

from __future__ import annotations

from tinyexplore.uop import Ops, UOp


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

"""Kinds of BARRIER: it waits for a row buffer, for a tile that STAGE copies, or for the result of a scatter."""

from __future__ import annotations

from tinyexplore.uop import Ops, UOp


def scratch_of(barrier: UOp) -> UOp:
    """Returns the memory that a BARRIER's store fills: scratch memory, or a scatter's result."""
    return barrier.src[0].src[0].src[0]


def fills_row_buffer(barrier: UOp) -> bool:
    """Whether a BARRIER waits for a row buffer or for memory that a scatter copies, and not for a copy that STAGE
    makes."""
    return changes_in_steps(barrier) or scratch_of(barrier).arg.startswith("row")


def copies_result(barrier: UOp) -> bool:
    """Whether a BARRIER waits for the copy of the memory that a scatter writes, which is made before its steps."""
    return scratch_of(barrier).op is Ops.DEFINE_GLOBAL


def changes_in_steps(barrier: UOp) -> bool:
    """Whether each step changes one element of the memory: the copy of a scatter, or the counters of a FETCH_ADD."""
    return copies_result(barrier) or scratch_of(barrier).arg.startswith("counts")

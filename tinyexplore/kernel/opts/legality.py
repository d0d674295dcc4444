"""Legality checks that several kinds of Opt share. Each returns the legality error as text, or None."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.scratch import is_after_copy
from tinyexplore.uop import AxisKind, UOp
from tinyexplore.uop.symbolic import text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

OUTPUT_KINDS = (AxisKind.GLOBAL, AxisKind.THREAD, AxisKind.LOCAL)
UNROLLED_KINDS = (AxisKind.VECTOR, AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.COPY)
LOOP_KINDS = (AxisKind.GLOBAL, AxisKind.LOCAL)


def scatter_order_error(kernel: Kernel) -> str | None:
    """Returns the legality error of a scatter: it adds to a copy, so no step may run before the copy is complete."""
    if kernel.result_copies:
        return "the steps of a scatter must run in order, after the copy of its target"
    return None


def remainder_scatter_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    """Returns the legality error of a scatter whose last block is not full: its steps would add to the result twice."""
    if kernel.result_copies and axis in kernel.output_axes:
        if not axis.is_static or axis.size % max(1, amount):
            size = text(axis.src[0])
            return f"the axis size {size} is not a multiple of {amount}; the last block would scatter elements twice"
    return None


def thread_copy_error(kernel: Kernel, axis: UOp) -> str | None:
    """Returns the legality error of threads around the copy of a scatter's result: each thread would copy all of it."""
    if kernel.result_copies and is_after_copy(kernel, axis):
        return "each thread would copy the whole target of the scatter"
    return None


def prefetch_error(axis: UOp) -> str | None:
    if axis.arg.ahead:
        return "the axis prefetches later steps; apply this opt before PREFETCH"
    return None


def block_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    """Returns the legality error of a split of an axis into blocks of `amount` steps, for any kind of Opt."""
    if (reason := prefetch_error(axis)) is not None:
        return reason
    if axis in kernel.copied_along:
        return "STAGE copies an operand in each step of the axis; apply this opt before STAGE"
    if amount < 2 or amount > axis.size:
        return f"the axis has size {axis.size}; choose an amount from 2 to {axis.size}"
    return None


def reduction_error(axis: UOp) -> str | None:
    if axis.arg.kind is AxisKind.REDUCE:
        return None
    return f"the axis is {axis.arg.kind.value}; this opt needs a reduction axis"


def output_loop_error(axis: UOp) -> str | None:
    if axis.arg.kind in LOOP_KINDS:
        return None
    return f"the axis is {axis.arg.kind.value}; this opt needs an output axis that is a loop"

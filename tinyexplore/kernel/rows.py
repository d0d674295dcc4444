"""Kept rows under Opts: a loop that fills a row is split like an output loop; a tile of rows keeps them all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.split import split_output, with_edge
from tinyexplore.kernel.told import substitute_told
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel


def filling(kernel: Kernel) -> list[UOp]:
    """Every BARRIER: what scratch memory waits for."""
    return kernel.find(Ops.BARRIER)


def scratch_of(barrier: UOp) -> UOp:
    """The memory that a BARRIER's store fills: scratch memory, or a scatter's result."""
    return barrier.src[0].src[0].src[0]


def keeps_row(barrier: UOp) -> bool:
    """True for a row that the scheduler keeps, and for what a scatter copies; False for what STAGE copies."""
    return copies_result(barrier) or scratch_of(barrier).arg.startswith("row")


def copies_result(barrier: UOp) -> bool:
    """True for the copy of what a scatter writes into, which comes before its steps."""
    return scratch_of(barrier).op is Ops.DEFINE_GLOBAL


def is_after_copy(kernel: Kernel, axis: UOp) -> bool:
    """True for a loop over the steps of a scatter, which the copy of what it writes into does not share."""
    return any(axis not in barrier.ranges for barrier in kernel.result_copies)


def kept_along(kernel: Kernel, axis: UOp) -> list[UOp]:
    """The BARRIERs of scratch memory whose contents differ from step to step of `axis`."""
    return [barrier for barrier in filling(kernel) if keeps_row(barrier) and axis in barrier.ranges]


def split_row(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """The ast with a loop that fills a row split: the last block ends at the end, over part of the one before.

    Where a symbolic end leaves no room for that, lanes past it are masked.
    """
    changes = split_output(kernel, axis, opt)
    ast = with_edge(kernel, axis, opt)
    fresh = {loop for place in changes.values() for loop in place.ranges}
    own = tuple(sorted(fresh, key=lambda loop: loop.arg.id))
    for barrier in [node for node in ast.toposort() if node.op is Ops.BARRIER]:
        if axis in barrier.src[1:]:
            store = substitute_told(barrier.src[0], changes, str(opt))
            loops = tuple(part for loop in barrier.src[1:] for part in (own if loop is axis else (loop,)))
            return substitute_told(ast, {barrier: UOp(Ops.BARRIER, dtypes.void, (store, *loops))}, str(opt))
    raise ValueError(f"no row is filled by axis {axis.arg.id}")


def more_rows(kernel: Kernel, axis: UOp, opt: Opt, step_id: int) -> dict[UOp, UOp]:
    """For each access to scratch memory that differs along the output axis `axis`: the access with one row for each
    step that UPCAST writes out at once (steps of the axis `step_id`)."""
    if opt.op is not OptOps.UPCAST:
        return {}
    step = UOp.range(opt.amount, Axis(step_id, AxisKind.UPCAST))
    grown: dict[UOp, UOp] = {}
    for barrier in kept_along(kernel, axis):
        if copies_result(barrier):
            continue
        scratch = scratch_of(barrier)
        grown[scratch] = scratch.replace(dtype=PtrDType(scratch.dtype.base, scratch.dtype.size * opt.amount, "local"))
    changes = {}
    for node in kernel.find(Ops.INDEX) if grown else ():
        if node.src[0] in grown:
            row = step * index_const(node.src[0].dtype.size)
            changes[node] = grown[node.src[0]].index(node.src[1] + row, *node.src[2:])
    return changes

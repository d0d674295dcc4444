"""GROUP: splits a reduction into blocks with a partial result each. On a GPU, the work-items of a group share it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.work_groups import group_axis_of, grouped_reductions
from tinyexplore.kernel.opts.kind import BLOCKS, GROUP_SIZES, Effect, OptKind
from tinyexplore.kernel.opts.legality import block_error, reduction_error, scatter_order_error
from tinyexplore.kernel.transforms.split import split_into_blocks
from tinyexplore.uop import AxisKind, UOp
from tinyexplore.uop.symbolic import text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "A reduction runs in blocks of `amount` steps, each with a partial result",
    before="for k in 0..64: acc += f(k)",
    after="""\
for k in 0..8: part = 0; for q in 0..8: part += f(8*k+q)
               acc += part""",
)
GPU_EFFECT = Effect(
    "On a GPU: `amount` work-items of a group reduce neighboring steps and combine their results in shared memory",
    before="for k in 0..64: acc += f(k)",
    after="""\
for k in 0..8: part += f(8*k+lidx0)
shared[lidx0] = part; barrier
for q in 0..8: acc += shared[q]""",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    reason = block_error(kernel, axis, amount) or reduction_error(axis)
    return reason or (group_reduction_error(kernel, axis, amount) if kernel.target.has_local else None)


def group_reduction_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    """Returns the legality error if the work-items of a group cannot share a reduction; else None."""
    if (reason := scatter_order_error(kernel)) is not None:
        return reason
    if axis.src[0].ranges:
        return f"the axis ends at {text(axis.src[0])}, but the work-items of a group need equal numbers of steps"
    users = [reduce for reduce in kernel.reduces if axis in reduce.src[1:]]
    grouped = grouped_reductions(kernel.ast)
    for reduce in users:
        if group_axis_of(reduce) is not None:
            return "the work-items of a group share this reduction already"
        dependent = [grouped_reduce for grouped_reduce in grouped if axis in grouped_reduce.ranges]
        if dependent or any(loop.arg.kind is AxisKind.GROUP for loop in reduce.ranges):
            return "this reduction is nested with a reduction that the work-items share already"
    sizes = {loop.size for reduce in grouped if (loop := group_axis_of(reduce)) is not None}
    if sizes - {amount}:
        return f"another reduction uses {(size := sizes.pop())} work-items of the group; choose {size}"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_into_blocks(kernel, axis, opt, AxisKind.GROUP)


KIND = OptKind((EFFECT, GPU_EFFECT), legality_error, apply, amounts=BLOCKS, gpu_amounts=GROUP_SIZES)

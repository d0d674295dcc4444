"""LOCAL: moves a block of steps of an output axis inside the other output loops. On a GPU, the block is a
work-group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import BLOCKS, GROUP_SIZES, Effect, OptKind
from tinyexplore.kernel.opts.legality import block_error, output_loop_error, scatter_order_error
from tinyexplore.kernel.transforms.split import split_into_blocks
from tinyexplore.uop import AxisKind, UOp
from tinyexplore.uop.symbolic import text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Moves a block of `amount` steps of an output axis inside the other output loops (loop tiling)",
    before="for i in 0..64: for j in 0..64: ...",
    after="for i in 0..8: for j in 0..64: for l in 0..8: ... 8*i+l ...",
)
GPU_EFFECT = Effect(
    "On a GPU: the work-items of a group compute `amount` neighboring steps of an output axis",
    before="grid of 64: i = gidx0: ...",
    after="grid of 8 groups of 8: i = 8*gidx0+lidx0: ...",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    reason = scatter_order_error(kernel) or block_error(kernel, axis, amount)
    if reason is not None:
        return reason
    if not axis.is_static:
        return f"the axis has the variable size {text(axis.src[0])}, but a work-group needs a constant size"
    if (reason := output_loop_error(axis)) is not None:
        return reason
    if kernel.target.has_local:
        if axis.arg.kind is AxisKind.LOCAL:
            return "the axis is already a dimension of the work-group"
        return None
    if any(kernel_axis.arg.kind is AxisKind.SCAN for kernel_axis in kernel.axes):
        return "the loop of a scan must stay innermost"
    if axis.size == amount:
        return f"a block of {axis.size} steps covers the whole axis and changes nothing"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_into_blocks(kernel, axis, opt, AxisKind.LOCAL)


KIND = OptKind(
    (EFFECT, GPU_EFFECT), legality_error, apply, amounts=BLOCKS, may_follow_tensor_cores=True, gpu_amounts=GROUP_SIZES
)

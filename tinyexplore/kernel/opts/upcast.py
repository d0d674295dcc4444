"""UPCAST: unrolls steps of an output axis (register tile), so that shared values are computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import BLOCKS, Effect, OptKind
from tinyexplore.kernel.opts.legality import block_error, output_loop_error, remainder_scatter_error
from tinyexplore.kernel.transforms.split import split_into_blocks
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Unrolls `amount` steps of an output axis (register tile), so that shared values are computed once",
    before="for i in 0..64: out[i] = f(i)",
    after="for i in 0..16: out[4*i] = f(4*i); ...; out[4*i+3] = f(4*i+3)",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    reason = remainder_scatter_error(kernel, axis, amount) or block_error(kernel, axis, amount)
    if reason is None and axis.arg.kind is not AxisKind.ROW:
        reason = output_loop_error(axis)
    return reason


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_into_blocks(kernel, axis, opt, AxisKind.UPCAST)


KIND = OptKind((EFFECT,), legality_error, apply, amounts=BLOCKS, may_follow_tensor_cores=True)

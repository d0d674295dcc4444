"""UNROLL: unrolls steps of a reduction, each with its own accumulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import BLOCKS, Effect, OptKind
from tinyexplore.kernel.opts.legality import block_error, reduction_error
from tinyexplore.kernel.transforms.split import split_into_blocks
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Unrolls `amount` steps of a reduction, each with its own accumulator",
    before="for k in 0..64: acc += f(k)",
    after="""\
for k in 0..16: a0 += f(4*k); ...; a3 += f(4*k+3)
acc = a0 + a1 + a2 + a3""",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    return block_error(kernel, axis, amount) or reduction_error(axis)


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_into_blocks(kernel, axis, opt, AxisKind.UNROLL)


KIND = OptKind((EFFECT,), legality_error, apply, amounts=BLOCKS, may_follow_tensor_cores=True)

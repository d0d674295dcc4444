"""SWAP: exchanges two output axes (loop interchange)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import LOOP_KINDS, scatter_order_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Exchanges two output axes, `axis` and `amount` (loop interchange)",
    before="for i in 0..64: for j in 0..32: ...",
    after="for j in 0..32: for i in 0..64: ...",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (reason := scatter_order_error(kernel)) is not None:
        return reason
    partner = kernel.axis(amount)
    for loop in (axis, partner):
        if loop.arg.kind not in LOOP_KINDS:
            return f"axis {loop.arg.id} is {loop.arg.kind.value}; SWAP needs output axes that are loops"
    if axis is partner:
        return "an axis cannot be exchanged with itself"
    if kernel.find(Ops.BARRIER):
        return "illegal because STAGE or a row buffer fixed the loop order"
    return None


def partners(kernel: Kernel, axis: UOp) -> list[int]:
    return [partner.arg.id for partner in kernel.output_axes if partner.arg.id > axis.arg.id]


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    partner = kernel.axis(opt.amount)
    trade = {
        axis: axis.replace(arg=replace(axis.arg, id=partner.arg.id)),
        partner: partner.replace(arg=replace(partner.arg, id=axis.arg.id)),
    }
    return substitute_recorded(kernel.ast, trade, str(opt))


KIND = OptKind((EFFECT,), legality_error, apply, amounts=(), partners=partners, may_follow_tensor_cores=True)

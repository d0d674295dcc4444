"""PADTO: pads an axis to a multiple of an amount. Steps past its end read nothing and store nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import LOOP_KINDS, prefetch_error, scatter_order_error
from tinyexplore.kernel.transforms.substitute import record_derived, substitute_recorded
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.identity import reduce_identity
from tinyexplore.uop.symbolic import text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

AMOUNTS = (8, 16, 32)
EFFECT = Effect(
    "Pads an axis to the next multiple of `amount`. Steps past its end are masked: they load and store nothing, and do "
    "not change a reduction",
    before="""\
for i in 0..50: for k in 0..50: acc += a[i,k]
                out[i] = acc""",
    after="""\
for i in 0..50: for k in 0..64: acc += a[i,k] if k < 50 else 0
                out[i] = acc""",
)


def round_up(size: int, amount: int) -> int:
    """Rounds `size` up to a multiple of `amount`."""
    return -(-size // amount) * amount


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (reason := scatter_order_error(kernel) or prefetch_error(axis)) is not None:
        return reason
    if axis.arg.kind not in (*LOOP_KINDS, AxisKind.REDUCE) or axis.arg.kind is AxisKind.LOCAL:
        return f"the axis is {axis.arg.kind.value}; PADTO needs an output or reduction axis that is a loop"
    if not axis.is_static or axis.src[0].ranges:
        return f"the axis has the variable size {text(axis.src[0])}; PADTO needs a constant size"
    if axis in kernel.copied_along or any(axis in barrier.src for barrier in kernel.find(Ops.BARRIER)):
        return "a staged copy already has the size of the axis; apply PADTO before STAGE"
    if kernel.find(Ops.SCAN):
        return "the kernel has a scan, which carries state from step to step"
    if amount < 2:
        return "choose an amount of 2 or more"
    if axis.size % amount == 0:
        return f"the axis size {axis.size} is already a multiple of {amount}"
    if round_up(axis.size, amount) > 2 * axis.size:
        return f"the axis has size {axis.size}: more than half of {round_up(axis.size, amount)} steps would be masked"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Masks every access in a step of `axis`. A reduction over it adds its identity in steps past the end."""
    padded_axis = UOp.range(round_up(axis.size, opt.amount), axis.arg)
    is_inside = padded_axis < axis.src[0]
    changes: dict[UOp, UOp] = {axis: padded_axis}
    for node in kernel.nodes:
        if node.op is Ops.INDEX and axis in node.ranges:
            pointer, idx, *valid = (src.substitute(changes) for src in node.src)
            changes[node] = pointer.index(idx, valid[0] & is_inside if valid else is_inside)
        elif node.op is Ops.REDUCE and axis in node.src[1:]:
            value = node.src[0].substitute(changes, how=str(opt))
            masked = is_inside.where(value, reduce_identity(node.arg, node.dtype))
            loops = tuple(padded_axis if loop is axis else loop for loop in node.src[1:])
            changes[node] = UOp(Ops.REDUCE, node.dtype, (masked, *loops), node.arg)
            record_derived([(node, changes[node])], str(opt))
    return substitute_recorded(kernel.ast, changes, str(opt))


KIND = OptKind((EFFECT,), legality_error, apply, amounts=AMOUNTS, machine="gpu")

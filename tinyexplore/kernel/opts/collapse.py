"""COLLAPSE: merges two output axes that the result addresses with one common stride to one loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import prefetch_error, scatter_order_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import simplified

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Merges two output axes, `axis` and the axis `amount` inside it, into one loop. The result must address both with "
    "one common stride. Vectors may then cross the end of a short row. The outer axis may be a register tile of rows",
    before="for i in 0..4: for j in 0..6: ...",
    after="for p in 0..24: ...            (with i = p / 6, j = p % 6)",
)


def legality_error(kernel: Kernel, outer: UOp, amount: int) -> str | None:
    if (reason := scatter_order_error(kernel) or prefetch_error(outer)) is not None:
        return reason
    inner = kernel.axis(amount)
    if (reason := prefetch_error(inner)) is not None:
        return reason
    for axis, allowed_kinds in ((outer, (AxisKind.GLOBAL, AxisKind.UPCAST)), (inner, (AxisKind.GLOBAL,))):
        if axis.arg.kind not in allowed_kinds or axis not in kernel.output_axes:
            allowed = "an output axis that is a loop" + (" or its register tile" if axis is outer else "")
            return f"axis {axis.arg.id} is {axis.arg.kind.value}; COLLAPSE needs {allowed}"
    if outer is inner:
        return "an axis cannot be merged with itself"
    if kernel.find(Ops.BARRIER) or kernel.find(Ops.SCAN):
        return "scratch memory or a scan depends on the current loops"
    if not all(walks_as_one(store, outer, inner) for store in kernel.ast.src):
        return "the result does not address the two axes with one common stride"
    return None


def walks_as_one(store: UOp, outer: UOp, inner: UOp) -> bool:
    terms, _ = linear_terms(store.src[0].src[1])
    other_terms = [term for term in terms if term not in (outer, inner)]
    as_one = inner.is_static and inner in terms and terms.get(outer) == terms[inner] * inner.size
    return as_one and not any(term.ranges & {outer, inner} for term in other_terms)


def partners(kernel: Kernel, axis: UOp) -> list[int]:
    return [partner.arg.id for partner in kernel.output_axes if partner is not axis]


def apply(kernel: Kernel, outer: UOp, opt: Opt) -> UOp:
    """Replaces both axes by one axis. Its quotient and remainder by the inner size are their indices."""
    inner = kernel.axis(opt.amount)
    merged = UOp.range(simplified(outer.src[0] * inner.size), Axis(inner.arg.id, AxisKind.GLOBAL))
    size = index_const(inner.size)
    index_of = {outer: merged.alu(Ops.IDIV, size), inner: merged.alu(Ops.MOD, size)}
    return substitute_recorded(kernel.ast, index_of, str(opt))


KIND = OptKind((EFFECT,), legality_error, apply, amounts=(), partners=partners, may_follow_tensor_cores=True)

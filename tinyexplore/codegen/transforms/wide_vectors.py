"""Pass "wide vectors": turns a row of a product's tile into one vector of several registers. LLVM splits it at the end.

Later passes then handle one operation instead of four equal ones.
"""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import LANES_BIT, dtypes
from tinyexplore.uop import AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_form
from tinyexplore.uop.uop import axes_mask, dtypes_mask, ops_mask

# operations of sums of products; the values of a longer computation would not stay in registers
PRODUCT_OPS = frozenset(
    {Ops.SINK, Ops.STORE, Ops.LOAD, Ops.INDEX, Ops.BARRIER, Ops.RANGE, Ops.REDUCE, Ops.CONST}
    | {Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN}
)
FLOATS = frozenset({dtypes.float32, dtypes.float64})
UNSUPPORTED_MASK = ops_mask(set(Ops) - PRODUCT_OPS) | dtypes_mask(
    set(dtypes.fields().values()) - FLOATS - {dtypes.index}
)
REQUIRED_MASKS = (LANES_BIT, axes_mask((AxisKind.UPCAST,)), ops_mask((Ops.REDUCE,)))


def widen_vectors(sink: UOp, lowering: Lowering) -> UOp:
    """Merges a VECTOR axis with an UPCAST axis whose step is a whole vector into one VECTOR axis.

        for j in vector(16): for u in upcast(4): c[64*o + 16*u + j] += …  →  for j in vector(64): c[64*o + j] += …

    In sums of products of floats only: the values of a longer computation would not stay in registers.
    """
    if sink.mask & UNSUPPORTED_MASK or not all([sink.mask & operation_mask for operation_mask in REQUIRED_MASKS]):
        return sink
    merged: dict[UOp, UOp] = {}
    for vector_axis, upcast_axis in mergeable(sink.toposort(), lowering.target.registers_per_op).items():
        merged[vector_axis] = UOp.range(vector_axis.size * upcast_axis.size, vector_axis.arg)
        merged[upcast_axis] = index_const(0)
    if not merged:
        return sink
    widened_sink = sink.substitute(merged, how="wide vectors")
    shorter_barriers = {barrier: without_merged_axes(barrier) for barrier in widened_sink.find(Ops.BARRIER)}
    return widened_sink.substitute(shorter_barriers, how="wide vectors") if shorter_barriers else widened_sink


def without_merged_axes(barrier: UOp) -> UOp:
    """Removes the loop of a merged axis from a barrier."""
    return barrier.replace(src=tuple([src for src in barrier.src if src.op is not Ops.CONST]))


def mergeable(nodes: list[UOp], max_steps: int) -> dict[UOp, UOp]:
    """Finds for each VECTOR axis an UPCAST axis along which every address moves by a whole vector per step.

    max_steps: the greatest size of the UPCAST axis.
    """
    axes: dict[AxisKind, list[UOp]] = {AxisKind.VECTOR: [], AxisKind.UPCAST: []}
    strides: list[dict[UOp, int]] = []
    used_elsewhere: set[UOp] = set()  # axes that are used outside of addresses
    for node in nodes:
        match node.op:
            case Ops.RANGE if node.arg.ahead:
                return {}  # a separate load requests each cache line
            case Ops.RANGE:
                axes.get(node.arg.kind, []).append(node)
                used_elsewhere |= node.src[0].ranges
            case Ops.INDEX:
                terms, _, _ = linear_form(node.src[1])
                strides.append(terms)
                used_elsewhere.update(
                    *[source.ranges for source in (*terms, *node.src[2:]) if source.op is not Ops.RANGE]
                )
            case Ops.REDUCE if node.src[0].op is not Ops.MUL:
                return {}  # the kernel is bandwidth-bound
            case Ops.REDUCE:
                used_elsewhere.update(node.src[1:])
            case Ops.LOAD | Ops.STORE if dtypes.index in (node.dtype, node.src[-1].dtype):
                return {}  # indices are used as values
    upcast_of = {}
    for vector_axis in axes[AxisKind.VECTOR]:
        lane_count = vector_axis.size
        lane_addresses = [terms for terms in strides if vector_axis in terms]
        if vector_axis in used_elsewhere or not all([terms[vector_axis] == 1 for terms in lane_addresses]):
            continue
        for upcast_axis in axes[AxisKind.UPCAST]:
            if (
                upcast_axis in used_elsewhere
                or upcast_axis.size > max_steps
                or upcast_axis.size & (upcast_axis.size - 1)
            ):
                continue
            if all([terms.get(upcast_axis, 0) == lane_count * terms.get(vector_axis, 0) for terms in strides]):
                upcast_of[vector_axis] = upcast_axis
                break
    return upcast_of


__all__ = ["widen_vectors"]

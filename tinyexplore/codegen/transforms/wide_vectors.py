"""Pass "wide vectors": a row of a product's tile is one vector of several registers, which LLVM divides at the end.

All passes then handle one operation instead of four equal ones.
"""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import LANES_BIT, dtypes
from tinyexplore.uop import AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_form
from tinyexplore.uop.uop import axes_mask, dtypes_mask, ops_mask

# operations of sums of products; the values of a longer computation would not stay in registers
PLAIN = frozenset(
    {Ops.SINK, Ops.STORE, Ops.LOAD, Ops.INDEX, Ops.BARRIER, Ops.RANGE, Ops.REDUCE, Ops.CONST}
    | {Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN}
)
NUMBERS = frozenset({dtypes.float32, dtypes.float64})
OTHERS = ops_mask(set(Ops) - PLAIN) | dtypes_mask(set(dtypes.fields().values()) - NUMBERS - {dtypes.index})
NEEDED = (LANES_BIT, axes_mask((AxisKind.UPCAST,)), ops_mask((Ops.REDUCE,)))


def widen_vectors(sink: UOp, lowering: Lowering) -> UOp:
    """Merges a VECTOR axis with an UPCAST axis whose step is a whole vector into one VECTOR axis.

        for j in vector(16): for u in upcast(4): c[64*o + 16*u + j] += …  →  for j in vector(64): c[64*o + j] += …

    In sums of products of floats only: the values of a longer computation would not stay in registers.
    """
    if sink.mask & OTHERS or not all([sink.mask & needed for needed in NEEDED]):
        return sink
    merged: dict[UOp, UOp] = {}
    for lanes, vectors in mergeable(sink.toposort(), lowering.target.registers_per_op).items():
        merged[lanes] = UOp.range(lanes.size * vectors.size, lanes.arg)
        merged[vectors] = index_const(0)
    if not merged:
        return sink
    wide = sink.substitute(merged, how="wide vectors")
    waiting = {barrier: without_merged_axes(barrier) for barrier in wide.find(Ops.BARRIER)}
    return wide.substitute(waiting, how="wide vectors") if waiting else wide


def without_merged_axes(barrier: UOp) -> UOp:
    """A barrier without the loop of an axis that is merged into another."""
    return barrier.replace(src=tuple([src for src in barrier.src if src.op is not Ops.CONST]))


def mergeable(nodes: list[UOp], most: int) -> dict[UOp, UOp]:
    """For each VECTOR axis, the UPCAST axis of at most `most` steps along which every address moves by a whole
    vector."""
    axes: dict[AxisKind, list[UOp]] = {AxisKind.VECTOR: [], AxisKind.UPCAST: []}
    strides: list[dict[UOp, int]] = []
    fixed: set[UOp] = set()  # axes that are used outside of addresses
    for node in nodes:
        match node.op:
            case Ops.RANGE if node.arg.ahead:
                return {}  # each cache line is requested by a load of its own
            case Ops.RANGE:
                axes.get(node.arg.kind, []).append(node)
                fixed |= node.src[0].ranges
            case Ops.INDEX:
                terms, _, _ = linear_form(node.src[1])
                strides.append(terms)
                fixed.update(*[part.ranges for part in (*terms, *node.src[2:]) if part.op is not Ops.RANGE])
            case Ops.REDUCE if node.src[0].op is not Ops.MUL:
                return {}  # the kernel is bandwidth-bound
            case Ops.REDUCE:
                fixed.update(node.src[1:])
            case Ops.LOAD | Ops.STORE if dtypes.index in (node.dtype, node.src[-1].dtype):
                return {}  # indices are used as values
    mergeable_nodes = {}
    for lanes in axes[AxisKind.VECTOR]:
        walks = [terms for terms in strides if lanes in terms]
        if lanes in fixed or not all([terms[lanes] == 1 for terms in walks]):
            continue
        for vectors in axes[AxisKind.UPCAST]:
            step = lanes.size
            if vectors in fixed or vectors.size > most or vectors.size & (vectors.size - 1):
                continue
            if all([terms.get(vectors, 0) == step * terms.get(lanes, 0) for terms in strides]):
                mergeable_nodes[lanes] = vectors
                break
    return mergeable_nodes


__all__ = ["widen_vectors"]

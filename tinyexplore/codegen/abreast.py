"""Pass "vectors abreast": vectors of a tile that lie one behind the other are one long vector, which LLVM divides.

So a row of a product's tile is one operation on the whole way there, not four of the same.
"""

from __future__ import annotations

from tinyexplore.dtype import LANES_BIT, dtypes
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops, PatternMatcher, UOp, UPat, index_const, rule
from tinyexplore.uop.divmod import linear_form
from tinyexplore.uop.uop import axes_mask, dtypes_mask, ops_mask

# what sums of products are made of; the values of a longer computation would not stay in registers, a few each
PLAIN = frozenset(
    {Ops.SINK, Ops.STORE, Ops.LOAD, Ops.INDEX, Ops.BARRIER, Ops.RANGE, Ops.REDUCE, Ops.CONST}
    | {Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.DEFINE_VAR, Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN}
)
NUMBERS = frozenset({dtypes.float32, dtypes.float64})
OTHERS = ops_mask(set(Ops) - PLAIN) | dtypes_mask(set(dtypes.fields().values()) - NUMBERS - {dtypes.index})
NEEDED = (LANES_BIT, axes_mask((AxisKind.UPCAST,)), ops_mask((Ops.REDUCE,)))


@rule(UPat.of(Ops.SINK, name="sink"))
def one_vector(sink: UOp, ctx: Target) -> UOp | None:
    """A VECTOR axis, and an UPCAST axis of which each step is a vector further, are one VECTOR axis of all lanes."""
    if sink.mask & OTHERS or not all([sink.mask & needed for needed in NEEDED]):
        return None
    places: dict[UOp, UOp] = {}
    for lanes, vectors in abreast(sink.toposort(), ctx.abreast).items():
        places[lanes] = UOp.range(lanes.size * vectors.size, lanes.arg)
        places[vectors] = index_const(0)
    return sink.substitute(places, tell="vectors abreast") if places else None


def abreast(nodes: list[UOp], most: int) -> dict[UOp, UOp]:
    """By VECTOR axis, the UPCAST axis of `most` steps at the most by which every address is a vector further."""
    axes: dict[AxisKind, list[UOp]] = {AxisKind.VECTOR: [], AxisKind.UPCAST: []}
    strides: list[dict[UOp, int]] = []
    fixed: set[UOp] = set()  # axes that are more than part of an address
    for node in nodes:
        match node.op:
            case Ops.RANGE if node.arg.ahead:
                return {}  # each cache line is asked for by a load of its own
            case Ops.RANGE:
                axes.get(node.arg.kind, []).append(node)
                fixed |= node.src[0].ranges
            case Ops.INDEX:
                terms, _, _ = linear_form(node.src[1])
                strides.append(terms)
                fixed.update(*[part.ranges for part in (*terms, *node.src[2:]) if part.op is not Ops.RANGE])
            case Ops.REDUCE if node.src[0].op is not Ops.MUL:
                return {}  # memory sets the pace
            case Ops.REDUCE:
                fixed.update(node.src[1:])
            case Ops.LOAD | Ops.STORE if dtypes.index in (node.dtype, node.src[-1].dtype):
                return {}  # places are values here
    found = {}
    for lanes in axes[AxisKind.VECTOR]:
        walks = [terms for terms in strides if lanes in terms]
        if lanes in fixed or not all([terms[lanes] == 1 for terms in walks]):
            continue
        for vectors in axes[AxisKind.UPCAST]:
            step = lanes.size
            if vectors in fixed or vectors.size > most or vectors.size & (vectors.size - 1):
                continue
            if all([terms.get(vectors, 0) == step * terms.get(lanes, 0) for terms in strides]):
                found[lanes] = vectors
                break
    return found


@rule(UPat.of(Ops.BARRIER, name="barrier", more_src=True))
def one_loop_less(barrier: UOp) -> UOp | None:
    """Nothing waits for the loop of an axis that is part of another."""
    kept = tuple([src for src in barrier.src if src.op is not Ops.CONST])
    return None if len(kept) == len(barrier.src) else barrier.replace(src=kept)


ABREAST = PatternMatcher((one_vector, one_loop_less))

__all__ = ["ABREAST"]

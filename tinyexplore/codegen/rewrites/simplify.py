"""Passes "simplify": the arithmetic laws, and laws that clean up after unrolling."""

from __future__ import annotations

from tinyexplore.uop import Ops, PatternMatcher, UOp, UPat, cvar, rule, var
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.rewrite import settle_by


@rule(UPat.of(Ops.INDEX, var("pointer"), var("idx"), True))
def valid_always(pointer: UOp, idx: UOp) -> UOp:
    """An access whose mask always holds has no mask."""
    return pointer.index(idx)


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, var("pointer"), var("idx"), False), name="load"))
def valid_never(load: UOp) -> UOp:
    """A load whose mask never holds is zero."""
    return UOp.const(load.dtype, 0)


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def reduce_without_loops(reduce: UOp, value: UOp) -> UOp | None:
    """A reduction without loops is its value."""
    return value if len(reduce.src) == 1 else None


@rule(UPat.of(Ops.GEP, var("vector"), cvar("number"), name="lane"))
def lane_by_number(lane: UOp, vector: UOp, number: UOp) -> UOp:
    """The lane that an axis selects is, in one step of that axis, the lane with that number."""
    return UOp(Ops.GEP, lane.dtype, (vector,), number.arg)


ALWAYS = PatternMatcher(
    (*SIMPLIFY.rules, valid_always, valid_never, reduce_without_loops, lane_by_number), remembers=True
)


def simplified(node: UOp) -> UOp:
    """Simplifies `node` by the laws of this pass."""
    return settle_by(node, ALWAYS)


__all__ = ["ALWAYS", "simplified"]

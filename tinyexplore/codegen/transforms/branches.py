"""Pass "branches": computes the rare side of a WHERE only if some lane needs it (the inverse of if-conversion)."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.uop.ops import RARELY


def branch_where_rare(sink: UOp, lowering: Lowering) -> UOp:
    """Turns a WHERE with a rare side into a register with the usual value, and a loop of at most one step that changes
    it.

        r = where(c, rare, usual)  →  r = usual; for once in 0..any(c): r = where(c, rare, usual)

    WHEREs with the same condition share the loop, which contains the nodes that only they need
    (`codegen/transforms/linearize.py`). On a GPU both sides are computed, because a branch that only some work-items
    take must contain no barrier.
    """
    rare_nodes = [node for node in sink.find(Ops.WHERE) if node.arg is RARELY]
    if not rare_nodes or lowering.target.has_local:
        return sink
    number = 1 + max((loop.arg.id for loop in sink.find(Ops.RANGE)), default=-1)
    replacements: dict[UOp, UOp] = {}
    loops: dict[UOp, UOp] = {}
    for node in rare_nodes:  # sources first, so that a rare WHERE below another is replaced before it
        condition, rare_value, usual_value = (
            src.substitute_more(replacements, [Ops.WHERE], "in a branch") for src in node.src
        )
        loop = loops.get(condition)
        if loop is None:
            loop = loops[condition] = UOp.range(any_lane(condition), Axis(number + len(loops), AxisKind.RARE))
        register = UOp(Ops.DEFINE_ACC, node.dtype, (usual_value,), next(lowering.numbers))
        assigned = UOp(Ops.ASSIGN, node.dtype, (register, condition.where(rare_value, usual_value)))
        replacements[node] = UOp(Ops.RESULT, node.dtype, (register, assigned, loop))
    return sink.substitute_more(replacements, [Ops.WHERE], "in a branch")


def any_lane(condition: UOp) -> UOp:
    """Returns 1 if the condition holds in any lane, else 0."""
    if condition.dtype.count > 1:
        condition = UOp(Ops.HREDUCE, dtypes.bool, (condition,), Ops.MAX)
    return condition.cast(dtypes.index)


__all__ = ["branch_where_rare"]

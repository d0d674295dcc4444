"""Pass "rare branches": what a WHERE chooses rarely is computed only where some lane wants it."""

from __future__ import annotations

from tinyexplore.codegen.late import LateContext
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, PatternMatcher, UOp, UPat, rule
from tinyexplore.uop.ops import RARELY


@rule(UPat.of(Ops.SINK, name="sink"))
def branch_where_rare(sink: UOp, ctx: LateContext) -> UOp | None:
    """where(c, rare, usual) is a register that holds `usual`, and what a loop of no or one step makes of it.

        r = usual
        for once in range(any(c)):
            r = where(c, rare, usual)

    WHEREs with one condition share the loop; what only they need stands in it (`codegen/linearize.py`).
    """
    chosen = [node for node in sink.find(Ops.WHERE) if node.arg is RARELY]
    if not chosen:
        return None
    number = 1 + max((loop.arg.id for loop in sink.find(Ops.RANGE)), default=-1)
    changes: dict[UOp, UOp] = {}
    loops: dict[UOp, UOp] = {}
    for node in chosen:  # sources first: those of a WHERE may be changed already
        condition, rare, usual = (src.substitute(changes, tell="in a branch") for src in node.src)
        loop = loops.get(condition)
        if loop is None:
            loop = loops[condition] = UOp.range(any_lane(condition), Axis(number + len(loops), AxisKind.RARE))
        register = UOp(Ops.DEFINE_ACC, node.dtype, (usual,), next(ctx.numbers))
        assigned = UOp(Ops.ASSIGN, node.dtype, (register, condition.where(rare, usual)))
        changes[node] = UOp(Ops.RESULT, node.dtype, (register, assigned, loop))
    return sink.substitute(changes, tell="in a branch")


def any_lane(condition: UOp) -> UOp:
    """1 where the condition holds in any lane, else 0."""
    if condition.dtype.count > 1:
        condition = UOp(Ops.HREDUCE, dtypes.bool, (condition,), Ops.MAX)
    return condition.cast(dtypes.index)


RARE_BRANCHES = PatternMatcher((branch_where_rare,))

__all__ = ["RARE_BRANCHES"]

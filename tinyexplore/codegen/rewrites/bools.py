"""Pass "bool arithmetic": turns sums, products and extremes of bools into logic, and casts to bool into comparisons."""

from __future__ import annotations

from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, PatternMatcher, UOp, UPat, rule, var


@rule(UPat.of((Ops.ADD, Ops.MAX), var("x", (dtypes.bool,)), var("y"), name="node"))
def bool_or(node: UOp, x: UOp, y: UOp) -> UOp:
    """The sum and the maximum of two bools are their logical or."""
    return x | y


@rule(UPat.of((Ops.MUL, Ops.MIN), var("x", (dtypes.bool,)), var("y"), name="node"))
def bool_and(node: UOp, x: UOp, y: UOp) -> UOp:
    """The product and the minimum of two bools are their logical and."""
    return x & y


@rule(UPat.of(Ops.CAST, var("x"), name="cast"))
def cast_to_bool(cast: UOp, x: UOp) -> UOp | None:
    """A number cast to bool is whether it is not zero (NaN is true)."""
    if cast.dtype.scalar is not dtypes.bool or x.dtype.scalar is dtypes.bool:
        return None
    return x.ne(UOp.const(x.dtype, 0))


BOOLS = PatternMatcher((bool_or, bool_and, cast_to_bool), only=(dtypes.bool,))

__all__ = ["BOOLS"]

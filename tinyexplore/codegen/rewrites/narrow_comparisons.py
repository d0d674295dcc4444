"""Pass "narrow comparisons": compares indices as int32 in masks, if int32 can represent them."""

from __future__ import annotations

from tinyexplore.dtype import dtypes
from tinyexplore.uop import OpGroups, Ops, PatternMatcher, UOp, UPat, rule, var
from tinyexplore.uop.bounds import bounds


@rule(UPat.of(OpGroups.COMPARE, var("x", (dtypes.index,)), var("y", (dtypes.index,)), name="node"))
def compare_in_int32(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Vectors of indices in the range of int32 are compared as int32: a register holds twice as many of them."""
    if x.dtype.count == 1 or not (_fits_int32(x) and _fits_int32(y)):
        return None
    narrow_x, narrow_y = in_int32(x), in_int32(y)
    return None if narrow_x is None or narrow_y is None else narrow_x.alu(node.op, narrow_y)


def _fits_int32(value: UOp) -> bool:
    low, high = bounds(value)
    return -(1 << 31) <= low and high < 1 << 31


def in_int32(value: UOp) -> UOp | None:
    """Returns a vector of indices as sums and products of int32, which wrap like the int64 ones; None for other
    vectors."""
    lanes = dtypes.int32.vec(value.dtype.count)
    match value.op:
        case Ops.CONST:
            return UOp.const(lanes, value.arg) if abs(value.arg) < 1 << 31 else None
        case Ops.VECTORIZE if value.src[0] is value.src[-1]:
            return value.src[0].cast(dtypes.int32).broadcast(value.dtype.count)
        case Ops.VECTORIZE if all(lane.op is Ops.CONST and abs(lane.arg) < 1 << 31 for lane in value.src):
            return UOp(Ops.VECTORIZE, lanes, tuple([UOp.const(dtypes.int32, lane.arg) for lane in value.src]))
        case Ops.ADD | Ops.MUL:
            narrow_x, narrow_y = (in_int32(src) for src in value.src)
            return None if narrow_x is None or narrow_y is None else narrow_x.alu(value.op, narrow_y)
    return None


NARROW_COMPARISONS = PatternMatcher((compare_in_int32,))

__all__ = ["NARROW_COMPARISONS"]

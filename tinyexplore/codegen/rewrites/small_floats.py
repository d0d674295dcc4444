"""Pass "widen small floats": floats of 8 and 16 bits that the target only stores are computed in float32."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Group, Ops, PatternMatcher, UOp, UPat, rule, var

SMALL_FLOATS = (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s)
KEPT = frozenset({Ops.CAST, Ops.BITCAST, Ops.WHERE})


@rule(UPat.of((Group.ALU - KEPT) | {Ops.REDUCE, Ops.HREDUCE, Ops.SCAN}, name="node"))
def compute_in_float32(node: UOp, ctx: Lowering) -> UOp | None:
    """A small float that the target only stores: computed in float32, then rounded, which gives the same result."""
    values = node.src[: node.value_count]
    stored = (*ctx.target.storage_only, *dtypes.fp8s)
    small = next((src.dtype for src in values if src.dtype.scalar in stored), None)
    if small is None:
        return None
    assert isinstance(small, DType) and isinstance(node.dtype, DType)
    wide = tuple(src.cast(dtypes.float32.vec(src.dtype.count)) for src in values)
    if node.op in Group.COMPARE:
        return node.replace(src=wide)
    inner = node.replace(dtype=dtypes.float32.vec(node.dtype.count), src=(*wide, *node.src[len(values) :]))
    return inner.cast(node.dtype)


@rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, var("x", SMALL_FLOATS), name="up"), name="down"))
def cast_there_and_back(down: UOp, up: UOp, x: UOp) -> UOp | None:
    """A small float made float32 and then what it was is unchanged."""
    return x if down.dtype is x.dtype and up.dtype.scalar is dtypes.float32 else None


@rule(UPat.of(Ops.CAST, var("x"), name="cast"))
def cast_through_float32(cast: UOp, x: UOp, ctx: Lowering) -> UOp | None:
    """bfloat16 and the fp8s are converted from and to float32 only; other types take the way over it."""
    here, there = x.dtype.scalar, cast.dtype.scalar
    over = (dtypes.bfloat16, *dtypes.fp8s)
    if (here in over and there is not dtypes.float32) or (there in over and here is not dtypes.float32):
        return x.cast(dtypes.float32.vec(cast.dtype.count)).cast(cast.dtype)
    return None


WIDEN_SMALL_FLOATS = PatternMatcher((compute_in_float32, cast_through_float32, cast_there_and_back), only=SMALL_FLOATS)

__all__ = ["SMALL_FLOATS", "WIDEN_SMALL_FLOATS"]

"""Pass "widen small floats": computes floats of 8 and 16 bits that the target only stores in float32."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import OpGroups, Ops, PatternMatcher, UOp, UPat, rule, var

SMALL_FLOATS = (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s)
UNCONVERTED_OPS = frozenset({Ops.CAST, Ops.BITCAST, Ops.WHERE})


@rule(UPat.of((OpGroups.ALU - UNCONVERTED_OPS) | {Ops.REDUCE, Ops.HREDUCE, Ops.SCAN}, name="node"))
def compute_in_float32(node: UOp, ctx: Lowering) -> UOp | None:
    """An operation on small floats that the target only stores is computed in float32, then rounded to the small float.

    A small float has p bits, float32 at least 2 p + 2. So a sum, product, quotient or square root gives the same result
    as if rounded once. A MULACC of float16 is rounded once: it is computed in float64, which can hold its x y + z. A
    target that lacks float64 rounds it twice. The definition of bfloat16 and the fp8s rounds every result to float32
    first, so a MULACC in float32 is correct.
    A function such as EXP is rounded twice: its error may be 0.5 + 2**-13 ulp. A reduction is rounded once, at its end.
    """
    values = node.src[: node.value_count]
    stored = (*ctx.target.storage_only, *dtypes.fp8s)
    small_dtype = next((src.dtype for src in values if src.dtype.scalar in stored), None)
    if small_dtype is None:
        return None
    assert isinstance(small_dtype, DType) and isinstance(node.dtype, DType)
    is_half_mulacc = node.op is Ops.MULACC and small_dtype.scalar is dtypes.float16
    wide_dtype = (
        dtypes.float64 if is_half_mulacc and dtypes.float64 not in ctx.target.unsupported_dtypes else dtypes.float32
    )
    wide_values = tuple(src.cast(wide_dtype.vec(src.dtype.count)) for src in values)
    if node.op in OpGroups.COMPARE:
        return node.replace(src=wide_values)
    inner = node.replace(dtype=wide_dtype.vec(node.dtype.count), src=(*wide_values, *node.src[len(values) :]))
    return inner.cast(node.dtype)


@rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, var("x", SMALL_FLOATS), name="up"), name="down"))
def cast_there_and_back(down: UOp, up: UOp, x: UOp) -> UOp | None:
    """A small float cast to float32 and back to its dtype is unchanged."""
    return x if down.dtype is x.dtype and up.dtype.scalar is dtypes.float32 else None


@rule(UPat.of(Ops.CAST, var("x"), name="cast"))
def cast_through_float32(cast: UOp, x: UOp, ctx: Lowering) -> UOp | None:
    """bfloat16 and the fp8s are converted only from and to float32; conversions with other types go through float32."""
    source, target = x.dtype.scalar, cast.dtype.scalar
    types_through_float32 = (dtypes.bfloat16, *dtypes.fp8s)
    if (source in types_through_float32 and target is not dtypes.float32) or (
        target in types_through_float32 and source is not dtypes.float32
    ):
        return x.cast(dtypes.float32.vec(cast.dtype.count)).cast(cast.dtype)
    return None


WIDEN_SMALL_FLOATS = PatternMatcher((compute_in_float32, cast_through_float32, cast_there_and_back), only=SMALL_FLOATS)

__all__ = ["SMALL_FLOATS", "WIDEN_SMALL_FLOATS"]

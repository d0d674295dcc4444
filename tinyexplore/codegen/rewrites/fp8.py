"""Passes "fp8 conversions" and "fp8 as bytes": turn floats of 8 bits into bytes, converted by arithmetic, on every
device."""

from __future__ import annotations

from dataclasses import replace

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import Ops, PatternMatcher, UOp, UPat, rule, var
from tinyexplore.uop.semantics import FP8, to_bits

FLOAT32_MANTISSA, FLOAT32_BIAS, FLOAT32_INFINITY = 23, 127, 0x7F800000
WHOLE = 1 << FLOAT32_MANTISSA  # the least float32 whose successor is greater by 1


def _power_of_two_bits(exponent: int) -> int:
    """Returns the bits of the float32 2 ** exponent."""
    return exponent + FLOAT32_BIAS << FLOAT32_MANTISSA


@rule(UPat.of(Ops.CAST, var("x", dtypes.fp8s), name="cast"))
def fp8_to_float32(cast: UOp, x: UOp) -> UOp | None:
    """A cast of fp8 to float32 moves the bits of exponent and mantissa to their positions in float32. It is exact."""
    if cast.dtype.scalar is not dtypes.float32:
        return None
    fp8_format, count = FP8[x.dtype.scalar], x.dtype.count
    byte = x.bitcast(dtypes.uint8.vec(count)).cast(dtypes.uint32.vec(count))
    code = byte & 0x7F
    normal = (code << (FLOAT32_MANTISSA - fp8_format.mantissa)) + (FLOAT32_BIAS - fp8_format.bias << FLOAT32_MANTISSA)
    tiny = (code.cast(cast.dtype) * 2.0 ** (1 - fp8_format.bias - fp8_format.mantissa)).bitcast(code.dtype)
    bits = (code < 1 << fp8_format.mantissa).where(tiny, normal)
    if fp8_format.infinite != fp8_format.nan:
        bits = code.eq(fp8_format.infinite).where(FLOAT32_INFINITY, bits)
    bits = (code > max(fp8_format.greatest, fp8_format.infinite - (fp8_format.infinite == fp8_format.nan))).where(
        0x7FC00000, bits
    )
    return (bits | (byte >> 7 << 31)).bitcast(cast.dtype)


@rule(UPat.of(Ops.CAST, var("x", (dtypes.float32,)), name="cast"))
def float32_to_fp8(cast: UOp, x: UOp) -> UOp | None:
    """A cast to fp8 gives the nearest fp8, ties to even. NaN stays NaN.

    Larger values become infinite, or the largest value in a format without infinity.
    """
    fp8_format = FP8.get(cast.dtype.scalar)
    if fp8_format is None:
        return None
    u32 = dtypes.uint32.vec(x.dtype.count)
    bits = x.bitcast(u32)
    size = bits & 0x7FFFFFFF
    lost = FLOAT32_MANTISSA - fp8_format.mantissa
    rounded = size + ((size >> lost & 1) + ((1 << lost - 1) - 1)) >> lost
    normal = rounded + -(FLOAT32_BIAS - fp8_format.bias << fp8_format.mantissa) % (1 << 32)
    # below the normal numbers: multiples of the least one; adding 2 ** 23 rounds to a whole number
    steps = size.bitcast(x.dtype) * 2.0 ** (fp8_format.bias - 1 + fp8_format.mantissa) + float(WHOLE)
    tiny = steps.bitcast(u32) + -_power_of_two_bits(FLOAT32_MANTISSA) % (1 << 32)
    code = (size < _power_of_two_bits(1 - fp8_format.bias)).where(tiny, normal)
    code = (code > fp8_format.overflow).where(fp8_format.overflow, code)
    code = size.eq(FLOAT32_INFINITY).where(fp8_format.infinite, code)
    code = (size > FLOAT32_INFINITY).where(fp8_format.nan, code)
    return (code | (bits >> 24 & 0x80)).cast(dtypes.uint8.vec(x.dtype.count)).bitcast(cast.dtype)


@rule(UPat.of(Ops.CONST, dtypes=dtypes.fp8s, name="const"))
def fp8_constant(const: UOp) -> UOp:
    """A constant fp8 is its byte."""
    return UOp.const(dtypes.uint8.vec(const.dtype.count), to_bits(const.arg, const.dtype))


@rule(UPat.of(Ops.BITCAST, var("x"), name="cast"))
def same_bits(cast: UOp, x: UOp) -> UOp | None:
    """A bitcast from or to fp8 is one from or to the byte that represents the fp8."""
    if x.dtype is cast.dtype:
        return x
    return x.bitcast(_stored_dtype(cast.dtype)) if cast.dtype.scalar in dtypes.fp8s else None


BYTE_MOVE_OPS = (Ops.DEFINE_GLOBAL, Ops.DEFINE_LOCAL, Ops.INDEX, Ops.LOAD, Ops.WHERE, Ops.VECTORIZE, Ops.GEP)


@rule(UPat.of(BYTE_MOVE_OPS, name="node"))
def fp8_moves_as_byte(node: UOp) -> UOp | None:
    """Memory of fp8, and operations that only move fp8 values, use bytes instead."""
    dtype = _stored_dtype(node.dtype)
    return None if dtype == node.dtype else node.replace(dtype=dtype)


def _stored_dtype(dtype: DType | PtrDType) -> DType | PtrDType:
    if isinstance(dtype, PtrDType):
        return replace(dtype, base=dtypes.uint8) if dtype.base in dtypes.fp8s else dtype
    return dtypes.uint8.vec(dtype.count) if dtype.scalar in dtypes.fp8s else dtype


def as_bytes(pointer: UOp) -> UOp:
    """Returns a kernel argument of an fp8 type as a pointer to bytes, as programs declare it. Returns others
    unchanged."""
    return fp8_moves_as_byte.function(pointer) or pointer


FP8_CONVERSIONS = PatternMatcher((fp8_to_float32, float32_to_fp8), only=dtypes.fp8s)
FP8_AS_BYTES = PatternMatcher((fp8_constant, same_bits, fp8_moves_as_byte), only=dtypes.fp8s)

__all__ = ["FP8_AS_BYTES", "FP8_CONVERSIONS", "as_bytes"]

"""The exact meaning of each arithmetic operation, on Python values. Every device is tested against this definition.

Floats are Python floats already rounded to their dtype, integers are ints in range, bools are bools.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.ops import OpGroups, Ops

_FLOAT32 = struct.Struct("<f")
_FLOAT16 = struct.Struct("<e")
_UINT32 = struct.Struct("<I")


def float32(x: float) -> float:
    """Rounds `x` to the nearest float32 (ties to even). Too large values become infinite."""
    try:
        return _FLOAT32.unpack(_FLOAT32.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def float16(x: float) -> float:
    """Rounds `x` to the nearest float16 (ties to even). Too large values become infinite."""
    try:
        return _FLOAT16.unpack(_FLOAT16.pack(x))[0]
    except OverflowError:
        return math.copysign(math.inf, x)


def bfloat16_bits(x: float) -> int:
    """Returns the 16 bits of the bfloat16 nearest to float32(`x`) (ties to even). NaN stays NaN."""
    if x != x:
        return 0x7FC0
    bits = _UINT32.unpack(_FLOAT32.pack(float32(x)))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bfloat16_from_bits(bits: int) -> float:
    return _FLOAT32.unpack(_UINT32.pack(bits << 16))[0]


def bfloat16(x: float) -> float:
    """Rounds `x` to float32 and then to the nearest bfloat16."""
    return bfloat16_from_bits(bfloat16_bits(x))


@dataclass(frozen=True)
class Fp8:
    """A float of one byte: sign, exponent, mantissa. Codes are bytes without the sign bit.

    mantissa: bits of the mantissa.
    bias: bias of the exponent.
    greatest: code of the greatest finite number.
    overflow: code that larger numbers are rounded to.
    infinite: code of infinity.
    nan: code of NaN.
    """

    mantissa: int
    bias: int
    greatest: int  # the greatest finite number
    overflow: int  # the code of larger numbers: infinity, or the greatest number in a format without it
    infinite: int  # the code of infinity; NaN in a format without it
    nan: int = 0x7F


FP8 = {dtypes.fp8e4m3: Fp8(3, 7, 0x7E, 0x7E, 0x7F), dtypes.fp8e5m2: Fp8(2, 15, 0x7B, 0x7C, 0x7C)}


def fp8_bits(x: float, dtype: DType) -> int:
    """Returns the byte of the value of `dtype` nearest to float32(`x`) (ties to even). NaN stays NaN.

    Larger values become infinite, or the greatest value in a format without infinity.
    """
    fp8_format, x = FP8[dtype], float32(x)
    sign = 0x80 if math.copysign(1.0, x) < 0 else 0
    if x != x or math.isinf(x):
        return sign | (fp8_format.nan if x != x else fp8_format.infinite)
    exponent = 1 - fp8_format.bias
    if x:
        exponent = max(exponent, math.frexp(x)[1] - 1)
    steps = round(math.ldexp(abs(x), fp8_format.mantissa - exponent))
    return sign | min(steps + (exponent + fp8_format.bias - 1 << fp8_format.mantissa), fp8_format.overflow)


def fp8_from_bits(bits: int, dtype: DType) -> float:
    """Returns the value of a byte of an 8-bit float."""
    fp8_format, code = FP8[dtype], bits & 0x7F
    sign = -1.0 if bits & 0x80 else 1.0
    if code > fp8_format.greatest:
        return math.copysign(math.inf if code == fp8_format.infinite != fp8_format.nan else math.nan, sign)
    exponent, steps = code >> fp8_format.mantissa, code & (1 << fp8_format.mantissa) - 1
    if exponent:
        steps |= 1 << fp8_format.mantissa
    return math.copysign(math.ldexp(steps, max(exponent, 1) - fp8_format.bias - fp8_format.mantissa), sign)


def wrap(value: int, dtype: DType) -> int:
    """Returns the integer of `dtype` that is congruent to `value`."""
    lowest, count = _ring(dtype)
    return (value - lowest) % count + lowest


@cache
def _ring(dtype: DType) -> tuple[int, int]:
    """Returns the least integer of `dtype`, and the number of its integers."""
    count = 1 << dtype.bits
    return 0 if dtypes.is_unsigned(dtype) else -count // 2, count


_ROUND: dict[DType, Callable[[float], float]] = {
    dtypes.fp8e4m3: lambda x: fp8_from_bits(fp8_bits(x, dtypes.fp8e4m3), dtypes.fp8e4m3),
    dtypes.fp8e5m2: lambda x: fp8_from_bits(fp8_bits(x, dtypes.fp8e5m2), dtypes.fp8e5m2),
    dtypes.float16: float16,
    dtypes.bfloat16: bfloat16,
    dtypes.float32: float32,
    dtypes.float64: float,
}


def to_dtype_range(value: Any, dtype: DType) -> Any:
    """Converts an exact (or more precise) result to a value of `dtype`: rounds a float, wraps an int, tests for a
    bool."""
    dtype = dtype.scalar
    if dtype is dtypes.float64:
        return float(value)
    if dtype in _ROUND:
        return _ROUND[dtype](_to_sticky_float(value) if type(value) is int else value)
    return bool(value) if dtype is dtypes.bool else wrap(value, dtype)


def _to_sticky_float(value: int) -> float:
    """Converts an int to float64 with a sticky last bit, so that rounding to a narrower float afterwards is correct."""
    magnitude = abs(value)
    excess = magnitude.bit_length() - 53
    if excess > 0:
        mantissa = magnitude >> excess
        magnitude = (mantissa | (magnitude != mantissa << excess)) << excess
    return float(-magnitude if value < 0 else magnitude)


# *** one function per operation: takes exact values, returns an exact value that the caller rounds ***


def _fdiv(x: float, y: float) -> float:
    if y:
        return x / y
    if x == 0 or x != x or y != y:
        return math.nan
    return math.copysign(math.inf, x) * math.copysign(1.0, y)


def _idiv(x: int, y: int) -> int:
    if y == 0:
        return 0
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _mod(x: Any, y: Any) -> Any:
    if isinstance(x, float):
        return math.nan if y == 0 or math.isinf(x) else math.fmod(x, y)
    return 0 if y == 0 else x - _idiv(x, y) * y


def _max(x: Any, y: Any) -> Any:
    return x if x > y or x != x else y


def _min(x: Any, y: Any) -> Any:
    return x if x < y or x != x else y


def _sqrt(x: float) -> float:
    return x if x == 0 or x != x else math.sqrt(x) if x > 0 else math.nan


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _exp2(x: float) -> float:
    try:
        return math.pow(2.0, x)
    except OverflowError:
        return math.inf


def _log_by(function: Callable[[float], float]) -> Callable[[float], float]:
    def logarithm(x: float) -> float:
        return function(x) if x > 0 else -math.inf if x == 0 else math.nan

    return logarithm


def _periodic(function: Callable[[float], float]) -> Callable[[float], float]:
    def value(x: float) -> float:
        return math.nan if math.isinf(x) else function(x)

    return value


def _floor(x: Any) -> Any:
    if not isinstance(x, float) or not math.isfinite(x):
        return x
    return math.copysign(float(math.floor(x)), x)


def _pow(x: Any, y: Any) -> Any:
    if not isinstance(x, float):
        return x**y if y >= 0 else {1: 1, -1: 1 if y % 2 == 0 else -1}.get(x, 0)
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        if x != 0:
            return math.nan  # a negative number to a fractional power
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf


def _scale(x: float, n: float) -> float:
    if x != x or n != n:
        return math.nan
    if math.isinf(n):
        return x * (math.inf if n > 0 else 0.0)
    try:
        return math.ldexp(x, math.floor(max(-5000.0, min(n, 5000.0))))
    except OverflowError:
        return math.copysign(math.inf, x)


def _shr(x: int, y: int) -> int:
    return x >> y if y >= 0 else 0


def _shl(x: int, y: int) -> int:
    return x << y if 0 <= y < 64 else 0


def _bfloat16s(word: int) -> tuple[float, float]:
    return bfloat16_from_bits(word & 0xFFFF), bfloat16_from_bits(word >> 16)


def _bytes(word: int) -> tuple[int, ...]:
    return struct.unpack("<4b", word.to_bytes(4, "little"))


MEANING: dict[Ops, Callable[..., Any]] = {
    Ops.NEG: lambda x: -x,
    Ops.SQRT: _sqrt,
    Ops.EXP: _exp,
    Ops.EXP2: _exp2,
    Ops.LOG: _log_by(math.log),
    Ops.LOG2: _log_by(math.log2),
    Ops.SIN: _periodic(math.sin),
    Ops.COS: _periodic(math.cos),
    Ops.TANH: math.tanh,
    Ops.ERF: math.erf,
    Ops.FLOOR: _floor,
    Ops.ADD: lambda x, y: x + y,
    Ops.MUL: lambda x, y: x * y,
    Ops.FDIV: _fdiv,
    Ops.IDIV: _idiv,
    Ops.MOD: _mod,
    Ops.MAX: _max,
    Ops.MIN: _min,
    Ops.POW: _pow,
    Ops.SCALE: _scale,
    Ops.CMPLT: lambda x, y: x < y,
    Ops.CMPLE: lambda x, y: x <= y,
    Ops.CMPEQ: lambda x, y: x == y,
    Ops.CMPNE: lambda x, y: x != y,
    Ops.AND: lambda x, y: x & y,
    Ops.OR: lambda x, y: x | y,
    Ops.XOR: lambda x, y: x ^ y,
    Ops.SHL: _shl,
    Ops.SHR: _shr,
    Ops.WHERE: lambda condition, x, y: x if condition else y,
    Ops.MULACC: lambda x, y, z: x * y + z,
    Ops.DOT_BF16: lambda x, y, z: z + sum(a * b for a, b in zip(_bfloat16s(x), _bfloat16s(y))),
    Ops.DOT_I8: lambda x, y, z: z + sum(a * b for a, b in zip(_bytes(x), _bytes(y))),
    Ops.DOT_U8: lambda x, y, z: z + sum(a * b for a, b in zip(x.to_bytes(4, "little"), _bytes(y))),
}


def cast(value: Any, dtype: DType, source: DType) -> Any:
    """Converts a value of dtype `source` to `dtype` as C does.

    A float beyond the range of an integer type gives the result of x86: small ints wrap from int32, uint32 wraps from
    int64, and uint64 from int64 or 2⁶³ more. A value beyond these gives the least of them.
    """
    dtype = dtype.scalar
    if dtype is dtypes.bool:
        return value != 0
    if not dtypes.is_int(dtype):
        return to_dtype_range(int(value) if source.scalar is dtypes.bool else value, dtype)
    if not isinstance(value, float):
        return wrap(int(value), dtype)
    if dtype is dtypes.uint64:
        if value >= 2.0**63:
            return cast(value - 2.0**63, dtypes.int64, source) + 2**63
        return wrap(cast(value, dtypes.int64, source), dtype)
    wide_type = dtypes.int64 if dtype in (dtypes.int64, dtypes.uint32) else dtypes.int32
    lowest, highest = int(dtypes.min(wide_type)), dtypes.max(wide_type)
    if not math.isfinite(value) or not lowest <= int(value) <= highest:
        return wrap(lowest, dtype)
    return wrap(int(value), dtype)


def to_bits(value: Any, dtype: DType) -> int:
    """Returns the bytes of a scalar as an unsigned integer."""
    dtype = dtype.scalar
    if dtype is dtypes.bfloat16:
        return bfloat16_bits(value)
    if dtype in FP8:
        return fp8_bits(value, dtype)
    assert dtype.fmt is not None
    return int.from_bytes(struct.pack("<" + dtype.fmt, value), "little")


def from_bits(bits: int, dtype: DType) -> Any:
    """Returns the scalar of `dtype` with these bits."""
    dtype = dtype.scalar
    if dtype is dtypes.bfloat16:
        return bfloat16_from_bits(bits)
    if dtype in FP8:
        return fp8_from_bits(bits, dtype)
    assert dtype.fmt is not None
    return struct.unpack("<" + dtype.fmt, bits.to_bytes(dtype.itemsize, "little"))[0]


@cache
def scalar_function(op: Ops, dtype: DType, src_dtypes: tuple[DType, ...]) -> Callable[..., Any]:
    """Returns `op` as a function of scalars of `src_dtypes` that returns a scalar of `dtype`."""
    dtype = dtype.scalar
    if op is Ops.CAST:
        return lambda value: cast(value, dtype, src_dtypes[0])
    if op is Ops.BITCAST:
        return lambda value: from_bits(to_bits(value, src_dtypes[0]), dtype)
    if op not in MEANING:
        raise ValueError(f"{op.name} is not arithmetic: it has no value of its own")
    meaning = MEANING[op]
    if op in OpGroups.COMPARE or op is Ops.WHERE:
        return meaning
    if dtype is dtypes.bool and op is Ops.NEG:
        return lambda x: x
    if dtype in _ROUND and dtype is not dtypes.float64:
        rounded = _ROUND[dtype]
        return lambda *values: rounded(meaning(*values))
    return lambda *values: to_dtype_range(meaning(*values), dtype)


def evaluate(op: Ops, dtype: DType, *values: Any, src_dtypes: tuple[DType, ...] | None = None) -> Any:
    """Returns the result of `op` on the scalars `values`, as a value of `dtype`.

    src_dtypes: the dtypes of `values`; needed for CAST and BITCAST, otherwise `dtype` is assumed.
    A float that its dtype cannot represent (0.1) is first rounded to it, as in a kernel.
    Results follow IEEE 754 and C on wrapping integers. Overflow gives inf, a domain error NaN or inf. MAX and MIN give
    NaN if either side is NaN. Integer division by zero (which no kernel reaches) gives 0.
    """
    source_dtypes = src_dtypes or (dtype,) * len(values)
    if type(values[-1]) is float:
        values = tuple(
            [
                to_dtype_range(x, source_dtype) if type(x) is float else x
                for x, source_dtype in zip(values, source_dtypes)
            ]
        )
    return scalar_function(op, dtype, source_dtypes)(*values)


__all__ = [
    "FP8",
    "bfloat16_bits",
    "bfloat16_from_bits",
    "cast",
    "evaluate",
    "fp8_bits",
    "fp8_from_bits",
    "from_bits",
    "scalar_function",
    "to_bits",
    "wrap",
]

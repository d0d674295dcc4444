"""Pass "divisions": turns some divisions by a constant into products with its reciprocal, with equal bits.

It applies if the constant is a power of two, whose reciprocal is exact, or if the dividend is a byte: then the
reciprocal has two parts.
"""

from __future__ import annotations

import math
import struct
from functools import lru_cache

from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, PatternMatcher, UOp, UPat, cvar, rule, var
from tinyexplore.uop.bounds import bounds

BYTES = (dtypes.int8, dtypes.uint8)
LARGEST_EXPONENT = {dtypes.float32: 126, dtypes.float64: 1022}  # the n for which 2**n and 2**-n are normal numbers
HIGH_BITS = 16  # bits of the first part: its product with a byte is exact in float32


@rule(UPat.of(Ops.FDIV, var("x"), cvar("c"), name="quotient"))
def divide_by_power_of_two(quotient: UOp, x: UOp, c: UOp) -> UOp | None:
    """x / 2**n is x * 2**-n if 2**-n is a normal number: both are rounded from the same exact value."""
    mantissa, exponent = math.frexp(c.arg)
    largest_exponent = LARGEST_EXPONENT.get(quotient.dtype.scalar)
    if largest_exponent is None or abs(mantissa) != 0.5 or abs(exponent - 1) > largest_exponent:
        return None
    return x * UOp.const(x.dtype, 1 / c.arg)


@rule(UPat.of(Ops.FDIV, UPat.of(Ops.CAST, var("x", BYTES)), cvar("c"), name="quotient"))
def divide_byte(quotient: UOp, x: UOp, c: UOp) -> UOp | None:
    """x / c is x * high + x * low for a byte x, with equal rounding: a MULACC whose product is exact, however it
    rounds."""
    if quotient.dtype.scalar is not dtypes.float32:
        return None
    parts = reciprocal_in_parts(c.arg, *bounds(x))
    if parts is None:
        return None
    value = quotient.src[0]
    high, low = (UOp.const(value.dtype, part) for part in parts)
    return value.alu(Ops.MULACC, high, value * low)


@lru_cache(256)
def reciprocal_in_parts(divisor: float, lowest: int, highest: int) -> tuple[float, float] | None:
    """Returns high, of 16 bits, and low, with x * high + x * low = x / divisor in float32 for each whole x in least …
    most.

    None if they do not give that for all x: it tries each one. float64 represents x * high + x * low exactly, and a
    quotient rounded to 53 bits, then to 24, equals the quotient rounded to 24.
    """
    if not 2.0**-64 < abs(divisor) < 2.0**64:
        return None
    divisor = _round_to_float32(divisor)
    mantissa, exponent = math.frexp(1 / divisor)
    high = math.ldexp(math.trunc(math.ldexp(mantissa, HIGH_BITS)), exponent - HIGH_BITS)
    low = _round_to_float32(1 / divisor - high)
    for x in range(lowest, highest + 1):
        estimate, exact = _round_to_float32(x * high + _round_to_float32(x * low)), _round_to_float32(x / divisor)
        if estimate != exact or math.copysign(1, estimate) != math.copysign(1, exact):
            return None
    return high, low


def _round_to_float32(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


DIVISIONS = PatternMatcher((divide_by_power_of_two, divide_byte))

__all__ = ["DIVISIONS"]

"""REMAINDER: expands the exact remainder of float division to arithmetic, for quotients up to some millions.

For larger quotients, a branch (pass "branches") calls the device's own function lane by lane: a MOD whose `arg` is
RARELY. All arithmetic here is exact, so a MULACC may round once or twice.
"""

from __future__ import annotations

from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.uop.ops import RARELY, Ops
from tinyexplore.uop.parts import is_native, like, mulacc, opposite, rarely
from tinyexplore.uop.pattern import PatternMatcher, UPat, rule, var
from tinyexplore.uop.uop import UOp

LARGEST_QUOTIENT = 2.0**28  # largest quotient whose product with a number of 24 bits is exact in float64
LARGEST_LONG_QUOTIENT = 2.0**26  # largest quotient whose product with a number of 26 or 27 bits is exact
HIGH_BITS = -1 << 27  # mask that clears the last 27 bits of a float64


@rule(UPat.of(Ops.MOD, var("x"), var("y"), dtypes=(dtypes.float32,), name="node"))
def mod_float32(node: UOp, x: UOp, y: UOp, ctx: Any) -> UOp | None:
    """x % y of float32 is x - n y in float64, with n = x / y rounded towards zero.

    No quotient of two float32 is so close to a whole number that it rounds to one.
    """
    if node.arg is RARELY or is_native(ctx, x.dtype, Ops.MOD):
        return None
    wide_dtype = like(x, dtypes.float64)
    a, b = x.cast(wide_dtype), y.cast(wide_dtype)
    quotient = a / b
    remainder = mulacc(_round_to_zero(quotient), -b, a).cast(x.dtype)
    return _select_rare_cases(x, y, quotient, LARGEST_QUOTIENT, _copy_sign(remainder, x))


@rule(UPat.of(Ops.MOD, var("x"), var("y"), dtypes=(dtypes.float64,), name="node"))
def mod_float64(node: UOp, x: UOp, y: UOp, ctx: Any) -> UOp | None:
    """x % y of float64 is x - n y, with n = x / y rounded towards zero and y in two halves.

    The products of the halves with n are exact. If the quotient was rounded up to a whole number, y is added back.
    """
    if node.arg is RARELY or is_native(ctx, x.dtype, Ops.MOD):
        return None
    quotient = x / y
    n = _round_to_zero(quotient)
    high = (y.bitcast(like(y, dtypes.int64)) & HIGH_BITS).bitcast(y.dtype)
    remainder = mulacc(n, high - y, mulacc(n, -high, x))
    too_much = (remainder < 0.0).ne(x < 0.0) & remainder.ne(0.0)
    remainder = too_much.where(remainder + _copy_sign(y, x), remainder)
    return _select_rare_cases(x, y, quotient, LARGEST_LONG_QUOTIENT, _copy_sign(remainder, x))


def _round_to_zero(quotient: UOp) -> UOp:
    """Returns `quotient` rounded towards zero, for magnitudes below 2**31."""
    return quotient.cast(like(quotient, dtypes.int32)).cast(quotient.dtype)


def _copy_sign(value: UOp, x: UOp) -> UOp:
    """Returns `value` with the sign of `x`. A remainder of 0 also has this sign."""
    bits = like(x, dtypes.int64 if x.dtype.scalar is dtypes.float64 else dtypes.int32)
    sign = dtypes.min(bits)
    return ((value.bitcast(bits) & (-1 - sign)) | (x.bitcast(bits) & sign)).bitcast(x.dtype)


def _select_rare_cases(x: UOp, y: UOp, quotient: UOp, quotient_limit: float, remainder: UOp) -> UOp:
    """Returns `remainder`, or `x` where it is less than `y` (which may be infinite).

    For quotients of `quotient_limit` and more, infinities and NaN, returns the device's result.
    """
    usual_value = (_magnitude(x) < _magnitude(y)).where(x, remainder)
    is_far = opposite((quotient < quotient_limit) & (quotient > -quotient_limit))
    return rarely(is_far, UOp(Ops.MOD, x.dtype, (x, y), RARELY), usual_value)


def _magnitude(x: UOp) -> UOp:
    return x.maximum(-x)


REMAINDER = PatternMatcher((mod_float32, mod_float64))

__all__ = ["REMAINDER"]

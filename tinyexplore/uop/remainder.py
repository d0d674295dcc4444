"""REMAINDER: what division of floats leaves over, exactly: written out for quotients of some millions and less.

Beyond, which is branched around (pass "branches"), the device's own function serves, lane by lane: a MOD whose `arg`
is RARELY. Everything written out here is exact, so that a MULACC may be rounded once or twice.
"""

from __future__ import annotations

from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.uop.ops import RARELY, Ops
from tinyexplore.uop.parts import is_native, like, mulacc, opposite, rarely
from tinyexplore.uop.pattern import PatternMatcher, UPat, rule, var
from tinyexplore.uop.uop import UOp

MOST = 2.0**28  # times 24 bits it is exact in float64
MOST_LONG = 2.0**26  # times 26 or 27 bits it is
HIGH_BITS = -1 << 27  # what is left of a float64 where its last 27 bits are 0


@rule(UPat.of(Ops.MOD, var("x"), var("y"), dtypes=(dtypes.float32,), name="node"))
def mod_float32(node: UOp, x: UOp, y: UOp, ctx: Any) -> UOp | None:
    """x - n y in float64, n = x / y towards zero: no quotient of two float32 is so near to a whole number that it
    becomes one there."""
    if node.arg is RARELY or is_native(ctx, x.dtype, Ops.MOD):
        return None
    long = like(x, dtypes.float64)
    a, b = x.cast(long), y.cast(long)
    quotient = a / b
    rest = mulacc(_whole(quotient), -b, a).cast(x.dtype)
    return _with_the_rare(x, y, quotient, MOST, _signed(rest, x))


@rule(UPat.of(Ops.MOD, var("x"), var("y"), dtypes=(dtypes.float64,), name="node"))
def mod_float64(node: UOp, x: UOp, y: UOp, ctx: Any) -> UOp | None:
    """x - n y, n = x / y towards zero, with y in two halves, by which n times each is exact; where the quotient was
    rounded up to a whole number, one y too much has been taken off."""
    if node.arg is RARELY or is_native(ctx, x.dtype, Ops.MOD):
        return None
    quotient = x / y
    n = _whole(quotient)
    high = (y.bitcast(like(y, dtypes.int64)) & HIGH_BITS).bitcast(y.dtype)
    rest = mulacc(n, high - y, mulacc(n, -high, x))
    too_much = (rest < 0.0).ne(x < 0.0) & rest.ne(0.0)
    rest = too_much.where(rest + _signed(y, x), rest)
    return _with_the_rare(x, y, quotient, MOST_LONG, _signed(rest, x))


def _whole(quotient: UOp) -> UOp:
    """Rounded towards zero, where it is below 2**31."""
    return quotient.cast(like(quotient, dtypes.int32)).cast(quotient.dtype)


def _signed(value: UOp, x: UOp) -> UOp:
    """`value` with the sign of `x`: a remainder of 0 has one, too."""
    bits = like(x, dtypes.int64 if x.dtype.scalar is dtypes.float64 else dtypes.int32)
    sign = dtypes.min(bits)
    return ((value.bitcast(bits) & (-1 - sign)) | (x.bitcast(bits) & sign)).bitcast(x.dtype)


def _with_the_rare(x: UOp, y: UOp, quotient: UOp, most: float, rest: UOp) -> UOp:
    """`rest`, or `x` where it is the smaller (and `y` may be infinite); of quotients of `most` and more, of infinities
    and NaN what the device says."""
    usual = (_magnitude(x) < _magnitude(y)).where(x, rest)
    is_far = opposite((quotient < most) & (quotient > -most))
    return rarely(is_far, UOp(Ops.MOD, x.dtype, (x, y), RARELY), usual)


def _magnitude(x: UOp) -> UOp:
    return x.maximum(-x)


REMAINDER = PatternMatcher((mod_float32, mod_float64))

__all__ = ["REMAINDER"]

"""DOUBLE: expands exp, log, sin, ... of float64 to arithmetic, as `transcendental.py` does for float32.

Errors are in ulp of float64 and hold whether MULACC rounds once or twice. erf and powers use the device's functions. So
do sine and cosine of huge angles, in a branch. The polynomials are derived by `docs/numerics/derive_coefficients.py`.
"""

from __future__ import annotations

import math
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.uop.ops import Ops
from tinyexplore.uop.parts import is_native, like, mulacc, opposite, polynomial, rarely, scales, table
from tinyexplore.uop.pattern import PatternMatcher, UPat, rule, var
from tinyexplore.uop.uop import UOp

FLOAT64 = (dtypes.float64,)

# *** coefficients, lowest degree first ***

# exp(r) = 1 + r + r² P(r) for |r| ≤ ln 2 / 2, to 2**-57.9
EXP64 = (
    0.5000000000000011,
    0.1666666666666646,
    0.04166666666652852,
    0.008333333333472775,
    0.001388888894381254,
    0.00019841269542080368,
    2.4801493029923442e-05,
    2.755756129292879e-06,
    2.763025153789214e-07,
    2.5006553950892107e-08,
)
# the same for |r| ≤ ln 2 / 16, to 2**-58.2
EXP64_NEAR = (
    0.50000000000003,
    0.16666666666663976,
    0.04166666656936062,
    0.008333333368141259,
    0.0013889783845141177,
    0.00019840656072140362,
)
# 2**f = 1 + f P(f) for |f| ≤ 1/2, to 2**-57.7
EXP2_64 = (
    0.6931471805599453,
    0.24022650695910108,
    0.05550410866482172,
    0.0096181291076016,
    0.001333355814654665,
    0.00015403530449040575,
    1.5252733633553517e-05,
    1.3215438834314807e-06,
    1.0178160225414049e-07,
    7.073233228800707e-09,
    4.438837100923922e-10,
)
# the same for |f| ≤ 1/16, to 2**-58.2
EXP2_64_NEAR = (
    0.6931471805599453,
    0.24022650695911432,
    0.055504108664837216,
    0.009618129085778786,
    0.0013333558119713756,
    0.00015404511915258605,
    1.5253145871802074e-05,
)
# log((1 + s) / (1 - s)) = 2 s + s³ P(s²) for |s| ≤ 0.1716, to 2**-59.0
ATANH64 = (
    0.666666666666667,
    0.39999999999763314,
    0.28571428675523636,
    0.22222204695723097,
    0.18183274140734462,
    0.1532092399399595,
    0.1473157546202231,
)
# sin(r) = r + r³ P(r²) for |r| ≤ 0.786, to 2**-55.7
SIN64 = (
    -0.16666666666666666,
    0.00833333333333304,
    -0.00019841269844491892,
    2.7557322622982175e-06,
    -2.5053343107253975e-08,
    1.624906367589757e-10,
    -1.8213584166949226e-12,
)
# cos(r) = 1 - r²/2 + r⁴ P(r²) for |r| ≤ 0.786, to 2**-55.6
COS64 = (
    0.041666666666666595,
    -0.0013888888888873303,
    2.4801587328117183e-05,
    -2.755733878641638e-07,
    2.0880723767571344e-09,
    -1.1693577677639789e-11,
)
# π/2 as 32 bits, whose whole multiples below 2**20 are exact, and the 53 bits after them
LN2_PARTS = (
    0.6931471803691238,
    1.9082149292705877e-10,
)
# 30 bits each, and the 53 bits after them
HALF_PI_PARTS = (
    1.570796325802803,
    9.920935791635221e-10,
    5.17018297889025e-19,
    2.9038559739793605e-28,
)
TWO_OVER_PI = 0.6366197723675814
LOG2E = 1.4426950408889634
LOG2E_MINUS_ONE = 0.4426950408889634
FAR = 2.0**23  # beyond, quarter turns times the first of HALF_PI_PARTS are not exact

VANISHED = -6000.0  # here exp is 0, and SCALE takes no slow path (`tinyexplore.uop.transcendental`)
ROUND_TO_WHOLE = 6755399441055744.0  # 1.5 * 2**52: adding and subtracting it rounds a number below 2**51
ROUND_TO_EIGHTHS = 844424930131968.0  # 1.5 * 2**49: after its addition, the three lowest bits hold eighths
EIGHTHS = tuple([2.0 ** (k / 8) for k in range(8)])
SIGN_BIT = -(1 << 63)
MAGNITUDE = (1 << 63) - 1
ONE_BITS = 1023 << 52
SQRT_HALF_BITS = 0x3FE6A09E667F3BCD


# *** parts ***


def _as_bits(x: UOp) -> UOp:
    return x.bitcast(like(x, dtypes.int64))


def _as_float(bits: UOp) -> UOp:
    return bits.bitcast(like(bits, dtypes.float64))


def _make_power_of_two(n_bits: UOp) -> UOp:
    """Returns 2**n for n in the low bits of `n_bits`."""
    return _as_float((n_bits << 52) + ONE_BITS)


def _scale_by_power(value: UOp, n: UOp) -> UOp:
    """Returns value * 2**n, rounded once, for n in the low bits of `n` and value about 1.

    It multiplies by two factors, because 2**n alone may leave the range of float64 although the result does not.
    """
    scale = _make_power_of_two(n >> 1)
    return value * scale * _as_float(_as_bits(scale) + ((n & 1) << 52))


def _split_eighths(shifted: UOp) -> tuple[UOp, UOp]:
    """Returns n and 2 to the power of its fraction, where `shifted` holds n rounded to eighths."""
    return shifted + -ROUND_TO_EIGHTHS, table(_as_bits(shifted), EIGHTHS)


def _reduce_exp_argument(x: UOp) -> tuple[UOp, UOp]:
    """Returns r and bits whose low end is n, with x = n ln 2 + r and |r| ≤ ln 2 / 2."""
    shifted = mulacc(x, LOG2E, ROUND_TO_WHOLE)
    n = shifted + -ROUND_TO_WHOLE
    for ln2_part in LN2_PARTS:
        x = mulacc(n, -ln2_part, x)
    return x, _as_bits(shifted)


def _split_for_log(x: UOp) -> tuple[UOp, UOp, UOp]:
    """Returns e, f and t with x = 2**e (1 + f), sqrt(1/2) ≤ 1 + f < sqrt(2), and log(1 + f) = f + t; for x > 0.

    With s = f / (2 + f), log(1 + f) = 2 s + s³ P(s²), and 2 s = f - s f: t = s (f²/2 + s² P(s²)) - f²/2.
    """
    is_subnormal = x < 2.0**-1022
    bits_above = _as_bits(is_subnormal.where(x * 2.0**54, x)) + -SQRT_HALF_BITS
    f = _as_float((bits_above & ((1 << 52) - 1)) + SQRT_HALF_BITS) + -1.0
    exponent = (bits_above >> 52).cast(like(x, dtypes.int32)).cast(x.dtype)  # vectors convert int32 faster
    e = exponent + is_subnormal.where(UOp.const(x.dtype, -54.0), 0.0)
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    return e, f, mulacc(s, mulacc(polynomial(z, ATANH64), z, half_square), -half_square)


def _select_special_logs(x: UOp, value: UOp) -> UOp:
    """Returns `value` for 0 < x < inf, inf for inf, -inf for 0, and NaN for negative x and NaN."""
    value = (x < math.inf).where(value, x)
    value = (x < 0.0).where(math.nan, value)
    return x.eq(0.0).where(-math.inf, value)


def _compute_sine_or_cosine(x: UOp, op: Ops, ctx: Any) -> UOp:
    """Returns the sine of |x| with its own sign (op SIN), or the cosine (op COS).

    Subtracts n quarter turns part by part (Cody and Waite's reduction), then a polynomial gives sine or cosine. Angles
    from FAR on, which are few, use the device's function.
    """
    magnitude = _as_float(_as_bits(x) & MAGNITUDE)
    shifted = mulacc(magnitude, TWO_OVER_PI, ROUND_TO_WHOLE)
    n, r = shifted + -ROUND_TO_WHOLE, magnitude
    for half_pi_part in HALF_PI_PARTS:
        r = mulacc(n, -half_pi_part, r)
    q = _as_bits(shifted) + (op is Ops.COS)
    z = r * r
    sine = mulacc(polynomial(z, SIN64) * z, r, r)
    cosine = mulacc(mulacc(polynomial(z, COS64), z, -0.5), z, 1.0)
    result = _as_bits((q & 1).ne(0).where(cosine, sine)) ^ ((q & 2) << 62)
    if op is Ops.SIN:
        result = result ^ (_as_bits(x) & SIGN_BIT)
    device_result = UOp(op, x.dtype, (x,), FAR)
    # the comparison is false for NaN, which then takes the far branch
    return rarely(opposite(magnitude < FAR), device_result, _as_float(result))


# *** the functions ***


@rule(UPat.of(Ops.EXP, var("x"), dtypes=FLOAT64))
def exp_float64(x: UOp, ctx: Any) -> UOp | None:
    """exp(x) within 1.2 ulp: x = n ln 2 + r with |r| ≤ ln 2 / 2, a polynomial for exp(r), times 2**n."""
    if is_native(ctx, x.dtype, Ops.EXP):
        return None
    x = x.maximum(VANISHED if scales(ctx, x.dtype) else -1418.0)  # 2**-2046 scales by zeros; NaN stays
    x = x.minimum(710.0)  # beyond, the result is infinite, too
    if scales(ctx, x.dtype):
        n, result = _split_eighths(mulacc(x, LOG2E, ROUND_TO_EIGHTHS))
        high, low = LN2_PARTS
        r = mulacc(n, -low, mulacc(n, -high, x))
        return mulacc(polynomial(r, (1.0, *EXP64_NEAR)), result * r, result).alu(Ops.SCALE, n)
    r, n = _reduce_exp_argument(x)
    return _scale_by_power(mulacc(mulacc(polynomial(r, EXP64), r, 1.0), r, 1.0), n)


@rule(UPat.of(Ops.EXP2, var("x"), dtypes=FLOAT64))
def exp2_float64(x: UOp, ctx: Any) -> UOp | None:
    """2**x within 1.1 ulp, exact for whole x: x = n + f with |f| ≤ 1/2, a polynomial for 2**f, times 2**n."""
    if is_native(ctx, x.dtype, Ops.EXP2):
        return None
    x = x.maximum(VANISHED if scales(ctx, x.dtype) else -2046.0).minimum(1025.0)
    if scales(ctx, x.dtype):
        n, result = _split_eighths(x + ROUND_TO_EIGHTHS)
        f = x - n
        return mulacc(polynomial(f, EXP2_64_NEAR), result * f, result).alu(Ops.SCALE, n)
    shifted = x + ROUND_TO_WHOLE
    f = mulacc(shifted + -ROUND_TO_WHOLE, -1.0, x)
    return _scale_by_power(mulacc(polynomial(f, EXP2_64), f, 1.0), _as_bits(shifted))


@rule(UPat.of(Ops.LOG, var("x"), dtypes=FLOAT64))
def log_float64(x: UOp, ctx: Any) -> UOp | None:
    """log(x) within 1 ulp: x = 2**e (1 + f), then e ln 2 + log(1 + f) with ln 2 in two parts."""
    if is_native(ctx, x.dtype, Ops.LOG):
        return None
    e, f, t = _split_for_log(x)
    high, low = LN2_PARTS
    return _select_special_logs(x, mulacc(e, high, f + mulacc(e, low, t)))


@rule(UPat.of(Ops.LOG2, var("x"), dtypes=FLOAT64))
def log2_float64(x: UOp, ctx: Any) -> UOp | None:
    """log2(x) within 1.5 ulp, exact for powers of two: x = 2**e (1 + f), then e + log(1 + f) (1 + 0.44...)."""
    if is_native(ctx, x.dtype, Ops.LOG2):
        return None
    e, f, t = _split_for_log(x)
    excess = mulacc(f, LOG2E_MINUS_ONE, mulacc(t, LOG2E_MINUS_ONE, t))
    return _select_special_logs(x, (f + excess) + e)


@rule(UPat.of((Ops.SIN, Ops.COS), var("x"), name="node", arg=None, dtypes=FLOAT64))
def sine_or_cosine_float64(node: UOp, x: UOp, ctx: Any) -> UOp | None:
    """sin(x) and cos(x) within 2.5 ulp: quarter turns are subtracted, then a polynomial; from 2**23 on, the device's
    function."""
    return None if is_native(ctx, x.dtype, node.op) else _compute_sine_or_cosine(x, node.op, ctx)


@rule(UPat.of(Ops.TANH, var("x"), dtypes=FLOAT64))
def tanh_float64(x: UOp, ctx: Any) -> UOp | None:
    """tanh(x) within 2.7 ulp: d / (d + 2) with d = exp(2x) - 1 = 2**n (exp(r) - 1) + (2**n - 1), all of it for |x|."""
    if is_native(ctx, x.dtype, Ops.TANH):
        return None
    magnitude = _as_float(_as_bits(x) & MAGNITUDE)
    r, n = _reduce_exp_argument(magnitude.minimum(20.0) * 2.0)  # tanh(20) rounds to 1; NaN stays
    scale = _make_power_of_two(n)
    d = mulacc(scale, mulacc(polynomial(r, EXP64) * r, r, r), scale + -1.0)
    return _as_float(_as_bits(d / (d + 2.0)) | (_as_bits(x) & SIGN_BIT))


DOUBLE = PatternMatcher(
    (exp_float64, exp2_float64, log_float64, log2_float64, sine_or_cosine_float64, tanh_float64), only=FLOAT64
)

__all__ = ["DOUBLE"]

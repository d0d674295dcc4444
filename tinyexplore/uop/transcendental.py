"""TRANSCENDENTAL: expands exp, log, sin, ... of float32 to arithmetic, for devices that lack these functions.

There are hardly any branches: all lanes take the same path and WHERE selects, so the same formulas serve scalars and
vectors. A WHERE whose `arg` is RARELY may become a branch (pass "branches"). Exponents are split and combined as
integers. The stated errors hold whether a MULACC rounds once or twice. They are in ulp, the distance between
neighboring float32 numbers; the nearest float32 is off by at most 0.5. The polynomials are derived by
`docs/numerics/derive_coefficients.py`.
"""

from __future__ import annotations

import math
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.uop.ops import Ops
from tinyexplore.uop.parts import (
    as_bits,
    as_float,
    is_native,
    like,
    mulacc,
    opposite,
    polynomial,
    rarely,
    scales,
    table,
)
from tinyexplore.uop.pattern import PatternMatcher, UPat, rule, var
from tinyexplore.uop.semantics import float32
from tinyexplore.uop.uop import UOp

FLOAT32 = (dtypes.float32,)

# *** coefficients, lowest degree first ***

# exp(r) = 1 + r + r² P(r) for |r| ≤ ln 2 / 2, to 2**-28.2
EXP = (
    0.4999999403953552,
    0.1666651964187622,
    0.041668251156806946,
    0.008368857204914093,
    0.0013822277542203665,
)
# the same for |r| ≤ ln 2 / 32, to 2**-29.2
EXP_NEAR = (
    0.5000162124633789,
    0.166667178273201,
)
# 2**f = 1 + f P(f) for |f| ≤ 1/2, to 2**-28.3
EXP2 = (
    0.6931471824645996,
    0.24022647738456726,
    0.05550359562039375,
    0.009618498384952545,
    0.0013390976237133145,
    0.00015329592861235142,
)
# the same for |f| ≤ 1/32, to 2**-29.2
EXP2_NEAR = (
    0.6931471824645996,
    0.24023428559303284,
    0.05550234019756317,
)
# log(1 + f) = f - f²/2 + f³ P(f) for sqrt(1/2) ≤ 1 + f ≤ sqrt(2), to 2**-27.4
LOG = (
    0.3333333134651184,
    -0.2500081956386566,
    0.2000124156475067,
    -0.166234090924263,
    0.14201581478118896,
    -0.1315961480140686,
    0.12762205302715302,
    -0.07636404037475586,
)
# sin(r) = r + r³ P(r²) for |r| ≤ 1, to 2**-31.5
SIN = (
    -0.1666666716337204,
    0.008333354257047176,
    -0.0001984238624572754,
    2.7262951789452927e-06,
)
# cos(r) = 1 - r²/2 + r⁴ P(r²) for |r| ≤ 1, to 2**-29.1
COS = (
    0.04166657477617264,
    -0.001388469710946083,
    2.4201404812629335e-05,
)
# tanh(x) = x + x³ P(x²) for |x| ≤ 0.625, to 2**-27.7
TANH = (
    -0.3333328366279602,
    0.13331475853919983,
    -0.05374191328883171,
    0.0206449031829834,
    -0.005710334982722998,
)
# erf(x) = x + x P(x²) for |x| ≤ 1, to 2**-29.5
ERF = (
    0.12837916612625122,
    -0.3761262893676758,
    0.11283615231513977,
    -0.026854919269680977,
    0.0051902346312999725,
    -0.0008025700808502734,
    7.901972276158631e-05,
)
# 1 - erf(x) = P(x)⁴ for 1 ≤ x ≤ 4, to 2**-26.8 of erf(x)
ERFC_ROOT = (
    1.0021289587020874,
    -0.2933543622493744,
    -0.09378375113010406,
    -0.016992639750242233,
    0.043481629341840744,
    -0.012611023150384426,
    0.0007402508636005223,
    0.00018303598335478455,
    -2.2577292838832363e-05,
)
# log2((1 + s) / (1 - s)) = s P(s²) for |s| ≤ 0.1716, in float64, to 2**-45.1
LOG2_OF_RATIO = (
    2.88539008177785,
    0.9617966941134365,
    0.5770779423357906,
    0.41220925549882986,
    0.319905561472352,
    0.28290220088961726,
)
# 2**f = 1 + f P(f) for |f| ≤ 1/2, in float64, to 2**-40.2
EXP2_LONG = (
    0.6931471805482123,
    0.24022650698110545,
    0.05550410935266251,
    0.009618128616134357,
    0.0013333454860593483,
    0.00015403825455537345,
    1.530915615876497e-05,
    1.3178934927441282e-06,
)
# ln 2 in two parts: the first has 15 bits, so its product with a whole number below 512 is exact
LN2_HIGH = 0.693145751953125
LN2_LOW = 1.428606765330187e-06
LOG2E = 1.4426950216293335
LOG2E_MINUS_ONE = 0.44269505143165588
# the binary digits of 2/π after 25 zeros, 32 per word
TWO_OVER_PI = (0x00000051, 0x7CC1B727, 0x220A94FE, 0x13ABE8FA, 0x9A6EE06D, 0xB14ACC9E, 0x21C820FF)
TWO_OVER_PI_NEAR = 0.6366197466850281
# float32s whose sum is π/2 up to 2**-74
HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
HALF_PI_LONG = (1.5707963267341256, 6.077100506506192e-11)  # the same for float64: 33 bits, and the 53 bits after them

ROUND_TO_WHOLE = 12582912.0  # 1.5 * 2**23: adding and subtracting it rounds a float32 below 2**22
ROUND_TO_SIXTEENTHS = 786432.0  # 1.5 * 2**19: after its addition, the four lowest bits hold sixteenths
SIXTEENTHS = tuple([2.0 ** (k / 16) for k in range(16)])
# Arguments from which exp is 0. They are so low because Intel's CPUs take some 150 cycles if a result underflows, but
# not if a factor is 0 or SCALE's exponent is this small.
VANISHED = -600.0
ROUND_TO_WHOLE_LONG = 6755399441055744.0  # 1.5 * 2**52: the same for float64
SIGN_BIT = -(1 << 31)
MAGNITUDE = (1 << 31) - 1
ONE_BITS = 0x3F800000
SQRT_HALF_BITS = 0x3F3504F3
SQRT_HALF_BITS_LONG = 0x3FE6A09E667F3BCD


# *** parts ***


def _magnitude(x: UOp) -> UOp:
    return as_float(as_bits(x) & MAGNITUDE)


def _sign_bit(x: UOp) -> UOp:
    return as_bits(x) & SIGN_BIT


def _make_power_of_two(n_bits: UOp) -> UOp:
    """Returns 2**n for n in the low bits of `n_bits`: puts n + 127 into the exponent field."""
    return as_float((n_bits << 23) + ONE_BITS)


def _scale_by_power(value: UOp, n: UOp) -> UOp:
    """Returns value * 2**n, rounded once, for n in the low bits of `n` and value about 1.

    2**n alone may leave the range of float32 although the result does not. So it multiplies by two factors: 2**h twice
    for n = 2h, and one of them doubled for n = 2h + 1. Both are 0 for n = -254.
    """
    scale = _make_power_of_two(n >> 1)
    return value * scale * as_float(as_bits(scale) + ((n & 1) << 23))


def exp_parts(x: UOp, factor: float = 1.0, bias: int = 0) -> tuple[UOp, UOp]:
    """Returns exp(factor r) and bits whose low end is n + bias, with factor x = n ln 2 + factor r.

    |factor r| ≤ ln 2 / 2 and |n| < 512. The product with `factor` is never computed: the constants contain the factor.
    """
    round_constant = ROUND_TO_WHOLE + bias
    shifted = mulacc(x, factor * LOG2E, round_constant)
    n = shifted + -round_constant
    high = leading_bits(math.log(2.0) / factor, 15)  # its product with a whole number below 512 is exact
    r = mulacc(n, -(math.log(2.0) / factor - high), mulacc(n, -high, x))
    tail = [coefficient * factor**power for power, coefficient in enumerate(EXP, 2)]
    return mulacc(mulacc(polynomial(r, tail), r, factor), r, 1.0), as_bits(shifted)


def exp_by_table(x: UOp, factor: float = 1.0, times: float = 1.0) -> UOp:
    """Returns exp(factor x) times 1 or 1/2, for |factor x| < 180. Rounds once where it leaves the normal float32s.

    factor x = n ln 2 + factor r, where 16 n is a whole number and |factor r| ≤ ln 2 / 32. A table gives 2 to the power
    of the fraction of n; SCALE applies the whole part. Targets with SCALE round MULACC once, so the first part of ln 2
    may have all digits.
    """
    shifted = mulacc(x, factor * LOG2E, ROUND_TO_SIXTEENTHS)
    n = shifted + -ROUND_TO_SIXTEENTHS
    high = float32(math.log(2.0) / factor)
    r = mulacc(n, -(math.log(2.0) / factor - high), mulacc(n, -high, x))
    power_bits = table(as_bits(shifted), tuple([float32(times * power) for power in SIXTEENTHS]))
    slope = polynomial(r, (factor, *(coefficient * factor**power for power, coefficient in enumerate(EXP_NEAR, 2))))
    return mulacc(slope, power_bits * r, power_bits).alu(Ops.SCALE, n)


def exp2_by_table(x: UOp, times: float = 1.0) -> UOp:
    """Returns 2**x times 1 or 1/2, for |x| < 2**18, computed like `exp_by_table`."""
    shifted = x + ROUND_TO_SIXTEENTHS
    n = shifted + -ROUND_TO_SIXTEENTHS
    f = x - n
    power_bits = table(as_bits(shifted), tuple([float32(times * power) for power in SIXTEENTHS]))
    return mulacc(polynomial(f, EXP2_NEAR), power_bits * f, power_bits).alu(Ops.SCALE, n)


def leading_bits(number: float, count: int) -> float:
    """Returns the first `count` binary digits of `number`."""
    mantissa, exponent = math.frexp(number)
    return math.ldexp(math.trunc(math.ldexp(mantissa, count)), exponent - count)


def _split_for_log(x: UOp) -> tuple[UOp, UOp]:
    """Returns e and f with x = 2**e * (1 + f), sqrt(1/2) ≤ 1 + f < sqrt(2), for every x > 0, including subnormals."""
    is_subnormal = x < 2.0**-126
    bits_above = as_bits(is_subnormal.where(x * 2.0**23, x)) + -SQRT_HALF_BITS
    f = as_float((bits_above & 0x7FFFFF) + SQRT_HALF_BITS) + -1.0
    return (bits_above >> 23).cast(x.dtype) + is_subnormal.where(UOp.const(x.dtype, -23.0), 0.0), f


def _select_special_logs(x: UOp, value: UOp) -> UOp:
    """Returns `value` for 0 < x < inf, inf for inf, -inf for 0, and NaN for negative x and NaN."""
    value = (x < math.inf).where(value, x)
    value = (x < 0.0).where(math.nan, value)
    return x.eq(0.0).where(-math.inf, value)


# *** the functions ***


@rule(UPat.of(Ops.EXP, var("x"), dtypes=FLOAT32))
def exp_float32(x: UOp, ctx: Any) -> UOp | None:
    """exp(x) within 1.2 ulp: x = n ln 2 + r with |r| ≤ ln 2 / 2, a polynomial for exp(r), times 2**n."""
    if is_native(ctx, x.dtype, Ops.EXP):
        return None
    x = x.maximum(VANISHED if scales(ctx, x.dtype) else -176.0)  # 2**-254 scales by zeros; NaN stays
    x = x.minimum(89.0)  # beyond, the result is infinite, too
    return exp_by_table(x) if scales(ctx, x.dtype) else _scale_by_power(*exp_parts(x))


@rule(UPat.of(Ops.EXP2, var("x"), dtypes=FLOAT32))
def exp2_float32(x: UOp, ctx: Any) -> UOp | None:
    """2**x within 1.1 ulp, exact for whole x: x = n + f with |f| ≤ 1/2, a polynomial for 2**f, times 2**n."""
    if is_native(ctx, x.dtype, Ops.EXP2):
        return None
    x = x.maximum(VANISHED if scales(ctx, x.dtype) else -254.0).minimum(129.0)
    if scales(ctx, x.dtype):
        return exp2_by_table(x)
    shifted = x + ROUND_TO_WHOLE
    f = mulacc(shifted + -ROUND_TO_WHOLE, -1.0, x)
    value = mulacc(polynomial(f, EXP2), f, 1.0)
    return _scale_by_power(value, as_bits(shifted))


@rule(UPat.of(Ops.LOG, var("x"), dtypes=FLOAT32))
def log_float32(x: UOp, ctx: Any) -> UOp | None:
    """log(x) within 1 ulp: x = 2**e (1 + f), then e ln 2 + log(1 + f) with ln 2 in two parts."""
    if is_native(ctx, x.dtype, Ops.LOG):
        return None
    e, f = _split_for_log(x)
    square = f * f
    tail = mulacc(mulacc(polynomial(f, LOG), f, -0.5), square, e * LN2_LOW)
    return _select_special_logs(x, mulacc(e, LN2_HIGH, f + tail))


@rule(UPat.of(Ops.LOG2, var("x"), dtypes=FLOAT32))
def log2_float32(x: UOp, ctx: Any) -> UOp | None:
    """log2(x) within 1.3 ulp, exact for powers of two: x = 2**e (1 + f), then e + log(1 + f) * (1 + 0.44...)."""
    if is_native(ctx, x.dtype, Ops.LOG2):
        return None
    e, f = _split_for_log(x)
    tail = mulacc(polynomial(f, LOG), f, -0.5) * (f * f)
    excess = mulacc(f, LOG2E_MINUS_ONE, mulacc(tail, LOG2E_MINUS_ONE, tail))
    return _select_special_logs(x, (f + excess) + e)


def _count_quarter_turns(magnitude: UOp, ctx: Any) -> tuple[UOp, UOp]:
    """Returns q (int32, modulo 4) and r, |r| ≤ 1, with magnitude = q π/2 + r up to whole turns; r is NaN for inf and
    NaN.

    Below 2**17, n quarter turns are subtracted part by part (Cody and Waite's reduction). If MULACC rounds once, the
    first part leaves an exact remainder, and so does the second if the remainder is small. Otherwise float64 is used: n
    times the first 33 bits of π/2 is exact. Any n near magnitude / (π/2) is suitable. Larger magnitudes take the slow
    path.
    """
    shifted = mulacc(magnitude, TWO_OVER_PI_NEAR, ROUND_TO_WHOLE)
    n, remaining = shifted + -ROUND_TO_WHOLE, magnitude
    fuses = getattr(ctx, "fuses_multiply_add", False)
    if not fuses:
        wide_dtype = like(magnitude, dtypes.float64)
        n, remaining = n.cast(wide_dtype), remaining.cast(wide_dtype)
    for half_pi_part in HALF_PI if fuses else HALF_PI_LONG:
        remaining = mulacc(n, -half_pi_part, remaining)
    far_q, far_r = _count_quarter_turns_of_large(magnitude)
    is_far = opposite(magnitude < 2.0**17)  # the comparison is false for NaN, which takes the slow path
    return rarely(is_far, far_q, as_bits(shifted)), rarely(is_far, far_r, remaining.cast(magnitude.dtype))


def _count_quarter_turns_of_large(magnitude: UOp) -> tuple[UOp, UOp]:
    """Computes `_count_quarter_turns` for magnitudes of 1 and more (Payne and Hanek's reduction).

    The float is a whole number m < 2**24 times 2**(s - 23). Only the binary digits of 2/π from position s on matter:
    earlier digits give whole turns. So m times 96 digits from there gives the quarter turns: two bits before the binary
    point, and enough bits after it for the float32 that is closest to a multiple of π/2.
    """
    bits = as_bits(magnitude)
    wide_dtype = like(magnitude, dtypes.uint64)
    m = ((bits & 0x7FFFFF) | 0x800000).cast(wide_dtype)
    s = (bits >> 23) + -127
    by_two_words, by_one_word = (s & 64).ne(0), (s & 32).ne(0)
    pairs = [UOp.const(wide_dtype, high << 32 | low) for high, low in zip(TWO_OVER_PI, TWO_OVER_PI[1:])]
    pairs = [by_two_words.where(later, word) for word, later in zip(pairs, pairs[2:])]
    pairs = [by_one_word.where(later, word) for word, later in zip(pairs, pairs[1:])]
    shift_down = ((s & 31) ^ 31).cast(wide_dtype)
    high_word, middle_word, low_word = ((pair >> 1 >> shift_down) & 0xFFFFFFFF for pair in pairs)
    turns = (m * high_word << 32) + m * middle_word + (m * low_word >> 32)
    q = ((turns + (1 << 61)) >> 62).cast(like(magnitude, dtypes.int32))
    fraction = (turns << 2).bitcast(like(magnitude, dtypes.int64)).cast(like(magnitude, dtypes.float64))
    r = (fraction * (math.pi * 2.0**-65)).cast(magnitude.dtype)
    return q, (magnitude < math.inf).where(r, math.nan)


def _compute_sine_or_cosine(r: UOp, q: UOp) -> UOp:
    """Returns sin(q π/2 + r) without the sign that q & 2 gives: sin(r) for even q, cos(r) for odd q."""
    z = r * r
    sine = mulacc(polynomial(z, SIN) * z, r, r)
    cosine = mulacc(mulacc(polynomial(z, COS), z, -0.5), z, 1.0)
    return (q & 1).ne(0).where(cosine, sine)


@rule(UPat.of(Ops.SIN, var("x"), dtypes=FLOAT32))
def sin_float32(x: UOp, ctx: Any) -> UOp | None:
    """sin(x) within 1.5 ulp for every x: quarter turns are subtracted exactly, then a polynomial gives sine or
    cosine."""
    if is_native(ctx, x.dtype, Ops.SIN):
        return None
    q, r = _count_quarter_turns(_magnitude(x), ctx)
    return as_float(as_bits(_compute_sine_or_cosine(r, q)) ^ ((q & 2) << 30) ^ _sign_bit(x))


@rule(UPat.of(Ops.COS, var("x"), dtypes=FLOAT32))
def cos_float32(x: UOp, ctx: Any) -> UOp | None:
    """cos(x) within 1.5 ulp for every x: sin(x + π/2), with one more quarter turn."""
    if is_native(ctx, x.dtype, Ops.COS):
        return None
    q, r = _count_quarter_turns(_magnitude(x), ctx)
    q = q + 1
    return as_float(as_bits(_compute_sine_or_cosine(r, q)) ^ ((q & 2) << 30))


@rule(UPat.of(Ops.TANH, var("x"), dtypes=FLOAT32))
def tanh_float32(x: UOp, ctx: Any) -> UOp | None:
    """tanh(x) within 1.4 ulp: x + x³ P(x²) below 0.625, 1 - 2 / (exp(2|x|) + 1) above, for |x|; then the sign."""
    if is_native(ctx, x.dtype, Ops.TANH):
        return None
    magnitude = _magnitude(x)
    z = magnitude * magnitude
    small_result = mulacc(polynomial(z, TANH) * z, magnitude, magnitude)
    limited = magnitude.minimum(10.0)  # tanh(10) rounds to 1; NaN stays
    if scales(ctx, x.dtype):
        exp_and_one = exp_by_table(limited, 2.0) + 1.0
    else:
        value, n = exp_parts(limited, 2.0)
        exp_and_one = mulacc(value, _make_power_of_two(n), 1.0)
    large_result = UOp.const(x.dtype, -2.0) / exp_and_one + 1.0
    return as_float(as_bits((magnitude < 0.625).where(small_result, large_result)) | _sign_bit(x))


@rule(UPat.of(Ops.ERF, var("x"), dtypes=FLOAT32))
def erf_float32(x: UOp, ctx: Any) -> UOp | None:
    """erf(x) within 1.9 ulp: x + x P(x²) below 1, 1 - P(x)⁴ above, for |x|; then the sign."""
    if is_native(ctx, x.dtype, Ops.ERF):
        return None
    magnitude = _magnitude(x)
    small_result = mulacc(polynomial(magnitude * magnitude, ERF), magnitude, magnitude)
    root = polynomial(magnitude.minimum(4.0), ERFC_ROOT)  # erf(4) rounds to 1; NaN stays
    square = root * root  # 1 - erf is small here, and its fourth root smooth
    large_result = mulacc(square, -square, 1.0)
    return as_float(as_bits((magnitude < 1.0).where(small_result, large_result)) | _sign_bit(x))


@rule(UPat.of(Ops.POW, var("x"), var("y"), dtypes=FLOAT32))
def pow_float32(x: UOp, y: UOp, ctx: Any) -> UOp | None:
    """x**y within 0.51 ulp, exact if the result is a float32: 2**(y log2 |x|) in float64, rounded once at the end.

    The product can reach 150, which multiplies its error; float64 has enough digits for that. Signs, zeros, infinities
    and NaN are as in C: x**0 = 1**y = 1 for NaN too; a negative x needs a whole y and gives a negative result for an
    odd y.
    """
    if is_native(ctx, x.dtype, Ops.POW):
        return None
    magnitude = _magnitude(x)
    power = y.cast(like(x, dtypes.float64)) * _compute_log2_long(magnitude)
    value = _compute_exp2_long(power).cast(x.dtype)
    is_whole = y.alu(Ops.FLOOR).eq(y)
    half_exponent = y * 0.5
    is_odd = is_whole & half_exponent.alu(Ops.FLOOR).ne(half_exponent)
    value = is_odd.where(as_float(as_bits(value) | _sign_bit(x)), value)
    undefined = (x < 0.0) & (x > -math.inf) & opposite(is_whole)
    value = undefined.where(math.nan, value)
    is_one = y.eq(0.0) | x.eq(1.0) | (x.eq(-1.0) & _magnitude(y).eq(math.inf))
    return is_one.where(1.0, value)


def _compute_log2_long(magnitude: UOp) -> UOp:
    """Returns log2 of a float32 ≥ 0 as a float64: for 2**e times m near 1, computes e + log2(m) by s = (m - 1) / (m
    + 1)."""
    float_dtype, int_dtype = like(magnitude, dtypes.float64), like(magnitude, dtypes.int64)
    bits_above = magnitude.cast(float_dtype).bitcast(int_dtype) + -SQRT_HALF_BITS_LONG
    m = ((bits_above & ((1 << 52) - 1)) + SQRT_HALF_BITS_LONG).bitcast(float_dtype)
    e = (bits_above >> 52).cast(like(magnitude, dtypes.int32)).cast(float_dtype)  # vectors convert int32 faster
    s = (m + -1.0) / (m + 1.0)
    value = mulacc(polynomial(s * s, LOG2_OF_RATIO), s, e)
    value = (magnitude < math.inf).where(value, magnitude.cast(float_dtype))  # infinity and NaN stay
    return magnitude.eq(0.0).where(-math.inf, value)


def _compute_exp2_long(x: UOp) -> UOp:
    """Returns 2**x in float64 for |x| ≤ 200. Beyond, no result is a float32, so it returns 0 or the value at the
    bound."""
    x = x.maximum(-1023.0).minimum(200.0)  # the scale for -1023 is 0
    shifted = x + ROUND_TO_WHOLE_LONG
    f = mulacc(shifted + -ROUND_TO_WHOLE_LONG, -1.0, x)
    value = mulacc(polynomial(f, EXP2_LONG), f, 1.0)
    scale = (shifted.bitcast(like(x, dtypes.int64)) << 52) + (1023 << 52)
    return value * scale.bitcast(x.dtype)


TRANSCENDENTAL = PatternMatcher(
    (
        exp_float32,
        exp2_float32,
        log_float32,
        log2_float32,
        sin_float32,
        cos_float32,
        tanh_float32,
        erf_float32,
        pow_float32,
    )
)

__all__ = ["TRANSCENDENTAL"]

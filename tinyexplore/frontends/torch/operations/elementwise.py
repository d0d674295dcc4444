"""Operations on each element: arithmetic, comparisons, bits, functions of one number."""

from __future__ import annotations

import math
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.tensor import Tensor


def is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and dtypes.is_float(value.dtype)


# *** arithmetic ***


@aten("add")
def add(call: AtenCall, a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    """Returns a + alpha · b; for booleans, or."""
    left, right = call.tensor(a), call.tensor(b)
    if alpha != 1:
        right = right * alpha
    return left | right if call.dtype is dtypes.bool else left + right


@aten("sub")
def sub(call: AtenCall, a: Any, b: Any, *, alpha: float = 1) -> Tensor:
    """Returns a - alpha · b."""
    return call.tensor(a) - (call.tensor(b) * alpha if alpha != 1 else call.tensor(b))


@aten("rsub")
def rsub(call: AtenCall, a: Any, b: Any, alpha: float = 1) -> Tensor:
    """Returns b - alpha · a."""
    return sub(call, b, a, alpha=alpha)


@aten("mul")
def mul(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns a · b; for booleans, and."""
    left, right = call.tensor(a), call.tensor(b)
    return left & right if call.dtype is dtypes.bool else left * right


@aten("div", "true_divide")
def div(call: AtenCall, a: Any, b: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Returns a / b; with `rounding_mode`, rounded towards zero ("trunc") or down ("floor")."""
    if rounding_mode is None:
        return call.tensor(a) / call.tensor(b)
    left, right = call.promote(a, b)
    mode: Any = rounding_mode
    return left.div(right, rounding_mode=mode).cast(call.dtype)


@aten("floor_divide")
def floor_divide(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the quotient rounded down."""
    return div(call, a, b, rounding_mode="floor")


@aten("remainder")
def remainder(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the remainder of a division, with the sign of the divisor."""
    left, right = call.promote(a, b)
    return left.mod(right)


@aten("fmod")
def fmod(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the remainder of a division, with the sign of the dividend."""
    left, right = call.promote(a, b)
    return left.fmod(right)


@aten("pow")
def power(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns a to the power of b."""
    if isinstance(b, (int, float)) and is_float(a):
        return _raise_to_constant(call, a.cast(call.dtype), b)
    left, right = call.tensor(a), call.tensor(b)
    if not dtypes.is_float(call.dtype):
        return integer_power(call, left, b if isinstance(b, int) else right)
    return left.pow(right)


def _raise_to_constant(call: AtenCall, base: Tensor, exponent: float) -> Tensor:
    """Returns a power with a constant exponent: by products, roots and the reciprocal if they are exact."""
    if exponent == 0:
        return call.full(1)
    if exponent in (1, 2, 3):
        square = base if exponent == 1 else base * base
        return square * base if exponent == 3 else square
    if exponent == -1:
        return base.reciprocal()
    if exponent == 0.5:
        return base.sqrt()
    return base.rsqrt() if exponent == -0.5 else base.pow(exponent)


def integer_power(call: AtenCall, base: Tensor, exponent: Any) -> Tensor:
    """Returns a power of integers by repeated squaring. For a negative exponent, 0 unless the base is 1 or -1."""
    if dtypes.is_bool(call.dtype):
        raise TranslationError("pow of booleans has no translation")
    power = exponent if isinstance(exponent, Tensor) else Tensor.full((), exponent, dtype=call.dtype)
    result = Tensor.full((), 1, dtype=call.dtype)
    square, remaining = base, power.maximum(0) if not dtypes.is_unsigned(call.dtype) else power
    for _ in range(call.dtype.bits if isinstance(exponent, Tensor) else max(exponent, 1).bit_length()):
        result = (remaining & 1).ne(0).where(result * square, result)
        square, remaining = square * square, remaining >> 1
    if dtypes.is_unsigned(call.dtype):
        return result
    odd = (power & 1).ne(0)
    inverse = (base == 1).where(1, (base == -1).where(odd.where(-1, 1), 0)).cast(call.dtype)
    return (power < 0).where(inverse, result)


@aten("maximum", "clamp_min")
def maximum(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the larger of two numbers; NaN if either is NaN."""
    left, right = call.tensor(a), call.tensor(b)
    return left.maximum(right)


@aten("minimum", "clamp_max")
def minimum(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the smaller of two numbers; NaN if either is NaN."""
    left, right = call.tensor(a), call.tensor(b)
    return left.minimum(right)


@aten("fmax")
def fmax(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the larger of two numbers; if one is NaN, the other."""
    return _ignore_nan(call, a, b, "maximum")


@aten("fmin")
def fmin(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the smaller of two numbers; if one is NaN, the other."""
    return _ignore_nan(call, a, b, "minimum")


def _ignore_nan(call: AtenCall, a: Any, b: Any, name: str) -> Tensor:
    left, right = call.tensor(a), call.tensor(b)
    result: Tensor = getattr(left, name)(right)
    if not dtypes.is_float(call.dtype):
        return result
    return left.isnan().where(right, right.isnan().where(left, result))


@aten("clamp", "clip")
def clamp(call: AtenCall, a: Tensor, low: Any = None, high: Any = None) -> Tensor:
    """Limits each element to `low` … `high`."""
    result = call.tensor(a)
    if low is not None:
        result = maximum(call, result, low)
    return result if high is None else minimum(call, result, high)


@aten("hardtanh")
def hardtanh(call: AtenCall, a: Tensor, low: float = -1, high: float = 1) -> Tensor:
    """Limits each element to `low` … `high`."""
    return clamp(call, a, low, high)


@aten("atan2")
def atan2(call: AtenCall, y: Any, x: Any) -> Tensor:
    """Returns the angle of the point (x, y)."""
    vertical, horizontal = call.tensor(y), call.tensor(x)
    ones = Tensor.full((), 1.0, dtype=call.dtype)
    # only the signs matter
    is_ambiguous = (vertical.isinf() & horizontal.isinf()) | ((vertical == 0) & (horizontal == 0))
    numerator = (vertical.isinf() & horizontal.isinf()).where(ones.copysign(vertical), vertical)
    denominator = is_ambiguous.where(ones.copysign(horizontal), horizontal)
    angle = (numerator / denominator).atan()
    return _is_negative(denominator).where(angle + Tensor.full((), math.pi, dtype=call.dtype).copysign(vertical), angle)


def _is_negative(x: Tensor) -> Tensor:
    """Returns True for negative numbers and for -0."""
    if not dtypes.is_float(x.dtype):
        return x < 0
    return Tensor.full((), 1.0, dtype=x.dtype).copysign(x) < 0


@aten("hypot")
def hypot(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the length of (a, b)."""
    left, right = call.tensor(a).abs(), call.tensor(b).abs()
    larger, smaller = left.maximum(right), left.minimum(right)
    ratio = (larger == 0).where(0.0, smaller / larger)
    result = larger * (ratio * ratio + 1).sqrt()
    result = (left.isinf() | right.isinf()).where(float("inf"), result)
    return (left.isnan() & ~right.isinf()).where(left, (right.isnan() & ~left.isinf()).where(right, result))


@aten("logaddexp")
def logaddexp(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns log(exp(a) + exp(b))."""
    return call.tensor(a).logaddexp(call.tensor(b))


@aten("copysign")
def copysign(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the magnitude of a with the sign of b."""
    return call.tensor(a).copysign(call.tensor(b))


@aten("lerp")
def lerp(call: AtenCall, a: Tensor, b: Tensor, weight: Any) -> Tensor:
    """Returns a + weight · (b - a)."""
    start, end, share = call.tensor(a), call.tensor(b), call.tensor(weight)
    step = end - start
    return (share.abs() < 0.5).where(start + share * step, end - step * (1 - share))


@aten("addcmul")
def addcmul(call: AtenCall, a: Tensor, b: Tensor, c: Tensor, *, value: float = 1) -> Tensor:
    """Returns a + value · b · c."""
    return call.tensor(a) + call.tensor(b) * call.tensor(c) * value


@aten("addcdiv")
def addcdiv(call: AtenCall, a: Tensor, b: Tensor, c: Tensor, *, value: float = 1) -> Tensor:
    """Returns a + value · b / c."""
    return call.tensor(a) + call.tensor(b) / call.tensor(c) * value


# *** comparisons and logic ***


def _compare(name: str) -> None:
    def compare(call: AtenCall, a: Any, b: Any) -> Tensor:
        left, right = call.promote(a, b)
        result: Tensor = getattr(left, name)(right)
        return result

    compare.__doc__ = f"The comparison {name}, in the operands' common dtype."
    aten(name)(compare)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _compare(_name)


@aten("logical_and")
def logical_and(call: AtenCall, a: Tensor, b: Tensor) -> Tensor:
    """Returns whether both are not 0."""
    return a.cast(dtypes.bool) & b.cast(dtypes.bool)


@aten("logical_or")
def logical_or(call: AtenCall, a: Tensor, b: Tensor) -> Tensor:
    """Returns whether at least one is not 0."""
    return a.cast(dtypes.bool) | b.cast(dtypes.bool)


@aten("logical_xor")
def logical_xor(call: AtenCall, a: Tensor, b: Tensor) -> Tensor:
    """Returns whether exactly one is not 0."""
    return a.cast(dtypes.bool) ^ b.cast(dtypes.bool)


@aten("logical_not")
def logical_not(call: AtenCall, a: Tensor) -> Tensor:
    """Returns whether the element is 0."""
    return ~a.cast(dtypes.bool)


@aten("where")
def where(call: AtenCall, condition: Tensor, a: Any = None, b: Any = None) -> Tensor:
    """Returns a where the condition holds, else b."""
    if a is None:
        raise TranslationError("the size of where(condition) depends on values")
    return condition.cast(dtypes.bool).where(call.tensor(a), call.tensor(b))


@aten("masked_fill")
def masked_fill(call: AtenCall, a: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Returns a with `value` where the mask is true."""
    return mask.where(call.tensor(value), call.tensor(a))


# *** bits ***


@aten("bitwise_and", "__and__")
def bitwise_and(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the bitwise and."""
    left, right = call.promote(a, b)
    return left & right


@aten("bitwise_or", "__or__")
def bitwise_or(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the bitwise or."""
    left, right = call.promote(a, b)
    return left | right


@aten("bitwise_xor", "__xor__")
def bitwise_xor(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Returns the bitwise exclusive or."""
    left, right = call.promote(a, b)
    return left ^ right


@aten("bitwise_not")
def bitwise_not(call: AtenCall, a: Tensor) -> Tensor:
    """Returns the complement of the bits."""
    return ~a


def _shift_amount(call: AtenCall, amount: Any) -> int:
    if isinstance(amount, int) and 0 <= amount < call.common.bits and not dtypes.is_float(call.common):
        return amount
    raise TranslationError(
        f"a shift by {amount!r} has no translation: need a constant int below {call.common.bits} (bits of "
        f"{call.common.name})"
    )


@aten("bitwise_left_shift", "__lshift__")
def bitwise_left_shift(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Shifts to the left by a constant."""
    amount = _shift_amount(call, b)
    return call.promote(a)[0] << amount


@aten("bitwise_right_shift", "__rshift__")
def bitwise_right_shift(call: AtenCall, a: Any, b: Any) -> Tensor:
    """Shifts to the right by a constant."""
    amount = _shift_amount(call, b)
    return call.promote(a)[0] >> amount


# *** functions of one number ***


def _add_float_function(name: str) -> None:
    def function(call: AtenCall, a: Tensor) -> Tensor:
        result: Tensor = getattr(call.tensor(a), name)()
        return result

    function.__doc__ = f"The function {name}; of integers, as floats."
    aten(name)(function)


for _name in (
    "exp exp2 log log2 log10 sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf sigmoid "
    "reciprocal"
).split():
    _add_float_function(_name)


def _add_rounding(name: str) -> None:
    def function(call: AtenCall, a: Tensor) -> Tensor:
        result: Tensor = getattr(a, name)() if is_float(a) else a
        return result

    function.__doc__ = f"The function {name}; integers stay as they are."
    aten(name)(function)


for _name in ("floor", "ceil", "trunc"):
    _add_rounding(_name)


@aten("round")
def round_(call: AtenCall, a: Tensor, *, decimals: int = 0) -> Tensor:
    """Rounds to the nearest number, and halves to the even one."""
    if not is_float(a):
        return a
    if decimals == 0:
        return a.round()
    scale = 10.0 ** abs(decimals)
    return (a * scale).round() / scale if decimals > 0 else (a / scale).round() * scale


@aten("expm1")
def expm1(call: AtenCall, a: Tensor) -> Tensor:
    """Returns exp(a) - 1, exact near 0."""
    return exp_minus_1(call.tensor(a))


def exp_minus_1(x: Tensor) -> Tensor:
    """Returns exp(x) - 1, exact near 0: (exp(x) - 1) · x / log(exp(x)) cancels the rounding of exp."""
    power = x.exp()
    rounded_result = power - 1
    exact_result = rounded_result * x / power.log()
    result = (power == 1).where(x, (x.abs() < 0.5).where(exact_result, rounded_result))
    return (power == 0).where(-1.0, result)


@aten("log1p")
def log1p(call: AtenCall, a: Tensor) -> Tensor:
    """Returns log(1 + a), exact near 0."""
    return log_plus_1(call.tensor(a))


def log_plus_1(x: Tensor) -> Tensor:
    """Returns log(1 + x), exact near 0: log(u) · x / (u - 1) cancels the rounding of u = 1 + x."""
    more = x + 1
    exact_result = more.log() * x / (more - 1)
    result = (more == 1).where(x, exact_result)
    return (x == float("inf")).where(x, result)


@aten("neg")
def neg(call: AtenCall, a: Tensor) -> Tensor:
    """Returns -a."""
    return -a


@aten("abs")
def absolute(call: AtenCall, a: Tensor) -> Tensor:
    """Returns the absolute value."""
    return a if dtypes.is_unsigned(a.dtype) or dtypes.is_bool(a.dtype) else a.abs()


@aten("sign", "sgn")
def sign(call: AtenCall, a: Tensor) -> Tensor:
    """Returns -1, 0 or 1."""
    if dtypes.is_bool(a.dtype):
        return a
    if not dtypes.is_float(a.dtype):
        return (a > 0).cast(a.dtype) if dtypes.is_unsigned(a.dtype) else (a > 0).cast(a.dtype) - (a < 0).cast(a.dtype)
    return (a > 0).where(1.0, (a < 0).where(-1.0, 0.0)).cast(a.dtype)


@aten("signbit")
def signbit(call: AtenCall, a: Tensor) -> Tensor:
    """Returns whether the sign bit is set."""
    return _is_negative(a)


@aten("isnan")
def isnan(call: AtenCall, a: Tensor) -> Tensor:
    """Whether each element is NaN."""
    return a.isnan() if is_float(a) else call.full(False)


@aten("isinf")
def isinf(call: AtenCall, a: Tensor) -> Tensor:
    """Whether each element is infinite."""
    return a.isinf() if is_float(a) else call.full(False)


@aten("isfinite")
def isfinite(call: AtenCall, a: Tensor) -> Tensor:
    """Whether each element is finite."""
    return a.isfinite() if is_float(a) else call.full(True)


@aten("square")
def square(call: AtenCall, a: Tensor) -> Tensor:
    """Returns a · a."""
    return mul(call, a, a)


@aten("relu")
def relu(call: AtenCall, a: Tensor) -> Tensor:
    """Returns max(a, 0)."""
    return a.maximum(0)


@aten("leaky_relu")
def leaky_relu(call: AtenCall, a: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Returns a for positive elements, else negative_slope · a."""
    return (a > 0).where(a, a * negative_slope)


@aten("elu")
def elu(call: AtenCall, a: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """Returns a for positive elements, else alpha · (exp(a) - 1), scaled."""
    return (a > 0).where(a * scale, exp_minus_1(a * input_scale) * (alpha * scale))


@aten("gelu")
def gelu(call: AtenCall, a: Tensor, *, approximate: str = "none") -> Tensor:
    """Returns a · Φ(a), with the normal distribution's Φ, or its approximation by tanh."""
    if approximate == "none":
        wide = a if a.dtype is dtypes.float64 else a.cast(dtypes.float32)
        return (wide * 0.5 * ((wide * math.sqrt(0.5)).erf() + 1)).cast(a.dtype)
    wide = a if a.dtype is dtypes.float64 else a.cast(dtypes.float32)
    inner = (wide + wide * wide * wide * 0.044715) * math.sqrt(2 / math.pi)
    return (wide * 0.5 * (inner.tanh() + 1)).cast(a.dtype)


# *** dtypes ***


@aten("_to_copy", "convert_element_type", "to")
def convert(call: AtenCall, a: Tensor, *args: Any, **options: Any) -> Tensor:
    """Converts the values to another dtype."""
    return a.cast(call.dtype)


@aten("view.dtype")
def view_dtype(call: AtenCall, a: Tensor, dtype: Any) -> Tensor:
    """Reinterprets the bits as another dtype."""
    return a.bitcast(call.dtype)

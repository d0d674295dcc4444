"""Mathematical functions and activations, element by element. Ints become floats where the function needs it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from tinyexplore.autograd import CustomGradientByPath
from tinyexplore.autograd.rules import (
    acos_gradient,
    acosh_gradient,
    asin_gradient,
    asinh_gradient,
    atan_gradient,
    atanh_gradient,
    clip_gradient,
    log1p_gradient,
    relu_gradient,
    sigmoid_gradient,
)
from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.tensor.arithmetic import Operand, scalar_dtype
from tinyexplore.tensor.gradients import gradient_by_tensors
from tinyexplore.tensor.operators import Operators
from tinyexplore.tensor.precision import rounded_once
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

    from tinyexplore.autograd.tape import TapeEntry

T = TypeVar("T", bound="Functions")

_RELU = CustomGradientByPath(relu_gradient, 0)
_SIGMOID = CustomGradientByPath(sigmoid_gradient, 1, 1, 0, 0)


class Functions(Operators):
    __slots__ = ()

    # *** exponentials and roots ***

    def exp(self) -> Self:
        return self._to_float()._apply_unary(Ops.EXP)

    def exp2(self) -> Self:
        """Returns 2 to the power of each element."""
        return self._to_float()._apply_unary(Ops.EXP2)

    def log(self) -> Self:
        """Returns the natural logarithm."""
        return self._to_float()._apply_unary(Ops.LOG)

    def log2(self) -> Self:
        return self._to_float()._apply_unary(Ops.LOG2)

    @rounded_once
    def log10(self) -> Self:
        return self.log2() * math.log10(2)

    def sqrt(self) -> Self:
        return self._to_float()._apply_unary(Ops.SQRT)

    @rounded_once
    def rsqrt(self) -> Self:
        """Returns 1 / √x."""
        return self.sqrt().reciprocal()

    def square(self) -> Self:
        return self._alu(Ops.MUL, self)

    @rounded_once
    def logaddexp(self, other: Operand) -> Self:
        """Returns ln(eᵃ + eᵇ) without overflow."""
        taped = self._match_floats(other, "logaddexp")
        a, b = (operand._detach_value() for operand in taped)
        gap = (a == b).where(0.0, a - b)  # inf - inf would be NaN
        value = a.maximum(b) + gap.abs().neg().exp()._log1p()
        return taped[0]._wrap_with_rule(value.lazydata, logaddexp_gradient, taped, (type(self),))

    # *** trigonometry ***

    def sin(self) -> Self:
        return self._to_float()._apply_unary(Ops.SIN)

    def cos(self) -> Self:
        return self._to_float()._apply_unary(Ops.COS)

    @rounded_once
    def tan(self) -> Self:
        return self.sin() / self.cos()

    def tanh(self) -> Self:
        return self._to_float()._apply_unary(Ops.TANH)

    def _log1p(self) -> Self:
        """Returns ln(1 + x), exact near 0 too: the rounding error of 1 + x cancels in x / ((1 + x) - 1) (Kahan)."""
        x = self._detach_value()
        sum_ = 1.0 + x
        excess = sum_ - 1.0
        is_lost = excess.eq(0)
        near_zero = is_lost.where(x, sum_.log() * (x / is_lost.where(1.0, excess)))
        return self._with_rule((x.abs() < 0.5).where(near_zero, sum_.log()), log1p_gradient)

    @rounded_once
    def sinh(self) -> Self:
        """Returns (eˣ - e⁻ˣ) / 2. Near 0, where this cancels, computes t / (1 - t²) · 2 with t = tanh(x / 2)."""
        taped = self._to_float()
        x = taped._detach_value()
        t = (x * 0.5).tanh()
        near_zero = 2.0 * t / (1.0 - t * t)
        rising, falling = x._half_exponentials()
        return taped._wrap_with_rule(
            (x.abs() < 1.0).where(near_zero, rising - falling).lazydata, sinh_gradient, (taped,), (type(self),)
        )

    @rounded_once
    def cosh(self) -> Self:
        """Returns (eˣ + e⁻ˣ) / 2."""
        taped = self._to_float()
        rising, falling = taped._detach_value()._half_exponentials()
        return taped._wrap_with_rule((rising + falling).lazydata, cosh_gradient, (taped,), (type(self),))

    def _half_exponentials(self) -> tuple[Self, Self]:
        """Returns eˣ / 2 and e⁻ˣ / 2. Each is finite if the dtype can represent it, even if eˣ overflows."""
        root = (self * 0.5).exp()
        return root * 0.5 * root, 0.5 / root / root

    def _expm1(self) -> Self:
        """Returns eˣ - 1. Near 0, where this cancels, evaluates the series x + x²/2 + x³/6 + …."""
        x = self._detach_value()
        series = x._const(1.0)
        for term in reversed(range(2, 15 if x.dtype is dtypes.float64 else 9)):
            series = series * x * (1 / term) + 1.0
        value = (x.abs() < 0.35).where(series * x, x.exp() - 1.0)
        return self._wrap_with_rule(value.lazydata, expm1_gradient, (self,), (type(self),))

    @rounded_once
    def asinh(self) -> Self:
        """Returns sign(x) · ln(|x| + √(x² + 1)), computed as ln(1 + …) to be exact for small x."""
        taped = self._to_float()
        x = taped._detach_value()
        size = x.abs()
        is_huge = size > SQUARE_FITS  # here x² + 1 rounds to x², and x² might overflow
        safe_size = is_huge.where(1.0, size)
        result = (safe_size + safe_size * safe_size / (1.0 + (safe_size * safe_size + 1.0).sqrt()))._log1p()
        result = is_huge.where(size.log() + math.log(2), result)
        return taped._with_rule(x._lend_sign(result), asinh_gradient)

    @rounded_once
    def acosh(self) -> Self:
        """Returns ln(x + √(x² - 1)). Computes ln 2x where x² might overflow. The result is NaN below 1."""
        taped = self._to_float()
        x = taped._detach_value()
        x = (x < 1.0).where(math.nan, x)  # at x = -10⁴, x + √(x² - 1) would round to 0
        is_huge = x.abs() > SQUARE_FITS
        safe_x = is_huge.where(2.0, x)
        result = (safe_x + ((safe_x - 1.0) * (safe_x + 1.0)).sqrt()).log()
        return taped._with_rule(is_huge.where(x.log() + math.log(2), result), acosh_gradient)

    @rounded_once
    def atanh(self) -> Self:
        """Returns ln((1 + x) / (1 - x)) / 2."""
        taped = self._to_float()
        x = taped._detach_value()
        return taped._with_rule((2.0 * x / (1.0 - x))._log1p() * 0.5, atanh_gradient)

    @rounded_once
    def atan(self) -> Self:
        taped = self._to_float()
        return taped._with_rule(_arc_tangent(taped._detach_value()), atan_gradient)

    @rounded_once
    def asin(self) -> Self:
        """Returns the arc sine, computed as 2 atan(x / (1 + √(1 - x²)))."""
        taped = self._to_float()
        x = taped._detach_value()
        return taped._with_rule((x / (1.0 + ((1.0 - x) * (1.0 + x)).sqrt())).atan() * 2.0, asin_gradient)

    @rounded_once
    def acos(self) -> Self:
        """Returns the arc cosine, computed as 2 atan(√(1 - x) / √(1 + x))."""
        taped = self._to_float()
        x = taped._detach_value()
        return taped._with_rule(((1.0 - x).sqrt() / (1.0 + x).sqrt()).atan() * 2.0, acos_gradient)

    def erf(self) -> Self:
        """Returns the error function."""
        return self._to_float()._apply_unary(Ops.ERF)

    # *** rounding ***

    def _round_to(self, dtype: DType) -> Self:
        """Rounds floats to the nearest ints of `dtype`. Values beyond its range become its limits."""
        if dtype is dtypes.bool:
            return self.round().cast(dtype)
        rounded = self.round()
        lowest, highest = dtypes.min(dtype), dtypes.max(dtype)
        in_range = rounded.clip(float(lowest), float(highest)).cast(dtype)
        if int(float(highest)) == highest and (self.dtype is dtypes.float64 or dtype.itemsize < 4):
            return in_range
        # the float nearest to the limit lies beyond the limit
        return (rounded >= float(highest)).where(highest, in_range)

    # *** predicates ***

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        if not self.is_floating_point():
            return self._const(False, dtypes.bool)
        positive = self.eq(math.inf) if detect_positive else self._const(False, dtypes.bool)
        negative = self.eq(-math.inf) if detect_negative else self._const(False, dtypes.bool)
        return positive | negative

    def isfinite(self) -> Self:
        if not self.is_floating_point():
            return self._const(True, dtypes.bool)
        return self.abs().lt(math.inf)

    def isclose(self, other: Operand, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Self:
        """Returns whether |a - b| ≤ atol + rtol · |b|, element by element."""
        a, b = self._match_floats(other, "isclose")
        is_near = ((a - b).abs() <= atol + rtol * b.abs()) & a.isfinite() & b.isfinite()
        is_same = is_near | (a == b)
        return is_same | (a.isnan() & b.isnan()) if equal_nan else is_same

    # *** limits ***

    def clip(self, min_: Operand | None = None, max_: Operand | None = None) -> Self:
        """Limits each element to `min_` … `max_`, as minimum(maximum(x, min_), max_). The result is NaN where a limit
        is NaN.

        If the limits are numbers, elements at a limit and NaN have no gradient. If they are tensors, an element at a
        limit has half the gradient, as for `maximum`.
        """
        if min_ is None and max_ is None:
            raise RuntimeError("clip() needs min_ or max_")
        min_, max_ = self._raise_limit(min_), self._cut_limit(max_)
        x, numbers = self, []
        for limit in (min_, max_):
            if type(limit) in (int, float, bool):
                x = x.cast(scalar_dtype(cast("ConstType", limit), x.dtype))
                numbers.append(limit)
        if dtypes.is_float(x.dtype) and len(numbers) == (min_ is not None) + (max_ is not None):
            return x._wrap_with_rule(
                x._detach_value()._clip_between(min_, max_).lazydata, clip_gradient, (x,), (min_, max_)
            )
        return self._clip_between(min_, max_)

    def _clip_between(self, low: Operand | None, high: Operand | None) -> Self:
        """Computes `clip` by `maximum` and `minimum`."""
        result = self if low is None else self._apply_binary(Ops.MAX, low, "clip")
        return result if high is None else result._apply_binary(Ops.MIN, high, "clip")

    def clamp(self, min_: Operand | None = None, max_: Operand | None = None) -> Self:
        """Calls `clip`."""
        return self.clip(min_, max_)

    @rounded_once
    def lerp(self, end: Self, weight: Self | float) -> Self:
        """Returns self + (end - self) · weight. For a weight of 0.5 or more, computes it from `end` instead."""
        start, stop = self._match_operands(end, "lerp")
        if isinstance(weight, (int, float)) or dtypes.is_float(weight.dtype):
            start, stop = start._to_float(), stop._to_float()
        gap = stop - start
        if isinstance(weight, (int, float)):
            return start + gap * weight if abs(weight) < 0.5 else stop - gap * (1 - weight)
        return (weight.abs() < 0.5).where(start + gap * weight, stop - gap * (1 - weight))

    # *** activations ***

    def relu(self) -> Self:
        """Returns max(x, 0)."""
        if self.dtype is dtypes.bool:
            return self
        lazydata = self.lazydata.alu(Ops.MAX, self._const(0).lazydata)
        lazydata.note = _RELU.attached_to(lazydata)
        return self._put_on_tape(lazydata, relu_gradient, (self,), None)

    def relu6(self) -> Self:
        """Returns min(max(x, 0), 6)."""
        return self.relu()._clip_saturating(None, 6)

    @rounded_once
    def sigmoid(self) -> Self:
        """Returns 1 / (1 + e⁻ˣ)."""
        x = self._to_float()
        exponential = x.lazydata.alu(Ops.NEG).alu(Ops.EXP)
        one = x._const(1.0).lazydata
        lazydata = one.alu(Ops.FDIV, one.alu(Ops.ADD, exponential))
        lazydata.note = _SIGMOID.attached_to(lazydata)
        return x._put_on_tape(lazydata, sigmoid_gradient, (x,), None)

    @rounded_once
    def silu(self) -> Self:
        """Returns x · sigmoid(x)."""
        return self * self.sigmoid()

    def swish(self) -> Self:
        """Calls `silu`."""
        return self.silu()

    @rounded_once
    def gelu(self, approximate: str = "tanh") -> Self:
        """Returns x · Φ(x), with the normal distribution's Φ: by the usual tanh formula, or exactly for
        `approximate="none"`."""
        if approximate not in ("tanh", "none"):
            raise ValueError(f"gelu with approximate={approximate!r}: choose 'tanh' or 'none'")
        x = self._to_float()
        if approximate == "none":
            return 0.5 * x * (1.0 + (x * math.sqrt(1 / 2)).erf())
        linear = math.sqrt(2 / math.pi)
        return 0.5 * x * (1.0 + (x * (linear + 0.044715 * linear * (x * x))).tanh())

    @rounded_once
    def quick_gelu(self) -> Self:
        """Returns x · sigmoid(1.702 x)."""
        return self * self.mul(1.702).sigmoid()

    @rounded_once
    def mish(self) -> Self:
        """Returns x · tanh(softplus(x))."""
        return self * self.softplus().tanh()

    @rounded_once
    def softplus(self, beta: float = 1.0) -> Self:
        """Returns ln(1 + e^(beta·x)) / beta, without overflow: max(z, 0) + ln(1 + e^-|z|) with z = beta·x."""
        taped = self._to_float()
        x = taped._detach_value()
        z = x * beta if beta != 1 else x
        tail = z.abs().neg().exp()._log1p()
        value = x.maximum(0.0) + tail if beta == 1 else (z > 0).where(x, 0.0) + tail * (1.0 / beta)
        return taped._wrap_with_rule(value.lazydata, softplus_gradient, (taped,), (type(self), beta))

    @rounded_once
    def logsigmoid(self) -> Self:
        """Returns ln sigmoid(x)."""
        return 0.0 - self._to_float().neg().softplus()

    @rounded_once
    def softsign(self) -> Self:
        """Returns x / (1 + |x|)."""
        x = self._to_float()
        return x / (1 + x.abs())

    @rounded_once
    def elu(self, alpha: float = 1.0) -> Self:
        """Returns x for positive elements, else alpha · (eˣ - 1)."""
        x = self._to_float()
        is_negative = x <= 0
        return is_negative.where(alpha * is_negative.where(x, 0.0)._expm1(), x)

    @rounded_once
    def celu(self, alpha: float = 1.0) -> Self:
        """Returns max(x, 0) + min(0, alpha · (e^(x/alpha) - 1))."""
        x = self._to_float()
        is_negative = x <= 0
        return is_negative.where(alpha * (is_negative.where(x, 0.0) / alpha)._expm1(), x)

    @rounded_once
    def selu(self, alpha: float = 1.67326, gamma: float = 1.0507) -> Self:
        """Returns gamma · elu(x, alpha)."""
        return gamma * self.elu(alpha)

    @rounded_once
    def leakyrelu(self, neg_slope: float = 0.01) -> Self:
        """Returns x for positive elements, else neg_slope · x."""
        x = self._to_float()
        return (x > 0).where(x, x * neg_slope)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """Calls `leakyrelu`."""
        return self.leakyrelu(neg_slope)

    def hardtanh(self, min_val: ConstType = -1, max_val: ConstType = 1) -> Self:
        """Limits each element to min_val … max_val."""
        return self._clip_saturating(min_val, max_val)

    def _clip_saturating(self, low: ConstType | None, high: ConstType) -> Self:
        """Computes `clip`, without a gradient at the limits, as PyTorch's activations do."""
        if not dtypes.is_float(self.dtype):
            return self.clip(low, high)
        limited = self if low is None else (self <= low).where(low, self)
        return (limited >= high).where(high, limited)

    @rounded_once
    def hardswish(self) -> Self:
        """Returns x · relu6(x + 3) / 6."""
        taped = self._to_float()
        x = taped._detach_value()
        value = x * x.add(3).relu6() * (1 / 6)
        return taped._wrap_with_rule(value.lazydata, hardswish_gradient, (taped,), (type(self),))

    @rounded_once
    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """Returns alpha · x + beta, limited to 0 … 1."""
        return (alpha * self + beta).clip(0, 1)


SQUARE_FITS = 1e9  # up to this magnitude the square does not overflow; above it, square + 1 rounds to the square


@gradient_by_tensors
def sinh_gradient(step: TapeEntry, values: Sequence[Functions], g: Functions) -> tuple[Functions | None, ...]:
    """Gradient rule of y = sinh x: dx = g · cosh x."""
    return (g * values[0].cosh(),)


@gradient_by_tensors
def cosh_gradient(step: TapeEntry, values: Sequence[Functions], g: Functions) -> tuple[Functions | None, ...]:
    """Gradient rule of y = cosh x: dx = g · sinh x."""
    return (g * values[0].sinh(),)


@gradient_by_tensors
def expm1_gradient(step: TapeEntry, values: Sequence[Functions], g: Functions) -> tuple[Functions | None, ...]:
    """Gradient rule of y = eˣ - 1: dx = g · eˣ."""
    return (g * values[0].exp(),)


@gradient_by_tensors
def softplus_gradient(step: TapeEntry, values: Sequence[Functions], g: Functions) -> tuple[Functions | None, ...]:
    """Gradient rule of y = ln(1 + e^(beta·x)) / beta: dx = g · sigmoid(beta·x)."""
    beta = step.arg[1]
    return (g * (values[0] * beta if beta != 1 else values[0]).sigmoid(),)


@gradient_by_tensors
def hardswish_gradient(step: TapeEntry, values: Sequence[Functions], g: Functions) -> tuple[Functions | None, ...]:
    """Gradient rule of y = x · relu6(x + 3) / 6: dx = 0 for x ≤ -3, g for x ≥ 3 and NaN, and g · (x / 3 + 1 / 2) in
    between."""
    (x,) = values
    rising = (x < 3).where(g * (x * (1 / 3) + 0.5), g)
    return ((x <= -3).where(0.0, rising),)


@gradient_by_tensors
def logaddexp_gradient(step: TapeEntry, values: Sequence[Functions], g: Functions) -> tuple[Functions | None, ...]:
    """Gradient rule of y = ln(eᵃ + eᵇ): da = g · sigmoid(a - b), db = g · sigmoid(b - a)."""
    a, b = values
    return g * (a - b).sigmoid() if step.needs(0) else None, g * (b - a).sigmoid() if step.needs(1) else None


def _arc_tangent(x: T) -> T:
    """Returns atan x by the argument reductions of Cephes, then a polynomial.

    The reductions: 1/x above tan 3π/8, and (x-1)/(x+1) above tan π/8.
    """
    size = x.abs()
    is_large = size > math.tan(3 * math.pi / 8)
    is_middle = size > math.tan(math.pi / 8)
    ratio = is_middle.where((size - 1.0) / (size + 1.0), size)
    ratio = is_large.where(size.maximum(1.0).reciprocal().neg(), ratio)
    start = is_large.where(x._const(math.pi / 2), is_middle.where(x._const(math.pi / 4), 0.0))
    z = ratio * ratio
    terms = 8 if x.dtype is not dtypes.float64 else 22
    series = z._const((-1) ** terms / (2 * terms + 1))
    for term in reversed(range(terms)):
        series = series * z + (-1) ** term / (2 * term + 1)
    return x._lend_sign(start + ratio * series)

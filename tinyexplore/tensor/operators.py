"""Python's operators, and the casts that are named after dtypes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from tinyexplore.autograd.rules import inverse_root_gradient, step_gradient
from tinyexplore.dtype import dtypes
from tinyexplore.tensor.arithmetic import Operand, scalar_dtype
from tinyexplore.tensor.assignment import Assignment
from tinyexplore.tensor.base import TensorBase
from tinyexplore.tensor.checks import shown
from tinyexplore.tensor.errors import ArgumentError, OperandError
from tinyexplore.tensor.precision import NARROW
from tinyexplore.tensor.signs import Signs
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from typing_extensions import Self


class NamedCasts(TensorBase):
    """Casts named after dtypes, in a separate class because their names hide Python's types."""

    __slots__ = ()

    def float(self) -> Self:
        return self.cast(dtypes.float32)

    def half(self) -> Self:
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        return self.cast(dtypes.float64)

    def int(self) -> Self:
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        return self.cast(dtypes.int64)

    def short(self) -> Self:
        return self.cast(dtypes.int16)

    def bool(self) -> Self:
        return self.cast(dtypes.bool)


def _is_operand(x: Any) -> bool:
    """Whether an operator accepts `x`; for anything else Python tries the other operand's method."""
    operand_type = type(x)
    if operand_type is float or operand_type is int:
        return True
    return isinstance(x, (TensorBase, int, float, UOp)) or hasattr(x, "__array_interface__")


def _is_factor(x: Any) -> bool:
    """Whether `x` can be a factor. Raises OperandError for lists and text, which Python would repeat."""
    if isinstance(x, (list, tuple, str, bytes)):
        raise OperandError(f"mul of a Tensor and {shown(x)}: need a Tensor, a number or an array")
    return _is_operand(x)


class Operators(Signs, Assignment):
    __slots__ = ()

    # *** quotients and powers ***

    def div(
        self,
        x: Operand,
        reverse: bool = False,
        upcast: bool = True,
        *,
        rounding_mode: Literal["trunc", "floor"] | None = None,
    ) -> Self:
        """Returns self / x as floats. With `upcast=False`, ints divide as ints, rounded towards zero.

        `rounding_mode="trunc"` rounds towards zero, `"floor"` rounds down like `//`. Ints then give ints.
        """
        if rounding_mode == "floor":
            return self.idiv(x, reverse)
        if rounding_mode == "trunc":
            a, b = self._number_operands(x, "div", reverse)
            if not dtypes.is_float(a.dtype):
                return a._divide_ints(b)[0]
            return a._wrap_with_rule(
                a._detach_value()._alu(Ops.FDIV, b._detach_value()).trunc().lazydata, step_gradient, (a, b)
            )
        if rounding_mode is not None:
            raise ArgumentError(f"rounding_mode {rounding_mode!r}: choose 'trunc', 'floor' or None")
        if not upcast:
            a, b = self._match_operands(x, "div", reverse)
            if not dtypes.is_float(a.dtype):
                return a._divide_ints(b)[0]
        a, b = self._match_floats(x, "div", reverse)
        return a._alu(Ops.FDIV, b)

    def _divide_ints(self, y: Self) -> tuple[Self, Self]:
        """Returns quotient and remainder of ints, rounded towards zero. Both are 0 for a division by 0."""
        if y.lazydata.op is Ops.CONST and type(y.lazydata.arg) is int and y.lazydata.arg not in (0, -1):
            return self._alu(Ops.IDIV, y), self._alu(Ops.MOD, y)
        by_zero = y._alu(Ops.CMPEQ, y._const(0))
        unusual = by_zero
        if not dtypes.is_unsigned(y.dtype):
            by_minus_one = y._alu(Ops.CMPEQ, y._const(-1))  # the least int divided by -1 traps on some machines
            unusual = by_zero._alu(Ops.OR, by_minus_one)
        safe = unusual._alu(Ops.WHERE, y._const(1), y)
        quotient = self._alu(Ops.IDIV, safe)
        if not dtypes.is_unsigned(y.dtype):
            quotient = by_minus_one._alu(Ops.WHERE, self._apply_unary(Ops.NEG), quotient)
        quotient = by_zero._alu(Ops.WHERE, self._const(0), quotient)
        return quotient, self._alu(Ops.MOD, safe)

    def _divide_down(self, y: Self) -> tuple[Self, Self]:
        """Returns the quotient rounded down, and the remainder, which has the sign of `y`."""
        if dtypes.is_float(self.dtype):
            remainder = self._alu(Ops.MOD, y)
            quotient = self._divide_to_whole(y, remainder)
            differs = remainder.ne(0) & (remainder < 0).ne(y < 0)
            is_lost = (self.eq(math.inf) | self.eq(-math.inf)) & y.ne(0)
            return is_lost.where(math.nan, quotient - differs), remainder + differs.where(y, 0.0)
        quotient, remainder = self._divide_ints(y)
        if dtypes.is_unsigned(self.dtype):
            return quotient, remainder
        zero = self._const(0)
        differs = remainder._alu(Ops.CMPLT, zero)._alu(Ops.CMPNE, y._alu(Ops.CMPLT, zero))
        adjust = differs._alu(Ops.AND, remainder._alu(Ops.CMPNE, zero))
        return (
            adjust._alu(Ops.WHERE, quotient._alu(Ops.ADD, self._const(-1)), quotient),
            adjust._alu(Ops.WHERE, remainder._alu(Ops.ADD, y), remainder),
        )

    def _divide_to_whole(self, y: Self, remainder: Self) -> Self:
        """Divides floats and rounds towards zero, given the remainder.

        Computes in twice the bits, so that a quotient just below a whole number does not round to it. float64 has no
        wider dtype: its quotient is computed from the remainder.
        """
        if y.dtype is dtypes.float64:
            return y.eq(0).where(self / y, ((self - remainder) / y).round())
        wide_dtype = dtypes.float64 if y.dtype is dtypes.float32 else dtypes.float32
        return (self.cast(wide_dtype) / y.cast(wide_dtype)).trunc().cast(y.dtype)

    def _number_operands(self, x: Any, operation: str, reverse: bool) -> tuple[Self, Self]:
        a, b = self._match_operands(x, operation, reverse)
        if a.dtype is dtypes.bool:
            return a.cast(dtypes.int8), b.cast(dtypes.int8)
        return a, b

    def idiv(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self / x rounded down (`//`). Ints divided by 0 give 0."""
        a, b = self._number_operands(x, "floor division", reverse)
        if not dtypes.is_float(a.dtype):
            return a._divide_down(b)[0]
        return a._wrap_with_rule(a._detach_value()._divide_down(b._detach_value())[0].lazydata, step_gradient, (a, b))

    def mod(self, x: Operand, reverse: bool = False) -> Self:
        """Returns the remainder of `//`, with the sign of the divisor (`%`). For ints, the remainder by 0 is 0."""
        a, b = self._number_operands(x, "mod", reverse)
        return a._divide_down(b)[1]

    def fmod(self, x: Operand) -> Self:
        """Returns the remainder of the division rounded towards zero, with the sign of the dividend."""
        a, b = self._number_operands(x, "fmod", False)
        if not dtypes.is_float(a.dtype):
            return a._divide_ints(b)[1]
        return a._alu(Ops.MOD, b)

    def pow(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self to the power x.

        The result is an int if both are ints and the exponent is a number ≥ 0, or a tensor; negative powers then round
        towards zero. Ints to a negative number are floats. A number to the power of an int tensor is a float, because
        any exponent may be negative.
        """
        if type(x) in (int, float) and not dtypes.is_float(self.dtype) and (reverse or x < 0):
            return self._to_float().pow(x, reverse)
        if not reverse and (type(x) is int or type(x) is float):
            small_power = self._raise_to_constant(x)
            if small_power is not None:
                return small_power
        a, b = self._number_operands(x, "pow", reverse)
        if dtypes.is_float(a.dtype):
            return a._alu(Ops.POW, b)
        return a._raise_ints(b)

    def _raise_to_constant(self, exponent: float) -> Self | None:
        """Returns powers that a few multiplications, a root or a reciprocal compute, correctly rounded or nearly so.
        Else None."""
        x = self
        dtype = scalar_dtype(exponent, x.dtype)
        if not dtypes.is_float(dtype):
            return x.cast(dtype)._raise_to_count(int(exponent))
        x = x.cast(dtype)
        if exponent == 0.5:
            return x._apply_unary(Ops.SQRT)
        is_whole = abs(exponent) <= 8 and exponent == int(exponent)
        if exponent != -0.5 and not is_whole:
            return None
        if x.dtype in NARROW and exponent not in (0, 1):
            return (x.cast(dtypes.float32) ** exponent).cast(x.dtype)
        if exponent == -0.5:
            return x._wrap_with_rule(x._detach_value()._inverse_root().lazydata, inverse_root_gradient, (x,))
        # the reciprocal comes first: the positive power may overflow although the negative one does not vanish
        if exponent < 0:
            return x.reciprocal()._raise_to_count(-int(exponent))
        return x._raise_to_count(int(exponent))

    def _inverse_root(self) -> Self:
        """Returns self ** -0.5 like C's `pow`: infinity at -0, 0 at -infinity."""
        root = self._apply_unary(Ops.SQRT)
        root = root.eq(0).where(0.0, root)  # a zero loses its sign
        return self.eq(-math.inf).where(0.0, root.reciprocal())

    def _raise_to_count(self, times: int) -> Self:
        """Returns self to the power `times`, by repeated squaring."""
        result: Self | None = None
        square = self
        while times:
            if times & 1:
                result = square if result is None else result._alu(Ops.MUL, square)
            times >>= 1
            if times:
                square = square._alu(Ops.MUL, square)
        return self._constant_with_zero_gradient(1, self.shape) if result is None else result

    def _raise_ints(self, exponent: Self) -> Self:
        """Returns ints to int powers by repeated squaring, one bit of the exponent after the other."""
        square = self
        one = self._const(1)
        result = one
        for bit in range(self.dtype.bits - (0 if dtypes.is_unsigned(self.dtype) else 1)):
            is_set = exponent._alu(Ops.AND, exponent._const(1 << bit))._alu(Ops.CMPNE, exponent._const(0))
            result = result._alu(Ops.MUL, is_set._alu(Ops.WHERE, square, one))
            square = square._alu(Ops.MUL, square)
        if dtypes.is_unsigned(self.dtype):
            return result
        is_unit = (self == 1) | (self == -1)
        return ((exponent >= 0) | is_unit).where(result, 0)

    # *** Python's operators ***

    def _assign_result(self, result: Self) -> Self:
        """Implements `x += y`: the tensor gets the value `result`. If `result` is on the tape, returns it as a new
        tensor instead."""
        if result.requires_grad:
            return result
        if dtypes.is_float(result.dtype) and not dtypes.is_float(self.dtype):
            raise OperandError(
                f"in place, {self.dtype.name} cannot become {result.dtype.name}: write x = x ... instead"
            )
        return self.assign(result.cast(self.dtype))

    def __add__(self, x: Any) -> Self:
        return self.add(x) if _is_operand(x) else NotImplemented

    def __radd__(self, x: Any) -> Self:
        return self.add(x, reverse=True) if _is_operand(x) else NotImplemented

    def __iadd__(self, x: Any) -> Self:
        return self._assign_result(self.add(x))

    def __sub__(self, x: Any) -> Self:
        return self.sub(x) if _is_operand(x) else NotImplemented

    def __rsub__(self, x: Any) -> Self:
        return self.sub(x, reverse=True) if _is_operand(x) else NotImplemented

    def __isub__(self, x: Any) -> Self:
        return self._assign_result(self.sub(x))

    def __mul__(self, x: Any) -> Self:
        return self.mul(x) if _is_factor(x) else NotImplemented

    def __rmul__(self, x: Any) -> Self:
        return self.mul(x, reverse=True) if _is_factor(x) else NotImplemented

    def __imul__(self, x: Any) -> Self:
        return self._assign_result(self.mul(x))

    def __truediv__(self, x: Any) -> Self:
        return self.div(x) if _is_operand(x) else NotImplemented

    def __rtruediv__(self, x: Any) -> Self:
        return self.div(x, reverse=True) if _is_operand(x) else NotImplemented

    def __itruediv__(self, x: Any) -> Self:
        return self._assign_result(self.div(x))

    def __floordiv__(self, x: Any) -> Self:
        return self.idiv(x) if _is_operand(x) else NotImplemented

    def __rfloordiv__(self, x: Any) -> Self:
        return self.idiv(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ifloordiv__(self, x: Any) -> Self:
        return self._assign_result(self.idiv(x))

    def __mod__(self, x: Any) -> Self:
        return self.mod(x) if _is_operand(x) else NotImplemented

    def __rmod__(self, x: Any) -> Self:
        return self.mod(x, reverse=True) if _is_operand(x) else NotImplemented

    def __imod__(self, x: Any) -> Self:
        return self._assign_result(self.mod(x))

    def __pow__(self, x: Any) -> Self:
        return self.pow(x) if _is_operand(x) else NotImplemented

    def __rpow__(self, x: Any) -> Self:
        return self.pow(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ipow__(self, x: Any) -> Self:
        return self._assign_result(self.pow(x))

    def __and__(self, x: Any) -> Self:
        return self.bitwise_and(x) if _is_operand(x) else NotImplemented

    def __rand__(self, x: Any) -> Self:
        return self.bitwise_and(x, reverse=True) if _is_operand(x) else NotImplemented

    def __iand__(self, x: Any) -> Self:
        return self._assign_result(self.bitwise_and(x))

    def __or__(self, x: Any) -> Self:
        return self.bitwise_or(x) if _is_operand(x) else NotImplemented

    def __ror__(self, x: Any) -> Self:
        return self.bitwise_or(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ior__(self, x: Any) -> Self:
        return self._assign_result(self.bitwise_or(x))

    def __xor__(self, x: Any) -> Self:
        return self.xor(x) if _is_operand(x) else NotImplemented

    def __rxor__(self, x: Any) -> Self:
        return self.xor(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ixor__(self, x: Any) -> Self:
        return self._assign_result(self.xor(x))

    def __lshift__(self, x: Any) -> Self:
        return self.lshift(x) if _is_operand(x) else NotImplemented

    def __rlshift__(self, x: Any) -> Self:
        return self.lshift(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ilshift__(self, x: Any) -> Self:
        return self._assign_result(self.lshift(x))

    def __rshift__(self, x: Any) -> Self:
        return self.rshift(x) if _is_operand(x) else NotImplemented

    def __rrshift__(self, x: Any) -> Self:
        return self.rshift(x, reverse=True) if _is_operand(x) else NotImplemented

    def __irshift__(self, x: Any) -> Self:
        return self._assign_result(self.rshift(x))

    def __lt__(self, x: Any) -> Self:
        return self.lt(x) if _is_operand(x) else NotImplemented

    def __le__(self, x: Any) -> Self:
        return self.le(x) if _is_operand(x) else NotImplemented

    def __gt__(self, x: Any) -> Self:
        return self.gt(x) if _is_operand(x) else NotImplemented

    def __ge__(self, x: Any) -> Self:
        return self.ge(x) if _is_operand(x) else NotImplemented

    def __eq__(self, x: Any) -> Self:  # type: ignore[override]
        return self.eq(x) if _is_operand(x) else NotImplemented

    def __ne__(self, x: Any) -> Self:  # type: ignore[override]
        return self.ne(x) if _is_operand(x) else NotImplemented

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Self:
        return self.neg()

    def __pos__(self) -> Self:
        return self

    def __invert__(self) -> Self:
        return self.bitwise_not()

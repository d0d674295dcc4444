"""Arithmetic, comparison and bits, element by element, with broadcasting and promotion.

Two tensors promote to the least type that holds both. A Python number is weak: it takes the tensor's type, unless it is
a float and the tensor holds ints (then the default float), or a number and the tensor holds bools.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, Union

from tinyexplore.autograd.rules import inverse_root_gradient, step_gradient
from tinyexplore.dtype import ConstType, DType, dtypes, least_upper_dtype, least_upper_float
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.base import Base, Shape, is_tensor
from tinyexplore.tensor.checks import need_tensor, shown
from tinyexplore.tensor.data import checked
from tinyexplore.tensor.errors import ArgumentError, OperandError
from tinyexplore.tensor.precision import NARROW
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.semantics import MEANING

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

Operand = Union["Tensor", ConstType, UOp]


@lru_cache(1024)
def broadcast_shape(what: str, *shapes: Shape) -> Shape:
    """The shape that all of `shapes` expand to, by NumPy's rule: aligned at the last axis, 1 fits anything."""
    rank = max(len(shape) for shape in shapes)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for axis in reversed(range(rank)):
        sizes = {shape[axis] for shape in aligned} - {1}
        if len(sizes) > 1:
            raise ShapeError(
                f"{what}: shapes {' and '.join(str(shape) for shape in shapes)} do not broadcast: "
                f"axis {axis - rank} has sizes {' and '.join(str(shape[axis]) for shape in aligned)}; "
                "each must be equal or 1"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def scalar_dtype(value: ConstType, dtype: DType) -> DType:
    """The type of `tensor of dtype (op) value`."""
    if isinstance(value, bool) or dtypes.is_float(dtype):
        return dtype
    if isinstance(value, float):
        return dtypes.default_float
    return dtypes.default_int if dtype is dtypes.bool else dtype


class Arithmetic:
    __slots__ = ()

    # *** making operands agree ***

    def _as_tensor(self: Tensor, other: Any, what: str) -> Tensor:
        """`other` as a tensor that `self` can be combined with; numbers and arrays come along."""
        if is_tensor(other):
            return other
        kind = type(other)
        if kind is int or kind is float or kind is bool or kind is UOp:
            return self._number(other, scalar_dtype(other, self.lazydata.dtype), ())
        if hasattr(other, "__array_interface__"):
            return type(self)(other, device=self.lazydata.device)
        if isinstance(other, (int, float)):
            return self._as_tensor(float(other) if isinstance(other, float) else int(other), what)
        raise OperandError(f"{what} of a Tensor and {shown(other)}: need a Tensor, a number or an array")

    def _number(self: Tensor, value: ConstType | UOp, dtype: DType, shape: Shape | None = None) -> Tensor:
        """A user's number as a constant. OverflowError where `dtype` cannot hold it."""
        return self._const(checked(value, dtype) if type(value) is int else value, dtype, shape)

    def _matched(self: Tensor, other: Any, what: str, reverse: bool = False) -> tuple[Tensor, Tensor]:
        """Both operands with one shape and dtype, in the order of the operation."""
        x = self
        kind = type(other)
        if kind is type(self):
            a, b = x.lazydata, other.lazydata
            if a.dtype is not b.dtype:
                dtype = least_upper_dtype(a.dtype, b.dtype)
                x, other = x.cast(dtype), other.cast(dtype)
            if a.device != b.device:
                raise ValueError(f"{what} of tensors on {a.device} and {b.device}: move one with .to()")
            if a.shape != b.shape:
                shape = broadcast_shape(what, *((b.shape, a.shape) if reverse else (a.shape, b.shape)))
                x, other = x._broadcast_to(shape), other._broadcast_to(shape)
            return (other, x) if reverse else (x, other)
        if kind is int or kind is float or kind is bool or kind is UOp:
            dtype = scalar_dtype(other, self.lazydata.dtype)
            x = x.cast(dtype)
            y = self._number(other, dtype)
            return (y, x) if reverse else (x, y)
        return self._matched(self._as_tensor(other, what), what, reverse)

    def _binary(self: Tensor, op: Ops, other: Any, what: str, reverse: bool = False) -> Tensor:
        if type(other) is type(self):
            a, b = self.lazydata, other.lazydata
            if a.shape == b.shape and a.dtype is b.dtype and not reverse:
                return self._alu(op, other)
        x, y = self._matched(other, what, reverse)
        return x._alu(op, y)

    def _float(self: Tensor) -> Tensor:
        """The tensor itself if it holds floats, else converted."""
        dtype = self.lazydata.dtype
        if dtype is dtypes.float32:
            return self
        return self.cast(least_upper_float(dtype))

    def _matched_floats(self: Tensor, other: Any, what: str, reverse: bool = False) -> tuple[Tensor, Tensor]:
        """As `_matched`, as floats: a Python number is what it is, also where the tensor's ints could not hold it."""
        if isinstance(other, (int, UOp)):
            return self._float()._matched(other, what, reverse)
        x, y = self._matched(other, what, reverse)
        return x._float(), y._float()

    def _no_bool(self: Tensor, what: str, instead: str) -> None:
        if self.lazydata.dtype is dtypes.bool:
            raise OperandError(f"{what} of bool tensors means nothing; use {instead}, or cast to a number first")

    def _no_float(self: Tensor, what: str) -> None:
        if dtypes.is_float(self.lazydata.dtype):
            raise OperandError(f"{what} of {self.dtype.name} tensors: bits are for ints and bools; cast first")

    # *** sums, products, powers ***

    def add(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """self + x; of bools: or."""
        return self._binary(Ops.ADD, x, "add", reverse)

    def sub(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """self - x"""
        a, b = self._matched(x, "sub", reverse)
        a._no_bool("sub", "^ (xor)")
        if type(x) in (int, float) and not reverse:
            number: Any = x
            return a._alu(Ops.ADD, self._const(-float(number) if dtypes.is_float(a.dtype) else -number, a.dtype))
        return a._alu(Ops.ADD, b._unary(Ops.NEG))

    def mul(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """self · x; of bools: and."""
        return self._binary(Ops.MUL, x, "mul", reverse)

    def neg(self: Tensor) -> Tensor:
        """-self; of bools: not."""
        return self.logical_not() if self.dtype is dtypes.bool else self._unary(Ops.NEG)

    def div(
        self: Tensor,
        x: Operand,
        reverse: bool = False,
        upcast: bool = True,
        *,
        rounding_mode: Literal["trunc", "floor"] | None = None,
    ) -> Tensor:
        """self / x as floats; with `upcast=False` ints divide as ints, towards zero.

        Rounded towards zero (`rounding_mode="trunc"`) or down (`"floor"`, the same as //), ints give ints.
        """
        if rounding_mode == "floor":
            return self.idiv(x, reverse)
        if rounding_mode == "trunc":
            a, b = self._number_operands(x, "div", reverse)
            if not dtypes.is_float(a.dtype):
                return a._divided(b)[0]
            return a._by_own_rule(a._value()._alu(Ops.FDIV, b._value()).trunc().lazydata, step_gradient, (a, b))
        if rounding_mode is not None:
            raise ArgumentError(f"rounding_mode {rounding_mode!r}: choose 'trunc', 'floor' or None")
        if not upcast:
            a, b = self._matched(x, "div", reverse)
            if not dtypes.is_float(a.dtype):
                return a._divided(b)[0]
        a, b = self._matched_floats(x, "div", reverse)
        return a._alu(Ops.FDIV, b)

    def reciprocal(self: Tensor) -> Tensor:
        """1 / self"""
        x = self._float()
        return x._const(1.0)._alu(Ops.FDIV, x)

    def _divided(self: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Quotient and remainder of ints, towards zero; by zero both are 0."""
        if y.lazydata.op is Ops.CONST and type(y.lazydata.arg) is int and y.lazydata.arg not in (0, -1):
            return self._alu(Ops.IDIV, y), self._alu(Ops.MOD, y)
        by_zero = y._alu(Ops.CMPEQ, y._const(0))
        unusual = by_zero
        if not dtypes.is_unsigned(y.dtype):
            by_minus_one = y._alu(Ops.CMPEQ, y._const(-1))  # the least int / -1 traps on some machines
            unusual = by_zero._alu(Ops.OR, by_minus_one)
        safe = unusual._alu(Ops.WHERE, y._const(1), y)
        quotient = self._alu(Ops.IDIV, safe)
        if not dtypes.is_unsigned(y.dtype):
            quotient = by_minus_one._alu(Ops.WHERE, self._unary(Ops.NEG), quotient)
        quotient = by_zero._alu(Ops.WHERE, self._const(0), quotient)
        return quotient, self._alu(Ops.MOD, safe)

    def _floor_divided(self: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Quotient rounded down, and the remainder, which has the sign of `y`."""
        if dtypes.is_float(self.dtype):
            remainder = self._alu(Ops.MOD, y)
            quotient = self._whole_quotient(y, remainder)
            differs = (remainder != 0) & ((remainder < 0) != (y < 0))
            is_lost = ((self == math.inf) | (self == -math.inf)) & (y != 0)
            return is_lost.where(math.nan, quotient - differs), remainder + differs.where(y, 0.0)
        quotient, remainder = self._divided(y)
        if dtypes.is_unsigned(self.dtype):
            return quotient, remainder
        zero = self._const(0)
        differs = remainder._alu(Ops.CMPLT, zero)._alu(Ops.CMPNE, y._alu(Ops.CMPLT, zero))
        adjust = differs._alu(Ops.AND, remainder._alu(Ops.CMPNE, zero))
        return (
            adjust._alu(Ops.WHERE, quotient._alu(Ops.ADD, self._const(-1)), quotient),
            adjust._alu(Ops.WHERE, remainder._alu(Ops.ADD, y), remainder),
        )

    def _whole_quotient(self: Tensor, y: Tensor, remainder: Tensor) -> Tensor:
        """Floats divided towards zero, given what is left over: in twice the bits, where a quotient just below a whole
        number is not rounded to it; of float64, which has no wider type, from what the remainder leaves."""
        if y.dtype is dtypes.float64:
            return ((self - remainder) / y).round()
        wide = dtypes.float64 if y.dtype is dtypes.float32 else dtypes.float32
        return (self.cast(wide) / y.cast(wide)).trunc().cast(y.dtype)

    def _number_operands(self: Tensor, x: Any, what: str, reverse: bool) -> tuple[Tensor, Tensor]:
        a, b = self._matched(x, what, reverse)
        if a.dtype is dtypes.bool:
            return a.cast(dtypes.int8), b.cast(dtypes.int8)
        return a, b

    def idiv(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """self / x rounded down (`//`); ints divided by 0 give 0."""
        a, b = self._number_operands(x, "floor division", reverse)
        if not dtypes.is_float(a.dtype):
            return a._floor_divided(b)[0]
        return a._by_own_rule(a._value()._floor_divided(b._value())[0].lazydata, step_gradient, (a, b))

    def mod(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """What `//` leaves over, with the sign of the divisor (`%`); of ints, by 0: 0."""
        a, b = self._number_operands(x, "mod", reverse)
        return a._floor_divided(b)[1]

    def fmod(self: Tensor, x: Operand) -> Tensor:
        """What division towards zero leaves over, with the sign of the dividend."""
        a, b = self._number_operands(x, "fmod", False)
        if not dtypes.is_float(a.dtype):
            return a._divided(b)[1]
        return a._alu(Ops.MOD, b)

    def pow(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """self to the power x.

        Ints to a whole power that is a number, not negative, are ints, and so are tensors of ints to the power of
        others, where a negative power rounds towards zero. Ints to a negative number are floats, and so is a number to
        the power of ints, of which any may be negative.
        """
        if type(x) in (int, float) and not dtypes.is_float(self.dtype) and (reverse or x < 0):
            return self._float().pow(x, reverse)
        if not reverse and (type(x) is int or type(x) is float):
            small = self._small_power(x)
            if small is not None:
                return small
        a, b = self._number_operands(x, "pow", reverse)
        if dtypes.is_float(a.dtype):
            return a._alu(Ops.POW, b)
        return a._int_power(b)

    def _small_power(self: Tensor, exponent: float) -> Tensor | None:
        """Powers that a few multiplications, a root or a reciprocal give, exactly rounded or nearly so."""
        x = self
        dtype = scalar_dtype(exponent, x.dtype)
        if not dtypes.is_float(dtype):
            return x.cast(dtype)._multiplied(int(exponent))
        x = x.cast(dtype)
        if exponent == 0.5:
            return x._unary(Ops.SQRT)
        is_whole = abs(exponent) <= 8 and exponent == int(exponent)
        if exponent != -0.5 and not is_whole:
            return None
        if x.dtype in NARROW and exponent not in (0, 1):
            return (x.cast(dtypes.float32) ** exponent).cast(x.dtype)
        if exponent == -0.5:
            return x._by_own_rule(x._value()._inverse_root().lazydata, inverse_root_gradient, (x,))
        if exponent < 0:  # the reciprocal first: the positive power may overflow where the negative one does not vanish
            return x.reciprocal()._multiplied(-int(exponent))
        return x._multiplied(int(exponent))

    def _inverse_root(self: Tensor) -> Tensor:
        """self ** -0.5 as C's `pow` has it: infinity at -0, 0 at -infinity."""
        root = self._unary(Ops.SQRT)
        root = root.eq(0).where(0.0, root)  # without the sign of a zero
        return self.eq(-math.inf).where(0.0, root.reciprocal())

    def _multiplied(self: Tensor, times: int) -> Tensor:
        """The product of `times` copies, by squaring."""
        result: Tensor | None = None
        square = self
        while times:
            if times & 1:
                result = square if result is None else result._alu(Ops.MUL, square)
            times >>= 1
            if times:
                square = square._alu(Ops.MUL, square)
        return self._unmoved(1, self.shape) if result is None else result

    def _int_power(self: Tensor, exponent: Tensor) -> Tensor:
        """Powers of ints by squaring, one bit of the exponent after the other."""
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

    # *** comparison ***

    def _compared(self: Tensor, op: Ops, other: Any, reverse: bool = False) -> Tensor:
        if type(other) is int and not dtypes.is_float(self.lazydata.dtype):
            dtype = scalar_dtype(other, self.lazydata.dtype)
            if not dtypes.min(dtype) <= other <= dtypes.max(dtype):  # it compares to every element as to 0
                return self._const(MEANING[op](*((other, 0) if reverse else (0, other))), dtypes.bool)
        x, y = self._matched(other, "comparison", reverse)
        return x._alu(op, y)

    def lt(self: Tensor, x: Operand) -> Tensor:
        return self._compared(Ops.CMPLT, x)

    def gt(self: Tensor, x: Operand) -> Tensor:
        return self._compared(Ops.CMPLT, x, reverse=True)

    def le(self: Tensor, x: Operand) -> Tensor:
        return self._compared(Ops.CMPLE, x)

    def ge(self: Tensor, x: Operand) -> Tensor:
        return self._compared(Ops.CMPLE, x, reverse=True)

    def eq(self: Tensor, x: Operand) -> Tensor:
        return self._compared(Ops.CMPEQ, x)

    def ne(self: Tensor, x: Operand) -> Tensor:
        return self._compared(Ops.CMPNE, x)

    def _lower_limit(self: Tensor, limit: Operand | None) -> Operand | None:
        """An int below the range of the tensor's ints limits no element: the least of the range stands for it."""
        if type(limit) is not int or dtypes.is_float(self.dtype):
            return limit
        return max(limit, int(dtypes.min(scalar_dtype(limit, self.dtype))))

    def _upper_limit(self: Tensor, limit: Operand | None) -> Operand | None:
        """An int above the range of the tensor's ints limits no element: the greatest of the range stands for it."""
        if type(limit) is not int or dtypes.is_float(self.dtype):
            return limit
        return min(limit, int(dtypes.max(scalar_dtype(limit, self.dtype))))

    def maximum(self: Tensor, x: Operand) -> Tensor:
        """The larger of each two; NaN if either is."""
        return self._binary(Ops.MAX, self._lower_limit(x), "maximum")

    def minimum(self: Tensor, x: Operand) -> Tensor:
        """The smaller of each two; NaN if either is."""
        return self._binary(Ops.MIN, self._upper_limit(x), "minimum")

    # *** bits ***

    def _bits(self: Tensor, op: Ops, x: Any, what: str, reverse: bool) -> Tensor:
        a, b = self._matched(x, what, reverse)
        a._no_float(what)
        return a._alu(op, b)

    def bitwise_and(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        return self._bits(Ops.AND, x, "and", reverse)

    def bitwise_or(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        return self._bits(Ops.OR, x, "or", reverse)

    def xor(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        return self._bits(Ops.XOR, x, "xor", reverse)

    def bitwise_xor(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        return self.xor(x, reverse)

    def bitwise_not(self: Tensor) -> Tensor:
        """Every bit turned over; of bools: not."""
        self._no_float("not")
        if self.dtype is dtypes.bool:
            return self.logical_not()
        return self._alu(Ops.XOR, self._const(-1))

    def logical_not(self: Tensor) -> Tensor:
        """True where the value is 0."""
        return self._alu(Ops.CMPEQ, self._const(0))

    def _shifted(self: Tensor, op: Ops, x: Any, what: str, reverse: bool) -> Tensor:
        if type(x) is int and not reverse:
            if x < 0:
                raise ValueError(f"{what} by {x}: cannot shift by a negative count")
            x = min(x, self.dtype.bits)
        a, b = self._matched(x, what, reverse)
        a._no_float(what)
        a._no_bool(what, "* or &")
        if type(x) is int and not reverse and x < a.dtype.bits:
            return a._alu(op, b)
        inside = b._alu(Ops.CMPLT, b._const(a.dtype.bits))
        count = inside._alu(Ops.WHERE, b, b._const(a.dtype.bits - 1))
        shifted = a._alu(op, count)
        if op is Ops.SHR and not dtypes.is_unsigned(a.dtype):
            return shifted  # the sign fills in, as if shifted on
        return inside._alu(Ops.WHERE, shifted, a._const(0))

    def lshift(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """Bits moved up by x places; past the width nothing is left."""
        return self._shifted(Ops.SHL, x, "left shift", reverse)

    def rshift(self: Tensor, x: Operand, reverse: bool = False) -> Tensor:
        """Bits moved down by x places; signed ints keep their sign."""
        return self._shifted(Ops.SHR, x, "right shift", reverse)

    # *** choice ***

    def where(self: Tensor, x: Operand, y: Operand) -> Tensor:
        """x where this tensor is true (not 0), else y."""
        condition = self.cast(dtypes.bool)
        if isinstance(x, Base):
            first, second = x._matched(y, "where")
        elif isinstance(y, Base):
            second, first = y._matched(x, "where")
        else:
            kinds = [dtypes.default_int if isinstance(one, UOp) else dtypes.from_py(one) for one in (x, y)]
            dtype = least_upper_dtype(*kinds)
            first, second = condition._number(x, dtype), condition._number(y, dtype)
        if condition.device != first.device:
            raise ValueError(f"where: the condition is on {condition.device}, the values on {first.device}: use .to()")
        if condition.shape != first.shape:
            shape = broadcast_shape("where", condition.shape, first.shape)
            condition = condition._broadcast_to(shape)
            first, second = first._broadcast_to(shape), second._broadcast_to(shape)
        return condition._alu(Ops.WHERE, first, second)

    def masked_fill(self: Tensor, mask: Tensor, value: Operand) -> Tensor:
        """`value` where `mask` is true."""
        need_tensor(mask, "masked_fill: the mask")
        return mask.where(value, self)

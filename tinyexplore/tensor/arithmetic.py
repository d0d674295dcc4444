"""Arithmetic, comparison and bits, element by element, with broadcasting and promotion.

Two tensors promote to the least type that holds both. A Python number is weak: it takes the tensor's type, unless it is
a float and the tensor holds ints (then the default float), or a number and the tensor holds bools.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tinyexplore.dtype import ConstType, DType, dtypes, least_upper_dtype, least_upper_float
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.base import Base, Shape, unsigned_of
from tinyexplore.tensor.checks import need_tensor, shown
from tinyexplore.tensor.data import checked
from tinyexplore.tensor.errors import OperandError
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.semantics import MEANING

if TYPE_CHECKING:
    from typing_extensions import Self

Operand: TypeAlias = Base | ConstType | UOp


@lru_cache(1024)
def broadcast_shape(operation: str, *shapes: Shape) -> Shape:
    """Returns the shape that all of `shapes` expand to, by NumPy's rule: aligned at the last axis, size 1 expands to
    any size."""
    rank = max(len(shape) for shape in shapes)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result = []
    for axis in reversed(range(rank)):
        sizes = {shape[axis] for shape in aligned} - {1}
        if len(sizes) > 1:
            raise ShapeError(
                f"{operation}: shapes {' and '.join(str(shape) for shape in shapes)} do not broadcast: "
                f"axis {axis - rank} has sizes {' and '.join(str(shape[axis]) for shape in aligned)}; "
                "each must be equal or 1"
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


def scalar_dtype(value: ConstType, dtype: DType) -> DType:
    """Returns the dtype of the result of an operation on a tensor of `dtype` and the Python number `value`."""
    if isinstance(value, bool) or dtypes.is_float(dtype):
        return dtype
    if isinstance(value, float):
        return dtypes.default_float
    return dtypes.default_int if dtype is dtypes.bool else dtype


class Arithmetic(Base):
    __slots__ = ()

    # *** making operands agree ***

    def _as_tensor(self, other: Any, operation: str) -> Self:
        """Converts `other`, a number, array or tensor, to a tensor that can be combined with this one."""
        if self._is_tensor(other):
            return other
        kind = type(other)
        if kind is int or kind is float or kind is bool or kind is UOp:
            return self._number(other, scalar_dtype(other, self.lazydata.dtype), ())
        if hasattr(other, "__array_interface__"):
            return type(self)(other, device=self.lazydata.device)
        if isinstance(other, (int, float)):
            return self._as_tensor(float(other) if isinstance(other, float) else int(other), operation)
        raise OperandError(f"{operation} of a Tensor and {shown(other)}: need a Tensor, a number or an array")

    def _number(self, value: ConstType | UOp, dtype: DType, shape: Shape | None = None) -> Self:
        """Returns the number `value` as a constant tensor. Raises OverflowError if `dtype` cannot represent it."""
        return self._const(checked(value, dtype) if type(value) is int else value, dtype, shape)

    def _matched(self, other: Any, operation: str, reverse: bool = False) -> tuple[Self, Self]:
        """Brings both operands to one shape and dtype. Returns them in the order of the operation."""
        x = self
        kind = type(other)
        if kind is type(self):
            a, b = x.lazydata, other.lazydata
            if a.dtype is not b.dtype:
                dtype = least_upper_dtype(a.dtype, b.dtype)
                x, other = x.cast(dtype), other.cast(dtype)
            if a.device != b.device:
                raise ValueError(f"{operation} of tensors on {a.device} and {b.device}: move one with .to()")
            if a.shape != b.shape:
                shape = broadcast_shape(operation, *((b.shape, a.shape) if reverse else (a.shape, b.shape)))
                x, other = x._broadcast_to(shape), other._broadcast_to(shape)
            return (other, x) if reverse else (x, other)
        if kind is int or kind is float or kind is bool or kind is UOp:
            dtype = scalar_dtype(other, self.lazydata.dtype)
            x = x.cast(dtype)
            y = self._number(other, dtype)
            return (y, x) if reverse else (x, y)
        return self._matched(self._as_tensor(other, operation), operation, reverse)

    def _binary(self, op: Ops, other: Any, operation: str, reverse: bool = False) -> Self:
        if type(other) is type(self):
            a, b = self.lazydata, other.lazydata
            if a.shape == b.shape and a.dtype is b.dtype and not reverse:
                return self._alu(op, other)
        x, y = self._matched(other, operation, reverse)
        return x._alu(op, y)

    def _float(self) -> Self:
        """Returns the tensor itself if it holds floats, else the tensor converted to the default float."""
        dtype = self.lazydata.dtype
        if dtype is dtypes.float32:
            return self
        return self.cast(least_upper_float(dtype))

    def _matched_floats(self, other: Any, operation: str, reverse: bool = False) -> tuple[Self, Self]:
        """Returns `_matched`, with both operands as floats. A Python number keeps its value, even if the tensor's ints
        cannot represent it."""
        if isinstance(other, (int, UOp)):
            return self._float()._matched(other, operation, reverse)
        x, y = self._matched(other, operation, reverse)
        return x._float(), y._float()

    def _no_bool(self, operation: str, instead: str) -> None:
        if self.lazydata.dtype is dtypes.bool:
            raise OperandError(f"{operation} of bool tensors is undefined; use {instead}, or cast to a number first")

    def _no_float(self, operation: str) -> None:
        if dtypes.is_float(self.lazydata.dtype):
            raise OperandError(f"{operation} of {self.dtype.name} tensors: bits are for ints and bools; cast first")

    # *** sums, products, powers ***

    def add(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self + x. For bools, `+` is logical or."""
        return self._binary(Ops.ADD, x, "add", reverse)

    def sub(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self - x."""
        a, b = self._matched(x, "sub", reverse)
        a._no_bool("sub", "^ (xor)")
        if type(x) in (int, float) and not reverse:
            number: Any = x
            return a._alu(Ops.ADD, self._const(-float(number) if dtypes.is_float(a.dtype) else -number, a.dtype))
        return a._alu(Ops.ADD, b._unary(Ops.NEG))

    def mul(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self · x. For bools, `·` is logical and."""
        return self._binary(Ops.MUL, x, "mul", reverse)

    def neg(self) -> Self:
        """Returns -self. For bools, the result is logical not."""
        return self.logical_not() if self.dtype is dtypes.bool else self._unary(Ops.NEG)

    def reciprocal(self) -> Self:
        """Returns 1 / self."""
        x = self._float()
        return x._const(1.0)._alu(Ops.FDIV, x)

    # *** comparison ***

    def _compared(self, op: Ops, other: Any, reverse: bool = False) -> Self:
        if type(other) is int and not dtypes.is_float(self.lazydata.dtype):
            dtype = scalar_dtype(other, self.lazydata.dtype)
            # a number out of range compares with every element as it compares with 0
            if not dtypes.min(dtype) <= other <= dtypes.max(dtype):
                return self._const(MEANING[op](*((other, 0) if reverse else (0, other))), dtypes.bool)
        x, y = self._matched(other, "comparison", reverse)
        return x._alu(op, y)

    def lt(self, x: Operand) -> Self:
        return self._compared(Ops.CMPLT, x)

    def gt(self, x: Operand) -> Self:
        return self._compared(Ops.CMPLT, x, reverse=True)

    def le(self, x: Operand) -> Self:
        return self._compared(Ops.CMPLE, x)

    def ge(self, x: Operand) -> Self:
        return self._compared(Ops.CMPLE, x, reverse=True)

    def eq(self, x: Operand) -> Self:
        return self._compared(Ops.CMPEQ, x)

    def ne(self, x: Operand) -> Self:
        return self._compared(Ops.CMPNE, x)

    def _lower_limit(self, limit: Operand | None) -> Operand | None:
        """Raises an int limit to the least value of the tensor's int dtype. Returns other limits unchanged."""
        if type(limit) is not int or dtypes.is_float(self.dtype):
            return limit
        return max(limit, int(dtypes.min(scalar_dtype(limit, self.dtype))))

    def _upper_limit(self, limit: Operand | None) -> Operand | None:
        """Lowers an int limit to the greatest value of the tensor's int dtype. Returns other limits unchanged."""
        if type(limit) is not int or dtypes.is_float(self.dtype):
            return limit
        return min(limit, int(dtypes.max(scalar_dtype(limit, self.dtype))))

    def maximum(self, x: Operand) -> Self:
        """Returns the larger of each two elements, or NaN if either is NaN."""
        return self._binary(Ops.MAX, self._lower_limit(x), "maximum")

    def minimum(self, x: Operand) -> Self:
        """Returns the smaller of each two elements, or NaN if either is NaN."""
        return self._binary(Ops.MIN, self._upper_limit(x), "minimum")

    # *** bits ***

    def _bits(self, op: Ops, x: Any, operation: str, reverse: bool) -> Self:
        a, b = self._matched(x, operation, reverse)
        a._no_float(operation)
        return a._alu(op, b)

    def bitwise_and(self, x: Operand, reverse: bool = False) -> Self:
        return self._bits(Ops.AND, x, "and", reverse)

    def bitwise_or(self, x: Operand, reverse: bool = False) -> Self:
        return self._bits(Ops.OR, x, "or", reverse)

    def xor(self, x: Operand, reverse: bool = False) -> Self:
        return self._bits(Ops.XOR, x, "xor", reverse)

    def bitwise_xor(self, x: Operand, reverse: bool = False) -> Self:
        return self.xor(x, reverse)

    def bitwise_not(self) -> Self:
        """Inverts every bit. For bools, the result is logical not."""
        self._no_float("not")
        if self.dtype is dtypes.bool:
            return self.logical_not()
        return self._alu(Ops.XOR, self._const(-1))

    def logical_not(self) -> Self:
        """Returns True where the element is 0, else False."""
        return self._alu(Ops.CMPEQ, self._const(0))

    def _shifted(self, op: Ops, x: Any, operation: str, reverse: bool) -> Self:
        if type(x) is int and not reverse:
            if x < 0:
                raise ValueError(f"{operation} by {x}: cannot shift by a negative count")
            x = min(x, self.dtype.bits)
        a, b = self._matched(x, operation, reverse)
        a._no_float(operation)
        a._no_bool(operation, "* or &")
        if type(x) is int and not reverse and x < a.dtype.bits:
            return a._alu(op, b)
        # a negative count becomes a large unsigned one
        unsigned = b.cast(unsigned_of(b.dtype.itemsize)) if not dtypes.is_unsigned(b.dtype) else b
        in_range = unsigned._alu(Ops.CMPLT, unsigned._const(a.dtype.bits))
        count = in_range._alu(Ops.WHERE, b, b._const(a.dtype.bits - 1))
        shifted = a._alu(op, count)
        if op is Ops.SHR and not dtypes.is_unsigned(a.dtype):
            return shifted  # a shift by all bits but one fills in the sign, as a longer shift would
        return in_range._alu(Ops.WHERE, shifted, a._const(0))

    def lshift(self, x: Operand, reverse: bool = False) -> Self:
        """Shifts the bits up by `x` positions. As in NumPy, a count that is negative or exceeds the width gives 0."""
        return self._shifted(Ops.SHL, x, "left shift", reverse)

    def rshift(self, x: Operand, reverse: bool = False) -> Self:
        """Shifts the bits down by `x` positions. Signed ints keep their sign.

        As in NumPy, a count that is negative or exceeds the width gives 0, or -1 for a negative element.
        """
        return self._shifted(Ops.SHR, x, "right shift", reverse)

    # *** choice ***

    def where(self, x: Operand, y: Operand) -> Self:
        """Returns `x` where this tensor is not 0, else `y`, element by element."""
        condition = self.cast(dtypes.bool)
        if self._is_tensor(x):
            first, second = x._matched(y, "where")
        elif self._is_tensor(y):
            second, first = y._matched(x, "where")
        else:
            numbers: Any = x, y
            kinds = [dtypes.default_int if isinstance(number, UOp) else dtypes.from_py(number) for number in numbers]
            first, second = [condition._number(number, least_upper_dtype(*kinds)) for number in numbers]
        if condition.device != first.device:
            raise ValueError(f"where: the condition is on {condition.device}, the values on {first.device}: use .to()")
        if condition.shape != first.shape:
            shape = broadcast_shape("where", condition.shape, first.shape)
            condition = condition._broadcast_to(shape)
            first, second = first._broadcast_to(shape), second._broadcast_to(shape)
        return condition._alu(Ops.WHERE, first, second)

    def masked_fill(self, mask: Self, value: Operand) -> Self:
        """Returns the tensor with `value` where `mask` is true."""
        need_tensor(mask, "masked_fill: the mask")
        return mask.where(value, self)

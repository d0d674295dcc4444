"""Arithmetic, comparison and bits, element by element, with broadcasting and promotion.

Two tensors promote to the least type that holds both. A Python number is weak: it takes the tensor's type, unless it is
a float and the tensor holds ints (then the default float), or a number and the tensor holds bools.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from tinyexplore.dtype import ConstType, DType, dtypes, least_upper_dtype, least_upper_float
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.base import Shape, TensorBase, unsigned_of
from tinyexplore.tensor.checks import need_tensor, shown
from tinyexplore.tensor.data import check_value
from tinyexplore.tensor.errors import OperandError
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.semantics import MEANING

if TYPE_CHECKING:
    from typing_extensions import Self

Operand: TypeAlias = TensorBase | ConstType | UOp


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


class Arithmetic(TensorBase):
    __slots__ = ()

    # *** making operands agree ***

    def _as_tensor(self, other: Any, operation: str) -> Self:
        """Converts `other`, a number, array or tensor, to a tensor that can be combined with this one."""
        if self._is_tensor(other):
            return other
        other_type = type(other)
        if other_type is int or other_type is float or other_type is bool or other_type is UOp:
            return self._number(other, scalar_dtype(other, self.lazydata.dtype), ())
        if hasattr(other, "__array_interface__"):
            return type(self)(other, device=self.lazydata.device)
        if isinstance(other, (int, float)):
            return self._as_tensor(float(other) if isinstance(other, float) else int(other), operation)
        raise OperandError(f"{operation} of a Tensor and {shown(other)}: need a Tensor, a number or an array")

    def _number(self, value: ConstType | UOp, dtype: DType, shape: Shape | None = None) -> Self:
        """Returns the number `value` as a constant tensor. Raises OverflowError if `dtype` cannot represent it."""
        return self._const(check_value(value, dtype) if type(value) is int else value, dtype, shape)

    def _match_operands(self, other: Any, operation: str, reverse: bool = False) -> tuple[Self, Self]:
        """Brings both operands to one shape and dtype. Returns them in the order of the operation."""
        x = self
        other_type = type(other)
        if other_type is type(self):
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
        if other_type is int or other_type is float or other_type is bool or other_type is UOp:
            dtype = scalar_dtype(other, self.lazydata.dtype)
            x = x.cast(dtype)
            y = self._number(other, dtype)
            return (y, x) if reverse else (x, y)
        return self._match_operands(self._as_tensor(other, operation), operation, reverse)

    def _apply_binary(self, op: Ops, other: Any, operation: str, reverse: bool = False) -> Self:
        if type(other) is type(self):
            a, b = self.lazydata, other.lazydata
            if a.shape == b.shape and a.dtype is b.dtype and not reverse:
                return self._alu(op, other)
        x, y = self._match_operands(other, operation, reverse)
        return x._alu(op, y)

    def _to_float(self) -> Self:
        """Returns the tensor itself if it holds floats, else the tensor converted to the default float."""
        dtype = self.lazydata.dtype
        if dtype is dtypes.float32:
            return self
        return self.cast(least_upper_float(dtype))

    def _match_floats(self, other: Any, operation: str, reverse: bool = False) -> tuple[Self, Self]:
        """Brings both operands to one shape and float dtype. A Python number keeps its value, even if the tensor's ints
        cannot represent it."""
        if isinstance(other, (int, UOp)):
            return self._to_float()._match_operands(other, operation, reverse)
        x, y = self._match_operands(other, operation, reverse)
        return x._to_float(), y._to_float()

    def _refuse_bool(self, operation: str, instead: str) -> None:
        if self.lazydata.dtype is dtypes.bool:
            raise OperandError(f"{operation} of bool tensors is undefined; use {instead}, or cast to a number first")

    def _refuse_float(self, operation: str) -> None:
        if dtypes.is_float(self.lazydata.dtype):
            raise OperandError(f"{operation} of {self.dtype.name} tensors: bits are for ints and bools; cast first")

    # *** sums, products, powers ***

    def add(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self + x. For bools, `+` is logical or."""
        return self._apply_binary(Ops.ADD, x, "add", reverse)

    def sub(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self - x."""
        a, b = self._match_operands(x, "sub", reverse)
        a._refuse_bool("sub", "^ (xor)")
        if type(x) in (int, float) and not reverse:
            number: Any = x
            return a._alu(Ops.ADD, self._const(-float(number) if dtypes.is_float(a.dtype) else -number, a.dtype))
        return a._alu(Ops.ADD, b._apply_unary(Ops.NEG))

    def mul(self, x: Operand, reverse: bool = False) -> Self:
        """Returns self · x. For bools, `·` is logical and."""
        return self._apply_binary(Ops.MUL, x, "mul", reverse)

    def neg(self) -> Self:
        """Returns -self. For bools, the result is logical not."""
        return self.logical_not() if self.dtype is dtypes.bool else self._apply_unary(Ops.NEG)

    def reciprocal(self) -> Self:
        """Returns 1 / self."""
        x = self._to_float()
        return x._const(1.0)._alu(Ops.FDIV, x)

    # *** comparison ***

    def _compare_by(self, op: Ops, other: Any, reverse: bool = False) -> Self:
        if type(other) is int and not dtypes.is_float(self.lazydata.dtype):
            dtype = scalar_dtype(other, self.lazydata.dtype)
            # a number out of range compares with every element as it compares with 0
            if not dtypes.min(dtype) <= other <= dtypes.max(dtype):
                return self._const(MEANING[op](*((other, 0) if reverse else (0, other))), dtypes.bool)
        x, y = self._match_operands(other, "comparison", reverse)
        return x._alu(op, y)

    def lt(self, x: Operand) -> Self:
        return self._compare_by(Ops.CMPLT, x)

    def gt(self, x: Operand) -> Self:
        return self._compare_by(Ops.CMPLT, x, reverse=True)

    def le(self, x: Operand) -> Self:
        return self._compare_by(Ops.CMPLE, x)

    def ge(self, x: Operand) -> Self:
        return self._compare_by(Ops.CMPLE, x, reverse=True)

    def eq(self, x: Operand) -> Self:
        return self._compare_by(Ops.CMPEQ, x)

    def ne(self, x: Operand) -> Self:
        return self._compare_by(Ops.CMPNE, x)

    def _raise_limit(self, limit: Operand | None) -> Operand | None:
        """Raises an int limit to the least value of the tensor's int dtype. Returns other limits unchanged."""
        if type(limit) is not int or dtypes.is_float(self.dtype):
            return limit
        return max(limit, int(dtypes.min(scalar_dtype(limit, self.dtype))))

    def _cut_limit(self, limit: Operand | None) -> Operand | None:
        """Lowers an int limit to the greatest value of the tensor's int dtype. Returns other limits unchanged."""
        if type(limit) is not int or dtypes.is_float(self.dtype):
            return limit
        return min(limit, int(dtypes.max(scalar_dtype(limit, self.dtype))))

    def maximum(self, x: Operand) -> Self:
        """Returns the larger of each two elements, or NaN if either is NaN."""
        return self._apply_binary(Ops.MAX, self._raise_limit(x), "maximum")

    def minimum(self, x: Operand) -> Self:
        """Returns the smaller of each two elements, or NaN if either is NaN."""
        return self._apply_binary(Ops.MIN, self._cut_limit(x), "minimum")

    # *** bits ***

    def _apply_bitwise(self, op: Ops, x: Any, operation: str, reverse: bool) -> Self:
        a, b = self._match_operands(x, operation, reverse)
        a._refuse_float(operation)
        return a._alu(op, b)

    def bitwise_and(self, x: Operand, reverse: bool = False) -> Self:
        return self._apply_bitwise(Ops.AND, x, "and", reverse)

    def bitwise_or(self, x: Operand, reverse: bool = False) -> Self:
        return self._apply_bitwise(Ops.OR, x, "or", reverse)

    def xor(self, x: Operand, reverse: bool = False) -> Self:
        return self._apply_bitwise(Ops.XOR, x, "xor", reverse)

    def bitwise_xor(self, x: Operand, reverse: bool = False) -> Self:
        return self.xor(x, reverse)

    def bitwise_not(self) -> Self:
        """Inverts every bit. For bools, the result is logical not."""
        self._refuse_float("not")
        if self.dtype is dtypes.bool:
            return self.logical_not()
        return self._alu(Ops.XOR, self._const(-1))

    def logical_not(self) -> Self:
        """Returns True where the element is 0, else False."""
        return self._alu(Ops.CMPEQ, self._const(0))

    def _shift(self, op: Ops, x: Any, operation: str, reverse: bool) -> Self:
        if type(x) is int and not reverse:
            if x < 0:
                raise ValueError(f"{operation} by {x}: cannot shift by a negative count")
            x = min(x, self.dtype.bits)
        a, b = self._match_operands(x, operation, reverse)
        a._refuse_float(operation)
        a._refuse_bool(operation, "* or &")
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
        return self._shift(Ops.SHL, x, "left shift", reverse)

    def rshift(self, x: Operand, reverse: bool = False) -> Self:
        """Shifts the bits down by `x` positions. Signed ints keep their sign.

        As in NumPy, a count that is negative or exceeds the width gives 0, or -1 for a negative element.
        """
        return self._shift(Ops.SHR, x, "right shift", reverse)

    # *** choice ***

    def where(self, x: Operand, y: Operand) -> Self:
        """Returns `x` where this tensor is not 0, else `y`, element by element."""
        condition = self.cast(dtypes.bool)
        if self._is_tensor(x):
            if_true, if_false = x._match_operands(y, "where")
        elif self._is_tensor(y):
            if_false, if_true = y._match_operands(x, "where")
        else:
            numbers: Any = x, y
            number_dtypes = [
                dtypes.default_int if isinstance(number, UOp) else dtypes.from_py(number) for number in numbers
            ]
            if_true, if_false = [condition._number(number, least_upper_dtype(*number_dtypes)) for number in numbers]
        if condition.device != if_true.device:
            raise ValueError(
                f"where: the condition is on {condition.device}, the values on {if_true.device}: use .to()"
            )
        if condition.shape != if_true.shape:
            shape = broadcast_shape("where", condition.shape, if_true.shape)
            condition = condition._broadcast_to(shape)
            if_true, if_false = if_true._broadcast_to(shape), if_false._broadcast_to(shape)
        return condition._alu(Ops.WHERE, if_true, if_false)

    def masked_fill(self, mask: Self, value: Operand) -> Self:
        """Returns the tensor with `value` where `mask` is true."""
        need_tensor(mask, "masked_fill: the mask")
        return mask.where(value, self)

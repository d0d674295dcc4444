"""Python's operators, and the casts that are named after dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import dtypes
from tinyexplore.tensor.base import Base
from tinyexplore.tensor.checks import need_tensor, shown
from tinyexplore.tensor.errors import OperandError
from tinyexplore.uop import UOp

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor


class NamedCasts:
    """Casts; they stand alone because their names hide Python's types."""

    __slots__ = ()

    def float(self: Tensor) -> Tensor:
        return self.cast(dtypes.float32)

    def half(self: Tensor) -> Tensor:
        return self.cast(dtypes.float16)

    def bfloat16(self: Tensor) -> Tensor:
        return self.cast(dtypes.bfloat16)

    def double(self: Tensor) -> Tensor:
        return self.cast(dtypes.float64)

    def int(self: Tensor) -> Tensor:
        return self.cast(dtypes.int32)

    def long(self: Tensor) -> Tensor:
        return self.cast(dtypes.int64)

    def short(self: Tensor) -> Tensor:
        return self.cast(dtypes.int16)

    def bool(self: Tensor) -> Tensor:
        return self.cast(dtypes.bool)


def _is_operand(x: Any) -> bool:
    """What an operator takes; for anything else Python asks the other side."""
    kind = type(x)
    if kind is float or kind is int:
        return True
    return isinstance(x, (Base, int, float, UOp)) or hasattr(x, "__array_interface__")


def _is_factor(x: Any) -> bool:
    """The same for a product; lists and text, which Python would repeat as often as the tensor says, are an error."""
    if isinstance(x, (list, tuple, str, bytes)):
        raise OperandError(f"mul of a Tensor and {shown(x)}: need a Tensor, a number or an array")
    return _is_operand(x)


class Operators:
    __slots__ = ()

    def _in_place(self: Tensor, result: Tensor) -> Tensor:
        """`x += y`: the tensor takes over the result; where that is on the tape, `x` becomes the new tensor."""
        if result.requires_grad:
            return result
        if dtypes.is_float(result.dtype) and not dtypes.is_float(self.dtype):
            raise OperandError(
                f"in place, {self.dtype.name} cannot become {result.dtype.name}: write x = x ... instead"
            )
        return self.assign(result.cast(self.dtype))

    def __add__(self: Tensor, x: Any) -> Tensor:
        return self.add(x) if _is_operand(x) else NotImplemented

    def __radd__(self: Tensor, x: Any) -> Tensor:
        return self.add(x, reverse=True) if _is_operand(x) else NotImplemented

    def __iadd__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.add(x))

    def __sub__(self: Tensor, x: Any) -> Tensor:
        return self.sub(x) if _is_operand(x) else NotImplemented

    def __rsub__(self: Tensor, x: Any) -> Tensor:
        return self.sub(x, reverse=True) if _is_operand(x) else NotImplemented

    def __isub__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.sub(x))

    def __mul__(self: Tensor, x: Any) -> Tensor:
        return self.mul(x) if _is_factor(x) else NotImplemented

    def __rmul__(self: Tensor, x: Any) -> Tensor:
        return self.mul(x, reverse=True) if _is_factor(x) else NotImplemented

    def __imul__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.mul(x))

    def __truediv__(self: Tensor, x: Any) -> Tensor:
        return self.div(x) if _is_operand(x) else NotImplemented

    def __rtruediv__(self: Tensor, x: Any) -> Tensor:
        return self.div(x, reverse=True) if _is_operand(x) else NotImplemented

    def __itruediv__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.div(x))

    def __floordiv__(self: Tensor, x: Any) -> Tensor:
        return self.idiv(x) if _is_operand(x) else NotImplemented

    def __rfloordiv__(self: Tensor, x: Any) -> Tensor:
        return self.idiv(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ifloordiv__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.idiv(x))

    def __mod__(self: Tensor, x: Any) -> Tensor:
        return self.mod(x) if _is_operand(x) else NotImplemented

    def __rmod__(self: Tensor, x: Any) -> Tensor:
        return self.mod(x, reverse=True) if _is_operand(x) else NotImplemented

    def __imod__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.mod(x))

    def __pow__(self: Tensor, x: Any) -> Tensor:
        return self.pow(x) if _is_operand(x) else NotImplemented

    def __rpow__(self: Tensor, x: Any) -> Tensor:
        return self.pow(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ipow__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.pow(x))

    def __matmul__(self: Tensor, x: Any) -> Tensor:
        return self.matmul(self._factor(x))

    def __rmatmul__(self: Tensor, x: Any) -> Tensor:
        return self.matmul(self._factor(x), reverse=True)

    def _factor(self: Tensor, x: Any) -> Tensor:
        """An operand of @: a tensor, or what an array holds."""
        found = self._as_tensor(x, "matmul") if hasattr(x, "__array_interface__") else x
        need_tensor(found, f"matmul of a Tensor of shape {self.shape}: the other factor")
        return found

    def __imatmul__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.matmul(x))

    def __and__(self: Tensor, x: Any) -> Tensor:
        return self.bitwise_and(x) if _is_operand(x) else NotImplemented

    def __rand__(self: Tensor, x: Any) -> Tensor:
        return self.bitwise_and(x, reverse=True) if _is_operand(x) else NotImplemented

    def __iand__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.bitwise_and(x))

    def __or__(self: Tensor, x: Any) -> Tensor:
        return self.bitwise_or(x) if _is_operand(x) else NotImplemented

    def __ror__(self: Tensor, x: Any) -> Tensor:
        return self.bitwise_or(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ior__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.bitwise_or(x))

    def __xor__(self: Tensor, x: Any) -> Tensor:
        return self.xor(x) if _is_operand(x) else NotImplemented

    def __rxor__(self: Tensor, x: Any) -> Tensor:
        return self.xor(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ixor__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.xor(x))

    def __lshift__(self: Tensor, x: Any) -> Tensor:
        return self.lshift(x) if _is_operand(x) else NotImplemented

    def __rlshift__(self: Tensor, x: Any) -> Tensor:
        return self.lshift(x, reverse=True) if _is_operand(x) else NotImplemented

    def __ilshift__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.lshift(x))

    def __rshift__(self: Tensor, x: Any) -> Tensor:
        return self.rshift(x) if _is_operand(x) else NotImplemented

    def __rrshift__(self: Tensor, x: Any) -> Tensor:
        return self.rshift(x, reverse=True) if _is_operand(x) else NotImplemented

    def __irshift__(self: Tensor, x: Any) -> Tensor:
        return self._in_place(self.rshift(x))

    def __lt__(self: Tensor, x: Any) -> Tensor:
        return self.lt(x) if _is_operand(x) else NotImplemented

    def __le__(self: Tensor, x: Any) -> Tensor:
        return self.le(x) if _is_operand(x) else NotImplemented

    def __gt__(self: Tensor, x: Any) -> Tensor:
        return self.gt(x) if _is_operand(x) else NotImplemented

    def __ge__(self: Tensor, x: Any) -> Tensor:
        return self.ge(x) if _is_operand(x) else NotImplemented

    def __eq__(self: Tensor, x: Any) -> Tensor:  # type: ignore[override]
        return self.eq(x) if _is_operand(x) else NotImplemented

    def __ne__(self: Tensor, x: Any) -> Tensor:  # type: ignore[override]
        return self.ne(x) if _is_operand(x) else NotImplemented

    def __hash__(self: Tensor) -> int:
        return id(self)

    def __neg__(self: Tensor) -> Tensor:
        return self.neg()

    def __pos__(self: Tensor) -> Tensor:
        return self

    def __invert__(self: Tensor) -> Tensor:
        return self.bitwise_not()

    def __abs__(self: Tensor) -> Tensor:
        return self.abs()

"""Matrix products, each built from movements, one multiplication and one reduction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import least_upper_dtype, to_dtype
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.base import DTypeLike
from tinyexplore.tensor.checks import need_tensor, shown
from tinyexplore.tensor.precision import NARROW, wide_float
from tinyexplore.tensor.reduction import Reduction, sum_dtype
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from typing_extensions import Self


class Products(Reduction):
    __slots__ = ()

    def dot(self, w: Self, acc_dtype: DTypeLike | None = None, dtype: DTypeLike | None = None) -> Self:
        """Returns the matrix product: sums over the last axis of this tensor and the last but one of `w`. Other axes
        broadcast.

        The sum and the result have the dtype `acc_dtype` (`dtype` is its later name). The summed axis is made the last
        one: (…, m, 1, k) · (…, 1, n, k) → (…, m, n).
        """
        acc_dtype = dtype if acc_dtype is None else acc_dtype
        x = self
        need_tensor(w, f"matmul of a Tensor of shape {x.shape}: the other factor")
        n_axis = 0 if w.ndim == 1 else w.ndim - 2
        if x.ndim == 0 or w.ndim == 0 or x.shape[-1] != w.shape[n_axis]:
            raise ShapeError(
                f"matmul of shapes {x.shape} and {w.shape}: the last axis of the first "
                f"({x.shape[-1] if x.ndim else 'a scalar'}) must equal the last but one of the second "
                f"({w.shape[n_axis] if w.ndim else 'a scalar'})"
            )
        result_dtype = least_upper_dtype(x.dtype, w.dtype)
        wide_dtype = sum_dtype(result_dtype) if acc_dtype is None else to_dtype(acc_dtype)
        x, w = x.cast(wide_dtype), w.cast(wide_dtype)
        x_rows = x
        w_columns = w if w.ndim == 1 else w.transpose(-1, -2)
        if x.ndim > 1 and w.ndim > 1:
            x_rows = x._reshape_checked((*x.shape[:-1], 1, x.shape[-1]))
            w_columns = w_columns._reshape_checked((*w_columns.shape[:-2], 1, *w_columns.shape[-2:]))
        try:
            shape = broadcast_shape("matmul", x_rows.shape, w_columns.shape)
        except ShapeError:  # compose a message with all shapes only on error: that takes longer than the rest
            shape = broadcast_shape(f"matmul of shapes {x.shape} and {w.shape}", x_rows.shape, w_columns.shape)
        product = x_rows._broadcast_to(shape)._alu(Ops.MUL, w_columns._broadcast_to(shape))
        result = product._reduce(Ops.ADD, -1, False, 0, "sum")
        return result.cast(result_dtype) if acc_dtype is None else result

    def matmul(
        self,
        x: Self,
        reverse: bool = False,
        acc_dtype: DTypeLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Returns the matrix product self @ x, or x @ self if `reverse`."""
        acc_dtype = dtype if acc_dtype is None else acc_dtype
        if reverse:
            return x.dot(self, acc_dtype)
        return self.dot(x, acc_dtype)

    def linear(self, weight: Self, bias: Self | None = None, dtype: DTypeLike | None = None) -> Self:
        """Returns self @ weight + bias, in `dtype` if given. A weight with one axis multiplies element by element.

        Narrow floats are multiplied, summed and added to the bias in float32, and rounded once.
        """
        need_tensor(weight, "linear: the weight")
        if dtype is not None:
            return self.cast(dtype).linear(weight.cast(dtype), None if bias is None else bias.cast(dtype))
        target = least_upper_dtype(self.dtype, weight.dtype)
        if bias is not None and target in NARROW:
            wide_dtype = wide_float(target)
            total = (
                self.cast(wide_dtype) * weight.cast(wide_dtype)
                if weight.ndim == 1
                else self.dot(weight, acc_dtype=wide_dtype)
            )
            return (total + bias).cast(least_upper_dtype(target, bias.dtype))
        x = self * weight if weight.ndim == 1 else self.dot(weight)
        return x if bias is None else x + bias

    def image_dot(self, w: Self, acc_dtype: DTypeLike | None = None) -> Self:
        """Calls `dot`. A device with texture memory may keep the operands there."""
        return self.dot(w, acc_dtype)

    def sequential(self, ll: Sequence[Callable[[Self], Self]]) -> Self:
        """Applies all functions in `ll`, one after the other."""
        x = self
        if not isinstance(ll, Iterable):
            raise TypeError(f"sequential of {shown(ll)}: need a list of functions or layers")
        for number, layer in enumerate(ll):
            if not callable(layer):
                raise TypeError(f"sequential: step {number} is {shown(layer)}: need functions or layers")
            x = layer(x)
        return x

    def __matmul__(self, x: Any) -> Self:
        return self.matmul(self._check_factor(x))

    def __rmatmul__(self, x: Any) -> Self:
        return self.matmul(self._check_factor(x), reverse=True)

    def _check_factor(self, x: Any) -> Self:
        """Converts an operand of @ to a tensor: returns a tensor unchanged, and wraps an array."""
        factor = self._as_tensor(x, "matmul") if hasattr(x, "__array_interface__") else x
        need_tensor(factor, f"matmul of a Tensor of shape {self.shape}: the other factor")
        return factor

    def __imatmul__(self, x: Any) -> Self:
        return self._assign_result(self.matmul(x))

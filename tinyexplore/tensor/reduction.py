"""Reductions: sums, extremes, means, and functions built from them.

Narrow floats are summed in float32, narrow ints in 32 bits. `acc_dtype` selects another accumulator.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from tinyexplore.autograd import (
    GRADIENTS,
    CustomGradientByPath,
    cumprod_gradient,
    deviation_gradient,
    logcumsumexp_gradient,
)
from tinyexplore.dtype import ConstType, DType, dtypes, least_upper_dtype, to_dtype
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.base import Axes, DTypeLike, Shape
from tinyexplore.tensor.checks import need_number, need_tensor
from tinyexplore.tensor.functions import Functions
from tinyexplore.tensor.movement import Movement
from tinyexplore.tensor.precision import rounded_once
from tinyexplore.uop import Ops
from tinyexplore.uop.symbolic import product, simplified

if TYPE_CHECKING:
    from typing_extensions import Self

FLOAT32_MAX = (2 - 2.0**-23) * 2.0**127
_DEVIATION = CustomGradientByPath(deviation_gradient, 0)


def sum_dtype(dtype: DType) -> DType:
    """Returns the dtype in which elements of `dtype` are summed."""
    if dtypes.is_float(dtype):
        return least_upper_dtype(dtype, dtypes.float32)
    return least_upper_dtype(dtype, dtypes.uint32 if dtypes.is_unsigned(dtype) else dtypes.int32)


def position_dtype(dtype: DType) -> DType:
    """Returns the dtype in which indices are compared with ints of `dtype`. A narrow dtype could not count a long
    axis."""
    return dtype if dtype.itemsize >= 4 else dtypes.int32


def index_dtype(dtype: DType) -> DType:
    """Returns the dtype in which ints of `dtype` are used as indices: int64 for uint64, because no index needs the
    upper half."""
    return dtypes.int64 if dtype is dtypes.uint64 else position_dtype(dtype)


class Reduction(Movement, Functions):
    __slots__ = ()

    def _reduce(self, op: Ops, axis: Axes, keepdim: bool, identity: ConstType | None, operation: str) -> Self:
        axes = self._resolve_axes(axis)
        if 0 in self.shape and any(self.shape[i] == 0 for i in axes):
            if identity is None:
                raise ValueError(
                    f"{operation} over axes {axes} of shape {self.shape}: {operation} of zero elements is undefined; "
                    "leave out empty tensors, or cat() a neutral element first"
                )
            kept_shape = tuple(1 if i in axes else size for i, size in enumerate(self.shape))
            result = self._constant_with_zero_gradient(identity, kept_shape)
        else:
            result = self._reduce_axes(op, axes)
        return result if keepdim else result._without_axes(axes)

    def _without_axes(self, axes: Shape) -> Self:
        return self._reshape_checked(tuple([size for i, size in enumerate(self.lazydata.shape) if i not in axes]))

    def _accumulate(self, op: Ops, axis: Axes, keepdim: bool, acc_dtype: DTypeLike | None, identity: ConstType) -> Self:
        wide_dtype = sum_dtype(self.dtype) if acc_dtype is None else to_dtype(acc_dtype)
        reduced = self.cast(wide_dtype)._reduce(op, axis, keepdim, identity, "sum")
        is_narrow_float = acc_dtype is None and dtypes.is_float(self.dtype)
        return reduced.cast(self.dtype) if is_narrow_float else reduced

    def sum(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        acc_dtype: DTypeLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Sums over `axis` (None: all axes), in `acc_dtype` (`dtype` is its later name)."""
        return self._accumulate(Ops.ADD, axis, keepdim, dtype if acc_dtype is None else acc_dtype, 0)

    def prod(
        self,
        axis: Axes = None,
        keepdim: bool = False,
        acc_dtype: DTypeLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Multiplies over `axis` (None: all axes), in `acc_dtype` (`dtype` is its later name)."""
        return self._accumulate(Ops.MUL, axis, keepdim, dtype if acc_dtype is None else acc_dtype, 1)

    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Returns the largest element over `axis` (None: all axes), or NaN if there is one. Without elements: the least
        value of the dtype."""
        return self._reduce(Ops.MAX, axis, keepdim, dtypes.min(self.dtype), "max")

    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Returns the smallest element over `axis` (None: all axes), or NaN if there is one. Without elements: the
        greatest value of the dtype."""
        return self._reduce(Ops.MIN, axis, keepdim, dtypes.max(self.dtype), "min")

    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Returns whether at least one element over `axis` is not 0."""
        return self.cast(dtypes.bool)._reduce(Ops.MAX, axis, keepdim, False, "any")

    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Returns whether no element over `axis` is 0."""
        return self.cast(dtypes.bool)._reduce(Ops.MIN, axis, keepdim, True, "all")

    def __contains__(self, value: Any) -> bool:
        return bool(self.eq(value).any().item())

    def allclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Returns whether `isclose` holds for all elements. Computes the tensors."""
        return bool(self.isclose(other, rtol, atol, equal_nan).all().item())

    # *** moments ***

    def _count(self, axes: Shape) -> Any:
        return product([self.shape[axis] for axis in axes])

    def mean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Returns the mean over `axis`. Without elements: NaN."""
        dtype = self.dtype if dtypes.is_float(self.dtype) else dtypes.default_float
        wide_x = self.cast(sum_dtype(dtype))
        count = self._count(self._resolve_axes(axis))
        total = wide_x.sum(axis, keepdim)
        return (total / count if count != 0 else total * math.nan).cast(dtype)

    def var(self, axis: Axes = None, keepdim: bool = False, correction: float = 1) -> Self:
        """Returns the variance over `axis`: the sum of squared distances from the mean, divided by n - correction."""
        need_number(correction, "var: the correction")
        dtype = self.dtype if dtypes.is_float(self.dtype) else dtypes.default_float
        wide_x = self.cast(sum_dtype(dtype))
        axes = self._resolve_axes(axis)
        centered = wide_x._wrap_stationary(wide_x - wide_x.mean(axes, keepdim=True))  # as in layernorm
        squares = centered.square().sum(axes, keepdim)
        count = self._count(axes)
        if isinstance(count, int):
            return (squares / max(count - correction, 0)).cast(dtype)
        count = simplified(count - correction) if isinstance(correction, int) else squares._const(count) - correction
        return (squares / count).cast(dtype)

    @rounded_once
    def std(self, axis: Axes = None, keepdim: bool = False, correction: float = 1) -> Self:
        """Returns the square root of `var`. As in PyTorch, the gradient is 0 where the result is 0."""
        variance = self.var(axis, keepdim, correction)
        lazydata = variance.lazydata.alu(Ops.SQRT)
        lazydata.note = _DEVIATION.attached_to(lazydata)
        return variance._put_on_tape(lazydata, deviation_gradient, (variance,), None)

    def var_mean(self, axis: Axes = None, keepdim: bool = False, correction: float = 1) -> tuple[Self, Self]:
        return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

    def std_mean(self, axis: Axes = None, keepdim: bool = False, correction: float = 1) -> tuple[Self, Self]:
        return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

    # *** index of the extreme ***

    def _find_extreme_index(self, op: Ops, axis: int | None, keepdim: bool) -> Self:
        if axis is None:
            flat = self.reshape((self.numel(),))
            index = flat._find_extreme_index(op, 0, False)
            return index.reshape((1,) * self.ndim) if keepdim else index
        dim = self._resolve_axis(axis)
        if self.ndim == 0:
            return self._const(0, dtypes.default_int)
        size = self.shape[dim]
        x = self._detach_value()
        extreme = x._reduce(op, dim, True, None, "argmax" if op is Ops.MAX else "argmin")
        holds = x == extreme
        if dtypes.is_float(x.dtype):
            holds = holds | x.isnan()
        positions = x._positions_along(
            dim, dtypes.default_int if size <= dtypes.max(dtypes.default_int) else dtypes.int64
        )
        return holds.where(positions, size)._reduce(Ops.MIN, dim, keepdim, None, "argmax")

    def _positions_along(self, axis: int, dtype: DType = dtypes.default_int) -> Self:
        """Returns the indices 0, 1, 2, … along `axis`, shaped to broadcast against this tensor."""
        line = self._wrap(LazyBuffer.iota(self.shape[axis], dtype, self.device))
        return line.reshape(tuple(size if i == axis else 1 for i, size in enumerate(self.shape)))

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Returns the first index of the largest element along `axis` (None: of the flattened tensor)."""
        return self._find_extreme_index(Ops.MAX, axis, keepdim)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """Returns the first index of the smallest element along `axis` (None: of the flattened tensor)."""
        return self._find_extreme_index(Ops.MIN, axis, keepdim)

    # *** softmax and related functions ***

    def _subtract_maximum(self, axis: Axes) -> Self:
        """Returns x - max(x). The maximum has no gradient, because the result of the callers does not depend on it."""
        x = self._to_float()
        if 0 in x.shape:
            return x
        return x - x._detach_value().max(axis, keepdim=True).detach()

    def softmax(self, axis: int = -1, dtype: DTypeLike | None = None) -> Self:
        """Returns eˣ / Σ eˣ along `axis`."""
        return (self if dtype is None else self.cast(dtype))._softmax(axis)

    @rounded_once
    def _softmax(self, axis: int) -> Self:
        exponentials = self._subtract_maximum(axis).exp()
        return exponentials * exponentials.sum(axis, keepdim=True).reciprocal()

    def log_softmax(self, axis: int = -1, dtype: DTypeLike | None = None) -> Self:
        """Returns ln softmax(x) along `axis`."""
        return (self if dtype is None else self.cast(dtype))._log_softmax(axis)

    @rounded_once
    def _log_softmax(self, axis: int) -> Self:
        centered = self._subtract_maximum(axis)
        return centered - centered.exp().sum(axis, keepdim=True).log()

    @rounded_once
    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Returns ln Σ eˣ over `axis`, without overflow."""
        x = self._to_float()
        if 0 in x.shape:
            return x._reduce(Ops.ADD, axis, keepdim, -math.inf, "logsumexp")
        largest = x._detach_value().max(axis, keepdim=True).detach()
        anchor = largest._replace_infinity()
        total = (x - anchor).exp().sum(axis, keepdim=True).log() + anchor
        return total if keepdim else total._without_axes(self._resolve_axes(axis))

    def _replace_infinity(self) -> Self:
        """Replaces infinity by the largest finite float, so that e^(x - result) is 0 instead of NaN for finite x."""
        largest = sys.float_info.max if self.dtype is dtypes.float64 else FLOAT32_MAX
        return self._clip_between(-largest, largest)

    # *** running totals ***

    def cumsum(self, axis: int = 0) -> Self:
        """Returns the running sum along `axis`."""
        return self._scan_total(Ops.ADD, axis)

    def _scan_total(self, op: Ops, axis: int) -> Self:
        dim, wide_x = self._resolve_axis(axis), self.cast(sum_dtype(self.dtype))
        total = wide_x._scan_by(op, dim) if self.ndim and 0 not in self.shape else wide_x
        return total.cast(self.dtype) if dtypes.is_float(self.dtype) else total

    def _cumsum(self, axis: int = 0, _first_zero: bool = False) -> Self:
        """Computes `cumsum`. With `_first_zero`, sums only the elements before each one: the first result is 0.

        tinygrad programs call it by this name.
        """
        total = self.cumsum(axis)
        if not _first_zero or not self.ndim:
            return total
        dim = self._resolve_axis(axis)
        return total.pad(tuple((1, -1) if number == dim else None for number in range(self.ndim)))

    def _scan_by(self, op: Ops, axis: int) -> Self:
        """Returns the running result of `op` along `axis`."""
        rule = {Ops.ADD: GRADIENTS[Ops.SCAN_AXIS], Ops.MUL: cumprod_gradient}.get(op)
        return self._put_on_tape(self.lazydata.scan(op, axis), rule, (self,), axis)

    def logcumsumexp(self, axis: int = 0) -> Self:
        """Returns ln of the running sum of eˣ along `axis`, without overflow."""
        dim = self._resolve_axis(axis)
        if self.ndim == 0 or self.numel() == 0:
            return self
        x = self._to_float().cast(sum_dtype(self._to_float().dtype))
        value = x._detach_value()
        largest = value._scan_by(Ops.MAX, dim)
        anchor = largest._replace_infinity()
        # the running total is relative to the previous anchor; an empty total has none
        shift = (anchor._shift_by_one(dim, 0.0) - anchor).exp()
        factor = largest._shift_by_one(dim, -math.inf).eq(-math.inf).where(0.0, shift)
        total = (value - anchor).exp().lazydata.recurrence(factor.lazydata, dim)
        result = (self._wrap(total).log() + anchor).lazydata
        return x._wrap_with_rule(result, logcumsumexp_gradient, (x,), dim).cast(self._to_float().dtype)

    def _shift_by_one(self, axis: int, first: float) -> Self:
        """Shifts the elements by one position along `axis`. The first one becomes `first`."""
        bounds, amounts = [(0, size) for size in self.shape], [(0, 0)] * self.ndim
        bounds[axis], amounts[axis] = (0, self.shape[axis] - 1), (1, 0)
        return self.shrink(bounds).pad(amounts, value=first)

    # *** normalization ***

    @rounded_once
    def layernorm(self, axis: int | tuple[int, ...] = -1, eps: float = 1e-05) -> Self:
        """Returns (x - mean) / √(variance + eps) over `axis`.

        The sum of squares is least at the mean, so the variance has no gradient through the mean.
        """
        centered = self - self.mean(axis, keepdim=True)
        return centered * (self._wrap_stationary(centered).square().mean(axis, keepdim=True) + eps).rsqrt()

    @rounded_once
    def batchnorm(
        self,
        weight: Self | None,
        bias: Self | None,
        mean: Self,
        invstd: Self,
        axis: int | tuple[int, ...] = 1,
    ) -> Self:
        """Returns (x - mean) · invstd · weight + bias. These four have one element per index of `axis`."""
        axes = self._resolve_axes(axis)
        count = product([self.shape[reduced_axis] for reduced_axis in axes])
        parameter: Self | None
        for name, parameter in (("weight", weight), ("bias", bias), ("mean", mean), ("invstd", invstd)):
            if parameter is None and name in ("weight", "bias"):
                continue
            need_tensor(parameter, f"batchnorm: {name}")
            if parameter is not None and name != "invstd" and parameter.numel() != count:
                raise ShapeError(
                    f"batchnorm of shape {self.shape} over axis {axis}, which has {count} channels: {name} has shape "
                    f"{parameter.shape}; make the layer for {count} channels"
                )
        shape = tuple(size if i in axes else 1 for i, size in enumerate(self.shape))
        x = self - mean.reshape(shape)
        if weight is not None:
            x = x * weight.reshape(shape)
        x = x * (invstd.reshape(shape) if len(invstd.shape) == len(axes) else invstd)
        return x if bias is None else x + bias.reshape(shape)

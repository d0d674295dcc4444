"""Operations that reduce axes, and scans."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.tensor import Tensor

Axes = int | Sequence[int] | None


def axes_of(axes: Axes) -> Any:
    """Returns axes in the format of Tensor: None for all."""
    if axes is None or isinstance(axes, int):
        return axes
    return tuple(axes) if len(axes) else None


@aten("sum")
def sum_(call: AtenCall, a: Tensor, axes: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Returns the sum; for integers and booleans as int64."""
    wide = a.cast(call.dtype)
    return wide.sum(axes_of(axes), keepdim).cast(call.dtype) if a.ndim else wide


@aten("mean")
def mean(call: AtenCall, a: Tensor, axes: Axes = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Returns the mean."""
    wide = a.cast(call.dtype)
    return wide.mean(axes_of(axes), keepdim) if a.ndim else wide


@aten("prod")
def prod(call: AtenCall, a: Tensor, axis: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Returns the product; for integers and booleans as int64."""
    wide = a.cast(call.dtype)
    return wide.prod(axis, keepdim).cast(call.dtype) if a.ndim else wide


@aten("amax")
def amax(call: AtenCall, a: Tensor, axes: Axes = (), keepdim: bool = False) -> Tensor:
    """Returns the largest element."""
    return a.max(axes_of(axes), keepdim) if a.ndim else a


@aten("amin")
def amin(call: AtenCall, a: Tensor, axes: Axes = (), keepdim: bool = False) -> Tensor:
    """Returns the smallest element."""
    return a.min(axes_of(axes), keepdim) if a.ndim else a


def _add_extremum(name: str) -> None:
    """Adds the translation of `max` or `min`, over an axis (with positions) or over all elements."""

    def function(call: AtenCall, a: Tensor, axis: int | None = None, keepdim: bool = False) -> Any:
        if axis is None:
            return getattr(a, name)() if a.ndim else a
        if not a.ndim:
            return a, Tensor.full((), 0, dtype=dtypes.int64)
        index = getattr(a, f"arg{name}")(axis, keepdim)
        return getattr(a, name)(axis, keepdim), index.cast(dtypes.int64)

    function.__doc__ = f"The {name}imum of an axis with its place, or of all elements."
    aten(name)(function)


def _add_position_of_extremum(name: str) -> None:
    def function(call: AtenCall, a: Tensor, axis: int | None = None, keepdim: bool = False) -> Tensor:
        if not a.ndim:
            return Tensor.full((), 0, dtype=dtypes.int64)
        index: Tensor = getattr(a, name)(axis, keepdim).cast(dtypes.int64).reshape(call.shape)
        return index

    function.__doc__ = f"The place of the {name.removeprefix('arg')}imum."
    aten(name)(function)


for _name in ("max", "min"):
    _add_extremum(_name)
    _add_position_of_extremum(f"arg{_name}")


@aten("any")
def any_(call: AtenCall, a: Tensor, axes: Axes = None, keepdim: bool = False) -> Tensor:
    """Returns whether at least one element is not 0."""
    flags = a.cast(dtypes.bool)
    if isinstance(axes, (list, tuple)) and not axes:
        return flags.cast(call.dtype) if not keepdim and call.shape == a.shape else _reduce_all_axes(call, flags, "any")
    return (flags.any(axes_of(axes), keepdim) if a.ndim else flags).cast(call.dtype)


@aten("all")
def all_(call: AtenCall, a: Tensor, axes: Axes = None, keepdim: bool = False) -> Tensor:
    """Returns whether no element is 0."""
    flags = a.cast(dtypes.bool)
    if isinstance(axes, (list, tuple)) and not axes:
        return flags.cast(call.dtype) if not keepdim and call.shape == a.shape else _reduce_all_axes(call, flags, "all")
    return (flags.all(axes_of(axes), keepdim) if a.ndim else flags).cast(call.dtype)


def _reduce_all_axes(call: AtenCall, flags: Tensor, name: str) -> Tensor:
    result: Tensor = getattr(flags, name)().reshape(call.shape).cast(call.dtype)
    return result


@aten("var")
def var(call: AtenCall, a: Tensor, axes: Axes = None, correction: Any = 1, keepdim: bool = False) -> Tensor:
    """Returns the variance, with `correction` subtracted from the number of elements."""
    if correction is None:
        correction = 1
    if isinstance(correction, bool):
        correction = int(correction)
    if not a.ndim:
        raise TranslationError("the variance of a scalar has no translation")
    axis_numbers = axes_of(axes)
    center = a - a.mean(axis_numbers, True)
    total = (center * center).sum(axis_numbers, keepdim)
    count = a.numel() // max(total.numel(), 1)
    divisor = max(count - correction, 0)
    return total / divisor if divisor else total / 0.0


@aten("linalg_vector_norm")
def vector_norm(
    call: AtenCall, a: Tensor, order: float = 2, axes: Axes = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Returns the norm of vectors along axes."""
    x, axis_numbers = a.cast(call.dtype), axes_of(axes)
    if not a.ndim:
        return x.ne(0).cast(call.dtype) if order == 0 else x.abs()
    if order == math.inf:
        return x.abs().max(axis_numbers, keepdim)
    if order == -math.inf:
        return x.abs().min(axis_numbers, keepdim)
    if order == 0:
        return x.ne(0).cast(call.dtype).sum(axis_numbers, keepdim)
    if order == 1:
        return x.abs().sum(axis_numbers, keepdim)
    if order == 2:
        return (x * x).sum(axis_numbers, keepdim).sqrt()
    return x.abs().pow(order).sum(axis_numbers, keepdim).pow(1 / order)


@aten("cumsum")
def cumsum(call: AtenCall, a: Tensor, axis: int, *, dtype: Any = None) -> Tensor:
    """Returns the running sum of `a` along `axis`, in the dtype of the call. A scalar is its own sum."""
    wide = a.cast(call.dtype)
    return wide.cumsum(axis).cast(call.dtype) if a.ndim else wide


@aten("cumprod")
def cumprod(call: AtenCall, a: Tensor, axis: int, *, dtype: Any = None) -> Tensor:
    """Returns the running product of `a` along `axis`, in the dtype of the call. A scalar is its own product."""
    wide = a.cast(call.dtype)
    return wide.cumprod(axis).cast(call.dtype) if a.ndim else wide


@aten("logcumsumexp")
def logcumsumexp(call: AtenCall, a: Tensor, axis: int) -> Tensor:
    """Returns the logarithm of the running sum of exponentials along `axis`. A scalar is unchanged."""
    return a.logcumsumexp(axis) if a.ndim else a


@aten("logsumexp")
def logsumexp(call: AtenCall, a: Tensor, axes: Axes, keepdim: bool = False) -> Tensor:
    """Returns the logarithm of the sum of exponentials over `axes`. A scalar is unchanged."""
    x = a.cast(call.dtype)
    return x.logsumexp(axes_of(axes), keepdim) if a.ndim else x

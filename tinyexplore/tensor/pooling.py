"""Pooling of windows over the last axes: mean, maximum, and the inverse of the maximum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import ConstType, dtypes
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.base import Shape
from tinyexplore.tensor.checks import need_int, shown
from tinyexplore.tensor.precision import rounded_once
from tinyexplore.tensor.scattering import Scattering

if TYPE_CHECKING:
    from typing_extensions import Self

Pairs = tuple[tuple[int, int], ...]
Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int, subject: str) -> Shape:
    """Returns one value for each of `count` spatial axes. A single int is used for all."""
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) != count:
        raise ValueError(f"{subject} {value}: need one int, or one for each of {count} spatial axes")
    return values


def padding_pairs(padding: Sizes, count: int) -> Pairs:
    """Returns (before, after) for each of `count` spatial axes, in their order.

    `padding` is one int, one int per axis, or pairs from the last axis backwards: (left, right, top, bottom).
    """
    if isinstance(padding, int):
        return ((padding, padding),) * count
    if not isinstance(padding, (list, tuple, str)):
        raise TypeError(f"padding is {shown(padding)}: need one int, {count} ints or {2 * count} ints")
    if isinstance(padding, str):
        raise ValueError(f"padding {padding!r}: only convolutions have paddings with a name; give the amounts")
    if len(padding) == count:
        return tuple((amount, amount) for amount in padding)
    if len(padding) == 2 * count:
        return tuple((padding[i], padding[i + 1]) for i in reversed(range(0, 2 * count, 2)))
    raise ValueError(f"padding {tuple(padding)}: need one int, {count} ints or {2 * count} ints")


def named_padding(name: str, kernel: Shape, steps: Shape, gaps: Shape) -> Pairs:
    """Returns the amounts of the padding "valid" or "same" for a convolution with `kernel`: (before, after) per spatial
    axis."""
    if name == "valid":
        return ((0, 0),) * len(kernel)
    if name != "same":
        raise ValueError(f"padding {name!r}: choose 'valid', 'same' or amounts")
    if {*steps} != {1}:
        raise ValueError(f"padding 'same' with stride {steps}: it needs stride 1; pass explicit padding")
    reaches = [gap * (size - 1) for size, gap in zip(kernel, gaps)]
    return tuple((reach // 2, reach - reach // 2) for reach in reaches)


class Pooling(Scattering):
    __slots__ = ()

    def _make_windows(self, kernel: Shape, stride: Shape, dilation: Shape) -> Self:
        """Returns the pooling windows: (…, *spatial) → (…, *positions, *kernel)."""
        result = self
        first_axis = self.ndim - len(kernel)
        for length in (*kernel, *stride, *dilation):
            need_int(length, "windows: a size, stride or dilation")
        if min((*kernel, *stride, *dilation), default=1) < 1:
            raise ShapeError(f"kernel {kernel}, stride {stride}, dilation {dilation}: each must be at least 1")
        for number, (size, step, gap) in enumerate(zip(kernel, stride, dilation)):
            reach = gap * (size - 1) + 1
            if result.shape[first_axis + number] < reach:
                raise ShapeError(
                    f"kernel {kernel} with dilation {dilation} on {self.shape[first_axis:]} (padding included): "
                    f"axis {number} needs at least {reach}; add padding or take a smaller kernel"
                )
            result = result._window(first_axis + number, size, step, gap)
        return result

    @rounded_once
    def avg_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        count_include_pad: bool = True,
        ceil_mode: bool = False,
    ) -> Self:
        """Returns the mean of each window over the last axes. Without `count_include_pad`, padding does not count.

        `ceil_mode` adds a last window that is only partly inside. The positions of that window beyond the padding do
        not count.
        """
        pool = self._pool(kernel_size, stride, dilation, padding, ceil_mode)
        windows = self.pad(pool.inner)._take_windows(pool)
        if count_include_pad and pool.beyond is None:
            return windows.mean(pool.axes)
        one = self._const(1.0, dtypes.default_float)
        is_counted = one.pad(pool.inner, value=1.0 if count_include_pad else 0.0)
        return windows.sum(pool.axes) / is_counted._take_windows(pool).sum(pool.axes).cast(windows._to_float().dtype)

    def max_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        """Returns the largest element of each window over the last axes. Padding is never the largest.

        `return_indices`: also returns the first index of that element in the flattened last axes, which `max_unpool2d`
        takes.
        """
        pool = self._pool(kernel_size, stride, dilation, padding, ceil_mode)
        lowest = dtypes.min(self.dtype)
        windows = self.pad(pool.inner, value=lowest)._take_windows(pool, lowest)
        maxima = windows.max(pool.axes)
        if not return_indices:
            return maxima
        size = self.shape[self.ndim - len(pool.kernel) :]
        indices = self._const(0, dtypes.default_int, (prod(size),))._positions_along(0).reshape(size)
        none = prod(size)
        spots = indices.pad(pool.inner[-len(size) :], value=none)._take_windows(pool, none)
        window_values = windows._detach_value()
        holds = window_values == window_values.max(pool.axes, keepdim=True)
        if dtypes.is_float(self.dtype):
            holds = holds | window_values.isnan()
        return maxima, holds.where(spots, none).min(pool.axes)

    def max_unpool2d(
        self,
        indices: Self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_size: Sequence[int] | None = None,
    ) -> Self:
        """Puts each element back to its position before `max_pool2d(…, return_indices=True)`. Other positions are 0.

        `output_size`: the shape before pooling (the last axes suffice). Default: the smallest shape that pools to this
        one.
        """
        if indices.shape != self.shape:
            raise ShapeError(f"max_unpool2d of shape {self.shape} by indices of {indices.shape}: they must be equal")
        kernel, axis_count = self._pool_kernel(kernel_size)
        step = kernel if stride is None else per_axis(stride, axis_count, "stride")
        gap = per_axis(dilation, axis_count, "dilation")
        pads = padding_pairs(padding, axis_count)
        head, tail = self.shape[: self.ndim - axis_count], self.shape[self.ndim - axis_count :]
        size = tuple(
            (count - 1) * stride_size - before - after + dist * (width - 1) + 1
            for count, stride_size, (before, after), dist, width in zip(tail, step, pads, gap, kernel)
        )
        if output_size is not None:
            size = tuple(output_size)[-axis_count:]
        flat = self.reshape((*head, prod(tail)))
        zeros = flat._const(0, shape=(*head, prod(size)))
        spread = zeros.scatter(-1, indices.reshape(flat.shape), flat)
        return spread.reshape((*head, *size))

    # *** geometry ***

    def _pool_kernel(self, kernel_size: Sizes) -> tuple[Shape, int]:
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        if self.ndim < len(kernel):
            raise ShapeError(f"pooling by {kernel} of a tensor of shape {self.shape}: it has too few axes")
        return kernel, len(kernel)

    def _pool(
        self, kernel_size: Sizes, stride: Sizes | None, dilation: Sizes, padding: Sizes, ceil_mode: bool
    ) -> _Pool:
        kernel, axis_count = self._pool_kernel(kernel_size)
        step = kernel if stride is None else per_axis(stride, axis_count, "stride")
        gap = per_axis(dilation, axis_count, "dilation")
        pads = padding_pairs(padding, axis_count)
        unpadded = ((0, 0),) * (self.ndim - axis_count)
        overhangs = [0] * axis_count
        if ceil_mode and min((*kernel, *step, *gap)) > 0:
            for number, (size, (before, after)) in enumerate(zip(self.shape[self.ndim - axis_count :], pads)):
                overhangs[number] = _overhang(size, before, after, gap[number] * (kernel[number] - 1) + 1, step[number])
        beyond = (*unpadded, *((0, amount) for amount in overhangs)) if any(overhangs) else None
        axes = tuple(range(self.ndim, self.ndim + axis_count))
        return _Pool(kernel, step, gap, (*unpadded, *pads), beyond, axes)

    def _take_windows(self, pool: _Pool, beyond: ConstType = 0) -> Self:
        """Returns the windows of the padded tensor. `beyond`: the value of positions past the padding."""
        x = self
        if pool.beyond is not None:
            x = x.pad(pool.beyond[-x.ndim :], value=beyond)
        return x._make_windows(pool.kernel, pool.step, pool.gap)


@dataclass(frozen=True)
class _Pool:
    """The geometry of pooling windows.

    kernel: size of a window on each axis.
    step: distance of neighboring windows on each axis.
    gap: dilation on each axis.
    inner: padding, (before, after) on each axis.
    beyond: further padding that partial windows read, or None.
    axes: the axes of a window's elements.
    """

    kernel: Shape
    step: Shape
    gap: Shape
    inner: Pairs
    beyond: Pairs | None
    axes: Shape


def _overhang(size: int, before: int, after: int, reach: int, step: int) -> int:
    """Returns how far the last window extends past the end if the number of windows is rounded up, in elements.

    Each window starts inside the input or in the left padding.
    """
    available = size + before + after - reach
    count = -(-available // step) + 1
    if (count - 1) * step >= size + before:
        count -= 1
    return max((count - 1) * step - available, 0)

"""Axes sampled at other places: interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.checks import need_int, shown
from tinyexplore.tensor.gradients import gradient_by_tensors
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.precision import wide_float

if TYPE_CHECKING:
    from typing_extensions import Self

    from tinyexplore.autograd import TapeEntry

T = TypeVar("T", bound="Indexing")
LINEAR = ("linear", "bilinear", "trilinear")
MODES = (*LINEAR, "bicubic", "nearest", "nearest-exact", "area")
LARGEST_INT = dtypes.max(dtypes.default_int)
CUBIC = -0.75  # the slope at 1 of the kernel of Keys, "Cubic convolution interpolation" (1981), as PyTorch has it


def _line(have: int, count: int, align_corners: bool) -> tuple[int, int, int]:
    """(a, b, d): sample i of `count` is at position (a · i + b) / d among `have` elements."""
    return (have - 1, 0, max(count - 1, 1)) if align_corners else (2 * have, have - count, 2 * count)


def _hat(distance: T) -> T:
    """The weight of an element at this distance from a sample, between two neighbors."""
    return (1 - distance.abs()).relu()


def _keys(distance: T) -> T:
    """The weight of an element at this distance from a sample, among four."""
    x = distance.abs()
    return (x <= 1).where(_near(x), (x < 2).where(_far(x), 0.0))


def _near(x: T) -> T:
    """The kernel of Keys up to 1."""
    return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1


def _far(x: T) -> T:
    """The kernel of Keys from 1 to 2."""
    return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC


@gradient_by_tensors
def resampled_gradient(step: TapeEntry, values: Sequence[Resampling], g: Resampling) -> tuple[Resampling]:
    """Of one axis that was sampled at other places."""
    _, axis, mode, align_corners = step.arg
    return (g._collected(axis, values[0].shape[axis], mode, align_corners),)


class Resampling(Indexing):
    __slots__ = ()

    def interpolate(self, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Self:
        """The last axes sampled at `size` places each.

        "linear" (with its names "bilinear", "trilinear"): between two neighbors · "bicubic": among four ·
        "nearest": the one at ⌊place⌋ · "nearest-exact": the one whose middle is nearest · "area": the mean of all
        that a place covers. `align_corners`: first and last element are those of the source (linear and cubic).
        """
        if mode not in MODES:
            raise ValueError(f"interpolate mode {mode!r}: choose one of {', '.join(MODES)}")
        if align_corners and mode not in (*LINEAR, "bicubic"):
            raise ValueError(f"interpolate with align_corners and mode {mode!r}: only linear and cubic modes have it")
        if not isinstance(size, (list, tuple)):
            raise TypeError(f"interpolate {self.shape} to {shown(size)}: need one size for each of the last axes")
        for length in size:
            need_int(length, "interpolate: a size")
        output_size = tuple(size)
        if len(output_size) > self.ndim or min(output_size, default=1) < 1:
            raise ShapeError(f"interpolate {self.shape} to {output_size}: need 1 to {self.ndim} sizes, each 1 at least")
        result = self
        if not mode.startswith("nearest"):
            is_wide_int = dtypes.is_int(self.dtype) and self.dtype.itemsize >= 4  # float32 cannot represent all of them
            result = result.cast(dtypes.float64 if is_wide_int else wide_float(self._float().dtype))
        for number, count in enumerate(output_size):
            axis = self.ndim - len(output_size) + number
            if result.shape[axis] == 0:
                raise ShapeError(f"interpolate {self.shape} to {output_size}: axis {axis} has nothing to sample")
            result = result._resampled(axis, count, mode, align_corners)
        if self.dtype is result.dtype or self.is_floating_point():
            return result.cast(self.dtype)
        return result._rounded_to(self.dtype)

    def _resampled(self, axis: int, count: int, mode: str, align_corners: bool) -> Self:
        have = self.shape[axis]
        if mode.startswith("nearest") and count % have == 0:
            return self.repeat_interleave(count // have, axis)
        result = self._value()._sampled(axis, count, mode, align_corners)
        if result.lazydata is self.lazydata:
            return self
        how = (type(self), axis, mode, align_corners)
        return self._by_own_rule(result.lazydata, resampled_gradient, (self,), how)

    def _sampled(self, axis: int, count: int, mode: str, align_corners: bool) -> Self:
        """`_resampled`, without a gradient."""
        have = self.shape[axis]
        position = self._counted(count, dtypes.default_int if 2 * count * have <= LARGEST_INT else dtypes.int64)
        if mode == "nearest":
            return self._taken(axis, position * have // count)
        if mode == "nearest-exact":
            return self._taken(axis, (2 * position + 1) * have // (2 * count))
        if mode == "area":
            return self._averaged_runs(axis, position, count)
        times, plus, divisor = _line(have, count, align_corners)
        numerator = position * times + plus
        low = numerator // divisor
        share = (numerator - low * divisor).cast(self.dtype) / divisor
        if mode == "bicubic":
            return self._cubic(axis, low, share)
        share = self._along(axis, (low < 0).where(0.0, share))
        before = self._taken(axis, low.maximum(0))
        after = self._taken(axis, (low + 1).minimum(have - 1))
        return share.eq(0).where(before, before * (1 - share) + after * share)  # `after` may be infinite

    def _collected(self, axis: int, have: int, mode: str, align_corners: bool) -> Self:
        """The gradient with respect to `have` elements, where this is the gradient of the samples. Each element adds up
        the samples to which it contributes, which are neighbors, so nothing is scattered."""
        count = self.shape[axis]
        dtype = dtypes.default_int if 4 * (count + 2) * (have + 2) <= LARGEST_INT else dtypes.int64
        element = self._counted(have, dtype).unsqueeze(1)
        times, plus, divisor = _line(have, count, align_corners)
        if mode == "area":
            first, most = element * count // have, -(-count // have) + 1
        elif mode == "nearest":
            first, most = (element * count + have - 1) // have, -(-count // have)
        elif mode == "nearest-exact":
            first, most = (2 * count * element + have - 1) // (2 * have), -(-count // have)
        else:
            reach = 2 if mode == "bicubic" else 1
            most = -(-2 * reach * divisor // times) if times else count
            first = ((element - reach) * divisor - plus) // times + 1 if times else 0 * element
        sample = first.maximum(0) + self._counted(min(most, count), dtype).unsqueeze(0)
        if mode.startswith("nearest"):
            number = 2 * sample + 1 if mode == "nearest-exact" else 2 * sample
            weight = (number * have // (2 * count)).eq(element).where(1.0, self._const(0.0, shape=()))
        elif mode == "area":
            start, stop = sample * have // count, ((sample + 1) * have + count - 1) // count
            weight = ((start <= element) & (element < stop)).where((stop - start).cast(self.dtype).reciprocal(), 0.0)
        else:
            line = sample * times + plus
            weigh = _keys if mode == "bicubic" else _hat
            if mode != "bicubic":
                line = line.clip(0, (have - 1) * divisor)
            weight = weigh((line - element * divisor).cast(self.dtype) / divisor)
            for beyond in (1, 2) if mode == "bicubic" else ():  # beyond the edge, the edge is repeated
                for edge, outside in ((0, -beyond), (have - 1, have - 1 + beyond)):
                    weights = weigh((line - outside * divisor).cast(self.dtype) / divisor)
                    weight = weight + element.eq(edge).where(weights, 0.0)
        weight = (sample < count).where(weight, 0.0)
        moved = self.transpose(axis, -1)
        index = sample.minimum(count - 1).unsqueeze(-1)
        taken = moved.unsqueeze(-2).unsqueeze(-2)._picked(index)
        return weight.eq(0).where(0.0, taken * weight).sum(-1).transpose(axis, -1)

    def _cubic(self, axis: int, first: Self, rest: Self) -> Self:
        """Four neighbors, weighted by Keys' piecewise cubic kernel. Beyond the edge, the edge is repeated."""
        result: Self | None = None
        for step in (-1, 0, 1, 2):
            x = (rest - step).abs()
            weight = _near(x) if step in (0, 1) else _far(x)
            taken = self._taken(axis, (first + step).clip(0, self.shape[axis] - 1))
            along = self._along(axis, weight)
            part = along.eq(0).where(0.0, taken * along)  # an element of weight 0 may be infinite
            result = part if result is None else result + part
        assert result is not None
        return result

    def _averaged_runs(self, axis: int, position: Self, count: int) -> Self:
        """The mean of elements ⌊i · have / count⌋ … ⌈(i + 1) · have / count⌉ - 1 for each index i."""
        have = self.shape[axis]
        start, stop = position * have // count, ((position + 1) * have + count - 1) // count
        total: Self | None = None
        for step in range(-(-have // count) + 1):
            inside = self._along(axis, start + step < stop)
            part = inside.where(self._taken(axis, (start + step).minimum(have - 1)), 0.0)
            total = part if total is None else total + part
        assert total is not None
        return total / self._along(axis, (stop - start).cast(self.dtype))

    def _counted(self, count: int, dtype: DType) -> Self:
        """0 … count - 1, computed in integers: `place * have // count` is exact."""
        return self._wrap(LazyBuffer.iota(count, dtype, self.device))

    def _taken(self, axis: int, indices: Self) -> Self:
        """The elements of `axis` at `indices`, one axis of ints in range."""
        moved = self.transpose(axis, -1)
        picked = moved.unsqueeze(-2)._picked(indices.unsqueeze(-1))
        return picked.transpose(axis, -1)

    def _along(self, axis: int, line: Self) -> Self:
        """A vector shaped to broadcast along `axis`."""
        return line.reshape(tuple(line.shape[0] if i == axis else 1 for i in range(self.ndim)))

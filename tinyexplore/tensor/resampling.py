"""Interpolation: samples axes at other positions."""

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
# the slope at distance 1 of the kernel of Keys, "Cubic convolution interpolation" (1981); PyTorch's value
CUBIC = -0.75


def _position_formula(old_size: int, count: int, align_corners: bool) -> tuple[int, int, int]:
    """Returns (a, b, d): sample i of `count` is at position (a · i + b) / d among `old_size` elements."""
    return (old_size - 1, 0, max(count - 1, 1)) if align_corners else (2 * old_size, old_size - count, 2 * count)


def _linear_kernel(distance: T) -> T:
    """Returns the linear kernel: the weight of an element at `distance` from a sample. Two elements have a weight above
    0."""
    return (1 - distance.abs()).relu()


def _keys_kernel(distance: T) -> T:
    """Returns Keys' cubic kernel: the weight of an element at `distance` from a sample. Four elements have a weight."""
    x = distance.abs()
    return (x <= 1).where(_keys_inner(x), (x < 2).where(_keys_outer(x), 0.0))


def _keys_inner(x: T) -> T:
    """Returns Keys' kernel for distances from 0 to 1."""
    return ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1


def _keys_outer(x: T) -> T:
    """Returns Keys' kernel for distances from 1 to 2."""
    return ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC


@gradient_by_tensors
def resampled_gradient(step: TapeEntry, values: Sequence[Resampling], g: Resampling) -> tuple[Resampling]:
    """Returns the gradient of the input of `_resample`, along its one axis."""
    _, axis, mode, align_corners = step.arg
    return (g._input_gradient(axis, values[0].shape[axis], mode, align_corners),)


class Resampling(Indexing):
    __slots__ = ()

    def interpolate(self, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Self:
        """Samples the last axes, one axis for each number in `size`, at that many positions.

        "linear" (also called "bilinear", "trilinear"): weights two neighbors · "bicubic": weights four neighbors ·
        "nearest": takes the element at ⌊position⌋ · "nearest-exact": takes the element whose middle is nearest ·
        "area": takes the mean of all elements that a sample covers. `align_corners`: the first and last sample are the
        first and last element (linear and cubic).
        """
        if mode not in MODES:
            raise ValueError(f"interpolate mode {mode!r}; supported: {', '.join(MODES)}")
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
            # float32 cannot represent all these positions
            is_wide_int = dtypes.is_int(self.dtype) and self.dtype.itemsize >= 4
            result = result.cast(dtypes.float64 if is_wide_int else wide_float(self._to_float().dtype))
        for number, count in enumerate(output_size):
            axis = self.ndim - len(output_size) + number
            if result.shape[axis] == 0:
                raise ShapeError(f"interpolate {self.shape} to {output_size}: axis {axis} has nothing to sample")
            result = result._resample(axis, count, mode, align_corners)
        if self.dtype is result.dtype or self.is_floating_point():
            return result.cast(self.dtype)
        return result._round_to(self.dtype)

    def _resample(self, axis: int, count: int, mode: str, align_corners: bool) -> Self:
        old_size = self.shape[axis]
        if mode.startswith("nearest") and count % old_size == 0:
            return self.repeat_interleave(count // old_size, axis)
        result = self._detach_value()._sample(axis, count, mode, align_corners)
        if result.lazydata is self.lazydata:
            return self
        how = (type(self), axis, mode, align_corners)
        return self._wrap_with_rule(result.lazydata, resampled_gradient, (self,), how)

    def _sample(self, axis: int, count: int, mode: str, align_corners: bool) -> Self:
        """Samples one axis like `_resample`, but records no gradient."""
        old_size = self.shape[axis]
        position = self._iota(count, dtypes.default_int if 2 * count * old_size <= LARGEST_INT else dtypes.int64)
        if mode == "nearest":
            return self._take(axis, position * old_size // count)
        if mode == "nearest-exact":
            return self._take(axis, (2 * position + 1) * old_size // (2 * count))
        if mode == "area":
            return self._area_mean(axis, position, count)
        times, plus, divisor = _position_formula(old_size, count, align_corners)
        numerator = position * times + plus
        low = numerator // divisor
        share = (numerator - low * divisor).cast(self.dtype) / divisor
        if mode == "bicubic":
            return self._sample_cubic(axis, low, share)
        share = self._broadcast_along(axis, (low < 0).where(0.0, share))
        lower = self._take(axis, low.maximum(0))
        upper = self._take(axis, (low + 1).minimum(old_size - 1))
        # the element after the sample may be infinite
        return share.eq(0).where(lower, lower * (1 - share) + upper * share)

    def _input_gradient(self, axis: int, old_size: int, mode: str, align_corners: bool) -> Self:
        """Returns the gradient of the `old_size` input elements. `self` is the gradient of the samples.

        Each element sums the gradients of the samples that it contributes to. They are neighbors, at most `max_samples`
        of them: a gather, not a scatter.
        """
        count = self.shape[axis]
        dtype = dtypes.default_int if 4 * (count + 2) * (old_size + 2) <= LARGEST_INT else dtypes.int64
        element = self._iota(old_size, dtype).unsqueeze(1)
        times, plus, divisor = _position_formula(old_size, count, align_corners)
        if mode == "area":
            first_sample, max_samples = element * count // old_size, -(-count // old_size) + 1
        elif mode == "nearest":
            first_sample, max_samples = (element * count + old_size - 1) // old_size, -(-count // old_size)
        elif mode == "nearest-exact":
            first_sample, max_samples = (2 * count * element + old_size - 1) // (2 * old_size), -(-count // old_size)
        else:
            radius = 2 if mode == "bicubic" else 1
            max_samples = -(-2 * radius * divisor // times) if times else count
            first_sample = ((element - radius) * divisor - plus) // times + 1 if times else 0 * element
        samples = first_sample.maximum(0) + self._iota(min(max_samples, count), dtype).unsqueeze(0)
        if mode.startswith("nearest"):
            half_steps = 2 * samples + 1 if mode == "nearest-exact" else 2 * samples
            weight = (half_steps * old_size // (2 * count)).eq(element).where(1.0, self._const(0.0, shape=()))
        elif mode == "area":
            start, stop = samples * old_size // count, ((samples + 1) * old_size + count - 1) // count
            weight = ((start <= element) & (element < stop)).where((stop - start).cast(self.dtype).reciprocal(), 0.0)
        else:
            numerator = samples * times + plus
            weight_of = _keys_kernel if mode == "bicubic" else _linear_kernel
            if mode != "bicubic":
                numerator = numerator.clip(0, (old_size - 1) * divisor)
            weight = weight_of((numerator - element * divisor).cast(self.dtype) / divisor)
            for outward in (1, 2) if mode == "bicubic" else ():  # elements beyond the edge equal the edge
                for edge, virtual in ((0, -outward), (old_size - 1, old_size - 1 + outward)):
                    edge_weight = weight_of((numerator - virtual * divisor).cast(self.dtype) / divisor)
                    weight = weight + element.eq(edge).where(edge_weight, 0.0)
        weight = (samples < count).where(weight, 0.0)
        samples_last = self.transpose(axis, -1)
        indices = samples.minimum(count - 1).unsqueeze(-1)
        gathered = samples_last.unsqueeze(-2).unsqueeze(-2)._gather_last_axis(indices)
        return weight.eq(0).where(0.0, gathered * weight).sum(-1).transpose(axis, -1)

    def _sample_cubic(self, axis: int, low: Self, fraction: Self) -> Self:
        """Samples between elements `low` and `low` + 1, `fraction` after `low`: four neighbors by Keys' kernel.

        Elements beyond the edge equal the edge.
        """
        result: Self | None = None
        for step in (-1, 0, 1, 2):
            x = (fraction - step).abs()
            weight = _keys_inner(x) if step in (0, 1) else _keys_outer(x)
            neighbor = self._take(axis, (low + step).clip(0, self.shape[axis] - 1))
            axis_weight = self._broadcast_along(axis, weight)
            term = axis_weight.eq(0).where(0.0, neighbor * axis_weight)  # an element of weight 0 may be infinite
            result = term if result is None else result + term
        assert result is not None
        return result

    def _area_mean(self, axis: int, position: Self, count: int) -> Self:
        """Returns the mean of elements ⌊i · old_size / count⌋ … ⌈(i + 1) · old_size / count⌉ - 1 for each index i."""
        old_size = self.shape[axis]
        start, stop = position * old_size // count, ((position + 1) * old_size + count - 1) // count
        total: Self | None = None
        for step in range(-(-old_size // count) + 1):
            is_inside = self._broadcast_along(axis, start + step < stop)
            term = is_inside.where(self._take(axis, (start + step).minimum(old_size - 1)), 0.0)
            total = term if total is None else total + term
        assert total is not None
        return total / self._broadcast_along(axis, (stop - start).cast(self.dtype))

    def _iota(self, count: int, dtype: DType) -> Self:
        """Returns 0 … count - 1 as integers, so that `position * have // count` is exact."""
        return self._wrap(LazyBuffer.iota(count, dtype, self.device))

    def _take(self, axis: int, indices: Self) -> Self:
        """Gathers the elements of `axis` at `indices`, a vector of ints in range."""
        transposed = self.transpose(axis, -1)
        picked = transposed.unsqueeze(-2)._gather_last_axis(indices.unsqueeze(-1))
        return picked.transpose(axis, -1)

    def _broadcast_along(self, axis: int, line: Self) -> Self:
        """Reshapes a vector so that it broadcasts along `axis`."""
        return line.reshape(tuple(line.shape[0] if i == axis else 1 for i in range(self.ndim)))

"""Axes sampled at other places: interpolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.checks import need_int, shown
from tinyexplore.tensor.reduction import sum_dtype

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

LINEAR = ("linear", "bilinear", "trilinear")
MODES = (*LINEAR, "bicubic", "nearest", "nearest-exact", "area")
CUBIC = -0.75  # the slope at 1 of the kernel of Keys, "Cubic convolution interpolation" (1981), as PyTorch has it


class Resampling:
    __slots__ = ()

    def interpolate(self: Tensor, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Tensor:
        """The last axes sampled at `size` places each.

        "linear" (with its names "bilinear", "trilinear"): between two neighbours · "bicubic": among four ·
        "nearest": the one at ⌊place⌋ · "nearest-exact": the one whose middle is nearest · "area": the mean of all
        that a place covers. `align_corners`: first and last element are those of the source (linear and cubic).
        """
        if mode not in MODES:
            raise ValueError(f"interpolate mode {mode!r}: choose one of {', '.join(MODES)}")
        if align_corners and mode not in (*LINEAR, "bicubic"):
            raise ValueError(f"interpolate with align_corners and mode {mode!r}: only linear and cubic modes have it")
        if not isinstance(size, (list, tuple)):
            raise TypeError(f"interpolate {self.shape} to {shown(size)}: need one size for each of the last axes")
        for one in size:
            need_int(one, "interpolate: a size")
        wanted = tuple(size)
        if len(wanted) > self.ndim or min(wanted, default=1) < 1:
            raise ShapeError(f"interpolate {self.shape} to {wanted}: need 1 to {self.ndim} sizes, each 1 at least")
        result = self
        if not mode.startswith("nearest"):
            result = result.cast(sum_dtype(self._float().dtype))
        for number, count in enumerate(wanted):
            axis = self.ndim - len(wanted) + number
            if result.shape[axis] == 0:
                raise ShapeError(f"interpolate {self.shape} to {wanted}: axis {axis} has nothing to sample")
            result = result._resampled(axis, count, mode, align_corners)
        return (result if self.is_floating_point() else result.round()).cast(self.dtype)

    def _resampled(self: Tensor, axis: int, count: int, mode: str, align_corners: bool) -> Tensor:
        have = self.shape[axis]
        if mode.startswith("nearest") and count % have == 0:
            return self.repeat_interleave(count // have, axis)
        place = self._counted(count, dtypes.default_int)
        if mode == "nearest":
            return self._taken(axis, place * have // count)
        if mode == "nearest-exact":
            return self._taken(axis, (2 * place + 1) * have // (2 * count))
        if mode == "area":
            return self._averaged_runs(axis, count)
        real = place.cast(self.dtype)
        if align_corners:
            at = real * ((have - 1) / max(count - 1, 1))
        else:
            at = (real + 0.5) * (have / count) - 0.5
        if mode == "bicubic":
            return self._cubic(axis, at)
        at = at.clip(0, have - 1)
        low = at.floor()
        share = self._along(axis, at - low)
        first = low.cast(dtypes.default_int)
        before, after = self._taken(axis, first), self._taken(axis, (first + 1).minimum(have - 1))
        return before + (after - before) * share

    def _cubic(self: Tensor, axis: int, at: Tensor) -> Tensor:
        """Four neighbours, weighted by Keys' piecewise cubic kernel; beyond the edge stands the edge."""
        low = at.floor()
        first, rest = low.cast(dtypes.default_int), at - low
        result: Tensor | None = None
        for step in (-1, 0, 1, 2):
            x = (rest - step).abs()
            if step in (0, 1):
                weight = ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1
            else:
                weight = ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC
            taken = self._taken(axis, (first + step).clip(0, self.shape[axis] - 1))
            part = taken * self._along(axis, weight)
            result = part if result is None else result + part
        assert result is not None
        return result

    def _averaged_runs(self: Tensor, axis: int, count: int) -> Tensor:
        """The mean of elements ⌊i · have / count⌋ … ⌈(i + 1) · have / count⌉ - 1 for each place i."""
        have = self.shape[axis]
        place = self._counted(count, dtypes.default_int)
        start, stop = place * have // count, ((place + 1) * have + count - 1) // count
        total: Tensor | None = None
        for step in range(-(-have // count) + 1):
            inside = self._along(axis, start + step < stop)
            part = inside.where(self._taken(axis, (start + step).minimum(have - 1)), 0.0)
            total = part if total is None else total + part
        assert total is not None
        return total / self._along(axis, (stop - start).cast(self.dtype))

    def _counted(self: Tensor, count: int, dtype: DType) -> Tensor:
        """0 … count - 1, computed in integers: `place * have // count` is exact."""
        return self._wrap(LazyBuffer.iota(count, dtype, self.device))

    def _taken(self: Tensor, axis: int, places: Tensor) -> Tensor:
        """The elements of `axis` at `places`, one axis of ints in range."""
        moved = self.transpose(axis, -1)
        picked = moved.unsqueeze(-2)._picked(places.unsqueeze(-1))
        return picked.transpose(axis, -1)

    def _along(self: Tensor, axis: int, line: Tensor) -> Tensor:
        """A vector shaped to broadcast along `axis`."""
        return line.reshape(tuple(line.shape[0] if i == axis else 1 for i in range(self.ndim)))

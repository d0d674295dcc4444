"""Scattering, by comparing every place with every index, and selecting what a mask says."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, cast

from tinyexplore.dtype import ConstType, dtypes
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.base import Shape
from tinyexplore.tensor.reduction import place_dtype, sum_dtype
from tinyexplore.tensor.resampling import Resampling

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


class Scattering(Resampling):
    __slots__ = ()

    def scatter(self, dim: int, index: Tensor, src: Any, reduce: str | None = None) -> Tensor:
        """This tensor with src[i, j] at [index[i, j], j] (for dim = 0); the last one wins, or "add" or "multiply"."""
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"scatter with reduce={reduce!r}: choose None, 'add' or 'multiply'")
        source, target, hits = self._scatter_operands(dim, index, src)
        if reduce == "add":
            found = target + hits.where(source, 0).sum(-1).cast(self.dtype)
        elif reduce == "multiply":
            found = target * hits.where(source, 1).prod(-1).cast(self.dtype)
        else:
            order = hits._places(hits.ndim - 1)
            last = hits.where(order, -1).max(-1, keepdim=True)
            found = (last.squeeze(-1) >= 0).where(source._picked(last), target)
        return self._with_part(found.transpose(self._axis(dim), -1))

    def scatter_reduce(self, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True) -> Tensor:
        """All of src[i, j] with equal [index[i, j], j] (for dim = 0) reduced by "sum", "prod", "mean", "amax" or
        "amin", together with what stands there unless `include_self` is False; other places keep their element."""
        if reduce not in REDUCTIONS:
            raise ValueError(f"scatter_reduce with reduce={reduce!r}: choose one of {', '.join(REDUCTIONS)}")
        source, target, hits = self._scatter_operands(dim, index, src)
        count = hits.cast(dtypes.default_int).sum(-1)
        low, high = dtypes.min(self.dtype), dtypes.max(self.dtype)
        kept = target if include_self else None
        if reduce in ("sum", "mean"):
            wide = sum_dtype(self.dtype)
            found = hits.where(source, 0).cast(wide).sum(-1)
            found = found if kept is None else found + kept.cast(wide)
            if reduce == "mean":
                number = (count + 1 if include_self else count.maximum(1)).cast(wide)
                found = found / number if dtypes.is_float(wide) else found // number
        elif reduce == "prod":
            found = hits.where(source, 1).prod(-1)
            found = found if kept is None else found * kept
        elif reduce == "amax":
            found = hits.where(source, low).max(-1)
            found = found if kept is None else found.maximum(kept)
        else:
            found = hits.where(source, high).min(-1)
            found = found if kept is None else found.minimum(kept)
        found = (count > 0).where(found.cast(self.dtype), target)
        return self._with_part(found.transpose(self._axis(dim), -1))

    def _scatter_operands(self, dim: int, index: Tensor, src: Any) -> tuple[Tensor, Tensor, Tensor]:
        """With `dim` last: src as (…, 1, sources), the part of this tensor that can be written (…, places), and
        which source goes to which place, (…, places, sources)."""
        axis = self._axis(dim)
        value = src if isinstance(src, Scattering) else index._const(src, self.dtype)
        fits = index.ndim == value.ndim == self.ndim and all(
            asked <= given and (i == axis or asked <= have)
            for i, (asked, given, have) in enumerate(zip(index.shape, value.shape, self.shape))
        )
        if not fits:
            raise ShapeError(
                f"scatter into {self.shape} along axis {dim}: index {index.shape} and src {value.shape} do not fit"
            )
        if not dtypes.is_int(index.dtype):
            raise TypeError(f"scatter by a tensor of {index.dtype.name}: need ints")
        around = [(0, have if i == axis else asked) for i, (asked, have) in enumerate(zip(index.shape, self.shape))]
        source = value.shrink([(0, asked) for asked in index.shape]).cast(self.dtype).transpose(axis, -1).unsqueeze(-2)
        target = self.shrink(around).transpose(axis, -1)
        index = index.cast(place_dtype(index.dtype))
        places = target._places(target.ndim - 1, index.dtype).unsqueeze(-1)
        return source, target, index.transpose(axis, -1).unsqueeze(-2) == places

    def _with_part(self, part: Tensor) -> Tensor:
        """This tensor with its first elements along each axis replaced."""
        if part.shape == self.shape:
            return part
        rest = [(0, have - size) for have, size in zip(self.shape, part.shape)]
        written = part._const(True, dtypes.bool).pad(rest)
        return written.where(part.pad(rest), cast("Tensor", self))

    # *** selecting ***

    def masked_select(self, mask: Tensor, size: int | None = None, fill_value: ConstType = 0) -> Tensor:
        """The elements where `mask` is true, in one axis (this computes the mask); with `size` cut or filled to it."""
        shape = broadcast_shape("masked_select", self.shape, mask.shape)
        found = self._broadcast_to(shape).flatten()[mask.cast(dtypes.bool)._broadcast_to(shape).flatten()]
        return found if size is None else found._to_rows(size, fill_value)

    def nonzero(self, size: int | None = None, fill_value: ConstType = 0) -> Tensor:
        """The coordinates of the elements that are not 0, one row each (this computes the tensor); with `size` cut or
        filled to so many rows."""
        flat = self.cast(dtypes.bool).reshape((self.numel(),)).tolist()
        below = [prod(self.shape[axis + 1 :]) for axis in range(self.ndim)]
        rows = [_coordinates(place, below, self.shape) for place, is_set in enumerate(flat) if is_set]
        made = cast(Any, type(self))(rows, device=self.device, dtype=dtypes.default_int)
        found = cast("Tensor", made.reshape(len(rows), self.ndim))
        return found if size is None else found._to_rows(size, fill_value)

    def _to_rows(self, size: int, fill_value: ConstType) -> Tensor:
        """`size` along the first axis."""
        kept = min(size, self.shape[0])
        rest: list[tuple[int, int]] = [(0, 0)] * (self.ndim - 1)
        part = self.shrink([(0, kept), *((0, have) for have in self.shape[1:])])
        return part.pad([(0, size - kept), *rest], value=fill_value)


def _coordinates(place: int, below: list[int], shape: Shape) -> list[int]:
    return [place // step % size for step, size in zip(below, shape)]

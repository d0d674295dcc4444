"""Scattering into the places that an index names, and selecting what a mask says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import ConstType, dtypes
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.checks import need_number, need_tensor
from tinyexplore.tensor.data import checked
from tinyexplore.tensor.errors import ArgumentError, OperandError
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.reduction import index_dtype
from tinyexplore.uop import Ops
from tinyexplore.uop.identity import reduce_identity

if TYPE_CHECKING:
    from typing_extensions import Self

REDUCTIONS = {"sum": Ops.ADD, "prod": Ops.MUL, "mean": Ops.ADD, "amax": Ops.MAX, "amin": Ops.MIN}


class Scattering(Indexing):
    __slots__ = ()

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """This tensor with src[i, j] at [index[i, j], j] (for dim = 0); the last one wins, or "add" or "multiply"."""
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"scatter with reduce={reduce!r}: choose None, 'add' or 'multiply'")
        axis, target, index, source = self._scatter_operands(dim, index, src)
        op = None if reduce is None else Ops.ADD if reduce == "add" else Ops.MUL
        return self._with_part(target._scattered_in(op, axis, index, source))

    def scatter_reduce(self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True) -> Self:
        """All of src[i, j] with equal [index[i, j], j] (for dim = 0) reduced by "sum", "prod", "mean", "amax" or
        "amin", together with what stands there unless `include_self` is False; other places keep their element."""
        if reduce not in REDUCTIONS:
            raise ArgumentError(f"scatter_reduce with reduce={reduce!r}: choose one of {', '.join(REDUCTIONS)}")
        axis, target, index, source = self._scatter_operands(dim, index, src)
        op = REDUCTIONS[reduce]
        start = target
        if not include_self:
            none = target._const(False, dtypes.bool, target.shape)
            is_named = none._scattered_in(None, axis, index, none._const(True, shape=index.shape))
            start = is_named.where(reduce_identity(op, self.dtype).arg, target)
        result = start._scattered_in(op, axis, index, source, is_mean=reduce == "mean")
        if reduce == "mean":
            counts = target._const(0, dtypes.default_int, target.shape)
            counts = counts._scattered_in(Ops.ADD, axis, index, counts._const(1, shape=index.shape))
            number = ((counts + 1) if include_self else counts.maximum(1)).cast(result.dtype)
            result = result / number if dtypes.is_float(result.dtype) else result // number
        return self._with_part(result.cast(self.dtype))

    def _scatter_operands(self, dim: int, index: Self, src: Any) -> tuple[int, Self, Self, Self]:
        """The axis, the part of this tensor that can be written, and of one shape: the index and what goes there."""
        axis = self._axis(dim)
        need_tensor(index, "scatter: the index")
        if self._is_tensor(src):
            value = src
        else:
            need_number(src, "scatter: what is written")
            value = index._const(checked(src, self.dtype), self.dtype)
        fits = index.ndim == value.ndim == self.ndim and all(
            requested <= provided and (i == axis or requested <= have)
            for i, (requested, provided, have) in enumerate(zip(index.shape, value.shape, self.shape))
        )
        if not fits:
            raise ShapeError(
                f"scatter into {self.shape} along axis {dim}: index {index.shape} and src {value.shape} do not fit"
            )
        if not dtypes.is_int(index.dtype):
            raise OperandError(f"scatter by a tensor of {index.dtype.name}: need ints")
        around = [
            (0, have if i == axis else requested) for i, (requested, have) in enumerate(zip(index.shape, self.shape))
        ]
        source = value.shrink([(0, requested) for requested in index.shape]).cast(self.dtype)
        return axis, self.shrink(around), index.cast(index_dtype(index.dtype)), source

    def _with_part(self, part: Self) -> Self:
        """This tensor with its first elements along each axis replaced."""
        if part.shape == self.shape:
            return part
        rest = [(0, have - size) for have, size in zip(self.shape, part.shape)]
        written = part._const(True, dtypes.bool).pad(rest)
        return written.where(part.pad(rest), self)

    # *** selecting ***

    def masked_select(self, mask: Self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """The elements where `mask` is true, in one axis (this computes the mask); with `size` cut or filled to it."""
        need_tensor(mask, "masked_select: the mask")
        shape = broadcast_shape("masked_select", self.shape, mask.shape)
        selected = self._broadcast_to(shape).flatten()[mask.cast(dtypes.bool)._broadcast_to(shape).flatten()]
        return selected if size is None else selected._to_rows(size, fill_value)

    def nonzero(self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """The coordinates of the elements that are not 0, one row each (this computes the tensor); with `size` cut or
        filled to so many rows."""
        places = self._true_places()
        if not places:
            coordinates = self._const(0, dtypes.default_int, (int(bool(self.item())), 0))
        else:
            coordinates = places[0].stack(*places[1:], dim=1)
        return coordinates if size is None else coordinates._to_rows(size, fill_value)

    def _to_rows(self, size: int, fill_value: ConstType) -> Self:
        """`size` along the first axis."""
        rows = min(size, self.shape[0])
        rest: list[tuple[int, int]] = [(0, 0)] * (self.ndim - 1)
        part = self.shrink([(0, rows), *((0, have) for have in self.shape[1:])])
        return part.pad([(0, size - rows), *rest], value=fill_value)

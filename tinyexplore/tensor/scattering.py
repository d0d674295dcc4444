"""Scatters elements to the positions that an index gives, and selects the elements where a mask is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.dtype import ConstType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.checks import need_number, need_tensor
from tinyexplore.tensor.data import check_value
from tinyexplore.tensor.errors import ArgumentError, OperandError
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.reduction import index_dtype
from tinyexplore.uop import Ops
from tinyexplore.uop.identity import reduce_identity

if TYPE_CHECKING:
    from typing_extensions import Self

MIN_ELEMENTS_PER_INDEX = (
    4  # with at least this many times more elements than indices, only the indexed elements are divided
)
REDUCTIONS = {"sum": Ops.ADD, "prod": Ops.MUL, "mean": Ops.ADD, "amax": Ops.MAX, "amin": Ops.MIN}


def _find_expanded_axes(node: LazyBuffer) -> list[int]:
    """Returns the axes along which a value was expanded. An index has equal elements along them."""
    while node.op is Ops.CAST or (node.op is Ops.SHRINK and node.src[0].op is Ops.EXPAND):
        node = node.src[0]
    if node.op is not Ops.EXPAND:
        return []
    return [axis for axis, size in enumerate(node.src[0].shape) if size == 1]


class Scattering(Indexing):
    __slots__ = ()

    def scatter(self, dim: int, index: Self, src: Any, reduce: str | None = None) -> Self:
        """Writes src[i, j] to [index[i, j], j] (for dim = 0). If positions repeat, the last one wins, or `reduce` adds
        or multiplies."""
        if reduce not in (None, "add", "multiply"):
            raise ValueError(f"scatter with reduce={reduce!r}: choose None, 'add' or 'multiply'")
        axis, target, index, source = self._scatter_operands(dim, index, src)
        op = None if reduce is None else Ops.ADD if reduce == "add" else Ops.MUL
        return self._replace_part(target._scatter_into(op, axis, index, source))

    def scatter_reduce(self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True) -> Self:
        """Reduces all src[i, j] with equal position [index[i, j], j] (for dim = 0) by "sum", "prod", "mean", "amax" or
        "amin".

        `include_self`: the current element of a written position counts, too. Other positions keep their element.
        """
        if reduce not in REDUCTIONS:
            raise ArgumentError(f"scatter_reduce with reduce={reduce!r}; supported: {', '.join(REDUCTIONS)}")
        axis, target, index, source = self._scatter_operands(dim, index, src)
        op = REDUCTIONS[reduce]
        # along axes along which it was expanded, an index selects the same elements
        equal = [i for i in _find_expanded_axes(index.lazydata) if i != axis]
        named = index.shrink([(0, 1 if i in equal else size) for i, size in enumerate(index.shape)])
        index_shape = tuple(1 if i in equal else size for i, size in enumerate(target.shape))
        start = target
        if not include_self:
            none = target._const(False, dtypes.bool, index_shape)
            is_named = none._scatter_into(None, axis, named, none._const(True, shape=named.shape))
            start = is_named.where(reduce_identity(op, self.dtype).arg, target)
        result = start._scatter_into(op, axis, index, source, is_mean=reduce == "mean")
        if reduce == "mean":
            counts = target._const(0, dtypes.default_int, index_shape)
            counts = counts._scatter_into(Ops.ADD, axis, named, counts._const(1, shape=named.shape))
            number = ((counts + 1) if include_self else counts.maximum(1)).cast(result.dtype)
            if result._is_divided_in_part(number, index):
                result = result._divide_at(number, axis, index, named)
            else:
                result = result / number if dtypes.is_float(result.dtype) else result // number
        return self._replace_part(result.cast(self.dtype))

    def _is_divided_in_part(self, number: Self, index: Self) -> bool:
        """Whether `_divide_at` takes less time than dividing all elements of this tensor."""
        sizes = (self.numel(), number.numel(), index.numel())
        if self.requires_grad or type(self.lazydata) is not LazyBuffer or any(type(size) is not int for size in sizes):
            return False
        return MIN_ELEMENTS_PER_INDEX * max(sizes[1:]) <= sizes[0]

    def _divide_at(self, number: Self, axis: int, index: Self, named: Self) -> Self:
        """Divides this tensor by `number` at the positions that `index` gives. Elsewhere `number` is 1.

        named: `index` without the axes along which its values repeat. Each position is written once, by the last index
        that gives it.
        """
        order = named._positions_along(axis).cast(index.dtype)._broadcast_to(named.shape)
        last_writer = number._const(-1, index.dtype, number.shape)._scatter_into(None, axis, named, order)
        row_is_last = last_writer.gather(axis, named.clip(0, self.shape[axis] - 1)).eq(order)
        is_written = (row_is_last & (named >= 0) & (named < self.shape[axis]))._broadcast_to(index.shape)
        flat_index = index._const(0, dtypes.int64)
        for i, size in enumerate(self.shape):
            flat_index = flat_index * size + (index if i == axis else index._positions_along(i)).cast(dtypes.int64)
        positions = index.clip(0, self.shape[axis] - 1)
        divisor = number._broadcast_to((*self.shape[:axis], number.shape[axis], *self.shape[axis + 1 :]))
        total, divisor = self.gather(axis, positions), divisor.gather(axis, positions)
        mean = total / divisor if dtypes.is_float(self.dtype) else total // divisor
        indices = is_written.where(flat_index, -1).lazydata
        return self._wrap(self.lazydata.written_at(indices, mean.contiguous().lazydata))

    def _scatter_operands(self, dim: int, index: Self, src: Any) -> tuple[int, Self, Self, Self]:
        """Checks the operands of a scatter. Returns the axis, the part of this tensor to write, index and source."""
        axis = self._resolve_axis(dim)
        need_tensor(index, "scatter: the index")
        if self._is_tensor(src):
            value = src
        else:
            need_number(src, "scatter: what is written")
            value = index._const(check_value(src, self.dtype), self.dtype)
        fits = index.ndim == value.ndim == self.ndim and all(
            requested <= provided and (i == axis or requested <= axis_size)
            for i, (requested, provided, axis_size) in enumerate(zip(index.shape, value.shape, self.shape))
        )
        if not fits:
            raise ShapeError(
                f"scatter into {self.shape} along axis {dim}: index {index.shape} and src {value.shape} do not fit"
            )
        if not dtypes.is_int(index.dtype):
            raise OperandError(f"scatter by a tensor of {index.dtype.name}: need ints")
        written_bounds = [
            (0, axis_size if i == axis else requested)
            for i, (requested, axis_size) in enumerate(zip(index.shape, self.shape))
        ]
        source = value.shrink([(0, requested) for requested in index.shape]).cast(self.dtype)
        return axis, self.shrink(written_bounds), index.cast(index_dtype(index.dtype)), source

    def _replace_part(self, part: Self) -> Self:
        """Replaces the first elements of this tensor along each axis by `part`."""
        if part.shape == self.shape:
            return part
        paddings = [(0, axis_size - size) for axis_size, size in zip(self.shape, part.shape)]
        is_written = part._const(True, dtypes.bool).pad(paddings)
        return is_written.where(part.pad(paddings), self)

    # *** selecting ***

    def masked_select(self, mask: Self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """Returns the elements where `mask` is true, as a vector. Computes the mask. `size` cuts or fills the vector to
        that size."""
        need_tensor(mask, "masked_select: the mask")
        shape = broadcast_shape("masked_select", self.shape, mask.shape)
        selected = self._broadcast_to(shape).flatten()[mask.cast(dtypes.bool)._broadcast_to(shape).flatten()]
        return selected if size is None else selected._to_rows(size, fill_value)

    def nonzero(self, size: int | None = None, fill_value: ConstType = 0) -> Self:
        """Returns the coordinates of the elements that are not 0, one row each. Computes the tensor.

        `size` cuts or fills the result to that many rows.
        """
        coordinate_columns = self._find_true_positions()
        if not coordinate_columns:
            coordinates = self._const(0, dtypes.default_int, (int(bool(self.item())), 0))
        else:
            coordinates = coordinate_columns[0].stack(*coordinate_columns[1:], dim=1)
        return coordinates if size is None else coordinates._to_rows(size, fill_value)

    def _to_rows(self, size: int, fill_value: ConstType) -> Self:
        """Cuts the first axis to `size`, or fills it with `fill_value`."""
        rows = min(size, self.shape[0])
        unpadded: list[tuple[int, int]] = [(0, 0)] * (self.ndim - 1)
        first_rows = self.shrink([(0, rows), *((0, axis_size) for axis_size in self.shape[1:])])
        return first_rows.pad([(0, size - rows), *unpadded], value=fill_value)

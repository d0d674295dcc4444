"""Indexing: ints, slices, None, Ellipsis, and integer or bool tensors and lists.

The rules are NumPy's, with one exception, as in PyTorch and tinygrad: ints are applied first. The index axes of x[0, :,
index] stand last, where `index` stands. NumPy counts the int as an index and puts these axes first.

Elements selected by a tensor are gathered, with one load each. Ints in lists are checked immediately. Ints in a tensor
are not known yet; those out of range select nothing and give 0.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from tinyexplore.autograd import GRADIENTS, TapeEntry, assigned_gradient, broadcast_gather_gradient, gradients
from tinyexplore.dtype import dtypes, least_upper_dtype
from tinyexplore.lazy import LazyBuffer, StoredBuffer, laid_out_as
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.base import Shape, TensorBase
from tinyexplore.tensor.change_log import note_change, refuse_gradient_of_part, with_part
from tinyexplore.tensor.checks import need_tensor
from tinyexplore.tensor.data import check_value
from tinyexplore.tensor.errors import IndexShapeError, OperandError
from tinyexplore.tensor.reduction import Reduction, index_dtype, sum_dtype
from tinyexplore.tensor.stale_views import StaleViews
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import SymbolicError, greatest, is_symbolic, product, simplified, value_of

if TYPE_CHECKING:
    from typing_extensions import Self


T = TypeVar("T", bound="Reduction")


class Indexing(Reduction):
    __slots__ = ()

    def __getitem__(self, indices: Any) -> Self:
        """Returns the elements at `indices`: a view for ints, slices, None and `...`; gathered elements otherwise.

        The axes of index tensors and lists stand where these stand, or in front if a slice or None separates them. Ints
        are applied first and separate nothing: x[0, :, index] has the shape (*x.shape[1:2], *index.shape).
        """
        if _is_whole_mask(indices, ()):  # a single bool selects all elements or none
            return self.unsqueeze(0)[indices.reshape((1,))]
        items = self._expand_items(indices)
        if not any(_is_advanced(item) for item in items):
            return self._apply_basic_items(items)
        view, numbers, axes, position = self._split_index(items)
        return view._gather_coordinates(numbers, axes, position)

    def __iter__(self) -> Iterator[Self]:
        if self.ndim == 0:
            raise TypeError("a tensor without axes cannot be iterated over: use .item()")
        return (self[index] for index in range(len(self)))

    def _split_index(self, items: Sequence[Any]) -> tuple[Self, list[Self], list[int], int]:
        """Splits `items` into a view and index tensors.

        Returns:
            The view that ints, slices and None make; the index tensors of the other items; the axis of each; and the
            position of the index axes in the result.
        """
        view = self._apply_basic_items([slice(None) if _is_advanced(item) else item for item in items])
        advanced = [item for item in items if _is_advanced(item)]
        # the positions in `view` of the index tensors and lists; `view` has an axis for each None, and none for ints
        tensors = [item for item in items if not _is_int(item)]
        axes = [axis for axis, item in enumerate(tensors) if _is_advanced(item)]
        numbers = [view._to_index_tensor(item, axis) for item, axis in zip(advanced, axes)]
        # an index without axes removes its axis, like an int
        scalar_axes = [axis for axis, number in zip(axes, numbers) if not number.ndim]
        index_axes = [
            axis - sum([scalar_axis < axis for scalar_axis in scalar_axes])
            for axis, number in zip(axes, numbers)
            if number.ndim
        ]
        are_adjacent = index_axes == list(range(index_axes[0], index_axes[-1] + 1)) if index_axes else False
        return (
            view,
            numbers,
            axes,
            index_axes[0] if are_adjacent else 0,
        )  # separated index tensors: their axes stand in front

    def _expand_items(self, indices: Any) -> list[Any]:
        """Expands `indices` to one item per axis (and None): writes out Ellipsis, and turns bool masks into ints.

        A list that contains tensors is read as a tuple: one index for each axis.
        """
        is_several = isinstance(indices, tuple) or (
            isinstance(indices, list) and any([isinstance(item, TensorBase) for item in indices])
        )
        index_list = list(indices) if is_several else [indices]
        items: list[Any] = []
        for item in index_list:
            items.extend(_expand_mask(item))
        consumed = sum(item is not None and item is not Ellipsis for item in items)
        if consumed > self.ndim:
            raise IndexError(
                f"too many indices: {consumed} indices for a tensor of shape {self.shape}, which has {self.ndim} axes"
            )
        ellipses = [i for i, item in enumerate(items) if item is Ellipsis]
        if len(ellipses) > 1:
            raise IndexError("an index can only have a single ellipsis (...), at most one Ellipsis")
        position = ellipses[0] if ellipses else len(items)
        full_slices = [slice(None)] * (self.ndim - consumed)
        return items[:position] + full_slices + items[position + 1 :]

    def _apply_basic_items(self, items: Sequence[Any]) -> Self:
        """Applies ints, slices and None: shrinks, flips, takes every n-th element, reshapes."""
        bounds: list[tuple[int, int]] = []
        flipped: list[int] = []
        steps: list[tuple[int, int]] = []
        shape: list[int] = []
        for item in items:
            if item is None:
                shape.append(1)
                continue
            axis = len(bounds)
            size: Any = self.shape[axis]
            if isinstance(item, slice):
                start, stop, step = _slice_bounds(item, size)
                if step < 0:
                    flipped.append(axis)
                if abs(step) > 1:
                    steps.append((axis, abs(step)))
                bounds.append((start, stop))
                shape.append((stop - start + (abs(step) - 1)) // abs(step))
                continue
            if isinstance(item, UOp) or isinstance(size, UOp):
                bounds.append(_make_element_bounds(item, size))
                continue
            index = int(item)
            if not -size <= index < size:
                raise IndexError(f"index {index} for axis {axis} of size {size} (shape {self.shape}) is out of bounds")
            bounds.append((index % size, index % size + 1))
        view = self._wrap_movement(Ops.SHRINK, self.lazydata.shrink(tuple(bounds)))
        if flipped:
            view = view._wrap_movement(Ops.FLIP, view.lazydata.flip(tuple(flipped)))
        for axis, step in steps:
            if view.shape[axis] not in (0, 1):
                view = view._window(axis, 1, step)
                view = view.reshape(view.shape[:-1])
        return view.reshape(tuple(shape))

    def _to_index_tensor(self, item: Any, axis: int) -> Self:
        """Converts the item for `axis` to a tensor of ints, counted from the front."""
        size = self.shape[axis]
        if self._is_tensor(item):
            if not dtypes.is_int(item.dtype):
                raise IndexError(f"a tensor of {item.dtype.name} cannot be an index: use ints or bools")
            index = item.to(self.device).cast(index_dtype(item.dtype))
            return index if dtypes.is_unsigned(item.dtype) else (index < 0).where(index + size, index)
        if isinstance(item, (_TruePositions, _TruePositionsOfTensor)) and item.extent != size:
            raise IndexError(f"a mask with {item.extent} elements for axis {axis} of size {size} (shape {self.shape})")
        if isinstance(item, _TruePositionsOfTensor):
            return self._wrap(item.places.lazydata).to(self.device)
        indices = _check_nested_ints(item)
        current_size = value_of(size) if isinstance(size, UOp) else size
        if out_of_range := [index for index in _flatten_list(indices) if not -current_size <= index < current_size]:
            raise IndexError(
                f"index {out_of_range[0]} for axis {axis} of size {size} (shape {self.shape}) is out of bounds"
            )
        tensor_class = type(self)
        if isinstance(size, UOp):
            index = tensor_class(indices, device=self.device, dtype=dtypes.default_int)
            return (index < 0).where(index + size, index) if min(_flatten_list(indices), default=0) < 0 else index
        from_front = _map_nested(indices, lambda index: index % size if size else index)
        return tensor_class(from_front, device=self.device, dtype=dtypes.default_int)

    def _flatten_indices(self, numbers: Sequence[Self], axes: Sequence[int]) -> Self:
        """Combines the coordinates `numbers` on `axes` to flat indices over these axes, broadcast together.

        An index is out of range if one of its coordinates is.
        """
        sizes = [self.shape[axis] for axis in axes]
        try:
            shape = broadcast_shape("indices", *(number.shape for number in numbers))
        except ShapeError as error:
            raise IndexShapeError(str(error)) from None
        dtype = dtypes.int64 if greatest(product(sizes)) > dtypes.max(dtypes.int32) else dtypes.default_int
        flat_index: Self | None = None
        in_range: Self | None = None
        for number, size in zip(numbers, sizes):
            if len(numbers) > 1:
                # a coordinate out of range must not select an element of another row
                fits = (number >= 0) & (number < size)
                in_range = fits if in_range is None else in_range & fits
            number = number.cast(least_upper_dtype(number.dtype, dtype))
            flat_index = number if flat_index is None else flat_index * size + number
        assert flat_index is not None
        if in_range is not None:
            flat_index = in_range.where(flat_index, -1)
        return flat_index._broadcast_to(shape)

    def _gather_coordinates(self, numbers: Sequence[Self], axes: Sequence[int], position: int) -> Self:
        """Gathers the elements whose coordinates on `axes` are `numbers`, broadcast together. Their axes are put at
        `position`."""
        flat_index = self._flatten_indices(numbers, axes)
        shape, total = flat_index.shape, product([self.shape[axis] for axis in axes])
        other_axes = [axis for axis in range(self.ndim) if axis not in axes]
        table = self.permute((*other_axes, *axes)).reshape((*(self.shape[axis] for axis in other_axes), total))
        # (*sizes before, *shape, *sizes after, total)
        spread = (*table.shape[:position], *(1,) * len(shape), *table.shape[position:-1], total)
        spread_index = flat_index.reshape((*(1,) * position, *shape, *(1,) * (len(other_axes) - position), 1))
        return table.reshape(spread)._gather_last_axis(spread_index)

    def _gather_last_axis(self, indices: Self) -> Self:
        """Gathers result[...] = self[..., indices[..., 0]]. All axes but the last broadcast."""
        shape = broadcast_shape("gather", self.shape[:-1], indices.shape[:-1])
        if self.shape[-1] == 0:
            return self._constant_with_zero_gradient(0, shape)
        numbers = indices.reshape(indices.shape[:-1])
        table = self._broadcast_to((*shape, self.shape[-1]))
        index = numbers._broadcast_to(shape).lazydata
        gathered = table.lazydata.gather(index)
        if self.shape[:-1] == shape or is_symbolic((*table.shape, *self.shape)):
            return table._put_on_tape(gathered, GRADIENTS[Ops.GATHER], (table,), index)
        return self._put_on_tape(gathered, broadcast_gather_gradient, (self,), numbers.lazydata)

    def gather(self, dim: int, index: Self) -> Self:
        """Gathers result[i, j, k] = self[index[i, j, k], j, k] (for dim = 0). `index` may be smaller on the other
        axes."""
        axis = self._resolve_axis(dim)
        need_tensor(index, "gather: the index")
        fits = index.ndim == self.ndim and all(
            i == axis or axis_size >= requested for i, (axis_size, requested) in enumerate(zip(self.shape, index.shape))
        )
        if not fits:
            raise ShapeError(f"gather along axis {dim} of {self.shape} by an index of shape {index.shape}: too large")
        if not dtypes.is_int(index.dtype):
            raise OperandError(f"gather by a tensor of {index.dtype.name}: need ints")
        bounds = [
            (0, axis_size if i == axis else requested)
            for i, (axis_size, requested) in enumerate(zip(self.shape, index.shape))
        ]
        size = self.shape[axis]
        indices = index.to(self.device).cast(index_dtype(index.dtype)).unsqueeze(-1)
        if not dtypes.is_unsigned(index.dtype):
            indices = (indices < 0).where(indices + size, indices)
        order = [i for i in range(self.ndim) if i != axis] + [axis]
        table = self.shrink(bounds).permute(order).unsqueeze(axis)
        return table._gather_last_axis(indices)

    def _find_true_positions(self) -> list[Self]:
        """Returns the coordinates, one tensor per axis, of the elements that are not 0, in order. Computes the
        tensor."""
        flat = self._detach_value().cast(dtypes.bool).reshape((self.numel(),)).contiguous().realize()
        dtype = dtypes.default_int if flat.numel() <= dtypes.max(dtypes.default_int) else dtypes.int64
        count = int(flat.sum(dtype=dtype).item())
        rank = flat.cast(dtype).cumsum(0) - 1
        numbers = flat._const(0, dtype, (count,))
        numbers = numbers._scatter_into(None, 0, flat.where(rank, -1), flat._positions_along(0, dtype)).contiguous()
        positions = []
        stride = self.numel()
        for size in self.shape:
            stride //= max(size, 1)
            positions.append((numbers // max(stride, 1) % max(size, 1)).cast(dtypes.default_int))
        return positions

    # *** writing ***

    def __setitem__(self, indices: Any, v: Any) -> None:
        """Writes `v` at `indices`. If `indices` name a position twice, the last value stays.

        Slices and ints are stored in place unless the old value is still referenced. No other tensor changes: after y =
        x[:2]; x[0] = 5, y has the old values, while in PyTorch it shows the 5 (docs/decisions/0006). The first time
        that the program references such a view, a warning says so. To write through a view, assign to it:
        x[:2].assign(...) changes x.
        """
        refuse_gradient_of_part(self, v)
        self._write(indices, v)
        if self._ctx is not None:
            self._ctx = TapeEntry(assigned_gradient, (), (), self.lazydata)

    def _write(self, indices: Any, v: Any) -> None:
        if isinstance(self.lazydata, StoredBuffer):
            view = self._apply_basic_items(self._expand_items(indices))
            values = v if isinstance(v, type(self)) else type(self)(v, dtype=self.dtype)
            view.assign(values._broadcast_to(view.shape))
            return
        if isinstance(v, (int, float)):
            v = check_value(v, self.dtype)
        value = (
            self._as_tensor(v, "setitem").cast(self.dtype)
            if not isinstance(v, (list, tuple))
            else type(self)(v, device=self.device, dtype=self.dtype)
        )
        if _is_whole_mask(indices, self.shape) and value.numel() == 1:
            StaleViews.warn_of(self, self.lazydata, v)
            note_change(self)
            self.lazydata = laid_out_as(indices.to(self.device).where(value.reshape(()), self).lazydata, self.lazydata)
            return
        if _is_whole_mask(indices, ()):
            indices, value = indices.to(self.device)._broadcast_to(self.shape), _broadcast_value(value, self.shape)
            StaleViews.warn_of(self, self.lazydata, v)
            note_change(self)
            self.lazydata = laid_out_as(indices.where(value, self).lazydata, self.lazydata)
            return
        items = self._expand_items(indices)
        basic_items = [slice(None) if _is_advanced(item) else item for item in items]
        StaleViews.warn_of(self, self._apply_basic_items(basic_items).lazydata, v, value)
        if any(_is_advanced(item) for item in items):
            self._write_positions(items, value)
        else:
            self._write_view(items, _broadcast_value(value, self._apply_basic_items(items).shape))

    def _write_positions(self, items: Sequence[Any], value: Self) -> None:
        """Writes `value` at `items`, row by row: one row for each index on the axes of the index tensors and lists."""
        view, numbers, axes, position = self._split_index(items)
        other_axes = [axis for axis in range(view.ndim) if axis not in axes]
        flat_index = view._flatten_indices(numbers, axes)
        other_sizes, rank = [view.shape[axis] for axis in other_axes], flat_index.ndim
        source = _broadcast_value(value, (*other_sizes[:position], *flat_index.shape, *other_sizes[position:]))
        order = [*range(position, position + rank), *range(position), *range(position + rank, source.ndim)]
        source = source.permute(order).reshape((flat_index.numel(), *other_sizes))
        rows = view.permute((*axes, *other_axes)).reshape((product([view.shape[axis] for axis in axes]), *other_sizes))
        index = flat_index.reshape((flat_index.numel(), *(1,) * len(other_sizes)))._broadcast_to(source.shape)
        updated = rows._scatter_into(None, 0, index, source)
        updated = updated.reshape((*(view.shape[axis] for axis in axes), *other_sizes))
        order_back = [*axes, *other_axes]
        updated = updated.permute(sorted(range(view.ndim), key=order_back.__getitem__))
        self._write_view([slice(None) if _is_advanced(item) else item for item in items], updated)

    def _write_view(self, items: Sequence[Any], value: Self) -> None:
        """Writes `value` at ints, slices and None."""
        is_all = all(isinstance(item, slice) and item == slice(None) for item in items)
        if not is_all and type(self.lazydata) is LazyBuffer and self.lazydata.can_be_written:
            written_to = with_part(self._apply_basic_items(items).lazydata, self.lazydata, value.lazydata)
            note_change(self, in_part=True)
            self.lazydata = written_to
            return
        if not is_all:
            is_written = self._scatter_to_view(items, value._const(True, dtypes.bool, value.shape))
            value = is_written.where(self._scatter_to_view(items, value), self)
        note_change(self)
        self.lazydata = laid_out_as(value.lazydata, self.lazydata)

    def _scatter_into(self, op: Ops | None, axis: int, index: Self, source: Self, is_mean: bool = False) -> Self:
        """Combines `source` by `op` into the positions of `axis` that `index` gives, in order. Without `op`, the last
        element stays.

        Narrow floats are rounded at the end. `is_mean`: the total will be divided, so it is not rounded and does not
        wrap.
        """
        x = self
        if is_mean or (op in (Ops.ADD, Ops.MUL) and dtypes.is_float(self.dtype)):
            x, source = x.cast(sum_dtype(self.dtype)), source.cast(sum_dtype(self.dtype))
        scattered = x.lazydata.scatter(op, axis, index.lazydata, source.lazydata)
        total = x._put_on_tape(scattered, GRADIENTS[Ops.SCATTER], (x, source), (op, axis, index.lazydata))
        return total if is_mean else total.cast(self.dtype)

    def _scatter_to_view(self, items: Sequence[Any], values: Self) -> Self:
        """Returns zeros of this tensor's shape with `values` at the view of `items`: the gradient of that view."""
        tensor_class = type(self)
        zeros = self._const(0.0, dtypes.default_float)
        zeros.requires_grad = True
        was_off, tensor_class.no_grad = tensor_class.no_grad, False
        try:
            view = zeros._apply_basic_items(items)
        finally:
            tensor_class.no_grad = was_off
        gradients_by_id = {id(tensor): gradient for tensor, gradient in gradients(view, values.lazydata)}
        return self._wrap(gradients_by_id[id(zeros)])


def _broadcast_value(value: T, shape: Shape) -> T:
    """Broadcasts `value` to the shape of the written part. As in NumPy, it may have additional leading axes of size
    1."""
    while value.ndim > len(shape) and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    if broadcast_shape("setitem", value.shape, shape) != shape:
        raise ShapeError(f"setitem: a value of shape {value.shape} does not fit into {shape}")
    return value._broadcast_to(shape)


# *** items of an index ***


def _is_whole_mask(indices: Any, shape: Shape) -> bool:
    return isinstance(indices, TensorBase) and indices.dtype is dtypes.bool and indices.shape == shape


def _is_int(item: Any) -> bool:
    if type(item) is int or isinstance(item, UOp):
        return True
    if isinstance(item, (TensorBase, bool)) or not hasattr(item, "__index__"):
        return False
    try:
        operator.index(item)
    except TypeError:  # a NumPy array has the method whatever its content
        return False
    return True


def _is_advanced(item: Any) -> bool:
    return not (item is None or item is Ellipsis or isinstance(item, slice) or _is_int(item))


def _expand_mask(item: Any) -> list[Any]:
    """Converts a bool mask to lists of its true indices, one list per axis. Returns other items unchanged, in a
    list."""
    if isinstance(item, Indexing):
        if item.dtype is not dtypes.bool:
            return [item]
        if not item.ndim:
            raise IndexError("a bool without axes among other indices: index by it alone, or by a mask with axes")
        pairs = zip(item._find_true_positions(), item.shape)
        return [_TruePositionsOfTensor(positions, extent) for positions, extent in pairs]
    if isinstance(item, bool):
        raise IndexError(f"index {item}: a single bool is not an index; use a list of bools, or None for a new axis")
    elif isinstance(item, (list, tuple)) or hasattr(item, "__array_interface__") and getattr(item, "ndim", 0) > 0:
        rows = item if isinstance(item, (list, tuple)) else item.tolist()
        innermost, rank = rows, 0
        while isinstance(innermost, (list, tuple)):
            rank += 1
            innermost = innermost[0] if innermost else 0
        if not isinstance(innermost, bool):
            return [list(rows)]
    else:
        if not (item is None or item is Ellipsis or isinstance(item, slice) or _is_int(item)):
            raise IndexError(f"index {item!r} ({type(item).__name__}): need ints, slices, None, ..., lists or tensors")
        return [item]
    positions = [_TruePositions(extent) for extent in _measure_extents(rows, rank)]
    _find_true_positions(rows, (), positions)
    return list(positions)


class _TruePositions(list[Any]):
    """The indices at which a mask is true, along one of its axes, which has size `extent`."""

    def __init__(self, extent: int) -> None:
        super().__init__()
        self.extent = extent


@dataclass(frozen=True, eq=False)
class _TruePositionsOfTensor:
    """The indices at which a mask, given as a tensor, is true along one of its axes.

    places: the indices.
    extent: the size of the axis.
    """

    places: TensorBase
    extent: int


def _measure_extents(rows: Any, rank: int) -> list[int]:
    extents = []
    for _ in range(rank):
        extents.append(len(rows))
        rows = rows[0] if rows else []
    return extents


def _find_true_positions(rows: Any, prefix: Shape, coordinates: Sequence[list[int]]) -> None:
    if not isinstance(rows, (list, tuple)):
        if rows:
            for axis, index in enumerate(prefix):
                coordinates[axis].append(index)
        return
    for number, row in enumerate(rows):
        _find_true_positions(row, (*prefix, number), coordinates)


def _slice_bounds(item: slice, size: int) -> tuple[int, int, int]:
    """Returns (start, stop, step) of the elements start ≤ i < stop that a slice selects.

    `step` begins at the first element, or at the last one if it is negative.
    """
    for bound in (item.start, item.stop, item.step):
        if bound is not None and not _is_int(bound):
            raise TypeError(f"slice {item}: its parts must be ints")
    if UOp in (type(item.start), type(item.stop), type(size)):
        return _bound_symbolic_slice(item, size)
    positions = range(*item.indices(size))
    if not positions:
        return 0, 0, positions.step
    return min(positions[0], positions[-1]), max(positions[0], positions[-1]) + 1, positions.step


def _make_element_bounds(item: Any, size: Any) -> tuple[Any, Any]:
    """Returns the bounds (start, stop) of one element if its index or the size is symbolic. A negative int counts from
    the end."""
    start = simplified(size + item) if isinstance(item, int) and item < 0 else item
    return start, start + 1


def _bound_symbolic_slice(item: slice, size: Any) -> tuple[Any, Any, int]:
    """Computes `_slice_bounds` if a bound or the size is symbolic. The bounds are not limited to the size, which
    varies."""
    step = 1 if item.step is None else int(item.step)
    if step < 1 and (item.start is not None or item.stop is not None):
        raise SymbolicError(f"slice {item} of a symbolic axis: flip() it, then take every step-th of the part")
    start = 0 if item.start is None else _make_element_bounds(item.start, size)[0]
    stop = size if item.stop is None else _make_element_bounds(item.stop, size)[0]
    return start, stop, step


def _check_nested_ints(item: Any) -> Any:
    if isinstance(item, (list, tuple)):
        return [_check_nested_ints(child) for child in item]
    if not hasattr(item, "__index__") or isinstance(item, bool):
        raise IndexError(f"index {item!r} ({type(item).__name__}) in a list: need ints, or bools only")
    return item.__index__()


def _flatten_list(item: Any) -> list[int]:
    if not isinstance(item, list):
        return [item]
    return [index for child in item for index in _flatten_list(child)]


def _map_nested(item: Any, function: Any) -> Any:
    if isinstance(item, list):
        return [_map_nested(child, function) for child in item]
    return function(item)

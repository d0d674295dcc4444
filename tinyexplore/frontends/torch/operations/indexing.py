"""Operations that read or write elements at tensors of indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.tensor import Tensor


@aten("gather")
def gather(call: AtenCall, a: Tensor, axis: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Returns the elements of `a` at `index` along `axis`, in the shape of `index`."""
    if 0 in call.shape:
        return call.full(0)
    if not a.ndim:
        return a.reshape(call.shape)
    if not index.ndim:
        return a.gather(axis, index.reshape((1,))).reshape(())
    return a.gather(axis, index)


@aten("index", "_unsafe_index")
def index(call: AtenCall, a: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """Returns the elements of `a` at `indices`, one tensor per axis; None takes the whole axis."""
    if any(index_tensor is not None and dtypes.is_bool(index_tensor.dtype) for index_tensor in indices):
        raise TranslationError("the size of a[mask] depends on values")
    if any(index_tensor is not None and index_tensor.dtype is dtypes.uint8 for index_tensor in indices):
        raise TranslationError("uint8 masks have no translation")
    if 0 in call.shape:
        return call.full(0)
    return a[tuple([slice(None) if index_tensor is None else index_tensor for index_tensor in indices])]


@aten("index_select")
def index_select(call: AtenCall, a: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Returns the slices of `a` at `indices` along `axis`."""
    if 0 in call.shape:
        return call.full(0)
    if not a.ndim:
        return a.reshape(call.shape)
    return a[tuple([slice(None)] * (axis % a.ndim) + [indices.reshape((-1,))])]


@aten("embedding")
def embedding(call: AtenCall, weight: Tensor, indices: Tensor, *options: Any) -> Tensor:
    """Returns the rows of the table `weight` at `indices`, in the shape of `indices` with the width added."""
    return call.full(0) if 0 in call.shape else weight[indices]


@aten("embedding_dense_backward")
def embedding_dense_backward(
    call: AtenCall, gradient: Tensor, indices: Tensor, rows: int, padding: int, by_frequency: bool
) -> Tensor:
    """Returns the gradient of the table: for each row, the sum over its uses."""
    if by_frequency:
        raise TranslationError("scale_grad_by_freq has no translation")
    width, count = gradient.shape[-1], indices.numel()
    flat = gradient.reshape((count, width))
    numbers = indices.reshape((count, 1)).expand((count, width))
    if padding >= 0:
        flat = (numbers == padding).where(0, flat)
    return Tensor.zeros(rows, width, dtype=gradient.dtype).scatter_reduce(0, numbers, flat, "sum")


def _cut(source: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Returns the first elements of `source` along each axis: the part of shape `shape`."""
    return source if source.shape == shape else source.shrink(tuple([(0, size) for size in shape]))


def _write_at_indices(
    call: AtenCall, a: Tensor, axis: int, indices: Tensor, source: Any, reduce: str, include: bool = True
) -> Tensor:
    """Returns `a` with elements of the source at the indices along an axis, written (reduce="") or reduced."""
    if not a.ndim:
        source = source.reshape((1,)) if isinstance(source, Tensor) else source
        return _write_at_indices(call, a.reshape((1,)), 0, indices.reshape((1,)), source, reduce, include).reshape(())
    if 0 in indices.shape:
        return a
    if not indices.ndim:
        indices, source = indices.reshape((1,)), source.reshape((1,)) if isinstance(source, Tensor) else source
    if not isinstance(source, Tensor):
        source = Tensor.full(indices.shape, source, dtype=a.dtype)
    part = _cut(source, indices.shape).cast(a.dtype)
    if not reduce:
        return a.scatter(axis, indices, part)
    return a.scatter_reduce(axis, indices, part, reduce, include)


@aten("scatter")
def scatter(call: AtenCall, a: Tensor, axis: int, indices: Tensor, source: Any, *, reduce: str | None = None) -> Tensor:
    """Returns `a` with elements of the source written at the indices along an axis."""
    return _write_at_indices(call, a, axis, indices, source, {None: "", "add": "sum", "multiply": "prod"}[reduce])


@aten("scatter_add")
def scatter_add(call: AtenCall, a: Tensor, axis: int, indices: Tensor, source: Tensor) -> Tensor:
    """Returns `a` with elements of the source added at the indices along an axis."""
    return _write_at_indices(call, a, axis, indices, source, "sum")


@aten("scatter_reduce")
def scatter_reduce(
    call: AtenCall, a: Tensor, axis: int, indices: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Returns `a` with elements of the source reduced into the indices along an axis."""
    return _write_at_indices(call, a, axis, indices, source, reduce, include_self)


@aten("index_add")
def index_add(call: AtenCall, a: Tensor, axis: int, indices: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Returns `a` with slices of the source added to slices of an axis."""
    if not a.ndim or 0 in source.shape or not source.ndim:
        raise TranslationError("index_add without axes or elements has no translation")
    axis %= a.ndim
    shape = tuple([source.shape[axis] if number == axis else 1 for number in range(a.ndim)])
    wide = indices.reshape(shape).expand(source.shape)
    part = source * alpha if alpha != 1 else source
    return a.scatter_reduce(axis, wide, part.cast(a.dtype), "sum")


@aten("index_put", "_unsafe_index_put")
def index_put(
    call: AtenCall, a: Tensor, indices: Sequence[Tensor | None], value: Tensor, accumulate: bool = False
) -> Tensor:
    """Returns `a` with a value written or added to the elements at indices of several axes."""
    index_tensors = [index_tensor for index_tensor in indices if index_tensor is not None]
    if any(index_tensor.dtype in (dtypes.bool, dtypes.uint8) for index_tensor in index_tensors):
        return _write_where_masked(a, indices, value, accumulate)
    if 0 in a.shape or any(0 in index_tensor.shape for index_tensor in index_tensors) or not index_tensors:
        return a if index_tensors else value.cast(a.dtype).expand(a.shape)
    axes = [axis for axis, index_tensor in enumerate(indices) if index_tensor is not None]
    sizes = _broadcast([index_tensor.shape for index_tensor in index_tensors])
    others = [axis for axis in range(a.ndim) if axis not in axes]
    strides = [math.prod(a.shape[axis + 1 :]) for axis in range(a.ndim)]
    flat = Tensor.zeros(*sizes, *[1] * len(others), dtype=dtypes.int64)
    for axis, index_tensor in zip(axes, index_tensors):
        number = index_tensor.cast(dtypes.int64)
        number = (number < 0).where(number + a.shape[axis], number) * strides[axis]
        flat = flat + number.reshape((*[1] * (len(sizes) - number.ndim), *number.shape, *[1] * len(others)))
    for position, axis in enumerate(others):
        steps = Tensor.arange(a.shape[axis]).cast(dtypes.int64) * strides[axis]
        flat = flat + steps.reshape(tuple([a.shape[axis] if position == other else 1 for other in range(len(others))]))
    shape = (*sizes, *[a.shape[axis] for axis in others])
    flat = flat.expand(shape)
    is_together = axes == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if is_together else 0
    picked_shape = (*shape[len(sizes) : len(sizes) + first], *sizes, *shape[len(sizes) + first :])
    spread = value.cast(a.dtype).reshape((*[1] * (len(picked_shape) - value.ndim), *value.shape)).expand(picked_shape)
    order = (*range(first, first + len(sizes)), *range(first), *range(first + len(sizes), len(picked_shape)))
    spread = spread.permute(order).reshape((-1,)) if len(picked_shape) else spread.reshape((1,))
    memory, numbers = a.reshape((-1,)), flat.reshape((-1,))
    if accumulate:
        return memory.scatter_reduce(0, numbers, spread, "sum").reshape(a.shape)
    return memory.scatter(0, numbers, spread).reshape(a.shape)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(len(shape) for shape in shapes)
    padded = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    return tuple([0 if 0 in sizes else max(sizes) for sizes in zip(*padded)])


def _write_where_masked(a: Tensor, indices: Sequence[Tensor | None], value: Tensor, accumulate: bool) -> Tensor:
    """Returns `a` with one value where a mask over the first axes is true."""
    if len(indices) != 1 or indices[0] is None or value.numel() != 1 or not dtypes.is_bool(indices[0].dtype):
        raise TranslationError("a[mask] = values has a translation only for one bool mask and one value")
    mask = indices[0].reshape((*indices[0].shape, *[1] * (a.ndim - indices[0].ndim)))
    update = value.cast(a.dtype).reshape(())
    return mask.where(a + update if accumulate else update, a)

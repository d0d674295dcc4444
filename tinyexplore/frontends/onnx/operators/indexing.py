"""Operators that read or write at computed indices: gather, scatter, one-hot, sort, select."""

from __future__ import annotations

import math

import numpy as np

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.values import Value, check_shape
from tinyexplore.tensor import Tensor

REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def wrap_indices(index: Tensor, size: int) -> Tensor:
    """Returns indices counted from the front: a negative index counts from the end."""
    index = index.cast(dtypes.int64)
    return (index < 0).where(index + size, index)


@operator("Gather")
def _gather(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    axis = node.axis(x.ndim)
    index = node.inputs[1]
    if isinstance(index, np.ndarray) and index.ndim == 0:
        position = int(index)
        if not -x.shape[axis] <= position < x.shape[axis]:
            raise OnnxError(f"Gather: index {position} is out of range for an axis of size {x.shape[axis]}")
        return x[tuple([slice(None)] * axis + [position])]
    return x[tuple([slice(None)] * axis + [wrap_indices(node.tensor(1), x.shape[axis])])]


@operator("GatherElements")
def _gather_elements(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    axis = node.axis(x.ndim)
    return x.gather(axis, wrap_indices(node.tensor(1), x.shape[axis]))


@operator("GatherND")
def _gather_nd(node: OnnxNode) -> Tensor:
    x, index = node.tensor(0), node.tensor(1)
    batch, count = node.attribute("batch_dims", 0), index.shape[-1]
    rank = index.ndim - 1
    indices = [
        Tensor.arange(x.shape[axis]).reshape(tuple(-1 if dim == axis else 1 for dim in range(rank)))
        for axis in range(batch)
    ]
    indices += [wrap_indices(index[..., dim], x.shape[batch + dim]) for dim in range(count)]
    return x[tuple(indices)]


@operator("ScatterElements", "Scatter")
def _scatter_elements(node: OnnxNode) -> Tensor:
    x, updates = node.tensor(0), node.tensor(2)
    axis = node.axis(x.ndim)
    index = wrap_indices(node.tensor(1), x.shape[axis])
    reduction = node.attribute("reduction", "none")
    if reduction == "none":
        return x.scatter(axis, index, updates)
    return x.scatter_reduce(axis, index, updates, REDUCTIONS[reduction])


@operator("ScatterND")
def _scatter_nd(node: OnnxNode) -> Tensor:
    """Scatters rows: the indexed axes become one axis, the other axes are the row."""
    x, index, updates = node.tensor(0), node.tensor(1), node.tensor(2)
    count = index.shape[-1]
    rows, width, entries = math.prod(x.shape[:count]), math.prod(x.shape[count:]), math.prod(index.shape[:-1])
    if not entries:
        return x
    flat = Tensor.zeros(*index.shape[:-1], dtype=dtypes.int64)
    for dim in range(count):
        flat = flat + wrap_indices(index[..., dim], x.shape[dim]) * math.prod(x.shape[dim + 1 : count])
    indices = flat.reshape((entries, 1)).expand((entries, width))
    target, source = x.reshape((rows, width)), updates.reshape((entries, width))
    reduction = node.attribute("reduction", "none")
    if reduction == "none":
        return target.scatter(0, indices, source).reshape(x.shape)
    return target.scatter_reduce(0, indices, source, REDUCTIONS[reduction]).reshape(x.shape)


@operator("TensorScatter")
def _tensor_scatter(node: OnnxNode) -> Tensor:
    """Writes an update into a cache, at a separate index for each batch entry."""
    cache, update = node.tensor(0), node.tensor(1)
    axis = axis_in(node.attribute("axis", -2), cache.ndim)
    size, length = cache.shape[axis], update.shape[axis]
    start = node.tensor(2).cast(dtypes.int64) if node.has(2) else Tensor.zeros(cache.shape[0], dtype=dtypes.int64)
    start = start.reshape((-1,) + (1,) * (cache.ndim - 1))
    steps = Tensor.arange(length).cast(dtypes.int64)
    indices = start + steps.reshape(tuple(-1 if dim == axis else 1 for dim in range(cache.ndim)))
    if node.attribute("mode", "linear") == "circular":
        indices = indices % size
    return cache.scatter(axis, indices.expand(tuple(update.shape)), update)


@operator("OneHot")
def _one_hot(node: OnnxNode) -> Tensor:
    depth, index, values = int(node.scalar(1)), node.tensor(0).cast(dtypes.int64), node.tensor(2)
    check_shape((*index.shape, depth))
    axis = axis_in(node.attribute("axis", -1), index.ndim + 1)
    index = wrap_indices(index, depth).unsqueeze(axis)
    classes = Tensor.arange(depth).reshape(tuple(depth if dim == axis else 1 for dim in range(index.ndim)))
    return index.eq(classes.cast(dtypes.int64)).where(values[1], values[0])


@operator("TopK")
def _top_k(node: OnnxNode) -> tuple[Value, ...]:
    x = node.tensor(0)
    count = int(node.scalar(1)) if node.has(1) else int(node.require("k"))
    values, indices = x.topk(count, node.attribute("axis", -1), bool(node.attribute("largest", 1)))
    return values, indices.cast(dtypes.int64)


# *** the size of the result depends on the elements, so these are read, and the result is an array ***


@operator("NonZero")
def _non_zero(node: OnnxNode) -> Value:
    return np.array(np.nonzero(node.array(0)), np.int64)


@operator("Compress")
def _compress(node: OnnxNode) -> Tensor:
    x, chosen = node.tensor(0), np.flatnonzero(node.array(1))
    axis = node.attribute("axis", None)
    if axis is None:
        x, axis = x.reshape(-1), 0
    return x[tuple([slice(None)] * axis_in(axis, x.ndim) + [Tensor(chosen.astype(np.int64))])]


@operator("Unique")
def _unique(node: OnnxNode) -> tuple[Value, ...]:
    array, axis = node.array(0), node.attribute("axis", None)
    values, first, inverse, counts = np.unique(array, True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not node.attribute("sorted", 1):
        order = np.argsort(first)
        rank_of = np.empty_like(order)
        rank_of[order] = np.arange(len(order))
        values = np.take(values, order, axis or 0)
        first, counts, inverse = first[order], counts[order], rank_of[inverse]
    return values, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)

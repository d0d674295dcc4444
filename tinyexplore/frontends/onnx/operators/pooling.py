"""Pooling over windows and over whole axes."""

from __future__ import annotations

import math

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.operators.convolution import Window
from tinyexplore.frontends.onnx.values import Value
from tinyexplore.tensor import Tensor


@operator("MaxPool")
def _max_pool(node: OnnxNode) -> tuple[Value, ...]:
    """Computes maximum pooling. The second output has indices in the flattened tensor, row-major or
    (`storage_order`) column-major."""
    x = node.tensor(0)
    window = Window(node, x.shape[2:], node.require("kernel_shape"))
    wants_places = node.outputs > 1 and node.used[1]
    low = x.cast(dtypes.int32) if x.dtype in (dtypes.int8, dtypes.uint8) else x
    result = low.max_pool2d(
        tuple(window.kernel),
        tuple(window.strides),
        tuple(window.dilations),
        window.padding,
        ceil_mode=bool(node.attribute("ceil_mode", 0)),
        return_indices=wants_places,
    )
    if not wants_places:
        return (result.cast(x.dtype),)
    values, indices = result
    sizes = x.shape[2:]
    if node.attribute("storage_order", 0):
        rest, strides = indices, []
        for axis in range(len(sizes)):
            strides.append(math.prod(sizes[:axis]))
        columns = indices * 0
        for axis in range(len(sizes)):
            inner = math.prod(sizes[axis + 1 :])
            columns = columns + rest // inner * strides[axis]
            rest = rest % inner
        indices = columns
    start = Tensor.arange(x.shape[0] * x.shape[1]).reshape(tuple(x.shape[:2]) + (1,) * len(sizes)) * math.prod(sizes)
    return values.cast(x.dtype), (indices + start).cast(dtypes.int64)


@operator("MaxUnpool")
def _max_unpool(node: OnnxNode) -> Tensor:
    """Writes each value at its index in the flattened result. All other elements are 0."""
    x, indices = node.tensor(0), node.tensor(1)
    kernel = list(node.require("kernel_shape"))
    window = Window(node, x.shape[2:], kernel)
    if node.has(2):
        shape = tuple(node.ints(2))
    else:
        sizes = [
            (size - 1) * window.strides[axis] + window.extent(axis) - window.before[axis] - window.after[axis]
            for axis, size in enumerate(x.shape[2:])
        ]
        shape = (*x.shape[:2], *sizes)
    if node.has(2):  # the indices are those of the smaller result that the window gives
        natural = [
            (size - 1) * window.strides[axis] + window.extent(axis) - window.before[axis] - window.after[axis]
            for axis, size in enumerate(x.shape[2:])
        ]
        inner = (*x.shape[:2], *natural)
        flat = Tensor.zeros(math.prod(inner), dtype=x.dtype)
        small = flat.scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(inner)
        return small.pad([(0, full_size - inner_size) for full_size, inner_size in zip(shape, inner)])
    flat = Tensor.zeros(math.prod(shape), dtype=x.dtype)
    return flat.scatter(0, indices.reshape(-1), x.reshape(-1)).reshape(shape)


def _average_windows(node: OnnxNode, x: Tensor, counts_padding: bool) -> Tensor:
    window = Window(node, x.shape[2:], node.require("kernel_shape"))
    return x.avg_pool2d(
        tuple(window.kernel),
        tuple(window.strides),
        tuple(window.dilations),
        window.padding,
        ceil_mode=bool(node.attribute("ceil_mode", 0)),
        count_include_pad=counts_padding,
    )


@operator("AveragePool")
def _average_pool(node: OnnxNode) -> Tensor:
    return _average_windows(node, node.tensor(0), bool(node.attribute("count_include_pad", 0)))


@operator("LpPool")
def _lp_pool(node: OnnxNode) -> Tensor:
    x, power = node.tensor(0), node.attribute("p", 2)
    window = Window(node, x.shape[2:], node.require("kernel_shape"))
    powers = x.abs().pow(power)
    ones = Tensor.ones(x.shape[1], 1, *window.kernel, dtype=x.dtype)
    if node.attribute("ceil_mode", 0):
        total = _average_windows(node, powers, True) * math.prod(window.kernel)
    else:
        total = powers.conv2d(
            ones,
            groups=x.shape[1],
            stride=tuple(window.strides),
            dilation=tuple(window.dilations),
            padding=window.padding,
        )
    return total.pow(1 / power)


def _spatial_axes(x: Tensor) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@operator("GlobalAveragePool")
def _global_average_pool(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return x.mean(_spatial_axes(x), True)


@operator("GlobalMaxPool")
def _global_max_pool(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return x.max(_spatial_axes(x), True)


@operator("GlobalLpPool")
def _global_lp_pool(node: OnnxNode) -> Tensor:
    x, power = node.tensor(0), node.attribute("p", 2)
    return x.abs().pow(power).sum(_spatial_axes(x), True).pow(1 / power)

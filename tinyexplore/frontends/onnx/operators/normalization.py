"""Normalization operators."""

from __future__ import annotations

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import Value
from tinyexplore.tensor import Tensor


def _per_channel(x: Tensor, parameter: Tensor) -> Tensor:
    return parameter.reshape((1, -1) + (1,) * (x.ndim - 2)) if x.ndim > 1 else parameter


@operator("BatchNormalization")
def _batch_norm(node: OnnxNode) -> tuple[Value, ...]:
    x, scale, bias, mean, variance = node.tensors()[:5]
    wide = x.cast(dtypes.float32) if x.dtype.itemsize < 4 else x
    epsilon = node.attribute("epsilon", 1e-5)
    if not node.attribute("training_mode", 0):
        # one factor and one summand per channel, computed once and not for each element
        factor = scale.cast(wide.dtype) * (variance.cast(wide.dtype) + epsilon).rsqrt()
        summand = bias.cast(wide.dtype) - mean.cast(wide.dtype) * factor
        return ((wide * _per_channel(x, factor) + _per_channel(x, summand)).cast(x.dtype),)
    axes = tuple(axis for axis in range(x.ndim) if axis != 1)
    found_mean, found_variance = wide.mean(axes), wide.var(axes, correction=0)
    momentum = node.attribute("momentum", 0.9)
    result = (wide - _per_channel(x, found_mean)) * (_per_channel(x, found_variance) + epsilon).rsqrt()
    result = result * _per_channel(x, scale) + _per_channel(x, bias)
    running_mean = mean * momentum + found_mean * (1 - momentum)
    running_variance = variance * momentum + found_variance * (1 - momentum)
    return result.cast(x.dtype), running_mean.cast(mean.dtype), running_variance.cast(variance.dtype)


@operator("InstanceNormalization")
def _instance_norm(node: OnnxNode) -> Tensor:
    x, scale, bias = node.tensors()
    axes = tuple(range(2, x.ndim))
    wide = x.cast(dtypes.float32) if x.dtype.itemsize < 4 else x
    centered = wide - wide.mean(axes, True)
    result = centered * ((centered * centered).mean(axes, True) + node.attribute("epsilon", 1e-5)).rsqrt()
    return (result * _per_channel(x, scale) + _per_channel(x, bias)).cast(x.dtype)


@operator("LayerNormalization")
def _layer_norm(node: OnnxNode) -> tuple[Value, ...]:
    x, scale = node.tensor(0), node.tensor(1)
    axes = tuple(range(node.axis(x.ndim, -1), x.ndim))
    stash = node.dtype_attribute("stash_type", dtypes.float32)
    wide = x.cast(stash) if x.dtype != stash and x.dtype.itemsize <= stash.itemsize else x
    mean = wide.mean(axes, True)
    centered = wide - mean
    inverse = ((centered * centered).mean(axes, True) + node.attribute("epsilon", 1e-5)).rsqrt()
    result = (centered * inverse).cast(x.dtype) * scale
    return result + node.tensor(2) if node.has(2) else result, mean, inverse


@operator("LpNormalization")
def _lp_norm(node: OnnxNode) -> Tensor:
    """Returns x divided by its L1 or L2 norm. Rows of zeros stay zero."""
    x = node.tensor(0)
    axis = node.axis(x.ndim, -1)
    norm = (x * x).sum(axis, True).sqrt() if node.attribute("p", 2) == 2 else x.abs().sum(axis, True)
    return norm.eq(0).where(0, x / norm).cast(x.dtype)


@operator("LRN")
def _lrn(node: OnnxNode) -> Tensor:
    """Computes local response normalization, over the neighboring channels of each channel."""
    x, size = node.tensor(0), int(node.require("size"))
    before = (size - 1) // 2
    padding = [(0, 0)] * x.ndim
    padding[1] = (before, size - 1 - before)
    squares = (x * x).pad(padding)
    channels = x.shape[1]
    total: Tensor | None = None
    for shift in range(size):
        part = squares.shrink(
            tuple((shift, shift + channels) if axis == 1 else (0, n) for axis, n in enumerate(squares.shape))
        )
        total = part if total is None else total + part
    assert total is not None
    factor = total * (node.attribute("alpha", 1e-4) / size) + node.attribute("bias", 1.0)
    return x / factor.pow(node.attribute("beta", 0.75))

"""Quantization: integers, or 8-bit floats, with a scale and a zero point."""

from __future__ import annotations

from tinyexplore.dtype import DType, dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.operators.convolution import convolve
from tinyexplore.frontends.onnx.operators.elementwise import cast_as_standard
from tinyexplore.frontends.onnx.values import Value
from tinyexplore.tensor import Tensor


def align(parameter: Tensor, x: Tensor, axis: int, block: int = 0) -> Tensor:
    """Returns a scale or a zero point that broadcasts with `x`: one number, one per index of an axis, or one per
    block."""
    if parameter.ndim == 0 or (parameter.ndim == 1 and parameter.shape[0] == 1 and x.ndim != 1):
        return parameter.reshape((1,) * x.ndim) if x.ndim else parameter.reshape(())
    axis = axis_in(axis, x.ndim)
    if parameter.ndim == 1 and not block:
        return parameter.reshape(tuple(-1 if dim == axis else 1 for dim in range(x.ndim)))
    repeated = parameter.repeat_interleave(block, axis)
    return repeated.shrink(tuple((0, size) for size in x.shape))


def quantize(
    x: Tensor, scale: Tensor, zero: Tensor | None, dtype: DType, axis: int = 1, block: int = 0, saturate: bool = True
) -> Tensor:
    """Returns round(x / scale) + zero, limited to the range of the dtype."""
    scale = align(scale, x, axis, block)
    ratio = x / scale.cast(x.dtype)
    if dtypes.is_float(dtype):
        return cast_as_standard(ratio, dtype, saturate)
    rounded = ratio.cast(dtypes.float32).round()
    if zero is not None:
        rounded = rounded + align(zero, x, axis, block).cast(dtypes.float32)
    return rounded.clip(float(dtypes.min(dtype)), float(dtypes.max(dtype))).cast(dtype)


def dequantize(x: Tensor, scale: Tensor, zero: Tensor | None, axis: int = 1, block: int = 0) -> Tensor:
    """Returns (x - zero) * scale, in the dtype of the scale."""
    values = x.cast(dtypes.float32 if dtypes.is_float(x.dtype) else dtypes.int32)
    if zero is not None:
        values = values - align(zero, x, axis, block).cast(values.dtype)
    return (values.cast(dtypes.float32) * align(scale, x, axis, block).cast(dtypes.float32)).cast(scale.dtype)


@operator("QuantizeLinear")
def _quantize(node: OnnxNode) -> Tensor:
    x, scale, zero = node.tensor(0), node.tensor(1), node.tensor_or(2)
    dtype = zero.dtype if zero is not None else node.dtype_attribute("output_dtype", dtypes.uint8)
    return quantize(
        x.cast(dtypes.float32) if not dtypes.is_float(x.dtype) else x,
        scale,
        zero,
        dtype,
        node.attribute("axis", 1),
        node.attribute("block_size", 0),
        bool(node.attribute("saturate", 1)),
    )


@operator("DequantizeLinear")
def _dequantize(node: OnnxNode) -> Tensor:
    return dequantize(
        node.tensor(0), node.tensor(1), node.tensor_or(2), node.attribute("axis", 1), node.attribute("block_size", 0)
    )


@operator("DynamicQuantizeLinear")
def _dynamic_quantize(node: OnnxNode) -> tuple[Value, ...]:
    x = node.tensor(0)
    low, high = x.min().minimum(0), x.max().maximum(0)
    scale = (high - low) / 255
    zero = (-low / scale).round().clip(0, 255).cast(dtypes.uint8)
    return quantize(x, scale, zero, dtypes.uint8), scale, zero


@operator("QLinearMatMul")
def _quantized_matmul(node: OnnxNode) -> Tensor:
    a = dequantize(node.tensor(0), node.tensor(1).cast(dtypes.float32), node.tensor(2), -2)
    b = dequantize(node.tensor(3), node.tensor(4).cast(dtypes.float32), node.tensor(5), -1)
    zero = node.tensor(7)
    return quantize(a.matmul(b), node.tensor(6).cast(dtypes.float32), zero, zero.dtype)


@operator("QLinearConv")
def _quantized_conv(node: OnnxNode) -> Tensor:
    x, weight, zero = node.tensor(0), node.tensor(3), node.tensor(7)
    x_scale, w_scale = node.tensor(1), node.tensor(4)
    values = x.cast(dtypes.int32) - node.tensor(2).cast(dtypes.int32)
    w_zero = align(node.tensor(5), weight, 0).cast(dtypes.int32)
    bias = node.tensor(8).cast(dtypes.int32) if node.has(8) else None
    total = convolve(node, values, weight.cast(dtypes.int32) - w_zero, bias)
    scale = x_scale * (w_scale.reshape((1, -1) + (1,) * (total.ndim - 2)) if w_scale.ndim else w_scale)
    return quantize(total.cast(dtypes.float32) * scale, node.tensor(6), zero, zero.dtype)

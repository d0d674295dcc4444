"""Operators that create tensors: constants, ranges, random numbers."""

from __future__ import annotations

import numpy as np

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import Array, Value, array_dtype, check_shape, tensor_of
from tinyexplore.tensor import Tensor


@operator("Constant")
def _constant(node: OnnxNode) -> Value:
    if not node.attributes:
        raise OnnxError(
            "Constant: the attribute value is missing; expected value, value_float, value_ints or another of its forms"
        )
    name, value = next(iter(node.attributes.items()))
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if name in ("value", "sparse_value"):
        return np.asarray(value)
    if name not in kinds:
        raise node.unsupported(f"the attribute {name!r}")
    return np.asarray(value, kinds[name])


@operator("ConstantOfShape")
def _constant_of_shape(node: OnnxNode) -> Value:
    value = np.asarray(node.attribute("value", np.zeros(1, np.float32))).reshape(-1)[0]
    shape = check_shape(tuple(node.ints(0)))
    return Tensor.full(shape, value.item(), dtype=array_dtype(np.asarray(value)))


@operator("Range")
def _range(node: OnnxNode) -> Value:
    start, limit, step = (np.asarray(node.array(number)).reshape(()) for number in range(3))
    if not step:
        raise OnnxError("Range: the step is 0; expected a positive or negative step")
    check_shape((max(int(np.ceil((float(limit) - float(start)) / float(step))), 0),))
    values: Array = np.arange(start.item(), limit.item(), step.item()).astype(start.dtype)
    return values


@operator("EyeLike")
def _eye_like(node: OnnxNode) -> Tensor:
    rows, columns = node.shape(0)
    dtype = node.dtype_attribute("dtype", node.dtype(0))
    shifted = Tensor.arange(rows).reshape((-1, 1)) + node.attribute("k", 0)
    return shifted.eq(Tensor.arange(columns)).cast(dtype)


def _random_shape(node: OnnxNode) -> tuple[int, ...]:
    return node.shape(0) if node.operator.endswith("Like") else check_shape(tuple(node.require("shape")))


@operator("RandomUniform", "RandomUniformLike")
def _random_uniform(node: OnnxNode) -> Tensor:
    """Draws from this package's generator. Ignores the attribute `seed`."""
    low, high = node.attribute("low", 0.0), node.attribute("high", 1.0)
    like = node.operator.endswith("Like")
    dtype = node.dtype_attribute("dtype", node.dtype(0) if like else dtypes.float32)
    return (Tensor.rand(*_random_shape(node)) * (high - low) + low).cast(dtype)


@operator("RandomNormal", "RandomNormalLike")
def _random_normal(node: OnnxNode) -> Tensor:
    """Draws from this package's generator. Ignores the attribute `seed`."""
    like = node.operator.endswith("Like")
    dtype = node.dtype_attribute("dtype", node.dtype(0) if like else dtypes.float32)
    mean, scale = node.attribute("mean", 0.0), node.attribute("scale", 1.0)
    return (Tensor.randn(*_random_shape(node)) * scale + mean).cast(dtype)


@operator("Multinomial")
def _multinomial(node: OnnxNode) -> Tensor:
    dtype = node.dtype_attribute("dtype", dtypes.int32)
    samples = node.tensor(0).softmax(-1).multinomial(node.attribute("sample_size", 1), replacement=True)
    return samples.cast(dtype)


@operator("HannWindow", "HammingWindow", "BlackmanWindow")
def _window(node: OnnxNode) -> Tensor:
    size = int(node.scalar(0))
    check_shape((size,))
    length = size if node.attribute("periodic", 1) else size - 1
    phase = np.arange(size) * (2 * np.pi / max(length, 1))
    weights = {
        "HannWindow": (0.5, 0.5, 0.0),
        "HammingWindow": (25 / 46, 21 / 46, 0.0),
        "BlackmanWindow": (0.42, 0.5, 0.08),
    }[node.operator]
    values = weights[0] - weights[1] * np.cos(phase) + weights[2] * np.cos(2 * phase)
    return tensor_of(values).cast(node.dtype_attribute("output_datatype", dtypes.float32))

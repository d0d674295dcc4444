"""Small ONNX models for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(
    nodes: Sequence[Any],
    inputs: dict[str, tuple[int, Sequence[Any] | None]],
    outputs: Sequence[str],
    constants: dict[str, Any] | None = None,
    opset: int = 18,
) -> ModelProto:
    """A model of these nodes. `inputs`: name → element type and shape; `constants`: initializers."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def two_layers(seed: int = 0) -> ModelProto:
    """relu(x @ w1 + b1) @ w2 with names as PyTorch's exporter gives them, for a batch of any size."""
    generator = np.random.default_rng(seed)
    constants = {
        "first.weight": generator.standard_normal((4, 8), np.float32),
        "first.bias": generator.standard_normal(8, np.float32),
        "last.weight": generator.standard_normal((8, 2), np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "first.weight"], ["product"], name="/first/MatMul"),
        helper.make_node("Add", ["product", "first.bias"], ["sum"], name="/first/Add"),
        helper.make_node("Relu", ["sum"], ["hidden"], name="/Relu"),
        helper.make_node("MatMul", ["hidden", "last.weight"], ["y"], name="/last/MatMul"),
    ]
    return model_of(nodes, {"x": (FLOAT, ["batch", 4])}, ["y"], constants)

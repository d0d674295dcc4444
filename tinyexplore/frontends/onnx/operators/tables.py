"""Numeric operators of the domain ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.tensor import Tensor

ML = "ai.onnx.ml"


@operator("ArrayFeatureExtractor", domain=ML)
def _array_feature_extractor(node: OnnxNode) -> Tensor:
    return node.tensor(0)[..., node.tensor(1).reshape(-1)]


@operator("Binarizer", domain=ML)
def _binarizer(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    return (x > node.attribute("threshold", 0.0)).cast(x.dtype)


@operator("Scaler", domain=ML)
def _scaler(node: OnnxNode) -> Tensor:
    offset, scale = (Tensor(np.array(node.attribute(name, [value]), np.float32)) for name, value in (
        ("offset", 0.0),
        ("scale", 1.0),
    ))  # fmt: skip
    return (node.tensor(0).cast(dtypes.float32) - offset) * scale


@operator("Normalizer", domain=ML)
def _normalizer(node: OnnxNode) -> Tensor:
    x = node.tensor(0).cast(dtypes.float32)
    kind = node.attribute("norm", "MAX")
    norm = {
        "MAX": lambda: x.max(-1, True),
        "L1": lambda: x.abs().sum(-1, True),
        "L2": lambda: (x * x).sum(-1, True).sqrt(),
    }[kind]()
    return norm.eq(0).where(x, x / norm)


@operator("LinearRegressor", domain=ML)
def _linear_regressor(node: OnnxNode) -> Tensor:
    x, targets = node.tensor(0).cast(dtypes.float32), node.attribute("targets", 1)
    weights = Tensor(np.array(node.require("coefficients"), np.float32).reshape(targets, -1))
    result = x.matmul(weights.transpose())
    intercepts: list[float] = node.attribute("intercepts", [])
    return result + Tensor(np.array(intercepts, np.float32)) if intercepts else result

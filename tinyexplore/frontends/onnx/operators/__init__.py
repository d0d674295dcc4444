"""The operators of the standard, by kind. Each is a function of an `OnnxNode`. Importing this package registers them
all."""

from tinyexplore.frontends.onnx.operators import (
    convolution,
    creation,
    detection,
    elementwise,
    indexing,
    movement,
    normalization,
    pooling,
    products,
    quantization,
    recurrent,
    reduction,
    resizing,
    sequences,
    signal,
    tables,
    training,
)

__all__ = [
    "convolution",
    "creation",
    "detection",
    "elementwise",
    "indexing",
    "movement",
    "normalization",
    "pooling",
    "products",
    "quantization",
    "recurrent",
    "reduction",
    "resizing",
    "sequences",
    "signal",
    "tables",
    "training",
]

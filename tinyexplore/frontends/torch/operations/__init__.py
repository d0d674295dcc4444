"""ATen operations by kind. Each is a function of a `AtenCall` and the operation's arguments. Importing registers them
all."""

from tinyexplore.frontends.torch.operations import (
    convolution,
    creation,
    elementwise,
    indexing,
    movement,
    normalization,
    ordering,
    pooling,
    products,
    reduction,
    strides,
)

__all__ = [
    "convolution",
    "creation",
    "elementwise",
    "indexing",
    "movement",
    "normalization",
    "ordering",
    "pooling",
    "products",
    "reduction",
    "strides",
]

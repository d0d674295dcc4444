"""Tensor: creation, movement, arithmetic, functions, reduction, processing, losses, indexing, random numbers."""

from tinyexplore.tensor.tensor import Tensor

__all__ = ["Tensor"]

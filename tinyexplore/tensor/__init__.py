"""Tensor: creation, movement, arithmetic, functions, reduction, processing, losses, indexing, random numbers."""

from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.lazy.roots import add_roots
from tinyexplore.tensor.function import Function
from tinyexplore.tensor.living import live_values
from tinyexplore.tensor.tensor import Tensor

add_roots(live_values)

__all__ = ["Device", "Function", "Tensor", "dtypes"]

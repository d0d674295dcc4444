"""Tensor: creation, movement, arithmetic, functions, reduction, processing, losses, indexing, random numbers."""

from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.lazy.viewers import add_viewer
from tinyexplore.tensor.function import Function
from tinyexplore.tensor.living import live_values
from tinyexplore.tensor.tensor import Tensor

add_viewer(live_values)

__all__ = ["Device", "Function", "Tensor", "dtypes"]

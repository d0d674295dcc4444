"""Tensor: creation, movement, arithmetic, functions, reduction, processing, losses, indexing, random numbers."""

from typing import cast

from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.lazy.liveness_roots import add_roots
from tinyexplore.tensor.data import numpy_type as _to_np_dtype
from tinyexplore.tensor.function import Function
from tinyexplore.tensor.live_tensors import live_values
from tinyexplore.tensor.tensor import Tensor

add_roots(live_values)

# tinygrad programs import `cast` and `_to_np_dtype` from here
__all__ = ["Device", "Function", "Tensor", "_to_np_dtype", "cast", "dtypes"]

"""Runs PyTorch programs on Tensors: `torch.compile(f, backend="tinyexplore")`, `explore(f, *tensors)`.

Dynamo and AOTAutograd convert a program to graphs of ATen operations without writes. `table` has the function on
Tensors for each operation (`operations/`). `program` divides a graph into parts that Tensors compute and parts that
ATen computes. PyTorch calls `backend`. Needs PyTorch.
"""

from tinyexplore.frontends.torch.backend import tinyexplore
from tinyexplore.frontends.torch.supported import supported_operations

__all__ = ["supported_operations", "tinyexplore"]

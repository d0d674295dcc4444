"""TinyJit: captures the kernels of a function of tensors once, and replays them without running its Python code."""

from tinyexplore.jit.arguments import JitError
from tinyexplore.jit.tinyjit import TinyJit

__all__ = ["JitError", "TinyJit"]

"""TinyJit: a function of tensors whose kernels are captured once and then replayed without its Python."""

from tinyexplore.jit.arguments import JitError
from tinyexplore.jit.tinyjit import TinyJit

__all__ = ["JitError", "TinyJit"]

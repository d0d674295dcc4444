"""Errors that are a RuntimeError, as in PyTorch and tinygrad, and also a more specific Python error."""

from tinyexplore.lazy.lazybuffer import ShapeError


class OperandError(TypeError, RuntimeError):
    """Raised for an operand of an unsupported type."""


class IndexShapeError(ShapeError, IndexError):
    """Raised for indices of several axes whose shapes cannot be broadcast together."""


class ArgumentError(ValueError, RuntimeError):
    """Raised for an argument that is not allowed, or for two arguments that contradict each other."""

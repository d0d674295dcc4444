"""Misuse that PyTorch and tinygrad call a RuntimeError, and Python by a kind that says more: these are both."""

from tinyexplore.lazy.lazybuffer import ShapeError


class OperandError(TypeError, RuntimeError):
    """An operand of a type that the operation has no meaning for."""


class IndexShapeError(ShapeError, IndexError):
    """Indices of several axes, whose shapes do not go together."""


class ArgumentError(ValueError, RuntimeError):
    """An argument that is none of the possible ones, or two that contradict each other."""

"""Reverse-mode automatic differentiation: the steps of the tape, and one gradient rule per operation."""

from tinyexplore.autograd.graph import CustomGradient, CustomGradientByPath, MissingGraphError, taped_graph
from tinyexplore.autograd.indexing import broadcast_gather_gradient, take_gradient
from tinyexplore.autograd.rules import (
    GRADIENTS,
    assigned_gradient,
    cat_gradient,
    deviation_gradient,
    relu_gradient,
    sigmoid_gradient,
    stationary_gradient,
)
from tinyexplore.autograd.scans import cumprod_gradient, logcumsumexp_gradient
from tinyexplore.autograd.second_order import BackwardPass, GradientStep
from tinyexplore.autograd.tape import GradientRule, TapeEntry, TapeTensor, gradients
from tinyexplore.autograd.taped_buffer import TapedBuffer

__all__ = [
    "GRADIENTS",
    "MissingGraphError",
    "GradientStep",
    "GradientRule",
    "CustomGradient",
    "CustomGradientByPath",
    "TapeEntry",
    "TapeTensor",
    "TapedBuffer",
    "BackwardPass",
    "assigned_gradient",
    "cat_gradient",
    "cumprod_gradient",
    "deviation_gradient",
    "gradients",
    "logcumsumexp_gradient",
    "broadcast_gather_gradient",
    "relu_gradient",
    "sigmoid_gradient",
    "stationary_gradient",
    "take_gradient",
    "taped_graph",
]

"""Reverse-mode differentiation: the tape's steps, and one gradient rule per operation."""

from tinyexplore.autograd.places import picked_gradient
from tinyexplore.autograd.rules import GRADIENTS, relu_gradient, sigmoid_gradient
from tinyexplore.autograd.tape import GradientRule, Step, Taped, gradients

__all__ = [
    "GRADIENTS",
    "GradientRule",
    "Step",
    "Taped",
    "gradients",
    "picked_gradient",
    "relu_gradient",
    "sigmoid_gradient",
]

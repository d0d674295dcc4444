"""The memory layout of moved tensors: a View maps indices to memory offsets, a ShapeTracker is a stack of Views."""

from tinyexplore.shape.shapetracker import ShapeTracker
from tinyexplore.shape.view import View

__all__ = ["ShapeTracker", "View"]

"""Shapes as arithmetic: a View says where each element lies, a ShapeTracker is a stack of Views."""

from tinyexplore.shape.shapetracker import ShapeTracker
from tinyexplore.shape.view import View

__all__ = ["ShapeTracker", "View"]

"""The shape view: a ShapeTracker as grids of logical index, position in memory and mask."""

from tinyexplore.explore.analysis.shapes.cells import Cell
from tinyexplore.explore.analysis.shapes.view import ShapeView, shape

__all__ = ["Cell", "ShapeView", "shape"]

"""Lowering: converts a Kernel to a linear list of UOps, by named passes (`codegen/pipeline.py`)."""

from tinyexplore.codegen.cost import bytes_moved, flop_count
from tinyexplore.codegen.passes import GraphPass, Pass, Rewrite
from tinyexplore.codegen.pipeline import PASSES, lower

__all__ = ["PASSES", "Pass", "Rewrite", "GraphPass", "bytes_moved", "flop_count", "lower"]

"""Lowering: a Kernel becomes a linear list of UOps, by named passes of named rules."""

from tinyexplore.codegen.cost import bytes_moved, flop_count
from tinyexplore.codegen.passes import all_passes, lower

__all__ = ["all_passes", "bytes_moved", "flop_count", "lower"]

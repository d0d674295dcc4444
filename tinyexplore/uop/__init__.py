"""UOp, the IR node of kernels; patterns and rules on UOps; rewriting."""

from tinyexplore.uop.ops import Axis, AxisKind, OpGroups, Ops
from tinyexplore.uop.pattern import PatternMatcher, Rule, UPat, cvar, law, rule, var
from tinyexplore.uop.rewrite import RewriteError, graph_rewrite
from tinyexplore.uop.symbolic import SymbolicError
from tinyexplore.uop.uop import UOp, index_const

__all__ = [
    "Axis",
    "AxisKind",
    "OpGroups",
    "Ops",
    "PatternMatcher",
    "RewriteError",
    "Rule",
    "SymbolicError",
    "UOp",
    "UPat",
    "cvar",
    "graph_rewrite",
    "index_const",
    "law",
    "rule",
    "var",
]

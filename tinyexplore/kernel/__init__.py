"""Kernels, the Opts that transform their loops, the default schedule, and the search for Opts."""

from tinyexplore.kernel.apply import apply_opt, apply_opts, undo_opt
from tinyexplore.kernel.heuristics import apply_heuristics
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.legality import available_opts, illegal_because
from tinyexplore.kernel.opt import Opt, OptError, OptOps
from tinyexplore.kernel.search import SearchResult, beam_search

__all__ = [
    "Kernel",
    "Opt",
    "OptError",
    "OptOps",
    "SearchResult",
    "apply_opt",
    "apply_opts",
    "available_opts",
    "beam_search",
    "apply_heuristics",
    "illegal_because",
    "undo_opt",
]

"""Kernels, the Opts on their axes, and the choice of Opts."""

from tinyexplore.kernel.decisions import hand_coded
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opts import Opt, OptError, OptOps
from tinyexplore.kernel.search import SearchResult, beam_search

__all__ = ["Kernel", "Opt", "OptError", "OptOps", "SearchResult", "beam_search", "hand_coded"]

"""Where programs of this family import helpers from: the same names as in `tinyexplore`."""

from math import prod

from tinyexplore.util import Context, ContextVar, GlobalCounters, Profiling, Timing, fetch, getenv

__all__ = ["Context", "ContextVar", "GlobalCounters", "Profiling", "Timing", "fetch", "getenv", "prod"]

"""Utilities that every package may use: graph walks, the configuration, and counters of work."""

from tinyexplore.util.config import Config, Context, ContextVar, config, config_variable, getenv
from tinyexplore.util.counters import GlobalCounters, Profiling, Timing
from tinyexplore.util.fetch import FetchError, fetch
from tinyexplore.util.graph import consumers, toposort
from tinyexplore.util.private_folder import cache_folder

__all__ = [
    "Config",
    "Context",
    "ContextVar",
    "FetchError",
    "GlobalCounters",
    "Profiling",
    "Timing",
    "cache_folder",
    "config",
    "config_variable",
    "consumers",
    "fetch",
    "getenv",
    "toposort",
]

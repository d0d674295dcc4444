"""Graph walks and the one configuration: what every floor may use."""

from tinyexplore.util.config import Config, Context, config, getenv
from tinyexplore.util.graph import consumers, toposort

__all__ = ["Config", "Context", "config", "consumers", "getenv", "toposort"]

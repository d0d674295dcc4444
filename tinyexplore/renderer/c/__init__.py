"""C with the vector extensions that gcc and clang share."""

from tinyexplore.renderer.c.renderer import CRenderer

__all__ = ["CRenderer"]

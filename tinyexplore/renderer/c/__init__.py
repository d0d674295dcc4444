"""Renders C with the vector extensions that GCC and Clang share."""

from tinyexplore.renderer.c.renderer import CRenderer

__all__ = ["CRenderer"]

"""Python, which the reference device runs."""

from tinyexplore.renderer.python.renderer import PythonRenderer, meaning_name, memory_format

__all__ = ["PythonRenderer", "meaning_name", "memory_format"]

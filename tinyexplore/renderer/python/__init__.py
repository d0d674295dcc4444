"""Renders Python, which the reference device runs."""

from tinyexplore.renderer.python.renderer import (
    PythonRenderer,
    PythonWriter,
    WorkItemWriter,
    meaning_name,
    memory_format,
)

__all__ = ["PythonRenderer", "PythonWriter", "WorkItemWriter", "meaning_name", "memory_format"]

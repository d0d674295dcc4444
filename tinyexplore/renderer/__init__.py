"""Renderers: write the linear program as source. Each line has the UOps that it comes from."""

from tinyexplore.renderer.program import CompileOptions, Effort, ProgramSpec, RenderError

__all__ = ["CompileOptions", "Effort", "ProgramSpec", "RenderError"]

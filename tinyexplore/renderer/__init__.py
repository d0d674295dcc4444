"""Writing the linear program as source, every line with the UOps that made it."""

from tinyexplore.renderer.program import CompileOptions, Effort, ProgramSpec, RenderError

__all__ = ["CompileOptions", "Effort", "ProgramSpec", "RenderError"]

"""Writing the linear program as source, every line with the UOps that made it."""

from tinyexplore.renderer.program import ProgramSpec, RenderError

__all__ = ["ProgramSpec", "RenderError"]

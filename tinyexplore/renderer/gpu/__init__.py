"""The C-like languages of GPUs: OpenCL C, CUDA C++, HIP, Metal."""

from tinyexplore.renderer.gpu.dialects import DIALECTS, Dialect
from tinyexplore.renderer.gpu.renderer import GPURenderer, in_other_languages

__all__ = ["DIALECTS", "Dialect", "GPURenderer", "in_other_languages"]

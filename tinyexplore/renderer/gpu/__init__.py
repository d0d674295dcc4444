"""The languages of GPUs: OpenCL C, CUDA C++, HIP and Metal, which are like C, and WGSL."""

from tinyexplore.renderer.gpu.dialects import DIALECTS, Dialect
from tinyexplore.renderer.gpu.renderer import LANGUAGES, GPURenderer, in_other_languages

__all__ = ["DIALECTS", "LANGUAGES", "Dialect", "GPURenderer", "in_other_languages"]

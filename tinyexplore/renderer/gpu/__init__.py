"""Renders the languages of GPUs: OpenCL C, CUDA C++, HIP and Metal, which resemble C, and WGSL."""

from tinyexplore.renderer.gpu.accesses import ALIGNMENT
from tinyexplore.renderer.gpu.dialects import DIALECTS, GPUDialect
from tinyexplore.renderer.gpu.renderer import GPU_LANGUAGES, GPURenderer, in_other_languages
from tinyexplore.renderer.gpu.vectors import MAX_LANES, VectorRenderer, scratch_in_memory

__all__ = [
    "ALIGNMENT",
    "DIALECTS",
    "GPU_LANGUAGES",
    "MAX_LANES",
    "GPUDialect",
    "GPURenderer",
    "VectorRenderer",
    "in_other_languages",
    "scratch_in_memory",
]

"""LLVM's passes: the text of a kernel after each, from the rendered IR to the assembly."""

from tinyexplore.explore.analysis.passes.pipeline_run import (
    LLVMPassesError,
    Pipeline,
    kernel_passes,
    module_passes,
    object_code,
)
from tinyexplore.explore.analysis.passes.sequence import LLVMPass, LLVMPasses, PassLine, PipelineTimes, Remark, Spill
from tinyexplore.explore.analysis.passes.stages import pass_tables, trace_of

__all__ = [
    "LLVMPass",
    "LLVMPasses",
    "LLVMPassesError",
    "PassLine",
    "Pipeline",
    "PipelineTimes",
    "Remark",
    "Spill",
    "kernel_passes",
    "module_passes",
    "object_code",
    "pass_tables",
    "trace_of",
]

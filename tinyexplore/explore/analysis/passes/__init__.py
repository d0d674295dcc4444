"""LLVM's passes: the text of a kernel after each, from the rendered IR to the assembly."""

from tinyexplore.explore.analysis.passes.run import LLVMPassesError, Pipeline, kernel_passes, module_passes
from tinyexplore.explore.analysis.passes.sequence import LLVMPass, LLVMPasses, PassLine, Remark

__all__ = [
    "LLVMPass",
    "LLVMPasses",
    "LLVMPassesError",
    "PassLine",
    "Pipeline",
    "Remark",
    "kernel_passes",
    "module_passes",
]

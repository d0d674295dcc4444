"""Renders LLVM IR, and chooses LLVM's optimization effort."""

from tinyexplore.renderer.llvm.renderer import LLVMRenderer, with_debug_info

__all__ = ["LLVMRenderer", "with_debug_info"]

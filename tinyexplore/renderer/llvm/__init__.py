"""LLVM IR: how it is written, and how much LLVM is to do for it."""

from tinyexplore.renderer.llvm.renderer import LLVMRenderer, with_debug_info

__all__ = ["LLVMRenderer", "with_debug_info"]

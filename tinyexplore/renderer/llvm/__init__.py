"""LLVM IR: its renderer, and the choice of LLVM's optimization effort."""

from tinyexplore.renderer.llvm.renderer import LLVMRenderer, with_debug_info

__all__ = ["LLVMRenderer", "with_debug_info"]

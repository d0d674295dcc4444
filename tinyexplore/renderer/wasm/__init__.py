"""Renders WebAssembly with vectors of 16 bytes as text, and assembles it to the binary format."""

from tinyexplore.renderer.wasm.assembler import AssemblerError, assemble
from tinyexplore.renderer.wasm.renderer import WASMRenderer

__all__ = ["AssemblerError", "WASMRenderer", "assemble"]

"""WebAssembly with vectors of 16 bytes: its text format, and the binary of that, by an assembler of our own."""

from tinyexplore.renderer.wasm.assembler import AssemblerError, assemble
from tinyexplore.renderer.wasm.renderer import WASMRenderer

__all__ = ["AssemblerError", "WASMRenderer", "assemble"]

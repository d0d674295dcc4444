"""Opens the LLVM device."""

from __future__ import annotations

from tinyexplore.device import DeviceInterface
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.runtime.gpu import text_device
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.llvm import compiler_for, llvm_target
from tinyexplore.runtime.pool import make_pool_ahead
from tinyexplore.runtime.wasm import wasm_text_device
from tinyexplore.target import WASM32, current_choice


def open_llvm() -> DeviceInterface:
    """Opens the LLVM device for the current TARGET. For a GPU or wasm32, it only writes the program's texts.

    Raises DeviceUnavailable if llvmlite is not installed.
    """
    choice = current_choice()
    if choice.gpu is not None:
        return text_device("LLVM", choice)
    if choice.cpu == WASM32:
        return wasm_text_device("LLVM", choice.text)
    compiler = compiler_for(choice.cpu)
    target = llvm_target(compiler, choice)
    renderer = LLVMRenderer(target, compiler.version)
    make_pool_ahead()
    return DeviceInterface(
        "LLVM", target, HOST_ALLOCATOR, renderer, compiler.compile, compiler.listings, compiler.refusal
    )


__all__ = ["open_llvm"]

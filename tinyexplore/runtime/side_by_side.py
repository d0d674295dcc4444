"""LLVM's long calls without llvmlite's lock, so that several threads compile at once.

llvmlite has one lock around every call of LLVM, for programs whose threads share a context
(https://github.com/numba/llvmlite/pull/318). What shares no context and no target machine needs none
(https://llvm.org/docs/ProgrammersManual.html#threads-and-llvm): these calls let go of the interpreter too. With
INTERPRETER_TRICKS=0 they are llvmlite's own.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tinyexplore.util.interpreter import TRICKS, dispose_passes, without_lock


def parsed(ir: str, context: Any) -> Any:
    """What `parse_assembly(ir, context)` gives. No other thread may use `context`. RuntimeError where `ir` is none."""
    from llvmlite.binding import ffi, parse_assembly
    from llvmlite.binding.module import ModuleRef

    if not TRICKS:
        return parse_assembly(ir, context)
    with ffi.OutputString() as words:
        module = ModuleRef(without_lock("LLVMPY_ParseAssembly")(context, ir.encode(), words), context)
        if words:
            module.close()
            raise RuntimeError(f"this is no LLVM IR: {words}")
    return module


def verify(module: Any) -> None:
    """What `module.verify()` does. No other thread may use the context of `module`. RuntimeError where it is wrong."""
    from llvmlite.binding import ffi

    if not TRICKS:
        module.verify()
        return
    with ffi.OutputString() as words:
        if without_lock("LLVMPY_VerifyModule")(module, words):
            raise RuntimeError(str(words))


def run_passes(manager: Any, module: Any, builder: Any) -> None:
    """What `manager.run(module, builder)` does; `manager` is used up. No other thread may use the context of `module`,
    nor `builder`."""
    if not TRICKS:
        manager.run(module, builder)
        return
    try:
        without_lock("LLVMPY_RunNewModulePassManager")(manager, module, builder)
    finally:
        dispose_passes(manager)


def emit_object(machine: Any, module: Any) -> bytes:
    """What `machine.emit_object(module)` does. No other thread may use `machine`, nor the context of `module`.

    RuntimeError where LLVM cannot.
    """
    if not TRICKS:
        code: bytes = machine.emit_object(module)
        return code
    words = ctypes.c_char_p()
    buffer = without_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, ctypes.byref(words))
    if not buffer:
        from llvmlite.binding import ffi

        with ffi.OutputString(init=words) as error:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(
            without_lock("LLVMPY_GetBufferStart")(buffer), without_lock("LLVMPY_GetBufferSize")(buffer)
        )
    finally:
        without_lock("LLVMPY_DisposeMemoryBuffer")(buffer)

"""Makes LLVM's long calls without llvmlite's lock, so that several threads compile at the same time.

llvmlite holds one lock around every call of LLVM, for programs whose threads share a context
(https://github.com/numba/llvmlite/pull/318). Calls that share no context and no target machine need no lock
(https://llvm.org/docs/ProgrammersManual.html#threads-and-llvm). These calls also release the GIL. With
INTERPRETER_TRICKS=0, llvmlite's own calls are used.
"""

from __future__ import annotations

import ctypes
from typing import Any

from tinyexplore.util.interpreter import TRICKS, dispose_passes, without_lock


def parse_module(ir: str, context: Any) -> Any:
    """Returns the result of `parse_assembly(ir, context)`. No other thread may use `context`.

    Raises RuntimeError if `ir` is not valid.
    """
    from llvmlite.binding import ffi, parse_assembly
    from llvmlite.binding.module import ModuleRef

    if not TRICKS:
        return parse_assembly(ir, context)
    with ffi.OutputString() as message:
        module = ModuleRef(without_lock("LLVMPY_ParseAssembly")(context, ir.encode(), message), context)
        if message:
            module.close()
            raise RuntimeError(f"the text is not valid LLVM IR: {message}")
    return module


def verify(module: Any) -> None:
    """Calls `module.verify()`. No other thread may use the context of `module`. Raises RuntimeError if it is
    invalid."""
    from llvmlite.binding import ffi

    if not TRICKS:
        module.verify()
        return
    with ffi.OutputString() as message:
        if without_lock("LLVMPY_VerifyModule")(module, message):
            raise RuntimeError(str(message))


def run_passes(manager: Any, module: Any, builder: Any) -> None:
    """Calls `manager.run(module, builder)`, which consumes `manager`.

    No other thread may use `builder`, nor the context of `module`.
    """
    if not TRICKS:
        manager.run(module, builder)
        return
    try:
        without_lock("LLVMPY_RunNewModulePassManager")(manager, module, builder)
    finally:
        dispose_passes(manager)


def emit_object(machine: Any, module: Any) -> bytes:
    """Returns the result of `machine.emit_object(module)`. No other thread may use `machine`, nor the context of
    `module`.

    Raises RuntimeError if LLVM fails.
    """
    if not TRICKS:
        code: bytes = machine.emit_object(module)
        return code
    message = ctypes.c_char_p()
    buffer = without_lock("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, ctypes.byref(message))
    if not buffer:
        from llvmlite.binding import ffi

        with ffi.OutputString(init=message) as error:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(
            without_lock("LLVMPY_GetBufferStart")(buffer), without_lock("LLVMPY_GetBufferSize")(buffer)
        )
    finally:
        without_lock("LLVMPY_DisposeMemoryBuffer")(buffer)

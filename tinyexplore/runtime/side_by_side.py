"""LLVM's long calls without llvmlite's lock, so that several threads compile at once.

llvmlite has one lock around every call of LLVM, for programs whose threads share a context
(https://github.com/numba/llvmlite/pull/318). What shares no context and no target machine needs none
(https://llvm.org/docs/ProgrammersManual.html#threads-and-llvm): these calls let go of the interpreter too.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any


def parsed(ir: str, context: Any) -> Any:
    """What `parse_assembly(ir, context)` gives. No other thread may use `context`. RuntimeError where `ir` is none."""
    from llvmlite.binding import ffi
    from llvmlite.binding.module import ModuleRef

    with ffi.OutputString() as words:
        module = ModuleRef(_unlocked("LLVMPY_ParseAssembly")(context, ir.encode(), words), context)
        if words:
            module.close()
            raise RuntimeError(f"this is no LLVM IR: {words}")
    return module


def verify(module: Any) -> None:
    """What `module.verify()` does. No other thread may use the context of `module`. RuntimeError where it is wrong."""
    from llvmlite.binding import ffi

    with ffi.OutputString() as words:
        if _unlocked("LLVMPY_VerifyModule")(module, words):
            raise RuntimeError(str(words))


def run_passes(manager: Any, module: Any, builder: Any) -> None:
    """What `manager.run(module, builder)` does; `manager` is used up. No other thread may use the context of `module`,
    nor `builder`."""
    from llvmlite.binding.newpassmanagers import NewPassManager

    try:
        _unlocked("LLVMPY_RunNewModulePassManager")(manager, module, builder)
    finally:
        # 70 kB that `manager.close()` does not free: of its classes the first has a `_dispose` that does nothing
        NewPassManager._dispose(manager)
        manager.detach()


def emit_object(machine: Any, module: Any) -> bytes:
    """What `machine.emit_object(module)` does. No other thread may use `machine`, nor the context of `module`.

    RuntimeError where LLVM cannot.
    """
    words = ctypes.c_char_p()
    buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, 1, ctypes.byref(words))
    if not buffer:
        from llvmlite.binding import ffi

        with ffi.OutputString(init=words) as error:
            raise RuntimeError(str(error))
    try:
        return ctypes.string_at(_unlocked("LLVMPY_GetBufferStart")(buffer), _unlocked("LLVMPY_GetBufferSize")(buffer))
    finally:
        _unlocked("LLVMPY_DisposeMemoryBuffer")(buffer)


@cache
def _unlocked(name: str) -> Any:
    """The function `name` of llvmlite's library, with the types that llvmlite gave it."""
    from llvmlite.binding import ffi

    locked = getattr(ffi.lib, name)
    function = getattr(ctypes.CDLL(ffi.lib._name, handle=ffi.lib._handle), name)
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function

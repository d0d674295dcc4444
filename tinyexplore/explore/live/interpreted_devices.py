"""Interpreted devices of other machines.

Kernels are lowered and rendered for the Target that a page carries. The reference interpreter executes their linear
programs. A browser therefore shows the opts, UOps, C and LLVM IR of the captured machine, but neither its assembly nor
its times.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tinyexplore.device import Device, DeviceInterface
from tinyexplore.device.registry import Renderer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.renderer.c import CRenderer
from tinyexplore.renderer.llvm import LLVMRenderer
from tinyexplore.renderer.python import PythonRenderer
from tinyexplore.renderer.wasm import WASMRenderer
from tinyexplore.runtime.host_memory import HOST_ALLOCATOR
from tinyexplore.runtime.python import PythonProgram
from tinyexplore.target import WASM32, Target
from tinyexplore.trace import SourceLine

INTERPRETER = "PYTHON"  # the device whose times the interpreter measures


def use_interpreter(targets: Mapping[str, Target]) -> None:
    """Interprets the devices of `targets` in this process from now on. PYTHON is always interpreted."""
    for device, target in targets.items():
        if device != INTERPRETER:
            Device.register(device, partial(open_interpreted, device, target))


def open_interpreted(device: str, target: Target) -> DeviceInterface:
    """Returns the interface of `device` for `target`, with the interpreter instead of its native runtime."""
    renderer: Renderer = LLVMRenderer(target)
    if device == "CLANG":
        renderer = CRenderer(target)
    elif target.arch == WASM32:
        renderer = WASMRenderer(target)
    return DeviceInterface(
        device, target, HOST_ALLOCATOR, renderer, partial(_make_program, target), _return_no_listings
    )


def _make_program(target: Target, spec: ProgramSpec) -> PythonProgram:
    return PythonProgram(PythonRenderer(target, spec.compiler).render(spec.name, spec.uops))


def _return_no_listings(spec: ProgramSpec) -> list[tuple[str, tuple[SourceLine, ...]]]:
    """Returns no further listings: optimized IR and assembly need a native compiler."""
    return []


__all__ = ["INTERPRETER", "use_interpreter", "open_interpreted"]

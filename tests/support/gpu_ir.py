"""Runs LLVM IR for a GPU on this machine's CPU. So the source of PTX and AMDGCN can be tested without a GPU.

Each work-item of a group is a thread that waits at barriers. This module supplies its indices, which a GPU has in
registers. Memory of an address space is plain memory to a CPU.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tinyexplore.renderer.llvm.gpu import BACKENDS, CHOSEN_ITEMS, GPUIRRenderer
from tinyexplore.renderer.program import Launch, ProgramSpec, is_group_barrier

_NUMBER = ctypes.CFUNCTYPE(ctypes.c_int32)
_WAIT = ctypes.CFUNCTYPE(None)
_here = threading.local()


def _wait() -> None:
    _here.barrier.wait(20)


def _number(kind: str, dimension: int) -> Any:
    return _NUMBER(lambda: getattr(_here, kind)[dimension])


@cache
def _functions() -> dict[str, Any]:
    """The functions that a program calls, by their names on a GPU."""
    found: dict[str, Any] = {"llvm.nvvm.barrier0": _WAIT(_wait), "llvm.amdgcn.s.barrier": _WAIT(_wait)}
    for backend in BACKENDS.values():
        for kind, name in [*backend.numbers.items(), *([("size", backend.size)] if backend.size else [])]:
            found.update({name.format(x=letter): _number(kind, place) for place, letter in enumerate("xyz")})
    return found


@cache
def _linked() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, function in _functions().items():
        address = ctypes.cast(function, ctypes.c_void_p).value
        llvm.add_symbol(name.replace("llvm.", "gpu."), address)
    return llvm


class Loaded:
    """A program for a GPU, as machine code of this processor."""

    def __init__(self, spec: ProgramSpec) -> None:
        llvm = _linked()
        ir = GPUIRRenderer(spec.target).render(spec.name, spec.uops).source
        ir = re.sub(r"@llvm\.(nvvm|amdgcn)\.", r"@gpu.\1.", ir).replace(", addrspace(5)", "").replace(" convergent", "")
        ir = re.sub("ptx_kernel |amdgpu_kernel ", "", ir).replace("addrspacecast ptr addrspace(5)", "bitcast ptr")
        here = {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}
        machine = llvm.Target.from_default_triple().create_target_machine(opt=1, **here)
        module = llvm.parse_assembly(ir, llvm.create_context())
        module.verify()
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        self.spec, self.launch = spec, Launch.of(spec.uops)
        self.waits = any(map(is_group_barrier, spec.uops))
        prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * spec.n_buffers, *[ctypes.c_int64] * len(spec.variables))
        self.function = prototype(self.engine.get_function_address(spec.name))

    def __call__(self, arrays: Sequence[np.ndarray], values: Sequence[int] = ()) -> list[np.ndarray]:
        """Run the program on `arrays` and return the contents of its buffers."""
        held = [np.array(one) for one in arrays]
        arguments = [*[one.ctypes.data for one in held], *values]
        grid, size = [*self.launch.sizes(values), 1, 1][:3], [*(self.launch.group or (CHOSEN_ITEMS,)), 1, 1][:3]
        if self.launch.group is None:
            grid[0] = -(-grid[0] // CHOSEN_ITEMS)
        self.start(grid, size, arguments)
        return held

    def start(self, grid: Sequence[int], size: Sequence[int], arguments: Sequence[int]) -> None:
        """Run every work-item of a grid of groups.

        grid: number of groups along each axis.
        size: work-items of a group along each axis.
        arguments: addresses of the buffers, then the values of variables.
        """
        for group in itertools.product(*map(range, reversed(grid))):
            _run_group(self.function, arguments, group[::-1], size, together=self.waits)


def run(spec: ProgramSpec, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run the IR of a program on `arrays` and return the contents of its buffers."""
    return Loaded(spec)(arrays)


def _run_group(
    function: Any, addresses: Sequence[int], group: Sequence[int], size: Sequence[int], *, together: bool
) -> None:
    items = [item[::-1] for item in itertools.product(*map(range, reversed(size)))]
    barrier = threading.Barrier(len(items)) if together else None

    def work(mine: Sequence[tuple[int, ...]]) -> None:
        _here.gidx, _here.size, _here.barrier = group, size, barrier
        for _here.lidx in mine:
            function(*addresses)

    if not together:
        work(items)
        return
    threads = [threading.Thread(target=work, args=([item],)) for item in items]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

"""Machine code is unloaded with its last caller, and compiling leaves no memory and no files."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tests.support.machine_code import A_LOOP, LIGHT
from tests.support.memory import assert_no_growth
from tinyexplore.device import Device
from tinyexplore.renderer import CompileOptions, Effort
from tinyexplore.runtime.linking import MAX_LIBRARIES
from tinyexplore.runtime.llvm import LLVMCompiler, shared_compiler

KB = 1 << 10


@pytest.fixture(scope="module")
def compiler() -> LLVMCompiler:
    assert Device["LLVM"]
    return shared_compiler()


def test_a_library_is_unloaded_with_its_last_reference(compiler: LLVMCompiler) -> None:
    code = compiler.object_code(A_LOOP, LIGHT)
    compiler.linker.unload()
    before = compiler.linker.loaded
    held = [compiler.link("loop", [code], ["add_vectors"]) for _ in range(2 * MAX_LIBRARIES + 5)]
    assert compiler.linker.loaded == before + len(held)
    addresses = [library["add_vectors"] for library in held]
    assert len(set(addresses)) == len(held)
    del held[1:]
    compiler.linker.unload()
    assert compiler.linker.loaded == before + 1
    held.clear()
    compiler.link("loop", [code], ["add_vectors"])  # linking unloads what was let go
    compiler.linker.unload()
    assert compiler.linker.loaded == before


def test_linking_leaks_no_memory(compiler: LLVMCompiler) -> None:
    code = compiler.object_code(A_LOOP, LIGHT)
    count = 20 * MAX_LIBRARIES  # so that as many libraries are in LLVM's tables afterwards as before
    assert_no_growth(  # an unreferenced library holds no memory
        lambda _: compiler.link("loop", [code], ["add_vectors"]),
        warm_up=2 * MAX_LIBRARIES,
        count=count,
        objects=10,
        in_malloc=count * KB,
        resident=count * 6 * KB,
    )


@pytest.mark.parametrize("effort", [Effort.FULL, Effort.LIGHT])
def test_compiling_leaks_no_memory(compiler: LLVMCompiler, effort: Effort) -> None:
    options = CompileOptions(effort)
    assert_no_growth(
        lambda _: compiler.object_code(A_LOOP, options),
        warm_up=10,
        count=100,
        objects=10,
        in_malloc=100 * 3 * KB,  # llvmlite never frees a pass builder's callbacks: 1.5 kB each time that passes run
        resident=100 * 100 * KB,
    )


def test_any_thread_may_free_a_library_while_others_link(compiler: LLVMCompiler) -> None:
    code = compiler.object_code(A_LOOP, LIGHT)
    compiler.linker.unload()
    before = compiler.linker.loaded
    failed: list[BaseException] = []

    def work() -> None:
        try:
            held = [compiler.link("loop", [code], ["add_vectors"]) for _ in range(MAX_LIBRARIES)]
            for library in held[::-1]:
                held.remove(library)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    compiler.linker.unload()
    assert compiler.linker.loaded == before


LINK_INTO_SMALL_GAPS = """
import ctypes, mmap, sys
from tinyexplore.device import Device
from tinyexplore.renderer import CompileOptions
from tinyexplore.runtime.llvm import shared_compiler

assert Device["LLVM"]
code = shared_compiler().object_code(
    "define float @scaled(float %x) {\\n %y = fmul float %x, 0x3FF19999A0000000\\n ret float %y\\n}", CompileOptions()
)
c = ctypes.CDLL(None)
c.mmap.restype = ctypes.c_void_p
c.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
c.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | (0x4000 if sys.platform == "linux" else 0x40)  # and reserved only

held = []
for _ in range(4):
    far = c.mmap(None, 3 << 30, 0, PRIVATE, -1, 0)
    for size in (1 << 20, 1 << 16, mmap.PAGESIZE):  # all holes above it
        while (place := c.mmap(None, size, 0, PRIVATE, -1, 0)) > far:
            hole = place
    c.munmap(hole, mmap.PAGESIZE)  # for one section, and none for the next
    held.append(shared_compiler().link("scaled", [code], ["scaled"]))
    scaled = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(held[-1]["scaled"])
    assert abs(scaled(2.0) - 2.2) < 1e-6
"""


def test_sections_are_adjacent_in_a_fragmented_address_space() -> None:
    """Others reserve GiB: a WebAssembly memory does. LLVM would not fail but abort."""
    done = subprocess.run([sys.executable, "-c", LINK_INTO_SMALL_GAPS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

"""Machine code is unloaded with the last who can call it, and compiling leaves nothing behind."""

from __future__ import annotations

import threading

import pytest

from tests.support.memory import growth
from tinyexplore.device import Device
from tinyexplore.renderer import CompileOptions, Effort
from tinyexplore.runtime.linking import MOST_LIBRARIES
from tinyexplore.runtime.llvm import A_LOOP, LIGHT, LLVMCompiler, shared_compiler

KB = 1 << 10


@pytest.fixture(scope="module")
def compiler() -> LLVMCompiler:
    assert Device["LLVM"]
    return shared_compiler()


def test_a_library_is_unloaded_with_its_last_reference(compiler: LLVMCompiler) -> None:
    code = compiler.object_code(A_LOOP, LIGHT)
    compiler.linker.unload()
    before = compiler.linker.loaded
    held = [compiler.link("loop", [code], ["warm_up"]) for _ in range(2 * MOST_LIBRARIES + 5)]
    assert compiler.linker.loaded == before + len(held)
    addresses = [library["warm_up"] for library in held]
    assert len(set(addresses)) == len(held)
    del held[1:]
    compiler.linker.unload()
    assert compiler.linker.loaded == before + 1
    held.clear()
    compiler.link("loop", [code], ["warm_up"])  # linking unloads what was let go
    compiler.linker.unload()
    assert compiler.linker.loaded == before


def test_linking_leaves_nothing_behind(compiler: LLVMCompiler) -> None:
    code = compiler.object_code(A_LOOP, LIGHT)
    count = 20 * MOST_LIBRARIES  # so that as many libraries are in LLVM's tables afterwards as before
    objects, in_malloc, resident = growth(
        lambda _: compiler.link("loop", [code], ["warm_up"]), warm_up=2 * MOST_LIBRARIES, count=count
    )
    assert objects < 10
    assert in_malloc < count * KB, "a library that nobody holds keeps memory"
    assert resident < count * 6 * KB


@pytest.mark.parametrize("effort", [Effort.FULL, Effort.LIGHT])
def test_compiling_leaves_nothing_behind(compiler: LLVMCompiler, effort: Effort) -> None:
    options = CompileOptions(effort)
    objects, in_malloc, _ = growth(lambda _: compiler.object_code(A_LOOP, options), warm_up=10, count=100)
    assert objects < 10
    # llvmlite never frees what a pass builder tells of each pass to: 1.5 kB, each time that passes run
    assert in_malloc < 100 * 3 * KB, "LLVM's passes, or a module, are not freed"


def test_a_library_may_be_let_go_by_any_thread_while_others_link(compiler: LLVMCompiler) -> None:
    code = compiler.object_code(A_LOOP, LIGHT)
    compiler.linker.unload()
    before = compiler.linker.loaded
    failed: list[BaseException] = []

    def work() -> None:
        try:
            held = [compiler.link("loop", [code], ["warm_up"]) for _ in range(MOST_LIBRARIES)]
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

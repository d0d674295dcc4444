"""LLVM in several threads: the same code, no lock of llvmlite, and forks that wait."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.backends.programs import elementwise
from tests.support.machine_code import A_LOOP, LIGHT
from tinyexplore import Device
from tinyexplore.dtype import dtypes
from tinyexplore.renderer import CompileOptions
from tinyexplore.runtime.llvm import shared_compiler
from tinyexplore.util.locks import SharedLock

PATIENCE = 60.0  # seconds that only a failure takes


def programs() -> list[tuple[str, CompileOptions]]:
    """Programs that are optimized and such as are not, of a few lines and of some hundred."""
    renderer = Device["LLVM"].renderer
    found = [(A_LOOP, LIGHT)]
    for steps in range(1, 30, 4):

        def power(x: list, steps: int = steps) -> list:
            value = x[0]
            for step in range(steps):
                value = value * x[0] + float(step)
            return [value]

        spec = renderer.render("power", elementwise([dtypes.float32], power, 64 + steps)[0])
        found.append((spec.source, spec.options))
    return found


def test_parallel_compilation_equals_sequential_compilation() -> None:
    compiler, all_programs = shared_compiler(), programs()
    alone = [compiler.object_code(*program) for program in all_programs]
    start = threading.Barrier(6)

    def all_of_them(turn: int) -> list[bytes]:
        start.wait()
        order = [(place + turn) % len(all_programs) for place in range(len(all_programs))]
        made = {place: compiler.object_code(*all_programs[place]) for place in order}
        return [made[place] for place in range(len(all_programs))]

    with ThreadPoolExecutor(6) as threads:
        assert all(found == alone for found in threads.map(all_of_them, range(6)))


def test_compilation_runs_while_another_thread_has_llvmlites_lock() -> None:
    from llvmlite.binding import ffi

    from tinyexplore.runtime.unlocked_llvm import emit_object

    compiler = shared_compiler()
    with compiler._borrow_machine(LIGHT.effort) as machine:
        module = compiler._optimize(A_LOOP, LIGHT, machine)
        made: list[bytes] = []
        thread = threading.Thread(target=lambda: made.append(emit_object(machine, module)))
        with ffi.lib._lock:
            thread.start()
            thread.join(PATIENCE)
            done = bool(made)
        thread.join()
    assert done and made[0]


def test_an_exclusive_lock_waits_for_all_shared_ones_and_blocks_new_ones() -> None:
    lock, order = SharedLock(), []
    both, alone_next = threading.Barrier(2), threading.Event()

    def shares(name: str) -> None:
        with lock:
            both.wait(PATIENCE)  # any number at once
            alone_next.wait(PATIENCE)
            time.sleep(0.01)
            order.append(name)

    def comes_later() -> None:
        with lock:
            order.append("later")

    sharing = [threading.Thread(target=shares, args=(name,)) for name in ("shared", "shared")]
    for thread in sharing:
        thread.start()
    while lock._holders < 2:
        time.sleep(0.001)
    threading.Timer(0.01, alone_next.set).start()
    lock.acquire()
    order.append("alone")
    later = threading.Thread(target=comes_later)
    later.start()
    time.sleep(0.01)
    order.append("still alone")
    lock.release()
    later.join(PATIENCE)
    assert order == ["shared", "shared", "alone", "still alone", "later"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_during_compilation_can_compile() -> None:
    code = """
import os, threading
from tests.unit.runtime.test_unlocked_llvm import A_LOOP, LIGHT, shared_compiler
compiler = shared_compiler()
wanted = compiler.object_code(A_LOOP, LIGHT)
going = True
def compile_on():
    while going: compiler.object_code(A_LOOP, LIGHT)
threads = [threading.Thread(target=compile_on) for _ in range(2)]
for thread in threads: thread.start()
codes = []
for _ in range(10):
    child = os.fork()
    if child == 0: os._exit(0 if compiler.object_code(A_LOOP, LIGHT) == wanted else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
going = False
for thread in threads: thread.join()
print(codes)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, f"{[0] * 10}\n"), done.stderr

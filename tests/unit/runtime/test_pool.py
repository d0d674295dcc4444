"""The pool of native threads: each part runs once, in order, for any caller and any number of calls."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends.programs import compiled, end, linear, load, loop, pointer, store
from tests.support.patience import seconds
from tinyexplore.device import Buffer
from tinyexplore.dtype import dtypes
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import NativePool, native_pool
from tinyexplore.uop import AxisKind

i64 = dtypes.int64


def add_one(size: int) -> tuple[BoundProgram, Buffer]:
    """A program that adds one to every element of a buffer: doing a part twice or not at all shows."""
    out = pointer(0, i64, size)
    step = loop(size, 0, AxisKind.THREAD)
    uops = linear(out, step, store(out, step, load(out, step) + 1), end(step))
    buffer = Buffer("LLVM", size, i64).copyin(bytes(8 * size))
    return compiled("LLVM", uops, "add_one").bind([buffer]), buffer


def test_every_chunk_runs_once() -> None:
    pool = native_pool(4)
    for size in (1, 2, 3, 7, 64, 1000):
        for parts in (1, 2, 4, 13):
            bound, buffer = add_one(size)
            run = pool.prepare([(bound, size, parts)])
            for _ in range(20):
                run()
            assert set(buffer.memoryview().cast("q")) == {20}, (size, parts)


def test_a_cached_pool_is_not_recompiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert [NativePool(2).is_new for _ in range(2)] == [True, False]
    assert len(list(tmp_path.glob("tinyexplore/[!.]*"))) == 1


def parts_done(pool: NativePool, parts: int, jobs: int, meanwhile: Callable[[int], None]) -> list[list[list[int]]]:
    """For each job the parts that the caller did and those of its workers, in order; `meanwhile(part)` does them."""
    caller = threading.get_ident()
    done: list[tuple[bool, int]] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    def work(_: int, start: int, stop: int) -> None:
        assert stop == start + 1
        done.append((threading.get_ident() == caller, start))
        meanwhile(start)

    found = []
    for _ in range(jobs):
        done.clear()
        record = array("q", (1, ctypes.cast(work, ctypes.c_void_p).value or 0, 0, parts, parts))
        pool._run(record.buffer_info()[0])
        found.append([[part for by_caller, part in done if by_caller is who] for who in (True, False)])
    return found


def test_a_thread_keeps_its_chunk_and_alternates_direction() -> None:
    both = threading.Barrier(2)  # step by step: no thread is idle
    pool = NativePool(2)
    found = parts_done(pool, 8, 4, lambda part: both.wait(20) and None)
    there, back = [[0, 1, 2, 3], [4, 5, 6, 7]], [[3, 2, 1, 0], [7, 6, 5, 4]]
    assert found in ([there, back] * 2, [back, there] * 2)


def test_idle_threads_steal_from_the_end_of_other_chunks() -> None:
    pool = NativePool(2)
    rest = threading.Semaphore(0)
    begun = threading.Event()

    def held_up(part: int) -> None:
        if part >= 4 and not begun.is_set():
            begun.set()
            for _ in range(7):  # the worker's first part takes as long as all others
                assert rest.acquire(timeout=seconds(20))
            begun.clear()
        else:
            assert begun.wait(20)
            rest.release()

    found = parts_done(pool, 8, 2, held_up)
    there, back = [[0, 1, 2, 3, 7, 6, 5], [4]], [[3, 2, 1, 0, 4, 5, 6], [7]]
    assert found in ([there, back], [back, there])


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system keeps no thread on a core")
def test_a_worker_avoids_the_core_of_its_caller() -> None:
    core_of_this_thread = ctypes.CDLL(None).sched_getcpu
    allowed = os.sched_getaffinity(0)
    caller = threading.get_ident()
    both = threading.Barrier(2)
    workers: list[int] = []

    def meanwhile(_: int) -> None:
        both.wait(20)
        if threading.get_ident() != caller:
            workers.append(core_of_this_thread())

    pool = NativePool(2)
    try:
        for pause in (0, 0.02):  # the worker still spins, or sleeps
            for core in sorted(allowed) * 3:
                os.sched_setaffinity(0, {core})
                time.sleep(pause)
                parts_done(pool, 2, 2, meanwhile)
                assert len(workers) == 2
                assert core not in workers[-1:] or len(allowed) == 1
                workers.clear()
    finally:
        os.sched_setaffinity(0, allowed)


def test_calls_run_in_order() -> None:
    size = 256
    out, source = pointer(0, i64, size), pointer(1, i64, size)
    step = loop(size, 0, AxisKind.THREAD)
    uops = linear(out, source, step, store(out, step, load(source, step * -1 + (size - 1)) + 1), end(step))
    program = compiled("LLVM", uops, "reversed_plus_one")
    first, second = (Buffer("LLVM", size, i64).copyin(bytes(8 * size)) for _ in range(2))
    there, back = program.bind([second, first]), program.bind([first, second])
    replay = native_pool(4).prepare([(there, size, 4), (back, size, 3)] * 50)
    for _ in range(10):
        replay()  # an element read before the other half was written would count too few
    assert set(first.memoryview().cast("q")) == {1000}


def test_a_program_without_a_thread_axis_runs_once() -> None:
    out = pointer(0, i64, 1)
    bound_to = Buffer("LLVM", 1, i64).copyin(bytes(8))
    bound = compiled("LLVM", linear(out, store(out, 0, load(out, 0) + 1)), "count").bind([bound_to])
    native_pool(2).prepare([(bound, None, 2)] * 5)()
    assert list(bound_to.memoryview().cast("q")) == [5]


def test_callers_at_the_same_time_get_their_own_work_done() -> None:
    pool = native_pool(3)
    pairs = [add_one(100) for _ in range(6)]
    threads = []
    for bound, _ in pairs:
        replay = pool.prepare([(bound, 100, 3)] * 100)
        threads.append(threading.Thread(target=lambda replay=replay: [replay() for _ in range(20)]))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [set(buffer.memoryview().cast("q")) for _, buffer in pairs] == [{2000}] * 6


def test_a_closed_pool_still_runs_programs() -> None:
    pool = NativePool(2)
    bound, buffer = add_one(10)
    run = pool.prepare([(bound, 10, 2)])
    run()
    pool.close()
    run()
    assert set(buffer.memoryview().cast("q")) == {2}


def test_a_process_ends_while_workers_sleep_or_spin() -> None:
    code = (
        "from tests.unit.runtime.test_pool import *\n"
        "bound, buffer = add_one(64)\n"
        "native_pool(3).prepare([(bound, 64, 3)] * 1000)()\n"
        "print(set(buffer.memoryview().cast('q')))"
    )
    for _ in range(3):
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=seconds(60))
        assert (result.returncode, result.stdout) == (0, "{1000}\n"), result.stderr


def test_a_forked_child_has_threads_of_its_own() -> None:
    code = (
        "import os, warnings\n"
        "from tests.unit.runtime.test_pool import *\n"
        "bound, buffer = add_one(64)\n"
        "native_pool(3).prepare([(bound, 64, 3)] * 10)()\n"
        "child = os.fork()\n"
        "native_pool(3).prepare([(bound, 64, 3)] * 10)()\n"
        "found = set(buffer.memoryview().cast('q'))\n"
        "if child == 0: os._exit(0 if found == {20} else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), found)"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds(60))
    assert (result.returncode, result.stdout) == (0, "0 {20}\n"), result.stderr


def in_a_new_process(program: str) -> str:
    """The output of a program without a disk cache; its exit status must be 0."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=seconds(60),
        env={**os.environ, "CACHELEVEL": "0"},
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_a_pool_is_compiled_in_the_background() -> None:
    program = """
import threading
from tinyexplore import Device
from tinyexplore.runtime import pool
target = Device["LLVM"].target
made = [thread for thread in threading.enumerate() if thread.name == "tinyexplore-pool"]
for thread in made: thread.join()
print(list(pool._pools.pools) == [(pool.thread_count(), 0)], len(made) <= 1)
"""
    assert in_a_new_process("import os; os.environ['THREADS'] = '3'\n" + program) == "True True\n"
    alone = "import os; os.environ['THREADS'] = '1'\n" + program
    assert in_a_new_process(alone) == "False True\n"  # who computes alone divides nothing


def test_an_error_while_the_pool_starts_is_raised_at_its_first_use() -> None:
    program = """
from tinyexplore import Device, Tensor
from tinyexplore.runtime import pool
def fail(self, threads): raise OSError("no memory may be run")
pool.NativePool.__init__ = fail
Tensor([1.0]).realize()
try:
    pool.native_pool(4)
except OSError as error:
    print(error)
"""
    assert in_a_new_process(program) == "no memory may be run\n"


def test_exit_and_fork_while_the_pool_starts() -> None:
    begin = "from tinyexplore import Tensor; import os; t = Tensor([1.0, 2.0]); t.realize()\n"
    assert in_a_new_process(begin) == ""
    fork = """
child = os.fork()
t = (Tensor([1.0]).expand(1 << 20).contiguous() + 1).sum()
assert t.item() == 1 << 21
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both")
else:
    os._exit(0)
"""
    assert in_a_new_process(begin + fork) == "both\n"

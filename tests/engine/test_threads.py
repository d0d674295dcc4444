"""Threads: the rule for dividing a kernel, equal results for any number of threads, concurrent callers, forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.patience import seconds
from tinyexplore import Context, Tensor, TinyJit
from tinyexplore.execute.threads import PART_NS, PARTS_PER_THREAD, parts_for


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_little_work_stays_on_the_calling_thread() -> None:
    assert parts_for(None, float("inf"), 8) == 1
    assert parts_for(1000, 2 * PART_NS - 1, 8) == 1
    assert parts_for(1000, 3 * PART_NS, 8) == 3
    assert parts_for(1000, 8 * PART_NS, 8) == 8
    assert parts_for(1000, 23 * PART_NS, 8) == 16
    assert parts_for(1000, float("inf"), 8) == 8 * PARTS_PER_THREAD
    assert parts_for(5, float("inf"), 8) == 5
    assert parts_for(1000, float("inf"), 1) == 1


def run_together(count: int, work: Callable[[int], None]) -> None:
    """`work(0)` … `work(count - 1)`, each in a thread of its own, all started at one moment; raises what they raise."""
    barrier = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread stands still"
    if errors:
        raise errors[0]


def program(x: Tensor, w: Tensor) -> list[Tensor]:
    """Kernels that are divided: a matmul, a softmax, sums of everything, a scan, a scatter, a large elementwise one."""
    y = x @ w
    named = (y.abs() * 50).cast("int32").minimum(99)
    counts = Tensor.zeros(y.shape[0], 100).scatter_reduce(1, named, y, "sum")
    return [y.softmax(), (y * y).sum(), y.sum(axis=0), y.cumsum(axis=1), counts, (x.exp() + 1).log()]


def test_results_are_the_same_bits_with_any_number_of_threads() -> None:
    x, w = numbers(517, 300), numbers(300, 256, seed=1)
    lazily, replayed = [], []
    for threads in (1, 2, 3, 8):
        with Context(THREADS=threads):
            lazily.append([tensor.numpy() for tensor in program(Tensor(x), Tensor(w))])
            jit = TinyJit(program)
            for _ in range(3):
                result = jit(Tensor(x), Tensor(w))
            replayed.append([tensor.numpy() for tensor in result])
    for found in (lazily, replayed):  # (one by one and all together are other kernels, which may round otherwise)
        for other in found[1:]:
            for one, two in zip(found[0], other):
                np.testing.assert_array_equal(one, two)


def test_threads_compute_lazily_in_parallel() -> None:
    shared = Tensor(numbers(300, 300)).realize()
    lazy_and_shared = (shared @ shared).relu()
    expected = np.maximum(shared.numpy() @ shared.numpy(), 0)

    def work(number: int) -> None:
        for step in range(6):
            own = numbers(200 + step % 2, 300, seed=number)
            found = (Tensor(own) @ lazy_and_shared + number).numpy()
            np.testing.assert_allclose(found, own @ expected + number, rtol=1e-3, atol=1e-2)

    run_together(4, work)


def test_threads_compile_the_same_kernels_in_parallel() -> None:
    found: list[float] = []

    def work(number: int) -> None:
        for size in range(31, 34):
            x = Tensor.full((size, 41), 2.0).contiguous()
            found.append(((x * 3).sum(axis=1) - 5).max().item() - size)

    run_together(4, work)
    assert sorted(found) == sorted([241.0 - size for size in range(31, 34)] * 4)


def test_a_jit_for_each_thread_and_one_for_all() -> None:
    w = Tensor(numbers(64, 64)).realize()
    common = TinyJit(lambda x: (x @ w).relu().sum(axis=1))
    x = Tensor(numbers(256, 64, seed=3)).realize()
    expected = np.maximum(x.numpy() @ w.numpy(), 0).sum(axis=1)

    def work(number: int) -> None:
        own = TinyJit(lambda x: (x @ w + number).sum(axis=1))
        for step in range(15):
            given = numbers(256, 64, seed=step)
            found = own(Tensor(given)).numpy()
            np.testing.assert_allclose(found, (given @ w.numpy() + number).sum(axis=1), rtol=1e-3, atol=1e-2)
            np.testing.assert_allclose(common(x).numpy(), expected, rtol=1e-3, atol=1e-2)  # all give the same

    run_together(3, work)


def test_random_tensors_of_several_threads_differ() -> None:
    Tensor.manual_seed(7)
    found: list[float] = []
    run_together(4, lambda number: found.extend(Tensor.rand(1).item() for _ in range(25)))
    assert len(set(found)) == 100


# *** processes ***

SETUP = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")
import numpy as np
from tinyexplore import Context, Tensor, TinyJit
x = np.arange(600 * 600, dtype=np.float32).reshape(600, 600) % 7
expected = (x @ x).max()
def work(times=1):
    for _ in range(times):
        assert (Tensor(x) @ Tensor(x)).max().item() == expected, "wrong"
"""


def run_process(code: str, *prefix: str, threads: int = 3) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "THREADS": str(threads)}
    command = [*prefix, sys.executable, "-c", SETUP + code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds(120), env=environment)
    assert result.returncode == 0, result.stderr
    return result


def test_children_forked_while_other_threads_compute() -> None:
    run_process("""
work(2)
jit = TinyJit(lambda x: (x @ x).max())
for _ in range(3): jit(Tensor(x))
stop = threading.Event()
def busy():
    while not stop.is_set(): work()
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads: thread.start()
for _ in range(8):
    child = os.fork()
    if child == 0:
        try:
            assert jit(Tensor(x)).item() == expected
            grandchild = os.fork()
            work(2)
            if grandchild: assert os.waitpid(grandchild, 0)[1] == 0
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
stop.set()
for thread in threads: thread.join()
work()
""")


def test_multiprocessing_by_fork_after_the_pool_started() -> None:
    run_process("""
import multiprocessing
work()
with multiprocessing.get_context("fork").Pool(2) as pool:
    pool.map(work, [2] * 6)
""")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind threads to cores")
def test_many_threads_on_one_core_do_not_spin_for_each_other() -> None:
    result = run_process(
        """
import time
work()
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # what the pool does not know: it spins as if it had its cores
jit = TinyJit(lambda x: (x + 1).sum())
small = Tensor(np.ones((1024, 512), np.float32)).realize()
for _ in range(3): jit(small)
assert jit.jit_cache[0].runner.spec.thread_extent
alone = shared = 1e9
with Context(THREADS=1):
    other = TinyJit(lambda x: (x + 1).sum())
    for _ in range(3): other(small)
for _ in range(5):
    for which in (jit, other):
        began = time.process_time()
        for _ in range(100): assert which(small).item() == 1 << 20
        took = time.process_time() - began
        if which is jit: shared = min(shared, took)
        else: alone = min(alone, took)
print(shared / alone)
""",
        threads=4,
    )
    assert float(result.stdout) < 5, result.stdout  # waking and switching, a few microseconds each

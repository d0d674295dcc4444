"""Runs lists of compiled kernels in one call, without the interpreter. Worker threads share each kernel.

Gain: a kernel starts on all threads in about 1 µs; Python's ThreadPoolExecutor of two takes 26 µs (Intel Xeon, median).
The pool is machine code (`pool.ll`). Without LLVM, the calls run one after the other on the calling thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
from array import array
from collections.abc import Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import cache, partial
from hashlib import blake2b
from importlib import resources
from typing import Any

from tinyexplore.device import DeviceUnavailable
from tinyexplore.renderer.program import CompileOptions, Effort
from tinyexplore.runtime.disk_cache import load_cached
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.target import core_count, machine
from tinyexplore.util import config
from tinyexplore.util.locks import can_start_threads, new_in_children

MAX_PARTS = 65_535  # most parts of one kernel: `pool.ll` counts them in 16 bits
SPINS = 2000  # pauses before a waiting thread sleeps: some tens of microseconds
AS_WRITTEN = CompileOptions(Effort.LEAST)  # how `pool.ll` is compiled
_PAUSE = {  # the pause instruction of each machine, and its declaration
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}
# the functions that read and set the core of a thread; a system without them gets stubs
_CORES = (
    "i32 @sched_getcpu()",
    "i32 @pthread_getaffinity_np(i64, i64, ptr)",
    "i32 @pthread_setaffinity_np(i64, i64, ptr)",
)


class Batch(partial[None]):
    """A list of calls as one function without arguments, and the data with which machine code calls it: run(record)."""

    run_address: int
    record_address: int
    keeps: tuple[object, ...]


class NativePool:
    """`threads - 1` workers beside the calling thread. While the pool is busy, other callers run their calls alone.

    The workers are system threads that Python does not know. They start with the first kernel that is worth dividing. A
    forked child starts its own workers.
    """

    def __init__(self, threads: int) -> None:
        from tinyexplore.runtime.llvm import shared_compiler  # noqa: PLC0415 (cycle: it makes the pool)

        compiler = shared_compiler()
        text, key = _make_source(threads)
        self.threads = threads
        self.is_new = False  # compiled now, not read from disk

        def compiled() -> bytes:
            self.is_new = True
            return compiler.object_code(text, AS_WRITTEN)

        def link(code: bytes) -> Any:
            return compiler.link("pool", (code,), ("pool_init", "pool_stop", "pool_run"))

        self._library = load_cached(key, compiled, link)
        self._init = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(self._library["pool_init"])
        self._stop = ctypes.CFUNCTYPE(None)(self._library["pool_stop"])
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._library["pool_run"])
        self.start_anew()
        atexit.register(self.close)

    def start_anew(self) -> None:
        """Resets the list of workers: none has started yet, or this is a forked child without its parent's workers."""
        # with one core, spinning would take it from the thread waited for
        spins = SPINS if self.threads <= core_count() else 0
        self._init(self.threads - 1, spins)

    def close(self) -> None:
        """Ends the workers. Later calls run on the calling thread."""
        self._stop()

    def run(self, bound: BoundProgram, extent: int, part_count: int) -> None:
        """Runs `bound` over 0 … extent, in `part_count` parts."""
        record = array("q", (1, bound.entry_address, bound.table_address, extent, min(part_count, extent, MAX_PARTS)))
        self._run(record.buffer_info()[0])

    def prepare(self, calls: Sequence[tuple[BoundProgram, int | None, int]]) -> Batch:
        """Returns a function that runs `calls` in this order, each after the previous one is done.

        A call is (bound program, extent of its THREAD axis or None, number of parts). One part runs immediately on the
        calling thread. That is right for work of a few microseconds, which waking a worker would only delay.
        """
        record = array("q", (len(calls),))
        for bound, extent, part_count in calls:
            size = 1 if extent is None else extent
            bound.records.append((record, len(record) + 2))
            record.extend((bound.entry_address, bound.table_address, size, max(1, min(part_count, size, MAX_PARTS))))
        batch = Batch(self._run, record.buffer_info()[0])
        batch.run_address, batch.record_address = self._library["pool_run"], record.buffer_info()[0]
        batch.keeps = (self, record, [bound for bound, _, _ in calls])
        return batch


@cache
def _make_source(threads: int) -> tuple[str, str]:
    """Returns the IR of a pool of that many threads, and the cache key of its machine code."""
    from tinyexplore.runtime.llvm import shared_compiler  # noqa: PLC0415 (cycle: it makes the pool)

    compiler = shared_compiler()
    text = resources.files("tinyexplore.runtime").joinpath("pool.ll").read_text("utf-8")
    pause, declaration = _PAUSE.get(machine(), ("fence seq_cst", ""))
    text = text.replace("MAX_WORKERS", str(threads)).replace("PAUSE", pause)
    text += "\n".join((declaration, *_declare_cores(), ""))
    machine_of = "\0".join((text, str(AS_WRITTEN), compiler.version, compiler.cpu, compiler.features))
    return text, blake2b(machine_of.encode(), digest_size=20).hexdigest()


def _declare_cores() -> tuple[str, ...]:
    """Returns the functions with which `pool.ll` assigns cores: those of the system, or stubs."""
    if sys.platform == "linux":
        return tuple(f"declare {name}" for name in _CORES)
    return tuple(f"define internal {name} {{\n  ret i32 -1\n}}" for name in _CORES)


def thread_count() -> int:
    """Returns the number of threads that one kernel may use: `THREADS`, or one per core."""
    return config().THREADS or core_count()


class _PoolTable:
    """The pools of this process, by their number of threads and the number of the instance that uses them."""

    def __init__(self) -> None:
        self.pools: dict[tuple[int, int], NativePool] = {}
        self.lock = threading.RLock()

    def start_anew(self) -> None:
        for pool in self.pools.values():
            pool.start_anew()


_pools = _PoolTable()
new_in_children(_pools, "lock")

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.start_anew)


@cache
def find_native_pool(threads: int, instance: int = 0) -> NativePool | None:
    """Returns the pool of that many threads, or None without LLVM or system threads (Windows).

    Without a pool, Python threads share a kernel, and calls run one after the other.
    """
    try:
        return native_pool(threads, instance)
    except (DeviceUnavailable, RuntimeError, OSError):
        return None


def native_pool(threads: int, instance: int = 0) -> NativePool:
    """Returns the pool of that many threads, built once for each `instance`. Raises DeviceUnavailable without LLVM."""
    with _pools.lock:
        if (threads, instance) not in _pools.pools:
            _pools.pools[threads, instance] = NativePool(threads)
        return _pools.pools[threads, instance]


def make_pool_ahead() -> None:
    """Builds the pool on another thread, while the program goes on to its first kernel.

    A caller that needs the pool finds it, waits for it, or builds it. An error occurs again in that call, and is
    reported there. A program that ends immediately waits some milliseconds for it.
    """
    threads = thread_count()
    if threads > 1 and can_start_threads():
        context = copy_context()  # the options in force here
        thread = threading.Thread(target=context.run, args=(_make_quietly, threads), name="tinyexplore-pool")
        with suppress(RuntimeError):  # the interpreter is ending, or the system has no more threads
            thread.start()
            _load_makers.append(thread)


def wait_for_pool_ahead() -> None:
    """Waits until the work of `make_pool_ahead` is done."""
    for thread in tuple(_load_makers):
        thread.join()


_load_makers: list[threading.Thread] = []


def _make_quietly(threads: int) -> None:
    with suppress(Exception):
        native_pool(threads)

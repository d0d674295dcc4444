"""Running compiled kernels: a list of calls in one go, each divided among worker threads, without the interpreter.

The pool itself is machine code (`pool.ll`), so that starting a kernel on all threads costs about a microsecond and a
replayed call a fraction of one. Where there is no LLVM, the calls run one after the other on the calling thread.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from tinyexplore.device import DeviceUnavailable
from tinyexplore.runtime.native import BoundProgram, machine

SPINS = 2000  # pauses before a worker goes to sleep: some tens of microseconds
_PAUSE = {  # how each machine waits a moment: the instruction, and what it must be declared by
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}


class NativePool:
    """`threads - 1` workers beside the calling thread. Callers that come while it is busy do their calls alone."""

    def __init__(self, threads: int) -> None:
        from tinyexplore.runtime.llvm import shared_compiler

        compiler = shared_compiler()
        names = ("pool_init", "pool_stop", "pool_worker", "pool_run")
        text = resources.files("tinyexplore.runtime").joinpath("pool.ll").read_text()
        pause, declaration = _PAUSE.get(machine(), ("fence seq_cst", ""))
        text = text.replace("SPINS", str(SPINS)).replace("PAUSE", pause) + declaration + "\n"
        self._library = compiler.link("pool", compiler.object_code(text), names)
        init, self._stop, worker = (ctypes.CFUNCTYPE(None)(self._library[name]) for name in names[:3])
        self._run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(self._library["pool_run"])
        init()
        self.threads = threads
        self._workers = [threading.Thread(target=worker, daemon=True) for _ in range(threads - 1)]
        for thread in self._workers:
            thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """Sends the workers home; calls made afterwards run on the calling thread."""
        self._stop()
        for thread in self._workers:
            thread.join()

    def run(self, bound: BoundProgram, extent: int, parts: int) -> None:
        """`bound` over 0 … extent, in `parts` parts."""
        record = array("q", (bound.entry_address, bound.table_address, extent, min(parts, extent)))
        self._run(record.buffer_info()[0], 1)

    def prepare(self, calls: Sequence[tuple[BoundProgram, int | None, int]]) -> Callable[[], None]:
        """A function that runs `calls` in this order, each once the one before is done.

        A call is (bound program, extent of its THREAD axis or None, parts to divide that into). One part runs on the
        calling thread at once: right for work of a few microseconds, which waking a worker would only delay.
        """
        records = array("q")
        for bound, extent, parts in calls:
            size = 1 if extent is None else extent
            records.extend((bound.entry_address, bound.table_address, size, max(1, min(parts, size))))
        run, where, count = self._run, records.buffer_info()[0], len(calls)
        keep = (self, records, [bound for bound, _, _ in calls])

        def replay(_keep: Any = keep) -> None:
            run(where, count)

        return replay


def _forget_pools() -> None:
    """A forked child has none of its parent's threads: it makes pools of its own."""
    find_native_pool.cache_clear()
    native_pool.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


@cache
def find_native_pool(threads: int) -> NativePool | None:
    """The pool of that many threads, or None where there is no LLVM."""
    try:
        return native_pool(threads)
    except DeviceUnavailable:
        return None


@cache
def native_pool(threads: int) -> NativePool:
    """The pool of that many threads, made once. DeviceUnavailable where there is no LLVM."""
    return NativePool(threads)

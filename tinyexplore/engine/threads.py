"""The pool of threads that a kernel's THREAD axis is divided among."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import find_native_pool
from tinyexplore.target import core_count
from tinyexplore.util import config

PARTS_PER_THREAD = 4  # so that a thread that the system holds up leaves its share to the others

_pools: dict[int, ThreadPoolExecutor] = {}
_pools_lock = threading.Lock()


def thread_count() -> int:
    """Threads that one kernel may use: `THREADS`, or one per core."""
    return config().THREADS or core_count()


def _pool(workers: int) -> ThreadPoolExecutor:
    with _pools_lock:
        if workers not in _pools:
            _pools[workers] = ThreadPoolExecutor(workers, thread_name_prefix="tinyexplore")
        return _pools[workers]


def run_divided(bound: Callable[[int, int], None], extent: int | None) -> None:
    """`bound` over 0 … extent on all threads: machine code in small parts by whoever is free, else in equal ones."""
    if extent is None:
        bound(0, 1)
        return
    parts = min(thread_count(), extent)
    if parts <= 1:
        bound(0, extent)
        return
    native = find_native_pool(thread_count()) if isinstance(bound, BoundProgram) else None
    if native is not None and isinstance(bound, BoundProgram):
        native.run(bound, extent, parts * PARTS_PER_THREAD)
        return
    edges = [extent * part // parts for part in range(parts + 1)]
    pool = _pool(parts - 1)
    waiting: list[Future[None]] = [pool.submit(bound, edges[part], edges[part + 1]) for part in range(1, parts)]
    bound(edges[0], edges[1])
    for future in waiting:
        future.result()

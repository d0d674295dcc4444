"""When a kernel goes parallel, and the pool of threads that its THREAD axis is divided among.

The rule: a kernel has a THREAD axis if its opts give it one (`kernel/decisions/threads.py` says for how many steps).
Each run is then divided into parts that take about `PART_NS` at the least, by an estimate from bytes and operations.
Work for less than two parts is done by the calling thread: no worker is woken, and nothing is paid for those that there
are. Which thread does which part changes no result: the kernel's steps do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial

from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import find_native_pool, thread_count
from tinyexplore.target import Target
from tinyexplore.util.workers import Job, ThreadWorkers

PARTS_PER_THREAD = 4  # so that a thread that the system holds up leaves its share to the others
PART_NS = 5_000  # waking a worker costs some microseconds

current_instance: ContextVar[int] = ContextVar("tinyexplore_instance", default=0)  # which of several instances running


def estimated_ns(flops: int, bytes_moved: int, target: Target) -> float:
    """About how long one core takes; what comes from memory takes longer, and is large enough anyway."""
    return flops / target.flops_per_ns + bytes_moved / target.bytes_per_ns


def parts_for(extent: int | None, work_ns: float, threads: int) -> int:
    """Into how many parts to divide a THREAD axis of `extent` steps, all together `work_ns` of work for one core."""
    if extent is None or threads < 2 or work_ns < 2 * PART_NS:
        return 1
    worth = int(min(work_ns / PART_NS, threads * PARTS_PER_THREAD))
    return min(extent, worth if worth < threads else worth // threads * threads)


@cache
def _workers(count: int) -> ThreadWorkers:
    return ThreadWorkers(count)


def run_divided(bound: Callable[[int, int], None], extent: int | None, work_ns: float = float("inf")) -> None:
    """`bound` over 0 … extent, by as many threads as `work_ns` is worth.

    Machine code in small parts, of which each thread has its share and helps others when it is done; what Python runs
    in one part for each thread.
    """
    if extent is None:
        bound(0, 1)
        return
    threads = thread_count()
    parts = parts_for(extent, work_ns, threads)
    if parts == 1:
        bound(0, extent)
        return
    native = find_native_pool(threads, current_instance.get()) if isinstance(bound, BoundProgram) else None
    if native is not None and isinstance(bound, BoundProgram):
        native.run(bound, extent, parts)
        return
    parts = min(parts, threads)
    edges = [extent * part // parts for part in range(parts + 1)]
    jobs = [Job(partial(bound, edges[part], edges[part + 1])) for part in range(1, parts)]
    _workers(threads - 1).do(jobs, partial(bound, edges[0], edges[1]))


__all__ = ["estimated_ns", "parts_for", "run_divided", "thread_count"]

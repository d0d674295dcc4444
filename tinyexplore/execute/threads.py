"""Decides when a kernel runs in parallel, and divides its THREAD axis among a pool of threads.

A kernel has a THREAD axis if its opts include one (`kernel/heuristics/threads.py` says for how many steps). Each run is
then divided into parts of at least about `PART_NS`, by an estimate from bytes and operations. Work for less than two
parts runs on the calling thread, without waking a worker. The assignment of parts to threads changes no result, because
the kernel's steps are independent.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial

from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import find_native_pool, thread_count
from tinyexplore.target import Target
from tinyexplore.util.workers import Job, ThreadWorkers

PARTS_PER_THREAD = 4  # several parts per thread, so that other threads can take the parts of a delayed thread
PART_NS = 5_000  # waking a worker costs some microseconds

current_instance: ContextVar[int] = ContextVar("tinyexplore_instance", default=0)  # the number of the running instance


def estimated_ns(flops: int, bytes_moved: int, target: Target) -> float:
    """Returns the estimated nanoseconds on one core. Data from memory takes longer, but such kernels are large
    enough anyway."""
    return flops / target.flops_per_ns + bytes_moved / target.bytes_per_ns


def parts_for(extent: int | None, work_ns: float, threads: int) -> int:
    """Returns into how many parts to divide a THREAD axis of `extent` steps with `work_ns` of work on one core in
    total."""
    if extent is None or threads < 2 or work_ns < 2 * PART_NS:
        return 1
    worth = int(min(work_ns / PART_NS, threads * PARTS_PER_THREAD))
    return min(extent, worth if worth < threads else worth // threads * threads)


@cache
def _workers(count: int) -> ThreadWorkers:
    return ThreadWorkers(count)


def run_divided(bound: Callable[[int, int], None], extent: int | None, work_ns: float = float("inf")) -> None:
    """Runs `bound` over 0 … extent, on as many threads as `work_ns` justifies.

    Machine code runs in small parts: each thread has its share and helps others when it is done. Code that Python runs
    has one part for each thread.
    """
    if extent is None:
        bound(0, 1)
        return
    threads = thread_count()
    part_count = parts_for(extent, work_ns, threads)
    if part_count == 1:
        bound(0, extent)
        return
    native = find_native_pool(threads, current_instance.get()) if isinstance(bound, BoundProgram) else None
    if native is not None and isinstance(bound, BoundProgram):
        native.run(bound, extent, part_count)
        return
    part_count = min(part_count, threads)
    edges = [extent * part_number // part_count for part_number in range(part_count + 1)]
    jobs = [Job(partial(bound, edges[part_number], edges[part_number + 1])) for part_number in range(1, part_count)]
    _workers(threads - 1).run_alongside(jobs, partial(bound, edges[0], edges[1]))


__all__ = ["estimated_ns", "parts_for", "run_divided", "thread_count"]

"""Counters of the work of this process, and context managers that time or profile a block."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from threading import RLock
from typing import Protocol
from weakref import WeakSet

from tinyexplore.util.locks import new_in_children


class CountingAllocator(Protocol):
    """An allocator that adds allocated bytes to `used_now`. `count_gone` subtracts freed bytes."""

    def count_gone(self) -> None: ...


class Counters:
    """Work done since the last `reset()`, and the memory in use. The only instance is `GlobalCounters`.

    global_ops: arithmetic operations of all kernels.
    global_mem: the least bytes that they moved.
    time_sum_s: seconds in kernels and copies.
    kernel_count: how many kernels ran.
    mem_used: bytes of live buffers.
    mem_peak: the most bytes of live buffers at one time.
    native: kernels, operations, bytes and nanoseconds of the batches that machine code counted itself.
    used_now: bytes that `allocators` have allocated; freed bytes are subtracted only on request.
    """

    __slots__ = (
        "_ops",
        "_moved",
        "_seconds",
        "_kernels",
        "used_now",
        "mem_peak",
        "allocators",
        "native",
        "watchers",
        "_lock",
    )

    def __init__(self) -> None:
        # only machine code writes these, so that no count is lost between threads
        self.native = array("q", [0, 0, 0, 0])
        # reentrant, because the garbage collector may call a program's finalizers inside any method
        self._lock = RLock()
        self.allocators: WeakSet[CountingAllocator] = WeakSet()
        self.watchers: tuple[Callable[[int], None], ...] = ()  # each is called with every number of kernels that ran
        self.used_now = 0
        self.reset()

    def reset(self) -> None:
        """Resets all counts. `mem_used` stays, because the memory does; `mem_peak` becomes `mem_used`."""
        self.mem_peak = self.mem_used
        self.global_ops = self.global_mem = self.kernel_count = 0
        self.time_sum_s = 0.0

    @property
    def kernel_count(self) -> int:
        return self._kernels + self.native[0]

    @kernel_count.setter
    def kernel_count(self, count: int) -> None:
        self._kernels = count - self.native[0]

    @property
    def global_ops(self) -> int:
        return self._ops + self.native[1]

    @global_ops.setter
    def global_ops(self, count: int) -> None:
        self._ops = count - self.native[1]

    @property
    def global_mem(self) -> int:
        return self._moved + self.native[2]

    @global_mem.setter
    def global_mem(self, nbytes: int) -> None:
        self._moved = nbytes - self.native[2]

    @property
    def time_sum_s(self) -> float:
        return self._seconds + self.native[3] * 1e-9

    @time_sum_s.setter
    def time_sum_s(self, seconds: float) -> None:
        self._seconds = seconds - self.native[3] * 1e-9

    def add(self, kernels: int, ops: int, bytes_moved: int, seconds: float) -> None:
        """Adds `kernels` kernels, with their operations, bytes and total seconds."""
        with self._lock:
            self._kernels += kernels
            self._ops += ops
            self._moved += bytes_moved
            self._seconds += seconds
        for watcher in self.watchers:
            watcher(kernels)

    @property
    def mem_used(self) -> int:
        for allocator in tuple(self.allocators):
            allocator.count_gone()
        return self.used_now

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Does not count the work inside the block."""
        counts_before = (self.global_ops, self.global_mem, self.time_sum_s, self.kernel_count)
        try:
            yield
        finally:
            self.global_ops, self.global_mem, self.time_sum_s, self.kernel_count = counts_before


GlobalCounters = Counters()
new_in_children(GlobalCounters, "_lock")


class Timing(ContextDecorator):
    """Prints how long a block took: `with Timing("matmul: "):`. `et` holds the nanoseconds afterwards.

    on_exit: gets the nanoseconds, and returns a text to print after the time.
    """

    def __init__(self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True) -> None:
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled
        self.et = 0

    def __enter__(self) -> Timing:
        self.began = time.perf_counter_ns()
        return self

    def __exit__(self, *error: object) -> None:
        self.et = time.perf_counter_ns() - self.began
        if self.enabled:
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms" + (self.on_exit(self.et) if self.on_exit else ""))


class Profiling(ContextDecorator):
    """Prints the functions of a block that took longest, according to Python's profiler: `with Profiling():`.

    sort: the order, as in `pstats`.
    frac: the fraction of the functions to print.
    fn: a file for the whole profile.
    """

    def __init__(self, enabled: bool = True, sort: str = "cumtime", frac: float = 0.2, fn: str | None = None) -> None:
        import cProfile

        self.enabled, self.sort, self.frac, self.fn = enabled, sort, frac, fn
        self.profile = cProfile.Profile()

    def __enter__(self) -> Profiling:
        if self.enabled:
            self.profile.enable()
        return self

    def __exit__(self, *error: object) -> None:
        if not self.enabled:
            return
        import pstats

        self.profile.disable()
        if self.fn is not None:
            self.profile.dump_stats(self.fn)
        pstats.Stats(self.profile).strip_dirs().sort_stats(self.sort).print_stats(self.frac)

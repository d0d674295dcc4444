"""The memory of this process, as the system and malloc report it."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable


class _Account(ctypes.Structure):
    """What glibc's `mallinfo2` returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()
    ]


def resident_bytes() -> int | None:
    """Bytes of this process's pages in memory; None if the system does not report it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def malloc_bytes() -> int | None:
    """Bytes allocated with malloc, by Python's larger objects and by LLVM; None without glibc."""
    account = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if account is None:
        return None
    account.restype = _Account
    found = account()
    return int(found.uordblks + found.hblkhd)


def object_count() -> int:
    """The number of Python objects that the garbage collector tracks, after a collection."""
    gc.collect()
    return len(gc.get_objects())


def growth(work: Callable[[int], object], *, warm_up: int, count: int) -> tuple[int, int, int]:
    """Call `work(number)` `count` times after `warm_up` uncounted calls, and return the growth.

    Returns: the growth of Python objects, of malloc's bytes and of resident bytes; 0 where it is unknown.
    """

    def state() -> tuple[int, int, int]:
        return object_count(), malloc_bytes() or 0, resident_bytes() or 0

    for number in range(warm_up):
        work(number)
    before = state()
    for number in range(warm_up, warm_up + count):
        work(number)
    after = state()
    return after[0] - before[0], after[1] - before[1], after[2] - before[2]


def assert_no_growth(
    work: Callable[[int], object], *, warm_up: int, count: int, objects: int, in_malloc: int, resident: int
) -> None:
    """Assert that `count` calls of `work(number)` leave fewer Python objects, malloc's and resident bytes than given.

    A leak shows each time. Other threads allocate now and then, so growth is measured up to three times.
    """
    limits = (objects, in_malloc, resident)
    grown: list[tuple[int, int, int]] = []
    for _ in range(3):
        grown.append(growth(work, warm_up=warm_up, count=count))
        if all(more < limit for more, limit in zip(grown[-1], limits, strict=True)):
            return
    raise AssertionError(f"(objects, bytes in malloc, resident bytes) grew by {grown}, each time; limits {limits}")

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
    """The pages of this process that are in memory; None where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def malloc_bytes() -> int | None:
    """What is allocated with malloc now, by Python's larger objects and by LLVM; None where that is not glibc's."""
    account = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if account is None:
        return None
    account.restype = _Account
    found = account()
    return int(found.uordblks + found.hblkhd)


def object_count() -> int:
    """Python objects that the garbage collector knows, after it has run."""
    gc.collect()
    return len(gc.get_objects())


def growth(work: Callable[[int], object], *, warm_up: int, count: int) -> tuple[int, int, int]:
    """What `work(number)` leaves behind when it is done `count` times, after `warm_up` times that do not count: Python
    objects, bytes of malloc, bytes of resident pages (0 where that is not known)."""

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
    """`work(number)`, done `count` times, leaves fewer Python objects, bytes of malloc and resident bytes than given.

    A leak shows each time. Other threads allocate now and then, so growth is measured up to three times.
    """
    limits = (objects, in_malloc, resident)
    grown: list[tuple[int, int, int]] = []
    for _ in range(3):
        grown.append(growth(work, warm_up=warm_up, count=count))
        if all(more < limit for more, limit in zip(grown[-1], limits, strict=True)):
            return
    raise AssertionError(f"(objects, bytes in malloc, resident bytes) grew by {grown}, each time; limits {limits}")

"""Limits memory temporarily: larger allocations raise MemoryError."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def limited(megabytes: int) -> Iterator[None]:
    """Limit the address space to `megabytes` more than the process has now."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    set_limit(megabytes)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def set_limit(megabytes: int) -> None:
    """Set this limit permanently."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))

"""Threads that need the interpreter only for moments get it at once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# A thread that calls into a compiler asks for the interpreter between the calls, some ten for a kernel. Where another
# one computes in Python, it would wait Python's own 5 ms each time: longer than it works.
SWITCH_SECONDS = 1e-4


class _Switching:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.usual = 0.0

    def enter(self) -> None:
        with self.lock:
            if self.blocks == 0:
                self.usual = sys.getswitchinterval()
                sys.setswitchinterval(min(self.usual, SWITCH_SECONDS))
            self.blocks += 1

    def leave(self) -> None:
        with self.lock:
            if self.blocks == 1:
                sys.setswitchinterval(self.usual)
            self.blocks = max(self.blocks - 1, 0)  # none is left of those of a parent process

    def forget(self) -> None:
        """In a forked child, which has none of the other threads."""
        if self.blocks:
            sys.setswitchinterval(self.usual)
        self.__init__()  # type: ignore[misc]


_switching = _Switching()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_switching.forget)


@contextmanager
def switching_quickly() -> Iterator[None]:
    """While any thread is in such a block, the interpreter goes from thread to thread some fifty times as often."""
    switching = _switching
    switching.enter()
    try:
        yield
    finally:
        switching.leave()


__all__ = ["SWITCH_SECONDS", "switching_quickly"]

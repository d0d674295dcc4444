"""Python's search for cycles of garbage, put off while a graph is compiled."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Collecting:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.blocks = 0
        self.was_on = False

    def forget(self) -> None:
        """In a forked child, which has none of the other threads."""
        if self.blocks and self.was_on:
            gc.enable()
        self.__init__()  # type: ignore[misc]


_collecting = _Collecting()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_collecting.forget)


@contextmanager
def collecting_later() -> Iterator[None]:
    """While any thread is in such a block, no cycles are looked for.

    Compiling makes hundreds of thousands of nodes without any cycle, and forgets most of them at once; looking through
    all that there is, again and again, took up to a tenth of its time.
    """
    state = _collecting
    with state.lock:
        if state.blocks == 0:
            state.was_on = gc.isenabled()
            gc.disable()
        state.blocks += 1
    try:
        yield
    finally:
        with state.lock:
            if state.blocks == 1 and state.was_on:
                gc.enable()
            state.blocks = max(state.blocks - 1, 0)  # none is left of those of a parent process


__all__ = ["collecting_later"]

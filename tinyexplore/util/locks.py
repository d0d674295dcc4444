"""Threads, locks and forks. A forked child has only the thread that forked, so no other thread can release a lock
there."""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable
from functools import cache
from typing import Any


def new_in_children(owner: Any, name: str, make: Callable[[], Any] = threading.RLock) -> None:
    """Replaces the lock `owner.name` by a new one in every forked child. For locks that are held only for moments."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(owner, name, make()))


@cache
def can_start_threads() -> bool:
    """Whether the interpreter can start threads. It cannot in a browser, for example."""
    if sys.platform in ("emscripten", "wasi"):
        return False
    try:
        start_new_thread(int, ())
    except RuntimeError:
        return False
    return True


class SharedLock:
    """A lock that many threads hold at the same time (`with`, not nested), or one thread alone (`acquire`, `release`).

    A thread that acquires it alone waits for the others. Later callers wait for it.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._holders = self._waiting = 0

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting)
            self._holders += 1

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._holders -= 1
            self._changed.notify_all()

    def acquire(self) -> None:
        self._changed.acquire()
        self._waiting += 1
        self._changed.wait_for(lambda: not self._holders)

    def release(self) -> None:
        self._waiting -= 1
        self._changed.notify_all()
        self._changed.release()


def held_in_forks(lock: Any) -> None:
    """Lets each fork wait for `lock`, so that the data that it guards is consistent in the child.

    Only for a lock whose holders wait for no other lock: with two such locks, forks could deadlock.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

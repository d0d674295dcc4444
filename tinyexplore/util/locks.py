"""Threads, locks and forks: a child has only the thread that forked, so nothing there releases what another held."""

from __future__ import annotations

import os
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable
from functools import cache
from typing import Any


def new_in_children(owner: Any, name: str, make: Callable[[], Any] = threading.RLock) -> None:
    """In every forked child the lock `owner.name` is a new one. For what a lock guards only for moments."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(owner, name, make()))


@cache
def can_start_threads() -> bool:
    """False where the interpreter has one thread and no more, as in a browser."""
    if sys.platform in ("emscripten", "wasi"):
        return False
    try:
        start_new_thread(int, ())
    except RuntimeError:
        return False
    return True


class SharedLock:
    """Held by any number of threads at once (`with`, not one inside another), or by one alone (`acquire`, `release`),
    who waits for them, while later callers wait for it."""

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
    """A fork waits for `lock`, so that what it guards is whole in the child.

    Only for a lock whose holders wait for no other one: with two such locks, forks could wait for each other's.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

"""Locks and forks: a child has only the thread that forked, so nobody there gives back what another thread held."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def new_in_children(owner: Any, name: str, make: Callable[[], Any] = threading.RLock) -> None:
    """In every forked child the lock `owner.name` is a new one. For what a lock guards only for moments."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(owner, name, make()))


def held_in_forks(lock: Any) -> None:
    """A fork waits for `lock`, so that what it guards is whole in the child.

    Only for a lock whose holders wait for no other one: with two such locks, forks could wait for each other's.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

"""A least-recently-used cache, bounded in bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRUCache(Generic[K, V]):
    """Values by their keys: the most recently used ones, up to a limit of memory. Any thread may use it.

    nbytes: the bytes of all values.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.nbytes = 0
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def find(self, key: K) -> V | None:
        """Returns the value of `key`, or None, and marks it as the most recently used."""
        with self.lock:
            value = self._kept.get(key)
            if value is None:
                return None
            self._kept.move_to_end(key)
            return value[0]

    def keep(self, key: K, value: V, nbytes: int, most_bytes: int) -> list[V]:
        """Stores `value`, of about `nbytes` bytes, in place of an older value of `key`. Returns the evicted values.

        The least recently used values are evicted until all take at most `most_bytes`, or `value` is the only one.
        """
        with self.lock:  # releasing values may run any code, so the caller does it
            old_entry = self._kept.pop(key, None)
            evicted = [] if old_entry is None else [old_entry]
            self._kept[key] = (value, nbytes)
            self.nbytes += nbytes - sum([size for _, size in evicted])
            while self.nbytes > most_bytes and len(self._kept) > 1:
                evicted.append(self._kept.popitem(last=False)[1])
                self.nbytes -= evicted[-1][1]
        return [removed for removed, _ in evicted]

    def clear(self) -> None:
        """Removes all values."""
        with self.lock:
            old_entries, self._kept, self.nbytes = self._kept, OrderedDict(), 0
        old_entries.clear()

    def __len__(self) -> int:
        return len(self._kept)


__all__ = ["LRUCache"]

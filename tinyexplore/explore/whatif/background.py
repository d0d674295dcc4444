"""Runs work in a background thread, in the order of submission, so that a notebook's kernel can run other cells."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from tinyexplore.util.locks import can_start_threads

Work = Callable[[], None]


class BackgroundQueue:
    """Runs submitted work in a daemon thread, one item after another. The thread ends when the queue is empty.

    If the platform cannot start threads (in a page), `submit` runs the work immediately.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Work, Work]] = deque()
        self._thread: threading.Thread | None = None

    def submit(self, work: Work, drop: Work) -> None:
        """Runs `work` after all earlier work, or calls `drop` if `clear` is called first."""
        if not can_start_threads():
            work()
            return
        with self._lock:
            self._waiting.append((work, drop))
            self._start()

    def clear(self) -> None:
        """Drops all work that has not begun."""
        with self._lock:
            dropped = [drop for _, drop in self._waiting]
            self._waiting.clear()
        for drop in dropped:
            drop()

    def join(self) -> None:
        """Waits until the background work is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        if self._waiting and (self._thread is None or not self._thread.is_alive()):  # after a fork the thread is dead
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                work, _ = self._waiting.popleft()
            try:
                work()
            except BaseException:  # Python reports the error; a new thread runs the remaining work
                with self._lock:
                    self._thread = None
                    self._start()
                raise


__all__ = ["BackgroundQueue"]

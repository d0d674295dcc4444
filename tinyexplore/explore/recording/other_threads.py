"""Counts the kernels that other threads run during a capture: without the capture's context, they are not recorded."""

from __future__ import annotations

from collections import Counter
from threading import Lock, current_thread, get_ident

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.trace import active_recorder
from tinyexplore.util import GlobalCounters

MAX_NAMED_THREADS = 4


class OtherThreads:
    """A context manager that counts the kernels that run in other threads without a recorder.

    by_thread: thread name → number of kernels.
    replayed: number of kernels of TinyJit replays in machine code, whose thread is unknown.
    """

    def __init__(self) -> None:
        self.by_thread: Counter[str] = Counter()
        self.replayed = 0
        self._thread = get_ident()
        self._lock = Lock()

    def __enter__(self) -> OtherThreads:
        self.replayed = -GlobalCounters.native[0]
        GlobalCounters.watchers += (self._count,)
        return self

    def __exit__(self, *error: object) -> None:
        GlobalCounters.watchers = tuple(watcher for watcher in GlobalCounters.watchers if watcher != self._count)
        self.replayed += GlobalCounters.native[0]

    def _count(self, kernels: int) -> None:
        if get_ident() == self._thread or active_recorder() is not None:
            return
        with self._lock:
            self.by_thread[current_thread().name] += kernels

    @property
    def note(self) -> str:
        """Returns the remark about these kernels; "" for none."""
        total = self.by_thread.total() + max(0, self.replayed)
        if not total:
            return ""
        named = [f"{name}: {count}" for name, count in self.by_thread.most_common(MAX_NAMED_THREADS)]
        more = len(self.by_thread) - len(named)
        named += [f"{more} more threads"] if more else []
        named += [f"replays: {self.replayed}"] if self.replayed > 0 else []
        return (
            f"other threads ran {count_text(total, 'kernel')} that this capture does not have ({', '.join(named)}). A "
            "thread is captured if it runs in the capture's context: submit(contextvars.copy_context().run, f)"
        )


__all__ = ["OtherThreads"]

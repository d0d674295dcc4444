"""The cache of compiled kernels: the most recently used ones, up to `KERNEL_MB`, and all that are referenced."""

from __future__ import annotations

import threading
from weakref import WeakValueDictionary

from tinyexplore.execute.runner import Runner
from tinyexplore.uop import UOp
from tinyexplore.util import config
from tinyexplore.util.locks import new_in_children
from tinyexplore.util.lru_cache import LRUCache

RunnerKey = tuple[str, UOp, tuple[int | str, ...], int]  # (device, ast, options that affect opts, threads)


class RunnerCache:
    """A cache of Runners, by device, ast and options. Any thread may use it.

    An evicted Runner is still found while a plan, a TinyJit or other code references it, so that no kernel is in memory
    twice. Without references, its machine code is unloaded.
    """

    def __init__(self) -> None:
        self._recent: LRUCache[RunnerKey, Runner] = LRUCache()
        self._held: WeakValueDictionary[RunnerKey, Runner] = WeakValueDictionary()
        new_in_children(self._recent, "lock", threading.Lock)

    def find(self, key: RunnerKey) -> Runner | None:
        runner = self._recent.find(key)
        if runner is None:
            runner = self._held.get(key)
            if runner is not None:
                self.keep(key, runner)
        return runner

    def keep(self, key: RunnerKey, runner: Runner) -> None:
        self._held[key] = runner
        self._recent.keep(key, runner, runner.nbytes, config().KERNEL_MB << 20)

    def cache_clear(self) -> None:
        """Removes all kernels, also those that are referenced."""
        self._recent.clear()
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)


class RecordingCache(dict[RunnerKey, Runner]):
    """The kernels of one recording, which starts without any and keeps all. Other computations can use them, too."""

    def find(self, key: RunnerKey) -> Runner | None:
        return self.get(key)

    def keep(self, key: RunnerKey, runner: Runner) -> None:
        self[key] = runner
        runners.keep(key, runner)


runners = RunnerCache()

__all__ = ["RunnerCache", "RecordingCache", "RunnerKey", "runners"]

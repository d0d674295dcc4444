"""Compiled kernels that are available: those used last, up to `KERNEL_MB`, and any that somebody holds."""

from __future__ import annotations

import threading
from weakref import WeakValueDictionary

from tinyexplore.execute.runner import Runner
from tinyexplore.uop import UOp
from tinyexplore.util import config
from tinyexplore.util.locks import new_in_children
from tinyexplore.util.recent import Recent

RunnerKey = tuple[str, UOp, tuple[int | str, ...], int]  # device, ast, options that choose opts, threads


class RunnerCache:
    """Runners by what they were compiled of. Any thread may ask.

    One that makes room for others is found all the same as long as a plan, a TinyJit or anybody else holds it, so that
    no kernel is in memory twice. When the last lets go of it, its machine code is unloaded.
    """

    def __init__(self) -> None:
        self._recent: Recent[RunnerKey, Runner] = Recent()
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
        """Forgets all, those that somebody holds as well."""
        self._recent.clear()
        self._held.clear()

    def __len__(self) -> int:
        return len(self._held)


class OwnKernels(dict[RunnerKey, Runner]):
    """Those of one recording, which begins with none and keeps all; they are available for others, too."""

    def find(self, key: RunnerKey) -> Runner | None:
        return self.get(key)

    def keep(self, key: RunnerKey, runner: Runner) -> None:
        self[key] = runner
        runners.keep(key, runner)


runners = RunnerCache()

__all__ = ["RunnerCache", "OwnKernels", "RunnerKey", "runners"]

"""Threads that compile kernels while others are lowered. If no thread can start, the calling thread compiles."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import cache, partial
from queue import SimpleQueue
from types import TracebackType
from typing import Any, TypeVar

from tinyexplore.target import core_count
from tinyexplore.util.locks import can_start_threads
from tinyexplore.util.workers import Job, ThreadWorkers, wait_for_all

R = TypeVar("R")


class CompilerThreads:
    """Context manager: other threads do the submitted work. When the block ends, all work is done.

    Each item runs with the options and the recorder that were active when it was submitted. Inside the block, one core
    is left to the submitting thread.
    """

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once or core_count() < 2 or not can_start_threads()
        self.running: list[Job[Any]] = []
        self._cores: SimpleQueue[None] = SimpleQueue()  # one entry for each core that may be used now
        for _ in range(max(1, core_count() - 1)):
            self._cores.put(None)

    def __enter__(self) -> CompilerThreads:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.running:
            self._cores.put(None)  # from here on, the submitting thread only waits
            wait_for_all(self.running)

    def submit(self, work: Callable[[], R]) -> Callable[[], R]:
        """Returns a function that waits for the result of `work`, or raises its exception.

        With `at_once`, `work` runs before this returns.
        """
        if self.at_once:
            result = work()
            return lambda: result
        context = contextvars.copy_context()

        def in_turn() -> R:
            core = self._cores.get()
            try:
                return work()
            finally:
                self._cores.put(core)

        job = Job(partial(context.run, in_turn))
        _workers().submit([job], [partial(self.running.append, job)])
        return job.result


@cache
def _workers() -> ThreadWorkers:
    return ThreadWorkers(core_count())


__all__ = ["CompilerThreads"]

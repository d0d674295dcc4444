"""Threads that compile kernels while others are lowered; where no thread can start, everything is done by the one."""

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


class Compilers:
    """As a context manager: work that is submitted is done by other threads, each thing under the options and for the
    recorder in force where it was submitted. When the block ends, all of it is done.

    While the block goes on, one core is left to the thread that submits.
    """

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once or core_count() < 2 or not can_start_threads()
        self.running: list[Job[Any]] = []
        self._cores: SimpleQueue[None] = SimpleQueue()  # one for each that may be used now
        for _ in range(max(1, core_count() - 1)):
            self._cores.put(None)

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.running:
            self._cores.put(None)  # who submitted only waits from here on
            wait_for_all(self.running)

    def submit(self, work: Callable[[], R]) -> Callable[[], R]:
        """What waits for the result of `work`, or raises what went wrong. With `at_once` it is done before this
        returns."""
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
        _workers().give([job], [partial(self.running.append, job)])
        return job.result


@cache
def _workers() -> ThreadWorkers:
    return ThreadWorkers(core_count())


__all__ = ["Compilers"]

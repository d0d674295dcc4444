"""Worker threads that stay usable after an interrupt, and so do their callers.

Python's own executors use Condition and Semaphore, which are written in Python: an interrupt while one is acquired
leaves it locked forever, and the next caller waits forever. A SimpleQueue is written in C, and so is a Lock in a
`with`.
"""

from __future__ import annotations

import atexit
import os
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import Any, Generic, TypeVar, cast

from tinyexplore.util.uninterrupted import run_uninterrupted

R = TypeVar("R")


class Job(Generic[R]):
    """Work that another thread does, and its result or exception."""

    def __init__(self, work: Callable[[], R]) -> None:
        self._work: Callable[[], R] | None = work
        self._result: R | None = None
        self._error: BaseException | None = None
        self._undone = Lock()
        self._undone.acquire()

    def run(self) -> None:
        assert self._work is not None
        try:
            self._result = self._work()
        except BaseException as error:
            self._error = error
        finally:
            self._work = None
            self._undone.release()

    def wait(self) -> None:
        """Waits until the work is done."""
        with self._undone:
            pass

    def result(self) -> R:
        """Waits for the work, then returns its result or raises its exception."""
        self.wait()
        if self._error is not None:
            raise self._error
        return cast(R, self._result)


def wait_for_all(jobs: Sequence[Job[Any]]) -> None:
    """Waits until all jobs are done."""
    for job in jobs:
        job.wait()


class ThreadWorkers:
    """Up to `count` threads, which start when there is work. A forked child starts its own."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._begin()
        atexit.register(self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        self._threads: list[Lock] = []  # locks, each held while its thread lives

    def submit(self, jobs: Sequence[Job[Any]], then: Sequence[partial[Any]] = ()) -> None:
        """Submits `jobs`, in this order, and calls `then`: all of it, or nothing if it is interrupted.

        If no thread can start, the jobs are done before this returns.
        """
        for _ in range(min(self._count - len(self._threads), len(jobs))):
            life_lock = Lock()
            life_lock.acquire()
            try:
                run_uninterrupted(
                    [
                        partial(start_new_thread, _work, (self._jobs, life_lock)),
                        partial(self._threads.append, life_lock),
                    ]
                )
            except RuntimeError:  # there are no threads, or no more threads
                break
        if not self._threads:
            for job in jobs:
                job.run()
            run_uninterrupted([*then])
            return
        run_uninterrupted([*[partial(self._jobs.put, job) for job in jobs], *then])

    def run_alongside(self, jobs: Sequence[Job[Any]], work: Callable[[], object]) -> None:
        """Submits `jobs`, and calls `work` meanwhile. Returns when all have ended, even if it is interrupted.

        Raises the first exception of the jobs.
        """
        done_flags: list[bool] = []
        try:
            self.submit(jobs, [partial(done_flags.append, True)])
            work()
        finally:
            if done_flags:
                try:
                    wait_for_all(jobs)
                except BaseException:  # interrupted: no worker may still run after this
                    wait_for_all(jobs)
                    raise
        for job in jobs:
            job.result()

    def _end(self) -> None:
        """Ends the threads at the end of the process. They would otherwise run while the interpreter is shut down."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for life_lock in threads:
            with life_lock:
                pass


class ImmediateExecutor(Executor):
    """Replaces an executor if no thread can start: `submit` does the work before it returns."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def _work(jobs: SimpleQueue[Job[Any] | None], life_lock: Lock) -> None:
    try:
        while True:
            job = jobs.get()
            if job is None:
                return
            job.run()
            del job
    finally:
        life_lock.release()


__all__ = ["ImmediateExecutor", "Job", "ThreadWorkers", "wait_for_all"]

"""Worker processes that may crash: each handles one request at a time, so a crash loses only that request.

`ask_worker` is the only function that a search submits to its executor. It takes and returns plain text. The process
that calls it (this process, or a worker of a cluster) has its own worker processes for it.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parents[2])  # the folder that contains this package, installed or not
PROGRAM = f"import sys; sys.path.insert(0, {FOLDER!r}); from tinyexplore.compile.search_worker import main; main()"


class WorkerExitError(RuntimeError):
    """Raised if a worker ends before it replies: it crashed, ran out of memory or took too long."""


def ask_worker(request: str, name: str, timeout_s: float) -> str:
    """Returns the reply to `request`, both JSON objects; {"lost": why} if the worker ended before it replied.

    name: requests with the same name go to the same worker if it is free, because it caches compiled programs.
    """
    return _workers.ask(request, name, timeout_s)


def dismiss() -> None:
    """Ends every worker of this process, idle or not; the next request starts a new one."""
    _workers.dismiss()


class Worker:
    """One process that runs `program`, the text of a script, and the pipes to it."""

    def __init__(self, program: str = PROGRAM) -> None:
        self.names: set[str] = set()
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that an interrupt from the keyboard goes only to the waiting process
        )

    def ask(self, request: str, name: str, timeout_s: float) -> str:
        """Returns the reply to a request. The worker itself enforces the time limit: it then ends."""
        self.names.add(name)
        began = time.monotonic()
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(f"{timeout_s} {request}\n".encode())
            self.process.stdin.flush()
            reply = self.process.stdout.readline()
        except OSError:
            reply = b""
        if not reply.endswith(b"\n"):
            raise WorkerExitError(self.exit_reason(time.monotonic() - began, timeout_s))
        return reply.decode()

    def exit_reason(self, seconds: float, timeout_s: float) -> str:
        """Returns the reason why a worker does not reply, as text."""
        self.kill()
        status = self.process.returncode
        if seconds >= timeout_s:
            return f"it took longer than {timeout_s:.0f} s"
        if status >= 0:
            return f"its worker ended with status {status}"
        names = {-number.value: number.name for number in signal.Signals}
        return f"it crashed its worker ({names.get(status, f'signal {-status}')})"

    def kill(self) -> None:
        """Ends the process. A process that has already ended keeps its exit status."""
        try:
            self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass


class CompilerWorkers:
    """The workers of this process that run `program`: one for each concurrent request."""

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        atexit.register(self.dismiss)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def ask(self, request: str, name: str, timeout_s: float) -> str:
        """Implements `ask_worker`."""
        try:
            worker = self.take(name)
        except OSError as error:
            return json.dumps({"lost": f"no worker process starts here: {error}"})
        try:
            reply = worker.ask(request, name, timeout_s)
        except WorkerExitError as error:
            self.drop(worker)
            return json.dumps({"lost": str(error)})
        except BaseException:  # interrupted: the next request to this worker must not get this reply
            self.drop(worker)
            raise
        self.put_back(worker)
        return reply

    def take(self, name: str) -> Worker:
        with self._lock:
            suitable = [worker for worker in self._idle if name in worker.names]
            if self._idle:
                worker = (suitable or self._idle)[-1]
                self._idle.remove(worker)
                return worker
        worker = Worker(self._program)
        with self._lock:
            self._all.add(worker)
        return worker

    def put_back(self, worker: Worker) -> None:
        with self._lock:
            if worker in self._all:
                self._idle.append(worker)

    def drop(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)
        worker.kill()

    def dismiss(self) -> None:
        with self._lock:
            leaving, self._all, self._idle = list(self._all), set(), []
        for worker in leaving:
            worker.process.kill()

    def forget(self) -> None:
        """Forgets the workers in a forked process, because they belong to its parent."""
        self._lock = threading.Lock()
        self._idle, self._all = [], set()


_workers = CompilerWorkers()

__all__ = ["FOLDER", "WorkerExitError", "CompilerWorkers", "ask_worker", "dismiss"]

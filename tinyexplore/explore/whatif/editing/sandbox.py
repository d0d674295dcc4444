"""Runs work in a separate process, and reports how far the work came and how the process ended.

The process is forked from a worker that has one thread and never runs the work itself. It therefore starts in
milliseconds with all compilers loaded, and a crash loses nothing. If the system cannot fork, the worker runs the work.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tinyexplore.explore.whatif.editing.faults import Mailbox, describe_exit

Report = Callable[[dict[str, Any]], None]
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@dataclass
class SandboxResult:
    """The result of work in the sandbox.

    reported: everything that the work reported; later values replace earlier ones.
    failure: how the process failed, as text; "" for success.
    """

    reported: dict[str, Any] = field(default_factory=dict)
    failure: str = ""


def run_in_sandbox(work: Callable[[Report, Mailbox], None], limit_s: float) -> SandboxResult:
    """Runs `work(report, mailbox)` in a separate process.

    The work reports plain data with `report`; {"limit_s": 5} sets the time that it may take from then on.

    limit_s: the time that it may take until then, in seconds.
    """
    if not hasattr(os, "fork"):
        result = SandboxResult()
        work(result.reported.update, Mailbox())
        return result
    mailbox = Mailbox()
    mailbox.clear()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run_in_child(work, mailbox, reading, writing)
    os.close(writing)
    try:
        return _watch_child(child, reading, mailbox, limit_s)
    finally:
        os.close(reading)


def _run_in_child(work: Callable[[Report, Mailbox], None], mailbox: Mailbox, reading: int, writing: int) -> None:
    """Runs the work in the forked child, and exits; this function never returns."""
    status = 1
    try:
        os.setsid()  # a compiler that the work starts ends with this process group
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, int(signal.SIGKILL))
        os.close(reading)

        def report(data: dict[str, Any]) -> None:
            text = json.dumps(data).encode() + b"\n"
            while text:
                text = text[os.write(writing, text) :]

        try:
            work(report, mailbox)
        except MemoryError:
            report({"failed": "ran out of memory"})
        except Exception as error:
            report({"failed": f"{type(error).__name__}: {error}"})
        status = 0
    finally:
        os._exit(status)


def _watch_child(child: int, reading: int, mailbox: Mailbox, limit_s: float) -> SandboxResult:
    """Reads the reports of a child process until it ends or exceeds its time limit."""
    result = SandboxResult()
    partial_line = b""
    began = time.monotonic()
    is_late = False
    while True:
        left = began + limit_s - time.monotonic()
        if left <= 0:
            is_late = True
            break
        if not select.select([reading], [], [], left)[0]:
            continue
        piece = os.read(reading, 1 << 16)
        if not piece:
            break
        partial_line += piece
        *lines, partial_line = partial_line.split(b"\n")
        for line in lines:
            with suppress(ValueError):  # the code wrote invalid data to the pipe
                result.reported.update(json.loads(line))
        if "limit_s" in result.reported:
            limit_s, began = result.reported.pop("limit_s"), time.monotonic()
    if is_late:
        _kill_child(child)
    else:
        # the child has ended, or closed the pipe
        late = time.monotonic() + max(0.2, limit_s)
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() > late:
                is_late = True
                _kill_child(child)
                break
            time.sleep(0.001)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(OSError):  # end the processes that the work started
        os.killpg(child, signal.SIGKILL)
    if is_late:
        result.failure = f"ran longer than {limit_s:.3g} s and was stopped"
    elif status != 0:
        result.failure = describe_exit(
            status, mailbox.read(), result.reported.get("places", ()), result.reported.get("spare", 0)
        )
    elif "failed" in result.reported:
        result.failure = result.reported["failed"]
    return result


def _kill_child(child: int) -> None:
    for end in (os.killpg, os.kill):
        with suppress(OSError):
            end(child, signal.SIGKILL)


__all__ = ["SandboxResult", "Report", "run_in_sandbox"]

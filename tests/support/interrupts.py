"""Interrupts a call at each bytecode position where Python handles signals."""

from __future__ import annotations

import _thread
import dis
import signal
import sys
from collections.abc import Callable
from functools import cache
from types import CodeType, FrameType
from typing import Any


class Interrupted(BaseException):
    """The exception of a signal handler."""


class _Signal:
    """`-_Signal()` sends this process SIGINT.

    Unlike the call of a function, the unary operator contains no position where Python handles signals. So a trace
    function that sends the signal this way returns before the handler runs.
    """

    __neg__ = staticmethod(_thread.interrupt_main)


@cache
def _places(code: CodeType) -> frozenset[int]:
    """The offsets in `code` of the instructions after which Python handles signals."""
    names = ("CALL", "JUMP_BACKWARD", "JUMP_ABSOLUTE")
    return frozenset(one.offset for one in dis.get_instructions(code) if one.opname.startswith(names))


class Interrupter:
    """Runs functions and interrupts them at the n-th position where Python handles signals.

    These positions are the begin of a function, the end of each call, and the backward jump of a loop. A built-in
    function contains none. `lost`: exceptions that Python can only print, as those in a finalizer.
    """

    def __init__(self) -> None:
        self.lost: list[str] = []
        self._left = 0
        self._signal: Any = _Signal()

    def run(self, work: Callable[[], Any], place: int) -> bool:
        """Call `work` and interrupt it at `place`. False if it ended before."""
        self._left = place
        hook, sys.unraisablehook = (
            sys.unraisablehook,
            lambda told: self.lost.append(f"{told.exc_value!r} in {told.object!r}"),
        )
        handler = signal.signal(signal.SIGINT, self._heard)
        sys.settrace(self._called)
        try:
            work()
        except Interrupted:
            return True
        finally:
            sys.settrace(None)
            signal.signal(signal.SIGINT, handler)
            sys.unraisablehook = hook
        return self._left <= 0

    def count(self, work: Callable[[], Any]) -> int:
        """The number of positions in `work`."""
        most = 1 << 60
        self.run(work, most)
        return most - self._left

    def _heard(self, number: int, frame: FrameType | None) -> None:
        raise Interrupted

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._left -= 1
        if self._left == 0:
            sys.settrace(None)
            self._heard_soon = -self._signal
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "opcode" and frame.f_lasti in _places(frame.f_code):
            self._left -= 1
            if self._left == 0:
                sys.settrace(None)
                self._heard_soon = -self._signal
        return self._stepped

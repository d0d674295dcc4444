"""Trace one call: find the lines at which a function or its callees returned None or False.

The tracer (`sys.settrace`) is active during one call, for functions of the package and of the rule. A tracer that was
active before (a debugger, a coverage tool) is restored afterwards.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tinyexplore.explore.recording.expression import Printer
from tinyexplore.explore.recording.sources import PACKAGE_PARENT, package_path
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.uop import UOp

MAX_CALL_SITES = 4  # most nested calls that are reported
_LONGEST = 72
_RETURNS_NOTHING = re.compile(r"return(\s+(None|False))?\s*(#.*)?$")
_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, repr=False)
class ReturnSite(DisplayableRow):
    """A line at which a function returned None or False.

    function: the name of the function.
    file: its file.
    line: the line number in the file.
    text: the text of the line.
    because: the condition above it, if the line itself only returns; else "".
    values: (name, value) of the names in these lines.
    """

    function: str
    file: str
    line: int
    text: str
    because: str
    values: tuple[tuple[str, str], ...]


class _RunningCall:
    """A call in progress: its last executed lines, and the result of the last call that it made."""

    __slots__ = ("asked", "before", "line")

    def __init__(self, line: int) -> None:
        self.line = self.before = line
        self.asked: tuple[Any, tuple[ReturnSite, ...]] | None = None


class _ReturnTracer:
    def __init__(self, file: str, printer: Printer) -> None:
        self.own = file
        self.printer = printer
        self.seen: dict[FrameType, _RunningCall] = {}
        self.places: tuple[ReturnSite, ...] = ()

    def trace_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        file = frame.f_code.co_filename
        if file != self.own and not file.startswith(PACKAGE_PARENT):
            return None
        self.seen[frame] = _RunningCall(frame.f_lineno)
        return self.trace_line

    def trace_line(self, frame: FrameType, event: str, arg: Any) -> Any:
        watched = self.seen[frame]
        if event == "line":
            watched.before, watched.line, watched.asked = watched.line, frame.f_lineno, None
        elif event == "return":
            del self.seen[frame]
            said_no = arg is None or arg is False
            inner = watched.asked[1] if said_no and watched.asked is not None and watched.asked[0] is arg else ()
            lines = (*inner, self.place(frame, watched)) if said_no else ()
            above = self.seen.get(frame.f_back) if frame.f_back is not None else None
            if above is not None:
                above.asked = (arg, lines)
            else:
                self.places = lines
        return self.trace_line

    def place(self, frame: FrameType, watched: _RunningCall) -> ReturnSite:
        code = frame.f_code
        text = _read_line(code.co_filename, watched.line)
        because = ""
        if _RETURNS_NOTHING.match(text) and watched.before != watched.line:
            because = _read_line(code.co_filename, watched.before)
        names = dict.fromkeys(_NAME.findall(f"{because} {text.partition('#')[0]}"))
        variables = frame.f_locals
        values = tuple([(name, self.value(variables[name])) for name in names if name in variables])
        return ReturnSite(code.co_name, package_path(code.co_filename), watched.line, text, because, values)

    def value(self, value: Any) -> str:
        if isinstance(value, UOp):
            text = self.printer.text(value)
            return _shorten(text if text.upper() == value.op.name else f"{value.op.name} {text}")
        if isinstance(value, (tuple, list, set, frozenset)):
            inner = ", ".join([self.value(item) for item in list(value)[:4]])
            return _shorten(f"[{inner}{', …' if len(value) > 4 else ''}]")
        if isinstance(value, dict):
            pairs = [f"{self.value(key)}: {self.value(item)}" for key, item in list(value.items())[:4]]
            return _shorten(f"{{{', '.join(pairs)}{', …' if len(value) > 4 else ''}}}")
        return _shorten(repr(value))


def watch_returns(
    function: Callable[..., Any], arguments: Sequence[Any], printer: Printer | None = None
) -> tuple[ReturnSite, ...]:
    """Returns the lines at which `function(*arguments)` and its callees returned None or False, innermost first."""
    watch = _ReturnTracer(function.__code__.co_filename, printer or Printer())
    before = sys.gettrace()
    sys.settrace(watch.trace_call)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return watch.places[:MAX_CALL_SITES]


def _read_line(file: str, number: int) -> str:
    return linecache.getline(file, number).strip()


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


__all__ = ["MAX_CALL_SITES", "ReturnSite", "watch_returns"]

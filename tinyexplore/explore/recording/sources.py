"""Copies source text into the trace: the user's files and cells, and the code of rewrite rules."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from tinyexplore.explore.tracefile.encodable_text import well_formed
from tinyexplore.trace import UserFrame
from tinyexplore.uop import Rule

PACKAGE = __name__.split(".")[0]
COMPILER_FLOORS = (["schedule"], ["kernel"], ["codegen"], ["renderer"], ["runtime"], ["engine"])
PACKAGE_PARENT = str(Path(__file__).resolve().parents[3])


def source_name(file: str) -> str:
    """Returns the name of a file in a trace: "In [3]" for a notebook cell, else its relative path."""
    return well_formed(_name_source(file))


def _name_source(file: str) -> str:
    """Returns the display name of a file: "In [3]" for a cell, else a short path."""
    cell = cell_number(file)
    if cell is not None:
        return f"In [{cell}]"
    if file.startswith("<"):
        return file
    try:
        path, directory = os.path.abspath(file), os.getcwd()
    except OSError:  # the working directory was removed
        path, directory = file, PACKAGE_PARENT
    for base in (directory, PACKAGE_PARENT):
        if path.startswith(base + os.sep):
            return Path(os.path.relpath(path, base)).as_posix()
    return Path(path).name


def cell_number(file: str) -> int | None:
    """Returns the execution count of the IPython cell that was compiled under the name `file`."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None:
        return None
    cell: int | None = shell.compile._filename_map.get(file)
    return cell


def source_text(file: str) -> str:
    """Returns the text of a file or cell; "" if there is none (code given to `exec`).

    A cell has the user's lines: `%load_ext x`, and not the call of IPython that ran.
    """
    try:
        lines = linecache.getlines(file)
        if any("get_ipython()." in line for line in lines):
            lines = _restore_typed_lines(file, lines)
        return well_formed("".join(lines))
    except Exception:  # a loader of the user may raise anything
        return ""


def _restore_typed_lines(file: str, lines: list[str]) -> list[str]:
    """Replaces each line that calls IPython by the line that the user typed, where the lines correspond."""
    from IPython import get_ipython

    shell, cell = get_ipython(), cell_number(file)
    if shell is None or cell is None:
        return lines
    typed = str(shell.history_manager.input_hist_raw[cell]).strip("\n").split("\n")  # IPython drops blank lines above
    if len(typed) != len(lines):
        return lines
    pairs = zip(lines, typed, strict=True)
    return [f"{own}\n" if "get_ipython()." in line else line for line, own in pairs]


def lambda_text(code: CodeType, max_letters: int = 60) -> str:
    """Returns the text of a lambda's body, cut to `max_letters`; "" if it is unknown (before Python 3.11)."""
    if not hasattr(code, "co_positions"):
        return ""
    spans: list[tuple[int, int, int, int]] = []
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if (line, column) < (end_line, end_column):  # the first instruction has an empty span
            spans.append((line, column, end_line, end_column))
    if not spans:
        return ""
    first, begin = min(span[:2] for span in spans)
    last, end = max(span[2:] for span in spans)
    rows = [line.encode() for line in source_text(code.co_filename).splitlines()[first - 1 : last]]
    if not rows:
        return ""
    rows[-1] = rows[-1][:end]  # columns are in bytes
    rows[0] = rows[0][begin:]
    text = " ".join(row.decode(errors="replace").strip() for row in rows).replace(" .", ".")
    return text if len(text) <= max_letters else f"{text[: max_letters - 1]}…"


def package_path(file: str) -> str:
    """Returns the path of a file of the package relative to the package's parent; for other files see `source_name`."""
    path = os.path.abspath(file)
    if path.startswith(PACKAGE_PARENT + os.sep):
        return Path(os.path.relpath(path, PACKAGE_PARENT)).as_posix()
    return source_name(file)


# a Rule compares by identity and lives as long as its table, so this cache keeps nothing alive longer
@lru_cache(maxsize=4096)
def rule_text(rule: Rule) -> str:
    """Returns the source code of a rule: the decorated function, or the whole `law(...)` statement."""
    if rule.result is None:
        return function_text(rule.function)
    return _read_statement(rule.file, rule.line)


@lru_cache(maxsize=256)
def function_text(function: Callable[..., Any]) -> str:
    """Returns the source code of a function; "" if it is unavailable."""
    try:
        return textwrap.dedent(inspect.getsource(function)).rstrip()
    except (OSError, TypeError):
        return ""


def _read_statement(file: str, line: int) -> str:
    """Returns the lines from `line` on, up to the line that closes the brackets."""
    lines = linecache.getlines(file)[line - 1 :]
    if not lines:
        return ""
    remaining = iter(lines)
    depth = 0
    end = 1
    try:
        for token in tokenize.generate_tokens(lambda: next(remaining, "")):
            if token.type == tokenize.OP and token.string in "([{":
                depth += 1
            elif token.type == tokenize.OP and token.string in ")]}":
                depth -= 1
                if depth <= 0:
                    end = token.end[0]
                    break
            elif token.type == tokenize.NEWLINE:
                end = token.end[0]
                break
    except (tokenize.TokenError, IndentationError):
        end = 1
    return textwrap.dedent("".join(lines[:end])).rstrip().rstrip(",")


def user_frame_here() -> UserFrame | None:
    """Returns the nearest frame outside the package, starting at the caller."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_globals.get("__name__", "")):
            code = frame.f_code
            return UserFrame(code.co_filename, frame.f_lineno, code.co_name, code, frame.f_lasti)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_code_here() -> CodeType | None:
    """Returns the code of the nearest frame outside the package."""
    frame = sys._getframe(1)
    while frame is not None:
        if not is_ours(frame.f_globals.get("__name__", "")):
            return frame.f_code
        frame = frame.f_back  # type: ignore[assignment]
    return None


def user_frame_of(traceback: TracebackType | None) -> UserFrame | None:
    """Returns the innermost frame of a traceback in the user's code."""
    frame_found = None
    for frame, line, instruction in _yield_frames(traceback):
        if not is_ours(frame.f_globals.get("__name__", "")):
            code = frame.f_code
            frame_found = UserFrame(code.co_filename, line, code.co_name, code, instruction)
        elif frame_found is not None:
            break
    return frame_found


def raised_in_compiler(traceback: TracebackType | None) -> bool:
    """Whether the exception was raised while a kernel was planned, compiled or run.

    An error of the Tensor packages (shapes that do not fit, a wrong dtype) is the program's own error.
    """
    names = [frame.f_globals.get("__name__", "") for frame, _, _ in _yield_frames(traceback)]
    return any(is_ours(name) and name.split(".")[1:2] in COMPILER_FLOORS for name in names)


def _yield_frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno, traceback.tb_lasti
        traceback = traceback.tb_next


def is_ours(module: Any) -> bool:
    """Whether the `__name__` of a module's globals (any object) names a module of this package."""
    return type(module) is str and module.split(".")[0] == PACKAGE

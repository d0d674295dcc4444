"""Runs the text that a user typed into a page: a program inside a capture, or rules. Errors have their line."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from zlib import crc32

from tinyexplore.device import Device, DeviceInterface
from tinyexplore.explore.live.interpreted_devices import INTERPRETER, open_interpreted
from tinyexplore.explore.notebook.explorer import Explorer, capture
from tinyexplore.explore.notebook.realization import realize_all
from tinyexplore.explore.notebook.requests import Request, RequestError, RequestSource, request
from tinyexplore.explore.recording.cell_runner import last_line, run_tree
from tinyexplore.explore.tracefile.model import Message
from tinyexplore.explore.whatif.playground.user_rules import written_rules
from tinyexplore.target import Target
from tinyexplore.tensor import Tensor
from tinyexplore.util import Context, config

FILE = "program.py"
KEPT_BYTES = 8 << 20  # most bytes of kernels' inputs, for the debugger
MARK = "# %%"  # code above the last such line runs without being recorded
NO_TIMES = "interpreted: a browser does not run this machine's code"
MAX_CHARACTERS = 20_000  # most characters that a program may print


@dataclass(frozen=True)
class ProgramResult:
    """The result of a program.

    explorer: its capture, None if the program failed.
    output: the printed text.
    error: why it failed, "" if it did not.
    line: the line that failed, from 1; None for none.
    """

    explorer: Explorer | None
    output: str = ""
    error: str = ""
    line: int | None = None


def register_targets(targets: Mapping[str, Target]) -> None:
    """Registers an interpreted device as LLVM. The setting TARGET selects its target from `targets`."""

    def open_chosen() -> DeviceInterface:
        return open_interpreted("LLVM", targets[config().TARGET])

    if targets:
        Device.register("LLVM", open_chosen)


def play(text: str, machine: str = "") -> ProgramResult:
    """Runs a program.

    machine: one of the registered targets; "" is the reference interpreter's own.
    """
    lines = text.splitlines(keepends=True)
    linecache.cache[FILE] = (len(text), None, lines, FILE)
    try:
        tree = ast.parse(text, FILE)
    except SyntaxError as error:
        message = "".join(traceback.format_exception_only(error)).strip()
        return ProgramResult(None, "", message, error.lineno)
    output = io.StringIO()
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("from tinyexplore import *", namespace)
    chosen: dict[str, Any] = {"device": "LLVM", "target": machine} if machine else {"device": INTERPRETER}
    session = capture(title=last_line(text), keep_inputs=KEPT_BYTES, **chosen)
    session.capture.namespace = namespace
    before, marked = _split_at_mark(tree, text)
    compiled = partial(_compile_part, FILE)
    value = None
    try:
        with contextlib.redirect_stdout(output):
            with Context(**{name.upper(): setting for name, setting in chosen.items()}):
                run_tree(before, compiled, namespace)
            with session:
                session.capture.result = value = run_tree(marked, compiled, namespace)
                realize_all(value)
    except BaseException as error:
        return ProgramResult(_drop_empty_session(session), _clip_output(output), *_error_text(error))
    return ProgramResult(_drop_empty_session(session), f"{_clip_output(output)}{_value_text(value)}")


@dataclass(frozen=True)
class RuleNames:
    """The names of the rules that a text defines.

    rules: the names.
    """

    rules: tuple[str, ...]


@request("write", "tinyexplore.explore.live.typed_programs:RuleNames")
@dataclass(frozen=True)
class WriteRules(Request):
    """Run a text that defines rules. Only a page with engine accepts this request, since its code is sandboxed by the
    browser.

    text: Python.
    """

    text: str

    def respond(self, source: RequestSource) -> RuleNames:
        if not source.may_run_code:
            raise RequestError("rules are written in a cell of the notebook: see explore.playground")
        return RuleNames(write_rules(self.text))


@dataclass(frozen=True)
class Failure:
    """An error of a program."""

    text: str
    """The traceback, from the program's first line on."""
    line: int | None
    """Line of the program, from 1; None if unknown."""


@dataclass(frozen=True)
class RunProgramResult:
    """The result of a program."""

    output: str
    """Printed text, and the value of the last line."""
    trace: bool
    """Whether it computed anything; the page then shows its trace."""
    failed: Failure | None
    """The error, None for success."""


@request("play", "tinyexplore.explore.live.typed_programs:RunProgramResult")
@dataclass(frozen=True)
class RunProgram(Request):
    """Run a program inside a capture, in a page with engine.

    text: Python.
    machine: one of the registered targets; "" for the reference interpreter's own.
    """

    text: str
    machine: str = ""

    def respond(self, source: RequestSource) -> RunProgramResult:
        if source.opened is None:
            raise RequestError("a notebook runs programs in its cells: see explore")
        played = play(self.text, self.machine)
        has_trace = played.explorer is not None and bool(played.explorer.trace.nodes)
        if has_trace:
            source.opened(played.explorer)
        return RunProgramResult(played.output, has_trace, Failure(played.error, played.line) if played.error else None)


def write_rules(text: str) -> tuple[str, ...]:
    """Runs a text that defines rules, and returns their names.

    Raises:
        ValueError: the text defines none, or raised an error; the message has the error and its line.
    """
    file = f"rule_{crc32(text.encode()):08x}.py"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    before = written_rules()
    try:
        exec(compile(text, file, "exec"), {"__name__": "__main__"})
    except Exception as error:
        line_numbers = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = error.lineno if isinstance(error, SyntaxError) else line_numbers[-1] if line_numbers else None
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        line_text = "" if line is None else f"line {line}: "
        raise ValueError(f"{line_text}{type(error).__name__}: {message}") from error
    names = tuple(
        written_rule.name for written_rule in written_rules() if not any(written_rule is earlier for earlier in before)
    )
    if not names:
        raise ValueError(
            "this text defines no rule: write @playground.rule(pattern) above a function, or call playground.law"
        )
    return names


def _split_at_mark(tree: ast.Module, text: str) -> tuple[ast.Module, ast.Module]:
    """Splits a program at its last line `# %%`: the part before it runs without being recorded."""
    marks = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(MARK)]
    first = marks[-1] if marks else 0
    before = [statement for statement in tree.body if statement.lineno < first]
    return ast.Module(before, []), ast.Module([statement for statement in tree.body if statement.lineno >= first], [])


def _drop_empty_session(session: Explorer) -> Explorer | None:
    """Returns the capture, or None if it is empty.

    Times of interpreted devices are removed, because they are not those of the target machine.
    """
    if not session.capture.has_trace or not session.trace.nodes:
        return None
    trace = session.trace
    if not any(kernel.device != INTERPRETER for kernel in trace.kernels):
        return session
    machine = dict(trace.options).get("target", "another machine")
    note = Message("note", f"lowered for {machine}, and run by the reference interpreter: there are no times", None)
    kernels = tuple(replace(kernel, not_run=NO_TIMES) for kernel in trace.kernels)
    session.capture.replace_trace(replace(trace, runs=(), kernels=kernels, messages=(*trace.messages, note)))
    return session


def _compile_part(file: str, part: Any, mode: str) -> Any:
    return compile(part, file, mode)


def _clip_output(output: io.StringIO) -> str:
    text = output.getvalue()
    return (
        text
        if len(text) <= MAX_CHARACTERS
        else f"{text[:MAX_CHARACTERS]}\n… {len(text) - MAX_CHARACTERS:,} characters more\n"
    )


def _value_text(value: Any) -> str:
    """Returns a value as a notebook displays it, and a small tensor with its elements."""
    if value is None:
        return ""
    if isinstance(value, Tensor):
        text = repr(value.tolist()) if value.numel() <= 64 else ""
        return f"{value!r}\n{text}".strip()
    return repr(value)[:MAX_CHARACTERS]


def _error_text(error: BaseException) -> tuple[str, int | None]:
    """Returns the traceback from the program's first line on, and the program's last line in it."""
    frames = traceback.extract_tb(error.__traceback__)
    program_frames = [number for number, frame in enumerate(frames) if frame.filename == FILE]
    frames_shown = [frame for frame in frames[program_frames[0] :] if frame.filename == FILE] if program_frames else []
    text = "".join([*traceback.format_list(frames_shown), *traceback.format_exception_only(error)]).strip()
    return text, frames[program_frames[-1]].lineno if program_frames else None


__all__ = ["ProgramResult", "register_targets", "play", "write_rules"]

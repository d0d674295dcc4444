"""Finds the part of a source line that was running, from the instruction of a frame.

From Python 3.11 on, code objects have the source position of each instruction (PEP 657). Recording stores only the code
and the instruction. This module looks up the positions once per code object, when a trace is built.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from types import CodeType

from tinyexplore.explore.recording.sources import source_text
from tinyexplore.explore.tracefile.spans import Span
from tinyexplore.trace import UserFrame

_Position = tuple[int | None, int | None, int | None, int | None]  # as `co_positions` returns it, with columns in bytes


class Spans:
    """Computes the spans of frames, with a cache per file and code object.

    text_of: returns the text of a file.
    """

    def __init__(self, text_of: Callable[[str], str] = source_text) -> None:
        self._text_of = text_of
        self._positions: dict[int, tuple[CodeType, list[_Position]]] = {}
        self._files: dict[str, _File] = {}

    def span_of_frame(self, frame: UserFrame) -> Span | None:
        """Returns the part of the expression that `frame` was running; None if it is unknown."""
        code = frame.code
        if code is None or frame.instruction < 0 or not hasattr(code, "co_positions"):
            return None
        if id(code) not in self._positions:
            self._positions[id(code)] = (code, list(code.co_positions()))
        positions = self._positions[id(code)][1]
        word = frame.instruction // 2  # an instruction is a word of two bytes
        if word >= len(positions):
            return None
        line, end_line, column, end_column = positions[word]
        if line is None or end_line is None or column is None or end_column is None:
            return None
        if frame.file not in self._files:
            self._files[frame.file] = _File(self._text_of(frame.file))
        return self._files[frame.file].span(line, column, end_line, end_column)


class _File:
    """The lines of a source file, and the positions of its method names."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._names = _find_names_of_attributes(text)

    def span(self, line: int, column: int, end_line: int, end_column: int) -> Span | None:
        """Returns a span in characters. For `x.softmax()` the span is `.softmax()`: `x` was evaluated before."""
        if not 1 <= line <= end_line <= len(self._lines):
            return None
        if (name := self._names.get((end_line, end_column))) is not None:
            begin, name_line, name_column = name
            if (line, column) in (begin, (name_line, name_column)):
                before = self._lines[name_line - 1].encode()[:name_column].rstrip()
                line, column = name_line, len(before) - 1 if before.endswith(b".") else name_column
        span = (line, self._count_characters(line, column), end_line, self._count_characters(end_line, end_column))
        return span if span[:2] < span[2:] else None

    def _count_characters(self, line: int, column: int) -> int:
        text = self._lines[line - 1]
        return column if text.isascii() else len(text.encode()[:column].decode(errors="replace"))


def _find_names_of_attributes(text: str) -> dict[tuple[int, int], tuple[tuple[int, int], int, int]]:
    """Returns, for the end of each `value.name` or `value.name(...)`, its start and the position of `name`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user saw these warnings when the code was compiled
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    spans = {}
    for node in ast.walk(tree):
        attribute = node.func if isinstance(node, ast.Call) else node
        if not isinstance(attribute, ast.Attribute) or not isinstance(node, (ast.Call, ast.Attribute)):
            continue
        line, column = attribute.end_lineno or 0, (attribute.end_col_offset or 0) - len(attribute.attr.encode())
        spans[node.end_lineno or 0, node.end_col_offset or 0] = ((node.lineno, node.col_offset), line, column)
    return spans


__all__ = ["Spans"]

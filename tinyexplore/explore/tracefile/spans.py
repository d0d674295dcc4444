"""Parts of a line of the user's code: their text, and the kernel that computes each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tinyexplore.explore.tracefile.model import Frame, TraceTables
from tinyexplore.explore.tracefile.result_display import DisplayableRow

Span = tuple[int, int, int, int]  # first line and column, last line and column; columns in characters


def span_text(trace: TraceTables, frame: Frame) -> str:
    """Returns the part of the user's source at a frame, such as ".softmax()"; "" if its span is unknown."""
    if frame.span is None:
        return ""
    line, column, end_line, end_column = frame.span
    lines = trace.sources[frame.source].text.splitlines()[line - 1 : end_line]
    if len(lines) <= end_line - line:
        return ""  # a trace may come from an untrusted source
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    return " ".join(part.strip() for part in lines)


@dataclass(frozen=True, slots=True, repr=False)
class Mark(DisplayableRow):
    """The part of a line that one expression occupies.

    start: the first column.
    stop: the column after the last one.
    kernel: the kernel that computes it, None for several or none.
    """

    start: int
    stop: int
    kernel: int | None


def marks(trace: TraceTables, source: int) -> dict[int, list[Mark]]:
    """Returns, for each line, its parts from left to right; each character belongs to the innermost expression.

    The front end underlines the same parts.
    """
    lines = trace.sources[source].text.splitlines()
    owner: dict[tuple[int, int], int] = {}  # (line, column) → frame
    spans = [(frame.span, frame.id) for frame in trace.frames if frame.source == source and frame.span is not None]
    for span, frame in sorted(spans, key=lambda entry: -_measure_span(entry[0], lines)):
        line, column, end_line, end_column = span
        for number in range(line, min(end_line, len(lines)) + 1):
            text = lines[number - 1]
            first = max(column if number == line else 0, len(text) - len(text.lstrip()))
            for owned_column in range(first, min(end_column if number == end_line else len(text), len(text))):
                owner[number, owned_column] = frame
    kernels = _find_kernels_of_frames(trace)
    marks_of: dict[int, list[Mark]] = {}
    last: tuple[int, int, int] | None = None  # line, column, frame
    for (line, column), frame in sorted(owner.items()):
        row = marks_of.setdefault(line, [])
        if last == (line, column - 1, frame):
            row[-1] = replace(row[-1], stop=column + 1)
        else:
            row.append(Mark(column, column + 1, kernels.get(frame)))
        last = (line, column, frame)
    return marks_of


def _measure_span(span: Span, lines: list[str]) -> int:
    line, column, end_line, end_column = span
    return sum(len(text) for text in lines[line - 1 : end_line - 1]) + end_column - column


def _find_kernels_of_frames(trace: TraceTables) -> dict[int, int | None]:
    """Returns the kernel that computes the nodes of each frame, ignoring views; None if there are several."""
    first: dict[int, int] = {}
    for kernel in trace.kernels:
        for node in (*kernel.nodes, *kernel.roots):
            first.setdefault(node, kernel.id)
    of_frame: dict[int, set[int]] = {}
    for trace_node in trace.nodes:
        if trace_node.user is not None and trace_node.id in first and trace_node.group != "movement":
            of_frame.setdefault(trace_node.user, set()).add(first[trace_node.id])
    return {frame: next(iter(kernels)) if len(kernels) == 1 else None for frame, kernels in of_frame.items()}


__all__ = ["Mark", "Span", "marks", "span_text"]

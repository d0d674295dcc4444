"""The lines of the user's Python by the time of their kernels."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.encodable_text import for_terminal
from tinyexplore.explore.tracefile.model import Node
from tinyexplore.explore.tracefile.modules import shares
from tinyexplore.explore.tracefile.pictures.table_pictures import Bar, Column, sheet_svg
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.tracefile.trace import Trace

SHARE_NOTE = (
    "Where several lines share a kernel, its time is divided by the number of elements that each line computes."
)
OUTSIDE_SOURCE = "(no line of your program)"


@dataclass(frozen=True, slots=True, repr=False)
class LineTime(DisplayableRow):
    """A line of Python and the time of its kernels."""

    source: int | None
    """Id of the source in the trace; None for operations without a line of the user."""
    file: str
    """Name of the source."""
    line: int
    """Line number, from 1; 0 if there is none."""
    text: str
    """Text of the line without its indentation."""
    time_us: float
    """Sum of the line's shares of the kernels' medians, in microseconds."""
    share: float
    """That time divided by the sum of all medians, 0 to 1; 0 without times."""
    kernels: tuple[int, ...]
    """Ids of the kernels that compute an operation of this line."""


@dataclass(frozen=True, slots=True, repr=False)
class LinesByTime(DisplayableRow):
    """All lines that caused kernels, in the order of the source."""

    total_us: float
    """Sum of the kernels' medians, in microseconds."""
    untimed: int
    """Number of kernels without a time."""
    lines: tuple[LineTime, ...]
    """The lines. Their times add up to `total_us`."""
    how: str = SHARE_NOTE
    """How a shared kernel is divided."""

    def by_time(self) -> tuple[LineTime, ...]:
        """Returns the lines, the slowest first."""
        return tuple(sorted(self.lines, key=lambda line: -line.time_us))

    def __str__(self) -> str:
        """Returns a table for a terminal, the slowest line first."""
        rows = [f"{'time':>9} {'share':>6} {'kernels':>7}  line"]
        for line in self.by_time():
            time = duration_text(line.time_us) if self.total_us else "–"
            row = f"{time:>9} {line.share:>6.1%} {len(line.kernels):>7}  {_format_line_position(line)}  {line.text}"
            rows.append(row.rstrip())
        rows.append(f"{duration_text(self.total_us)} in all. {self.how}")
        if self.untimed:
            rows.append(f"{count_text(self.untimed, 'kernel')} without a time.")
        return for_terminal("\n".join(rows))


def lines_by_time(trace: Trace) -> LinesByTime:
    """Returns the lines of a trace, each with its share of the kernels' median times.

    An operation belongs to the line in which the user called it. An operation that the library added (a gradient, a
    cast) belongs to the line that caused it.
    """
    medians = {run.kernel: run.median_us for run in trace.runs}
    times: dict[tuple[int, int] | None, float] = {}
    kernels: dict[tuple[int, int] | None, list[int]] = {}

    def line_of(node: Node) -> tuple[int, int] | None:
        frame = None if node.user is None else trace.frames[node.user]
        return None if frame is None else (frame.source, frame.line)

    for kernel in trace.kernels:
        for line, share in shares(trace, kernel, line_of).items():
            times[line] = times.get(line, 0.0) + share * medians.get(kernel.id, 0.0)
            kernels.setdefault(line, []).append(kernel.id)
    total = sum(medians.get(kernel.id, 0.0) for kernel in trace.kernels)
    texts = [source.text.splitlines() for source in trace.sources]

    def describe_line(line: tuple[int, int] | None) -> LineTime:
        share = times[line] / total if total else 0.0
        if line is None:
            return LineTime(None, "", 0, OUTSIDE_SOURCE, times[line], share, tuple(kernels[line]))
        source, number = line
        text = texts[source][number - 1].strip() if 0 < number <= len(texts[source]) else ""
        return LineTime(source, trace.sources[source].name, number, text, times[line], share, tuple(kernels[line]))

    order = sorted(line for line in times if line is not None) + [line for line in times if line is None]
    untimed = sum(kernel.id not in medians for kernel in trace.kernels)
    return LinesByTime(total, untimed, tuple(describe_line(line) for line in order))


def lines_picture(trace: Trace) -> str:
    """Returns the lines as a static picture, the slowest first."""
    line_times = lines_by_time(trace)
    longest_us = max((line.time_us for line in line_times.lines), default=0.0) or 1.0
    rows = [
        (
            _format_line_position(line),
            line.text,
            duration_text(line.time_us),
            Bar(0.0, line.time_us / longest_us),
            f"{line.share:.1%}",
            str(len(line.kernels)),
        )
        for line in line_times.by_time()
    ]
    columns = (
        Column("line"),
        Column("Python", mono=True),
        Column("time", right=True),
        Column(""),
        Column("share", right=True),
        Column("kernels", right=True),
    )
    return sheet_svg(f"Lines of {trace.title}".strip(), columns, rows, SHARE_NOTE)


def _format_line_position(line: LineTime) -> str:
    return f"{line.file}:{line.line}" if line.line else line.file


__all__ = ["LineTime", "LinesByTime", "lines_by_time", "lines_picture"]

"""Draws the tables of the views as static SVG pictures: kernels, times, passes, buffers, listings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import language_name
from tinyexplore.explore.tracefile.figures import no_time_text, samples_text, sum_text
from tinyexplore.explore.tracefile.model import Program, Stage, StageText, TraceTables
from tinyexplore.explore.tracefile.modules import modules
from tinyexplore.explore.tracefile.pictures.drawing import (
    COLORS,
    KERNEL_HUES,
    document,
    kernel_color,
    shorten,
    text,
)
from tinyexplore.explore.tracefile.spans import Mark, marks
from tinyexplore.explore.tracefile.stage_texts import changed_rows
from tinyexplore.explore.tracefile.texts import duration_text

MAX_ROWS = 60
_MARGIN = 20.0
_ROW = 19.0
_MONO_PX = 6.65
_SANS_PX = 6.2
_GAP = 18.0
_BAR_WIDTH = 260.0
_MAX_CHARACTERS = 96


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a table cell.

    start: its start, as a share of the column's width (0 to 1).
    end: its end, as a share of the column's width (0 to 1).
    color: the name of its color.
    """

    start: float
    end: float
    color: str = "memory"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a sheet.

    title: the text of its head.
    right: whether its cells are aligned right.
    mono: whether its cells are code.
    """

    title: str
    right: bool = False
    mono: bool = False


@dataclass(frozen=True, slots=True)
class UnderlinedCode:
    """Code with underlined parts.

    words: the code.
    marks: the parts, each in the color of the kernel that computes it.
    """

    words: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line of a text that is compared with the previous text.

    words: the line.
    color: the name of the background color.
    """

    words: str
    color: str


Cell = str | Bar | UnderlinedCode | ChangedLine


def sheet_svg(
    title: str, columns: Sequence[Column], rows: Sequence[Sequence[Cell]], note: str = "", kernels: int = 0
) -> str:
    """Returns a table as a picture of at most `MAX_ROWS` rows; the note counts the omitted rows.

    The style sheet has the colors of `kernels` kernels.
    """
    drawn_rows = rows[:MAX_ROWS]
    if left := len(rows) - len(drawn_rows):
        note = " · ".join(part for part in (note, f"{count_text(left, 'more row')} not drawn") if part)
    widths = [_compute_width(column, [row[i] for row in drawn_rows]) for i, column in enumerate(columns)]
    has_head = any(column.title for column in columns)
    top = 46.0 + (_ROW if has_head else 0.0)
    width = max(sum(widths) + _GAP * (len(columns) - 1), len(title) * 7.4, len(note) * _SANS_PX) + 2 * _MARGIN
    height = top + len(drawn_rows) * _ROW + (24.0 if note else 6.0)
    parts = [text(_MARGIN, 26, title, size=13, bold=True)]
    x = _MARGIN
    for i, column in enumerate(columns):
        text_x, anchor = (x + widths[i], "end") if column.right else (x, "start")
        if column.title:
            parts.append(text(text_x, 48, column.title, shade="ink2", anchor=anchor))
        for k, row in enumerate(drawn_rows):
            y = top + k * _ROW
            cell = row[i]
            if isinstance(cell, Bar):
                parts.append(_draw_bar(cell, x, y))
            else:
                label = shorten(_cell_text(cell), _MAX_CHARACTERS)
                if isinstance(cell, ChangedLine):
                    parts.append(_highlight(cell.color, x, y, widths[i]))
                if isinstance(cell, UnderlinedCode):
                    parts.extend(_draw_underline(mark, x, y) for mark in cell.marks if mark.stop <= len(label))
                parts.append(text(text_x, y, label, mono=column.mono, anchor=anchor))
        x += widths[i] + _GAP
    if note:
        parts.append(text(_MARGIN, height - 11, note, shade="ink2"))
    return document(width, height, title, f"{title}. {note}", parts, kernels)


def _cell_text(cell: str | UnderlinedCode | ChangedLine) -> str:
    return cell if isinstance(cell, str) else cell.words


def _draw_underline(mark: Mark, x: float, y: float) -> str:
    start, stop = x + mark.start * _MONO_PX + 0.5, x + mark.stop * _MONO_PX - 0.5
    path = f'd="M{start:.1f} {y + 3.5:.1f}H{stop:.1f}" fill="none"'
    if mark.kernel is None:
        return f'<path class="edge" {path} stroke="#9aa5b3" stroke-dasharray="1.5 1.5"/>'
    color = kernel_color(mark.kernel)
    return f'<path class="k-{mark.kernel % KERNEL_HUES}" {path} stroke="{color.light}" stroke-width="2"/>'


def _highlight(color: str, x: float, y: float, width: float) -> str:
    return (
        f'<rect class="g-{color}" x="{x - 4:.1f}" y="{y - 13:.1f}" width="{width + 8:.1f}" height="{_ROW:.1f}" '
        f'fill="{COLORS[color].light_fill}" stroke-width="0"/>'
    )


def _compute_width(column: Column, cells: Sequence[Cell]) -> float:
    pixels = _MONO_PX if column.mono else _SANS_PX
    widths = [
        _BAR_WIDTH if isinstance(cell, Bar) else min(len(_cell_text(cell)), _MAX_CHARACTERS) * pixels for cell in cells
    ]
    return max([len(column.title) * _SANS_PX, *widths])


def _draw_bar(bar: Bar, x: float, y: float) -> str:
    width = max((bar.end - bar.start) * _BAR_WIDTH, 2.0)
    color = COLORS[bar.color]
    return (
        f'<rect class="g-{bar.color}" x="{x + bar.start * _BAR_WIDTH:.1f}" y="{y - 9:.1f}" width="{width:.1f}" '
        f'height="11" rx="2" fill="{color.light_fill}" stroke="{color.light}"/>'
    )


# *** pictures of tables ***


def kernels_svg(trace: TraceTables) -> str:
    """Returns the table of kernels: the calls that each computes, its opts, time and rate."""
    medians = {run.kernel: run.median_us for run in trace.runs}
    rows = []
    for kernel in trace.kernels:
        median_us = medians.get(kernel.id)
        rate = f"{kernel.flops / median_us / 1e3:.1f}" if median_us else "–"
        time = duration_text(median_us) if median_us is not None else no_time_text(kernel)
        opts = " ".join(kernel.opts) or "none"
        rows.append((str(kernel.id), kernel.name, ", ".join(kernel.calls), opts, time, rate))
    columns = (
        Column("#", right=True),
        Column("kernel", mono=True),
        Column("of"),
        Column("opts", mono=True),
        Column("time", right=True),
        Column("GFLOP/s", right=True),
    )
    return sheet_svg(f"Kernels of {trace.title}".strip(), columns, rows, "" if rows else "this trace has no kernels")


def timing_svg(trace: TraceTables) -> str:
    """Returns the kernels' median times as bars, with the quartiles as text."""
    slowest = max((run.median_us for run in trace.runs), default=1.0) or 1.0
    rows: list[tuple[Cell, ...]] = []
    for run in trace.runs:
        spread = f"{duration_text(run.low_us)} to {duration_text(run.high_us)}, {samples_text(run)}"
        name = trace.kernels[run.kernel].name
        rows.append((str(run.kernel), name, Bar(0.0, run.median_us / slowest), duration_text(run.median_us), spread))
    total = sum(run.median_us for run in trace.runs)
    reasons = dict.fromkeys(kernel.not_run for kernel in trace.kernels if kernel.not_run)
    untimed = " ".join(reasons)
    note = "no kernel of this trace was run"
    if rows:
        note = f"{duration_text(total)} in all: {sum_text(trace.runs)}"
    if untimed:
        note = f"{note}. {untimed}" if rows else untimed
    columns = (
        Column("#", right=True),
        Column("kernel", mono=True),
        Column(""),
        Column("median", right=True),
        Column("quartiles"),
    )
    return sheet_svg(f"Times of {trace.title}".strip(), columns, rows, note)


def memory_svg(trace: TraceTables) -> str:
    """Returns the buffers with their lifetimes as bars."""
    ends = [stage.started_us + stage.elapsed_us for stage in trace.stages]
    times = [
        time_us for buffer in trace.buffers for time_us in (buffer.allocated_us, buffer.freed_us) if time_us is not None
    ]
    end = max([1.0, *ends, *times])
    rows: list[tuple[Cell, ...]] = []
    for buffer in trace.buffers:
        start, stop = buffer.allocated_us or 0.0, end if buffer.freed_us is None else buffer.freed_us
        kind = f"{buffer.dtype} × {buffer.size:,}"
        rows.append((str(buffer.id), kind, f"{buffer.bytes:,} B", Bar(max(start, 0.0) / end, stop / end)))
    note = f"over {duration_text(end)}" if rows else "this trace allocated no buffers"
    columns = (Column("#", right=True), Column("buffer"), Column("bytes", right=True), Column("alive"))
    return sheet_svg(f"Memory of {trace.title}".strip(), columns, rows, note)


def modules_svg(trace: TraceTables) -> str:
    """Returns the modules as a tree, with their time and memory."""
    tree = modules(trace)
    total_us = tree.time_us or 1.0
    rows: list[tuple[Cell, ...]] = []
    for depth, module in tree.walk():
        name = f"{'  ' * depth}{module.name}" + (f": {module.kind}" if module.kind != module.name else "")
        numbers = ", ".join(map(str, module.kernels[:8])) + (", …" if len(module.kernels) > 8 else "")
        rows.append(
            (
                name,
                duration_text(module.time_us),
                Bar(0.0, module.time_us / total_us),
                duration_text(module.backward_us) if module.backward_us else "–",
                f"{module.parameter_bytes:,} B",
                f"{module.result_bytes:,} B",
                numbers,
            )
        )
    columns = (
        Column("module", mono=True),
        Column("time", right=True),
        Column(""),
        Column("for gradients", right=True),
        Column("parameters", right=True),
        Column("results", right=True),
        Column("kernels"),
    )
    note = "a kernel that several modules share is divided among them by the elements that each computes"
    return sheet_svg(f"Modules of {trace.title}".strip(), columns, rows, note if trace.scopes else "no modules")


def passes_svg(trace: TraceTables, stage: int | None = None) -> str:
    """Returns the passes that changed something, with their firings or changed lines; `stage` is marked."""
    rows: list[tuple[Cell, ...]] = []
    lines: dict[int, int] = {}
    for one_text in trace.stage_texts:
        lines[one_text.stage] = lines.get(one_text.stage, 0) + _count_changed_lines(trace, one_text)
    for row_stage in trace.stages:
        if not row_stage.steps and row_stage.id not in lines:
            continue
        firings = sum(step.rule is not None for step in row_stage.steps)
        did = count_text(lines[row_stage.id], "line") if not firings and row_stage.id in lines else str(firings)
        mark = "▸" if row_stage.id == stage else ""
        time = duration_text(row_stage.elapsed_us) if row_stage.elapsed_us else ""
        rows.append((mark, _kernel_of(trace, row_stage), row_stage.name, did, time))
    columns = (
        Column(""),
        Column("kernel", mono=True),
        Column("pass"),
        Column("lines changed" if lines else "firings", right=True),
        Column("time", right=True),
    )
    return sheet_svg(f"Passes of {trace.title}".strip(), columns, rows, "" if rows else "no rule fired")


def _count_changed_lines(trace: TraceTables, text_after: StageText) -> int:
    """Returns the number of lines that a stage added or rewrote; all lines if the text is the first in its language."""
    before = _previous_text(trace, text_after)
    lines_before = Counter(() if before is None else (line.text for line in before.lines))
    return sum((Counter(line.text for line in text_after.lines) - lines_before).values())


def _previous_text(trace: TraceTables, text_after: StageText) -> StageText | None:
    """Returns the previous text in the same language, or None."""
    before = None if text_after.before is None else trace.stage_texts[text_after.before]
    return before if before is not None and before.language == text_after.language else None


_ROW_COLORS = {"+": "loop", "−": "reduce"}


def stage_text_svg(trace: TraceTables, stage: int) -> str:
    """Returns the first text after a stage: the changed lines with their context.

    The first text of a language is drawn whole.
    """
    text_after = next(text for text in trace.stage_texts if text.stage == stage)
    before = _previous_text(trace, text_after)
    after = [line.text for line in text_after.lines]
    changes = (
        [(" ", number, line) for number, line in enumerate(after, 1)]
        if before is None
        else changed_rows([line.text for line in before.lines], after)
    )
    rows = []
    for mark, number, line in changes:
        label = line.expandtabs(4)
        cell = ChangedLine(label, _ROW_COLORS[mark]) if mark in _ROW_COLORS else label
        rows.append(("" if number is None else str(number), mark.strip(), cell))
    name = text_after.title or language_name(trace, text_after.language)
    title = f"{name} after {trace.stages[stage].name}"
    note = "" if before is None else f"− and +: changes since {trace.stages[before.stage].name}"
    return sheet_svg(title, (Column("", right=True), Column("", mono=True), Column("", mono=True)), rows, note)


def _kernel_of(trace: TraceTables, stage: Stage) -> str:
    return "" if stage.kernel is None else f"{stage.kernel} · {trace.kernels[stage.kernel].name}"


def listing_svg(trace: TraceTables, language: str = "", kernel: int = 0) -> str:
    """Returns one listing as a picture: the program or the last stage text in `language`, else the user's Python."""
    program = _find_program(trace, language, kernel)
    last = next((text for text in reversed(trace.stage_texts) if text.language == language), None)
    underlined: dict[int, list[Mark]] = {}
    if program is not None:
        lines = [line.text for line in program.lines]
        title = f"kernel {program.kernel} · {trace.kernels[program.kernel].name}: {language}"
    elif last is not None:
        lines = [line.text for line in last.lines]
        title = f"{language_name(trace, language)} after {trace.stages[last.stage].name}"
    elif trace.sources:
        lines = trace.sources[0].text.rstrip().splitlines()
        title = trace.sources[0].name
        underlined = marks(trace, 0)
    else:
        return sheet_svg("Code", (Column(""),), (), "this trace holds no listing")
    rows = [
        (
            str(number),
            UnderlinedCode(line.replace("\t", "    "), tuple(underlined.get(number, ()) if "\t" not in line else ())),
        )
        for number, line in enumerate(lines, start=1)
    ]
    note = "" if language in ("", "source") or program is not None or last is not None else f"no {language} was listed"
    if len(trace.kernels) > 1 and any(mark.kernel is not None for row in underlined.values() for mark in row):
        note = "underlined in the color of the kernel that computes it"
    return sheet_svg(title, (Column("", right=True), Column("", mono=True)), rows, note, len(trace.kernels))


def _find_program(trace: TraceTables, language: str, kernel: int) -> Program | None:
    programs = [program for program in (*trace.programs, *trace.origins) if program.language == language]
    return next((program for program in programs if program.kernel == kernel), programs[0] if programs else None)


__all__ = [
    "Bar",
    "Column",
    "UnderlinedCode",
    "kernels_svg",
    "listing_svg",
    "memory_svg",
    "modules_svg",
    "passes_svg",
    "sheet_svg",
    "stage_text_svg",
    "timing_svg",
]

"""Draws a ShapeView: the elements with their positions, beside memory with the elements that are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.shapes.cells import cells_of, memory_width, memory_window, shown_box
from tinyexplore.explore.analysis.shapes.text import PADDING, planes_of, step_text, view_text, window_text
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.pictures.drawing import COLORS, document, shorten, text

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.shapes.grid import ShapeGrid
    from tinyexplore.shape import ShapeTracker

_MARGIN = 20.0
_CELL = 22.0
_GAP = 36.0
_HEAD = 17.0
_DIGIT = 6.8
_MAX_CHARACTERS = 120
_OTHERS = ("reduce", "loop", "control", "alu", "movement", "const")  # the colors of other views, in turn


@dataclass(frozen=True, slots=True)
class _Grid:
    """A drawn grid.

    parts: SVG elements.
    width: in pixels.
    height: in pixels.
    """

    parts: list[str]
    width: float
    height: float


def shape_svg(view: ShapeGrid) -> str:
    """Returns the grids of a view, its movements and its index expression."""
    title = shorten(step_text(view), _MAX_CHARACTERS)
    lines = [f"view {view_text(part.shape, part.strides, part.offset, part.mask)}" for part in view.views]
    lines.append(f"offset {view.before}")
    if str(view.after) != str(view.before):
        lines.append(f"simplified {view.after}")
    lines = [shorten(line, _MAX_CHARACTERS) for line in [*([view.formula] if view.formula else []), *lines]]
    top = 44.0 + 16.0 * len(lines) + 14
    counts = Counter(cell.offset for cell in view.cells if cell.offset is not None)
    element = _draw_elements(view, _MARGIN, top)
    memory = _draw_memory(view, counts, _MARGIN + element.width + _GAP, top)
    notes = [note for note in (view.law, window_text(view)) if note]
    text_width = max([len(title) * 7.4, *(len(line) * 6.7 for line in lines), *(len(note) * 6.1 for note in notes)])
    width = max(element.width + _GAP + memory.width, text_width) + 2 * _MARGIN
    height = top + max(element.height, memory.height) + 12 + 16 * len(notes) + 8
    parts = [text(_MARGIN, 26, title, size=13, bold=True)]
    parts += [text(_MARGIN, 46 + 16 * row, line, size=11, mono=True) for row, line in enumerate(lines)]
    parts += [*element.parts, *memory.parts]
    parts += [
        text(_MARGIN, height - 12 - 16 * row, note, size=11, shade="ink2") for row, note in enumerate(reversed(notes))
    ]
    return document(width, height, title, f"{title}. {'. '.join(lines)}", parts)


def _draw_elements(view: ShapeGrid, x: float, y: float) -> _Grid:
    """Returns the grid of elements, a table for each plane, with the position of each element."""
    box = view.box
    planes = planes_of(view)
    wide = _compute_cell_width(max((cell.offset or 0 for cell in view.cells), default=0))
    row_start = box[-2][0] if len(box) > 1 else 0
    column_start = box[-1][0] if box else 0
    label = 32.0
    parts = [text(x, y, "elements and their offsets", size=11, shade="ink2")]
    top_of_row = y + 8
    widest = 165.0
    for index, rows in planes:
        if index:
            top_of_row += _HEAD
            parts.append(
                text(x + label, top_of_row, f"[{', '.join(map(str, index))}, …]", size=11, shade="ink2", mono=True)
            )
        top_of_row += _HEAD
        for column in range(len(rows[0]) if rows else 0):
            head = str(column + column_start)
            parts.append(
                text(x + label + (column + 0.5) * wide, top_of_row - 4, head, size=11, shade="ink2", anchor="middle")
            )
        for number, row in enumerate(rows):
            if len(box) > 1:
                middle = top_of_row + _CELL / 2 + 3
                parts.append(text(x + label - 6, middle, str(number + row_start), size=11, shade="ink2", anchor="end"))
            parts += [
                _draw_cell(x + label + column * wide, top_of_row, wide, offset) for column, offset in enumerate(row)
            ]
            top_of_row += _CELL
            widest = max(widest, label + len(row) * wide)
        top_of_row += 6
    return _Grid(parts, widest, top_of_row - y)


def _draw_memory(view: ShapeGrid, counts: Counter[int], x: float, y: float) -> _Grid:
    """Returns memory in rows: which elements are read, how often, and by which other views."""
    width = memory_width([step.tracker for step in view.steps])
    start, stop = memory_window(view.size, width, min(counts, default=0))
    wide = _compute_cell_width(stop)
    head = f"{view.name}: {count_text(view.size, 'place')}" + (
        "" if (start, stop) == (0, view.size) else f", {start} … {stop - 1}"
    )
    parts = [text(x, y, head, size=11, shade="ink2")]
    beside = [_find_offsets(other.tracker) for other in view.others]
    top = y + 8 + _HEAD
    for offset in range(start, stop):
        row, column = divmod(offset - start, width)
        left, above = x + column * wide, top + row * _CELL
        parts.append(_draw_cell(left, above, wide, offset, counts[offset]))
        for number, offsets in enumerate(beside):
            if offset in offsets:
                parts.append(_draw_bar(left + 2, above + _CELL - 4 - 3 * number, wide - 4, number))
    label_top = top + -(-(stop - start) // width) * _CELL
    for number, other in enumerate(view.others):
        label_top += 16
        parts.append(_draw_bar(x, label_top - 6, 14, number))
        parts.append(text(x + 20, label_top, other.name, size=11, shade="ink2"))
    return _Grid(parts, max(width * wide, len(head) * 6.4), label_top - y + 6)


def _find_offsets(tracker: ShapeTracker) -> set[int]:
    """Returns the memory offsets of the drawn elements of a view."""
    cells = cells_of(tracker, shown_box(tracker.shape))
    return {cell.offset for cell in cells if cell.offset is not None}


def _compute_cell_width(largest: int) -> float:
    return max(22.0, len(str(largest)) * _DIGIT + 9)


def _draw_cell(x: float, y: float, width: float, offset: int | None, times: int = 1) -> str:
    """Returns one cell: filled if it is read, the darker the more often; dashed if it is padding."""
    name = "memory" if times == 1 else "buffer" if times else ""
    color = COLORS[name or "const"]
    attributes = f'x="{x:.1f}" y="{y:.1f}" width="{width - 2:.1f}" height="{_CELL - 2:.1f}" rx="2.5"'
    if offset is None:
        dashed = f'<rect class="g-movement" {attributes} fill="none" stroke="{color.light}" stroke-dasharray="2 2"/>'
        return dashed + text(x + width / 2 - 1, y + 14, PADDING, size=11, shade="ink2", anchor="middle")
    look = f'class="g-{name}"' if name else 'class="cell"'
    box = f'<rect {look} {attributes} fill="{color.light_fill if name else "#f7f8fa"}" stroke="{color.light}"/>'
    label = text(
        x + width / 2 - 1, y + 14, str(offset), size=11, anchor="middle", mono=True, shade="ink" if times else "ink2"
    )
    title = f"<title>{offset}, read {times} times</title>" if times > 1 else ""
    return f"<g>{title}{box}{label}</g>"


def _draw_bar(x: float, y: float, width: float, number: int) -> str:
    name = _OTHERS[number % len(_OTHERS)]
    color = COLORS[name].light
    attributes = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="2"'
    return f'<rect class="g-{name}" {attributes} fill="{color}" stroke="{color}"/>'


__all__ = ["shape_svg"]

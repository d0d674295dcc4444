"""The timeline as a static picture: stages, runs of kernels, and allocated memory over one time axis.

The panel Timeline draws the same rows, and can be zoomed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import Timeline, TimelineSpan, TraceTables
from tinyexplore.explore.tracefile.pictures.drawing import COLORS, KERNEL_HUES, document, kernel_color, text
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.tracefile.timeline import kernel_timeline, timeline

_MARGIN, _LABEL, _WIDTH = 20.0, 130.0, 760.0
_ROW, _GAP, _MEMORY = 15.0, 10.0, 70.0
_DEPTHS = 4  # most levels of nested stages
_CHARACTER = 6.0


def timeline_picture(trace: TraceTables, compile_time: bool = False) -> str:
    """Returns the runs of a trace in execution order, with memory below, as a standalone SVG.

    compile_time: whether to draw the compiler's stages too. The axis is then elapsed time, else kernel time. A span
        shorter than a pixel is drawn one pixel wide.
    """
    data = timeline(trace) if compile_time else kernel_timeline(trace)
    title = f"Timeline of {trace.title}".strip()
    if not data.spans:
        label = "no part of this trace has a time"
        parts = [text(_MARGIN, 26, title, size=13, bold=True), text(_MARGIN, 52, label, shade="ink2")]
        return document(360, 72, title, label, parts)
    end_us = max(data.end_us, 1e-3)
    parts, y = _draw_panel(data, data.spans, TimeAxis(0.0, end_us), 46.0)
    is_whole = any(span.stage is not None for span in data.spans)
    note = f"{duration_text(end_us)} in all; kernels by their number, in their first run"
    if not is_whole:
        note = f"{duration_text(end_us)} of kernel time in execution order, each run as its median; no compile time"
    parts.append(text(_MARGIN, 26, title, size=13, bold=True))
    parts.append(text(_MARGIN, y + 38, note, shade="ink2"))
    description = f"{title}. {note}. {count_text(len(data.spans), 'span')}, {count_text(len(data.lives), 'buffer')}."
    return document(_MARGIN + _LABEL + _WIDTH + _MARGIN, y + 50, title, description, parts, len(trace.kernels))


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """A time axis over the width of the picture.

    begin_us: the time at the left end, in microseconds.
    end_us: the time at the right end, in microseconds.
    """

    begin_us: float
    end_us: float

    def __call__(self, time_us: float) -> float:
        share = (time_us - self.begin_us) / (self.end_us - self.begin_us)
        return _MARGIN + _LABEL + min(max(share, 0.0), 1.0) * _WIDTH


def _end_us(span: TimelineSpan) -> float:
    return span.started_us + span.elapsed_us


def _draw_panel(data: Timeline, spans: tuple[TimelineSpan, ...], x: TimeAxis, top: float) -> tuple[list[str], float]:
    """Returns the SVG of the rows of spans with the memory below them, and the y of the lower end."""
    parts: list[str] = []
    y = top
    for row, name in data.rows:
        row_spans = [span for span in spans if span.row == row and span.depth < _DEPTHS]
        if not row_spans:
            continue
        parts.append(text(_MARGIN, y + 11, name, shade="ink2"))
        parts.extend(_draw_bar(span, x, y) for span in row_spans)
        y += (max(span.depth for span in row_spans) + 1) * _ROW + _GAP
    parts.extend(_memory_svg(data, x, y))
    y += _MEMORY + 6
    return [*_draw_ticks(x, top, y), *parts], y


def tick_step(end_us: float, max_ticks: int = 6) -> float:
    """Returns the distance of ticks: 1, 2 or 5 times a power of ten, with at most `max_ticks` ticks."""
    least_step = end_us / max_ticks
    power = 10.0 ** math.floor(math.log10(least_step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least_step)


def _draw_ticks(x: TimeAxis, top: float, bottom: float) -> list[str]:
    step = tick_step(x.end_us - x.begin_us)
    parts = []
    for number in range(math.ceil(x.begin_us / step), math.floor(x.end_us / step) + 1):
        left = x(number * step)
        parts.append(
            f'<path class="outline" d="M{left:.1f} {top:.1f}V{bottom:.1f}" stroke="#dfe3e8" stroke-opacity="0.7"/>'
        )
        label = duration_text(number * step) if number else "0"
        parts.append(text(left, bottom + 14, label, shade="ink2", anchor="middle"))
    return parts


def describe_span(span: TimelineSpan) -> str:
    """Returns the label of a span: "kernel 3", "simplify"."""
    if span.stage is not None and span.name != "kernel":
        return span.name
    return span.name if span.kernel is None else f"kernel {span.kernel}"


def _draw_bar(span: TimelineSpan, x: TimeAxis, top: float) -> str:
    """Draws a span of time with its label, if there is room."""
    left, y = x(span.started_us), top + span.depth * _ROW
    width = max(1.0, x(_end_us(span)) - left)
    if span.kernel is None:
        color, name = COLORS["alu"], "g-alu"
    else:
        color, name = kernel_color(span.kernel), f"k-{span.kernel % KERNEL_HUES}"
    caption = next((caption for caption in _label_choices(span) if width > len(caption) * _CHARACTER + 6), "")
    label = text(left + 3, y + 10, caption) if caption else ""
    return (
        f"<g><title>{escape(_write_tooltip(span), quote=False)}</title>"
        f'<rect class="{name}" x="{left:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{_ROW - 2:g}" rx="1.5" fill="{color.light_fill}" stroke="{color.light}" stroke-width="0.8"/>'
        f"{label}</g>"
    )


def _label_choices(span: TimelineSpan) -> tuple[str, ...]:
    label = describe_span(span)
    return (label, label.removeprefix("kernel ")) if label.startswith("kernel ") else (label,)


def _write_tooltip(span: TimelineSpan) -> str:
    prefix = "" if span.kernel is None else f"kernel {span.kernel} · "
    return f"{prefix}{span.name}: {duration_text(span.elapsed_us)}"


def _memory_svg(data: Timeline, x: TimeAxis, top: float) -> list[str]:
    """Draws the allocated bytes as a step function."""
    most_bytes = max((nbytes for _, nbytes in data.memory), default=0)
    label = text(_MARGIN, top + 11, "memory", shade="ink2")
    caption = text(_MARGIN, top + 25, f"at most {most_bytes:,} B" if most_bytes else "none allocated", shade="ink2")
    if not most_bytes:
        return [label, caption]
    bottom = top + _MEMORY
    path = f"M{x(x.begin_us):.1f} {bottom:.1f}"
    for time_us, nbytes in data.memory:
        path += f"H{x(time_us):.1f}V{bottom - nbytes / most_bytes * (_MEMORY - 4):.1f}"
    path += f"H{x(x.end_us):.1f}V{bottom:.1f}Z"
    color = COLORS["memory"]
    area = f'<path class="g-memory" d="{path}" fill="{color.light_fill}" stroke="{color.light}"/>'
    return [label, caption, area]


__all__ = ["describe_span", "tick_step", "timeline_picture"]

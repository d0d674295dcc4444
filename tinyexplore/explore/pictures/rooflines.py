"""The roofline of a trace: a point for each kernel that was timed, under what the machine does at best.

The same figures as widgets/src/roofline.ts. Bytes are those that a kernel reads and writes once each
(`KernelInfo.bytes_moved`); `explore.roofline` counts those that the loads of one program ask for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tinyexplore.explore.counted import count_text
from tinyexplore.explore.figures import figures_text
from tinyexplore.explore.model import Ceiling, KernelInfo, Trace
from tinyexplore.explore.pictures.picture import KERNEL_HUES, document, kernel_colour, shortened, text
from tinyexplore.explore.pictures.roofline import LEFT, PLOT_HEIGHT, PLOT_WIDTH, TOP, Scale, axes, ceiling_lines

_MOST_WORDS = 11  # rows of the key
_KEY_WIDTH = 372.0
_CLEARLY = 1 - 1e-9  # where both are the same kernel's, rounding must not choose


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel: `attainable` GFLOP/s is what the ceilings leave it, `limit` which kind of them that is."""

    kernel: int
    flops_per_byte: float
    gflops: float
    attainable: float
    limit: str
    time_us: float

    @property
    def share(self) -> float:
        """What it does of what is attainable."""
        return self.gflops / self.attainable


@dataclass(frozen=True, slots=True)
class Roofline:
    """`measured`: whether `ceilings` are the machine's; else they are the best that kernels of this trace do.
    `idle`: timed kernels that have no place on it, because they do no floating-point arithmetic."""

    points: tuple[Point, ...]
    ceilings: tuple[Ceiling, ...]
    measured: bool
    idle: tuple[int, ...]


def roofline(trace: Trace) -> Roofline:
    """The points by kernel; of a trace without measured ceilings, under the best of its own kernels."""
    times = {run.kernel: run.median_us for run in trace.runs if run.median_us > 0}
    timed = [(kernel, times[kernel.id]) for kernel in trace.kernels if kernel.id in times]
    placed = [(kernel, time_us) for kernel, time_us in timed if kernel.flops and kernel.bytes_moved]
    ceilings = trace.ceilings or _best_of(timed)
    peak = max((one.rate for one in ceilings if one.kind == "arithmetic"), default=math.inf)
    points = []
    for kernel, time_us in placed:
        intensity = kernel.flops / kernel.bytes_moved
        by_memory = _bandwidth(ceilings, kernel.bytes_moved) * intensity
        attainable, limit = (by_memory, "memory") if by_memory < peak * _CLEARLY else (peak, "arithmetic")
        points.append(Point(kernel.id, intensity, kernel.flops / time_us / 1e3, attainable, limit, time_us))
    known = {kernel.id for kernel, _ in placed}
    idle = tuple(kernel.id for kernel, _ in timed if kernel.id not in known)
    return Roofline(tuple(points), ceilings, bool(trace.ceilings), idle)


def _best_of(timed: list[tuple[KernelInfo, float]]) -> tuple[Ceiling, ...]:
    gflops = max((kernel.flops / time_us / 1e3 for kernel, time_us in timed), default=0.0)
    moved = max((kernel.bytes_moved / time_us / 1e3 for kernel, time_us in timed), default=0.0)
    found = (Ceiling("most arithmetic here", "arithmetic", gflops), Ceiling("most bytes here", "memory", moved))
    return tuple(one for one in found if one.rate)


def _bandwidth(ceilings: tuple[Ceiling, ...], nbytes: int) -> float:
    """Of the nearest memory that so many bytes fit into."""
    fitting = [one.rate for one in ceilings if one.kind == "memory" and (one.holds == 0 or nbytes <= one.holds)]
    return max(fitting, default=math.inf)


def point_words(trace: Trace, point: Point) -> str:
    """ "kernel 3 · r_64_32: 12.3 GFLOP/s at 0.25 FLOP/B, 45.0 % of what memory allows"."""
    whose = f"what {point.limit} allows" if trace.ceilings else f"the best here, by {point.limit}"
    share = f"{figures_text(100 * point.share)} % of {whose}"
    rate = f"{figures_text(point.gflops)} GFLOP/s at {figures_text(point.flops_per_byte)} FLOP/B"
    return f"kernel {point.kernel} · {trace.kernels[point.kernel].name}: {rate}, {share}"


def note_words(found: Roofline) -> str:
    """What the picture leaves out, and whose ceilings these are."""
    whose = "ceilings measured on this machine" if found.measured else "ceilings: the best of these kernels"
    if not found.idle:
        return whose
    named = ", ".join(map(str, found.idle[:6])) + (", …" if len(found.idle) > 6 else "")
    return f"{whose} · {count_text(len(found.idle), 'kernel')} without floating-point arithmetic: {named}"


def roofline_picture(trace: Trace) -> str:
    """The roofline as a standalone SVG."""
    found = roofline(trace)
    title = f"Roofline of {trace.title}".strip()
    if not found.points:
        words = "no kernel of this trace that does floating-point arithmetic was timed"
        parts = [text(20, 26, title, size=13, bold=True), text(20, 52, words, shade="ink2")]
        return document(460, 72, title, words, parts)
    x = Scale.over([point.flops_per_byte for point in found.points], LEFT, LEFT + PLOT_WIDTH)
    peaks = {one.name: one.rate for one in found.ceilings if one.kind == "arithmetic"}
    bandwidths = {one.name: one.rate for one in found.ceilings if one.kind == "memory"}
    y = Scale.over([*(point.gflops for point in found.points), *peaks.values()], TOP + PLOT_HEIGHT, TOP)
    parts = [
        text(LEFT - 44, 28, title, size=14, bold=True),
        *axes(x, y, "moved"),
        *ceiling_lines(x, y, peaks, bandwidths),
    ]
    by_time = sorted(found.points, key=lambda point: -point.time_us)
    parts.extend(_dot(point, x(point.flops_per_byte), y(point.gflops)) for point in by_time)
    left = LEFT + PLOT_WIDTH + 28
    for row, point in enumerate(by_time[:_MOST_WORDS]):
        top = TOP + 14 + row * 34.0
        parts.append(_dot(point, left, top))
        name, _, rates = point_words(trace, point).partition(": ")
        parts.append(text(left + 18, top - 1, shortened(name, 40), bold=True))
        parts.append(text(left + 18, top + 13, rates, shade="ink2"))
    note = note_words(found)
    if len(by_time) > _MOST_WORDS:
        note += f" · {len(by_time) - _MOST_WORDS} more kernels are points only"
    height = TOP + PLOT_HEIGHT + 74.0
    parts.append(text(LEFT - 44, height - 12, note, shade="ink2"))
    told = "; ".join(point_words(trace, point) for point in by_time)
    return document(left + _KEY_WIDTH, height, title, told, parts, len(trace.kernels))


def _dot(point: Point, left: float, top: float) -> str:
    colour = kernel_colour(point.kernel)
    circle = (
        f'<circle class="k-{point.kernel % KERNEL_HUES}" cx="{left:.1f}" cy="{top:.1f}" r="9.5" '
        f'fill="{colour.light_fill}" stroke="{colour.light}" stroke-width="1.6"/>'
    )
    return circle + text(left, top + 3.7, str(point.kernel), bold=True, anchor="middle")


__all__ = ["Point", "Roofline", "note_words", "point_words", "roofline", "roofline_picture"]

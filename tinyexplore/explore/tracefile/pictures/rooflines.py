"""The roofline of a trace: a point for each kernel that was timed, under what the machine does at best.

The same figures as widgets/src/roofline.ts. Bytes are those that a kernel reads and writes once each
(`KernelInfo.bytes_moved`); `explore.roofline` counts those that the loads of one program ask for.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.model import Roof, TraceTables
from tinyexplore.explore.tracefile.pictures.picture import KERNEL_HUES, document, kernel_colour, shortened, text
from tinyexplore.explore.tracefile.pictures.roofline import (
    LEFT,
    PLOT_HEIGHT,
    PLOT_WIDTH,
    TOP,
    Scale,
    axes,
    ceiling_lines,
)
from tinyexplore.explore.tracefile.texts import figures_text

_MOST_WORDS = 11  # rows of the key
_KEY_WIDTH = 372.0


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel: `attainable` GFLOP/s is what its roof leaves it, None without a roof. `limit`: "arithmetic" or
    "memory"; `ceiling`: the name of that ceiling."""

    kernel: int
    flops_per_byte: float
    gflops: float
    attainable: float | None
    limit: str
    ceiling: str
    time_us: float

    @property
    def share(self) -> float | None:
        """Speed / attainable speed."""
        return self.gflops / self.attainable if self.attainable else None


@dataclass(frozen=True, slots=True)
class Roofline:
    """`peaks`: name → GFLOP/s, `bandwidths`: name → GB/s, of the ceilings that are drawn: each kernel's own.
    `measured`: whether the trace has ceilings. `idle`: timed kernels without floating-point arithmetic."""

    points: tuple[Point, ...]
    peaks: dict[str, float]
    bandwidths: dict[str, float]
    measured: bool
    idle: tuple[int, ...]


def roofline(trace: TraceTables) -> Roofline:
    """The points by kernel, under the roofs that the trace has."""
    times = {run.kernel: run.median_us for run in trace.runs if run.median_us > 0}
    timed = [(kernel, times[kernel.id]) for kernel in trace.kernels if kernel.id in times]
    placed = [(kernel, time_us) for kernel, time_us in timed if kernel.flops and kernel.bytes_moved]
    roofs = {roof.kernel: roof for roof in trace.roofs}
    points = []
    for kernel, time_us in placed:
        intensity = kernel.flops / kernel.bytes_moved
        attainable, limit, name = _limit(roofs.get(kernel.id), intensity)
        gflops = kernel.flops / time_us / 1e3
        points.append(Point(kernel.id, intensity, gflops, attainable, limit, name, time_us))
    kernels = {kernel.id for kernel, _ in placed}
    drawn = [roofs[point.kernel] for point in points if point.kernel in roofs]
    peaks = {roof.arithmetic: roof.gflops for roof in drawn if roof.gflops}
    bandwidths: dict[str, float] = {}
    for roof in drawn:
        if roof.gb_per_s:
            bandwidths[roof.memory] = max(roof.gb_per_s, bandwidths.get(roof.memory, 0.0))
    idle = tuple(kernel.id for kernel, _ in timed if kernel.id not in kernels)
    return Roofline(tuple(points), peaks, bandwidths, bool(trace.ceilings), idle)


def _limit(roof: Roof | None, intensity: float) -> tuple[float | None, str, str]:
    """What a roof leaves a kernel of so many operations for each byte, and which of its two ceilings that is."""
    if roof is None:
        return None, "", ""
    by_memory = roof.gb_per_s * intensity
    if by_memory and (by_memory < roof.gflops or not roof.gflops):
        return by_memory, "memory", roof.memory
    return roof.gflops or None, "arithmetic", roof.arithmetic


def point_words(trace: TraceTables, point: Point) -> str:
    """ "kernel 3 · r_64_32: 12.3 GFLOP/s at 0.25 FLOP/B, 45.0 % of L2 bandwidth"."""
    rate = f"{figures_text(point.gflops)} GFLOP/s at {figures_text(point.flops_per_byte)} FLOP/B"
    text = f"kernel {point.kernel} · {trace.kernels[point.kernel].name}: {rate}"
    if point.share is None:
        return text
    name = f"{point.ceiling} bandwidth" if point.limit == "memory" else point.ceiling
    return f"{text}, {figures_text(100 * point.share)} % of {name}"


def note_words(roofline_data: Roofline) -> str:
    """Where the ceilings are from, and what the picture leaves out."""
    whose = (
        "ceilings measured on the machine of this trace"
        if roofline_data.measured
        else "no ceilings are known for this trace"
    )
    if not roofline_data.idle:
        return whose
    named = ", ".join(map(str, roofline_data.idle[:6])) + (", …" if len(roofline_data.idle) > 6 else "")
    return f"{whose} · {count_text(len(roofline_data.idle), 'kernel')} without floating-point arithmetic: {named}"


def roofline_picture(trace: TraceTables) -> str:
    """The roofline as a standalone SVG."""
    roofline_data = roofline(trace)
    title = f"Roofline of {trace.title}".strip()
    if not roofline_data.points:
        words = "no kernel of this trace that does floating-point arithmetic was timed"
        parts = [text(20, 26, title, size=13, bold=True), text(20, 52, words, shade="ink2")]
        return document(460, 72, title, words, parts)
    x = Scale.over([point.flops_per_byte for point in roofline_data.points], LEFT, LEFT + PLOT_WIDTH)
    y = Scale.over(
        [*(point.gflops for point in roofline_data.points), *roofline_data.peaks.values()], TOP + PLOT_HEIGHT, TOP
    )
    parts = [
        text(LEFT - 44, 28, title, size=14, bold=True),
        *axes(x, y, "moved"),
        *ceiling_lines(x, y, roofline_data.peaks, roofline_data.bandwidths),
    ]
    by_time = sorted(roofline_data.points, key=lambda point: -point.time_us)
    parts.extend(_dot(point, x(point.flops_per_byte), y(point.gflops)) for point in by_time)
    left = LEFT + PLOT_WIDTH + 28
    for row, point in enumerate(by_time[:_MOST_WORDS]):
        top = TOP + 14 + row * 34.0
        parts.append(_dot(point, left, top))
        name, _, rates = point_words(trace, point).partition(": ")
        parts.append(text(left + 18, top - 1, shortened(name, 40), bold=True))
        parts.append(text(left + 18, top + 13, rates, shade="ink2"))
    note = note_words(roofline_data)
    if len(by_time) > _MOST_WORDS:
        note += f" · {len(by_time) - _MOST_WORDS} more kernels are points only"
    height = TOP + PLOT_HEIGHT + 74.0
    parts.append(text(LEFT - 44, height - 12, note, shade="ink2"))
    description = "; ".join(point_words(trace, point) for point in by_time)
    return document(left + _KEY_WIDTH, height, title, description, parts, len(trace.kernels))


def _dot(point: Point, left: float, top: float) -> str:
    colour = kernel_colour(point.kernel)
    circle = (
        f'<circle class="k-{point.kernel % KERNEL_HUES}" cx="{left:.1f}" cy="{top:.1f}" r="9.5" '
        f'fill="{colour.light_fill}" stroke="{colour.light}" stroke-width="1.6"/>'
    )
    return circle + text(left, top + 3.7, str(point.kernel), bold=True, anchor="middle")


__all__ = ["Point", "Roofline", "note_words", "point_words", "roofline", "roofline_picture"]

"""The roofline of a trace: a point for each timed kernel, under the ceilings of the machine.

The intensity counts the elements that a kernel reads and writes, each once (`KernelInfo.bytes_moved`).
`explore.loaded_bytes` counts the bytes that the load instructions of one program read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import Roof, Roofline, RooflineCeiling, RooflinePoint, TraceTables
from tinyexplore.explore.tracefile.pictures.drawing import KERNEL_HUES, document, kernel_color, shorten, text
from tinyexplore.explore.tracefile.pictures.roofline_plot import (
    LEFT,
    PLOT_HEIGHT,
    PLOT_WIDTH,
    TOP,
    Scale,
    axes,
    ceiling_lines,
)
from tinyexplore.explore.tracefile.texts import figures_text

MIN_EXCESS = 1.1  # share of the ceiling; a point this far above shows that other work disturbed the probe
_MAX_KEY_ROWS = 11  # most rows of the key
_KEY_WIDTH = 372.0


def roofline(trace: TraceTables) -> Roofline:
    """Returns one point per timed kernel, under the roofs of the trace."""
    times = {run.kernel: run.median_us for run in trace.runs if run.median_us > 0}
    timed = [(kernel, times[kernel.id]) for kernel in trace.kernels if kernel.id in times]
    placed = [(kernel, time_us) for kernel, time_us in timed if kernel.flops and kernel.bytes_moved]
    roofs = {roof.kernel: roof for roof in trace.roofs}
    points = []
    for kernel, time_us in placed:
        intensity = kernel.flops / kernel.bytes_moved
        attainable, limit, name = _find_attainable(roofs.get(kernel.id), intensity)
        gflops = kernel.flops / time_us / 1e3
        point = RooflinePoint(kernel.id, intensity, gflops, attainable, limit, name, time_us, "")
        points.append(replace(point, text=_point_text(kernel.name, point)))
    drawn = [roofs[point.kernel] for point in points if point.kernel in roofs]
    kernels = {point.kernel for point in points}
    without_points = [kernel.id for kernel, _ in timed if kernel.id not in kernels]
    is_sampled = all(run.warm for run in trace.runs if run.kernel in kernels)
    above = [point.kernel for point in points if (point.share or 0.0) > MIN_EXCESS]
    note = _note_text(bool(trace.ceilings), is_sampled, without_points, above)
    return Roofline(tuple(points), _ceilings_of(drawn), note)


def _ceilings_of(roofs: Sequence[Roof]) -> tuple[RooflineCeiling, ...]:
    """Returns the ceilings of these roofs, each once: arithmetic by type, then bandwidth by memory level."""
    peaks = {roof.arithmetic: roof.gflops for roof in roofs if roof.gflops}
    bandwidths: dict[str, float] = {}
    for roof in roofs:
        if roof.gb_per_s:
            bandwidths[roof.memory] = max(roof.gb_per_s, bandwidths.get(roof.memory, 0.0))
    ceilings = [RooflineCeiling(name, "arithmetic", rate) for name, rate in peaks.items()]
    ceilings += [RooflineCeiling(name, "memory", rate) for name, rate in bandwidths.items()]
    return tuple(ceilings)


def _find_attainable(roof: Roof | None, intensity: float) -> tuple[float | None, str, str]:
    """Returns the attainable GFLOP/s at this intensity, the limiting kind, and the name of the limiting ceiling."""
    if roof is None:
        return None, "", ""
    by_memory = roof.gb_per_s * intensity
    if by_memory and (by_memory < roof.gflops or not roof.gflops):
        return by_memory, "memory", roof.memory
    return roof.gflops or None, "arithmetic", roof.arithmetic


def _point_text(name: str, point: RooflinePoint) -> str:
    """Returns a point as text: "kernel 3 · r_64_32: 12.3 GFLOP/s at 0.25 FLOP/B, 45.0 % of L2 bandwidth"."""
    rate = f"{figures_text(point.gflops)} GFLOP/s at {figures_text(point.flops_per_byte)} FLOP/B"
    text = f"kernel {point.kernel} · {name}: {rate}"
    if point.share is None:
        return text
    ceiling = f"{point.ceiling} bandwidth" if point.limit == "memory" else point.ceiling
    return f"{text}, {figures_text(100 * point.share)} % of {ceiling}"


def _note_text(is_measured: bool, is_sampled: bool, without_points: Sequence[int], above: Sequence[int]) -> str:
    """Returns the note: statistic of the points, origin of the ceilings, kernels above them or without a point."""
    source = "ceilings measured on the machine of this trace" if is_measured else "no ceilings are known for this trace"
    source = f"{source} · {'points are medians' if is_sampled else 'points are single cold runs'}"
    if above:
        source += (
            f" · {_join_numbers(above)} above: the ceiling was measured under load, ceilings(again=True) measures again"
        )
    if not without_points:
        return source
    return f"{source} · {count_text(len(without_points), 'kernel')} without floating-point arithmetic: " + _list(
        without_points
    )


def _join_numbers(kernels: Sequence[int]) -> str:
    """Returns kernel numbers as text: "kernel 3" or "kernels 3, 5"."""
    return f"kernel{'s' if len(kernels) > 1 else ''} {_list(kernels)}"


def _list(kernels: Sequence[int]) -> str:
    return ", ".join(map(str, kernels[:6])) + (", …" if len(kernels) > 6 else "")


def roofline_picture(trace: TraceTables) -> str:
    """Returns the roofline as a standalone SVG."""
    roofline_data = roofline(trace)
    title = f"Roofline of {trace.title}".strip()
    if not roofline_data.points:
        label = "no kernel of this trace that does floating-point arithmetic was timed"
        parts = [text(20, 26, title, size=13, bold=True), text(20, 52, label, shade="ink2")]
        return document(460, 72, title, label, parts)
    peaks = {line.name: line.rate for line in roofline_data.ceilings if line.kind == "arithmetic"}
    bandwidths = {line.name: line.rate for line in roofline_data.ceilings if line.kind == "memory"}
    x = Scale.over([point.flops_per_byte for point in roofline_data.points], LEFT, LEFT + PLOT_WIDTH)
    y = Scale.over([*(point.gflops for point in roofline_data.points), *peaks.values()], TOP + PLOT_HEIGHT, TOP)
    points = [(x(point.flops_per_byte), y(point.gflops)) for point in roofline_data.points]
    parts = [
        text(LEFT - 44, 28, title, size=14, bold=True),
        *axes(x, y, "moved"),
        *ceiling_lines(x, y, peaks, bandwidths, points),
    ]
    by_time = sorted(roofline_data.points, key=lambda point: -point.time_us)
    parts.extend(_point_svg(point, x(point.flops_per_byte), y(point.gflops)) for point in by_time)
    left = LEFT + PLOT_WIDTH + 28
    for row, point in enumerate(by_time[:_MAX_KEY_ROWS]):
        top = TOP + 14 + row * 34.0
        parts.append(_point_svg(point, left, top))
        name, _, rates = point.text.partition(": ")
        parts.append(text(left + 18, top - 1, shorten(name, 40), bold=True))
        parts.append(text(left + 18, top + 13, rates, shade="ink2"))
    note = roofline_data.note
    if len(by_time) > _MAX_KEY_ROWS:
        note += f" · {len(by_time) - _MAX_KEY_ROWS} more kernels are points only"
    height = TOP + PLOT_HEIGHT + 74.0
    parts.append(text(LEFT - 44, height - 12, note, shade="ink2"))
    description = "; ".join(point.text for point in by_time)
    return document(left + _KEY_WIDTH, height, title, description, parts, len(trace.kernels))


def _point_svg(point: RooflinePoint, left: float, top: float) -> str:
    color = kernel_color(point.kernel)
    circle = (
        f'<circle class="k-{point.kernel % KERNEL_HUES}" cx="{left:.1f}" cy="{top:.1f}" r="9.5" '
        f'fill="{color.light_fill}" stroke="{color.light}" stroke-width="1.6"/>'
    )
    return circle + text(left, top + 3.7, str(point.kernel), bold=True, anchor="middle")


__all__ = ["roofline", "roofline_picture"]

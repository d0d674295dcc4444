"""The roofline plot: the rate of kernels over their arithmetic intensity, under the ceilings of the machine.

After S. Williams, A. Waterman and D. Patterson, "Roofline" (2009). Here the intensity counts the bytes that the
program's load instructions read. An opt that reuses loaded values therefore moves a kernel to the right.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tinyexplore.explore.tracefile.pictures.drawing import document, text
from tinyexplore.explore.tracefile.pictures.labels import place_labels, positions_on_line

__all__ = ["Dot", "roofline_svg"]

LEFT, _RIGHT, TOP, BOTTOM = 64.0, 268.0, 52.0, 56.0
PLOT_WIDTH, PLOT_HEIGHT = 500.0, 360.0
_DOT = 9.5


@dataclass(frozen=True, slots=True)
class Dot:
    """One measured kernel in the roofline plot.

    label: the name.
    flops: floating-point operations of one run.
    bytes_loaded: bytes that its load instructions read.
    seconds: the time of one run.
    peak: the name of the arithmetic ceiling to compare it with; None for the highest.
    """

    label: str
    flops: float
    bytes_loaded: float
    seconds: float
    peak: str | None = None

    @property
    def flops_per_byte(self) -> float:
        return self.flops / self.bytes_loaded

    @property
    def gflops(self) -> float:
        """Returns the rate in 10⁹ operations a second."""
        return self.flops / self.seconds / 1e9


def roofline_svg(
    dots: Sequence[Dot], peaks: Mapping[str, float], bandwidths: Mapping[str, float], title: str = "Roofline"
) -> str:
    """Returns the dots, joined in order, under the machine's ceilings, as a standalone SVG with logarithmic scales.

    peaks: arithmetic ceiling → GFLOP/s.
    bandwidths: memory ceiling → GB/s.
    """
    if not dots or not peaks:
        raise ValueError("a roofline needs at least one dot and one peak")
    x = Scale.over([dot.flops_per_byte for dot in dots], LEFT, LEFT + PLOT_WIDTH)
    y = Scale.over([*(dot.gflops for dot in dots), *peaks.values()], TOP + PLOT_HEIGHT, TOP)
    parts = [text(LEFT - 44, 28, title, size=14, bold=True)]
    parts.extend(axes(x, y))
    points = [(x(dot.flops_per_byte), y(dot.gflops)) for dot in dots]
    parts.extend(ceiling_lines(x, y, peaks, bandwidths, points))
    parts.extend(_draw_numbered_points(x, y, dots))
    parts.extend(_draw_legend(dots, peaks))
    width, height = LEFT + PLOT_WIDTH + _RIGHT, TOP + PLOT_HEIGHT + BOTTOM
    description = "; ".join(
        f"{dot.label}: {dot.gflops:.3g} GFLOP/s at {dot.flops_per_byte:.3g} flop/byte" for dot in dots
    )
    return document(width, height, title, description, parts)


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic scale with powers of two at both ends.

    low: the value at `start`.
    high: the value at `stop`.
    start: the start of the axis, in pixels.
    stop: the end of the axis, in pixels.
    """

    low: float
    high: float
    start: float
    stop: float

    @staticmethod
    def over(values: Sequence[float], start: float, stop: float) -> Scale:
        low = 2.0 ** (math.floor(math.log2(min(values)) - 0.4))
        high = 2.0 ** (math.ceil(math.log2(max(values)) + 0.4))
        return Scale(low, high, start, stop)

    def __call__(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Returns the ticks: at most ten powers of two."""
        first, last = round(math.log2(self.low)), round(math.log2(self.high))
        step = 1 + (last - first) // 10
        return [2.0**power for power in range(first, last + 1, step)]


def _number(value: float) -> str:
    return f"{value:g}" if value >= 1 else f"1/{1 / value:g}"


def _draw_line(x1: float, y1: float, x2: float, y2: float, width: float, dash: str = "", shade: str = "edge") -> str:
    color = {"edge": "#9aa5b3", "outline": "#dfe3e8"}[shade]
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<path class="{shade}" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}" fill="none" stroke="{color}" '
        f'stroke-width="{width:g}"{dashes}/>'
    )


def axes(x: Scale, y: Scale, verb: str = "loaded") -> list[str]:
    """Draws the axes of a roofline with their ticks and titles."""
    right, bottom = LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT
    parts = []
    for value in x.ticks():
        parts.append(_draw_line(x(value), TOP, x(value), bottom, 1, shade="outline"))
        parts.append(text(x(value), bottom + 18, _number(value), shade="ink2", anchor="middle"))
    for value in y.ticks():
        parts.append(_draw_line(LEFT, y(value), right, y(value), 1, shade="outline"))
        parts.append(text(LEFT - 8, y(value) + 4, _number(value), shade="ink2", anchor="end"))
    label = f"operations for each byte that is {verb} (flop/byte)"
    parts.append(text(LEFT + PLOT_WIDTH / 2, bottom + 40, label, shade="ink2", anchor="middle"))
    parts.append(text(LEFT - 44, TOP - 8, "GFLOP/s", shade="ink2"))
    return parts


def ceiling_lines(
    x: Scale,
    y: Scale,
    peaks: Mapping[str, float],
    bandwidths: Mapping[str, float],
    points: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Returns the ceilings as SVG. No label covers another label or one of the `points`."""
    right = LEFT + PLOT_WIDTH
    parts = []
    labels = []
    lines: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for name, gflops in peaks.items():
        parts.append(_draw_line(LEFT, y(gflops), right, y(gflops), 1.8))
        lines.append(((LEFT, y(gflops)), (right, y(gflops))))
        caption = f"{name}: {gflops:,.0f} GFLOP/s"
        labels.append(
            (
                caption,
                positions_on_line(caption, (LEFT + 8, y(gflops)), (right - 8, y(gflops)), (0, 1, 0.5, 0.25, 0.75)),
            )
        )
    top = max(peaks.values(), default=y.high)
    for name, gb_per_s in bandwidths.items():
        start = max(x.low, y.low / gb_per_s)
        end = min(x.high, top / gb_per_s)
        if start >= end:
            continue
        ends = (x(start), y(start * gb_per_s)), (x(end), y(end * gb_per_s))
        parts.append(_draw_line(*ends[0], *ends[1], 1.4, dash="5 4"))
        lines.append(ends)
        caption = f"{name}: {gb_per_s:,.0f} GB/s"
        labels.append((caption, positions_on_line(caption, *ends, (0.34, 0.5, 0.2, 0.66, 0.82))))
    for (caption, _), (left, down, angle) in zip(labels, place_labels(labels, points, lines), strict=True):
        label = _add_outline(text(0, 4, caption, shade="ink2", anchor="middle"))
        parts.append(f'<g transform="translate({left:.1f} {down:.1f}) rotate({angle:.1f})">{label}</g>')
    return parts


def _add_outline(label: str) -> str:
    """Returns the label with an outline in the background's color, so that lines behind it do not cross the text."""
    edge = 'stroke="#fff" stroke-width="4" stroke-linejoin="round" style="paint-order:stroke;stroke:var(--bg)"'
    return label.replace("<text ", f"<text {edge} ", 1)


def _draw_numbered_points(x: Scale, y: Scale, dots: Sequence[Dot]) -> list[str]:
    """Returns a numbered point for each dot, joined in order. A number moves aside if another has its position."""
    points = [(x(dot.flops_per_byte), y(dot.gflops)) for dot in dots]
    path = "L".join(f"{left:.1f} {top:.1f}" for left, top in points)
    parts = [f'<path d="M{path}" fill="none" stroke="#0b63ce" style="stroke:var(--brand)" stroke-width="1.6"/>']
    marks: list[str] = []  # drawn last, so that numbers of close points stay readable
    label_positions: list[tuple[float, float]] = []
    for number, (left, top) in enumerate(points):
        spot = next(
            (left + across, top + down)
            for across, down in _yield_offsets()
            if all(
                math.hypot(left + across - other, top + down - other_top) > 2 * _DOT
                for other, other_top in label_positions
            )
        )
        label_positions.append(spot)
        if spot != (left, top):
            parts.append(_draw_line(left, top, *spot, 1.2))
            parts.append(f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3.2" fill="#0b63ce" style="fill:var(--brand)"/>')
        marks.append(_draw_numbered_circle(*spot, number))
    return parts + marks


def _yield_offsets() -> Iterator[tuple[float, float]]:
    """Yields positions for a number, relative to its point: the point, then positions around it, nearest first."""
    yield 0.0, 0.0
    for distance in itertools.count(1):
        for angle in (0.0, 0.7, -0.7, 1.57, math.pi):
            reach = distance * 2.6 * _DOT
            yield reach * math.cos(angle), reach * math.sin(angle)


def _draw_numbered_circle(left: float, top: float, number: int) -> str:
    circle = (
        f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{_DOT}" fill="#0b63ce" stroke="#fff" stroke-width="1.5" '
        'style="fill:var(--brand);stroke:var(--bg)"/>'
    )
    return circle + text(left, top + 4, str(number), shade="bg", bold=True, anchor="middle")


def _draw_legend(dots: Sequence[Dot], peaks: Mapping[str, float]) -> list[str]:
    left = LEFT + PLOT_WIDTH + 28
    highest = max(peaks, key=lambda name: peaks[name])
    parts = []
    for number, dot in enumerate(dots):
        top = TOP + 14 + number * 44
        parts.append(_draw_numbered_circle(left, top, number))
        parts.append(text(left + 18, top - 1, dot.label, size=11.5, bold=True))
        peak = dot.peak or highest
        share = 100 * dot.gflops / peaks[peak]
        label = f"{dot.gflops:,.3g} GFLOP/s · {share:.{0 if share >= 1 else 1}f} % of {peak}"
        parts.append(text(left + 18, top + 14, label, shade="ink2"))
    return parts

"""The plot of a report: for each case, the time of every peer over the machine's limit, on a logarithmic scale."""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

from bench.report import Report, Row
from bench.tables import three_digits

ROW_HEIGHT = 24
LEFT, RIGHT, TOP, BOTTOM = 190, 130, 84, 34
PLOT_WIDTH = 640
FARTHEST = 300.0  # times the limit; a slower peer is drawn at the edge, with an arrow
# colors for people with the usual kinds of color blindness (Okabe and Ito, 2008), each with its own shape
MARKS: dict[str, tuple[str, str]] = {
    "tinyexplore": ("#d55e00", "diamond"),
    "tinyexplore.jit": ("#d55e00", "ring"),
    "numpy": ("#0072b2", "circle"),
    "torch": ("#009e73", "circle"),
    "torch.compile": ("#009e73", "square"),
    "torch.max": ("#009e73", "ring"),
    "jax": ("#cc79a7", "circle"),
    "numba": ("#56b4e9", "square"),
    "tinygrad": ("#a07a00", "circle"),
    "tinygrad.llvm": ("#a07a00", "square"),
    "tinygrad.x86": ("#a07a00", "ring"),
}
OTHER = ("#666666", "circle")


def plot_svg(report: Report) -> str:
    """Return a stand-alone SVG. A case without a limit uses the time of the fastest peer as the base, with a note."""
    peers = list(dict.fromkeys(name for row in report.rows for name in row.figures))
    spans = [value for row in report.rows for value in _span(row)]
    low, high = (min(spans), max(spans)) if spans else (1.0, 10.0)
    first, last = math.floor(math.log10(low) * 3) / 3, math.ceil(math.log10(high) * 3) / 3
    last = max(last, first + 1 / 3)
    width = LEFT + PLOT_WIDTH + RIGHT
    height = TOP + ROW_HEIGHT * len(report.rows) + BOTTOM

    def x(ratio: float) -> float:
        return LEFT + PLOT_WIDTH * (min(math.log10(ratio), last) - first) / (last - first)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#222" role="img">',
        "<title>Time over the machine's limit, by case and peer</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<text x="12" y="20" font-size="14" font-weight="600">Time over the machine’s limit (left is faster)</text>',
        *_legend(peers),
        *_grid(first, last, x, height),
    ]
    for number, row in enumerate(report.rows):
        parts.extend(_row(row, TOP + ROW_HEIGHT * number + ROW_HEIGHT / 2, x, width))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _base(row: Row) -> float | None:
    if row.limit is not None:
        return row.limit
    return min((figures.minimum for figures in row.figures.values()), default=None)


def _span(row: Row) -> list[float]:
    base = _base(row)
    if base is None:
        return []
    ratios = [value / base for figures in row.figures.values() for value in (figures.minimum, figures.high)]
    return [1.0, *(min(ratio, FARTHEST) for ratio in ratios)]


def _legend(peers: list[str]) -> list[str]:
    parts, place = [], 14.0
    for name in peers:
        color, shape = MARKS.get(name, OTHER)
        parts.append(_mark(shape, color, place, 42, name))
        parts.append(f'<text x="{place + 10:.0f}" y="46">{escape(name)}</text>')
        place += 32 + 7 * len(name)
    return parts


def _grid(first: float, last: float, x: object, height: int) -> list[str]:
    assert callable(x)
    parts = []
    for exponent in range(math.floor(first) - 1, math.ceil(last) + 1):
        for step in (1, 2, 5) if last - first < 2 else (1,):
            ratio = step * 10.0**exponent
            if not first - 1e-9 <= math.log10(ratio) <= last + 1e-9:
                continue
            place = x(ratio)
            color = "#555" if ratio == 1 else "#ddd"
            parts.append(f'<path d="M{place:.1f} {TOP - 6}V{height - BOTTOM}" stroke="{color}"/>')
            label = f'<text x="{place:.1f}" y="{TOP - 12}" text-anchor="middle" fill="#555">{ratio:g}×</text>'
            parts.append(label)
    return parts


def _row(row: Row, y: float, x: object, width: int) -> list[str]:
    assert callable(x)
    parts = [f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(row.name)}</text>']
    base = _base(row)
    if base is None:
        parts.append(f'<text x="{LEFT + 6}" y="{y + 4:.1f}" fill="#b00">nothing could be measured</text>')
        return parts
    for name, figures in row.figures.items():
        color, shape = MARKS.get(name, OTHER)
        start, end = x(figures.minimum / base), x(figures.high / base)
        parts.append(f'<path d="M{start:.1f} {y:.1f}H{end:.1f}" stroke="{color}" stroke-opacity="0.45"/>')
        tip = f"{name}: {three_digits(figures.minimum * 1e3)} ms, median {three_digits(figures.median * 1e3)} ms"
        parts.append(_mark(shape, color, start, y, tip))
        if figures.minimum / base > FARTHEST:
            parts.append(f'<path d="M{start + 7:.1f} {y - 4:.1f}l5 4-5 4" fill="none" stroke="{color}"/>')
    unit = "limit" if row.limit is not None else "quickest"
    side = f'<text x="{width - RIGHT + 10}" y="{y + 4:.1f}" fill="#555">{unit} {three_digits(base * 1e3)} ms</text>'
    parts.append(side)
    return parts


def _mark(shape: str, color: str, x: float, y: float, tip: str) -> str:
    title = f"<title>{escape(tip)}</title>"
    if shape == "square":
        return f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8" fill="{color}">{title}</rect>'
    if shape == "diamond":
        return f'<path d="M{x:.1f} {y - 6:.1f}l6 6-6 6-6-6z" fill="{color}">{title}</path>'
    if shape == "ring":
        return (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="none" stroke="{color}" stroke-width="2">{title}</circle>'
        )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}">{title}</circle>'

"""Draws boxes and edges as standalone SVG: colors by role, light and dark mode, a description for screen readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from html import escape

from tinyexplore.explore.tracefile.encodable_text import for_xml
from tinyexplore.explore.tracefile.pictures.drawn_graph import DrawnNode
from tinyexplore.explore.tracefile.pictures.layout import Box, Point, RoutedEdge, edge_path

MONO = "'JetBrains Mono','SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "Inter,system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
LABEL_PX = 7.25  # character width of a label, and of a detail
DETAIL_PX = 6.65
MAX_LABEL = 30
MAX_DETAIL = 38
_PX = 11.0  # smallest text height
SANS_PX = 6.0  # character width of such a text
_LABEL_SIZE = 12.0
TWO_LINES = 36.0
ONE_LINE = 24.0


@dataclass(frozen=True, slots=True)
class Color:
    """The colors of a kind of box.

    light: the border in light mode.
    light_fill: the fill in light mode.
    dark: the border in dark mode.
    dark_fill: the fill in dark mode.
    dash: the dash pattern of the border in SVG; "" for a solid line.
    """

    light: str
    light_fill: str
    dark: str
    dark_fill: str
    dash: str = ""


# colors that color-blind readers distinguish: blue, vermilion-brown and green of the Okabe-Ito set, grays, and a dashed
# border
COLORS = {
    "buffer": Color("#0072b2", "#cfe6f5", "#56b4e9", "#1d4666"),
    "memory": Color("#0072b2", "#e3f1fa", "#56b4e9", "#15324a"),
    "reduce": Color("#b35c00", "#fdecd8", "#f0a04b", "#46300f"),
    "loop": Color("#00785a", "#dff4ee", "#3fcfa4", "#0f3a30"),
    "alu": Color("#5b6675", "#f1f3f6", "#a9b4c2", "#232b36"),
    "movement": Color("#8a94a3", "#ffffff", "#75818f", "#14181f", "4 2.5"),
    "const": Color("#8a94a3", "#ffffff", "#75818f", "#14181f"),
    "control": Color("#1b2330", "#ffffff", "#e8edf3", "#14181f"),
}
WORDS = {
    "buffer": "buffer",
    "memory": "memory",
    "reduce": "reduce",
    "loop": "loop",
    "alu": "arithmetic",
    "movement": "view",
    "const": "constant",
    "control": "control",
}
_SHADES = {"ink": "#1b2330", "ink2": "#5b6675", "brand": "#0b63ce", "bg": "#fff"}
KERNEL_HUES = 24  # number of kernel colors; hues are a golden angle apart, so that neighbors differ most


def kernel_hue(kernel: int) -> int:
    """Returns the hue of a kernel in degrees, the same in pictures and views (`.k-0` … of widgets/src/style.css)."""
    return round(211 - (kernel % KERNEL_HUES) * 137.508) % 360


def kernel_color(kernel: int) -> Color:
    """Returns the colors of a kernel's frame, mixed as in the views."""
    hue = kernel_hue(kernel)
    light, dark = _to_rgb(hue, 0.62, 0.46), _to_rgb(hue, 0.62, 0.68)
    fill = _to_rgb(hue, 0.75, 0.5)
    white, night = (255.0, 255.0, 255.0), (20.0, 24.0, 31.0)
    return Color(_to_hex(light), _to_hex(_mix(fill, white, 0.055)), _to_hex(dark), _to_hex(_mix(fill, night, 0.11)))


def _to_rgb(hue: int, saturation: float, lightness: float) -> tuple[float, float, float]:
    red, green, blue = hls_to_rgb(hue / 360, lightness, saturation)
    return 255 * red, 255 * green, 255 * blue


def _mix(a: Sequence[float], b: Sequence[float], share: float) -> tuple[float, ...]:
    return tuple([share * x + (1 - share) * y for x, y in zip(a, b, strict=True)])


def _to_hex(color: Iterable[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in color)


_LIGHT = "--bg:#fff;--bg1:#f7f8fa;--line:#dfe3e8;--ink:#1b2330;--ink2:#5b6675;--edge:#9aa5b3;--brand:#0b63ce"
_DARK = "--bg:#14181f;--bg1:#1a2029;--line:#303a47;--ink:#e8edf3;--ink2:#a9b4c2;--edge:#75818f;--brand:#6db1ff"


def style(kernels: int = 0) -> str:
    """Returns the style sheet of a picture, with the colors of `kernels` kernels.

    The SVG elements also have color attributes, for programs that ignore style sheets.
    """
    hues = [kernel_color(i) for i in range(min(kernels, KERNEL_HUES))]
    light = "".join(f"--{name}:{color.light};--{name}f:{color.light_fill};" for name, color in COLORS.items())
    dark = "".join(f"--{name}:{color.dark};--{name}f:{color.dark_fill};" for name, color in COLORS.items())
    light += "".join(f"--k{i}:{hue.light};--k{i}f:{hue.light_fill};" for i, hue in enumerate(hues))
    dark += "".join(f"--k{i}:{hue.dark};--k{i}f:{hue.dark_fill};" for i, hue in enumerate(hues))
    boxes = "".join(f".tx .g-{name}{{stroke:var(--{name});fill:var(--{name}f)}}" for name in COLORS)
    bands = "".join(f".tx .k-{i}{{fill:var(--k{i}f);stroke:var(--k{i})}}" for i in range(len(hues)))
    bands += "".join(f".tx .h-{i}{{stroke:var(--k{i}f)}}" for i in range(len(hues)))
    return (
        f".tx{{{light}{_LIGHT};fill:var(--ink)}}"
        f"@media(prefers-color-scheme:dark){{.tx{{{dark}{_DARK}}}}}"
        f"{boxes}{bands}"
        ".tx .card{fill:var(--bg);stroke:var(--line)}.tx .cell{fill:var(--bg1);stroke:var(--line)}"
        ".tx .ink{fill:var(--ink)}.tx .ink2{fill:var(--ink2)}.tx .brand{fill:var(--brand)}.tx .bg{fill:var(--bg)}"
        ".tx .edge{stroke:var(--edge)}.tx .frame{stroke:var(--brand)}"
        ".tx .head{fill:var(--edge)}.tx .outline{stroke:var(--line)}"
    )


def document(width: float, height: float, title: str, description: str, parts: Iterable[str], kernels: int = 0) -> str:
    """Returns a whole SVG file with its own background, so that it is readable on any page.

    The style sheet has the colors of `kernels` kernels.
    """
    body = "\n".join(part for part in parts if part)
    size = f'width="{_format(width)}" height="{_format(height)}" viewBox="0 0 {_format(width)} {_format(height)}"'
    font = f'font-family="{SANS}" font-size="{_PX:g}" fill="{_SHADES["ink"]}"'
    return for_xml(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tx" role="img" aria-label="{escape(title)}" {size} {font}>\n'
        f"<title>{escape(title, quote=False)}</title>\n<desc>{escape(description, quote=False)}</desc>\n"
        f"<style>{style(kernels)}</style>\n"
        f'<rect class="card" x="0.5" y="0.5" width="{_format(width - 1)}" height="{_format(height - 1)}" rx="10" '
        f'fill="#fff" stroke="#dfe3e8"/>\n{body}\n</svg>\n'
    )


def text(
    x: float,
    y: float,
    label: str,
    *,
    size: float = _PX,
    shade: str = "ink",
    anchor: str = "",
    bold: bool = False,
    mono: bool = False,
) -> str:
    """Returns one line of text in a `document`.

    shade: "ink", "ink2", "brand", or "bg" for text on a mark of "brand".
    """
    look = "" if size == _PX else f' font-size="{_format(size)}"'
    if shade != "ink":
        look += f' class="{shade}" fill="{_SHADES[shade]}"'
    if mono:
        look += f' font-family="{MONO}"'
    if anchor:
        look += f' text-anchor="{anchor}"'
    if bold:
        look += ' font-weight="600"'
    if label != " ".join(label.split()):
        look += ' xml:space="preserve"'
    return f'<text x="{_format(x)}" y="{_format(y)}"{look}>{escape(label, quote=False)}</text>'


def shorten(label: str, limit: int) -> str:
    """Shortens `label` to at most `limit` characters; an ellipsis shows that text is missing (the tooltip has it)."""
    return label if len(label) <= limit else label[: limit - 1].rstrip() + "…"


def box_of(node: DrawnNode) -> Box:
    """Returns the size of a node's box."""
    label, detail = shorten(node.label, MAX_LABEL), shorten(node.detail, MAX_DETAIL)
    width = max(58.0, len(label) * LABEL_PX + 20.0, len(detail) * DETAIL_PX + 18.0)
    return Box(node.id, float(int(width + 0.5)), TWO_LINES if detail else ONE_LINE)


def draw_boxes(boxes: Iterable[tuple[DrawnNode, Box, Point]]) -> str:
    """Returns the boxes as SVG; each point is the center of its box."""
    drawn = "\n".join(_draw_box(node, box, *center) for node, box, center in boxes)
    return f'<g font-family="{MONO}" text-anchor="middle">{drawn}</g>' if drawn else ""


def _draw_box(node: DrawnNode, box: Box, x: float, y: float) -> str:
    """Draws a node: its box in the color of its role, with label and detail."""
    color = COLORS.get(node.group, COLORS["control"])
    name = node.group if node.group in COLORS else "control"
    dash = f' stroke-dasharray="{color.dash}"' if color.dash else ""
    label, detail = shorten(node.label, MAX_LABEL), shorten(node.detail, MAX_DETAIL)
    parts = [
        f"<g><title>{escape(node.tooltip, quote=False)}</title>",
        f'<rect class="g-{name}" x="{_format(x - box.width / 2)}" y="{_format(y - box.height / 2)}" '
        f'width="{_format(box.width)}" height="{_format(box.height)}" rx="6" fill="{color.light_fill}" '
        f'stroke="{color.light}"{dash}/>',
        text(x, y - 3 if detail else y + 4, label, size=_LABEL_SIZE),
        text(x, y + 11, detail, shade="ink2") if detail else "",
    ]
    if node.hidden:
        caption = f"+{node.hidden} hidden"
        parts.append(text(x, y - box.height / 2 - 4, caption, shade="ink2"))
    return "".join(parts) + "</g>"


def draw_frame(box: Box, x: float, y: float) -> str:
    """Returns a frame that marks the box whose center is at (x, y)."""
    return (
        f'<rect class="frame" x="{_format(x - box.width / 2 - 3)}" y="{_format(y - box.height / 2 - 3)}" '
        f'width="{_format(box.width + 6)}" height="{_format(box.height + 6)}" rx="8" fill="none" stroke="#0b63ce" '
        f'stroke-width="2"/>'
    )


def draw_edges(edges: Sequence[RoutedEdge], dx: float = 0.0, dy: float = 0.0) -> str:
    """Returns the edges with arrow heads as SVG; long edges over other boxes are faint."""
    near = [_move_points(edge.points, dx, dy) for edge in edges if not edge.long]
    long_edges = [_move_points(edge.points, dx, dy) for edge in edges if edge.long]
    parts = []
    for routes, look in ((long_edges, ' opacity="0.45" stroke-dasharray="2 3"'), (near, "")):
        if not routes:
            continue
        path = "".join(edge_path(points[:-1] + ((points[-1][0], points[-1][1] - 4),)) for points in routes)
        heads = "".join(_draw_arrow_head(points[-1]) for points in routes)
        parts.append(
            f'<g{look}><path class="edge" d="{path}" fill="none" stroke="#9aa5b3" stroke-width="1.2"/>'
            f'<path class="head" d="{heads}" fill="#9aa5b3"/></g>'
        )
    return "\n".join(parts)


def legend(groups: Iterable[str], x: float, y: float) -> str:
    """Returns a swatch and a word for each group in `groups`."""
    parts = []
    present = set(groups)
    for group, color in COLORS.items():
        if group not in present:
            continue
        dash = f' stroke-dasharray="{color.dash}"' if color.dash else ""
        parts.append(
            f'<rect class="g-{group}" x="{_format(x)}" y="{_format(y - 8)}" width="14" height="9" rx="2.5" '
            f'fill="{color.light_fill}" stroke="{color.light}"{dash}/>'
        )
        parts.append(text(x + 19, y, WORDS[group], shade="ink2"))
        x += 19 + len(WORDS[group]) * SANS_PX + 16
    return "".join(parts)


def legend_width(groups: Iterable[str]) -> float:
    return sum(35 + len(WORDS[group]) * SANS_PX for group in set(groups) if group in WORDS)


def _move_points(points: Sequence[Point], dx: float, dy: float) -> tuple[Point, ...]:
    return tuple([(x + dx, y + dy) for x, y in points])


def _draw_arrow_head(tip: Point) -> str:
    x, y = tip
    return f"M{_format(x)} {_format(y)}l-3.2-6h6.4z"


def _format(value: float) -> str:
    return f"{round(value, 1):g}" if abs(value) < 1e5 else f"{value:.0f}"

"""Draws a tensor core: A on the left, B above, C between them, each element with its lane and register."""

from __future__ import annotations

from colorsys import hls_to_rgb

from tinyexplore.explore.analysis.tensor_cores.elements import FragmentElement, elements, formulas
from tinyexplore.explore.tracefile.pictures.drawing import document, text
from tinyexplore.target import TensorCore

CELL = 30.0
SMALL = 22.0  # cell size for cores that are too large for two lines of text
MAX_LARGE_CELLS = 16  # most rows or columns whose cells show the register
_MARGIN, _GAP, _HEAD = 24.0, 34.0, 18.0


def hue_of(number: int, count: int) -> int:
    """Returns the hue of one of several lanes or registers; neighbors have similar hues."""
    return round(360 * number / count)


def core_svg(core: TensorCore) -> str:
    """Returns the picture, colored by lane."""
    m, n, k = core.dims
    two_lines = max(core.dims) <= MAX_LARGE_CELLS
    wide, high = (CELL, CELL) if two_lines else (SMALL + 4, SMALL)
    left, top = _MARGIN + _HEAD, 66.0 + 17 * 3 + _HEAD
    corner = {
        "A": (left, top + k * high + _GAP),
        "B": (left + k * wide + _GAP, top),
        "C": (left + k * wide + _GAP, top + k * high + _GAP),
    }
    parts = [text(_MARGIN, 30, core.describe(), size=13, bold=True), text(_MARGIN, 49, core.call, size=11, mono=True)]
    parts += [text(_MARGIN, 72 + 17 * row, label, size=11, mono=True) for row, label in enumerate(formulas(core))]
    shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
    for matrix, (x, y) in corner.items():
        rows, columns = shapes[matrix]
        head = f"{matrix}, {rows} × {columns}"
        parts.append(text(x, y - 7, head, size=12, bold=True))
        parts += [
            text(x - 5, y + (row + 0.5) * high + 4, str(row), size=11, shade="ink2", anchor="end")
            for row in range(rows)
        ]
    for element in elements(core):
        x, y = corner[element.matrix]
        parts.append(
            _draw_cell(
                core, element, x + element.column * wide, y + element.row * high, wide, high, two_lines=two_lines
            )
        )
    width = corner["C"][0] + n * wide + _MARGIN
    height = corner["C"][1] + m * high + 40
    lane, register = core.holder
    note = f"each element: the {lane} that holds it" + (f", and in which {register}" if two_lines else "")
    if core.a.copies(core.lanes) > 1:
        note += f"; A and B are also in lane + {core.lanes // 2}"
    parts.append(text(_MARGIN, height - 14, note, size=11, shade="ink2"))
    label = f"{core.describe()}. {'; '.join(formulas(core))}."
    return document(
        max(width, len(core.describe()) * 7.6 + 48, len(formulas(core)[0]) * 6.7 + 48), height, core.name, label, parts
    )


def lanes_text(element: FragmentElement) -> str:
    return " ".join(map(str, element.lanes))


def _draw_cell(
    core: TensorCore, element: FragmentElement, x: float, y: float, wide: float, high: float, *, two_lines: bool
) -> str:
    """Draws one element of a matrix with its lane and register, in the color of its lane."""
    hue = hue_of(element.lanes[0], core.lanes)
    attributes = f'x="{x:.1f}" y="{y:.1f}" width="{wide - 2:.1f}" height="{high - 2:.1f}" rx="2.5"'
    red, green, blue = (round(255 * part) for part in hls_to_rgb(hue / 360, 0.5, 0.75))
    box = f'<rect {attributes} fill="rgb({red},{green},{blue})" fill-opacity="0.3"/>'
    middle = x + wide / 2 - 1
    label = text(middle, y + (12.5 if two_lines else 14.5), str(element.lanes[0]), size=11, anchor="middle", mono=True)
    if two_lines:
        label += text(middle, y + 24, f"r{element.register}", size=11, anchor="middle", mono=True, shade="ink2")
    lane, register = core.holder
    position = f"{element.matrix}[{element.row}, {element.column}]"
    title = f"{position}: {lane} {lanes_text(element)}, {register} {element.register}"
    return f"<g><title>{title}</title>{box}{label}</g>"


__all__ = ["core_svg", "hue_of", "lanes_text"]

"""A ShapeView as text: its movements, its index expression, and a table of its positions."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from tinyexplore.explore.recording.descriptions import shape_text

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.shapes.cells import Box
    from tinyexplore.explore.analysis.shapes.grid import ShapeGrid

PADDING = "·"


def view_text(shape: tuple[int, ...], strides: tuple[int, ...], offset: int, mask: Box | None) -> str:
    """Returns a View as text: "3×4, strides (4, 1), offset 2, valid in 0:3×1:4"."""
    text = f"{shape_text(shape)}, strides {strides}"
    if offset:
        text += f", offset {offset}"
    if mask is not None:
        text += f", valid in {'×'.join(f'{start}:{stop}' for start, stop in mask)}"
    return text


def step_text(view: ShapeGrid) -> str:
    """Returns the movements as text: "2×3 → permute (1, 0) → 3×2"."""
    first, *movements = view.steps
    parts = [shape_text(first.tracker.shape)]
    for step in movements:
        parts.append(f"{step.op.lower()} {step.arg} → {shape_text(step.tracker.shape)}")
    return " → ".join(parts)


def window_text(view: ShapeGrid) -> str:
    """Returns the name of the visible part of the tensor; "" for the whole tensor."""
    if view.is_whole:
        return ""
    part = ", ".join(f"{start}:{stop}" for start, stop in view.box)
    return f"shown: [{part}] of {shape_text(view.shape)}; at(…) shows another part"


def planes_of(view: ShapeGrid) -> list[tuple[tuple[int, ...], list[list[int | None]]]]:
    """Returns the visible part as rows of positions, one table for each index of the axes before the last two."""
    outer, inner = view.box[:-2], view.box[-2:]
    columns = inner[-1][1] - inner[-1][0] if inner else 1
    rows = inner[0][1] - inner[0][0] if len(inner) == 2 else 1
    offsets = iter([cell.offset for cell in view.cells])
    planes = []
    for index in product(*(range(start, stop) for start, stop in outer)):
        planes.append((index, [[next(offsets) for _ in range(columns)] for _ in range(rows)]))
    return planes


def shape_grid_text(view: ShapeGrid) -> str:
    """Returns a step of a shape view as text: its formula, its views, and the grid of offsets."""
    lines = [step_text(view)]
    if view.formula:
        lines.append(f"{view.formula}  ({view.law})")
    for number, part in enumerate(view.views):
        name = "view" if len(view.views) == 1 else f"view {number}"
        lines.append(f"{name}: {view_text(part.shape, part.strides, part.offset, part.mask)}")
    lines.append(f"offset: {view.before}")
    if str(view.after) != str(view.before):
        lines.append(f"simplified: {view.after}")
    width = max((len(str(cell.offset)) for cell in view.cells if cell.valid), default=1)
    for index, rows in planes_of(view):
        if index:
            lines.append(f"[{', '.join(map(str, index))}]")
        lines += [" ".join((PADDING if offset is None else str(offset)).rjust(width) for offset in row) for row in rows]
    if note := window_text(view):
        lines.append(note)
    for other in view.others:
        first_view = other.tracker.views[0]
        lines.append(
            f"{other.name}: {view_text(first_view.shape, first_view.strides, first_view.offset, first_view.mask)}"
        )
    return "\n".join(lines)


__all__ = ["planes_of", "shape_grid_text", "step_text", "view_text", "window_text"]

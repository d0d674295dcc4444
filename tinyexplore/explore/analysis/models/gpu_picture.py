"""Draws a GPU kernel: the grid, a group with its warps, and the addresses of a warp by lane."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol

from tinyexplore.explore.analysis.models.occupancy import Occupancy
from tinyexplore.explore.analysis.models.warp_accesses import WarpAccess
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.pictures.drawing import COLORS, document, shorten, text

MARGIN, ROW = 20.0, 30.0
SIDE = 16  # most groups, and work-items, along each dimension
CELL = 7.0
PLOT_WIDTH, PLOT_HEIGHT = 128.0, 22.0
COLUMNS = ("line", "of", "address over lane", "segments", "bytes used", "banks", "a warp")
PLACES = (MARGIN, MARGIN + 34, MARGIN + 156, MARGIN + 300, MARGIN + 366, MARGIN + 436, MARGIN + 488)
WIDTH = 720.0
MAX_ROWS = 40


class DrawnGPUKernel(Protocol):
    """The data of a kernel that the picture shows. A `GPUView` has it."""

    @property
    def name(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def warp(self) -> int: ...

    @property
    def grid(self) -> tuple[int, ...]: ...

    @property
    def group(self) -> tuple[int, ...] | None: ...

    @property
    def at(self) -> tuple[int, ...]: ...

    @property
    def says(self) -> str: ...

    @property
    def why(self) -> str: ...

    @property
    def occupancy(self) -> Occupancy | None: ...

    @property
    def rows(self) -> list[tuple[WarpAccess, int]]: ...


def gpu_svg(view: DrawnGPUKernel) -> str:
    """Returns the picture: the grid and the group, and below them a row for each distinct access."""
    parts = [text(MARGIN, 26, f"{view.name} on {view.target}", size=13, bold=True), text(MARGIN, 44, view.says)]
    top = 64.0
    group_position = view.at if view.group is not None else ()
    parts += cells(view.grid, MARGIN, top, "groups" if view.group is not None else "work-items", chosen=group_position)
    if view.group is not None:
        parts += cells(view.group, MARGIN + 148, top, f"work-items of one, by warp of {view.warp}", warp=view.warp)
    limits = view.occupancy
    for number, line in enumerate([view.why] if limits is None else occupancy_lines(view)):
        parts.append(
            text(
                MARGIN + 390, top + 8 + 17 * number, line, size=11, shade="ink2" if limits is None or number else "ink"
            )
        )
    y = top + SIDE * CELL + 52
    parts += [text(x, y - 20, title, size=11, shade="ink2") for x, title in zip(PLACES, COLUMNS)]
    rows = view.rows
    for access, count in rows[:MAX_ROWS]:
        kind = "store" if access.stored else "load"
        parts.append(text(PLACES[0], y, str(access.place), size=11, mono=True))
        parts.append(
            text(PLACES[1], y, f"{kind} {access.buffer}{f' × {count}' if count > 1 else ''}", size=11, mono=True)
        )
        parts += dots(access, PLACES[2], y - 14)
        parts += [text(x, y, label, size=11) for x, label in zip(PLACES[3:6], access.figures)]
        parts.append(text(PLACES[6], y, shorten(access.says, 38), size=11))
        y += ROW
    if left := len(rows) - MAX_ROWS if len(rows) > MAX_ROWS else 0:
        parts.append(
            text(
                MARGIN,
                y,
                f"{count_text(left, 'more load or store', 'more loads and stores')} not drawn",
                size=11,
                shade="ink2",
            )
        )
    return document(WIDTH, y + 4, f"{view.name} on {view.target}", str(view), parts)


def occupancy_lines(view: DrawnGPUKernel) -> list[str]:
    """Returns the number of groups that a multiprocessor holds, and the limit of each resource, as text."""
    limits = view.occupancy
    assert limits is not None
    rows = [f"{name}: {groups} × {need:,} of {have:,}" for name, need, have, groups in limits.limits]
    return [f"{limits.share:.0%} occupancy, bound by {limits.limit}", *rows]


def cells(
    sizes: Sequence[int], x: float, y: float, title: str, *, chosen: Sequence[int] = (), warp: int = 0
) -> list[str]:
    """Returns a plane of cells, with the first dimension to the right; planes of a third dimension follow below.

    A large plane is cut to the part around the chosen cell.

    chosen: the indices of the filled cell.
    warp: if not 0, fill every second warp of this size instead.
    """
    across, down = [*sizes, 1][0], prod(sizes[1:])
    is_line = down == 1 and across > SIDE  # it continues in the next row
    columns, rows = (2 * SIDE, -(-across // (2 * SIDE))) if is_line else (min(across, SIDE), down)
    position = sum(step * prod(sizes[:axis]) for axis, step in enumerate(chosen))
    at = (position % across, position // across) if chosen and not is_line else (0, 0)
    left, top = (max(0, min(size - SIDE, center - SIDE // 2)) for size, center in zip((across, down), at))
    if is_line:
        left = top = 0
    parts = [text(x, y + SIDE * CELL + 14, f"{' × '.join(map(str, sizes))} {title}", size=11, shade="ink2")]
    color = COLORS["memory"]
    for row in range(min(rows, SIDE)):
        for column in range(columns):
            number = row * columns + column if is_line else (row + top) * across + column + left
            if is_line and number >= across:
                break
            is_lit = number // warp % 2 == 0 if warp else bool(chosen) and number == position
            look = 'class="g-memory"' if is_lit else 'class="cell"'
            fill = f'fill="{color.light_fill}" stroke="{color.light}"' if is_lit else 'fill="#f7f8fa" stroke="#dfe3e8"'
            attributes = (
                f'x="{x + column * CELL:.1f}" y="{y + row * CELL:.1f}" width="{CELL - 1.5}" height="{CELL - 1.5}"'
            )
            parts.append(f"<rect {look} {attributes} {fill}/>")
    if columns * min(rows, SIDE) < across * down:
        parts.append(text(x + columns * CELL + 4, y + 8, "…", size=11, shade="ink2"))
    return parts


def dots(access: WarpAccess, x: float, y: float) -> list[str]:
    """Returns a plot of the lanes' addresses, from left to right; adjacent addresses form a flat line."""
    attributes = f'x="{x:.1f}" y="{y:.1f}" width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}"'
    parts = [f'<rect class="cell" {attributes} fill="#f7f8fa" stroke="#dfe3e8" rx="2"/>']
    if access.shown is None or not access.shown.active:
        return parts
    lanes = access.shown.addresses
    first = min(access.shown.active)
    span_bytes = max(4096, max(access.shown.active) - first + access.nbytes)
    color = COLORS["memory"]
    for lane, address in enumerate(lanes):
        if address is not None:
            left = x + 3 + lane * (PLOT_WIDTH - 8) / max(1, len(lanes) - 1)
            high = y + PLOT_HEIGHT - 4 - (address - first) / span_bytes * (PLOT_HEIGHT - 8)
            parts.append(
                f'<circle class="g-memory" cx="{left:.1f}" cy="{high:.1f}" r="1.5" fill="{color.light_fill}" '
                f'stroke="{color.light}"/>'
            )
    return parts


__all__ = ["gpu_svg"]

"""Places the vertices of a layered graph: x by sweeps of isotonic regression, y by rank, components side by side.

Mirrors widgets/src/coordinates.ts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tinyexplore.explore.tracefile.pictures.layers import DUMMY_GAP, NODE_GAP, Layers, Rows, total_of

RANK_GAP = 38.0
COMPONENT_GAP = 44.0
PLACE_SWEEPS = 8
FREE_WEIGHT = 0.01


@dataclass(slots=True)
class Plane:
    """Positions of the vertices, in pixels.

    x: the center of each vertex.
    y: the center of each vertex.
    top: the upper end of each vertex's rank.
    bottom: the lower end of each vertex's rank.
    """

    x: list[float]
    y: list[float]
    top: list[float]
    bottom: list[float]


@dataclass(slots=True)
class PartExtent:
    """The extent of one connected component, in pixels.

    left: its left end.
    right: its right end.
    top: its upper end.
    bottom: its lower end.
    vertices: the vertices of the component.
    """

    left: float
    right: float
    top: float
    bottom: float
    vertices: list[int] = field(default_factory=list)


def place_x(layers: Layers, rows: Rows, x: list[float]) -> None:
    """Computes x by sweeps of isotonic regression that move every vertex towards the mean of its neighbors."""
    gaps = [_compute_gaps(layers, row) for row in rows]
    _pack_rows(rows, gaps, x)
    no_neighbors: list[list[int]] = [[]] * len(layers.rank)
    up_pull, down_pull = _compute_neighbor_weights(layers, rows)
    for sweep in range(PLACE_SWEEPS + 2):
        downwards = sweep % 2 == 0
        both = sweep >= PLACE_SWEEPS
        upper, upper_pull = (layers.up, up_pull) if downwards or both else (no_neighbors, up_pull)
        lower, lower_pull = (layers.down, down_pull) if not downwards or both else (no_neighbors, down_pull)
        for r in range(len(rows)) if downwards else range(len(rows) - 1, -1, -1):
            row = rows[r]
            positions: list[float] = []
            weights: list[float] = []
            for v in row:
                total = 0.0
                weight = 0.0
                for u, pull in zip(upper[v], upper_pull[v]):
                    total += pull * x[u]
                    weight += pull
                for u, pull in zip(lower[v], lower_pull[v]):
                    total += pull * x[u]
                    weight += pull
                positions.append(total / weight if weight > 0.0 else x[v])
                weights.append(weight if weight > 0.0 else FREE_WEIGHT)
            _place_row(row, gaps[r], positions, weights, x)


def _compute_neighbor_weights(layers: Layers, rows: Rows) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Returns the weight of each neighbor above and below. Chains and long edges have the largest weights."""
    count, up, down = layers.count, layers.up, layers.down
    up_pull: dict[int, list[float]] = {}
    down_pull: dict[int, list[float]] = {v: [] for row in rows for v in row}
    for row in rows:
        for v in row:
            pulls = []
            for u in up[v]:
                if len(up[v]) == 1 == len(down[u]) or (u >= count and v >= count):
                    pull = 8.0
                else:
                    pull = 2.0 if u >= count or v >= count else 1.0
                pulls.append(pull)
            up_pull[v] = pulls
    for v in down_pull:
        for u in down[v]:
            down_pull[v].append(up_pull[u][up[u].index(v)])
    return up_pull, down_pull


def _compute_gaps(layers: Layers, row: Sequence[int]) -> list[float]:
    """Returns the smallest distance of each center from its left neighbor's center, in pixels; 0 for the first."""
    gaps = [0.0]
    count = layers.count
    for i in range(1, len(row)):
        a, b = row[i - 1], row[i]
        gap = NODE_GAP if a < count and b < count else DUMMY_GAP
        gaps.append((layers.width[a] + layers.width[b]) / 2 + gap)
    return gaps


def _pack_rows(rows: Rows, gaps: Sequence[Sequence[float]], x: list[float]) -> None:
    """Places the vertices of each row side by side, with all rows centered on one axis: the start of the sweeps."""
    for row, row_gaps in zip(rows, gaps, strict=True):
        x_offset = 0.0
        for v, gap in zip(row, row_gaps, strict=True):
            x_offset += gap
            x[v] = x_offset
        for v in row:
            x[v] -= x_offset / 2


def _place_row(
    row: Sequence[int], gaps: Sequence[float], positions: Sequence[float], weights: Sequence[float], x: list[float]
) -> None:
    """Places one row as near to `positions` as possible (weighted least squares), with all gaps respected."""
    offsets: list[float] = []
    blocks: list[tuple[float, float, float, int]] = []  # mean, weight, weighted sum, size
    offset = 0.0
    for want, weight, gap in zip(positions, weights, gaps, strict=True):
        offset += gap
        offsets.append(offset)
        mean = want - offset
        total = weight * (want - offset)
        size = 1
        while blocks and blocks[-1][0] > mean:
            _, block_weight, block_total, block_size = blocks.pop()
            weight += block_weight
            total += block_total
            size += block_size
            mean = total / weight
        blocks.append((mean, weight, total, size))
    i = 0
    for mean, _, _, size in blocks:
        for _ in range(size):
            x[row[i]] = mean + offsets[i]
            i += 1


def place_y(layers: Layers, rows: Rows, plane: Plane) -> None:
    """Sets the y coordinate of each layer, in pixels."""
    start = 0.0
    for row in rows:
        tallest = 0.0
        for v in row:
            if v < layers.count:
                tallest = max(tallest, float(layers.boxes[v].height))
        for v in row:
            plane.y[v] = start + tallest / 2
            plane.top[v] = start
            plane.bottom[v] = start + tallest
        start += tallest + RANK_GAP


def frame_of(layers: Layers, rows: Rows, plane: Plane) -> PartExtent:
    vertices = [v for row in rows for v in row]
    return PartExtent(
        left=min(plane.x[v] - layers.width[v] / 2 for v in vertices),
        right=max(plane.x[v] + layers.width[v] / 2 for v in vertices),
        top=0.0,
        bottom=max(plane.bottom[v] for v in vertices),
        vertices=vertices,
    )


def _move_part(frame: PartExtent, plane: Plane, dx: float, dy: float) -> None:
    for v in frame.vertices:
        plane.x[v] += dx
        plane.y[v] += dy
        plane.top[v] += dy
        plane.bottom[v] += dy
    frame.left += dx
    frame.right += dx
    frame.top += dy
    frame.bottom += dy


def arrange(frames: Sequence[PartExtent], plane: Plane) -> None:
    """Places the components side by side on shelves, the highest first."""
    fresh = sorted(frames, key=lambda frame: -frame.bottom)
    widest = max((frame.right - frame.left for frame in fresh), default=0.0)
    area = total_of([(frame.right - frame.left + COMPONENT_GAP) * (frame.bottom + COMPONENT_GAP) for frame in fresh])
    shelf_width = max(widest, 1.4 * math.sqrt(area))
    shelf_left = shelf_top = shelf_height = 0.0
    for frame in fresh:
        width = frame.right - frame.left
        if shelf_left > 0.0 and shelf_left + width > shelf_width:
            shelf_left = 0.0
            shelf_top += shelf_height + COMPONENT_GAP
            shelf_height = 0.0
        shelf_height = max(shelf_height, frame.bottom)
        _move_part(frame, plane, shelf_left - frame.left, shelf_top)
        shelf_left += width + COMPONENT_GAP

"""Layered layout of directed acyclic graphs for static pictures: sources above their users.

widgets/src/layout.ts has the same algorithm, operation for operation, and can also keep boxes at earlier positions.
Both are tested on the vectors in tests/fixtures/layout. The steps are:

1. Ranks by longest path; one chain of dummies per source, which all its long edges share (`layers`).
2. Sweeps and swaps that reduce crossings (`ordering`).
3. Coordinates by isotonic regression (`coordinates`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tinyexplore.explore.tracefile.pictures.coordinates import Plane, arrange, frame_of, place_x, place_y
from tinyexplore.explore.tracefile.pictures.layers import (
    Box,
    Layers,
    Point,
    components,
    distinct_pairs,
    make_layers,
)
from tinyexplore.explore.tracefile.pictures.ordering import (
    initial_rows,
    reduce_crossings,
    swap_neighbors,
)

__all__ = ["Box", "Layout", "Point", "RoutedEdge", "edge_path", "layout"]


@dataclass(frozen=True, slots=True)
class RoutedEdge:
    """The path of an edge.

    src: the upper box.
    dst: the lower box.
    points: from the bottom of `src` to the top of `dst`.
    long: whether the edge runs over other boxes, and is drawn faint.
    """

    src: int
    dst: int
    points: tuple[Point, ...]
    long: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing of boxes, in pixels.

    positions: the center of each box, by id.
    width: the width of the drawing.
    height: the height of the drawing.
    left: the left end of the drawing.
    top: the upper end of the drawing.
    edges: the paths of the edges.
    """

    positions: dict[int, Point]
    width: float
    height: float
    left: float
    top: float
    edges: tuple[RoutedEdge, ...]


def layout(nodes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Layout:
    """Returns positions for `nodes` and routes for `edges` (source id, user id); edges run from top to bottom.

    Repeated edges, self-loops and edges to missing boxes are ignored.
    """
    layers = make_layers(nodes, distinct_pairs(nodes, edges))
    total = len(layers.rank)
    plane = Plane([0.0] * total, [0.0] * total, [0.0] * total, [0.0] * total)
    frames = []
    for vertices in components(layers):
        rows = reduce_crossings(layers, initial_rows(layers, vertices))
        swap_neighbors(layers, rows)
        place_x(layers, rows, plane.x)
        place_y(layers, rows, plane)
        frames.append(frame_of(layers, rows, plane))
    arrange(frames, plane)
    return _make_layout(layers, plane)


def edge_path(points: Sequence[Point]) -> str:
    """Returns an SVG path through the points, in relative coordinates: vertical lines and S-curves."""
    last_x, last_y = _to_tenths(points[0])
    path = f"M{last_x / 10:g} {last_y / 10:g}"
    for x, y in map(_to_tenths, points[1:]):
        right, down = x - last_x, y - last_y
        if right == 0:
            path += f"v{down / 10:g}"
        else:
            middle = f"{down / 20:.3g}"
            path += f"c0 {middle} {right / 10:g} {middle} {right / 10:g} {down / 10:g}"
        last_x, last_y = x, y
    return path


def _to_tenths(point: Point) -> tuple[int, int]:
    """Returns a point in whole tenths of a pixel. Relative coordinates would accumulate rounding errors otherwise."""
    return math.floor(point[0] * 10 + 0.5), math.floor(point[1] * 10 + 0.5)


def _make_layout(layers: Layers, plane: Plane) -> Layout:
    """Returns the positions of the boxes and the paths of the edges, in pixels."""
    boxes, chain, spans, x, y = layers.boxes, layers.chain, layers.spans, plane.x, plane.y
    everything = range(len(x))
    left = min((x[v] - layers.width[v] / 2 for v in everything), default=0.0)
    right = max((x[v] + layers.width[v] / 2 for v in everything), default=0.0)
    top = min(plane.top, default=0.0)
    bottom = max(plane.bottom, default=0.0)
    incoming: list[list[int]] = [[] for _ in boxes]
    entry: list[float] = []  # the x at which an edge enters its user
    for i, (a, b) in enumerate(layers.pairs):
        entry.append(x[a] if layers.is_long(i) or spans[i] == 1 else x[chain[a] + spans[i] - 2])
        incoming[b].append(i)
    port = [0.0] * len(layers.pairs)
    for b, sources in enumerate(incoming):
        sources.sort(key=entry.__getitem__)
        for i, edge in enumerate(sources):
            share = (i + 1) / (len(sources) + 1) - 0.5
            port[edge] = x[b] + share * 0.8 * boxes[b].width
    routed = []
    for i, (a, b) in enumerate(layers.pairs):
        points = [(x[a], y[a] + boxes[a].height / 2)]
        if not layers.is_long(i):
            points.append((x[a], plane.bottom[a]))
            for dummy in range(chain[a], chain[a] + spans[i] - 1):
                points.append((x[dummy], plane.top[dummy]))
                points.append((x[dummy], plane.bottom[dummy]))
            points.append((port[i], plane.top[b]))
        points.append((port[i], y[b] - boxes[b].height / 2))
        routed.append(RoutedEdge(boxes[a].id, boxes[b].id, _straighten(points), layers.is_long(i)))
    positions = {box.id: (x[v], y[v]) for v, box in enumerate(boxes)}
    return Layout(positions, right - left, bottom - top, left, top, tuple(routed))


def _straighten(points: Sequence[Point]) -> tuple[Point, ...]:
    """Removes repeated points, and points in the middle of a vertical line."""
    corners: list[Point] = []
    for point in points:
        if corners and corners[-1] == point:
            continue
        if len(corners) > 1 and corners[-2][0] == corners[-1][0] == point[0]:
            corners.pop()
        corners.append(point)
    return tuple(corners)

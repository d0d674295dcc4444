"""Orders the vertices of each rank: barycenter sweeps and swaps of neighbors reduce crossings.

The front end has its own version for interactive views (widgets/src/ordering.ts).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from tinyexplore.explore.tracefile.pictures.layers import Layers, Rows

ORDER_SWEEPS = 8
SWAP_PASSES = 4


def initial_rows(layers: Layers, vertices: Sequence[int]) -> Rows:
    """Returns the rows in the order of a depth-first walk from the last users upwards. Trees then have no crossings."""
    first = min(layers.rank[v] for v in vertices)
    last = max(layers.rank[v] for v in vertices)
    rows: Rows = [[] for _ in range(last - first + 1)]
    visited: set[int] = set()
    for start in vertices:
        if layers.down[start]:
            continue
        stack = [start]
        while stack:
            v = stack.pop()
            if v in visited:
                continue
            visited.add(v)
            rows[layers.rank[v] - first].append(v)
            stack.extend(reversed(layers.up[v]))
    return rows


def _number_positions(rows: Rows) -> dict[int, int]:
    return {v: i for row in rows for i, v in enumerate(row)}


def reduce_crossings(layers: Layers, rows: Rows) -> Rows:
    """Reduces crossings by barycenter sweeps, alternately down and up; returns the best order found."""
    position = _number_positions(rows)
    fewest = _count_crossings(layers, rows, position)
    best = [row.copy() for row in rows]
    for sweep in range(ORDER_SWEEPS):
        if fewest == 0:
            break
        if sweep % 2 == 0:
            for row in rows[1:]:
                _sort_by_barycenter(row, layers.up, position)
        else:
            for row in reversed(rows[:-1]):
                _sort_by_barycenter(row, layers.down, position)
        count = _count_crossings(layers, rows, position)
        if count < fewest:
            fewest = count
            best = [row.copy() for row in rows]
    return best


def _sort_by_barycenter(row: list[int], neighbors: list[list[int]], position: dict[int, int]) -> None:
    """Sorts one row by the mean position of each vertex's neighbors. A vertex without neighbors keeps its position."""
    keyed: list[tuple[float, int]] = []
    slots: list[int] = []
    for i, v in enumerate(row):
        around = neighbors[v]
        if not around:
            continue
        total = 0
        for u in around:
            total += position[u]
        keyed.append((total / len(around), v))
        slots.append(i)
    keyed.sort(key=_compute_barycenter)
    for i, (_, v) in zip(slots, keyed, strict=True):
        row[i] = v
    for i, v in enumerate(row):
        position[v] = i


def _compute_barycenter(pair: tuple[float, int]) -> float:
    return pair[0]


def _count_crossings(layers: Layers, rows: Rows, position: dict[int, int]) -> int:
    """Counts the pairs of edges that cross between neighboring rows."""
    total = 0
    down = layers.down
    for row in rows:
        met: list[int] = []
        for v in row:
            for p in sorted([position[u] for u in down[v]]):
                if not met or p >= met[-1]:
                    met.append(p)
                    continue
                before = bisect_right(met, p)
                total += len(met) - before
                met.insert(before, p)
    return total


def _count_pair_crossings(left: Sequence[int], right: Sequence[int]) -> int:
    """Counts the crossing edges of two neighbors in a row, from the sorted positions of their adjacent vertices."""
    count = 0
    smaller = 0
    size = len(right)
    for p in left:
        while smaller < size and right[smaller] < p:
            smaller += 1
        count += smaller
    return count


def swap_neighbors(layers: Layers, rows: Rows) -> None:
    """Swaps neighbors in a row where a swap removes crossings."""
    position = _number_positions(rows)
    for _ in range(SWAP_PASSES):
        improved = False
        for row in rows:
            if len(row) < 2:
                continue
            above = [sorted([position[u] for u in layers.up[v]]) for v in row]
            below = [sorted([position[u] for u in layers.down[v]]) for v in row]
            for i in range(len(row) - 1):
                v, w = row[i], row[i + 1]
                crossings_before = _count_pair_crossings(above[i], above[i + 1]) + _count_pair_crossings(
                    below[i], below[i + 1]
                )
                if crossings_before == 0:
                    continue
                crossings_after = _count_pair_crossings(above[i + 1], above[i]) + _count_pair_crossings(
                    below[i + 1], below[i]
                )
                if crossings_after >= crossings_before:
                    continue
                improved = True
                row[i], row[i + 1] = w, v
                above[i], above[i + 1] = above[i + 1], above[i]
                below[i], below[i + 1] = below[i + 1], below[i]
                position[w] = i
                position[v] = i + 1
        if not improved:
            return

"""The layered graph of a layout: ranks by longest path, dummies on long edges, connected components.

Mirrors widgets/src/layers.ts. Every walk is iterative, so deep graphs do not exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]
Rows = list[list[int]]

NODE_GAP = 22.0
DUMMY_GAP = 12.0
LONGEST_ROUTED_SPAN = 12  # ranks; longer edges get no dummy nodes and are drawn as faint curves


@dataclass(frozen=True, slots=True)
class Box:
    """A node to place.

    id: the id of the node.
    width: in pixels.
    height: in pixels.
    """

    id: int
    width: float
    height: float


@dataclass(slots=True)
class Layers:
    """A layered graph. Vertices below `count` are boxes. The others are dummies on long edges.

    boxes: the boxes.
    pairs: (source, user) of each edge, as vertices.
    rank: the layer of each vertex.
    up: the neighbors of each vertex one rank above.
    down: the neighbors of each vertex one rank below.
    chain: the first dummy of each box's chain.
    spans: the number of ranks that each edge crosses.
    width: the width of each vertex, in pixels.
    count: the number of boxes.
    """

    boxes: Sequence[Box]
    pairs: list[tuple[int, int]]
    rank: list[int]
    up: list[list[int]]
    down: list[list[int]]
    chain: list[int]
    spans: list[int]
    width: list[float]
    count: int

    def is_long(self, edge: int) -> bool:
        return self.spans[edge] < 1 or self.spans[edge] > LONGEST_ROUTED_SPAN


def distinct_pairs(nodes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    index = {box.id: i for i, box in enumerate(nodes)}
    pairs = [(index[src], index[dst]) for src, dst in edges if src in index and dst in index and src != dst]
    return list(dict.fromkeys(pairs))


def _compute_ranks(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Returns ranks by longest path. A vertex with at least as many users as sources then moves down to its users."""
    sources: list[list[int]] = [[] for _ in range(count)]
    users: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        users[a].append(b)
        sources[b].append(a)
    missing_sources = [len(own_sources) for own_sources in sources]
    order = [v for v in range(count) if missing_sources[v] == 0]
    order_of = [-1] * count
    for i, v in enumerate(order):
        order_of[v] = i
    head = 0
    unplaced = 0
    while head < count:
        if head == len(order):  # only in a graph with cycles: continue with the first box that is left
            while order_of[unplaced] >= 0:
                unplaced += 1
            order_of[unplaced] = len(order)
            order.append(unplaced)
        for user in users[order[head]]:
            missing_sources[user] -= 1
            if missing_sources[user] == 0 and order_of[user] < 0:
                order_of[user] = len(order)
                order.append(user)
        head += 1
    rank = [0] * count
    for v in order:
        for user in users[v]:
            if order_of[user] > order_of[v]:
                rank[user] = max(rank[user], rank[v] + 1)
    for i in range(count - 1, -1, -1):
        v = order[i]
        if not users[v] or len(sources[v]) > len(users[v]):
            continue
        below = [rank[user] - 1 for user in users[v] if order_of[user] > i]
        if below and min(below) > rank[v]:
            rank[v] = min(below)
    return rank


def make_layers(nodes: Sequence[Box], pairs: list[tuple[int, int]]) -> Layers:
    """Assigns the nodes to layers, and splits long edges by dummy vertices."""
    count = len(nodes)
    rank = _compute_ranks(count, pairs)
    spans = [rank[b] - rank[a] for a, b in pairs]
    reach = [0] * count  # the longest routed span out of each box
    for (a, _), span in zip(pairs, spans, strict=True):
        if reach[a] < span <= LONGEST_ROUTED_SPAN:
            reach[a] = span
    up: list[list[int]] = [[] for _ in range(count)]
    down: list[list[int]] = [[] for _ in range(count)]
    chain = [-1] * count
    for a in range(count):
        if reach[a] < 2:
            continue
        chain[a] = len(rank)
        for step in range(1, reach[a]):
            dummy = len(rank)
            above = a if step == 1 else dummy - 1
            rank.append(rank[a] + step)
            up.append([above])
            down.append([])
            down[above].append(dummy)
    for (a, b), span in zip(pairs, spans, strict=True):
        if 1 <= span <= LONGEST_ROUTED_SPAN:
            above = a if span == 1 else chain[a] + span - 2
            down[above].append(b)
            up[b].append(above)
    width = [float(box.width) for box in nodes] + [0.0] * (len(rank) - count)
    return Layers(nodes, pairs, rank, up, down, chain, spans, width, count)


def components(layers: Layers) -> list[list[int]]:
    """Returns the vertices of each connected component, in ascending order."""
    parent = list(range(len(layers.rank)))

    def find(v: int) -> int:
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = parent[v]
        return v

    links = layers.pairs + [(layers.up[v][0], v) for v in range(layers.count, len(layers.rank))]
    for a, b in links:
        first, second = find(a), find(b)
        if first < second:
            parent[second] = first
        else:
            parent[first] = second
    members: dict[int, list[int]] = {}
    for v in range(len(parent)):
        members.setdefault(find(v), []).append(v)
    return list(members.values())


def total_of(values: Sequence[float]) -> float:
    """Returns the sum from left to right, as JavaScript adds. From Python 3.12 on, the built-in `sum` compensates
    rounding."""
    total = 0.0
    for value in values:
        total += value
    return total

"""Layered layout of directed acyclic graphs: sources above their users.

The same algorithm, operation for operation, as widgets/src/layout.ts; both are checked on the vectors in
tests/fixtures/layout. Ranks by longest path; dummy nodes on edges that span up to `LONGEST_ROUTED_SPAN` ranks (one
chain per source, which all its long edges share); barycentre sweeps and swaps of neighbours against crossings; x by
sweeps of isotonic regression. Every walk is iterative: depth is no limit.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Point = tuple[float, float]
Rows = list[list[int]]
Pins = Sequence["float | None"]

RANK_GAP = 38.0
NODE_GAP = 22.0
DUMMY_GAP = 12.0
TIGHT_DUMMY_GAP = 5.0  # beside boxes that are to stay where they were
COMPONENT_GAP = 44.0
LONGEST_ROUTED_SPAN = 12  # longer edges get no dummy nodes: they are drawn as faint curves
ORDER_SWEEPS = 8
SWAP_PASSES = 4
PLACE_SWEEPS = 8
PINNED_WEIGHT = 1024.0
RELAX_ROUNDS = 4
SLOT_REACH = 12
PUSH_COST = 4.0
FREE_WEIGHT = 0.01


@dataclass(frozen=True, slots=True)
class Box:
    """A node to place, in pixels."""

    id: int
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class RoutedEdge:
    """`points` run from the bottom of `src` to the top of `dst`; `long` edges go over other boxes: draw them faint."""

    src: int
    dst: int
    points: tuple[Point, ...]
    long: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes by id; the drawing covers left … left + width, top … top + height."""

    positions: dict[int, Point]
    width: float
    height: float
    left: float
    top: float
    edges: tuple[RoutedEdge, ...]


def layout(
    nodes: Sequence[Box], edges: Sequence[tuple[int, int]], previous: Mapping[int, Point] | None = None
) -> Layout:
    """Places for `nodes`, routes for `edges` (src id, dst id); flow runs from top to bottom.

    Boxes with a place in `previous` stay there where the graph allows. Repeated edges, loops and edges to boxes that
    are not there are left out.
    """
    places = previous or {}
    layers = _layered(nodes, _distinct_pairs(nodes, edges), TIGHT_DUMMY_GAP if places else DUMMY_GAP)
    total = len(layers.rank)
    plane = _Plane([0.0] * total, [0.0] * total, [0.0] * total, [0.0] * total)
    frames = []
    for vertices in _components(layers):
        pinned: list[float | None] = [None] * total
        pinned_count = 0
        for v in vertices:
            if v < layers.count and nodes[v].id in places:
                pinned[v] = places[nodes[v].id][0]
                pinned_count += 1
        rows = _initial_rows(layers, vertices)
        if pinned_count > 0:
            _order_by_previous(layers, rows, pinned)
        else:
            rows = _reduce_crossings(layers, rows)
        _swap_neighbours(layers, rows, pinned)
        _place_x(layers, rows, pinned, pinned_count > 0, plane.x)
        _place_y(layers, rows, plane)
        frames.append(_frame_of(layers, rows, plane, places))
    _arrange(frames, plane)
    return _finish(layers, plane)


def edge_path(points: Sequence[Point]) -> str:
    """An SVG path through the points: vertical where they stand above one another, else an S-curve."""
    last_x, last_y = points[0]
    path = f"M{_short(last_x)} {_short(last_y)}"
    for x, y in points[1:]:
        if x == last_x:
            path += f"V{_short(y)}"
        else:
            middle = _short((last_y + y) / 2)
            path += f"C{_short(last_x)} {middle} {_short(x)} {middle} {_short(x)} {_short(y)}"
        last_x, last_y = x, y
    return path


def _short(value: float) -> str:
    return f"{math.floor(value * 10 + 0.5) / 10:g}" if abs(value) < 1e5 else f"{math.floor(value + 0.5)}"


@dataclass(slots=True)
class _Layers:
    """The layered graph: vertices below `count` are boxes, those after are dummies on long edges.

    up, down: for each vertex its neighbours one rank above, one below. chain: the first dummy of a box's chain.
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
    dummy_gap: float

    def is_long(self, edge: int) -> bool:
        return self.spans[edge] < 1 or self.spans[edge] > LONGEST_ROUTED_SPAN


@dataclass(slots=True)
class _Plane:
    """For each vertex its centre, and the top and bottom of its rank."""

    x: list[float]
    y: list[float]
    top: list[float]
    bottom: list[float]


@dataclass(slots=True)
class _Frame:
    """What one connected part covers, and how far its boxes have left their previous height (None: all new)."""

    left: float
    right: float
    top: float
    bottom: float
    shift: float | None
    vertices: list[int] = field(default_factory=list)


def _distinct_pairs(nodes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    index = {box.id: i for i, box in enumerate(nodes)}
    found = [(index[src], index[dst]) for src, dst in edges if src in index and dst in index and src != dst]
    return list(dict.fromkeys(found))


def _ranks(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Ranks by longest path; who has as many users as sources or more is then pulled down to its users."""
    sources: list[list[int]] = [[] for _ in range(count)]
    users: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        users[a].append(b)
        sources[b].append(a)
    waiting = [len(found) for found in sources]
    order = [v for v in range(count) if waiting[v] == 0]
    place = [-1] * count
    for i, v in enumerate(order):
        place[v] = i
    head = 0
    unplaced = 0
    while head < count:
        if head == len(order):  # only in a graph with cycles: go on with the first box that is left
            while place[unplaced] >= 0:
                unplaced += 1
            place[unplaced] = len(order)
            order.append(unplaced)
        for user in users[order[head]]:
            waiting[user] -= 1
            if waiting[user] == 0 and place[user] < 0:
                place[user] = len(order)
                order.append(user)
        head += 1
    rank = [0] * count
    for v in order:
        for user in users[v]:
            if place[user] > place[v]:
                rank[user] = max(rank[user], rank[v] + 1)
    for i in range(count - 1, -1, -1):
        v = order[i]
        if not users[v] or len(sources[v]) > len(users[v]):
            continue
        below = [rank[user] - 1 for user in users[v] if place[user] > i]
        if below and min(below) > rank[v]:
            rank[v] = min(below)
    return rank


def _layered(nodes: Sequence[Box], pairs: list[tuple[int, int]], dummy_gap: float) -> _Layers:
    count = len(nodes)
    rank = _ranks(count, pairs)
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
    return _Layers(nodes, pairs, rank, up, down, chain, spans, width, count, dummy_gap)


def _components(layers: _Layers) -> list[list[int]]:
    """The vertices of each connected part, in ascending order."""
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


def _initial_rows(layers: _Layers, vertices: Sequence[int]) -> Rows:
    """Rows as a depth-first walk from the last users upwards meets them: trees come out without crossings."""
    first = min(layers.rank[v] for v in vertices)
    last = max(layers.rank[v] for v in vertices)
    rows: Rows = [[] for _ in range(last - first + 1)]
    seen: set[int] = set()
    for start in vertices:
        if layers.down[start]:
            continue
        stack = [start]
        while stack:
            v = stack.pop()
            if v in seen:
                continue
            seen.add(v)
            rows[layers.rank[v] - first].append(v)
            stack.extend(reversed(layers.up[v]))
    return rows


def _positions(rows: Rows) -> dict[int, int]:
    return {v: i for row in rows for i, v in enumerate(row)}


def _order_by_previous(layers: _Layers, rows: Rows, pinned: Pins) -> None:
    """Rows in the order of the previous positions; new vertices stand near their neighbours, where there is room."""
    key = {v: place for row in rows for v in row if (place := pinned[v]) is not None}
    middle = _total(list(key.values())) / len(key)
    for _ in range(RELAX_ROUNDS):
        for row in [*rows, *reversed(rows)]:
            for v in row:
                if pinned[v] is not None:
                    continue
                found = [key[u] for u in (*layers.up[v], *layers.down[v]) if u in key]
                if found:
                    key[v] = _total(found) / len(found)
    for r, row in enumerate(rows):
        rows[r] = _slotted(layers, row, pinned, key, middle)


def _slotted(layers: _Layers, row: list[int], pinned: Pins, key: Mapping[int, float], middle: float) -> list[int]:
    """The pinned vertices of a row from left to right, the others in the gaps where they push them the least."""
    order = sorted(row, key=lambda v: key.get(v, middle))
    pins = [v for v in order if pinned[v] is not None]
    places = [key[v] for v in pins]
    gap = layers.dummy_gap
    lows = [-math.inf] + [key[v] + layers.width[v] / 2 for v in pins]
    highs = [key[v] - layers.width[v] / 2 for v in pins] + [math.inf]
    room = [high - low - gap for low, high in zip(lows, highs, strict=True)]
    slots: list[list[int]] = [[] for _ in lows]
    for v in order:
        if pinned[v] is not None:
            continue
        want = key.get(v, middle)
        need = layers.width[v] + NODE_GAP + NODE_GAP - gap if v < layers.count else gap
        nearest = bisect_right(places, want)
        best = nearest
        least = math.inf
        for slot in range(max(0, nearest - SLOT_REACH), min(len(pins), nearest + SLOT_REACH) + 1):
            away = max(lows[slot] + need / 2 - want, want - (highs[slot] - need / 2), 0.0)
            cost = away + PUSH_COST * max(0.0, need - room[slot])
            if cost < least:
                least = cost
                best = slot
        slots[best].append(v)
        room[best] -= need
    result = slots[0]
    for v, following in zip(pins, slots[1:], strict=True):
        result.append(v)
        result.extend(following)
    return result


def _total(values: Sequence[float]) -> float:
    """The sum from left to right (the built-in one compensates from Python 3.12 on; JavaScript's does not)."""
    total = 0.0
    for value in values:
        total += value
    return total


def _reduce_crossings(layers: _Layers, rows: Rows) -> Rows:
    """Barycentre sweeps, down and up in turn; the best order met."""
    position = _positions(rows)
    fewest = _crossings(layers, rows, position)
    best = [row.copy() for row in rows]
    for sweep in range(ORDER_SWEEPS):
        if fewest == 0:
            break
        if sweep % 2 == 0:
            for row in rows[1:]:
                _sort_by_barycentre(row, layers.up, position)
        else:
            for row in reversed(rows[:-1]):
                _sort_by_barycentre(row, layers.down, position)
        count = _crossings(layers, rows, position)
        if count < fewest:
            fewest = count
            best = [row.copy() for row in rows]
    return best


def _sort_by_barycentre(row: list[int], neighbours: list[list[int]], position: dict[int, int]) -> None:
    """One row sorted by the mean position of its neighbours; who has none keeps its place."""
    keyed: list[tuple[float, int]] = []
    places: list[int] = []
    for i, v in enumerate(row):
        found = neighbours[v]
        if not found:
            continue
        total = 0
        for u in found:
            total += position[u]
        keyed.append((total / len(found), v))
        places.append(i)
    keyed.sort(key=_first)
    for i, (_, v) in zip(places, keyed, strict=True):
        row[i] = v
    for i, v in enumerate(row):
        position[v] = i


def _first(pair: tuple[float, int]) -> float:
    return pair[0]


def _crossings(layers: _Layers, rows: Rows, position: dict[int, int]) -> int:
    """How many pairs of edges cross between neighbouring rows."""
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


def _pair_crossings(left: Sequence[int], right: Sequence[int]) -> int:
    """How many edges cross of two neighbours in a row, given the sorted positions of what each is tied to."""
    count = 0
    smaller = 0
    size = len(right)
    for p in left:
        while smaller < size and right[smaller] < p:
            smaller += 1
        count += smaller
    return count


def _swap_neighbours(layers: _Layers, rows: Rows, pinned: Pins) -> None:
    """Neighbours in a row change places where that saves crossings; boxes that stood before never do."""
    position = _positions(rows)
    for _ in range(SWAP_PASSES):
        improved = False
        for row in rows:
            if len(row) < 2:
                continue
            above = [sorted([position[u] for u in layers.up[v]]) for v in row]
            below = [sorted([position[u] for u in layers.down[v]]) for v in row]
            for i in range(len(row) - 1):
                v, w = row[i], row[i + 1]
                if pinned[v] is not None or pinned[w] is not None:
                    continue
                now = _pair_crossings(above[i], above[i + 1]) + _pair_crossings(below[i], below[i + 1])
                if now == 0:
                    continue
                then = _pair_crossings(above[i + 1], above[i]) + _pair_crossings(below[i + 1], below[i])
                if then >= now:
                    continue
                improved = True
                row[i], row[i + 1] = w, v
                above[i], above[i + 1] = above[i + 1], above[i]
                below[i], below[i + 1] = below[i + 1], below[i]
                position[w] = i
                position[v] = i + 1
        if not improved:
            return


def _place_x(layers: _Layers, rows: Rows, pinned: Pins, has_pinned: bool, x: list[float]) -> None:
    """x by sweeps of isotonic regression: every vertex wants to stand at the mean of its neighbours."""
    gaps = [_gaps(layers, row) for row in rows]
    _pack_rows(rows, gaps, x)
    if has_pinned:
        for row in rows:
            for v in row:
                place = pinned[v]
                x[v] = x[v] if place is None else place
    nobody: list[list[int]] = [[]] * len(layers.rank)
    up_pull, down_pull = _pulls(layers, rows)
    for sweep in range(PLACE_SWEEPS + 2):
        downwards = sweep % 2 == 0
        both = sweep >= PLACE_SWEEPS
        upper, upper_pull = (layers.up, up_pull) if downwards or both else (nobody, up_pull)
        lower, lower_pull = (layers.down, down_pull) if not downwards or both else (nobody, down_pull)
        for r in range(len(rows)) if downwards else range(len(rows) - 1, -1, -1):
            row = rows[r]
            wanted: list[float] = []
            weights: list[float] = []
            for v in row:
                place = pinned[v]
                if place is not None:
                    wanted.append(place)
                    weights.append(PINNED_WEIGHT)
                    continue
                total = 0.0
                weight = 0.0
                for u, pull in zip(upper[v], upper_pull[v]):
                    total += pull * x[u]
                    weight += pull
                for u, pull in zip(lower[v], lower_pull[v]):
                    total += pull * x[u]
                    weight += pull
                wanted.append(total / weight if weight > 0.0 else x[v])
                weights.append(weight if weight > 0.0 else FREE_WEIGHT)
            _place_row(row, gaps[r], wanted, weights, x)


def _pulls(layers: _Layers, rows: Rows) -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """How hard each neighbour above and below pulls: the links of a chain and of a long edge hardest."""
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


def _gaps(layers: _Layers, row: Sequence[int]) -> list[float]:
    """The least distance of each centre from that of its left neighbour (0 for the first)."""
    gaps = [0.0]
    count = layers.count
    for i in range(1, len(row)):
        a, b = row[i - 1], row[i]
        gap = NODE_GAP if a < count and b < count else layers.dummy_gap
        gaps.append((layers.width[a] + layers.width[b]) / 2 + gap)
    return gaps


def _pack_rows(rows: Rows, gaps: Sequence[Sequence[float]], x: list[float]) -> None:
    """Every row side by side, all rows centred on one axis: where the sweeps begin."""
    for row, row_gaps in zip(rows, gaps, strict=True):
        place = 0.0
        for v, gap in zip(row, row_gaps, strict=True):
            place += gap
            x[v] = place
        for v in row:
            x[v] -= place / 2


def _place_row(
    row: Sequence[int], gaps: Sequence[float], wanted: Sequence[float], weights: Sequence[float], x: list[float]
) -> None:
    """The x of one row that are nearest to `wanted` (weighted squares) with all gaps kept."""
    offsets: list[float] = []
    blocks: list[tuple[float, float, float, int]] = []  # mean, weight, weighted sum, size
    offset = 0.0
    for want, weight, gap in zip(wanted, weights, gaps, strict=True):
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


def _place_y(layers: _Layers, rows: Rows, plane: _Plane) -> None:
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


def _frame_of(layers: _Layers, rows: Rows, plane: _Plane, places: Mapping[int, Point]) -> _Frame:
    vertices = [v for row in rows for v in row]
    shifts = sorted(
        places[layers.boxes[v].id][1] - plane.y[v]
        for v in vertices
        if v < layers.count and layers.boxes[v].id in places
    )
    return _Frame(
        left=min(plane.x[v] - layers.width[v] / 2 for v in vertices),
        right=max(plane.x[v] + layers.width[v] / 2 for v in vertices),
        top=0.0,
        bottom=max(plane.bottom[v] for v in vertices),
        shift=shifts[len(shifts) // 2] if shifts else None,
        vertices=vertices,
    )


def _move(frame: _Frame, plane: _Plane, dx: float, dy: float) -> None:
    for v in frame.vertices:
        plane.x[v] += dx
        plane.y[v] += dy
        plane.top[v] += dy
        plane.bottom[v] += dy
    frame.left += dx
    frame.right += dx
    frame.top += dy
    frame.bottom += dy


def _arrange(frames: Sequence[_Frame], plane: _Plane) -> None:
    """Parts that stood before stay, moved right only where they would overlap; new parts go on shelves below them."""
    placed: list[_Frame] = []
    for frame in sorted((frame for frame in frames if frame.shift is not None), key=lambda frame: frame.left):
        _move(frame, plane, 0.0, frame.shift or 0.0)
        for other in placed:
            if frame.top >= other.bottom or other.top >= frame.bottom or frame.left >= other.right:
                continue
            if other.left < frame.right:
                _move(frame, plane, other.right + COMPONENT_GAP - frame.left, 0.0)
        placed.append(frame)
        placed.sort(key=lambda frame: frame.left)
    shelf_left = min((frame.left for frame in placed), default=0.0)
    shelf_top = max((frame.bottom + COMPONENT_GAP for frame in placed), default=0.0)
    fresh = sorted((frame for frame in frames if frame.shift is None), key=lambda frame: -frame.bottom)
    widest = max((frame.right - frame.left for frame in fresh), default=0.0)
    area = _total([(frame.right - frame.left + COMPONENT_GAP) * (frame.bottom + COMPONENT_GAP) for frame in fresh])
    shelf_width = max(widest, 1.4 * math.sqrt(area))
    place = shelf_left
    shelf_height = 0.0
    for frame in fresh:
        width = frame.right - frame.left
        if place > shelf_left and place + width > shelf_left + shelf_width:
            place = shelf_left
            shelf_top += shelf_height + COMPONENT_GAP
            shelf_height = 0.0
        shelf_height = max(shelf_height, frame.bottom)
        _move(frame, plane, place - frame.left, shelf_top)
        place += width + COMPONENT_GAP


def _finish(layers: _Layers, plane: _Plane) -> Layout:
    boxes, chain, spans, x, y = layers.boxes, layers.chain, layers.spans, plane.x, plane.y
    everything = range(len(x))
    left = min((x[v] - layers.width[v] / 2 for v in everything), default=0.0)
    right = max((x[v] + layers.width[v] / 2 for v in everything), default=0.0)
    top = min(plane.top, default=0.0)
    bottom = max(plane.bottom, default=0.0)
    incoming: list[list[int]] = [[] for _ in boxes]
    entry: list[float] = []  # the x from which an edge comes to its user
    for i, (a, b) in enumerate(layers.pairs):
        entry.append(x[a] if layers.is_long(i) or spans[i] == 1 else x[chain[a] + spans[i] - 2])
        incoming[b].append(i)
    port = [0.0] * len(layers.pairs)
    for b, found in enumerate(incoming):
        found.sort(key=entry.__getitem__)
        for i, edge in enumerate(found):
            share = (i + 1) / (len(found) + 1) - 0.5
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
        routed.append(RoutedEdge(boxes[a].id, boxes[b].id, _straightened(points), layers.is_long(i)))
    positions = {box.id: (x[v], y[v]) for v, box in enumerate(boxes)}
    return Layout(positions, right - left, bottom - top, left, top, tuple(routed))


def _straightened(points: Sequence[Point]) -> tuple[Point, ...]:
    """Without repeated points and without those in the middle of a vertical line."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and kept[-2][0] == kept[-1][0] == point[0]:
            kept.pop()
        kept.append(point)
    return tuple(kept)

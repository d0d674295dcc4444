"""Passes "vector memory" and "lanes": a VECTOR axis becomes vector types.

First, where addresses can still be read as sums of products, accesses that walk memory along the vector axis become
vector loads and stores. Then the axis itself becomes the vector 0, 1, 2, … and everything computed from it is widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from tinyexplore.codegen.expand import copies, flatten_barrier, flatten_sink, moved_by, simplified
from tinyexplore.dtype import LANES_BIT, DType, dtypes
from tinyexplore.uop import AxisKind, Group, Ops, PatternMatcher, UOp, UPat, index_const, rule, var
from tinyexplore.uop.divmod import linear_form
from tinyexplore.uop.uop import axes_mask, ops_mask


def vector_axis(node: UOp) -> UOp | None:
    """The VECTOR axis that `node` depends on; there is at most one."""
    for axis in node.ranges:
        if axis.arg.kind is AxisKind.VECTOR:
            return axis
    return None


def stride_along(idx: UOp, axis: UOp) -> int | None:
    """By how much a step of `axis` moves `idx`; None where that is not the same everywhere."""
    terms, _, _ = linear_form(idx)
    if any([axis in term.ranges for term in terms if term is not axis]):
        return None
    return terms.get(axis, 0)


def first_lane(idx: UOp, axis: UOp) -> UOp:
    """An index in the first lane."""
    return simplified(idx.with_axes({axis: index_const(0)}, tell="one lane"))


def lanes_of(node: UOp, axis: UOp) -> list[UOp]:
    """`node` in each lane."""
    return copies(node, [axis], tell="one lane")


def places_of(place: UOp, axis: UOp, stride: int | None) -> list[UOp]:
    """The address in each lane."""
    if stride is None:
        return lanes_of(place, axis)
    pointer, idx, *valid = place.src
    indices = moved_by(first_lane(idx, axis), [step * stride for step in range(axis.size)])
    parts = [indices, *(lanes_of(part, axis) for part in valid)]
    return [UOp(Ops.INDEX, place.dtype, (pointer, *lane)) for lane in zip(*parts)]


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, name="place"), name="load", more_src=True))
def vector_load(load: UOp, place: UOp) -> UOp | None:
    """Neighbouring elements in neighbouring lanes are one vector load; others are loaded one by one.

    Of a masked one it is found out here whether it is ever read: what never is has no place among the loops.
    """
    if load.dtype.count > 1 or (axis := vector_axis(place)) is None:
        return None
    dtype, after = load.dtype.vec(axis.size), load.src[1:]
    stride = stride_along(place.src[1], axis)
    if stride == 1:
        pointer, idx, *valid = place.src
        start = UOp(Ops.INDEX, place.dtype, (pointer, first_lane(idx, axis), *valid))
        return UOp(Ops.LOAD, dtype, (start, *after))
    waits = [lanes_of(wait, axis) for wait in after]
    lanes = [UOp(Ops.LOAD, load.dtype, lane) for lane in zip(places_of(place, axis, stride), *waits)]
    return UOp(Ops.VECTORIZE, dtype, tuple(map(simplified, lanes) if len(place.src) > 2 else lanes))


@rule(UPat.of(Ops.STORE, UPat.of(Ops.INDEX, name="place"), var("value"), name="store", more_src=True))
def vector_store(store: UOp, place: UOp, value: UOp) -> UOp | None:
    """Neighbouring elements from neighbouring lanes are one vector store; others are scattered one by one."""
    axis = vector_axis(place)
    if axis is None or store.arg is not None:  # done already: only its condition has lanes
        return None
    stride = stride_along(place.src[1], axis)
    if stride == 1:
        pointer, idx, *valid = place.src
        start = UOp(Ops.INDEX, place.dtype, (pointer, first_lane(idx, axis), *valid))
        return store.replace(src=(start, value, *store.src[2:]), arg=axis.size)
    places = tuple(places_of(place, axis, stride))
    return store.replace(src=(UOp(Ops.VECTORIZE, dtypes.void, places), value, *store.src[2:]))


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def vector_reduce(reduce: UOp, value: UOp) -> UOp | None:
    """A reduction over the lanes: an accumulator in each lane, combined once at the end."""
    axis = next((axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.VECTOR), None)
    if axis is None:
        return None
    loops = tuple(loop for loop in reduce.src[1:] if loop is not axis)
    partial = UOp(Ops.REDUCE, reduce.dtype, (value, *loops), reduce.arg) if loops else value
    return UOp(Ops.HREDUCE, reduce.dtype, (partial, axis), reduce.arg)


@rule(
    UPat.of(
        (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN),
        UPat.of(Ops.HREDUCE, var("x"), var("lanes"), name="first"),
        UPat.of(Ops.HREDUCE, var("y"), var("lanes"), name="second"),
        name="node",
    )
)
def combine_vectors_first(node: UOp, first: UOp, second: UOp, x: UOp, y: UOp) -> UOp | None:
    """Two vectors whose lanes are to be combined alike: combined with each other, their lanes only once."""
    if not first.arg is second.arg is node.op:
        return None
    return first.replace(src=(x.alu(node.op, y), *first.src[1:]))


@rule(UPat.of(Ops.RANGE, name="axis"))
def lane_numbers(axis: UOp) -> UOp | None:
    """The vector axis itself is the vector of its steps."""
    if axis.arg.kind is not AxisKind.VECTOR:
        return None
    return UOp(Ops.VECTORIZE, dtypes.index.vec(axis.size), tuple(index_const(step) for step in range(axis.size)))


@rule(UPat.of(Group.ALU | {Ops.REDUCE, Ops.SCAN}, name="node"))
def widen(node: UOp) -> UOp | None:
    """What is computed from vectors is a vector; scalars among the sources are broadcast."""
    lanes = node.dtype.count
    if all([src.dtype.count == lanes for src in node.src]):
        return None
    values = node.src[: node.value_count]
    counts = [src.dtype.count for src in values]
    count = max(counts)
    if count == lanes == min(counts):
        return None
    assert isinstance(node.dtype, DType)
    wide = [src if src.dtype.count == count else src.broadcast(count) for src in values]
    return UOp(node.op, node.dtype.vec(count), (*wide, *node.src[len(values) :]), node.arg)


@rule(UPat.of(Ops.HREDUCE, var("value"), var("lanes"), name="node"))
def lanes_combined(node: UOp, value: UOp, lanes: UOp) -> UOp:
    """The lanes of a vector combined; a value that is the same in every lane is broadcast first."""
    return node.replace(src=(value.broadcast(lanes.dtype.count),))


@rule(UPat.of(Ops.SCAN, var("value"), name="scan", more_src=True))
def lanes_scanned(scan: UOp, value: UOp) -> UOp | None:
    """A running result along the lanes themselves has a vector of them in each step."""
    lanes = scan.src[-1].dtype.count
    if lanes == 1 or scan.dtype.count == lanes:
        return None
    assert isinstance(scan.dtype, DType)
    return scan.replace(dtype=scan.dtype.vec(lanes), src=(value.broadcast(lanes), *scan.src[1:]))


@rule(UPat.of(Ops.BARRIER, name="barrier", more_src=True))
def barrier_without_lanes(barrier: UOp) -> UOp | None:
    """What waits for stores waits for their loops; lanes are no loop."""
    kept = tuple(src for src in barrier.src if src.op in (Ops.STORE, Ops.SINK, Ops.RANGE))
    return None if len(kept) == len(barrier.src) else barrier.replace(src=kept)


@rule(UPat.of(Ops.STORE, var("place"), var("value"), name="store", more_src=True))
def store_lanes(store: UOp, place: UOp, value: UOp) -> UOp | None:
    """A store of as many lanes as its axis has; a value that is the same in every lane is broadcast."""
    if store.arg is None or place.op is not Ops.INDEX:
        return None
    return store.replace(src=(place, value.broadcast(store.arg), *store.src[2:]), arg=None)


@rule(UPat.of(Ops.STORE, UPat.of(Ops.VECTORIZE, name="places"), var("value"), name="store", more_src=True))
def scatter(store: UOp, places: UOp, value: UOp) -> UOp:
    """A store to scattered places is one store for each lane."""
    stores = []
    for lane, place in enumerate(places.src):
        element = value
        if value.dtype.count > 1:
            element = UOp(Ops.GEP, value.dtype.scalar, (value,), lane)
        stores.append(UOp(Ops.STORE, dtypes.void, (place, element, *store.src[2:])))
    return UOp.sink(*stores)


@rule(UPat.of(Ops.GEP, UPat.of(Ops.VECTORIZE, name="vector"), name="lane"))
def lane_of_vector(lane: UOp, vector: UOp) -> UOp:
    """A lane of a vector put together from scalars is that scalar."""
    return vector.src[lane.arg]


@rule(UPat.of(Ops.GEP, UPat.of(Ops.CONST, name="constant"), name="lane"))
def lane_of_constant(lane: UOp, constant: UOp) -> UOp:
    """Every lane of a vector constant is that constant."""
    return UOp.const(lane.dtype, constant.arg)


@rule(UPat.of(Ops.SINK, name="sink"))
def load_neighbours_together(sink: UOp) -> UOp | None:
    """Scalars near each other in memory that go into lanes are loaded as vectors, and taken from the lanes of those.

    This is what makes a transposition a matter of registers: 16 × 16 gathered scalars become 16 vector loads. Every
    second element (a pool's window) is found in two vectors, a row's end and the next row's start in two others.
    Nothing is loaded before the first or after the last element that is wanted.
    """
    gathered: dict[Place, dict[int, UOp]] = {}
    changes: dict[UOp, UOp] = {}
    wanted = 0
    known: dict[UOp, Sum] = {}
    for node in sink.find(Ops.VECTORIZE):
        if node.src[0] is node.src[-1]:
            continue
        places = [place_of(load, known) for load in node.src]
        if in_stretches(places):
            changes[node] = stretches_joined(node.src, [offset for _, offset in places])
            continue
        for place, load in zip(places, node.src):
            if place is not None:
                gathered.setdefault(place[0], {})[place[1]] = load
                wanted = max(wanted, node.dtype.count)
    for loads in gathered.values():
        changes.update(loaded_together(loads, wanted))
    return sink.substitute(changes, tell="loaded with its neighbours") if changes else None


Terms = frozenset[tuple[UOp, int]]
Sum = tuple[Terms, int]  # an index: nodes with their factors, and a constant
Place = tuple[UOp, Terms]  # a buffer, and what an address in it is beside a constant
MOST_STRETCHES = 6  # stretches of memory that a vector is put together from, each loaded by itself
WORTH_A_VECTOR = 4  # scalars that one vector load must replace


def sum_of_index(idx: UOp, known: dict[UOp, Sum]) -> Sum:
    """`idx` as a sum; `known` keeps what has been found, because many indices differ by a constant only."""
    if idx.op is Ops.ADD and idx.src[1].op is Ops.CONST:
        terms, constant = sum_of_index(idx.src[0], known)
        return terms, constant + idx.src[1].arg
    found = known.get(idx)
    if found is None:
        terms_of, constant, _ = linear_form(idx)
        found = known[idx] = frozenset(terms_of.items()), constant
    return found


def place_of(load: UOp, known: dict[UOp, Sum]) -> tuple[Place, int] | None:
    """Where a plain load of one element reads: the same Place for all that differ by a constant only."""
    if load.op is not Ops.LOAD or load.dtype.count > 1 or len(load.src[0].src) == 3:
        return None
    pointer, idx = load.src[0].src
    terms, offset = sum_of_index(idx, known)
    return (pointer, terms), offset


def in_stretches(places: list[tuple[Place, int] | None]) -> TypeGuard[list[tuple[Place, int]]]:
    """True where the lanes walk forwards through a few stretches of neighbours."""
    first = places[0]
    if first is None or any(place is None or place[0] != first[0] for place in places):
        return False
    steps = [after[1] - before[1] for before, after in zip(places, places[1:]) if before and after]
    return min(steps) >= 1 and sum(step > 1 for step in steps) < MOST_STRETCHES


def stretches_joined(loads: Sequence[UOp], offsets: list[int]) -> UOp:
    """The vector: each stretch out of one that has its elements in the very lanes that they go to."""
    starts = [offset - lane for lane, offset in enumerate(offsets)]
    joined = vector_at(loads[0], 0, len(loads))
    for start in sorted(set(starts))[1:]:
        mask = tuple(UOp.const(dtypes.bool, own >= start) for own in starts)
        later = vector_at(loads[0], start - starts[0], len(loads))
        joined = UOp(Ops.VECTORIZE, dtypes.bool.vec(len(loads)), mask).where(later, joined)
    return joined


def vector_at(load: UOp, distance: int, count: int) -> UOp:
    """`count` neighbours, the first of them `distance` behind what `load` reads."""
    pointer, idx = load.src[0].src
    assert isinstance(load.dtype, DType)
    place = pointer.index(idx + index_const(distance)) if distance else load.src[0]
    return UOp(Ops.LOAD, load.dtype.vec(count), (place, *load.src[1:]))


def loaded_together(loads: dict[int, UOp], count: int) -> dict[UOp, UOp]:
    """Lanes of vectors of `count` neighbours that stand for the loads at these places, as few vectors as will do."""
    changes: dict[UOp, UOp] = {}
    places = sorted(loads)
    if not places or places[-1] - places[0] < count - 1:
        return changes
    first = loads[places[0]]
    pointer, idx = first.src[0].src
    left = places
    while left:
        start = min(left[0], places[-1] - count + 1)
        inside = [place for place in left if place < start + count]
        left = left[len(inside) :]
        if len(inside) < WORTH_A_VECTOR:
            continue
        vector = vector_at(first, start - places[0], count)
        for place in inside:
            changes[loads[place]] = UOp(Ops.GEP, first.dtype, (vector,), place - start)
    return changes


@rule(UPat.of(Ops.SINK, name="sink"))
def store_neighbours_together(sink: UOp) -> UOp | None:
    """Lanes of several vectors that go to neighbours in memory are stored as vectors: interleaved in registers."""
    scattered: dict[Place, dict[int, UOp]] = {}
    known: dict[UOp, Sum] = {}
    for store in sink.src:
        if store.op is Ops.STORE and store.src[1].op is Ops.GEP and len(store.src[0].src) == 2:
            pointer, idx = store.src[0].src
            terms, offset = sum_of_index(idx, known)
            scattered.setdefault((pointer, terms), {})[offset] = store
    joined: dict[UOp, UOp | None] = {}
    for stores in scattered.values():
        for run in runs_of(stores):
            vectors = {store.src[1].src[0] for store in run}
            if len(run) >= WORTH_A_VECTOR and len(vectors) > 1:
                joined.update(dict.fromkeys(run))
                joined[run[0]] = stored_together(run)
    if not joined:
        return None
    kept = [joined.get(store, store) for store in sink.src]
    return UOp.sink(*(store for store in kept if store is not None))


def runs_of(stores: dict[int, UOp]) -> list[list[UOp]]:
    """Neighbours in memory in order, as many at a time as a vector of theirs has lanes, or a smaller power of two."""
    found: list[list[UOp]] = []
    places = sorted(stores)
    while places:
        size = min(stores[places[0]].src[1].src[0].dtype.count, neighbours_from(places))
        found.append([stores[place] for place in places[:size]])
        places = places[size:]
    return found


def neighbours_from(places: list[int]) -> int:
    """How many of these places, in order, are neighbours from the first on: the greatest power of two of them."""
    count = next((n for n, place in enumerate(places) if place != places[0] + n), len(places))
    return 1 << count.bit_length() - 1


def stored_together(run: list[UOp]) -> UOp:
    """One store of all that these stores have, the first of them first."""
    dtype = run[0].src[1].dtype
    assert isinstance(dtype, DType)
    value = UOp(Ops.VECTORIZE, dtype.vec(len(run)), tuple(store.src[1] for store in run))
    return UOp(Ops.STORE, dtypes.void, (run[0].src[0], value))


VECTOR_MEMORY = PatternMatcher(
    (vector_load, vector_store, vector_reduce, combine_vectors_first),
    within=axes_mask((AxisKind.VECTOR,)) | ops_mask((Ops.HREDUCE,)),
)
# where there are no lanes, and no store yet that is to have some, nothing is widened
WIDENED = LANES_BIT | ops_mask((Ops.SINK, Ops.STORE, Ops.BARRIER, Ops.HREDUCE, Ops.VECTORIZE, Ops.GEP))
LANES = PatternMatcher(
    (
        lane_numbers,
        widen,
        lanes_combined,
        lanes_scanned,
        barrier_without_lanes,
        store_lanes,
        scatter,
        lane_of_vector,
        lane_of_constant,
        flatten_sink,
        flatten_barrier,
    ),
    within=WIDENED,
)
NEIGHBOURS = PatternMatcher((load_neighbours_together, store_neighbours_together))

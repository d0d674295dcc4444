"""Passes "vectorize memory" and "vectorize values": turn a VECTOR axis into vector types.

First, while addresses can still be read as sums of products, accesses with stride 1 along the vector axis become vector
loads and stores. Then the axis itself becomes the vector 0, 1, 2, … and all values computed from it are widened.
"""

from __future__ import annotations

from tinyexplore.codegen.rewrites.simplify import simplified
from tinyexplore.codegen.rewrites.unroll import add_offsets, copies, flatten_barrier, flatten_sink
from tinyexplore.dtype import LANES_BIT, DType, dtypes
from tinyexplore.uop import AxisKind, OpGroups, Ops, PatternMatcher, UOp, UPat, index_const, rule, var
from tinyexplore.uop.divmod import linear_form
from tinyexplore.uop.uop import axes_mask, ops_mask


def vector_axis(node: UOp) -> UOp | None:
    """Returns the VECTOR axis that `node` depends on, or None. There is at most one."""
    for axis in node.ranges:
        if axis.arg.kind is AxisKind.VECTOR:
            return axis
    return None


def stride_along(idx: UOp, axis: UOp) -> int | None:
    """Returns the stride of `idx` along `axis`; None if it varies."""
    terms, _, _ = linear_form(idx)
    if any([axis in term.ranges for term in terms if term is not axis]):
        return None
    return terms.get(axis, 0)


def first_lane(idx: UOp, axis: UOp) -> UOp:
    """Returns the index expression evaluated at lane 0."""
    return simplified(idx.with_axes({axis: index_const(0)}, how="one lane"))


def lanes_of(node: UOp, axis: UOp) -> list[UOp]:
    """Returns `node` in each lane."""
    return copies(node, [axis], how="one lane")


def lane_addresses(index: UOp, axis: UOp, stride: int | None) -> list[UOp]:
    """Returns the address in each lane."""
    if stride is None:
        return lanes_of(index, axis)
    pointer, idx, *valid = index.src
    indices = add_offsets(first_lane(idx, axis), [step * stride for step in range(axis.size)])
    operand_lanes = [indices, *(lanes_of(operand, axis) for operand in valid)]
    return [UOp(Ops.INDEX, index.dtype, (pointer, *lane)) for lane in zip(*operand_lanes)]


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, name="index"), name="load", more_src=True))
def vector_load(load: UOp, index: UOp) -> UOp | None:
    """A load of neighboring elements in neighboring lanes is one vector load; other lanes are loaded one by one.

    A masked load is also tested: if its mask never holds, it needs no loop.
    """
    if load.dtype.count > 1 or (axis := vector_axis(index)) is None:
        return None
    dtype, order_sources = load.dtype.vec(axis.size), load.src[1:]
    stride = stride_along(index.src[1], axis)
    if stride == 1:
        pointer, idx, *valid = index.src
        start = UOp(Ops.INDEX, index.dtype, (pointer, first_lane(idx, axis), *valid))
        return UOp(Ops.LOAD, dtype, (start, *order_sources))
    waits = [lanes_of(wait, axis) for wait in order_sources]
    lanes = [UOp(Ops.LOAD, load.dtype, lane) for lane in zip(lane_addresses(index, axis, stride), *waits)]
    return UOp(Ops.VECTORIZE, dtype, tuple(map(simplified, lanes) if len(index.src) > 2 else lanes))


@rule(UPat.of(Ops.STORE, UPat.of(Ops.INDEX, name="index"), var("value"), name="store", more_src=True))
def vector_store(store: UOp, index: UOp, value: UOp) -> UOp | None:
    """A store of neighboring lanes to neighboring elements is one vector store; other lanes are stored one by one."""
    axis = vector_axis(index)
    if axis is None or store.arg is not None:  # already vectorized: only its condition has lanes
        return None
    stride = stride_along(index.src[1], axis)
    if stride == 1:
        pointer, idx, *valid = index.src
        start = UOp(Ops.INDEX, index.dtype, (pointer, first_lane(idx, axis), *valid))
        return store.replace(src=(start, value, *store.src[2:]), arg=axis.size)
    indices = tuple(lane_addresses(index, axis, stride))
    return store.replace(src=(UOp(Ops.VECTORIZE, dtypes.void, indices), value, *store.src[2:]))


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def vector_reduce(reduce: UOp, value: UOp) -> UOp | None:
    """A reduction over the lanes gets an accumulator in each lane; the lanes are combined once at the end."""
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
    """Two vectors whose lanes are combined by the same operation are first combined with each other, then their
    lanes once."""
    if not first.arg is second.arg is node.op:
        return None
    return first.replace(src=(x.alu(node.op, y), *first.src[1:]))


@rule(UPat.of(Ops.RANGE, name="axis"))
def lane_numbers(axis: UOp) -> UOp | None:
    """The vector axis itself is the vector of its indices."""
    if axis.arg.kind is not AxisKind.VECTOR:
        return None
    return UOp(Ops.VECTORIZE, dtypes.index.vec(axis.size), tuple(index_const(step) for step in range(axis.size)))


@rule(UPat.of(OpGroups.ALU | {Ops.REDUCE, Ops.SCAN}, name="node"))
def widen(node: UOp) -> UOp | None:
    """A value computed from vectors is a vector; scalars among its sources are broadcast."""
    lanes = node.dtype.count
    if all([src.dtype.count == lanes for src in node.src]):
        return None
    values = node.src[: node.value_count]
    counts = [src.dtype.count for src in values]
    count = max(counts)
    if count == lanes == min(counts):
        return None
    assert isinstance(node.dtype, DType)
    vectors = [src if src.dtype.count == count else src.broadcast(count) for src in values]
    return UOp(node.op, node.dtype.vec(count), (*vectors, *node.src[len(values) :]), node.arg)


@rule(UPat.of(Ops.HREDUCE, var("value"), var("lanes"), name="node"))
def lanes_combined(node: UOp, value: UOp, lanes: UOp) -> UOp:
    """The lanes of a vector are combined; a value that is the same in every lane is broadcast first."""
    return node.replace(src=(value.broadcast(lanes.dtype.count),))


@rule(UPat.of(Ops.SCAN, var("value"), name="scan", more_src=True))
def lanes_scanned(scan: UOp, value: UOp) -> UOp | None:
    """A running result along the lanes themselves is a vector in each step."""
    lanes = scan.src[-1].dtype.count
    if lanes == 1 or scan.dtype.count == lanes:
        return None
    assert isinstance(scan.dtype, DType)
    return scan.replace(dtype=scan.dtype.vec(lanes), src=(value.broadcast(lanes), *scan.src[1:]))


@rule(UPat.of(Ops.BARRIER, name="barrier", more_src=True))
def barrier_without_lanes(barrier: UOp) -> UOp | None:
    """A barrier for stores waits for their loops; lanes are no loop."""
    sources = tuple(src for src in barrier.src if src.op in (Ops.STORE, Ops.SINK, Ops.RANGE))
    return None if len(sources) == len(barrier.src) else barrier.replace(src=sources)


@rule(UPat.of(Ops.STORE, var("index"), var("value"), name="store", more_src=True))
def store_lanes(store: UOp, index: UOp, value: UOp) -> UOp | None:
    """A store has one lane for each step of its axis; a value that is the same in every lane is broadcast."""
    if store.arg is None or index.op is not Ops.INDEX:
        return None
    return store.replace(src=(index, value.broadcast(store.arg), *store.src[2:]), arg=None)


@rule(UPat.of(Ops.STORE, UPat.of(Ops.VECTORIZE, name="indices"), var("value"), name="store", more_src=True))
def scatter(store: UOp, indices: UOp, value: UOp) -> UOp:
    """A store to scattered addresses is one store for each lane."""
    stores = []
    for lane, index in enumerate(indices.src):
        element = value
        if value.dtype.count > 1:
            element = UOp(Ops.GEP, value.dtype.scalar, (value,), lane)
        stores.append(UOp(Ops.STORE, dtypes.void, (index, element, *store.src[2:])))
    return UOp.sink(*stores)


@rule(UPat.of(Ops.GEP, UPat.of(Ops.VECTORIZE, name="vector"), name="lane"))
def lane_of_vector(lane: UOp, vector: UOp) -> UOp:
    """A lane of a vector built from scalars is that scalar."""
    return vector.src[lane.arg]


@rule(UPat.of(Ops.GEP, UPat.of(Ops.CONST, name="constant"), name="lane"))
def lane_of_constant(lane: UOp, constant: UOp) -> UOp:
    """Every lane of a vector constant is that constant."""
    return UOp.const(lane.dtype, constant.arg)


VECTORIZE_MEMORY = PatternMatcher(
    (vector_load, vector_store, vector_reduce, combine_vectors_first),
    within=axes_mask((AxisKind.VECTOR,)) | ops_mask((Ops.HREDUCE,)),
)
# without lanes, and without a store that still needs lanes, nothing is widened
WIDENED = LANES_BIT | ops_mask((Ops.SINK, Ops.STORE, Ops.BARRIER, Ops.HREDUCE, Ops.VECTORIZE, Ops.GEP))
VECTORIZE_VALUES = PatternMatcher(
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

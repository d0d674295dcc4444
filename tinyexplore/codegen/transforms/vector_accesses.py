"""Pass "vector accesses": lets a work-item of a GPU load or store neighbors in memory as one vector.

Only the access is wide: lanes are extracted from it or inserted into it, and the computation stays scalar. A vector
starts at a multiple of its width, which must follow from the index alone: buffers and shared memory start at a multiple
of every width (`ProgramSpec.aligned`). Elements under one condition are one access under that condition. Unneeded
elements are not accessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import DType
from tinyexplore.kernel.analysis.work_groups import is_shared
from tinyexplore.kernel.transforms.substitute import record_derived
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.divmod import linear_terms

# (memory, condition and order; an index without its constant)
Walk = tuple[tuple[UOp, ...], frozenset[tuple[UOp, int]]]


def access_in_vectors(sink: UOp, lowering: Lowering) -> UOp:
    """Merges the loads, or stores, of aligned neighbors by a work-item into one vector access (a GPU only).

    a = x[4*i]; b = x[4*i + 1]; c = x[4*i + 2]; d = x[4*i + 3]  →  v = x[4*i : 4*i + 4]; a = v[0]; b = v[1]; …
    y[4*i] = a; y[4*i + 1] = b; y[4*i + 2] = c; y[4*i + 3] = d  →  y[4*i : 4*i + 4] = (a, b, c, d)
    """
    most_bytes = lowering.target.access_bytes
    if not most_bytes:
        return sink
    lanes, previous_sink = load_in_vectors(sink, most_bytes), None
    # repeated, because the barriers and the address of a vector may also contain loads
    while sink is not previous_sink:
        previous_sink, sink = sink, sink.substitute(lanes, how="loaded with its neighbors")
    filled: dict[UOp, UOp] = {}
    for barrier in sink.find(Ops.BARRIER):  # sources first
        filled[barrier] = store_in_vectors(barrier.substitute(filled), most_bytes)
    return store_in_vectors(sink.substitute(filled, how="after vectors are stored"), most_bytes)


def load_in_vectors(sink: UOp, most_bytes: int) -> dict[UOp, UOp]:
    """Returns for each load of aligned neighbors its lane of their vector."""
    changes: dict[UOp, UOp] = {}
    for loads in vectors_of(sink.find(Ops.LOAD), most_bytes):
        first_load = loads[0]
        vector = first_load.replace(dtype=element_of(first_load).vec(len(loads)))
        record_derived([(load, vector) for load in loads], "loaded with its neighbors")
        changes.update({load: UOp(Ops.GEP, load.dtype, (vector,), lane) for lane, load in enumerate(loads)})
    return changes


def store_in_vectors(node: UOp, most_bytes: int) -> UOp:
    """Returns a SINK or a BARRIER in which stores to aligned neighbors are stores of vectors."""
    joined: dict[UOp, UOp | None] = {}
    for stores in vectors_of([store for store in node.src if store.op is Ops.STORE], most_bytes):
        vector = vector_of([store.src[1] for store in stores])
        joined.update(dict.fromkeys(stores))
        joined[stores[0]] = vector_store = stores[0].replace(src=(stores[0].src[0], vector, *stores[0].src[2:]))
        record_derived([(store, vector_store) for store in stores], "stored with its neighbors")
    sources = [joined.get(src, src) for src in node.src]
    return node.replace(src=tuple(src for src in sources if src is not None)) if joined else node


def vector_of(lanes: list[UOp]) -> UOp:
    """Builds a vector of these scalars. Returns the existing vector if they are all its lanes, in order."""
    dtype, first_lane = lanes[0].dtype, lanes[0]
    assert isinstance(dtype, DType)
    if first_lane.op is Ops.GEP and first_lane.src[0].dtype.count == len(lanes):
        if all(lane is UOp(Ops.GEP, dtype, first_lane.src, number) for number, lane in enumerate(lanes)):
            return first_lane.src[0]
    return UOp(Ops.VECTORIZE, dtype.vec(len(lanes)), tuple(lanes))


def element_of(access: UOp) -> DType:
    """Returns the dtype that a LOAD or a STORE accesses."""
    dtype = access.dtype if access.op is Ops.LOAD else access.src[1].dtype
    assert isinstance(dtype, DType)
    return dtype


def vectors_of(accesses: list[UOp], most_bytes: int) -> Iterator[list[UOp]]:
    """Yields groups of aligned neighbors among these accesses, in order, of at most `most_bytes` bytes each."""
    for (_, index), by_address in walks_of(accesses).items():
        common_factor = gcd(*[factor for _, factor in index])  # every index is a multiple of this plus the constant
        width = most_bytes // element_of(next(iter(by_address.values()))).itemsize
        while width > 1:
            for start in list(by_address) if common_factor % width == 0 else ():
                numbers = range(start, start + width)
                if start % width == 0 and all(number in by_address for number in numbers):
                    yield [by_address.pop(number) for number in numbers]
            width //= 2


def walks_of(accesses: list[UOp]) -> dict[Walk, dict[int, UOp]]:
    """Returns accesses of one element, grouped by their address without its constant, then by the constant."""
    walks: dict[Walk, dict[int, UOp]] = {}
    for access in accesses:
        memory, idx, *condition = access.src[0].src
        order = access.src[1 if access.op is Ops.LOAD else 2 :]
        in_reach = memory.op is Ops.DEFINE_GLOBAL or is_shared(memory)
        if in_reach and element_of(access).count == 1 and all(src.op is Ops.BARRIER for src in order):
            terms, constant = linear_terms(idx)
            accessed = (memory, *condition, *order), frozenset(terms.items())
            walks.setdefault(accessed, {})[constant] = access
    return walks


__all__ = ["access_in_vectors"]

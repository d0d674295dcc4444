"""Vector accesses of a GPU program: finds the memory that they use, and rewrites the program without them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp, index_const

ALIGNMENT = 16  # alignment of memory accessed in vectors, in bytes; no vector is wider


def find_vector_memory(uops: Sequence[UOp]) -> frozenset[UOp]:
    """Returns the memory that a program loads or stores in vectors."""
    return frozenset(node.src[0].src[0] for node in uops if is_vector_access(node))


def is_vector_access(node: UOp) -> bool:
    """Whether `node` is a load or a store of several neighbors."""
    if node.op is Ops.STORE:
        node = node.src[1]
    elif node.op is not Ops.LOAD:
        return False
    return bool(node.dtype.count > 1)


def find_whole_vectors(uops: Sequence[UOp], preloaded: set[UOp]) -> set[UOp]:
    """Returns the nodes that read whole vectors, such as tensor cores.

    preloaded: accumulators whose first value is loaded before their loop.
    """
    users = [node for node in uops if node.op is not Ops.GEP and not is_vector_access(node)]
    users = [node for node in users if node not in preloaded and preloaded.isdisjoint(node.src)]
    return {src for node in users for src in node.src}


def split_accesses(uops: Sequence[UOp]) -> dict[UOp, UOp]:
    """Rewrites vector accesses as one access per lane, for unaligned memory and languages without vectors.

    Returns the nodes of the program in order, each with the node that it replaces.
    """
    # double buffering loads them ahead
    preloaded = {node for node in uops if node.op is Ops.DEFINE_ACC and is_vector_access(node.src[0])}
    vectors_left = find_whole_vectors(uops, preloaded)
    numbers = count(1 + max((node.arg for node in uops if node.op is Ops.DEFINE_ACC), default=-1))
    lanes: dict[UOp, list[UOp]] = {}  # the lanes of each vector
    replacements: dict[UOp, UOp] = {}
    replaced: dict[UOp, UOp] = {}
    for node in uops:
        if node.op is Ops.VECTORIZE and node not in vectors_left:
            lanes[node] = [replacements[src] for src in node.src]
        elif node.op is Ops.GEP and node.src[0] in lanes:
            replacements[node] = lanes[node.src[0]][node.arg]
        elif node in preloaded:
            lanes[node] = [UOp(Ops.DEFINE_ACC, lane.dtype, (lane,), next(numbers)) for lane in lanes[node.src[0]]]
            replaced.update(dict.fromkeys(lanes[node], node))
        elif node.op is Ops.ASSIGN and node.src[0] in preloaded:
            assignments = [
                UOp(Ops.ASSIGN, old.dtype, (old, new)) for old, new in zip(*map(lanes.__getitem__, node.src))
            ]
            replaced.update(dict.fromkeys(assignments, node))
        elif is_vector_access(node):
            lanes[node] = accesses_of(node, lanes, replacements, replaced)
            if node.op is Ops.STORE:
                replacements[node] = lanes[node][-1]  # the last store of the lanes precedes a barrier
            elif node in vectors_left:
                replacements[node] = UOp(Ops.VECTORIZE, node.dtype, tuple(lanes[node]))
                replaced[replacements[node]] = node
        else:
            replacements[node] = node.replace(src=tuple([replacements[src] for src in node.src]))
            replaced[replacements[node]] = node
    return replaced


def accesses_of(
    node: UOp, lanes: dict[UOp, list[UOp]], replacements: dict[UOp, UOp], replaced: dict[UOp, UOp]
) -> list[UOp]:
    """Returns an access for each lane of `node`, with all nodes that they need. Records in `replaced` what each
    replaces."""
    memory, idx, *valid = [replacements[src] for src in node.src[0].src]
    value = node if node.op is Ops.LOAD else node.src[1]
    order_sources = [replacements[src] for src in node.src[1 if node.op is Ops.LOAD else 2 :]]
    assert isinstance(value.dtype, DType)
    loads = []
    for lane in range(value.dtype.count):
        step = index_const(lane)
        index = memory.index(idx + step if lane else idx, *valid)
        needs = [step, index.src[1], index]
        if node.op is Ops.LOAD:
            loads.append(UOp(Ops.LOAD, value.dtype.scalar, (index, *order_sources)))
        else:
            lane_nodes = lanes.get(value)
            element = (
                UOp(Ops.GEP, value.dtype.scalar, (replacements[value],), lane)
                if lane_nodes is None
                else lane_nodes[lane]
            )
            needs.append(element)
            loads.append(UOp(Ops.STORE, dtypes.void, (index, element, *order_sources)))
        for new_node in (*needs, loads[-1]):
            replaced.setdefault(new_node, node)
    return loads


__all__ = ["ALIGNMENT", "find_vector_memory", "split_accesses"]

"""Accesses of vectors in a program for a GPU: in which memory, and the same program without them."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp, index_const

ALIGNMENT = 16  # bytes: of what is accessed in vectors, for none is wider


def in_vectors(uops: Sequence[UOp]) -> frozenset[UOp]:
    """The memory that a program loads vectors from, or stores some to."""
    return frozenset(node.src[0].src[0] for node in uops if is_vector_access(node))


def is_vector_access(node: UOp) -> bool:
    """True for a load or a store of several neighbours."""
    if node.op is Ops.STORE:
        node = node.src[1]
    elif node.op is not Ops.LOAD:
        return False
    return bool(node.dtype.count > 1)


def one_by_one(uops: Sequence[UOp]) -> list[UOp]:
    """The same program with an access for each lane: for memory that starts anywhere, and languages without vectors."""
    done: dict[UOp, UOp] = {}
    found: dict[UOp, None] = {}
    for node in uops:
        node_now = node.replace(src=tuple(done[src] for src in node.src))
        if is_vector_access(node):
            node_now = split_up(node_now, found)
        done[node] = node_now
        found[node_now] = None
    return list(found)


def split_up(access: UOp, found: dict[UOp, None]) -> UOp:
    """Accesses of single elements, put into `found`, of which the last is given back: what stands for `access`."""
    pointer, idx, *valid = access.src[0].src
    value = access if access.op is Ops.LOAD else access.src[1]
    assert isinstance(value.dtype, DType)
    lanes = []
    for lane in range(value.dtype.count):
        step = index_const(lane)
        position = idx + step if lane else idx
        place = pointer.index(position, *valid)
        found.update(dict.fromkeys((step, position, place)))
        if access.op is Ops.LOAD:
            lanes.append(UOp(Ops.LOAD, value.dtype.scalar, (place, *access.src[1:])))
        else:
            element = UOp(Ops.GEP, value.dtype.scalar, (value,), lane)
            found[element] = None
            lanes.append(UOp(Ops.STORE, dtypes.void, (place, element, *access.src[2:])))
        found[lanes[-1]] = None
    return UOp(Ops.VECTORIZE, value.dtype, tuple(lanes)) if access.op is Ops.LOAD else lanes[-1]


__all__ = ["ALIGNMENT", "in_vectors", "one_by_one"]

"""Strides: how far a step of each axis moves an address, in elements."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.divmod import linear_terms

# elements at a stride up to this are shuffled out of whole vectors, at about the cost of a load each
SHUFFLED_STRIDE = 4


@dataclass(frozen=True)
class IndexStrides:
    """The strides of one INDEX.

    node: the INDEX.
    is_store: whether a STORE uses it.
    strides: elements that one step of each axis moves the address by; None if the address is not linear in the axis.
    """

    node: UOp
    is_store: bool
    strides: dict[UOp, int | None]

    def stride(self, axis: UOp) -> int | None:
        return self.strides.get(axis, 0)


def strides_of(idx: UOp) -> dict[UOp, int | None]:
    """Returns the stride of `idx` along each axis; None if `idx` is not linear in the axis.

    A block's start that is limited so that the block ends with its axis counts as linear: min(16 * i, last) has stride
    16.
    """
    terms, _ = linear_terms(idx)
    strides: dict[UOp, int | None] = {}
    for term, factor in terms.items():
        if term.op is Ops.MIN and (axis := block_number(term)) is not None:
            term, factor = axis, factor * term.src[0].src[1].arg
        if term.op is Ops.RANGE:
            strides[term] = factor if term not in strides else None
        else:
            strides.update(dict.fromkeys(term.ranges))
    return strides


def vector_along(index: UOp, loop: UOp, most_bytes: int) -> int:
    """Returns how many steps of `loop` the INDEX `index` can access as one aligned vector of at most `most_bytes`
    bytes.

    1 if no two steps can share a vector. A mask must hold for all of these steps or for none.
    """
    pointer, idx, *valid = index.src
    terms, constant = linear_terms(idx)
    strays = any(loop in node.ranges for node in (*terms, *valid) if node is not loop)
    most_elements: int = most_bytes // pointer.dtype.base.itemsize
    if most_elements < 2 or terms.pop(loop, 0) != 1 or strays or not loop.is_static:
        return 1
    return gcd(most_elements, loop.size, constant, *terms.values())


def block_number(start: UOp) -> UOp | None:
    """Returns the axis that counts the blocks, if `start` is min(axis * size, last); else None."""
    offset = start.src[0]
    if offset.op is Ops.MUL and offset.src[0].op is Ops.RANGE and offset.src[1].op is Ops.CONST:
        return offset.src[0]
    return None

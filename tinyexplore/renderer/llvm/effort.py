"""Chooses LLVM's optimization effort for a program: whether its passes would help and are worth their time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tinyexplore.dtype import dtypes
from tinyexplore.renderer.program import Effort
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.uop import ops_mask

WORK = OpGroups.ALU | {Ops.LOAD, Ops.STORE}
LONG = 100  # UOps: shorter programs get all of LLVM's passes, which take little time for them
BRIEF = 256  # executed UOps, counting loop iterations: about 0.1 µs for any code
LANES = ops_mask((Ops.GEP,))
PUT_TOGETHER = frozenset({Ops.GEP, Ops.VECTORIZE})
MOST_SHUFFLED = 6  # most vectors from which shuffles take lanes; with more, lanes are taken one by one
MOST_PUT_TOGETHER = 5  # vectors with an operation for each vector that is built from lanes


def effort_for(uops: Sequence[UOp], vector_bytes: int) -> Effort:
    """Chooses how much LLVM optimizes a program. All efforts but LEAST allocate tile registers well."""
    if any([node.op is Ops.WMMA for node in uops]):
        return Effort.LIGHT
    if is_brief(uops):
        return Effort.LEAST
    return Effort.LIGHT if leaves_little(uops, vector_bytes) else Effort.FULL


def leaves_little(uops: Sequence[UOp], vector_bytes: int) -> bool:
    """True where all of LLVM's passes would take long and gain nothing: full vectors, or vectors in a long program.

    Of the 220 programs of the benchmark, those that this is true of ran as fast either way. Lanes that are put
    together from more vectors than `shuffled_from` allows become shuffles only by those passes: without them, such
    programs take up to twice the time. Where such vectors are few beside the others, as in a convolution over short
    rows, that is not to be seen, and the passes would take tens of milliseconds.
    """
    if is_in_full_vectors(uops, vector_bytes):
        return True
    if len(uops) <= LONG:
        return False
    vectors = len([node for node in uops if node.op in WORK and node.dtype.count > 1])
    return vectors > 0 and MOST_PUT_TOGETHER * sum(map(is_put_together, vectorized(uops))) <= vectors


def vectorized(uops: Sequence[UOp]) -> list[UOp]:
    """The VECTORIZEs of a program."""
    return [node for node in uops if node.op is Ops.VECTORIZE]


def is_brief(uops: Sequence[UOp]) -> bool:
    """True where one run does so little that good code takes longer to make than it will ever save: the second step
    of a sum, say, or arithmetic with single numbers."""
    done, times = 0, [1]
    for node in uops:
        if node.op is Ops.RANGE:
            if node.src[0].op is not Ops.CONST:
                return False
            times.append(times[-1] * node.src[0].arg)
        done += times[-1]
        if done > BRIEF:
            return False
        if node.op is Ops.ENDRANGE:
            times.pop()
    return True


def is_put_together(node: UOp) -> bool:
    """True for a vector whose lanes come from different places, but for a column of several vectors: a transposition
    is written as shuffles anyway."""
    if node.op is not Ops.VECTORIZE or len(set(node.src)) == 1 or all([lane.op is Ops.CONST for lane in node.src]):
        return False
    if shuffled_from(node) is not None:
        return False
    return not all([lane.op is Ops.GEP and lane.arg == node.src[0].arg for lane in node.src])


def shuffled_from(node: UOp) -> tuple[UOp, ...] | None:
    """The vectors of a type, six at most, from which this VECTORIZE takes its lanes: one shuffle makes it of one or
    two, and one more for each further, which must be as long as it is. None where that is not so, or where all lanes
    are the same."""
    if node.op is not Ops.VECTORIZE or any([lane.op is not Ops.GEP for lane in node.src]) or len(set(node.src)) == 1:
        return None
    vectors = tuple(dict.fromkeys([lane.src[0] for lane in node.src]))
    fits = len(vectors) <= 2 or (len(vectors) <= MOST_SHUFFLED and vectors[0].dtype.count == len(node.src))
    return vectors if fits and len({vector.dtype for vector in vectors}) == 1 else None


def lanes_of_alone(vectors: set[UOp], uops: Sequence[UOp]) -> set[UOp]:
    """The lanes that nothing but `vectors` is made of: where these are shuffles, they need no instruction."""
    lanes = {lane for node in vectors for lane in node.src}
    if lanes:
        lanes.difference_update(*[node.src for node in uops if node.mask & LANES and node not in vectors])
    return lanes


def is_in_full_vectors(uops: Sequence[UOp], vector_bytes: int) -> bool:
    """Whether the innermost loops do all their work, but for addresses, in vectors of at least half of
    `vector_bytes`. Only loads and stores may be under a condition, and only where nothing is summed up. A scalar may
    be loaded for all lanes, none may be put into or taken from single ones, but for shuffles.
    """
    bodies = innermost_bodies(uops)
    vectors = vectorized(uops)
    spread = {node.src[0] for node in vectors if node.src[0] is node.src[-1]}
    sums = any([node.op is Ops.DEFINE_ACC for node in uops])
    lanes = []
    for node in chain(*bodies):
        if not _is_full(node, spread, vector_bytes, sums=sums):
            if node.op not in PUT_TOGETHER:
                return False
            lanes.append(node)
    if not lanes:
        return bool(bodies)
    shuffled = {node for node in vectors if shuffled_from(node) is not None}
    shuffled |= lanes_of_alone(shuffled, uops)
    shuffled |= {lane for lane in spread if lane.op is Ops.GEP and lane.src[0].op is Ops.DEFINE_ACC}  # a scan's last
    return shuffled.issuperset(lanes)


def innermost_bodies(uops: Sequence[UOp]) -> list[list[UOp]]:
    """Returns the UOps in each innermost loop."""
    bodies: list[list[UOp]] = []
    body: list[UOp] | None = None
    for node in uops:
        if node.op is Ops.RANGE:
            body = []
        elif node.op is Ops.ENDRANGE:
            if body is not None:
                bodies.append(body)
            body = None
        elif body is not None:
            body.append(node)
    return bodies


def _is_full(node: UOp, spread: set[UOp], vector_bytes: int, *, sums: bool) -> bool:
    op, dtype = node.op, node.dtype
    if op is Ops.VECTORIZE:
        return node.src[0] is node.src[-1] or all([lane.op is Ops.CONST for lane in node.src])
    if op is Ops.GEP:
        return False
    if op not in WORK:
        return True
    if op is Ops.LOAD or op is Ops.STORE:
        if len(node.src[0].src) == 3 and sums:
            return False  # a mask may be the same all through a short loop of a sum, which LLVM then writes out
        if op is Ops.STORE:
            dtype = node.src[1].dtype
        elif node in spread:
            return True
    elif dtype is dtypes.index:
        return True
    if dtype.scalar is dtypes.bool:
        return True
    return bool(dtype.count * dtype.itemsize * 2 >= vector_bytes)


__all__ = [
    "effort_for",
    "innermost_bodies",
    "is_brief",
    "is_in_full_vectors",
    "lanes_of_alone",
    "leaves_little",
    "shuffled_from",
    "vectorized",
]

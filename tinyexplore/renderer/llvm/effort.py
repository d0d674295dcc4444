"""Chooses LLVM's optimization effort for a program: whether its passes would help and are worth their time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from tinyexplore.dtype import dtypes
from tinyexplore.renderer.program import Effort
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.uop import ops_mask

WORK = OpGroups.ALU | {Ops.LOAD, Ops.STORE}
LONG_PROGRAM = 100  # UOps: LLVM's passes take little time for a shorter program, so it gets all of them
BRIEF_STEPS = 256  # executed UOps, counting loop iterations: they take about 0.1 µs, whatever the code
LANES = ops_mask((Ops.GEP,))
LANE_ASSEMBLY_OPS = frozenset({Ops.GEP, Ops.VECTORIZE})
# most vectors whose lanes one shuffle chain combines; of more vectors, lanes are extracted one by one
MAX_SHUFFLED_VECTORS = 6
MIN_OPERATIONS_PER_ASSEMBLED_VECTOR = 5  # fewest vector operations per vector that is assembled from extracted lanes


def effort_for(uops: Sequence[UOp], vector_bytes: int) -> Effort:
    """Chooses how much LLVM optimizes a program. All efforts but LEAST allocate tile registers well."""
    if any([node.op is Ops.WMMA for node in uops]):
        return Effort.LIGHT
    if is_brief(uops):
        return Effort.LEAST
    return Effort.LIGHT if leaves_little(uops, vector_bytes) else Effort.FULL


def leaves_little(uops: Sequence[UOp], vector_bytes: int) -> bool:
    """Whether all of LLVM's passes would take long and gain nothing: full vectors, or vectors in a long program.

    Such programs among the 220 of the benchmark ran as fast without the passes. Lanes that come from more vectors than
    `find_shuffled_vectors` allows become shuffles only by these passes: without them, such programs take up to twice
    the time. If such vectors are few, as in a convolution over short rows, the difference cannot be measured, and the
    passes would take tens of milliseconds.
    """
    if is_in_full_vectors(uops, vector_bytes):
        return True
    if len(uops) <= LONG_PROGRAM:
        return False
    vectors = len([node for node in uops if node.op in WORK and node.dtype.count > 1])
    return (
        vectors > 0
        and MIN_OPERATIONS_PER_ASSEMBLED_VECTOR * sum(map(is_assembled_from_lanes, find_vectorizes(uops))) <= vectors
    )


def find_vectorizes(uops: Sequence[UOp]) -> list[UOp]:
    """Returns the VECTORIZEs of a program."""
    return [node for node in uops if node.op is Ops.VECTORIZE]


def is_brief(uops: Sequence[UOp]) -> bool:
    """Whether one run does so little that good code takes longer to compile than it will ever save.

    Examples: the second step of a sum, arithmetic on single numbers.
    """
    operations, times = 0, [1]
    for node in uops:
        if node.op is Ops.RANGE:
            if node.src[0].op is not Ops.CONST:
                return False
            times.append(times[-1] * node.src[0].arg)
        operations += times[-1]
        if operations > BRIEF_STEPS:
            return False
        if node.op is Ops.ENDRANGE:
            times.pop()
    return True


def is_assembled_from_lanes(node: UOp) -> bool:
    """Whether `node` is a vector assembled from lanes of several sources. False for a column of several vectors.

    Such a column belongs to a transposition, which is written as shuffles anyway.
    """
    if node.op is not Ops.VECTORIZE or len(set(node.src)) == 1 or all([lane.op is Ops.CONST for lane in node.src]):
        return False
    if find_shuffled_vectors(node) is not None:
        return False
    return not all([lane.op is Ops.GEP and lane.arg == node.src[0].arg for lane in node.src])


def find_shuffled_vectors(node: UOp) -> tuple[UOp, ...] | None:
    """Returns the vectors, of one type and at most six, from which this VECTORIZE takes its lanes by shuffles; else
    None.

    One shuffle combines one or two vectors. Each further vector takes another shuffle, and must be as long as the
    result. None if all lanes are equal.
    """
    if node.op is not Ops.VECTORIZE or any([lane.op is not Ops.GEP for lane in node.src]) or len(set(node.src)) == 1:
        return None
    vectors = tuple(dict.fromkeys([lane.src[0] for lane in node.src]))
    fits = len(vectors) <= 2 or (len(vectors) <= MAX_SHUFFLED_VECTORS and vectors[0].dtype.count == len(node.src))
    return vectors if fits and len({vector.dtype for vector in vectors}) == 1 else None


def lanes_of_alone(vectors: set[UOp], uops: Sequence[UOp]) -> set[UOp]:
    """Returns the lanes that only `vectors` use. If these vectors are shuffles, such lanes need no instruction."""
    lanes = {lane for node in vectors for lane in node.src}
    if lanes:
        lanes.difference_update(*[node.src for node in uops if node.mask & LANES and node not in vectors])
    return lanes


def is_in_full_vectors(uops: Sequence[UOp], vector_bytes: int) -> bool:
    """Whether the innermost loops do all their work, except for addresses, in vectors of at least half of
    `vector_bytes`.

    Only loads and stores may be conditional, and only if there is no sum. A scalar may be loaded for all lanes. Single
    lanes must not be inserted or extracted, except by shuffles.
    """
    bodies = innermost_bodies(uops)
    vectors = find_vectorizes(uops)
    spread = {node.src[0] for node in vectors if node.src[0] is node.src[-1]}
    sums = any([node.op is Ops.DEFINE_ACC for node in uops])
    lanes = []
    for node in chain(*bodies):
        if not _is_full(node, spread, vector_bytes, sums=sums):
            if node.op not in LANE_ASSEMBLY_OPS:
                return False
            lanes.append(node)
    if not lanes:
        return bool(bodies)
    shuffled = {node for node in vectors if find_shuffled_vectors(node) is not None}
    shuffled |= lanes_of_alone(shuffled, uops)
    # the last lane of a scan
    shuffled |= {lane for lane in spread if lane.op is Ops.GEP and lane.src[0].op is Ops.DEFINE_ACC}
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
    """Whether `node` fills at least half of a vector, or is not work that LLVM's vectorizer could widen."""
    op, dtype = node.op, node.dtype
    if op is Ops.VECTORIZE:
        return node.src[0] is node.src[-1] or all([lane.op is Ops.CONST for lane in node.src])
    if op is Ops.GEP:
        return False
    if op not in WORK:
        return True
    if op is Ops.LOAD or op is Ops.STORE:
        if len(node.src[0].src) == 3 and sums:
            return False  # a mask may be constant in a short loop of a sum, which LLVM then unrolls
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
    "find_shuffled_vectors",
    "find_vectorizes",
]

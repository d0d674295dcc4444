"""Elementwise steps: a few vectors at a time, so that loads and arithmetic of several overlap."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.access import is_outer_of, outer_row_axis
from tinyexplore.kernel.analysis.strides import Access
from tinyexplore.kernel.decisions.decision import Choice, Choices, exceeds, reaches, weigh
from tinyexplore.kernel.decisions.kept_rows import find_pipe
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opts import Opt, OptOps
from tinyexplore.uop import AxisKind, Ops, UOp

FEWEST_STEPS = 1 << 12  # of fewer the call takes longer
MOST_ARITHMETIC = 40  # operations of a step: of more, units are busy already
MIRRORED_AXES = 4  # 16 places a step, a vector register each


def pair_mirrored_places(kernel: Kernel) -> Choices:
    """UPCAST for axes of two steps of which both compute from the same two elements, as in a sorting network: each is
    loaded once then."""
    if not kernel.reduces:
        loads = [access for access in kernel.accesses if not access.is_store]
        pairs = mirrored_pairs(kernel)
        if pairs:
            once = len({access.node.src[0] for access in loads})
            told = {"each pair at once": float(once), "one place at a time": float(len(loads))}
            weigh("elements loaded for each result", told, "each pair at once", least=True)
        for axis in pairs:
            reason = "both places of this axis are computed from the same two elements"
            yield Choice(Opt(OptOps.UPCAST, axis.arg.id, axis.size), reason)


def mirrored_pairs(kernel: Kernel) -> tuple[UOp, ...]:
    """Output axes of size 2 that some buffer is read along both ways, as in a sorting network; few enough to unroll."""
    by_buffer: dict[UOp, list[Access]] = {}
    for access in kernel.accesses:
        if not access.is_store:
            by_buffer.setdefault(access.node.src[0], []).append(access)

    def both_ways(axis: UOp) -> bool:
        for group in by_buffer.values():
            strides = {access.stride(axis) for access in group}
            if any(stride and -stride in strides for stride in strides):
                return True
        return False

    pairs = [
        axis for axis in kernel.output_axes if axis.size == 2 and axis.is_static and axis.arg.kind is AxisKind.GLOBAL
    ]
    found = tuple(axis for axis in pairs if both_ways(axis))
    return () if found and exceeds("axes of mirrored pairs", len(found), MIRRORED_AXES) else found


def take_several_vectors(kernel: Kernel) -> Choices:
    """UPCAST by four of an elementwise loop over vectors, so that loads and arithmetic of several overlap."""
    vectors = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    if kernel.reduces or not vectors or not reaches("steps", kernel.steps, FEWEST_STEPS):
        return
    found = kernel.accesses
    outer = next((axis for axis in reversed(kernel.output_axes) if is_outer_of(axis, vectors[0], found)), None)
    yield from four_vectors(outer, kernel.nodes)


def take_several_vectors_of_rows(kernel: Kernel) -> Choices:
    """The same for rows that are walked again after their reductions (layernorm).

    Rows that are piped are stored in the steps of a longer computation.
    """
    if find_pipe(kernel) is not None:
        return
    found = kernel.accesses
    ends = [axis for axis in kernel.output_axes if all(axis not in reduce.ranges for reduce in kernel.reduces)]
    if not kernel.reduces or not any(outer_row_axis(kernel, axis) for axis in kernel.output_axes):
        return
    lanes = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    outer = next((axis for axis in ends if any(is_outer_of(axis, lane, found) for lane in lanes)), None)
    yield from four_vectors(outer, [node for node in kernel.nodes if outer in node.ranges])


def four_vectors(loop: UOp | None, nodes: Sequence[UOp]) -> Choices:
    """Four steps at a time of a `loop` over vectors, where its `nodes` are few enough."""
    arithmetic = sum(node.op is not Ops.INDEX and not is_of_places(node) for node in nodes)
    few = loop is not None and not exceeds("operations of a step", arithmetic, MOST_ARITHMETIC)
    if loop is not None and few and loop.size % 4 == 0 and loop.is_static:
        yield Choice(Opt(OptOps.UPCAST, loop.arg.id, 4), "four vectors a step keep the load and arithmetic units busy")


def is_of_places(node: UOp) -> bool:
    """True for arithmetic with places, and for asking where one lies: steps side by side share most of it."""
    return node.op is Ops.CONST or node.dtype is dtypes.index or any(src.dtype is dtypes.index for src in node.src)

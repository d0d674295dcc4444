"""Proposes the axis along which a kernel, or each of its reductions, has vector lanes."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence

from tinyexplore.kernel.analysis.access import is_inside_reduction, lanes_for, outer_row_axis
from tinyexplore.kernel.analysis.strides import SHUFFLED_STRIDE, IndexStrides
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches, record_scores
from tinyexplore.kernel.heuristics.row_buffers import packed_operands
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, Ops, UOp

SINGLE_ACCESS_WEIGHT, MAX_SCORE_OF_SINGLE_ACCESSES = (
    0.25,
    0.5,
)  # weight of an access that happens once per result, and the greatest weight of all of them
SCORE_LABEL = "vectorization score by axis (+ contiguous accesses, − strided and scattered accesses)"
LARGE_KERNEL_STEPS = 1 << 16  # steps of a kernel from which every loop gets lanes
SHUFFLED_LANES = 4  # fewer lanes than this do not pay for shuffles


def choose_lanes(kernel: Kernel) -> Proposals:
    """Proposes VECTOR along the axis whose memory accesses are contiguous: an output axis, or an axis of each
    reduction.

    Loops that fill row buffers get lanes too, because row buffers are contiguous. If results are interleaved, UPCAST of
    their short axes lets registers interleave them.
    """
    if kernel.lanes == 1:
        return
    accesses = kernel.accesses
    kernel = yield from lanes_of_results(kernel, accesses)
    for row in reversed(kernel.axes):
        if row.arg.kind is AxisKind.ROW and (lanes := lanes_for(kernel, row)) > 1:
            kernel = yield Proposal(
                Opt(OptOps.VECTOR, row.arg.id, lanes),
                "the row buffer is contiguous along this axis, so one instruction loads a vector",
            )
    for reduce in kernel.reduces:
        if any(axis.arg.kind is AxisKind.VECTOR for axis in reduce.src[0].ranges):
            continue
        loops = [axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.REDUCE]
        reduction_indices = set(reduce.src[0].find(Ops.INDEX))
        reduction_accesses = [access for access in accesses if access.node in reduction_indices]
        scores = {axis: vector_score(axis, reduction_accesses) for axis in loops}
        axis = max(loops, key=lambda axis: scores[axis], default=None)
        if axis is not None:
            record_scores(SCORE_LABEL, {loop.arg.name: score for loop, score in scores.items()}, axis.arg.name)
        if axis is None or axis not in kernel.axes:
            continue
        reason = "the reduction reads contiguous memory along this axis, so one instruction loads a vector"
        if scores[axis] <= 0:
            moves = axis in kernel.gathered_along or any(access.stride(axis) != 0 for access in reduction_accesses)
            if moves or not exceeds(
                "iterations of a reduction with loop-invariant reads", kernel.steps, LARGE_KERNEL_STEPS
            ):
                continue
            reason = "one vector computes several iterations, because all of them read the same memory"
        if (lanes := lanes_for(kernel, axis)) > 1:
            kernel = yield Proposal(Opt(OptOps.VECTOR, axis.arg.id, lanes), reason)


def lanes_of_results(kernel: Kernel, accesses: Sequence[IndexStrides]) -> Generator[Proposal, Kernel, Kernel]:
    """Proposes VECTOR along an output axis with at least half of the lanes that a reduction could have. Returns the
    new kernel."""
    inner = [axis for axis in kernel.output_axes if not outer_row_axis(kernel, axis)]
    inner = [axis for axis in inner if axis not in kernel.gathered_along]
    packed = packed_operands(kernel)
    scores = {axis: vector_score(axis, accesses, packed) for axis in inner}
    best = max(inner, key=lambda axis: (scores[axis], axis.arg.id), default=None)
    if best is None:
        return kernel
    record_scores(SCORE_LABEL, {axis.arg.name: score for axis, score in scores.items()}, best.arg.name)
    suits = scores[best] > 0 or (scores[best] == 0 and kernel.steps > LARGE_KERNEL_STEPS)
    lanes = lanes_for(kernel, best) if suits else 1
    are_few_lanes = lanes <= SHUFFLED_STRIDE and lanes < kernel.lanes
    is_strided_store = any(access.is_store and (access.stride(best) or 0) > 1 for access in accesses)
    interleaved = find_interleaved_axis(inner, accesses) if are_few_lanes or is_strided_store else None
    if interleaved is not None and (are_few_lanes or interleaved[0] is best):
        walked, short_axes = interleaved
        reason = "registers interleave neighboring results, so one instruction stores a vector"
        kernel = yield Proposal(Opt(OptOps.VECTOR, walked.arg.id, lanes_for(kernel, walked)), reason)
        for short_axis in short_axes:
            kernel = yield Proposal(Opt(OptOps.UPCAST, short_axis.arg.id, short_axis.size), reason)
    elif lanes > 1 and reaches(
        "2 × vector lanes along this axis (bound: lanes along the reduction)",
        lanes * 2,
        reduced_lanes(kernel, accesses),
    ):
        reason = "memory is contiguous along this axis, so one instruction loads or stores a vector"
        kernel = yield Proposal(Opt(OptOps.VECTOR, best.arg.id, lanes), reason)
    return kernel


def vector_score(axis: UOp, accesses: Sequence[IndexStrides], packed: Collection[UOp] = ()) -> float:
    """Scores `axis` as the axis of lanes: contiguous accesses add to the score, strided or scattered ones subtract.

    Operands in `packed` are copied into panels with contiguous lanes, so their strides do not matter. Without a
    reduction, a store costs more than a load. Beside the loads inside a reduction, accesses that happen once per result
    hardly count.
    """
    score = score_once = 0.0
    reduces = any(is_inside_reduction(access) for access in accesses)
    for access in accesses:
        if axis not in access.node.ranges:
            continue
        weight = 2.0 if access.is_store else 1.0
        stride = access.stride(axis)
        if stride == 1 or access.node in packed:
            suits = weight
        elif stride is None or access.is_store or not 1 < stride <= SHUFFLED_STRIDE or axis.size < SHUFFLED_LANES:
            suits = -weight
        else:
            suits = 0.0
        if reduces and not is_inside_reduction(access):
            score_once += suits
        else:
            score += suits
    return score + max(
        -MAX_SCORE_OF_SINGLE_ACCESSES, min(MAX_SCORE_OF_SINGLE_ACCESSES, SINGLE_ACCESS_WEIGHT * score_once)
    )


def find_interleaved_axis(inner: list[UOp], accesses: Sequence[IndexStrides]) -> tuple[UOp, list[UOp]] | None:
    """Returns the axis whose results are interleaved with those of short inner axes, and these axes.

    None if loads along the axis have larger strides.
    """
    stores = [access for access in accesses if access.is_store]
    short_axes: list[UOp] = []
    walked = 1
    while walked <= SHUFFLED_STRIDE:
        axis = next((axis for axis in inner if all(store.stride(axis) == walked for store in stores)), None)
        if axis is None or axis in short_axes or not axis.is_static:
            return None
        if axis.size > SHUFFLED_STRIDE:
            loads = [access for access in accesses if not access.is_store and axis in access.node.ranges]
            strides = [load.stride(axis) for load in loads]
            are_interleaved = all(stride is not None and 0 <= stride <= SHUFFLED_STRIDE for stride in strides)
            return (axis, short_axes) if short_axes and are_interleaved else None
        short_axes.append(axis)
        walked *= axis.size
    return None


def reduced_lanes(kernel: Kernel, accesses: Sequence[IndexStrides]) -> int:
    """Returns the most lanes that a reduction could have along one of its own axes."""
    most_lanes = 1
    for reduce in kernel.reduces:
        reduction_indices = set(reduce.src[0].find(Ops.INDEX))
        reduction_accesses = [access for access in accesses if access.node in reduction_indices]
        for axis in reduce.src[1:]:
            if vector_score(axis, reduction_accesses) > 0:
                most_lanes = max(most_lanes, lanes_for(kernel, axis))
    return most_lanes

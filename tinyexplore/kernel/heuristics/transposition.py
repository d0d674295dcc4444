"""Proposes a square tile and a loop order for kernels such as a transposition.

Their loads and stores are contiguous along different axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.kernel.analysis.access import best_block, is_outer_of
from tinyexplore.kernel.analysis.memory import comes_from_memory, step_bytes
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.heuristics.elementwise_vectors import MIN_STEPS
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, reaches
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.divmod import linear_terms

MIN_STEPS_PER_THREAD = 2  # fewest steps of a loop that may become the outermost one
# neighboring lines of a row of the result; distance of the result's rows, in lines; steps to prefetch ahead
PAIR, STAGGER_LINES, STEPS_AHEAD = 2, 8, 4
MAX_ROWS = 64  # most rows read at the same time


def tile_transposition(kernel: Kernel) -> Proposals:
    """Proposes UPCAST for a square tile if loads and stores are contiguous along different axes.

    Every cache line is then used completely. If the operand is in memory rather than in a cache, SWAP, LOCAL and
    PREFETCH follow.
    """
    vectors = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    if kernel.reduces or kernel.result_copies or not vectors or not reaches("loop iterations", kernel.steps, MIN_STEPS):
        return
    crossing = crossing_axis(kernel, vectors[0], kernel.accesses)
    if crossing is not None:
        yield from propose_square_tile(vectors[0], crossing)


def crossing_axis(kernel: Kernel, lanes: UOp, accesses: Sequence[IndexStrides]) -> UOp | None:
    """Returns the output axis along which a load is contiguous while it is strided along the lanes, as in a
    transposition."""
    for axis in kernel.output_axes:
        if axis.arg.kind is not AxisKind.GLOBAL or axis.size < 2 or not axis.is_static:
            continue
        if any(crosses(access, axis, lanes) for access in accesses):
            return axis
    return None


def crosses(access: IndexStrides, crossing: UOp, lanes: UOp) -> bool:
    """Whether `access` is a load that is contiguous along `crossing` and strided along the lanes."""
    return not access.is_store and access.stride(crossing) == 1 and access.stride(lanes) not in (0, 1)


def tiles_of_a_piece(kernel: Kernel, row_distance: int, row_bytes: int, amount: int) -> int:
    """Returns how many neighboring tiles are stored together. row_distance: bytes from one stored row to the next."""
    if row_distance % kernel.target.page_bytes:
        return PAIR
    # rows share few DRAM banks, so pieces are as long as a cache allows
    rows_that_fit = kernel.target.l2_bytes // row_bytes
    return max(PAIR, min(MAX_ROWS, rows_that_fit) // amount)


def propose_square_tile(lanes: UOp, crossing: UOp) -> Proposals:
    """Proposes a square tile: UPCAST by the number of lanes.

    If stores bypass the caches, also proposes SWAP, so that the inner loop follows the loads.
    """
    amount = best_block(crossing.size, lanes.size, limit=lanes.size)
    reason = "loads are contiguous along this axis, so a square tile uses every cache line completely"
    kernel = yield Proposal(Opt(OptOps.UPCAST, crossing.arg.id, amount), reason)
    accesses = kernel.accesses
    rows = next((axis for axis in kernel.output_axes if is_outer_of(axis, lanes, accesses)), None)
    loop = next((axis for axis in kernel.output_axes if axis.arg.id == crossing.arg.id), None)
    if (
        rows is None
        or loop is None
        or loop.arg.id > rows.arg.id
        or rows.size < MIN_STEPS_PER_THREAD * kernel.target.threads
    ):
        return
    loads = [load for load in accesses if not load.is_store and load.stride(loop) == amount]
    streams = all(is_streaming_store(kernel.target, store, lanes) for store in accesses if store.is_store)
    if (
        amount != lanes.size
        or not streams
        or not any(thrashes_caches(kernel.target, load, rows, lanes) for load in loads)
    ):
        return
    reason = "hardware prefetchers follow the loads in this loop order, and stores bypass the caches"
    kernel = yield Proposal(Opt(OptOps.SWAP, loop.arg.id, rows.arg.id), reason)
    row_distance = min(step_bytes(store, loop) // amount for store in accesses if store.is_store)
    if row_distance < STAGGER_LINES * kernel.target.line_bytes:
        return
    for count in (tiles_of_a_piece(kernel, row_distance, max(step_bytes(load, lanes) for load in loads), amount), PAIR):
        has_steps = rows.size >= count * MIN_STEPS_PER_THREAD * kernel.target.threads
        if has_steps and best_block(rows.size, count, limit=count) == count:
            yield from neighboring_lines(count, rows=crossing.arg.id, loop=rows.arg.id)
            return


def neighboring_lines(count: int, *, rows: int, loop: int) -> Proposals:
    """Proposes LOCAL, so that tiles store neighboring lines of each row of the result, and PREFETCH.

    Memory takes two neighboring lines in 0.6 of the time of two lines of different rows. More rows are then read at the
    same time, so their lines must be prefetched.
    """
    reason = f"memory stores {count} neighboring cache lines of a row as fast as whole rows"
    yield Proposal(Opt(OptOps.LOCAL, rows, count), reason)
    reason = "hardware prefetchers cannot follow this number of rows at once"
    yield Proposal(Opt(OptOps.PREFETCH, loop, STEPS_AHEAD), reason)


def is_streaming_store(target: Target, store: IndexStrides, lanes: UOp) -> bool:
    """Whether a store writes more than a cache holds, in whole cache lines, each once
    (`renderer/llvm/streaming.py`)."""
    pointer, idx = store.node.src[:2]
    itemsize, line = int(pointer.dtype.base.itemsize), target.line_bytes
    terms, offset = linear_terms(idx)
    in_lines = [factor * itemsize % line == 0 for axis, factor in terms.items() if axis is not lanes]
    is_plain = len(store.node.src) == 2 and all(axis.op is Ops.RANGE for axis in terms)
    fills_lines = lanes.size * itemsize % line == 0 and offset * itemsize % line == 0 and all(in_lines)
    return is_plain and fills_lines and comes_from_memory(store, target)


def thrashes_caches(target: Target, load: IndexStrides, rows: UOp, lanes: UOp) -> bool:
    """Whether reads along the lanes reach another page in every step, or more cache lines than half of L2 holds.

    Lines that are only partly read are evicted before the next pass. Steps of whole pages use few sets of a cache.
    """
    step = step_bytes(load, lanes)
    walked = rows.size * lanes.size * target.line_bytes
    return comes_from_memory(load, target) and (step > target.page_bytes or walked > target.l2_bytes // 2)


__all__ = ["tile_transposition"]

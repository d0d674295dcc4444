"""Proposes to read several rows, or pieces of one row, at the same time for sums and extremes of rows in memory.

Measured on a Zen 4 (`docs/performance.md`): with a prefetch for each row, this takes half to three quarters of the time
of reading one row after the other. The presumed reason is that more lines are in flight. Lines prefetched into L2 do
not count among the few misses that a core's L1 cache can have outstanding. Hardware prefetchers follow each row alone,
within a page. On a Zen 5, fewer rows without prefetches take less time: the target has both numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.memory import buffer_bytes, comes_from_memory, is_read_once, step_bytes
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches
from tinyexplore.kernel.heuristics.register_tile import find_reduced
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, OpGroups, UOp

VECTORS_IN_BLOCK = 256  # vectors that are summed separately, in a row of more than two such blocks
MAX_ELEMENT_OPERATIONS = 6  # most operations per element: more take longer than memory does
BLOCKS = 4  # blocks of rows per core


def stream_rows(kernel: Kernel) -> Proposals:
    """Proposes UPCAST (or UNROLL), GROUP and PREFETCH for sums and extremes of rows that are read from memory in order.

    Reads several rows, or pieces of one row, at the same time, each with its own prefetch if the target gains by it.
    """
    reduced = find_reduced(kernel)
    rows = kernel.output_axes[-1] if kernel.output_axes else None
    if reduced is None or rows is None or rows.arg.kind is not AxisKind.GLOBAL or not rows.is_static:
        return
    if len(kernel.reduces) != 1:
        return
    (reduce,) = kernel.reduces
    loops = [axis for axis in reduce.src[1:] if axis is not reduced.lanes]
    streams = [load for load in reduced.loads if rows in load.node.ranges]
    if not 1 <= len(loops) <= 2 or len(loops) == len(reduce.src[1:]) or not 1 <= len(streams) <= 2:
        return
    *outer_loops, row_loop = sorted(loops, key=lambda loop: loop.arg.id)
    shared = [load for load in reduced.loads if load not in streams]
    if any(buffer_bytes(load.node.src[0]) > kernel.target.l2_bytes // 8 for load in shared):
        return
    if not all(comes_in_order(kernel, load, rows, row_loop, reduced.lanes) for load in streams):
        return
    if exceeds("operations per element", arithmetic_of(reduce), MAX_ELEMENT_OPERATIONS):
        return
    count = kernel.target.streams // len(streams)  # rows at the same time; for two operands, half as many of each
    if outer_loops:
        yield from propose_parallel_pieces(kernel, outer_loops[0], row_loop, streams, count)
    else:
        yield from propose_parallel_rows(kernel, rows, row_loop, streams, count)


def propose_parallel_rows(
    kernel: Kernel, rows: UOp, row_loop: UOp, streams: Sequence[IndexStrides], count: int
) -> Proposals:
    """Proposes to read `count` rows at the same time, and to prefetch the next rows. Reduces long rows by blocks."""
    if not reaches("rows", rows.size, BLOCKS * kernel.target.threads * count):
        return
    reason = f"{count} rows per iteration keep more memory requests in flight than one row"
    kernel = yield Proposal(Opt(OptOps.UPCAST, rows.arg.id, count), reason)
    next_rows = Proposal(
        Opt(OptOps.PREFETCH, rows.arg.id, 1), "the prefetch of the next rows overlaps with this reduction"
    )
    is_long = row_loop.size > 2 * VECTORS_IN_BLOCK
    inner = kernel.next_id()
    if is_long:
        kernel = yield group_long_row(row_loop)
    if not kernel.target.prefetches_streams:
        return
    if is_long and kernel.target.streams * step_bytes(streams[0], rows) > kernel.target.l2_bytes // 2:
        yield Proposal(
            Opt(OptOps.PREFETCH, inner, prefetch_distance(kernel)),
            "the prefetch of the next part of each row overlaps with this reduction",
        )
    else:
        yield next_rows


def group_long_row(row_loop: UOp) -> Proposal:
    """Returns GROUP of a long row into blocks, if possible without a remainder."""
    reason = "one partial sum per block has a smaller rounding error than one sum per row"
    sizes = range(VECTORS_IN_BLOCK, VECTORS_IN_BLOCK // 2, -1)
    block = next((size for size in sizes if row_loop.size % size == 0), VECTORS_IN_BLOCK)
    return Proposal(Opt(OptOps.GROUP, row_loop.arg.id, block), reason)


def propose_parallel_pieces(
    kernel: Kernel, outer_loop: UOp, row_loop: UOp, streams: Sequence[IndexStrides], count: int
) -> Proposals:
    """Proposes UNROLL of `outer_loop` by `count`, or half of it, so that as many pieces of a row are read together.

    Such a row has a piece in each of several stretches of memory. Example: a channel that is summed over all images.
    """
    count = next((amount for amount in (count, count // 2) if outer_loop.size % amount == 0), 1)
    if count == 1 or any(step_bytes(load, outer_loop) < kernel.target.page_bytes for load in streams):
        return
    reason = f"{count} pieces of a row per iteration keep more memory requests in flight than one piece"
    kernel = yield Proposal(Opt(OptOps.UNROLL, outer_loop.arg.id, count), reason)
    inner = row_loop.arg.id
    if row_loop.size > 2 * VECTORS_IN_BLOCK:
        inner = kernel.next_id()
        yield group_long_row(row_loop)
    if kernel.target.prefetches_streams:
        reason = "the prefetch of the next part of each piece overlaps with this reduction"
        yield Proposal(Opt(OptOps.PREFETCH, inner, prefetch_distance(kernel)), reason)


def prefetch_distance(kernel: Kernel) -> int:
    """Returns the distance in vectors to prefetch ahead in a row that is too long to prefetch the next row."""
    return 2 * kernel.target.lines_in_flight


def comes_in_order(kernel: Kernel, load: IndexStrides, rows: UOp, row_loop: UOp, lanes: UOp) -> bool:
    """Whether each row of an operand is contiguous, at least a page long, and read once from memory."""
    in_order = load.stride(lanes) == 1 and load.stride(row_loop) == lanes.size and len(load.node.src) == 2
    row_distance = step_bytes(load, rows)
    row = row_loop.size * lanes.size * int(load.node.src[0].dtype.base.itemsize)
    return (
        in_order
        and kernel.target.page_bytes <= row <= row_distance
        and comes_from_memory(load, kernel.target)
        and is_read_once(kernel, load)
    )


def arithmetic_of(reduce: UOp) -> int:
    """Returns the number of operations per element, including the sum."""
    computed = [node for node in reduce.src[0].toposort() if node.op in OpGroups.ALU and node.dtype is not dtypes.index]
    functions = [node for node in computed if node.op in OpGroups.TRANSCENDENTAL]
    return MAX_ELEMENT_OPERATIONS + 1 if functions else 1 + len(computed)


__all__ = ["stream_rows"]

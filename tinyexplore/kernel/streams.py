"""Sums of rows out of memory: several rows, or pieces of one, side by side, each of them asked for ahead.

Measured on a Zen 4 (`docs/performance.md`): half to three quarters of the time of a walk along one row after the other.
Presumably more lines are on their way at a time: those asked for into the L2 cache are not counted among the few that a
core's L1 cache may wait for, and the hardware's prefetchers follow each row by itself, within a page.
"""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.access import Access, attempt
from tinyexplore.kernel.ahead import PAGE_BYTES, buffer_bytes, comes_from_memory, is_read_once, step_bytes
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opts import Opt, OptOps
from tinyexplore.uop import AxisKind, Group, Ops, UOp

STREAMS = 8  # rows side by side; of two operands, half as many of each
VECTORS_IN_BLOCK = 256  # of a row, added up by themselves, where it has more than two blocks
VECTORS_AHEAD = 32  # of a row that is too long for the next ones to be asked for instead
MOST_ARITHMETIC = 6  # operations for each element: more take longer than memory does
BLOCKS = 4  # of rows for each core


def with_streams(kernel: Kernel, lanes: UOp, loads: Sequence[Access]) -> Kernel:
    """`lanes`: those of the sum. The kernel as it was where its rows do not come from memory from end to end."""
    rows = kernel.output_axes[-1] if kernel.output_axes else None
    if rows is None or rows.arg.kind is not AxisKind.GLOBAL or not rows.is_static or len(kernel.reduces) != 1:
        return kernel
    (reduce,) = kernel.reduces
    if reduce.arg is not Ops.ADD:
        return kernel  # the NaNs of a maximum take longer than its memory
    loops = [axis for axis in reduce.src[1:] if axis is not lanes]
    streams = [load for load in loads if rows in load.node.ranges]
    if not 1 <= len(loops) <= 2 or len(loops) == len(reduce.src[1:]) or not 1 <= len(streams) <= 2:
        return kernel
    *apart, along = sorted(loops, key=lambda loop: loop.arg.id)
    shared = [load for load in loads if load not in streams]
    if any(buffer_bytes(load.node.src[0]) > kernel.target.l2_bytes // 8 for load in shared):
        return kernel
    if not all(comes_in_order(kernel, load, rows, along, lanes) for load in streams):
        return kernel
    if arithmetic_of(reduce) > MOST_ARITHMETIC:
        return kernel
    count = STREAMS // len(streams)
    if apart:
        return with_stretches(kernel, apart[0], along, streams, count)
    if rows.size < BLOCKS * kernel.target.threads * count:
        return kernel
    reason = f"{count} rows side by side: more of memory is waited for at a time than by walking along one"
    kernel = attempt(kernel, Opt(OptOps.UPCAST, rows.arg.id, count), reason)
    if along.size <= 2 * VECTORS_IN_BLOCK:
        return attempt(kernel, Opt(OptOps.AHEAD, rows.arg.id, 1), "the next rows are asked for meanwhile")
    kernel, inner = in_blocks(kernel, along)
    if STREAMS * step_bytes(streams[0], rows) > kernel.target.l2_bytes // 2:
        return attempt(kernel, Opt(OptOps.AHEAD, inner, VECTORS_AHEAD), "what comes of each row is asked for meanwhile")
    return attempt(kernel, Opt(OptOps.AHEAD, rows.arg.id, 1), "the next rows are asked for meanwhile")


def in_blocks(kernel: Kernel, along: UOp) -> tuple[Kernel, int]:
    """A long walk in blocks, if possible with nothing left over, and the id of the loop inside one."""
    reason = "few numbers are added to a large sum: in blocks they lose less of their last bits"
    sizes = range(VECTORS_IN_BLOCK, VECTORS_IN_BLOCK // 2, -1)
    block = next((size for size in sizes if along.size % size == 0), VECTORS_IN_BLOCK)
    inner = kernel.next_id()
    return attempt(kernel, Opt(OptOps.GROUP, along.arg.id, block), reason), inner


def with_stretches(kernel: Kernel, apart: UOp, along: UOp, streams: Sequence[Access], count: int) -> Kernel:
    """Rows that have a piece of each of several stretches of memory, as the sum of a channel does of each picture:
    `count` pieces of a row side by side, or half as many."""
    count = next((amount for amount in (count, count // 2) if apart.size % amount == 0), 1)
    if count == 1 or any(step_bytes(load, apart) < PAGE_BYTES for load in streams):
        return kernel
    reason = f"{count} pieces of a row side by side: more of memory is waited for at a time than by walking along one"
    kernel = attempt(kernel, Opt(OptOps.UNROLL, apart.arg.id, count), reason)
    inner = along.arg.id
    if along.size > 2 * VECTORS_IN_BLOCK:
        kernel, inner = in_blocks(kernel, along)
    return attempt(kernel, Opt(OptOps.AHEAD, inner, VECTORS_AHEAD), "what comes of each piece is asked for meanwhile")


def comes_in_order(kernel: Kernel, load: Access, rows: UOp, along: UOp, lanes: UOp) -> bool:
    """True for an operand of which each row lies in order, at least a page of it, and is read once out of memory."""
    in_order = load.stride(lanes) == 1 and load.stride(along) == lanes.size and len(load.node.src) == 2
    apart = step_bytes(load, rows)
    row = along.size * lanes.size * int(load.node.src[0].dtype.base.itemsize)
    return in_order and PAGE_BYTES <= row <= apart and comes_from_memory(load) and is_read_once(kernel, load)


def arithmetic_of(reduce: UOp) -> int:
    """How many operations there are for each element, the sum itself included."""
    computed = [node for node in reduce.src[0].toposort() if node.op in Group.ALU and node.dtype is not dtypes.index]
    dear = [node for node in computed if node.op in Group.TRANSCENDENTAL]
    return MOST_ARITHMETIC + 1 if dear else 1 + len(computed)


__all__ = ["with_streams"]

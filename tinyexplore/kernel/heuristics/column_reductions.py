"""Proposes how much of each row a step reads, for reductions down the columns of a matrix.

The aim is to read sequentially, or to prefetch.
"""

from __future__ import annotations

from tinyexplore.kernel.analysis.access import is_outer_of
from tinyexplore.kernel.analysis.memory import buffer_bytes, comes_from_memory, step_bytes
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, block_of
from tinyexplore.kernel.heuristics.register_tile import find_reduced
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, UOp

MAX_ROW_VECTORS = 32  # most vectors of a row that one step reads whole, with one accumulator each
MIN_LONG_ROW_PAGES, MIN_LONG_ROWS = 4, 512  # fewest pages of a row, and fewest rows, for a prefetch down the rows
STEP_VECTORS = 16  # vectors of a long row that a step reads
MIN_ROW_BLOCKS = 8  # fewest blocks of rows: with this many, the remainder costs little


def block_columns(kernel: Kernel) -> Proposals:
    """Proposes UPCAST of columns, and UNROLL of rows, for reductions down the columns that share no loads.

    Short rows are read whole, one after the other. For longer rows, a step reads several vectors, so that each row
    contributes a long contiguous stretch of memory.
    """
    reduced = find_reduced(kernel)
    if reduced is None or reduced.shares:
        return
    accesses = kernel.accesses
    columns = next((axis for axis in kernel.output_axes if is_outer_of(axis, reduced.lanes, accesses)), None)
    if columns is None:
        return
    (loop, *other_loops) = kernel.plain_reduces[0].src[1:]
    is_plain = len(kernel.plain_reduces) == 1 and not other_loops
    load = next((access for access in accesses if not access.is_store and loop in access.node.ranges), None)
    if is_plain and load is not None and columns.is_static:
        if is_read_in_order(kernel, load, columns, loop):
            yield from read_whole_rows(columns, loop, kernel.target.sums_in_flight)
            return
        if takes_long_steps(kernel, load, columns.size, loop):
            vector_count = block_of("vectors of a row", columns.size, STEP_VECTORS, STEP_VECTORS)
            reason = f"{vector_count} vectors of a long row per iteration leave time to prefetch later rows"
            yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, vector_count), reason)
            return
    busy = kernel.target.sums_in_flight
    vector_count = block_of("vectors of columns", columns.size, busy, busy)
    if vector_count > 1:
        reason = "neighboring columns use each cache line of a row before the cache evicts it"
        kernel = yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, vector_count), reason)
    rows = (kernel.target.vector_registers - vector_count) // (vector_count * registers_of(kernel))
    if is_plain and rows >= 2 and loop.size >= MIN_ROW_BLOCKS * rows:
        reason = f"{rows} rows per iteration keep more DRAM pages open"
        yield from unroll_rows(kernel, loop, rows, reason)


def registers_of(kernel: Kernel) -> int:
    """Returns the registers of one accumulator. An argmax or argmin keeps its index in a second register."""
    return 2 if kernel.argextremes else 1


def unroll_rows(kernel: Kernel, loop: UOp, rows: int, reason: str) -> Proposals:
    """Proposes UNROLL of `loop` by `rows`. For a maximum, also proposes it for the loops that find its index."""
    for axis in kernel.with_partners(loop):
        yield Proposal(Opt(OptOps.UNROLL, axis.arg.id, rows), reason)


def takes_long_steps(kernel: Kernel, load: IndexStrides, blocks: int, loop: UOp) -> bool:
    """Whether it pays to read much of each row in a step and to prefetch later rows.

    It does for data in a cache past L2, and for long rows in memory.
    blocks: the vectors of a row; each core must get enough of them.
    """
    if loop.size < MIN_LONG_ROWS or blocks < STEP_VECTORS * kernel.target.threads:
        return False
    if comes_from_memory(load, kernel.target):
        return step_bytes(load, loop) >= MIN_LONG_ROW_PAGES * kernel.target.page_bytes
    return (
        buffer_bytes(load.node.src[0]) > kernel.target.l2_bytes and step_bytes(load, loop) >= kernel.target.page_bytes
    )


def is_read_in_order(kernel: Kernel, load: IndexStrides, columns: UOp, loop: UOp) -> bool:
    """Whether whole rows are contiguous in memory, have few vectors each, and the cores can share another loop."""
    vector = load.stride(columns)
    if not vector or columns.size > MAX_ROW_VECTORS or load.stride(loop) != columns.size * vector:
        return False
    outer = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL and axis is not columns]
    threads = kernel.target.threads
    return threads < 2 or columns.size <= kernel.target.sums_in_flight or any(axis.size >= threads for axis in outer)


def read_whole_rows(columns: UOp, loop: UOp, sums: int) -> Proposals:
    """Proposes UPCAST for all vectors of a row, so that hardware prefetchers see one sequential stream.

    If rows are short, a step reads several of them, for `sums` independent accumulators.
    """
    reason = "the kernel reads whole rows, so its memory accesses are sequential"
    kernel = yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, columns.size), reason)
    rows = sums // columns.size
    if rows >= 2 and loop.size >= MIN_ROW_BLOCKS * rows:
        yield from unroll_rows(
            kernel, loop, rows, f"{rows} short rows per iteration have independent accumulators, which hide latency"
        )


__all__ = ["STEP_VECTORS", "block_columns", "takes_long_steps"]

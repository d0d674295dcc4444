"""Reductions down the columns: how much of each row a step takes, so that memory is read in order or requested."""

from __future__ import annotations

from tinyexplore.kernel.analysis.access import is_outer_of
from tinyexplore.kernel.analysis.memory import buffer_bytes, comes_from_memory, step_bytes
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.decisions.decision import Proposal, Proposals, block_of
from tinyexplore.kernel.decisions.register_tile import find_reduced
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, UOp

WHOLE_ROW = 32  # vectors of a row that is read whole, and as many accumulators
LONG_ROW_PAGES, MANY_LONG_ROWS = 4, 512  # of a walk down that is told what comes: pages of a row, rows
LONG_STEP = 16  # vectors out of a long row
MANY_ROWS = 8  # blocks of rows that make what is left over after them count for little


def block_columns(kernel: Kernel) -> Proposals:
    """UPCAST for reductions down the columns that share no loads: whole rows, one after the other; of longer ones
    several vectors, so that each row's stretch of memory is long."""
    reduced = find_reduced(kernel)
    if reduced is None or reduced.shares:
        return
    accesses = kernel.accesses
    columns = next((axis for axis in kernel.output_axes if is_outer_of(axis, reduced.lanes, accesses)), None)
    if columns is None:
        return
    (loop, *others) = kernel.plain_reduces[0].src[1:]
    is_plain = len(kernel.plain_reduces) == 1 and not others
    load = next((access for access in accesses if not access.is_store and loop in access.node.ranges), None)
    if is_plain and load is not None and columns.is_static:
        if is_read_in_order(kernel, load, columns, loop):
            yield from whole_rows(columns, loop, kernel.target.sums_in_flight)
            return
        if takes_long_steps(kernel, load, columns.size, loop):
            wide = block_of("vectors of a row", columns.size, LONG_STEP, LONG_STEP)
            reason = f"{wide} vectors of each long row: there is time to ask for those of later rows"
            yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, wide), reason)
            return
    busy = kernel.target.sums_in_flight
    wide = block_of("vectors of columns", columns.size, busy, busy)
    if wide > 1:
        reason = "neighbouring columns use each row's cache lines while they are there"
        kernel = yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, wide), reason)
    rows = (kernel.target.vector_registers - wide) // (wide * registers_of(kernel))
    if is_plain and rows >= 2 and loop.size >= MANY_ROWS * rows:
        reason = f"{rows} rows at a time: more of the memory's pages are open at once"
        yield from rows_together(kernel, loop, rows, reason)


def registers_of(kernel: Kernel) -> int:
    """How many registers an accumulator is: an extreme may have its place beside it."""
    return 2 if kernel.argextremes else 1


def rows_together(kernel: Kernel, loop: UOp, rows: int, reason: str) -> Proposals:
    """Several steps of `loop` at a time, also where it finds the places of what it finds."""
    for axis in kernel.with_partners(loop):
        yield Proposal(Opt(OptOps.UNROLL, axis.arg.id, rows), reason)


def takes_long_steps(kernel: Kernel, load: IndexStrides, blocks: int, loop: UOp) -> bool:
    """True where it pays to read much of each row and to ask for what is read some rows later: out of a cache past L2,
    or out of memory where rows are long. `blocks`: the vectors of a row, of which each core must get enough."""
    if loop.size < MANY_LONG_ROWS or blocks < LONG_STEP * kernel.target.threads:
        return False
    if comes_from_memory(load, kernel.target):
        return step_bytes(load, loop) >= LONG_ROW_PAGES * kernel.target.page_bytes
    return (
        buffer_bytes(load.node.src[0]) > kernel.target.l2_bytes and step_bytes(load, loop) >= kernel.target.page_bytes
    )


def is_read_in_order(kernel: Kernel, load: IndexStrides, columns: UOp, loop: UOp) -> bool:
    """True where whole rows lie one behind the other, few enough vectors each, and cores have another loop to share."""
    vector = load.stride(columns)
    if not vector or columns.size > WHOLE_ROW or load.stride(loop) != columns.size * vector:
        return False
    outer = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL and axis is not columns]
    threads = kernel.target.threads
    return threads < 2 or columns.size <= kernel.target.sums_in_flight or any(axis.size >= threads for axis in outer)


def whole_rows(columns: UOp, loop: UOp, sums: int) -> Proposals:
    """All vectors of a row in one step, so that prefetchers of the hardware see one walk; of short rows
    several, so that there are `sums` independent ones."""
    reason = "whole rows: memory is read from one end to the other"
    kernel = yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, columns.size), reason)
    rows = sums // columns.size
    if rows >= 2 and loop.size >= MANY_ROWS * rows:
        yield from rows_together(kernel, loop, rows, f"{rows} short rows at a time: independent sums")


__all__ = ["LONG_STEP", "block_columns", "takes_long_steps"]

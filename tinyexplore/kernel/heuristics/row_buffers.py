"""Proposes several rows at a time for row buffers, and stores each row while the kernel computes the next one."""

from __future__ import annotations

from tinyexplore.kernel.analysis.barriers import fills_row_buffer
from tinyexplore.kernel.analysis.memory import step_bytes
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, block_of, exceeds, reaches, record_scores
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts.pipeline import find_pipelined
from tinyexplore.uop import AxisKind, Ops, UOp

WIDE_TILE = 4  # vectors in a row of the register tile of a row buffer, with 32 registers
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS = 8, 64  # fewest and most rows in a block, the first of which is stored twice
PIPED_BLOCKS = 8  # blocks per core
OVERLAP_LABEL = f"rows stored twice, by rows per block (at least {PIPED_BLOCKS} blocks per core)"
STAGGER_LINES = 8  # row buffers start multiples of this apart within a page: a store a few lines away delays loads


def tile_row_buffers(kernel: Kernel) -> Proposals:
    """Proposes UPCAST and STAGE for buffered rows that are then multiplied (attention).

    Several rows at a time share the other factor.
    """
    widest = widest_tile(kernel)
    row_limit = max_tile_rows(kernel)
    rows = innermost_row_loop(kernel, row_limit)
    if rows is None:
        return
    products = [reduce for reduce in kernel.reduces if is_product(reduce, rows)]
    if not products or any(lanes_of(reduce) is None for reduce in products):
        return
    for columns in {loop: None for reduce in products if (loop := vector_loop(kernel, lanes_of(reduce))) is not None}:
        vector_count = block_of("vectors of columns", columns.size, widest, widest)
        if vector_count > 1:
            reason = f"register tile: each loaded value of a row is used for {vector_count} vectors"
            yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, vector_count), reason)
    row_count = block_of("rows", rows.size, row_limit, 6)
    if row_count > 1:
        reason = f"register tile: each loaded vector is used for {row_count} rows"
        yield Proposal(Opt(OptOps.UPCAST, rows.arg.id, row_count), reason)
    yield Proposal(Opt(OptOps.STAGE, rows.arg.id), "packing the shared operand once makes its vector loads contiguous")


def widest_tile(kernel: Kernel) -> int:
    """Returns the most vectors in a row of a tile. With few registers, rows get them, because rows share the loads
    of columns."""
    return WIDE_TILE if kernel.target.vector_registers >= 32 else WIDE_TILE // 2


def max_tile_rows(kernel: Kernel) -> int:
    """Returns the most rows of a tile whose accumulators stay in registers."""
    return (kernel.target.vector_registers - 4) // widest_tile(kernel)


def innermost_row_loop(kernel: Kernel, row_limit: int) -> UOp | None:
    """Returns the loop over the rows that the kernel keeps in scratch memory.

    If possible, this is the innermost loop of more than `row_limit` steps, so that a tile of rows leaves a loop. (Heads
    that share keys are a loop inside the loop over the queries.)
    """
    axes = {axis for row in kernel.find(Ops.BARRIER) if fills_row_buffer(row) for axis in row.ranges}
    loops = sorted((axis for axis in axes if axis.arg.kind is AxisKind.GLOBAL), key=lambda axis: -axis.arg.id)
    long_loops = [axis for axis in loops if not axis.is_static or axis.size > row_limit]
    return next(iter(long_loops or loops), None)


def is_product(reduce: UOp, rows: UOp) -> bool:
    """Whether a reduction inside `rows` has several columns and reads memory that all rows share.

    A maximum or a sum with one result per row is no product, even if it reads a mask that the rows share.
    """
    if rows not in reduce.ranges or all(axis.arg.id <= rows.arg.id for axis in reduce.ranges):
        return False
    return bool(shared_loads(reduce, rows))


def shared_loads(reduce: UOp, rows: UOp) -> list[UOp]:
    """Returns the loads in each step of a reduction that are the same for all `rows`."""
    loads = [load for load in reduce.src[0].find(Ops.LOAD) if load.ranges.issuperset(reduce.src[1:])]
    return [load for load in loads if rows not in load.ranges]


def packed_operands(kernel: Kernel) -> set[UOp]:
    """Returns the INDEX nodes of operands that `tile_row_buffers` packs, because products of buffered rows share
    them."""
    rows = innermost_row_loop(kernel, max_tile_rows(kernel))
    if rows is None:
        return set()
    products = [reduce for reduce in kernel.reduces if is_product(reduce, rows)]
    loads = [load for reduce in products for load in shared_loads(reduce, rows)]
    return {load.src[0] for load in loads if load.src[0].src[0].op is Ops.DEFINE_GLOBAL}


def lanes_of(node: UOp) -> UOp | None:
    """Returns the axis along which a value has lanes."""
    return next((axis for axis in node.ranges if axis.arg.kind is AxisKind.VECTOR), None)


def vector_loop(kernel: Kernel, lanes: UOp | None) -> UOp | None:
    """Returns the loop over the vectors that `lanes` was split from; None if there is only one vector."""
    for node in kernel.find(Ops.ADD):
        if lanes in node.src:
            return next((loop for src in node.src for loop in src.ranges if loop is not lanes), None)
    return None


def pipeline_rows(kernel: Kernel) -> Proposals:
    """Proposes PIPELINE for kernels with row buffers: stores a row of results while it computes the next row.

    Neither then waits for the other.
    """
    opt = find_pipeline(kernel)
    if opt is not None:
        yield Proposal(opt, "the store of one row overlaps with the computation of the next row")


def rows_stored_twice(size: int, rows: int) -> float:
    """Returns how many rows blocks of `rows` store twice: the first row of each block, and the overlap of the last
    block."""
    blocks = -(-size // rows)
    return blocks + blocks * rows - size


def find_pipeline(kernel: Kernel) -> Opt | None:
    """Returns the PIPELINE Opt with enough blocks of rows for the cores and little overlap; None if none is legal."""
    if not kernel.find(Ops.BARRIER) or not reaches("loop iterations", kernel.steps, kernel.target.wake_up_steps):
        return None
    for axis in kernel.output_axes:
        if isinstance(find_pipelined(kernel, axis), str):
            continue
        blocks = max(PIPED_BLOCKS * kernel.target.threads, -(-axis.size // MAX_BLOCK_ROWS))
        rows = -(-axis.size // blocks)
        overlap = blocks * rows - axis.size
        step = STAGGER_LINES * kernel.target.line_bytes
        are_staggered = all(step_bytes(access, axis) % step == 0 for access in kernel.accesses if access.is_store)
        if not reaches("rows per block", rows, MIN_BLOCK_ROWS):
            continue
        if are_staggered and not exceeds("16 × rows computed twice (bound: all rows)", 16 * overlap, axis.size):
            record_scores(
                OVERLAP_LABEL,
                {str(size): rows_stored_twice(axis.size, size) for size in (rows // 2, rows, 2 * rows)},
                str(rows),
                least=True,
            )
            return Opt(OptOps.PIPELINE, axis.arg.id, rows)
    return None

"""Row buffers in scratch memory: several rows at a time, each stored while the next one is computed."""

from __future__ import annotations

from tinyexplore.kernel.analysis.barriers import keeps_row
from tinyexplore.kernel.analysis.memory import step_bytes
from tinyexplore.kernel.decisions.decision import Proposal, Proposals, block_of, exceeds, reaches, weigh
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts.pipeline import find_pipelined
from tinyexplore.uop import AxisKind, Ops, UOp

WIDE_TILE = 4  # vectors side by side in the register tile of a row buffer, with 32 registers
FEWEST_PIPED, MOST_PIPED = 8, 64  # rows in a block, the first of which is stored twice
PIPED_BLOCKS = 8  # blocks for each core
TWICE = "rows in a block: rows that are stored twice, in no more blocks than cores want"
APART_LINES = 8  # within a page, buffers start multiples of it apart; a store a few lines away delays the loads


def tile_row_buffers(kernel: Kernel) -> Proposals:
    """UPCAST and STAGE for rows that are kept and then multiplied with something (attention): several at once, so that
    they share what they are multiplied with."""
    widest = widest_tile(kernel)
    most = most_rows(kernel)
    rows = innermost_row_loop(kernel, most)
    if rows is None:
        return
    products = [reduce for reduce in kernel.reduces if is_product(reduce, rows)]
    if not products or any(lanes_of(reduce) is None for reduce in products):
        return
    for columns in {loop: None for reduce in products if (loop := vector_loop(kernel, lanes_of(reduce))) is not None}:
        wide = block_of("vectors of columns", columns.size, widest, widest)
        if wide > 1:
            reason = f"{wide} vectors of columns share each row's load"
            yield Proposal(Opt(OptOps.UPCAST, columns.arg.id, wide), reason)
    tall = block_of("rows", rows.size, most, 6)
    if tall > 1:
        yield Proposal(Opt(OptOps.UPCAST, rows.arg.id, tall), f"{tall} rows share each load of a column")
    yield Proposal(Opt(OptOps.STAGE, rows.arg.id), "the operand that all rows share is packed once, in lane order")


def widest_tile(kernel: Kernel) -> int:
    """The most vectors side by side in a tile: few registers go to rows instead, which share the loads of columns."""
    return WIDE_TILE if kernel.target.vector_registers >= 32 else WIDE_TILE // 2


def most_rows(kernel: Kernel) -> int:
    """The most rows of a tile whose accumulators stay in registers."""
    return (kernel.target.vector_registers - 4) // widest_tile(kernel)


def innermost_row_loop(kernel: Kernel, most: int) -> UOp | None:
    """The loop over the rows that the kernel keeps in scratch memory.

    If possible, this is the innermost one of more than `most` steps, so that a tile of rows leaves a loop. (Heads that
    share keys are a loop inside the loop over the queries.)
    """
    axes = {axis for row in kernel.find(Ops.BARRIER) if keeps_row(row) for axis in row.ranges}
    loops = sorted((axis for axis in axes if axis.arg.kind is AxisKind.GLOBAL), key=lambda axis: -axis.arg.id)
    long = [axis for axis in loops if not axis.is_static or axis.size > most]
    return next(iter(long or loops), None)


def is_product(reduce: UOp, rows: UOp) -> bool:
    """Whether a reduction inside `rows` has several columns and reads memory that all rows share.

    A maximum or a sum with one result per row is no product, even if it reads a mask that the rows share.
    """
    if rows not in reduce.ranges or all(axis.arg.id <= rows.arg.id for axis in reduce.ranges):
        return False
    return bool(shared_loads(reduce, rows))


def shared_loads(reduce: UOp, rows: UOp) -> list[UOp]:
    """The loads that take part in each step of a reduction and are the same for all `rows`."""
    loads = [load for load in reduce.src[0].find(Ops.LOAD) if load.ranges.issuperset(reduce.src[1:])]
    return [load for load in loads if rows not in load.ranges]


def packed_operands(kernel: Kernel) -> set[UOp]:
    """The INDEX nodes of operands that `tile_row_buffers` packs: products of buffered rows share them."""
    rows = innermost_row_loop(kernel, most_rows(kernel))
    if rows is None:
        return set()
    products = [reduce for reduce in kernel.reduces if is_product(reduce, rows)]
    loads = [load for reduce in products for load in shared_loads(reduce, rows)]
    return {load.src[0] for load in loads if load.src[0].src[0].op is Ops.DEFINE_GLOBAL}


def lanes_of(node: UOp) -> UOp | None:
    """The axis along which a value has lanes."""
    return next((axis for axis in node.ranges if axis.arg.kind is AxisKind.VECTOR), None)


def vector_loop(kernel: Kernel, lanes: UOp | None) -> UOp | None:
    """The loop over the vectors that `lanes` was split from; None if there is only one vector."""
    for node in kernel.find(Ops.ADD):
        if lanes in node.src:
            return next((loop for src in node.src for loop in src.ranges if loop is not lanes), None)
    return None


def pipeline_rows(kernel: Kernel) -> Proposals:
    """Proposes PIPELINE for kernels with row buffers: a row of results is stored while the next row is computed, so
    that neither waits for the other."""
    opt = find_pipeline(kernel)
    if opt is not None:
        yield Proposal(opt, "a row of results is stored while the next one is computed")


def twice(size: int, rows: int) -> float:
    """The number of rows that blocks of `rows` store twice: the first row of each block, and the overlap of the last
    block."""
    blocks = -(-size // rows)
    return blocks + blocks * rows - size


def find_pipeline(kernel: Kernel) -> Opt | None:
    """The PIPELINE Opt with enough blocks of rows for the cores and little overlap of the last block; None if none is
    legal."""
    if not kernel.find(Ops.BARRIER) or not reaches("steps", kernel.steps, kernel.target.waking_steps):
        return None
    for axis in kernel.output_axes:
        if isinstance(find_pipelined(kernel, axis), str):
            continue
        blocks = max(PIPED_BLOCKS * kernel.target.threads, -(-axis.size // MOST_PIPED))
        rows = -(-axis.size // blocks)
        overlap = blocks * rows - axis.size
        step = APART_LINES * kernel.target.line_bytes
        apart = all(step_bytes(access, axis) % step == 0 for access in kernel.accesses if access.is_store)
        if not reaches("rows in a block", rows, FEWEST_PIPED):
            continue
        if apart and not exceeds("rows that are done twice, times 16", 16 * overlap, axis.size):
            weigh(
                TWICE,
                {str(size): twice(axis.size, size) for size in (rows // 2, rows, 2 * rows)},
                str(rows),
                least=True,
            )
            return Opt(OptOps.PIPELINE, axis.arg.id, rows)
    return None

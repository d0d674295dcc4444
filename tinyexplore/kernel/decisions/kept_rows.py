"""Rows that are kept in scratch memory: several at once, and each stored while the next one is computed."""

from __future__ import annotations

from tinyexplore.kernel.analysis.barriers import keeps_row
from tinyexplore.kernel.analysis.memory import step_bytes
from tinyexplore.kernel.decisions.decision import Proposal, Proposals, block_of, exceeds, reaches, weigh
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts.pipe import find_piped
from tinyexplore.uop import AxisKind, Ops, UOp

WIDE_TILE = 4  # vectors side by side in the register tile of a row that is kept, where there are 32 registers
FEWEST_PIPED, MOST_PIPED = 8, 64  # rows in a block, the first of which is stored twice
PIPED_BLOCKS = 8  # for each core
TWICE = "rows in a block: rows that are stored twice, in no more blocks than cores want"
APART_LINES = 8  # within a page buffers start multiples of it apart; a few lines apart a store holds up the loads


def tile_kept_rows(kernel: Kernel) -> Proposals:
    """UPCAST and STAGE for rows that are kept and then multiplied with something (attention): several at once, so that
    they share what they are multiplied with."""
    registers = kernel.target.vector_registers
    widest = WIDE_TILE if registers >= 32 else WIDE_TILE // 2  # rather rows: each has the columns read once less
    most = (registers - 4) // widest
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
    yield Proposal(Opt(OptOps.STAGE, rows.arg.id), "what all rows read is packed once, lanes side by side")


def innermost_row_loop(kernel: Kernel, most: int) -> UOp | None:
    """The loop that counts the rows that the kernel keeps in scratch memory.

    The innermost one of more than `most` steps, if there is one: a tile of rows does not use it up. Heads that share
    keys are a loop inside the queries' loop."""
    found = {axis for row in kernel.find(Ops.BARRIER) if keeps_row(row) for axis in row.ranges}
    loops = sorted((axis for axis in found if axis.arg.kind is AxisKind.GLOBAL), key=lambda axis: -axis.arg.id)
    long = [axis for axis in loops if not axis.is_static or axis.size > most]
    return next(iter(long or loops), None)


def is_product(reduce: UOp, rows: UOp) -> bool:
    """Whether a reduction inside `rows` has several columns and reads memory that all rows share.

    A maximum or a sum with one result per row is no product, even if it reads a mask that the rows share.
    """
    if rows not in reduce.ranges or all(axis.arg.id <= rows.arg.id for axis in reduce.ranges):
        return False
    loads = [load for load in reduce.src[0].find(Ops.LOAD) if load.ranges.issuperset(reduce.src[1:])]
    return any(rows not in load.ranges for load in loads)


def lanes_of(node: UOp) -> UOp | None:
    """The axis along which a value has lanes."""
    return next((axis for axis in node.ranges if axis.arg.kind is AxisKind.VECTOR), None)


def vector_loop(kernel: Kernel, lanes: UOp | None) -> UOp | None:
    """The loop over the vectors that `lanes` was split from; None where one vector is all."""
    for node in kernel.find(Ops.ADD):
        if lanes in node.src:
            return next((loop for src in node.src for loop in src.ranges if loop is not lanes), None)
    return None


def pipe_rows(kernel: Kernel) -> Proposals:
    """PIPE: a row of results is stored while the next one is computed, where rows are kept; neither waits for the
    other."""
    opt = find_pipe(kernel)
    if opt is not None:
        yield Proposal(opt, "a row of results is stored while the next one is computed")


def twice(size: int, rows: int) -> float:
    """Rows of `size` that blocks of so many store twice: the first of each, and where the last one overlaps."""
    blocks = -(-size // rows)
    return blocks + blocks * rows - size


def find_pipe(kernel: Kernel) -> Opt | None:
    """Rows in blocks: enough of these for the cores, and little done twice where the last one overlaps."""
    if not kernel.find(Ops.BARRIER) or not reaches("steps", kernel.steps, kernel.target.waking_steps):
        return None
    for axis in kernel.output_axes:
        if isinstance(find_piped(kernel, axis), str):
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
            return Opt(OptOps.PIPE, axis.arg.id, rows)
    return None

"""The tile registers of a CPU for sums of products of small numbers."""

from __future__ import annotations

from tinyexplore.kernel.analysis.tensor_cores import Fit, fit_of
from tinyexplore.kernel.decisions.decision import Proposal, Proposals, exceeds, reaches, weigh
from tinyexplore.kernel.decisions.product_tile import Tiling
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts.stage import MOST_L2
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import config

MOST_WASTE = 1.5  # multiply-adds done over those wanted: a policy
LEAST_STEPS = 1 << 16  # multiply-adds that are worth filling tiles for
ROWS_OF_A_BLOCK = 256  # for which the columns are packed again: fewer make that a good part of the time


def use_tiles(kernel: Kernel) -> Proposals:
    """TC for a sum of products that the CPU's tile registers take as it is; then UPCAST, so that a tile of either
    factor serves several products, and STAGE: tiles of both are packed once, in the order in which they are loaded.

    TC_OPT=0: where tiles do little more than is wanted; 1: also elsewhere.
    """
    fit = best_fit(kernel)
    if fit is None or not reaches("multiply-adds", kernel.steps, LEAST_STEPS):
        return
    if exceeds("multiply-adds done over those wanted", fit.work_done, MOST_WASTE) and not config().TC_OPT:
        return
    most = MOST_L2 * kernel.target.l2_bytes
    if exceeds("bytes of a block of packed rows", ROWS_OF_A_BLOCK * packed_row_bytes(fit), most):
        return
    m, n, k = fit.core.dims
    reason = f"{fit.core.call} does {m} × {n} × {k} multiply-adds of {fit.core.factor.name} in one instruction"
    kernel = yield Proposal(Opt(OptOps.TC, fit.steps.arg.id, k), reason)
    if not kernel.find(Ops.WMMA):
        return
    tall, wide = shape_of_tiles(kernel, fit)
    for side, amount in ((fit.columns, wide), (fit.rows, tall)):
        if amount > 1:
            reason = f"a tile of a factor serves {amount} products"
            kernel = yield Proposal(Opt(OptOps.UPCAST, side.arg.id, amount), reason)
    yield from packed(kernel, fit, tall)


def best_fit(kernel: Kernel) -> Fit | None:
    """How a core of the CPU does the sum, where it is one loop of several blocks; None where none does."""
    if not any(core.tiles for core in kernel.target.cores) or kernel.lanes < 2:
        return None
    if len(kernel.reduces) != 1 or len(kernel.reduces[0].src) != 2:
        return None
    (loop,) = kernel.reduces[0].src[1:]
    for size in dict.fromkeys(core.dims[2] for core in kernel.target.cores):
        fit = fit_of(kernel, loop, size)
        if isinstance(fit, Fit) and loop.size > size:
            return fit
    return None


def shape_of_tiles(kernel: Kernel, fit: Fit) -> tuple[int, int]:
    """How many tiles of C are summed at a time, along rows and along columns: they and those of A and B take all tile
    registers. Each load of a tile of A serves as many products as there are along columns."""
    blocks = [size_of(kernel, side.arg.id) for side in (fit.rows, fit.columns)]
    shapes: dict[str, float] = {}
    found = {}
    for tall in range(1, min(fit.core.tiles, blocks[0]) + 1):
        for wide in range(1, min(fit.core.tiles, blocks[1]) + 1):
            if tall * wide + tall + wide <= fit.core.tiles:
                waste = 1.0
                for have, one in zip(blocks, (tall, wide)):
                    waste *= -(-have // one) * one / have
                name = f"{tall} × {wide}"
                shapes[name], found[name] = waste * (1 + 1 / tall + 1 / wide), (tall, wide)
    best = min(shapes, key=lambda name: shapes[name])
    weigh("products and loads of tiles over the products wanted", shapes, best, least=True)
    return found[best]


def packed(kernel: Kernel, fit: Fit, tall: int) -> Tiling:
    """Both factors packed: `tall` tiles of rows at a time, in blocks outside the columns where these would not stay in
    the L2 cache or each core has a block; and the columns of one step of their loop, for all rows of a block."""
    rows, columns = fit.rows.arg.id, fit.columns.arg.id
    out_row = next(axis.arg.id for axis in kernel.output_axes if axis.arg.kind is AxisKind.LOCAL)
    count = size_of(kernel, rows)
    block = rows_of_a_block(kernel, fit, count, tall)
    outer, inner = columns, rows
    if 1 < block < count:
        inner, outer_row = kernel.next_id(), rows
        kernel = yield Proposal(Opt(OptOps.LOCAL, rows, block), f"blocks of {block} tiles of rows stay in the cache")
        reason = "rows of C are read out inside the loop over tiles"
        kernel = yield Proposal(Opt(OptOps.SWAP, out_row, inner), reason)
        inner = out_row
        if columns < rows and size_of(kernel, columns) > 1:
            kernel = yield Proposal(Opt(OptOps.SWAP, columns, outer_row), "blocks of rows outside the columns")
            outer = outer_row
    elif rows < columns and min(count, size_of(kernel, columns)) > 1:
        kernel = yield Proposal(Opt(OptOps.SWAP, rows, columns), "columns outside: their panel serves all rows")
        outer, inner = rows, columns
    for axis, what in ((outer, "rows are packed once for all columns"), (inner, "columns once for a block of rows")):
        if size_of(kernel, axis) > 1:
            kernel = yield Proposal(Opt(OptOps.STAGE, axis), f"{what}, as tiles that are loaded in order")
    return kernel


def rows_of_a_block(kernel: Kernel, fit: Fit, count: int, tall: int) -> int:
    """How many of `count` tiles of rows are packed at a time: what half of the L2 cache holds, and no more than a core
    has to do where no outer loop is divided among the cores; but enough to be worth packing the columns for."""
    target, first = kernel.target, kernel.output_axes[0]
    rows = tall * fit.core.dims[0]
    most = target.matrix_bytes // (rows * packed_row_bytes(fit))
    own = {fit.rows.arg.id, fit.columns.arg.id}
    if first.arg.id in own or first.arg.kind is not AxisKind.GLOBAL or first.size < target.threads:
        most = min(most, -(-count // target.threads))
    block = max(most, -(-ROWS_OF_A_BLOCK // rows))
    return min(count, block)


def packed_row_bytes(fit: Fit) -> int:
    """What a row of a factor takes, packed."""
    return int(fit.steps.size * fit.core.factor.itemsize)


def size_of(kernel: Kernel, axis_id: int) -> int:
    """The steps of the axis with this id; 1 where one block is all of it."""
    return next((axis.size for axis in kernel.axes if axis.arg.id == axis_id), 1)


__all__ = ["use_tiles"]

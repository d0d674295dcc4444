"""Proposes the tile registers of a CPU (AMX) for sums of products of small numbers."""

from __future__ import annotations

from tinyexplore.kernel.analysis.tensor_cores import CoreMatch, find_core_match
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches, record_scores
from tinyexplore.kernel.heuristics.product_tile import Tiling
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts.stage import MAX_COPY_PER_L2
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import config

MAX_WASTE = 1.5  # ratio of multiply-adds done to those needed: a policy
MIN_MULTIPLY_ADDS = 1 << 16  # fewest multiply-adds that pay for filling tiles
MIN_ROWS_PER_BLOCK = 256  # the columns are packed again for each block: with fewer rows, that takes much of the time

MIN_BLOCKS_PER_CORE = (
    4  # each block would pack the columns: with fewer blocks, that is faster than reading all columns again
)


def use_amx_tiles(kernel: Kernel) -> Proposals:
    """Proposes TC for a sum of products whose factors fit the CPU's tile registers without conversion.

    UPCAST follows, so that each tile of a factor serves several products. Then STAGE packs both factors once, as tiles
    in the order in which they are loaded.

    TC_OPT=0: only if tiles compute little more than is needed. TC_OPT=1: also otherwise.
    """
    fit = best_fit(kernel)
    if fit is None or not reaches("multiply-adds", kernel.steps, MIN_MULTIPLY_ADDS):
        return
    if exceeds("computed / needed multiply-adds", fit.work_done, MAX_WASTE) and not config().TC_OPT:
        return
    most_bytes = MAX_COPY_PER_L2 * kernel.target.l2_bytes
    if exceeds(
        f"bytes of a packed block of rows (bound: {MAX_COPY_PER_L2} × L2)",
        MIN_ROWS_PER_BLOCK * packed_row_bytes(fit),
        most_bytes,
    ):
        return
    m, n, k = fit.core.dims
    reason = f"one {fit.core.call} instruction does {m} × {n} × {k} multiply-adds of {fit.core.factor.name}"
    kernel = yield Proposal(Opt(OptOps.TC, fit.steps.arg.id, k), reason)
    if not kernel.find(Ops.WMMA):
        return
    rows_of_tiles, columns_of_tiles = shape_of_tiles(kernel, fit)
    for side_axis, amount in ((fit.columns, columns_of_tiles), (fit.rows, rows_of_tiles)):
        if amount > 1:
            reason = f"one load of a tile serves {amount} products"
            kernel = yield Proposal(Opt(OptOps.UPCAST, side_axis.arg.id, amount), reason)
    yield from pack_factors(kernel, fit, rows_of_tiles)


def best_fit(kernel: Kernel) -> CoreMatch | None:
    """Returns how the kernel's sum fits a tile core of the CPU. None if no core fits, or the sum is not one loop of
    several blocks."""
    if not any(core.tiles for core in kernel.target.cores) or kernel.lanes < 2:
        return None
    if len(kernel.reduces) != 1 or len(kernel.reduces[0].src) != 2:
        return None
    (loop,) = kernel.reduces[0].src[1:]
    for size in dict.fromkeys(core.dims[2] for core in kernel.target.cores):
        fit = find_core_match(kernel, loop, size)
        if isinstance(fit, CoreMatch) and loop.size > size:
            return fit
    return None


def shape_of_tiles(kernel: Kernel, fit: CoreMatch) -> tuple[int, int]:
    """Returns how many tiles of C are summed at a time, along rows and along columns.

    Together with the tiles of A and B they must fit in the tile registers. Each loaded tile of A serves one product per
    tile along the columns.
    """
    blocks = [size_of(kernel, axis.arg.id) for axis in (fit.rows, fit.columns)]
    shapes: dict[str, float] = {}
    tile_sizes = {}
    for rows_of_tiles in range(1, min(fit.core.tiles, blocks[0]) + 1):
        for columns_of_tiles in range(1, min(fit.core.tiles, blocks[1]) + 1):
            if rows_of_tiles * columns_of_tiles + rows_of_tiles + columns_of_tiles <= fit.core.tiles:
                waste = 1.0
                for block_count, size in zip(blocks, (rows_of_tiles, columns_of_tiles)):
                    waste *= -(-block_count // size) * size / block_count
                name = f"{rows_of_tiles} × {columns_of_tiles}"
                shapes[name], tile_sizes[name] = (
                    waste * (1 + 1 / rows_of_tiles + 1 / columns_of_tiles),
                    (rows_of_tiles, columns_of_tiles),
                )
    best = min(shapes, key=lambda name: shapes[name])
    record_scores(
        "tile products and tile loads per useful product, by rows × columns of tiles", shapes, best, least=True
    )
    return tile_sizes[best]


def pack_factors(kernel: Kernel, fit: CoreMatch, rows_of_tiles: int) -> Tiling:
    """Proposes STAGE for both factors, with the loop order that it needs.

    Rows are packed `rows_of_tiles` tiles at a time. They run in blocks outside the columns if all rows would not stay
    in the L2 cache, or if each core gets a block. Columns are packed one step of their loop at a time, for all rows
    of a block. If a core has several blocks, all columns are packed once.
    """
    rows, columns = fit.rows.arg.id, fit.columns.arg.id
    out_row = next(axis.arg.id for axis in kernel.output_axes if axis.arg.kind is AxisKind.LOCAL)
    count = size_of(kernel, rows)
    block = rows_of_a_block(kernel, fit, count, rows_of_tiles)
    outer, inner, repeats = columns, rows, -1
    if 1 < block < count:
        inner, outer_row = kernel.next_id(), rows
        kernel = yield Proposal(
            Opt(OptOps.LOCAL, rows, block), f"a packed block of {block} row tiles stays in the cache"
        )
        reason = "each tile of C is stored inside the loop over row tiles"
        kernel = yield Proposal(Opt(OptOps.SWAP, out_row, inner), reason)
        inner, repeats = out_row, outer_row
        if columns < rows and size_of(kernel, columns) > 1:
            kernel = yield Proposal(
                Opt(OptOps.SWAP, columns, outer_row),
                "one packed block of rows serves all columns if the block loop is outside",
            )
            outer, repeats = outer_row, columns
    elif rows < columns and min(count, size_of(kernel, columns)) > 1:
        kernel = yield Proposal(
            Opt(OptOps.SWAP, rows, columns), "one packed panel serves all rows if the column loop is outside"
        )
        outer, inner = rows, columns
    staged = [
        (outer, "the rows are packed once for all columns"),
        (inner, "the columns are packed once per block of rows"),
    ]
    if repeats >= 0 and size_of(kernel, repeats) >= MIN_BLOCKS_PER_CORE * own_cores(kernel, fit):
        unpacked, reason = kernel, "the columns are packed once for all blocks of rows, so tile loads are sequential"
        kernel = yield Proposal(Opt(OptOps.STAGE, repeats), reason)
        staged = staged[:1] if kernel is not unpacked else staged
    for axis, packing in staged:
        if size_of(kernel, axis) > 1:
            kernel = yield Proposal(Opt(OptOps.STAGE, axis), f"{packing}, so tile loads are sequential")
    return kernel


def own_cores(kernel: Kernel, fit: CoreMatch) -> int:
    """Returns among how many cores blocks of tiles are divided; 1 if the cores share an outer loop instead."""
    target, outer_axis = kernel.target, kernel.output_axes[0]
    tile_axes = {fit.rows.arg.id, fit.columns.arg.id}
    is_divided = (
        outer_axis.arg.id in tile_axes or outer_axis.arg.kind is not AxisKind.GLOBAL or outer_axis.size < target.threads
    )
    return target.threads if is_divided else 1


def rows_of_a_block(kernel: Kernel, fit: CoreMatch, count: int, rows_of_tiles: int) -> int:
    """Returns how many of `count` tiles of rows are packed at a time.

    They fit half of the L2 cache, and are at most a core's share if no outer loop is divided among the cores. There are
    enough of them to make packing the columns pay.
    """
    rows = rows_of_tiles * fit.core.dims[0]
    most_tiles = kernel.target.private_cache_bytes // (rows * packed_row_bytes(fit))
    most_tiles = min(most_tiles, -(-count // own_cores(kernel, fit)))
    block = max(most_tiles, -(-MIN_ROWS_PER_BLOCK // rows))
    return min(count, block)


def packed_row_bytes(fit: CoreMatch) -> int:
    """Returns the bytes of a packed row of a factor."""
    return int(fit.steps.size * fit.core.factor.itemsize)


def size_of(kernel: Kernel, axis_id: int) -> int:
    """Returns the steps of the axis with this id; 1 if one block covers it."""
    return next((axis.size for axis in kernel.axes if axis.arg.id == axis_id), 1)


__all__ = ["use_amx_tiles"]

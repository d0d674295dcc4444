"""The hand-coded choice of opts: a list of decisions, each with the reason that it gives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.access import (
    Access,
    attempt,
    best_block,
    is_inside_reduction,
    is_outer_of,
    lanes_for,
    outer_row_axis,
    shares_loads,
)
from tinyexplore.kernel.ahead import buffer_bytes, is_read_once, step_bytes, with_prefetches
from tinyexplore.kernel.analysis.dot_products import IN_A_WORD, dot_of
from tinyexplore.kernel.columns import ACCUMULATORS, with_wide_columns
from tinyexplore.kernel.crossing import crossing_axis, with_square_tile
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opts import Opt, OptOps, cut
from tinyexplore.kernel.opts.pipe import find_piped
from tinyexplore.kernel.product import find_product, with_product_tiles
from tinyexplore.kernel.streams import with_streams
from tinyexplore.kernel.transforms.axes import with_merged_axes, with_split_axes
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.util import config

SHORTEST_STREAM_BYTES = 512  # of a row: shorter ones take less time than adding up their lanes
THREAD_STEPS = 1 << 15  # fewer steps than this take less time than waking another thread
SHUFFLED_STRIDE = 4  # every so many elements are taken out of whole vectors, at about the price of a load each
ONCE, MOST_ONCE = 0.25, 0.5  # weight of what happens once for each result, each and all of it together
SHUFFLED_LANES = 4  # fewer lanes than this are not worth taking out of vectors
MIRRORED_AXES = 4  # 16 places a step, a vector register each
WIDE_TILE = 4  # vectors side by side in the register tile of a row that is kept
UNKNOWN_ROWS = 4  # of a symbolic axis in a tile: there may be one only, and then the others do its work again
ALONGSIDE = 4  # sums of one row: beyond the L1 cache a cycle brings a vector at best; more take longer to compile
FEWEST_PIPED, MOST_PIPED = 8, 64  # rows in a block, the first of which is stored twice
PIPED_BLOCKS = 8  # for each core
LONGEST_WINDOW = 4  # steps that are written out whole: of 3 x 3, lanes would be picked from too many vectors
APART_BYTES = 512  # within a page buffers start multiples of it apart; a few lines apart a store holds up the loads
FEW_VECTORS = 64  # that many additions, each waiting for the one before, take less than 0.1 µs


def hand_coded(kernel: Kernel) -> Kernel:
    """Vectors, register tiles, independent accumulators, threads: for one vector machine with caches."""
    kernel = with_words(with_merged_axes(with_split_axes(kernel)))
    product = find_product(kernel) if kernel.lanes > 1 else None
    tiled = with_product_tiles(product) if product is not None else None
    if tiled is None:
        tiled = with_longer_ends(with_tiles(with_tiles_of_rows(with_vectors(kernel) if kernel.lanes > 1 else kernel)))
    return with_cut_loops(with_piped_rows(with_prefetches(with_threads(with_accumulators(tiled)))))


def with_words(kernel: Kernel) -> Kernel:
    """Dot instructions for sums of products of small numbers, where a product of matrices fills their lanes.

    TC_OPT=0: where nothing is left over at the end of the sum; 1: also elsewhere.
    """
    product = find_product(kernel) if kernel.lanes > 1 and kernel.find(Ops.CAST) else None
    op = dot_of(kernel, product.reduce) if product is not None else None
    if product is None or op is None or len(product.reduce.src) != 2:
        return kernel
    (loop,) = product.reduce.src[1:]
    amount = IN_A_WORD[op]
    if loop.size % amount and not config().TC_OPT:
        return kernel
    if not any(axis.size >= kernel.lanes and product.rows_of(product.along(axis)) for axis in product.outputs):
        return kernel
    return attempt(kernel, Opt(OptOps.TC, loop.arg.id, amount), f"{op.name} does {amount} multiply-adds a lane")


def vector_score(axis: UOp, found: Sequence[Access]) -> float:
    """How well `axis` suits as lanes: neighbours in memory count for it, strided or scattered accesses against it.

    A store is the dearer access where everything runs once; beside the loads inside a reduction, it and what else
    happens once for each result hardly count.
    """
    score = once = 0.0
    reduces = any(is_inside_reduction(access) for access in found)
    for access in found:
        if axis not in access.node.ranges:
            continue
        weight = 2.0 if access.is_store else 1.0
        stride = access.stride(axis)
        if stride == 1:
            suits = weight
        elif stride is None or access.is_store or not 1 < stride <= SHUFFLED_STRIDE or axis.size < SHUFFLED_LANES:
            suits = -weight
        else:
            suits = 0.0
        if reduces and not is_inside_reduction(access):
            once += suits
        else:
            score += suits
    return score + max(-MOST_ONCE, min(MOST_ONCE, ONCE * once))


def with_vectors(kernel: Kernel) -> Kernel:
    """Lanes along the axis that walks memory step by step: an output axis, or each reduction's own."""
    found = kernel.accesses
    inner = [axis for axis in kernel.output_axes if not outer_row_axis(kernel, axis)]
    inner = [axis for axis in inner if axis not in kernel.gathered_along]
    best = max(inner, key=lambda axis: (vector_score(axis, found), axis.arg.id), default=None)
    lanes = lanes_for(kernel, best) if best is not None and vector_score(best, found) > 0 else 1
    few = best is not None and lanes <= SHUFFLED_STRIDE and lanes < kernel.lanes
    interleaved = interleaved_with(inner, found) if few else None
    if interleaved is not None:
        apart, short = interleaved
        reason = f"results side by side are interleaved in registers: more lanes than {lanes}"
        kernel = attempt(kernel, Opt(OptOps.VECTOR, apart.arg.id, lanes_for(kernel, apart)), reason)
        for other in short:
            kernel = attempt(kernel, Opt(OptOps.UPCAST, other.arg.id, other.size), reason)
    elif best is not None and lanes > 1 and lanes * 2 >= reduced_lanes(kernel, found):
        kernel = attempt(
            kernel, Opt(OptOps.VECTOR, best.arg.id, lanes), "neighbours along this axis are neighbours in memory"
        )
    for row in reversed(kernel.axes):
        if row.arg.kind is AxisKind.ROW and (lanes := lanes_for(kernel, row)) > 1:
            kernel = attempt(kernel, Opt(OptOps.VECTOR, row.arg.id, lanes), "a kept row lies in memory step by step")
    for reduce in kernel.reduces:
        if any(axis.arg.kind is AxisKind.VECTOR for axis in reduce.src[0].ranges):
            continue
        loops = [axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.REDUCE]
        inside = set(reduce.src[0].find(Ops.INDEX))
        mine = [access for access in found if access.node in inside]
        axis = max(loops, key=lambda axis: vector_score(axis, mine), default=None)
        if axis is None or vector_score(axis, mine) <= 0 or axis not in kernel.axes:
            continue
        if (lanes := lanes_for(kernel, axis)) > 1:
            kernel = attempt(kernel, Opt(OptOps.VECTOR, axis.arg.id, lanes), "the reduction walks memory step by step")
    return kernel


def interleaved_with(inner: list[UOp], found: Sequence[Access]) -> tuple[UOp, list[UOp]] | None:
    """The axis that the results walk as one with short ones inside it, and these; None where its loads are apart."""
    stores = [access for access in found if access.is_store]
    short: list[UOp] = []
    walked = 1
    while walked <= SHUFFLED_STRIDE:
        axis = next((axis for axis in inner if all(store.stride(axis) == walked for store in stores)), None)
        if axis is None or axis in short or not axis.is_static:
            return None
        if axis.size > SHUFFLED_STRIDE:
            loads = [access for access in found if not access.is_store and axis in access.node.ranges]
            strides = [load.stride(axis) for load in loads]
            near = all(stride is not None and 0 <= stride <= SHUFFLED_STRIDE for stride in strides)
            return (axis, short) if short and near else None
        short.append(axis)
        walked *= axis.size
    return None


def reduced_lanes(kernel: Kernel, found: Sequence[Access]) -> int:
    """The most lanes that a reduction could have along an axis of its own."""
    most = 1
    for reduce in kernel.reduces:
        inside = set(reduce.src[0].find(Ops.INDEX))
        mine = [access for access in found if access.node in inside]
        for axis in reduce.src[1:]:
            if vector_score(axis, mine) > 0:
                most = max(most, lanes_for(kernel, axis))
    return most


def with_tiles(kernel: Kernel) -> Kernel:
    """A register tile: rows and columns whose loads are shared, as many accumulators as the registers hold."""
    if not kernel.reduces:
        return with_longer_steps(kernel)
    found = kernel.accesses
    if any(outer_row_axis(kernel, axis) for axis in kernel.output_axes):
        return kernel
    lanes_axis = next((axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR), None)
    summed = {axis for reduce in kernel.reduces for axis in reduce.src[1:]}
    loads = [access for access in found if not access.is_store and access.node.ranges & summed]
    if lanes_axis is None:
        return kernel
    streams = with_streams(kernel, lanes_axis, loads)
    if streams is not kernel:
        return streams
    shared = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL and shares_loads(axis, loads)]
    if len(loads) < 2 or (lanes_axis in kernel.output_axes and not shared):
        return with_wide_columns(kernel, lanes_axis, found)
    columns = next(
        (axis for axis in shared if lanes_axis in kernel.output_axes and is_outer_of(axis, lanes_axis, found)), None
    )
    # rows that share a vector's load rather than a single value's: a convolution's filters, not its pictures
    vectors = [load for load in loads if lanes_axis in load.node.ranges]
    rows = max(
        (axis for axis in shared if axis is not columns),
        key=lambda axis: (shares_loads(axis, vectors), axis.size),
        default=None,
    )
    registers = kernel.target.vector_registers
    rows_are_neighbours = rows is not None and any(load.stride(rows) == 1 for load in loads)
    widest = 4 if registers >= 32 and not rows_are_neighbours else 2
    wide = best_block(columns.size, widest, limit=widest) if columns is not None else 1
    if columns is not None and wide > 1:
        reason = f"{wide} vectors of columns share each row's load"
        kernel = attempt(kernel, Opt(OptOps.UPCAST, columns.arg.id, wide), reason)
    if rows is not None:
        if lanes_axis in kernel.output_axes:
            # rows that are streams of their own: few, as streams a power of two apart share one set of the L1 cache;
            # rows that lie side by side: as many as one cache line has
            few = wide == widest and not rows_are_neighbours
            limit = 6 if few else 14
            tall = best_block(rows.size, max(2, (registers - 4) // wide), limit if rows.is_static else UNKNOWN_ROWS)
        elif len(shared) == 1 and rows_are_streamed(kernel, rows, loads):
            tall = 1
        else:
            tall = best_block(rows.size, 4, limit=4)
        if tall > 1:
            kernel = attempt(kernel, Opt(OptOps.UPCAST, rows.arg.id, tall), f"{tall} rows share each load of a column")
    if lanes_axis not in kernel.output_axes and len(shared) > 1:
        other = max((axis for axis in shared if axis is not rows), key=lambda axis: axis.size)
        tall = best_block(other.size, 4, limit=4)
        if tall > 1:
            kernel = attempt(kernel, Opt(OptOps.UPCAST, other.arg.id, tall), f"{tall} columns share each load of a row")
    return kernel


def rows_are_streamed(kernel: Kernel, rows: UOp, loads: Sequence[Access]) -> bool:
    """True where the rows of a matrix past the L2 cache are read once, in order, and what they share stays in the L1
    cache (a matrix times a vector): prefetchers of the hardware follow one row better than several, and what sharing a
    load saves is hidden behind waiting for memory."""
    for load in loads:
        nbytes = buffer_bytes(load.node.src[0])
        if rows not in load.node.ranges:
            fits = nbytes <= kernel.target.l1_bytes // 2
        else:
            fits = (
                nbytes > kernel.target.l2_bytes
                and step_bytes(load, rows) >= SHORTEST_STREAM_BYTES
                and is_read_once(kernel, load)
            )
        if not fits:
            return False
    return True


def with_tiles_of_rows(kernel: Kernel) -> Kernel:
    """Rows that are kept and then multiplied with something (attention): several at once, so that they share it."""
    rows = innermost_row_loop(kernel)
    if rows is None:
        return kernel
    products = [reduce for reduce in kernel.reduces if rows in reduce.ranges and shared_with(reduce, rows)]
    if not products or any(lanes_of(reduce) is None for reduce in products):
        return kernel
    for columns in {loop: None for reduce in products if (loop := vector_loop(kernel, lanes_of(reduce))) is not None}:
        wide = best_block(columns.size, WIDE_TILE, limit=WIDE_TILE)
        if wide > 1:
            reason = f"{wide} vectors of columns share each row's load"
            kernel = attempt(kernel, Opt(OptOps.UPCAST, columns.arg.id, wide), reason)
    tall = best_block(rows.size, (kernel.target.vector_registers - 4) // WIDE_TILE, limit=6)
    if tall > 1:
        kernel = attempt(kernel, Opt(OptOps.UPCAST, rows.arg.id, tall), f"{tall} rows share each load of a column")
    return attempt(kernel, Opt(OptOps.STAGE, rows.arg.id), "what all rows read is packed once, lanes side by side")


def innermost_row_loop(kernel: Kernel) -> UOp | None:
    """The loop that counts the rows that the kernel keeps in scratch memory."""
    loops = {axis for node in kernel.find(Ops.BARRIER) for axis in node.ranges}
    return max((axis for axis in loops if axis.arg.kind is AxisKind.GLOBAL), key=lambda axis: axis.arg.id, default=None)


def shared_with(reduce: UOp, rows: UOp) -> bool:
    """True where a reduction inside `rows` reads memory that is the same for all of them."""
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


def with_longer_steps(kernel: Kernel) -> Kernel:
    """Elementwise: a few vectors a step, so that loads and arithmetic of several overlap."""
    if mirrored := mirrored_pairs(kernel):
        reason = "both places of this axis are computed from the same two elements"
        for axis in mirrored:
            kernel = attempt(kernel, Opt(OptOps.UPCAST, axis.arg.id, axis.size), reason)
        return kernel
    vectors = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    if not vectors or kernel.steps < 1 << 12:
        return kernel
    found = kernel.accesses
    across = crossing_axis(kernel, vectors[0], found)
    if across is not None:
        return with_square_tile(kernel, vectors[0], across)
    outer = next((axis for axis in reversed(kernel.output_axes) if is_outer_of(axis, vectors[0], found)), None)
    return with_four_vectors(kernel, outer, kernel.nodes)


def with_longer_ends(kernel: Kernel) -> Kernel:
    """Rows that are walked again after their reductions (layernorm): a few vectors a step there as well.

    Rows that are piped are stored in the steps of a longer computation.
    """
    if find_pipe(kernel) is not None:
        return kernel
    found = kernel.accesses
    ends = [axis for axis in kernel.output_axes if all(axis not in reduce.ranges for reduce in kernel.reduces)]
    if not kernel.reduces or not any(outer_row_axis(kernel, axis) for axis in kernel.output_axes):
        return kernel
    lanes = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    outer = next((axis for axis in ends if any(is_outer_of(axis, lane, found) for lane in lanes)), None)
    return with_four_vectors(kernel, outer, [node for node in kernel.nodes if outer in node.ranges])


def with_four_vectors(kernel: Kernel, loop: UOp | None, nodes: Sequence[UOp]) -> Kernel:
    """Four steps at a time of a `loop` over vectors, where its `nodes` are few enough."""
    arithmetic = sum(node.op is not Ops.INDEX and not is_of_places(node) for node in nodes)
    if loop is None or arithmetic > 40 or loop.size % 4 or not loop.is_static:
        return kernel
    return attempt(
        kernel, Opt(OptOps.UPCAST, loop.arg.id, 4), "four vectors a step keep the load and arithmetic units busy"
    )


def is_of_places(node: UOp) -> bool:
    """True for arithmetic with places, and for asking where one lies: steps side by side share most of it."""
    return node.op is Ops.CONST or node.dtype is dtypes.index or any(src.dtype is dtypes.index for src in node.src)


def mirrored_pairs(kernel: Kernel) -> tuple[UOp, ...]:
    """Output axes of size 2 that some buffer is read along both ways, as in a sorting network; few enough to unroll."""
    by_buffer: dict[UOp, list[Access]] = {}
    for access in kernel.accesses:
        if not access.is_store:
            by_buffer.setdefault(access.node.src[0], []).append(access)

    def both_ways(axis: UOp) -> bool:
        for group in by_buffer.values():
            strides = {access.stride(axis) for access in group}
            if any(stride and -stride in strides for stride in strides):
                return True
        return False

    pairs = [
        axis for axis in kernel.output_axes if axis.size == 2 and axis.is_static and axis.arg.kind is AxisKind.GLOBAL
    ]
    found = tuple(axis for axis in pairs if both_ways(axis))
    return found if len(found) <= MIRRORED_AXES else ()


def with_accumulators(kernel: Kernel) -> Kernel:
    """Enough independent sums that one addition need not wait for the one before.

    Where all there is to add up are a few vectors (the partial results of a larger sum, say), the wait is nothing
    beside what it takes to compile a longer loop, and the sums' sum after it.
    """
    if kernel.steps <= FEW_VECTORS * kernel.lanes:
        return kernel
    for reduce in kernel.reduces:
        apart = (*reduce.ranges, *reduce.src[1:])
        tiles = prod(axis.size for axis in apart if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
        loops = [axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.REDUCE and axis in kernel.axes]
        if is_short_window(reduce, loops):
            reason = "a short window is written out: no loop, and no accumulators to start from nothing"
            for loop in loops:
                kernel = attempt(kernel, Opt(OptOps.UNROLL, loop.arg.id, loop.size), reason)
            continue
        wanted = min(ALONGSIDE, ACCUMULATORS // tiles)
        if wanted < 2:
            continue
        axis = max(loops, key=lambda axis: (axis.size, axis.arg.id), default=None)
        if axis is None or axis.size < 2:
            continue
        amount = next((n for n in range(min(wanted, axis.size), 1, -1) if axis.size % n == 0), min(wanted, axis.size))
        if (axis.size % amount or not axis.is_static) and axis.size < 4 * amount:
            continue
        kernel = attempt(
            kernel, Opt(OptOps.UNROLL, axis.arg.id, amount), "independent accumulators hide the latency of the sum"
        )
    return kernel


def is_short_window(reduce: UOp, loops: Sequence[UOp]) -> bool:
    """True for a reduction of a few steps in two loops, with lanes along its results: a pool's of 2 x 2.

    It takes 0.6 to 0.87 of the time, and half of LLVM's.
    """
    if len(loops) < 2 or len(loops) < len(reduce.src) - 1 or not all(axis.is_static for axis in loops):
        return False
    return prod(axis.size for axis in loops) <= LONGEST_WINDOW


def with_threads(kernel: Kernel) -> Kernel:
    """The outermost output loop goes to all cores where there is enough to do."""
    if kernel.target.threads < 2 or kernel.steps < THREAD_STEPS * max(1, kernel.lanes // 4):
        return kernel
    outermost = next((axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL), None)
    if outermost is None or outermost.size < 2:
        return kernel
    return attempt(
        kernel, Opt(OptOps.THREAD, outermost.arg.id), f"{kernel.steps} steps are worth waking the other cores"
    )


def with_piped_rows(kernel: Kernel) -> Kernel:
    """A row of results is stored while the next one is computed, where rows are kept: neither waits for the other."""
    opt = find_pipe(kernel)
    return kernel if opt is None else kernel.apply(opt, "a row of results is stored while the next one is computed")


def find_pipe(kernel: Kernel) -> Opt | None:
    """Rows in blocks: enough of these for the cores, and little done twice where the last one overlaps."""
    if kernel.steps < THREAD_STEPS or not kernel.find(Ops.BARRIER):
        return None
    for axis in kernel.output_axes:
        if isinstance(find_piped(kernel, axis), str):
            continue
        blocks = max(PIPED_BLOCKS * kernel.target.threads, -(-axis.size // MOST_PIPED))
        rows = -(-axis.size // blocks)
        overlap = blocks * rows - axis.size
        apart = all(step_bytes(access, axis) % APART_BYTES == 0 for access in kernel.accesses if access.is_store)
        if rows >= FEWEST_PIPED and 16 * overlap <= axis.size and apart:
            return Opt(OptOps.PIPE, axis.arg.id, rows)
    return None


def with_cut_loops(kernel: Kernel) -> Kernel:
    """A causal mask: for each block of rows, only the columns that it can see."""
    for axis in kernel.output_axes:
        if cut.obstacle(kernel, axis) is None:
            return kernel.apply(Opt(OptOps.CUT, axis.arg.id), "a mask hides the rest from these rows")
    return kernel

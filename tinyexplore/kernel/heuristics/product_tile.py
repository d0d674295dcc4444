"""Proposes lanes, a register tile and packed operands for sums of products (matmul, convolution, their gradients)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from math import inf, prod

from tinyexplore.kernel.analysis.access import lanes_for
from tinyexplore.kernel.analysis.dot_products import words_in
from tinyexplore.kernel.analysis.memory import buffer_bytes as bytes_of
from tinyexplore.kernel.analysis.product import Product, find_product
from tinyexplore.kernel.analysis.scratch import PACKING_ORDER
from tinyexplore.kernel.analysis.strides import SHUFFLED_STRIDE, IndexStrides
from tinyexplore.kernel.heuristics.column_reductions import STEP_VECTORS, takes_long_steps
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, record_scores
from tinyexplore.kernel.heuristics.register_tile import sums_in_registers
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts.stage import MAX_COPY_PER_L2
from tinyexplore.uop import AxisKind, UOp

# costs of a vector, beside its multiply-adds, in instructions of the code that the passes write for any machine
LOAD_COST = 1.0
STRIDED_LOAD_COST = 3.0  # shuffled out of two or three vectors
LANE_COST = 2.0  # per lane that is loaded or stored alone
PACKING_COST = 8.0  # transposing a vector into a panel and storing it there
REDUCING_COST = 8.0  # combining all lanes of an accumulator

# limits of the heuristic: a policy
TYPICAL_SHARING = 4.0  # typical number of rows of a register tile that share a load
MIN_ROW_TILES_TO_PACK = 8  # fewest tiles of rows that pay for packing a panel
MIN_ROW_TILES_TO_PACK_LARGE = (
    2  # the same for an operand that exceeds the L2 cache: reading it again costs more than a copy
)
MAX_MEMORY_BOUND_ROWS = (
    16  # a product of at most this many rows waits for its matrix: its tile shares each load among many rows
)
PACKED_ROWS = 48  # fewest rows that pay for a transposing copy
# all columns are packed again for each block: with this many rows, that takes a tenth of the time
MIN_ROWS_PER_BLOCK = 256
MAX_VECTORS, MAX_ROWS = 8, 14
RESERVED_WAYS = 2  # ways of a set of the L1 cache that are left to operands other than the rows of a tile
JOINING_REGISTERS = 2  # registers to combine a vector from several stretches of memory
MERGED_COST_RATIO = 0.95
COST_LABEL = "instructions per multiply-add, by vectorized axis"
TILE_COST = "tile cost per useful multiply-add, vectorized along"


# a part of the heuristic: yields proposals and returns the kernel after them
Tiling = Generator[Proposal, Kernel, Kernel]


@dataclass(frozen=True)
class RegisterTile:
    """A register tile of a product.

    cost: instructions per multiply-add.
    vector_count: vectors along the lanes' axis.
    row_count: steps of `rows`.
    rows: the axis of the tile's rows, or None.
    outer: the axis that is merged into the lanes' axis first, or None.
    merged: steps of `outer` that are merged.
    """

    cost: float
    vector_count: int
    row_count: int
    rows: UOp | None
    outer: UOp | None = None
    merged: int = 1

    def __str__(self) -> str:
        rows = f" × {self.row_count} rows of {self.rows.arg.name}" if self.rows is not None else ""
        return f"{self.vector_count} vector{'s' if self.vector_count > 1 else ''}{rows}"


def tile_product(kernel: Kernel) -> Proposals:
    """Proposes VECTOR, UPCAST, COLLAPSE, SWAP, STAGE and TRANSPOSE_STORE for a sum of products.

    The lanes are along the output axis that needs the fewest instructions per multiply-add. A register tile is built
    around them, and operands that are not read sequentially are packed into panels. Proposes nothing if lanes along the
    reduction itself, or no lanes, need fewer instructions.
    """
    product = find_product(kernel) if kernel.lanes > 1 else None
    if product is None:
        return
    tiles = {axis: best_tile(product, axis) for axis in product.outputs if axis.size > 1 and product.along(axis)}
    costs = {axis: lane_cost(product, axis, tile) for axis, tile in tiles.items()}
    lanes = min(costs, key=lambda axis: (costs[axis], -axis.arg.id), default=None)
    along_sum = reduced_cost(product)
    costs_by_axis = {
        "the reduction": along_sum,
        "not vectorized": scalar_cost(product),
        **{axis.arg.name: cost for axis, cost in costs.items()},
    }
    best = min(costs_by_axis, key=lambda name: costs_by_axis[name])
    record_scores(COST_LABEL, costs_by_axis, best, least=True)
    if lanes is None or best != lanes.arg.name:
        return
    tile = tiles[lanes]
    kernel = yield from tile_loops(kernel, tile, lanes, costs[lanes])
    kernel = yield from (
        pack_panels(kernel) if tile.outer is None else propose_nearer_loop_inside(kernel, product, lanes, tile)
    )
    vector = next((axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.VECTOR), None)
    if vector is not None and any(store.stride(lanes) not in (1, None) for store in product.stores):
        yield Proposal(
            Opt(OptOps.TRANSPOSE_STORE, vector.arg.id), "a transposition in registers makes the stores contiguous"
        )


def tile_loops(kernel: Kernel, tile: RegisterTile, lanes: UOp, cost: float) -> Tiling:
    """Proposes the lanes and the register tile around them. Returns the kernel after these Opts."""
    count = lanes_for(kernel, lanes)
    if tile.outer is not None:
        reason = f"{tile.merged} merged rows of {lanes.size} results leave fewer vector lanes idle"
        block = kernel.next_id()
        yield Proposal(Opt(OptOps.UPCAST, tile.outer.arg.id, tile.merged), reason)
        kernel = yield Proposal(Opt(OptOps.COLLAPSE, block, lanes.arg.id), reason)
        count = kernel.lanes
    reason = f"vectors along this axis need the fewest instructions per multiply-add: {cost:.2f}"
    kernel = yield Proposal(Opt(OptOps.VECTOR, lanes.arg.id, count), reason)
    if tile.vector_count > 1:
        reason = f"register tile: each loaded value of a row is used for {tile.vector_count} vectors"
        kernel = yield Proposal(Opt(OptOps.UPCAST, lanes.arg.id, tile.vector_count), reason)
    if tile.rows is not None and tile.row_count > 1:
        reason = f"register tile: each loaded vector is used for {tile.row_count} rows"
        kernel = yield Proposal(Opt(OptOps.UPCAST, tile.rows.arg.id, tile.row_count), reason)
    return kernel


# *** lanes ***


def lane_cost(product: Product, axis: UOp, tile: RegisterTile) -> float:
    """Returns instructions per vector of multiply-adds, with lanes along the output `axis`: waste, loads, stores."""
    kernel = product.kernel
    vectors = product.along(axis)
    rows = prod(row.size for row in product.rows_of(vectors))
    shared = min(TYPICAL_SHARING, max(1, rows))
    packings = 1 if axis.size > tile.vector_count * kernel.lanes else part_count(kernel)
    cost = 1.0 + LOAD_COST / TYPICAL_SHARING * (len(product.loads) - len(vectors))
    for load in vectors:
        stride = load.stride(axis)
        if stride == 1:
            cost += LOAD_COST / shared
        elif stride is not None and 1 < stride <= SHUFFLED_STRIDE and not is_masked(load):
            cost += STRIDED_LOAD_COST / shared
        elif rows >= PACKED_ROWS and is_packable(product, load) and panel_fits(product, load, 1):
            cost += LOAD_COST / shared + PACKING_COST * packings / rows
        else:
            cost += LANE_COST * kernel.lanes / shared
    for store in product.stores:
        if store.stride(axis) != 1:
            cost += LANE_COST * kernel.lanes / product.steps
    return cost * tile.cost


def part_count(kernel: Kernel) -> int:
    """Returns into how many parts the threads divide a loop. Each part is a call that packs its own panels."""
    return 4 * kernel.target.threads


def reduced_cost(product: Product) -> float:
    """Returns `lane_cost` with lanes along the reduction.

    Both operands are read in vectors. They come from L2 if half of L1 does not hold a tile of a single loop.
    """
    kernel = product.kernel
    target = kernel.target
    best = inf
    for loop in product.reduce.src[1:]:
        strides = {load.stride(loop) for load in product.loads}
        if 1 not in strides or not strides <= {0, 1} or loop.size < kernel.lanes:
            continue
        blocks, remainder = divmod(loop.size, kernel.lanes)
        computed_vectors = (blocks + remainder) * kernel.lanes / loop.size
        rows, columns = sums_in_registers(target)
        shared = (1 / rows + 1 / columns) / 2
        loads = LOAD_COST * shared * len(product.loads)
        tile_bytes = (rows + columns) * product.steps * max(map(itemsize, product.loads))
        is_far_tile = len(product.reduce.src) == 2 and 2 * tile_bytes > target.l1_bytes
        tile = 1 + (target.far_load if is_far_tile else target.hidden_load) * 2 * shared
        best = min(best, tile * computed_vectors * (1.0 + loads) + REDUCING_COST * kernel.lanes / product.steps)
    return best


def scalar_cost(product: Product) -> float:
    """Returns `lane_cost` without lanes. Later heuristics may find better lanes for a kernel that is hardly a sum of
    products."""
    return product.kernel.lanes * (1.0 + LOAD_COST * len(product.loads))


def is_masked(access: IndexStrides) -> bool:
    return len(access.node.src) == 3


def is_packable(product: Product, load: IndexStrides) -> bool:
    """Whether `pack_panels` can pack one panel of this operand for all rows.

    At most one loop over its columns may be inside the loops over the rows. SWAP moves that loop outside.
    """
    rows = product.rows_of([load])
    if not rows or is_masked(load):
        return False
    first_row_id = min(row.arg.id for row in rows)
    return len([axis for axis in product.outputs if axis in load.node.ranges and axis.arg.id > first_row_id]) <= 1


def panel_fits(product: Product, load: IndexStrides, vector_count: int) -> bool:
    """Whether a packed panel of `vector_count` vectors can be read fast enough for every tile: sequentially, from L2 or
    beyond."""
    panel = product.steps * product.kernel.lanes * vector_count * itemsize(load)
    return panel <= MAX_COPY_PER_L2 * product.kernel.target.l2_bytes


def itemsize(load: IndexStrides) -> int:
    size: int = load.node.src[0].dtype.base.itemsize
    return size


# *** the register tile ***


def best_tile(product: Product, lanes: UOp) -> RegisterTile:
    """Returns the register tile with the least waste, whose accumulators fit in registers.

    The waste counts steps past the end and loads.
    """
    vectors = product.along(lanes)
    rows = [TileAxis.of(product, axis) for axis in product.rows_of(vectors) if axis is not lanes]
    rows.sort(key=lambda row: (row.nearest, -row.axis.size))
    count = lanes_for(product.kernel, lanes)
    blocks = -(-lanes.size // count)
    widest = MAX_VECTORS if product.kernel.target.vector_registers >= 32 else MAX_VECTORS // 2
    packed = any(load.stride(lanes) != 1 for load in vectors)
    loads = (*load_costs(product, lanes, vectors), crossing_cost(product, lanes, vectors))
    loops = product.reduce.src[1:]
    if not rows and not packed and len(vectors) == len(loops) == 1:  # a vector times a matrix
        if takes_long_steps(product.kernel, vectors[0], blocks, loops[0]):
            widest = STEP_VECTORS
    tiles = []
    for vector_count in range(1, min(widest, blocks) + 1):
        if vector_count > 1 and packed and not all(panel_fits(product, load, vector_count) for load in vectors):
            break
        waste = waste_of(blocks, vector_count) * blocks * product.kernel.lanes / lanes.size
        tiles.append(with_rows(product, RegisterTile(waste, vector_count, 1, None), rows, loads))
    cheapest = min(tiles, key=lambda tile: tile.cost)
    record_scores(f"{TILE_COST} {lanes.arg.name}", {str(tile): tile.cost for tile in tiles}, str(cheapest), least=True)
    outer = mergeable_row(product, lanes, vectors)
    if outer is None:
        return cheapest
    for merged in range(2, min(outer.size, widest * product.kernel.lanes // lanes.size) + 1):
        size = merged * lanes.size
        vector_count = -(-size // product.kernel.lanes)
        if size >= product.kernel.lanes:
            waste = waste_of(outer.size, merged) * vector_count * product.kernel.lanes / size
            other_rows = [row for row in rows if row.axis is not outer]
            tiles.append(
                with_rows(product, RegisterTile(waste, vector_count, 1, None, outer, merged), other_rows, loads)
            )
    best = min(tiles, key=lambda tile: tile.cost)
    return best if best.cost < MERGED_COST_RATIO * cheapest.cost else cheapest


def load_costs(product: Product, lanes: UOp, vectors: list[IndexStrides]) -> tuple[float, float]:
    """Returns the costs of loading a number of a row, and of loading a vector, in multiply-adds."""
    target = product.kernel.target
    if any(serves_few_rows(product, load) for load in vectors):
        return 2 * target.hidden_load, target.far_load  # a narrow tile reads short stretches of each row
    scalar_loads = [load for load in product.loads if load not in vectors]
    if any(serves_few_rows(product, load) and is_strided(product, load) for load in scalar_loads):
        return target.far_load, target.hidden_load
    strided = any(1 < (load.stride(lanes) or 0) <= SHUFFLED_STRIDE for load in vectors)
    return target.hidden_load, target.hidden_load * (STRIDED_LOAD_COST if strided else LOAD_COST)


def crossing_cost(product: Product, lanes: UOp, vectors: list[IndexStrides]) -> float:
    """Returns the cost of the second accesses of vector loads that cross cache lines, for each vector, in
    multiply-adds.

    It decides how many rows share a load. With it in the choice of lanes, convolutions of 32 pictures took 1.3 times as
    long, with lanes along channels (Zen 5).
    """
    return product.kernel.target.hidden_load * max(further_lines(product, load, lanes) for load in vectors)


def further_lines(product: Product, load: IndexStrides, lanes: UOp) -> float:
    """Returns the mean number of further cache lines that a vector along `lanes` needs: 0 if vectors are aligned, as
    those of a packed panel are.

    It is 0 if vectors are aligned, as in a packed panel. A convolution's vectors start at each element: with 64 bytes,
    all of them cross into another line; with 32 bytes, half of them do.
    """
    target = product.kernel.target
    starts = [(load.stride(axis) or 0) * itemsize(load) for axis in load.node.ranges if axis is not lanes]
    vector_bytes = product.kernel.lanes * itemsize(load)
    if load.stride(lanes) != 1:
        return 0.0
    return 0.0 if all(start % vector_bytes == 0 for start in starts) else vector_bytes / target.line_bytes


def serves_few_rows(product: Product, load: IndexStrides) -> bool:
    """Whether this is a matrix past the L2 cache that is multiplied with few rows. Such a product waits for memory."""
    rows = prod(axis.size for axis in product.rows_of([load]))
    return rows <= MAX_MEMORY_BOUND_ROWS and buffer_bytes(load) > product.kernel.target.l2_bytes


def with_rows(
    product: Product, tile: RegisterTile, rows: list[TileAxis], loads: tuple[float, float, float]
) -> RegisterTile:
    """Returns `tile` with the number of rows that costs least. `loads`: from `load_costs` and `crossing_cost`.

    `tile.cost` is the waste along the columns. The cost of the result leaves the second accesses of loads out.
    """
    number, vector, crossing = loads
    registers = product.kernel.target.vector_registers
    spare = registers - tile.vector_count - 1 - (JOINING_REGISTERS if tile.outer is not None else 0)
    best = RegisterTile(
        tile.cost * (1 + number / tile.vector_count + vector), tile.vector_count, 1, None, tile.outer, tile.merged
    )
    least_cost = best.cost + tile.cost * crossing
    for row in rows:
        size = row.axis.size
        for row_count in range(2, min(row.most, size, spare // tile.vector_count) + 1):
            waste = tile.cost * waste_of(size, row_count)
            cost = waste * (1 + number / tile.vector_count + vector / row_count)
            if cost + waste * crossing / row_count < least_cost:
                least_cost = cost + waste * crossing / row_count
                best = RegisterTile(cost, tile.vector_count, row_count, row.axis, tile.outer, tile.merged)
    return best


@dataclass(frozen=True)
class TileAxis:
    """An axis that a tile may have rows along.

    axis: the loop.
    nearest: the shortest distance that one step moves in an operand, in bytes.
    most: the largest number of rows. Streams that share one set of the L1 cache evict each other, so it is small for
    these.
    """

    axis: UOp
    nearest: int
    most: int

    @staticmethod
    def of(product: Product, axis: UOp) -> TileAxis:
        strides = [(load.stride(axis), itemsize(load)) for load in product.along(axis)]
        nearest = min((abs(stride or 1 << 60) for stride, _ in strides), default=1 << 60)
        target = product.kernel.target
        clash = any(stride is None or stride * size % target.way_bytes == 0 for stride, size in strides)
        streams = max(2, target.l1_bytes // target.way_bytes - RESERVED_WAYS)
        return TileAxis(axis, nearest, min(streams, MAX_ROWS) if clash else MAX_ROWS)


def waste_of(size: int, block: int) -> float:
    """Returns the ratio of work done to work needed, for blocks of this size."""
    return -(-size // block) * block / size


def mergeable_row(product: Product, lanes: UOp, vectors: list[IndexStrides]) -> UOp | None:
    """Returns the axis outside `lanes` that can be merged with it; None if there is none.

    The rows of `lanes` must be adjacent in the result, and use the same operands.
    """
    if any(is_masked(load) or not 1 <= (load.stride(lanes) or 0) <= SHUFFLED_STRIDE for load in vectors):
        return None
    for axis in product.outputs:
        if axis is lanes or product.along(axis) != vectors or any(load.stride(axis) is None for load in vectors):
            continue
        if all(lies_in_rows(store, axis, lanes) for store in product.stores):
            return axis
    return None


def lies_in_rows(store: IndexStrides, axis: UOp, lanes: UOp) -> bool:
    step = store.stride(lanes)
    return bool(step) and store.stride(axis) == lanes.size * (step or 0)


def propose_nearer_loop_inside(kernel: Kernel, product: Product, lanes: UOp, tile: RegisterTile) -> Tiling:
    """Proposes SWAP of the two loops over tiles if the kernel then reads less memory repeatedly. Returns the kernel
    after it."""
    rows, outer = tile.rows, tile.outer
    ids = {axis.arg.id for axis in kernel.axes}
    if rows is None or outer is None or rows.arg.id > outer.arg.id or not {rows.arg.id, outer.arg.id} <= ids:
        return kernel
    tiles = {lanes, rows, outer}
    vectors = product.along(lanes)
    walked_by_row = sum(footprint_of_tiles(product, load, tiles) for load in vectors) * (rows.size // tile.row_count)
    scalar_loads = [load for load in product.loads if load not in vectors]
    walked_by_block = sum(footprint_of_tiles(product, load, tiles) for load in scalar_loads) * (
        outer.size // tile.merged
    )
    if walked_by_row <= walked_by_block:
        return kernel
    reason = f"the tiles read {walked_by_block >> 10} KiB in this loop order, {walked_by_row >> 10} KiB in the other"
    kernel = yield Proposal(Opt(OptOps.SWAP, rows.arg.id, outer.arg.id), reason)
    return kernel


def footprint_of_tiles(product: Product, load: IndexStrides, tiles: set[UOp]) -> int:
    """Returns the bytes of an operand that all tiles read in one step of the other loops."""
    steps_of_others = prod(axis.size for axis in product.outputs if axis not in tiles and axis in load.node.ranges)
    return buffer_bytes(load) // steps_of_others


# *** panels ***


def pack_panels(kernel: Kernel) -> Tiling:
    """Proposes STAGE: packs the operand with the lanes into panels that stay in L2, if it is transposed or too large.

    The other operand is packed too, in blocks of rows, if the reduction would read it in strides past the cache.
    Returns the kernel after these Opts.
    """
    product = find_product(kernel)
    lanes = next((axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.VECTOR), None)
    if product is None or lanes is None or len(product.along(lanes)) != 1:
        return kernel
    (panel,) = product.along(lanes)
    rows, columns = product.rows_of([panel]), [axis for axis in product.outputs if axis in panel.node.ranges]
    if not rows or not is_worth_packing(product, panel, lanes, rows, columns):
        return kernel
    outer_row = min(rows, key=lambda axis: axis.arg.id)
    inner_columns = [axis for axis in columns if axis.arg.id > outer_row.arg.id]
    if len(inner_columns) > 1:
        return kernel
    row_id = outer_row.arg.id
    if inner_columns:
        row_id = inner_columns[0].arg.id
        reason = "one packed panel serves all rows if the column loop is outside"
        kernel = yield Proposal(Opt(OptOps.SWAP, outer_row.arg.id, row_id), reason)
    row_loads = product.along(outer_row)
    if len(rows) == len(columns) == len(row_loads) == 1 and is_strided(product, row_loads[0]):
        if misses_caches(product, row_loads[0]):
            row_id = yield from pack_rows(kernel, min(axis.arg.id for axis in columns + rows), row_id)
    reason = "all rows read the packed panel sequentially from a cache"
    kernel = yield Proposal(Opt(OptOps.STAGE, row_id), reason)
    return kernel


def is_worth_packing(product: Product, panel: IndexStrides, lanes: UOp, rows: list[UOp], columns: list[UOp]) -> bool:
    """Whether packing an operand pays: it is transposed, too large for a cache, or multiplied in machine words.

    Its panel must fit in a cache.
    """
    kernel = product.kernel
    repeats = prod(axis.size for axis in rows) // (1 if columns else part_count(kernel))
    transposed = not 1 <= (panel.stride(lanes) or 0) <= SHUFFLED_STRIDE
    most_rows = MIN_ROW_TILES_TO_PACK_LARGE if buffer_bytes(panel) > kernel.target.l2_bytes else MIN_ROW_TILES_TO_PACK
    large = misses_caches(product, panel) and is_strided(product, panel) and repeats >= most_rows
    panel_bytes = itemsize(panel) * prod(axis.size for axis in panel.node.ranges if axis.arg.kind in PACKING_ORDER)
    vector_count = panel_bytes // (product.steps * kernel.lanes * itemsize(panel))
    in_words = bool(words_in(product.reduce.src[0])) and repeats >= MIN_ROW_TILES_TO_PACK
    return not is_masked(panel) and panel_fits(product, panel, vector_count) and (transposed or large or in_words)


def misses_caches(product: Product, load: IndexStrides) -> bool:
    """Whether an operand takes a third of the L2 cache, or the L1 cache cannot hold the lines that a reduction
    reads."""
    return 3 * buffer_bytes(load) >= product.kernel.target.l2_bytes or lies_in_one_set(product, load)


def lies_in_one_set(product: Product, load: IndexStrides) -> bool:
    """Whether the lines that a reduction reads all map to one set of the L1 cache and exceed its ways.

    These are conflict misses, each on another page.
    """
    target = product.kernel.target
    innermost = max(product.reduce.src[1:], key=lambda loop: loop.arg.id)
    step = (load.stride(innermost) or 0) * itemsize(load)
    return step != 0 and step % target.way_bytes == 0 and innermost.size * target.way_bytes > target.l1_bytes


def is_strided(product: Product, load: IndexStrides) -> bool:
    """Whether each step of the reduction jumps in memory."""
    innermost = max(product.reduce.src[1:], key=lambda loop: loop.arg.id)
    return load.stride(innermost) != 1


def pack_rows(kernel: Kernel, column_id: int, row_id: int) -> Generator[Proposal, Kernel, int]:
    """Proposes blocks of rows as the outermost loop, each packed once for all columns. Returns the id of the loop in
    a block."""
    row = kernel.axis(row_id)
    product = find_product(kernel)
    if product is None:
        return row_id
    (load,) = product.along(row)
    tile_bytes = itemsize(load) * prod(axis.size for axis in load.node.ranges if axis.arg.kind in PACKING_ORDER)
    row_count = prod(axis.size for axis in load.node.ranges if axis.arg.kind is AxisKind.UPCAST)
    most_tiles = MAX_COPY_PER_L2 * kernel.target.l2_bytes // tile_bytes
    for_each_core = -(-row.size // kernel.target.threads)
    # two blocks per core: the first core to finish takes another
    block = min(most_tiles, -(-row.size // (2 * kernel.target.threads)))
    if block * row_count < MIN_ROWS_PER_BLOCK and for_each_core <= most_tiles:
        block = for_each_core
    block = min(block, -(-row.size // 2))  # a single core also has two blocks
    if block < 2:
        return row_id
    inner = kernel.next_id()
    yield Proposal(Opt(OptOps.LOCAL, row_id, block), f"a packed block of {block} row tiles stays in the cache")
    reason = "one packed block of rows serves all columns if the block loop is outside"
    yield Proposal(Opt(OptOps.SWAP, column_id, row_id), reason)
    reason = "packing turns strided reads of these rows into sequential reads"
    yield Proposal(Opt(OptOps.STAGE, row_id), reason)
    return inner


def buffer_bytes(access: IndexStrides) -> int:
    return bytes_of(access.node.src[0])

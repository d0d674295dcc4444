"""Pass "tiles": loads and stores the tile registers of a CPU, or emulates them if it has none."""

from __future__ import annotations

from itertools import count
from math import prod

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.dot_products import DOTS, EMULATED
from tinyexplore.kernel.analysis.scratch import row_major
from tinyexplore.target import TENSOR_CORES
from tinyexplore.trace import active_recorder, node_derived
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.uop import ops_mask
from tinyexplore.util import config

UNROLLED_KINDS = frozenset({AxisKind.UPCAST, AxisKind.UNROLL})
TILE_OPS = ops_mask((Ops.TILE,))


def lower_tiles(sink: UOp, lowering: Lowering) -> UOp:
    """Replaces TILEs by loads, and reads of a tile's elements by a store and loads, through scratch memory in tile
    shape.

        WMMA(TILE(a[x, y], x, y), TILE(b[x, y], x, y), C)[row, column]
        →  for x: for y: s[x, y] = a[x, y]        C = WMMA(load s, load t, C); u = C; u[row, column]

    Words that are already in tile order in memory, as STAGE packs them, are loaded from there. If the target lacks the
    instruction, the same words are multiplied by dot products: C[row, column] = Σ dot(a[row, y], b[y, column]).
    """
    if not sink.mask & TILE_OPS:
        return sink
    recorder = active_recorder()
    numbers = count()
    nodes = sink.toposort()
    free_id = count(max([node.arg.id for node in nodes if node.op is Ops.RANGE], default=-1) + 1)
    replaced: dict[UOp, UOp] = {}
    stored: dict[UOp, UOp] = {}
    for node in nodes:
        new_node = node
        if any(source in replaced for source in node.src):
            new_node = node.replace(src=tuple([replaced.get(source, source) for source in node.src]))
        if node.op is Ops.TILE and is_native(node, nodes, lowering):
            new_node = load_tile(new_node, numbers)
        elif node.op is Ops.GEP and len(node.src) == 3:
            tile = new_node.src[0]
            if tile.find(Ops.TILE):
                new_node = sum_of_dots(new_node, next(free_id))
            else:
                if tile not in stored:
                    stored[tile] = scratch_for(tile, numbers)
                new_node = tile_element(new_node, stored[tile])
        if new_node is not node:
            replaced[node] = new_node
            if recorder is not None:
                recorder.record(node_derived((node, new_node, "tiles")))
    return replaced.get(sink, sink)


def is_native(tile: UOp, nodes: list[UOp], lowering: Lowering) -> bool:
    """Whether the target has the instruction for this tile, and TC=2 does not force its emulation."""
    if config().TC >= EMULATED:
        return False
    users = [node for node in nodes if node.op is Ops.WMMA and tile in node.src]
    return all(TENSOR_CORES[user.arg] in lowering.target.cores for user in users)


def written_out_axes(tile: UOp) -> list[UOp]:
    """Returns the unrolled axes for which each step has its own tile."""
    return sorted([axis for axis in tile.ranges if axis.arg.kind in UNROLLED_KINDS], key=lambda axis: axis.arg.id)


def scratch_for(tile: UOp, numbers: count[int]) -> UOp:
    """Returns scratch memory for a tile, and for the tiles of unrolled steps."""
    size = prod([axis.size for axis in written_out_axes(tile)]) * tile.dtype.count
    return UOp(Ops.DEFINE_LOCAL, PtrDType(tile.dtype.scalar, size, "local"), (), f"matrix{next(numbers)}")


def start_of(tile: UOp) -> UOp:
    """Returns the offset of this step's tile in that memory."""
    return row_major(written_out_axes(tile)) * index_const(tile.dtype.count)


def load_tile(tile: UOp, numbers: count[int]) -> UOp:
    """Returns a tile of words as one load: from memory in tile order, or from scratch memory that is filled first."""
    value, rows, columns = tile.src
    if value.op is Ops.LOAD and len(value.src[0].src) == 2:
        index = value.src[0]
        terms, _ = linear_terms(index.src[1])
        if terms.get(columns) == 1 and terms.get(rows) == columns.size:
            first_index = index.substitute(
                {rows: index_const(0), columns: index_const(0)}, how="the first word of a tile"
            )
            return UOp(Ops.LOAD, tile.dtype, (first_index, *value.src[1:]))
    scratch, start = scratch_for(tile, numbers), start_of(tile)
    row = rows.replace(arg=Axis(rows.arg.id, AxisKind.COPY))
    value = value.substitute({rows: row}, how="a row of a tile")
    index = scratch.index(start + row * index_const(columns.size) + columns)
    filled = UOp(Ops.BARRIER, dtypes.void, (UOp(Ops.STORE, dtypes.void, (index, value)), row, columns))
    return UOp(Ops.LOAD, tile.dtype, (scratch.index(start), filled))


def tile_element(node: UOp, scratch: UOp) -> UOp:
    """Returns an element of a tile, read from scratch memory to which the tile is stored first."""
    tile, row, column = node.src
    start = start_of(tile)
    store = UOp(Ops.STORE, dtypes.void, (scratch.index(start), tile))
    columns = TENSOR_CORES[product_of(tile).arg].c.shape[1]
    index = scratch.index(start + row * index_const(columns) + column)
    return UOp(Ops.LOAD, node.dtype, (index, UOp(Ops.BARRIER, dtypes.void, (store,))))


def product_of(tile: UOp) -> UOp:
    """Returns the product whose sum is the tile."""
    return tile if tile.op is Ops.WMMA else tile.src[0]


def sum_of_dots(node: UOp, free_id: int) -> UOp:
    """Returns an element of a tile as a sum of dot products of the words that would fill A and B."""
    tile, row, column = node.src
    product = product_of(tile)
    core = TENSOR_CORES[product.arg]
    (left_word, rows, step_axis), (right_word, inner_rows, columns) = product.src[0].src, product.src[1].src
    step = UOp.range(inner_rows.src[0], Axis(free_id, AxisKind.REDUCE))
    left_word = left_word.substitute({rows: row, step_axis: step}, how="a word of a row")
    right_word = right_word.substitute({inner_rows: step, columns: column}, how="a word of a column")
    dot = UOp(DOTS[core.factor, core.accumulator], node.dtype, (left_word, right_word, UOp.const(node.dtype, 0)))
    loops = tile.src[1:] if tile.op is Ops.REDUCE else ()
    return UOp(Ops.REDUCE, node.dtype, (dot, *loops, step), Ops.ADD)


__all__ = ["lower_tiles"]

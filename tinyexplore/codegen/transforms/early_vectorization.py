"""Pass "early vectorization": turns lanes that only step through memory into vectors before tiles are unrolled.

They are then vectorized once, not once for each copy of a tile. The passes "vectorize memory" and "vectorize values"
handle the rest (masks, lanes in arithmetic). They examine each copy separately and therefore find more.
"""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.rewrites.vectorize import first_lane, lane_addresses, stride_along, vector_axis, widen
from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel.opts.stage import columns_at_a_time
from tinyexplore.trace import active_recorder, node_derived
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.uop import axes_mask

TILE_KINDS = frozenset({AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.VECTOR})
WIDENED_OPS = OpGroups.ALU | {Ops.REDUCE}
LANES_AXES = axes_mask((AxisKind.VECTOR,))


def vectorize_early(sink: UOp, lowering: Lowering) -> UOp:
    """Turns loads and stores with stride 1 along a VECTOR axis, and all values computed from them, into vectors.

        for j in vector(8): out[8*i + j] = x[8*i + j] * 2  →  out[8*i : 8*i + 8] = x[8*i : 8*i + 8] * 2

    A copy may read its source across the lanes, and with stride 1 along an UPCAST axis with as many steps as lanes.
    It then loads vectors along that axis. Lane j of a vector goes to lane i of copy j: a transposition in registers.
    """
    if not sink.mask & LANES_AXES:
        return sink
    nodes = sink.toposort()
    walks = unit_stride_axes(nodes)
    if not walks:
        return sink
    recorder = active_recorder()
    vectorized: dict[UOp, UOp] = {}
    for node in nodes:
        op, new_node = node.op, node
        if not vectorized.keys().isdisjoint(node.src):
            src = tuple([vectorized.get(source, source) for source in node.src])
            new_node = UOp(op, node.dtype, src, node.arg)
        if op is Ops.LOAD or op is Ops.STORE:
            axis = vector_axis(node.src[0])
            if axis in walks:
                new_node = vectorize_access(new_node, axis)
        elif op is Ops.BARRIER:
            new_node = new_node.replace(src=tuple([source for source in new_node.src if source not in walks]))
        elif new_node is not node and op in WIDENED_OPS:
            new_node = widen.function(new_node) or new_node
        if new_node is not node:
            vectorized[node] = new_node
            if recorder is not None:
                recorder.record(node_derived((node, new_node, "in lanes")))
    return vectorized[sink]


def vectorize_access(node: UOp, axis: UOp) -> UOp:
    """Returns a LOAD or STORE for all steps of `axis` at the same time."""
    index, *value_and_order = node.src
    pointer, idx, *valid = index.src
    if node.op is Ops.LOAD and stride_along(idx, axis) != 1:
        return column_vector(node, axis)
    start = UOp(Ops.INDEX, index.dtype, (pointer, first_lane(idx, axis), *valid))
    if node.op is Ops.LOAD:
        assert isinstance(node.dtype, DType)
        return UOp(Ops.LOAD, node.dtype.vec(axis.size), (start, *value_and_order))
    value, *order_sources = value_and_order
    return UOp(Ops.STORE, dtypes.void, (start, value.broadcast(axis.size), *order_sources))


def column_vector(load: UOp, axis: UOp) -> UOp:
    """Returns a vector with one lane from each row: the lane that the axis along the rows selects."""
    index = load.src[0]
    row_axis = next(axis_in_index for axis_in_index in index.ranges if has_unit_stride_rows(index, axis, axis_in_index))
    assert isinstance(load.dtype, DType)
    row_dtype = load.dtype.vec(row_axis.size)
    start = index.replace(src=(index.src[0], first_lane(index.src[1], row_axis)))
    rows = [UOp(Ops.LOAD, row_dtype, (row,)) for row in lane_addresses(start, axis, stride_along(index.src[1], axis))]
    lanes = tuple([UOp(Ops.GEP, load.dtype, (row, row_axis)) for row in rows])
    return UOp(Ops.VECTORIZE, load.dtype.vec(axis.size), lanes)


def has_unit_stride_rows(index: UOp, axis: UOp, row_axis: UOp) -> bool:
    """Whether `row_axis` walks neighbors in memory: one for each lane of `axis`, or a whole tile to transpose."""
    if row_axis.arg.kind is not AxisKind.UPCAST or stride_along(index.src[1], row_axis) != 1:
        return False
    itemsize = index.src[0].dtype.base.itemsize
    return row_axis.size == axis.size or row_axis.size == columns_at_a_time(axis.size, itemsize)


def unit_stride_axes(nodes: list[UOp]) -> set[UOp]:
    """Returns the VECTOR axes that occur only in addresses, with stride 1 in every access (or across rows that a tile
    reads).

    Empty if the index of a tile is used in arithmetic: each copy of the tile has its own simplifications.
    """
    walks = {node for node in nodes if node.op is Ops.RANGE and node.arg.kind is AxisKind.VECTOR}
    numbers: set[UOp] = set()  # the axes of tiles, and all nodes computed from them
    strided_loads: dict[UOp, UOp] = {}  # loads that a transposition in registers can replace, and their axes
    for node in nodes:
        op = node.op
        if op is Ops.RANGE:
            if node.arg.kind in TILE_KINDS:
                numbers.add(node)
            continue
        uses_lanes = not (numbers.isdisjoint(node.src) and strided_loads.keys().isdisjoint(node.src))
        for number, source in enumerate(node.src) if uses_lanes else ():
            if source in strided_loads and not (
                op is Ops.STORE and number == 1 and has_unit_stride(node, strided_loads[source])
            ):
                walks.discard(strided_loads[source])
            if source not in numbers:
                continue
            if op in OpGroups.ALU:
                numbers.add(node)
            elif not is_plain_use(node, number):
                if op is not Ops.INDEX and source.op is not Ops.RANGE:
                    return set()
                walks.difference_update(source.ranges)
        if op is Ops.LOAD or op is Ops.STORE:
            sort_access(node, walks, strided_loads)
        elif op is Ops.SCAN:
            walks.difference_update(node.ranges)
    return walks


def sort_access(access: UOp, walks: set[UOp], strided_loads: dict[UOp, UOp]) -> None:
    """Adds a LOAD or STORE to `strided_loads`, or removes its axis from `walks` if it has neither unit stride."""
    axis = vector_axis(access.src[0])
    if axis is None:
        return
    if access.op is Ops.LOAD and is_across(access, axis):
        strided_loads[access] = axis
    elif not has_unit_stride(access, axis):
        walks.discard(axis)


def is_plain_use(node: UOp, number: int) -> bool:
    """Whether the index of a tile, a source of `node`, is part of an address, or `node` closes its loop."""
    source = node.src[number]
    if node.op is Ops.INDEX:
        return number == 1 or vector_axis(source) is None
    if node.op is Ops.BARRIER:
        return True
    return node.op is Ops.REDUCE and number > 0 and source.arg.kind is not AxisKind.VECTOR


def has_unit_stride(node: UOp, axis: UOp) -> bool:
    """Whether an access has neighbors in memory in neighboring lanes, and waits for nothing that depends on these
    lanes."""
    index, *other_sources = node.src
    if stride_along(index.src[1], axis) != 1 or len(other_sources) > 1:
        return False
    return node.op is Ops.STORE or all(axis not in wait.ranges for wait in other_sources)


def is_across(load: UOp, axis: UOp) -> bool:
    """Whether the lanes of a load are in different rows of memory, which a tile reads along."""
    index = load.src[0]
    stride = stride_along(index.src[1], axis)
    if stride is None or abs(stride) < axis.size or len(index.src) == 3 or len(load.src) > 1:
        return False
    return any(has_unit_stride_rows(index, axis, row_axis) for row_axis in index.ranges)


__all__ = ["vectorize_early"]

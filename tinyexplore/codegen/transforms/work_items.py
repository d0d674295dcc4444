"""Pass "work items": on a GPU, turns output loops into a grid, and lets a group combine its reductions in shared
memory."""

from __future__ import annotations

from itertools import count
from math import prod

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.scratch import row_major
from tinyexplore.kernel.analysis.strides import vector_along
from tinyexplore.kernel.analysis.work_groups import (
    fills_shared,
    grid_axes,
    group_axis_of,
    group_dimensions,
    grouped_reductions,
)
from tinyexplore.kernel.transforms.substitute import record_derived, substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.symbolic import as_size, product

MAX_DIMENSIONS = 3
MAX_GRID_SIZE = 65535  # greatest size of a grid's second and third dimension
UNROLLED_KINDS = (AxisKind.UPCAST, AxisKind.UNROLL)


def place_work_items(sink: UOp, lowering: Lowering) -> UOp:
    """Turns output loops into a grid of work-groups. The work-items of a group share reductions and copies (a GPU
    only).

        for g: for l (local): out[16*g + l] = f  →  out[16*gidx0 + lidx0] = f
        acc = sum over k, q (group) of f  →  shared[lidx0] = sum over k of f; barrier; acc = sum over j of shared[j]
        for t: tile[t] = a[t]; barrier    →  for s: tile[16*s + lidx0] = a[16*s + lidx0]; barrier

    A store that does not depend on a dimension of the group is done only by the first work-item of that dimension.
    """
    if not lowering.target.has_local:
        return sink
    dimensions = group_dimensions(sink)
    items = [special(f"lidx{number}", index_const(axes[0].size)) for number, axes in enumerate(dimensions)]
    coordinate_of = grid_indices(grid_axes(sink), "gidx" if lowering.has_groups else "idx")
    for axes, item in zip(dimensions, items):
        coordinate_of.update(dict.fromkeys(axes, item))
    stores = [with_gate(store, gate_condition(dimensions, items, store)) for store in sink.src]
    record_derived(zip(sink.src, stores), "by one work-item")
    numbers = count(1 + max((axis.arg.id for axis in sink.find(Ops.RANGE)), default=-1))
    synchronized: dict[UOp, UOp] = {}
    for barrier in filter(fills_shared, sink.find(Ops.BARRIER)):
        synchronized[barrier] = fill_together(barrier, items, numbers, lowering.target.access_bytes)
        record_derived([(barrier, synchronized[barrier])], "by all work-items of the group")
    for number, reduce in enumerate(grouped_reductions(sink)):
        partial = reduce.substitute(synchronized, how="in shared memory")  # it may read the results of other reductions
        group_result = group_reduction(
            partial, f"shared{number}", items[0], gate_condition(dimensions[1:], items[1:], reduce), numbers
        )
        record_derived([(partial, group_result)], "in shared memory")
        synchronized[reduce] = group_result
    synchronized_sink = UOp.sink(*stores).substitute(synchronized, how="in shared memory")
    return substitute_recorded(synchronized_sink, coordinate_of, "a work-item")


def special(name: str, end: UOp) -> UOp:
    """Returns the index of a work-item, or of its group, along one dimension."""
    return UOp(Ops.SPECIAL, dtypes.index, (end,), name)


def grid_indices(axes: list[UOp], name: str) -> dict[UOp, UOp]:
    """Returns the index that replaces each axis of the grid. The innermost axis is the first dimension.

    If there are too many axes, or one is too long, they are the digits of a single dimension.
    """
    inside_out = list(reversed(axes))
    if len(axes) <= MAX_DIMENSIONS and all(axis.size <= MAX_GRID_SIZE for axis in inside_out[1:]):
        return {axis: special(f"{name}{number}", axis.src[0]) for number, axis in enumerate(inside_out)}
    position, coordinate_of = special(f"{name}0", as_size(product(axis.src[0] for axis in axes))), {}
    for axis in inside_out:
        is_outermost = axis is axes[0]
        coordinate_of[axis] = position if is_outermost else position.alu(Ops.MOD, axis.src[0])
        position = position.alu(Ops.IDIV, axis.src[0])
    return coordinate_of


def gate_condition(dimensions: list[list[UOp]], items: list[UOp], node: UOp) -> UOp | None:
    """Returns the condition to execute `node`: in the first work-item of each dimension that it does not depend on."""
    condition: UOp | None = None
    for axes, item in zip(dimensions, items):
        if node.ranges.isdisjoint(axes):
            is_first = item.eq(0)
            condition = is_first if condition is None else condition & is_first
    return condition


def with_gate(store: UOp, condition: UOp | None) -> UOp:
    """Returns `store`, executed only if `condition` holds."""
    if condition is None:
        return store
    index, *stored_sources = store.src
    pointer, idx, *valid = index.src
    return store.replace(src=(pointer.index(idx, valid[0] & condition if valid else condition), *stored_sources))


def fill_together(barrier: UOp, items: list[UOp], numbers: count[int], most_bytes: int) -> UOp:
    """Fills shared memory by all `items` of a group. Neighboring work-items copy neighbors, and each element is copied
    once.

    Elements that form vectors in memory are copied in vectors, if there is at least one vector for each work-item.
    """
    store, *loops = barrier.src
    number, size = index_const(0), 1
    for item in items:
        number, size = number + item * index_const(size), size * item.src[0].arg
    elements = prod(loop.size for loop in loops)
    lanes = vector_along(store.src[1].src[0], loops[-1], most_bytes) if loops and store.src[1].op is Ops.LOAD else 1
    while lanes > 1 and elements < lanes * size:
        lanes //= 2
    elements //= lanes
    vector = [UOp.range(lanes, Axis(next(numbers), AxisKind.UPCAST))] if lanes > 1 else []
    steps = -(-elements // size)
    looks_ahead = any(loop.arg.ahead for loop in barrier.ranges)  # registers then hold the copies of every round
    round_of = UOp.range(steps, Axis(next(numbers), AxisKind.UPCAST if looks_ahead else AxisKind.COPY))
    position = number + round_of * index_const(size) if steps > 1 else number
    is_inside = position < elements if elements % size else None
    replaced: dict[UOp, UOp] = {}
    for loop in reversed(loops):
        size_of_loop = index_const(loop.size // lanes) if loop is loops[-1] else loop.src[0]
        replaced[loop] = position if loop is loops[0] else position.alu(Ops.MOD, size_of_loop)
        if vector and loop is loops[-1]:
            replaced[loop] = replaced[loop] * index_const(lanes) + vector[0]
        position = position.alu(Ops.IDIV, size_of_loop)
    if is_inside is not None:  # past the end of the copy, an address may be past the end of a buffer
        for load in store.src[1].find(Ops.LOAD):
            pointer, idx, *valid = load.src[0].src
            replaced[load] = load.replace(
                src=(pointer.index(idx, valid[0] & is_inside if valid else is_inside),)
            ).substitute({loop: replaced[loop] for loop in loops})
    copied = with_gate(store.substitute(replaced, how="a work-item's part"), is_inside)
    return UOp(Ops.BARRIER, dtypes.void, (copied, *([round_of] if steps > 1 else []), *vector))


def group_reduction(reduce: UOp, name: str, item: UOp, condition: UOp | None, numbers: count[int]) -> UOp:
    """Computes a reduction of the group. Each work-item stores its part in shared memory, then waits, then combines all
    parts.

    item: its index along the reduction.
    condition: which work-items store their part.
    """
    axis = group_axis_of(reduce)
    assert axis is not None
    item_loops = tuple(loop for loop in reduce.src[1:] if loop is not axis)
    value = reduce.src[0].substitute({axis: item}, how="a work-item's part")
    partial = UOp(Ops.REDUCE, reduce.dtype, (value, *item_loops), reduce.arg) if item_loops else value
    tile = sorted((loop for loop in reduce.ranges if loop.arg.kind in UNROLLED_KINDS), key=lambda loop: loop.arg.id)
    local = sorted((loop for loop in reduce.ranges if loop.arg.kind is AxisKind.LOCAL), key=lambda loop: loop.arg.id)
    all_loops = [*local, *tile, axis]
    space = UOp(Ops.DEFINE_LOCAL, PtrDType(reduce.dtype, prod(loop.size for loop in all_loops), "shared"), (), name)
    new_loops = {loop: UOp.range(loop.size, Axis(next(numbers), AxisKind.UPCAST)) for loop in tile}
    position = row_major(all_loops)
    address = space.index(position.substitute({axis: item, **new_loops}))
    store = with_gate(
        UOp(Ops.STORE, dtypes.void, (address, partial.substitute(new_loops, how="a tile's parts"))), condition
    )
    filled = UOp(Ops.BARRIER, dtypes.void, (store, *new_loops.values()))
    read_loop = UOp.range(axis.size, Axis(next(numbers), AxisKind.REDUCE))
    loaded = UOp(Ops.LOAD, reduce.dtype, (space.index(position.substitute({axis: read_loop})), filled))
    return UOp(Ops.REDUCE, reduce.dtype, (loaded, read_loop), reduce.arg)


__all__ = ["place_work_items"]

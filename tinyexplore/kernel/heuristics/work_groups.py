"""Proposes the work-groups of a GPU, shared reductions, and the register tile of each work-item."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinyexplore.kernel.analysis.access import is_inside_reduction, shares_loads
from tinyexplore.kernel.analysis.strides import IndexStrides, vector_along
from tinyexplore.kernel.analysis.work_groups import grid_axes, group_items
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, reaches
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, Ops, UOp

# a policy for all GPUs: the name of a GPU does not say how many multiprocessors it has
MIN_ITEMS_FOR_SERIAL_REDUCTIONS = (
    1 << 15
)  # work-items: from here on each computes its own reduction, and no GPU is idle
MIN_ITEMS_FOR_TILES = 4096  # fewer work-items, with a tile of results each, leave most of a GPU idle
LONG_REDUCTION = 64  # steps: a shorter reduction takes no longer than combining results in shared memory
MAX_GROUP_ITEMS = 256  # work-items of a group: every GPU supports these, and they hide the latency of memory
TILE_SIZE = 4  # rows, and columns, of a work-item's tile of a product
GROUP_SIDE = 16  # work-items of a group along each side of a product
MAX_LANES = 8  # most elements of an elementwise result per work-item; all are unrolled
UNKNOWN_DISTANCE = 1 << 62  # stands for an address that does not move, or by a varying distance
BLOCK = 16  # steps of a product's sum whose operands are in shared memory at the same time


def power_below(limit: int) -> int:
    """Returns the greatest power of two that is at most `limit`."""
    return 1 << max(0, limit.bit_length() - 1)


def sharing_items(steps: int, fewest: int, largest: int) -> int:
    """Returns how many work-items share a reduction: the power of two with the fewest steps per work-item.

    These steps are: its part, the remainder, which each computes alone, and one per part to combine the parts.
    """
    counts = [1 << bits for bits in range(fewest.bit_length() - 1, largest.bit_length())]
    return min(counts, key=lambda items: steps // items + steps % items + items)


def share_reductions(kernel: Kernel) -> Proposals:
    """Proposes GROUP for long reductions if the grid is small: a few work-items would compute all steps in sequence.

    LOCAL then divides a row that is read again after the reduction among the same work-items.
    """
    if kernel.find(Ops.WMMA):
        return  # the lanes of a warp already share the sum
    items = prod(axis.size for axis in grid_axes(kernel.ast))
    loops = dict.fromkeys(max(reduce.src[1:], key=lambda loop: loop.arg.id) for reduce in kernel.reduces)
    longest = max((loop.size for loop in loops), default=1)
    if reaches("work-items in the grid", items, MIN_ITEMS_FOR_SERIAL_REDUCTIONS):
        return
    if not reaches("iterations of the longest reduction", longest, LONG_REDUCTION):
        return
    amount = sharing_items(longest, kernel.target.warp, min(MAX_GROUP_ITEMS, kernel.target.group_items))
    for loop in loops:
        if loop.size >= amount:
            reason = f"the grid has only {items} work-items, so {amount} share each reduction of {loop.size} iterations"
            kernel = yield Proposal(Opt(OptOps.GROUP, loop.arg.id, amount), reason)
    if group_items(kernel.ast) < amount:
        return
    in_grid = grid_axes(kernel.ast)
    reread_axes = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL and axis not in in_grid]
    if reread_axes and reread_axes[-1].is_static and reread_axes[-1].size >= amount:
        reason = "the work-items of the reduction also share the loop over its row"
        yield Proposal(Opt(OptOps.LOCAL, reread_axes[-1].arg.id, amount), reason)


def loop_of_large_product(kernel: Kernel, axes: Sequence[UOp], loads: Sequence[IndexStrides]) -> UOp | None:
    """Returns the longest loop of the sum, if the kernel is one product that fills work-groups along both `axes`;
    else None."""
    if not kernel.target.shared_is_near or len(axes) < 2 or len(loads) < 2 or len(kernel.reduces) != 1:
        return None
    loop = max(kernel.reduces[0].src[1:], key=lambda loop: loop.size)
    shared_sizes = [axis.size for axis in axes if axis.is_static and shares_loads(axis, loads)]
    return (
        None if len(shared_sizes) < 2 or loop.size < 2 * BLOCK or min(shared_sizes) < GROUP_SIDE * TILE_SIZE else loop
    )


def tile_in_shared_memory(kernel: Kernel) -> Proposals:
    """Proposes UPCAST, LOCAL and STAGE for large products: a square of work-items with a tile of results each.

    If memory is accessed in vectors, the rows and columns of a tile are neighbors: one vector of shared memory, and one
    of the result. Otherwise the distance between them is the side of the group, so that neighboring work-items read and
    store neighbors. The group copies operands into shared memory once. On a CPU, where shared memory is ordinary,
    it proposes nothing, because a copy gains nothing.
    """
    axes = grid_axes(kernel.ast)[-2:]
    loads = [access for access in kernel.accesses if not access.is_store and is_inside_reduction(access)]
    loop = loop_of_large_product(kernel, axes, loads)
    if loop is None:
        return
    items = prod(axis.size for axis in grid_axes(kernel.ast)) // TILE_SIZE**2
    if not reaches("work-items in the grid, with one tile of results each", items, MIN_ITEMS_FOR_TILES):
        return
    stores = [access for access in kernel.accesses if access.is_store]
    outer, inner = sorted(axes, key=lambda axis: (all(store.stride(axis) == 1 for store in stores), axis.arg.id))
    in_vectors = [axis for axis in (outer, inner) if kernel.target.access_bytes and axis.size % TILE_SIZE == 0]
    for axis in in_vectors:
        reason = f"register tile: each vector load reads values for {TILE_SIZE} neighboring results"
        kernel = yield Proposal(Opt(OptOps.UPCAST, axis.arg.id, TILE_SIZE), reason)
    for axis in (outer, inner):
        kernel = yield Proposal(
            Opt(OptOps.LOCAL, axis.arg.id, GROUP_SIDE),
            f"a square work-group of {GROUP_SIDE} × {GROUP_SIDE} work-items shares its operands",
        )
    for axis in (outer, inner):
        if axis not in in_vectors:
            reason = f"register tile: each loaded value is used for {TILE_SIZE} results, {GROUP_SIDE} apart"
            kernel = yield Proposal(Opt(OptOps.UPCAST, axis.arg.id, TILE_SIZE), reason)
    count = GROUP_SIDE
    reason = f"{count} work-items share each operand, so the group reads global memory once instead of {count} times"
    yield Proposal(Opt(OptOps.STAGE, loop.arg.id, BLOCK), reason)


def tile_items(kernel: Kernel) -> Proposals:
    """Proposes UPCAST of axes along which a reduction reads the same values. Each loaded value is then used for a
    tile of results."""
    loads = [access for access in kernel.accesses if not access.is_store and is_inside_reduction(access)]
    for axis in grid_axes(kernel.ast)[-2:]:
        items = prod(grid_axis.size for grid_axis in grid_axes(kernel.ast))
        if not shares_loads(axis, loads) or not loads or axis.size % TILE_SIZE:
            continue
        if reaches("work-items in the grid after this opt", items // TILE_SIZE, MIN_ITEMS_FOR_TILES):
            reason = f"register tile: each loaded value is used for {TILE_SIZE} results"
            kernel = yield Proposal(Opt(OptOps.UPCAST, axis.arg.id, TILE_SIZE), reason)


def take_vectors(kernel: Kernel) -> Proposals:
    """Proposes UPCAST of neighboring elementwise results, if a work-item then reads and stores everything in vectors.

    A warp then moves the same bytes with a quarter of the instructions, or fewer, and computes addresses once. Proposes
    nothing if an operand is read in another order: one work-item would read its neighbors, and no warp would read
    neighbors any more. Proposes nothing either if too few work-items would remain.
    """
    access_bytes = kernel.target.access_bytes
    if not access_bytes or kernel.reduces or kernel.find(Ops.SCAN) or kernel.find(Ops.BARRIER):
        return
    axes = grid_axes(kernel.ast)
    for axis in reversed(axes):
        accesses_of_axis = [access for access in kernel.accesses if axis in access.node.ranges]
        lanes = min([MAX_LANES, *(vector_along(access.node, axis, access_bytes) for access in accesses_of_axis)])
        if lanes > 1:
            items = prod(output_axis.size for output_axis in axes) // lanes
            if reaches("work-items in the grid after this opt", items, MIN_ITEMS_FOR_SERIAL_REDUCTIONS):
                reason = f"vector loads and stores access {lanes} neighboring elements"
                yield Proposal(Opt(OptOps.UPCAST, axis.arg.id, lanes), reason)
            return


def divide_into_groups(kernel: Kernel) -> Proposals:
    """Proposes LOCAL for the grid, first for axes that are contiguous in memory, so that a warp accesses one stretch of
    it.

    Products with shared rows and columns get square groups. If no size is known before the call, proposes NOLOCALS.
    """
    axes = grid_axes(kernel.ast)
    if not axes or group_items(kernel.ast) >= kernel.target.warp:
        return
    stores = [access for access in kernel.accesses if access.is_store]
    inner = sorted(
        axes, key=lambda axis: (min(abs(store.stride(axis) or UNKNOWN_DISTANCE) for store in stores), -axis.arg.id)
    )
    room = min(MAX_GROUP_ITEMS, kernel.target.group_items) // group_items(kernel.ast)
    square = bool(kernel.reduces) and len(axes) > 1
    local_axes: list[tuple[UOp, int]] = []
    for axis in inner[:2]:
        amount = power_below(min(axis.size, GROUP_SIDE if square else room, room))
        if amount > 1 and axis.is_static:
            local_axes.append((axis, amount))
            room //= amount
    for axis, amount in reversed(local_axes):  # the last axis is the fastest
        reason = f"a work-group computes {amount} neighboring results along this axis"
        kernel = yield Proposal(Opt(OptOps.LOCAL, axis.arg.id, amount), reason)
    if group_items(kernel.ast) == 1:
        yield Proposal(
            Opt(OptOps.NOLOCALS, kernel.axes[0].arg.id),
            "no axis size is known before the call, so the runtime chooses the work-group",
        )

"""PIPELINE on a GPU (double buffering): loads the next block of a staged operand while it computes a block."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType
from tinyexplore.kernel.analysis.work_groups import fills_shared, group_items, grouped_reductions
from tinyexplore.kernel.opts.kind import Effect
from tinyexplore.kernel.opts.legality import reduction_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

BUFFERS = 2  # copies of each tile: one is read while the other is filled
MAX_NEXT_BLOCK_BYTES = (
    128  # most bytes of the next block per work-item: what the registers of a full multiprocessor can hold
)
EFFECT = Effect(
    "On a GPU: double buffering of a reduction that STAGE has split into blocks (`axis` is the loop over blocks). "
    "Each shared-memory tile has `amount` = 2 halves, and blocks alternate between them. Work-items load the next "
    "block into registers while they compute the current block. One barrier per step is enough, because the next "
    "block is stored in the half that no work-item reads. No Opt may follow",
    before="""\
for k in 0..4: p[...] = a[k,...]
               barrier
               for l: acc += p[...]
               barrier""",
    after="""\
next = a[0,...]
for k in 0..4: p[k % 2,...] = next
               barrier
               if k+1 < 4: next = a[k+1,...]
               for l: acc += p[k % 2,...]""",
)


def tiles_filled(kernel: Kernel, axis: UOp) -> list[UOp]:
    """Returns the BARRIERs of the tiles in shared memory that are refilled in each step of `axis`."""
    return [node for node in kernel.find(Ops.BARRIER) if fills_shared(node) and axis in node.ranges]


def spaces_of(tiles: list[UOp]) -> set[UOp]:
    """Returns the shared memory that `tiles` fill."""
    return {tile.src[0].src[0].src[0] for tile in tiles}


def bytes_held(kernel: Kernel, tiles: list[UOp]) -> int:
    """Returns how many bytes of one block each work-item copies. Registers hold them until they are stored."""
    items = group_items(kernel.ast)
    stores = [(tile.src[0].src[1].dtype.itemsize, prod(loop.size for loop in tile.src[1:])) for tile in tiles]
    return sum(itemsize * -(-elements // items) for itemsize, elements in stores)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (reason := reduction_error(axis)) is not None:
        return reason
    tiles = tiles_filled(kernel, axis)
    if not tiles:
        return f"axis {axis.arg.id} fills no shared-memory tile; apply STAGE with at least two blocks first"
    if any(is_inside(loop, axis) for tile in tiles for loop in tile.ranges):
        return f"an inner loop of axis {axis.arg.id} fills the shared-memory tiles; choose that loop"
    spaces = spaces_of(tiles)
    if any(
        fills_shared(node) and node not in tiles and spaces_of([node]) & spaces for node in kernel.find(Ops.BARRIER)
    ):
        return "the loop over the remainder of the reduction fills the same shared-memory tiles"
    if any(axis in reduce.ranges for reduce in grouped_reductions(kernel.ast)):
        return f"each step of axis {axis.arg.id} also contains a reduction that a work-group shares"
    if amount != BUFFERS:
        return (
            f"double buffering uses {BUFFERS} buffers, one for the current block and one for the next; choose {BUFFERS}"
        )
    if (nbytes := bytes_held(kernel, tiles)) > MAX_NEXT_BLOCK_BYTES:
        return (
            f"each work-item would hold {nbytes} bytes of the next block in registers: choose a larger work-group, or "
            f"blocks of fewer steps (at most {MAX_NEXT_BLOCK_BYTES} bytes)"
        )
    return None


def is_inside(loop: UOp, axis: UOp) -> bool:
    return loop.arg.kind is AxisKind.REDUCE and loop.arg.id > axis.arg.id


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Gives each tile two halves. Blocks alternate between them, and the loop loads one step ahead."""
    spaces = spaces_of(tiles_filled(kernel, axis))
    changes = {axis: axis.replace(arg=replace(axis.arg, ahead=1))}
    for index in kernel.find(Ops.INDEX):
        if (space := index.src[0]) in spaces:
            size = space.dtype.size
            halves = space.replace(dtype=PtrDType(space.dtype.base, BUFFERS * size, "shared"))
            half_start = changes[axis].alu(Ops.MOD, index_const(BUFFERS)) * index_const(size)
            changes[index] = halves.index(half_start + index.src[1], *index.src[2:])
    return substitute_recorded(kernel.ast, changes, str(opt))


__all__ = ["BUFFERS", "EFFECT", "apply", "legality_error"]

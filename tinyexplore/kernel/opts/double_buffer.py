"""PIPE on a GPU: the next block of what is staged is read while a block is computed (double buffering)."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType
from tinyexplore.kernel.analysis.work_groups import fills_shared, group_items, grouped_reductions
from tinyexplore.kernel.opts.kind import Law
from tinyexplore.kernel.opts.obstacles import no_reduction
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

BUFFERS = 2  # of each tile
MOST_HELD = 128  # bytes of the next block in a work-item's registers: of as many as a full multiprocessor has for each
LAW = Law(
    "On a GPU (`axis` is a reduction's, staged in blocks): double buffering. Each tile has `amount` = 2 halves, which "
    "blocks take in turns. The next block is on its way from memory to registers while this one is computed, and a "
    "step waits once: what is stored next goes where nobody reads (it comes last)",
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
    """The BARRIERs of the tiles in shared memory that are filled again in each step of `axis`."""
    return [node for node in kernel.find(Ops.BARRIER) if fills_shared(node) and axis in node.ranges]


def spaces_of(tiles: list[UOp]) -> set[UOp]:
    """The shared memory that they fill."""
    return {tile.src[0].src[0].src[0] for tile in tiles}


def bytes_held(kernel: Kernel, tiles: list[UOp]) -> int:
    """What each work-item copies of one block, in bytes: until it is stored, registers hold it."""
    items = group_items(kernel.ast)
    stores = [(tile.src[0].src[1].dtype.itemsize, prod(loop.size for loop in tile.src[1:])) for tile in tiles]
    return sum(itemsize * -(-elements // items) for itemsize, elements in stores)


def obstacle(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (reason := no_reduction(axis)) is not None:
        return reason
    tiles = tiles_filled(kernel, axis)
    if not tiles:
        return "no tile in shared memory is filled in each step of it: STAGE does that, in two blocks or more"
    if any(is_inside(loop, axis) for tile in tiles for loop in tile.ranges):
        return "the tiles are filled in a loop inside of it: that one has the blocks"
    spaces = spaces_of(tiles)
    if any(
        fills_shared(node) and node not in tiles and spaces_of([node]) & spaces for node in kernel.find(Ops.BARRIER)
    ):
        return "what is left over of another reduction fills the same tiles, in a loop that this is not"
    if any(axis in reduce.ranges for reduce in grouped_reductions(kernel.ast)):
        return "the work-items of a group meet in each step of it as well, for a reduction that they share"
    if amount != BUFFERS:
        return f"a tile has two halves, one for the block that is read and one for the next: choose {BUFFERS}"
    if (nbytes := bytes_held(kernel, tiles)) > MOST_HELD:
        return (
            f"registers of each work-item would hold {nbytes} bytes of the next block: choose a larger work-group, or "
            f"blocks of fewer steps ({MOST_HELD} bytes at the most)"
        )
    return None


def is_inside(loop: UOp, axis: UOp) -> bool:
    return loop.arg.kind is AxisKind.REDUCE and loop.arg.id > axis.arg.id


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Each tile twice as large, the blocks in its halves interleaved, and the loop looking one step ahead."""
    spaces = spaces_of(tiles_filled(kernel, axis))
    changes = {axis: axis.replace(arg=replace(axis.arg, ahead=1))}
    for place in kernel.find(Ops.INDEX):
        if (space := place.src[0]) in spaces:
            size = space.dtype.size
            halves = space.replace(dtype=PtrDType(space.dtype.base, BUFFERS * size, "shared"))
            half = changes[axis].alu(Ops.MOD, index_const(BUFFERS)) * index_const(size)
            changes[place] = halves.index(half + place.src[1], *place.src[2:])
    return substitute_recorded(kernel.ast, changes, str(opt))


__all__ = ["BUFFERS", "LAW", "apply", "obstacle"]

"""Work-groups: the output axes that form the grid, and the axes that share a dimension of the group."""

from __future__ import annotations

from math import prod

from tinyexplore.uop import AxisKind, Ops, UOp

WHOLE_VALUE_OPS = frozenset({Ops.REDUCE, Ops.SCAN, Ops.BARRIER})


def grid_axes(ast: UOp) -> list[UOp]:
    """Returns the GLOBAL axes that are dimensions of the grid, outermost first. The others are loops of each work-item.

    Steps of a grid axis are independent: every store, every reduction and every fill of scratch memory depends on the
    axis. Therefore nothing is computed twice, and no two work-items store to one address. Each group makes its own
    copies in shared memory (STAGE).
    """
    whole_nodes = [
        *ast.src,
        *(node for node in ast.toposort() if node.op in WHOLE_VALUE_OPS and not fills_shared(node)),
    ]
    shared = frozenset.intersection(*(node.ranges for node in whole_nodes)) if whole_nodes else frozenset[UOp]()
    return sorted((axis for axis in shared if axis.arg.kind is AxisKind.GLOBAL), key=lambda axis: axis.arg.id)


def fills_shared(node: UOp) -> bool:
    """Whether `node` is a BARRIER of shared memory, which the work-items of a group fill together (STAGE)."""
    return node.op is Ops.BARRIER and is_shared(node.src[0].src[0].src[0])


def is_shared(memory: UOp) -> bool:
    return memory.op is Ops.DEFINE_LOCAL and bool(memory.dtype.space == "shared")


def group_dimensions(ast: UOp) -> list[list[UOp]]:
    """Returns the axes that map to each dimension of the work-group, fastest dimension first.

    All GROUP axes share the first dimension. So does a LOCAL axis of the same size on which no reduction of the group
    depends: the work-items that shared the maximum of a row then divide the row among themselves. The lanes of a warp
    are the first dimension, because a warp consists of neighbors in a group.
    """
    axes = [node for node in ast.toposort() if node.op is Ops.RANGE]
    grouped = [axis for axis in axes if axis.arg.kind is AxisKind.GROUP]
    local = [axis for axis in axes if axis.arg.kind in (AxisKind.LOCAL, AxisKind.WARP)]
    local.sort(key=lambda axis: (axis.arg.kind is AxisKind.LOCAL, -axis.arg.id))
    if not grouped:
        return [[axis] for axis in local]
    outer_axes = frozenset[UOp]().union(*(reduce.ranges for reduce in grouped_reductions(ast)))
    first_local = [axis for axis in local if axis.size == grouped[0].size and axis not in outer_axes][:1]
    return [[*grouped, *first_local], *([axis] for axis in local if axis not in first_local)]


def group_items(ast: UOp) -> int:
    """Returns the number of work-items in a group."""
    return prod(dimension[0].size for dimension in group_dimensions(ast))


def group_axis_of(reduce: UOp) -> UOp | None:
    """Returns the axis of a reduction that the work-items of a group share; None if there is none."""
    return next((axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.GROUP), None)


def grouped_reductions(ast: UOp) -> list[UOp]:
    """Returns the reductions that the work-items of a group share, sources first."""
    return [node for node in ast.toposort() if node.op is Ops.REDUCE and group_axis_of(node) is not None]


def shared_bytes(ast: UOp) -> int:
    """Returns the bytes of shared memory that a kernel needs: for staged tiles and grouped reductions.

    A grouped reduction needs a partial result of each work-item, for each unrolled step of a tile.
    """
    total = sum(int(node.dtype.size * node.dtype.base.itemsize) for node in ast.toposort() if is_shared(node))
    written_out = (AxisKind.UPCAST, AxisKind.UNROLL, AxisKind.LOCAL)
    for reduce in grouped_reductions(ast):
        axis = group_axis_of(reduce)
        assert axis is not None
        steps = prod(loop.size for loop in reduce.ranges if loop.arg.kind in written_out)
        total += axis.size * steps * int(reduce.dtype.itemsize)
    return total


__all__ = [
    "fills_shared",
    "grid_axes",
    "group_axis_of",
    "group_dimensions",
    "group_items",
    "grouped_reductions",
    "shared_bytes",
]

"""TRANSPOSE_STORE: writes a tile of results to scratch memory, and stores it from there in memory order."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.kernel.analysis.scratch import PACKING_ORDER, row_major
from tinyexplore.kernel.analysis.strides import strides_of
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import scatter_order_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

TILE_KINDS = (AxisKind.UPCAST, AxisKind.VECTOR)
EFFECT = Effect(
    "Writes each register tile of results to scratch memory, and stores it from there in memory order. `axis` is a "
    "vector axis whose lanes are not contiguous in memory (`amount` is not used)",
    before="for i: out[9*(16*i .. 16*i+15)] = f",
    after="for i: s[0 .. 15] = f; for l in 0..16: out[9*(16*i+l)] = s[l]",
)


def legality_error(kernel: Kernel, axis: UOp, _: int) -> str | None:
    if (reason := scatter_order_error(kernel)) is not None:
        return reason
    if axis.arg.kind is not AxisKind.VECTOR or axis not in kernel.output_axes:
        return f"the axis is {axis.arg.kind.value}; TRANSPOSE_STORE needs a vector axis of the output"
    if all(strides_of(store.src[0].src[1]).get(axis) == 1 for store in kernel.ast.src):
        return "the lanes of the vector are already contiguous in memory"
    if any(is_filled_twice(store) for store in kernel.ast.src):
        return "the reductions and the stores read the same scratch memory, which would be filled twice"
    return None


def apply(kernel: Kernel, _: UOp, opt: Opt) -> UOp:
    return substitute_recorded(kernel.ast, collect_stores(kernel), str(opt))


def collect_stores(kernel: Kernel) -> dict[UOp, UOp]:
    """Maps each store of a tile to the store of its elements from scratch memory, one by one.

    Scratch memory holds the sums that the tile accumulates. Operations on these sums, and on other operands, run for
    each element when it is stored.
    """
    changes: dict[UOp, UOp] = {}
    numbers: dict[UOp, int] = {}
    next_id = kernel.next_id()
    for store in kernel.ast.src:
        strides = strides_of(store.src[0].src[1])
        axes = [axis for axis in store.ranges if axis.arg.kind in TILE_KINDS]
        copies: dict[UOp, UOp] = {}
        for axis in sorted(axes, key=lambda axis: (-abs(strides.get(axis) or 0), axis.arg.id)):
            copies[axis] = UOp.range(axis.size, Axis(next_id + len(copies), AxisKind.COPY))
        next_id += len(copies)
        elements = {}
        for value in direct_reductions(store):
            name = f"tile{numbers.setdefault(value, len(numbers))}"
            elements[value] = load_collected(name, value, copies)
        changes[store] = store.substitute({**elements, **copies}, how="TRANSPOSE_STORE")
    return changes


def direct_reductions(store: UOp) -> list[UOp]:
    """Returns the reductions that differ within a tile and that the stored value reads directly; if none, the value
    itself."""
    reduces = [node for node in nodes_outside(store, ()) if node.op is Ops.REDUCE and tile_axes(node)]
    return reduces or [store.src[1]]


def nodes_outside(store: UOp, values: Collection[UOp]) -> list[UOp]:
    """Returns the nodes of a stored value, without sources of `values` or of reductions that differ within a tile."""
    outer_nodes: dict[UOp, None] = {}
    waiting = [store.src[1]]
    while waiting:
        node = waiting.pop()
        if node in outer_nodes:
            continue
        outer_nodes[node] = None
        if node not in values and not (node.op is Ops.REDUCE and tile_axes(node)):
            waiting.extend(reversed(node.src))
    return list(outer_nodes)


def is_filled_twice(store: UOp) -> bool:
    """Whether both the collected values and the operations on them read scratch memory that differs within a tile."""
    values = direct_reductions(store)
    inner = {node for value in values for node in value.toposort() if node.op is Ops.BARRIER and tile_axes(node)}
    return any(node in inner for node in nodes_outside(store, values))


def tile_axes(value: UOp) -> list[UOp]:
    axes = [axis for axis in value.ranges if axis.arg.kind in TILE_KINDS]
    return sorted(axes, key=lambda axis: (PACKING_ORDER[axis.arg.kind], axis.arg.id))


def load_collected(name: str, value: UOp, copies: dict[UOp, UOp]) -> UOp:
    """Returns the load of one element of `value` from scratch memory with a tile of values. `copies` give its index."""
    axes, dtype = tile_axes(value), value.dtype
    assert isinstance(dtype, DType)
    scratch = UOp(Ops.DEFINE_LOCAL, PtrDType(dtype, prod(axis.size for axis in axes), "local"), (), name)
    position = row_major(axes)
    filled = UOp(Ops.BARRIER, dtypes.void, (UOp(Ops.STORE, dtypes.void, (scratch.index(position), value)), *axes))
    return UOp(Ops.LOAD, dtype, (scratch.index(position.substitute(copies)), filled))


KIND = OptKind((EFFECT,), legality_error, apply, machine="cpu")

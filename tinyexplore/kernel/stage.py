"""STAGE: operands copied into scratch memory, packed in the order in which the inner loops read them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.uop.divmod import from_terms

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

OUTER_KINDS = (AxisKind.GLOBAL, AxisKind.THREAD, AxisKind.LOCAL)
PACKING_ORDER = {
    AxisKind.ROW: 0,
    AxisKind.REDUCE: 1,
    AxisKind.GROUP: 2,
    AxisKind.UNROLL: 3,
    AxisKind.UPCAST: 4,
    AxisKind.VECTOR: 5,
}


def shared_loads(kernel: Kernel, axis: UOp) -> list[UOp]:
    """The loads inside reductions, from memory, that are the same in every step of `axis`."""
    found: dict[UOp, None] = {}
    for reduce in kernel.reduces:
        loops = set(reduce.src[1:])
        for node in reduce.src[0].toposort():
            if node.op is not Ops.LOAD or node.src[0].src[0].op is not Ops.DEFINE_GLOBAL:
                continue
            if axis in reduce.ranges and axis not in node.ranges and loops <= node.ranges:
                found[node] = None
    return list(found)


def packed_axes(load: UOp) -> list[UOp]:
    """The axes of the packed copy, the last one fastest: lanes, register tile, reduction."""
    inner = [axis for axis in load.ranges if axis.arg.kind in PACKING_ORDER]
    return sorted(inner, key=lambda axis: (PACKING_ORDER[axis.arg.kind], axis.arg.id))


def packed_bytes(load: UOp) -> int:
    """The memory that a packed copy of `load` takes."""
    return prod(axis.size for axis in packed_axes(load)) * load.dtype.itemsize


def stage_obstacle(kernel: Kernel, axis: UOp) -> str | None:
    """What stands against staging along `axis`; None where it is legal."""
    if axis.arg.kind not in (AxisKind.GLOBAL, AxisKind.LOCAL) or axis not in kernel.output_axes:
        return f"the axis is {axis.arg.kind.value}, and only output axes that are still loops do this"
    loads = shared_loads(kernel, axis)
    if not loads:
        return "no reduction reads the same in every step of it"
    for load in loads:
        outside = [loop for loop in load.ranges if loop.arg.kind in OUTER_KINDS]
        if any(loop.arg.id > axis.arg.id for loop in outside):
            return "a loop inside it chooses what is read: SWAP the two first"
        if packed_bytes(load) * 2 > kernel.target.l2_bytes:
            size = packed_bytes(load) >> 10
            return f"the copy takes {size} KiB, more than half of the L2 cache ({kernel.target.l2_bytes >> 10} KiB)"
    return None


def staged_loads(kernel: Kernel, axis: UOp) -> dict[UOp, UOp]:
    """For each load that the steps of `axis` share: the load from scratch memory that stands for it."""
    changes: dict[UOp, UOp] = {}
    next_id = kernel.next_id()
    staged = sum(node.op is Ops.DEFINE_LOCAL for node in kernel.nodes)
    for number, load in enumerate(shared_loads(kernel, axis), staged):
        axes = packed_axes(load)
        size = prod(inner.size for inner in axes)
        scratch = UOp(Ops.DEFINE_LOCAL, PtrDType(load.dtype, size, "local"), (), f"packed{number}")
        copies = {}
        for inner in axes:
            kind = AxisKind.VECTOR if inner.arg.kind is AxisKind.VECTOR else AxisKind.COPY
            copies[inner] = UOp.range(inner.size, Axis(next_id, kind))
            next_id += 1
        place = _row_major(axes)
        value = load.substitute(copies, tell=f"STAGE({axis.arg.id})")
        store = UOp(Ops.STORE, dtypes.void, (scratch.index(place.substitute(copies)), value))
        filled = UOp(Ops.BARRIER, dtypes.void, (store, *copies.values()))
        changes[load] = UOp(Ops.LOAD, load.dtype, (scratch.index(place), filled))
    return changes


def _row_major(axes: list[UOp]) -> UOp:
    terms: dict[UOp, int] = {}
    stride = 1
    for axis in reversed(axes):
        terms[axis] = stride
        stride *= axis.size
    return from_terms(dict(reversed(terms.items())), 0)

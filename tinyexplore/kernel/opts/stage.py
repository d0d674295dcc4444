"""STAGE: copies an operand that every step of an output axis reads into scratch memory, in reading order (packing).

On a GPU, it copies an operand that several work-items read into shared memory (`shared.py`).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.dot_products import first_load, words_in
from tinyexplore.kernel.analysis.scratch import PACKING_ORDER, row_major
from tinyexplore.kernel.analysis.strides import strides_of
from tinyexplore.kernel.opts import shared
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import OUTPUT_KINDS, scatter_order_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

COPY_BLOCK_STEPS = 8  # steps of a copy's outermost loop that run inside the other loops
MAX_COPY_PER_L2 = (
    8  # a copy may take this many times the L2 cache: sequential reads from the next cache are fast enough
)
EFFECT = Effect(
    "Copies operands that are invariant along an output axis into scratch memory, in the order in which reductions "
    "read them (packing; `amount` is not used)",
    before="for j: for i: for k: acc += a[i,k] * b[k,j]",
    after="""\
for j: for k: p[k] = b[k,j]
       for i: for k: acc += a[i,k] * p[k]""",
)


def shared_loads(kernel: Kernel, axis: UOp) -> list[UOp]:
    """Returns the loads inside reductions, from memory or words of them, that are the same in every step of `axis`."""
    loads: dict[UOp, None] = {}
    for reduce in kernel.reduces:
        loops = set(reduce.src[1:])
        for node in words_in(reduce.src[0]) or reduce.src[0].find(Ops.LOAD):
            if first_load(node).src[0].src[0].op is not Ops.DEFINE_GLOBAL:
                continue
            if axis in reduce.ranges and axis not in node.ranges and loops <= node.ranges:
                loads[node] = None
    return list(loads)


def packed_axes(load: UOp, axis: UOp) -> list[UOp]:
    """Returns the axes of the packed copy, the last one fastest: lanes, register tile, reduction, loops inside
    `axis`."""
    inner = [loop for loop in load.ranges if loop.arg.kind in PACKING_ORDER or is_inside(loop, axis)]
    return sorted(inner, key=lambda loop: (PACKING_ORDER.get(loop.arg.kind, -1), loop.arg.id))


def is_inside(loop: UOp, axis: UOp) -> bool:
    return loop.arg.kind in OUTPUT_KINDS and loop.arg.id > axis.arg.id


def packed_bytes(load: UOp, axis: UOp) -> int:
    """Returns the most bytes that a packed copy of `load` takes."""
    size: int = load.dtype.itemsize
    return prod(inner.size for inner in packed_axes(load, axis)) * size


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if kernel.target.has_local:
        return shared.legality_error(kernel, axis, amount)
    if (reason := scatter_order_error(kernel)) is not None:
        return reason
    if axis.arg.kind not in (AxisKind.GLOBAL, AxisKind.LOCAL) or axis not in kernel.output_axes:
        return f"the axis is {axis.arg.kind.value}; STAGE needs an output axis that is a loop"
    loads = shared_loads(kernel, axis)
    if not loads:
        return "no operand of a reduction is invariant along this axis"
    most_bytes = MAX_COPY_PER_L2 * kernel.target.l2_bytes
    for load in loads:
        if packed_bytes(load, axis) > most_bytes:
            size, cache = packed_bytes(load, axis) >> 10, kernel.target.l2_bytes >> 10
            return f"the copy takes {size} KiB, more than {MAX_COPY_PER_L2} times the L2 cache ({cache} KiB)"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    if kernel.target.has_local:
        return shared.apply(kernel, axis, opt)
    return substitute_recorded(kernel.ast, stage_loads(kernel, axis), str(opt))


def stage_loads(kernel: Kernel, axis: UOp) -> dict[UOp, UOp]:
    """Maps each load that the steps of `axis` have in common to the load from scratch memory that replaces it."""
    changes: dict[UOp, UOp] = {}
    next_id = kernel.next_id()
    staged = len(kernel.find(Ops.DEFINE_LOCAL))
    for number, load in enumerate(shared_loads(kernel, axis), staged):
        axes = packed_axes(load, axis)
        size = prod(inner.size for inner in axes)
        scratch = UOp(Ops.DEFINE_LOCAL, PtrDType(load.dtype, size, "local"), (), f"packed{number}")
        positions = copy_indices(load, axes, next_id, in_quarters=load.op is Ops.LOAD and computes_no_indices(kernel))
        loops = sorted(
            {loop for position in positions.values() for loop in position.ranges}, key=lambda loop: loop.arg.id
        )
        next_id += len(loops)
        position = row_major(axes)
        value = load.substitute(positions, how=f"STAGE({axis.arg.id})")
        store = UOp(Ops.STORE, dtypes.void, (scratch.index(position.substitute(positions)), value))
        filled = UOp(Ops.BARRIER, dtypes.void, (store, *loops))
        changes[load] = UOp(Ops.LOAD, load.dtype, (scratch.index(position), filled))
    return changes


def computes_no_indices(kernel: Kernel) -> bool:
    """Whether one reduction uses the axes only in addresses.

    Its copies are then vectorized early (`codegen/transforms/early_vectorization.py`), before each lane is examined.
    """
    masked = any(len(node.src) > 2 for node in kernel.find(Ops.INDEX))
    as_values = any(node.src[0].dtype is dtypes.index for node in kernel.find(Ops.CAST))
    return len(kernel.reduces) == 1 and not masked and not as_values and not kernel.find(Ops.WHERE)


def copy_indices(load: UOp, axes: list[UOp], first_id: int, *, in_quarters: bool) -> dict[UOp, UOp]:
    """Maps each packed axis to its index in the copy loops, which read the source in memory order.

    Lanes across the source's rows are filled in tiles that registers transpose. A tile takes as many elements of each
    row as a vector holds, or a quarter (`in_quarters`). Without lanes, a few neighbors are unrolled. The axis with the
    longest stride runs several steps at a time, so that a pass of the inner loops writes more than one position.
    """
    index = first_load(load).src[0]
    strides = strides_of(index.src[1])
    is_masked = len(index.src) == 3
    lanes = next((axis for axis in axes if axis.arg.kind is AxisKind.VECTOR), None)
    ordered = sorted(axes, key=lambda axis: (-abs(strides.get(axis) or 0), axis.arg.id))
    copy_of: dict[UOp, UOp] = {}
    blocks: dict[UOp, tuple[int, AxisKind]] = {}
    for axis in ordered:
        axis_kind = AxisKind.COPY
        if axis is lanes:
            axis_kind = AxisKind.VECTOR
        elif axis.arg.kind is AxisKind.UPCAST and (lanes is None or strides.get(lanes) == 1) and not is_masked:
            axis_kind = AxisKind.UPCAST
        elif not axis.is_static:
            pass
        elif lanes is not None and strides.get(axis) == 1 and axis.size >= lanes.size and not is_masked:
            columns = columns_at_a_time(lanes.size, load.dtype.itemsize) if in_quarters else lanes.size
            blocks[axis] = columns, AxisKind.UPCAST
        elif lanes is None and axis is ordered[0] and axis.size > COPY_BLOCK_STEPS and len(axes) > 2:
            blocks[axis] = COPY_BLOCK_STEPS, AxisKind.COPY
        amount = blocks[axis][0] if axis in blocks else 1
        size = -(-axis.size // amount) if axis.is_static else axis.src[0]
        copy_of[axis] = UOp.range(size, Axis(first_id + len(copy_of), axis_kind))
    for axis, (amount, axis_kind) in blocks.items():
        start = copy_of[axis] * index_const(amount)
        if axis.size % amount:
            start = start.minimum(index_const(axis.size - amount))
        inner = UOp.range(amount, Axis(first_id + len(axes) + list(blocks).index(axis), axis_kind))
        copy_of[axis] = start + inner
    return copy_of


def columns_at_a_time(lanes: int, itemsize: int) -> int:
    """Returns how many elements of each row a transposition in registers takes at a time: a quarter of a 64-byte
    vector.

    Such a program has a third of the length and takes the same time, because four rows share a register from the start.
    """
    return lanes // 4 if lanes * itemsize == 64 and itemsize >= 4 else lanes


KIND = OptKind((EFFECT, shared.EFFECT), legality_error, apply, may_follow_tiles=True, gpu_amounts=shared.AMOUNTS)

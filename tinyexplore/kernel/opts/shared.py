"""STAGE on a GPU: copies operands that several work-items of a group read into shared memory, block by block."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.strides import strides_of, vector_along
from tinyexplore.kernel.analysis.work_groups import group_dimensions
from tinyexplore.kernel.opts.kind import Effect
from tinyexplore.kernel.opts.legality import block_error, reduction_error, scatter_order_error
from tinyexplore.kernel.transforms.split import split_reduce
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.divmod import from_terms
from tinyexplore.uop.symbolic import text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

AMOUNTS = (8, 16, 32)
WORK_ITEM_KINDS = (AxisKind.LOCAL, AxisKind.GROUP)
SHARED_TILE_KINDS = (*WORK_ITEM_KINDS, AxisKind.UPCAST, AxisKind.UNROLL)
BANKS, WORD = 32, 4  # the number of banks of shared memory, and the bytes of each
UNKNOWN_DISTANCE = 1 << 62  # stands for a step that moves an address by an unknown distance, or not at all
EFFECT = Effect(
    "On a GPU (`axis` is a reduction loop): copies operands that several work-items of a group read into shared "
    "memory, `amount` steps at a time. The work-items copy each element once, and wait at a barrier before they "
    "read the copy. Padded rows avoid bank conflicts between the stores of a warp",
    before="""\
for k in 0..64:
  acc += a[i,k] * b[k,j]""",
    after="""\
for k in 0..4: for t (work-items): p[t] = a[...]; q[t] = b[...]
               barrier
               for l in 0..16: acc += p[i,l] * q[l,j]
               barrier""",
)


def shared_reads(kernel: Kernel, axis: UOp) -> list[UOp]:
    """Returns the loads in reductions over `axis` that several work-items of a group have in common.

    The kernel must not write the memory that they read, and their addresses must not depend on other loads.
    """
    items = [loop for loop in kernel.axes if loop.arg.kind in WORK_ITEM_KINDS]
    written_memory = {store.src[0].src[0] for store in kernel.ast.src}
    loads: dict[UOp, None] = {}
    for reduce in kernel.reduces:
        if axis not in reduce.src[1:]:
            continue
        body = reduce.src[0]
        for load in body.find(Ops.LOAD):
            memory = load.src[0].src[0]
            is_indirect = any(src.find(Ops.LOAD) for src in load.src[0].src[1:])
            if memory.op is not Ops.DEFINE_GLOBAL or memory in written_memory or is_indirect or len(load.src) > 1:
                continue
            is_shared = any(loop in body.ranges and loop not in load.ranges for loop in items)
            if axis in load.ranges and is_shared and all(loop.is_static for loop in tile_axes(load, axis)):
                loads[load] = None
    return list(loads)


def tile_axes(load: UOp, axis: UOp) -> list[UOp]:
    """Returns the loops inside a block: the axes of the work-items, unrolled axes, and reductions inside `axis`.

    All other loops are around the block.
    """
    inner_axes = [
        loop
        for loop in load.ranges
        if loop.arg.kind in SHARED_TILE_KINDS or (loop.arg.kind is AxisKind.REDUCE and loop.arg.id > axis.arg.id)
    ]
    return sorted(inner_axes, key=lambda loop: loop.arg.id)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if (
        reason := scatter_order_error(kernel) or reduction_error(axis) or block_error(kernel, axis, amount)
    ) is not None:
        return reason
    if axis.src[0].ranges or not axis.is_static:
        return f"the axis has the variable size {text(axis.src[0])}; STAGE needs blocks of constant size"
    if any(opt.op.ends_groups for opt in kernel.applied) or not group_dimensions(kernel.ast):
        return "the kernel has no work-group that could share the copy; apply LOCAL first"
    if not shared_reads(kernel, axis):
        return "no two work-items of a group read the same operand in this reduction"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Splits the reduction into blocks. Loads that work-items have in common then read shared memory."""
    inner = UOp.range(opt.amount, Axis(kernel.next_id(), AxisKind.REDUCE))
    blocks = axis.size // opt.amount
    position = inner if blocks == 1 else UOp.range(blocks, axis.arg) * index_const(opt.amount) + inner
    ast = split_reduce(kernel, axis, opt, AxisKind.REDUCE)
    next_id = 1 + max(loop.arg.id for loop in ast.find(Ops.RANGE))
    number = len(kernel.find(Ops.DEFINE_LOCAL))
    changes: dict[UOp, UOp] = {}
    for count, load in enumerate(shared_reads(kernel, axis), number):
        in_block = load.substitute({axis: position})
        changes[in_block] = load_from_shared(kernel, in_block, tile_axes(in_block, axis), count, next_id, str(opt))
        next_id += len(load.ranges) + 1
    return substitute_recorded(ast, changes, str(opt))


def load_from_shared(kernel: Kernel, load: UOp, axes: list[UOp], number: int, first_id: int, how: str) -> UOp:
    """Returns the load from shared memory that replaces `load`. It waits for the copy, which reads memory in address
    order."""
    strides = strides_of(load.src[0].src[1])
    in_order = sorted(axes, key=lambda loop: (-abs(strides.get(loop) or UNKNOWN_DISTANCE), loop.arg.id))
    copies = {loop: UOp.range(loop.size, Axis(first_id + n, AxisKind.COPY)) for n, loop in enumerate(in_order)}
    terms, size = layout(kernel, in_order, load)
    space = UOp(Ops.DEFINE_LOCAL, PtrDType(load.dtype, size, "shared"), (), f"tile{number}")
    position = from_terms(terms, 0)
    value = load.substitute(copies, how=how)
    store = UOp(Ops.STORE, dtypes.void, (space.index(position.substitute(copies)), value))
    filled = UOp(Ops.BARRIER, dtypes.void, (store, *copies.values()))
    return UOp(Ops.LOAD, load.dtype, (space.index(position), filled))


def layout(kernel: Kernel, in_order: list[UOp], load: UOp) -> tuple[dict[UOp, int], int]:
    """Returns the stride of each loop in shared memory, and the total number of elements.

    A loop whose steps are read as one vector has stride 1. The axes of the work-items come next, so that neighboring
    work-items read from different banks. A warp stores neighbors in memory at the same time: steps of the last loop of
    `in_order`, or steps at a stride. The rows of this loop are padded so that these stores go to different banks.
    """
    itemsize, access_bytes = load.dtype.itemsize, kernel.target.access_bytes
    vector = next((loop for loop in reversed(in_order) if is_vector(loop, access_bytes // itemsize)), None)
    at_a_time = vector_along(load.src[0], in_order[-1], access_bytes)
    dimensions = [loop for dimension in group_dimensions(kernel.ast) for loop in dimension]
    rank = {loop: number for number, loop in enumerate(dimensions)}
    inner_kinds = (AxisKind.UPCAST, AxisKind.REDUCE, AxisKind.UNROLL)

    def order(loop: UOp) -> tuple[bool, bool, int, int]:
        return (
            loop is not vector,
            loop not in rank,
            rank[loop] if loop in rank else inner_kinds.index(loop.arg.kind),
            -loop.arg.id,
        )

    terms: dict[UOp, int] = {}
    stride = 1
    for loop in sorted(in_order, key=order):
        if loop is in_order[-1] and loop is not vector and stride > 1:
            columns = min(BANKS, max(1, loop.size // at_a_time))
            stride = padded_row(stride, itemsize, columns, at_a_time, 1 if vector is None else vector.size)
        terms[loop] = stride
        stride *= loop.size
    return dict(reversed(terms.items())), stride


def is_vector(loop: UOp, lanes: int) -> bool:
    """Whether `loop` is unrolled and its steps can be read as one vector of at most `lanes` elements."""
    return loop.arg.kind is AxisKind.UPCAST and 1 < loop.size <= lanes and loop.size & (loop.size - 1) == 0


def padded_row(elements: int, itemsize: int, columns: int, at_a_time: int = 1, unit: int = 1) -> int:
    """Returns the row length of shared memory with the fewest bank conflicts: at least `elements`, a multiple of
    `unit`.

    A warp stores to one row for each of `columns`, in rows `at_a_time` apart, and to neighbors in each row.
    """
    unit = max(unit, WORD // itemsize)

    def busiest(stride: int) -> int:
        rows = range(max(1, BANKS // columns))
        words = {(column * at_a_time * stride + row) * itemsize // WORD for column in range(columns) for row in rows}
        return max(Counter(word % BANKS for word in words).values())

    smallest = -(-elements // unit) * unit
    return min(range(smallest, smallest + BANKS * unit, unit), key=busiest)


__all__ = ["AMOUNTS", "EFFECT", "apply", "legality_error", "padded_row", "shared_reads"]

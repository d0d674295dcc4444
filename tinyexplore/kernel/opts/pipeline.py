"""PIPELINE (software pipelining): stores a row of results while it computes the next row into the same row buffer.

On a GPU, it loads the next block of a staged operand while it computes a block (`double_buffer.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.barriers import fills_row_buffer, scratch_of
from tinyexplore.kernel.analysis.scratch import copy_barriers
from tinyexplore.kernel.opts import double_buffer
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.transforms.substitute import record_derived, substitute_recorded
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp, index_const
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.uop import ops_mask

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

OUTER = (AxisKind.GLOBAL, AxisKind.THREAD)
FIXED = (AxisKind.VECTOR, AxisKind.UPCAST)  # an axis of this kind corresponds only to an axis of the same kind
SHORTEST_BLOCK = 3  # with blocks of two steps, the previous step is always the first
READS = ops_mask((Ops.LOAD, Ops.REDUCE))
EFFECT = Effect(
    "Software pipelining of an output axis. Each step fills a row buffer, and the next step stores the row while it "
    "refills the buffer. Steps run in blocks of `amount`. The last row of a block is stored after the block. No Opt "
    "may follow",
    before="""\
for i in 0..64: for j: e[j] = f(i,j)
                for j: out[i,j] = g(e[j])""",
    after="""\
for b in 0..4: for i in 0..16: for j: out[16*b+i-1,j] = g(e[j])
                                      e[j] = f(16*b+i,j)
               for j: out[16*b+15,j] = g(e[j])""",
)


@dataclass(frozen=True)
class PipelineOperands:
    """The parts of a kernel that PIPELINE changes.

    store: the STORE of the results.
    row: the LOAD of the row buffer.
    filled: the BARRIER after the row buffer is filled.
    row_axes: for each axis along which a row of results is stored, the axis that fills the same position of the row
    buffer.
    left: scalars, one for a whole row, that the results also need.
    """

    store: UOp
    row: UOp
    filled: UOp
    row_axes: dict[UOp, UOp]
    left: tuple[UOp, ...]


def legality_error(kernel: Kernel, axis: UOp, steps: int) -> str | None:
    if kernel.target.has_local:
        return double_buffer.legality_error(kernel, axis, steps)
    piped = find_pipelined(kernel, axis)
    if isinstance(piped, str):
        return piped
    if not SHORTEST_BLOCK <= steps <= axis.size // 2:
        return f"the axis has size {axis.size}; choose blocks of {SHORTEST_BLOCK} to half of that"
    return None


def find_pipelined(kernel: Kernel, axis: UOp) -> PipelineOperands | str:
    """Returns the parts of the kernel that PIPELINE along `axis` changes, or why it is illegal, as text."""
    rows = copy_barriers(kernel)
    if len(kernel.ast.src) != 1 or len(rows) != 1 or not fills_row_buffer(rows[0]) or kernel.result_copies:
        return "PIPELINE needs a kernel with one output and exactly one row buffer in scratch memory"
    (store,), (filled,) = kernel.ast.src, rows
    fill = filled.src[0]
    row_loops = filled.ranges
    store_axes = store.ranges - row_loops
    if problem := illegal_loops(axis, row_loops, store_axes | (fill.ranges - row_loops)):
        return problem
    varying, invariant = parts_of(store.src[1], store_axes)
    reads = [node for node in varying if node.op is Ops.LOAD and node.src[0].src[0] is scratch_of(filled)]
    if len(reads) != 1:
        return "each result must read exactly one position of the row buffer"
    pairs = matching_axes(reads[0].src[0].src[1], store_axes, fill.src[0].src[1], fill.ranges - row_loops)
    if pairs is None or len(reads[0].src[0].src) + len(fill.src[0].src) > 4:  # or one of them is masked
        return "the store loops do not access the row buffer with the strides of the fill loops"
    if all(loop.arg.kind in FIXED for loop in pairs):
        return "the row buffer is unrolled into registers, so no loop is left to pipeline"
    if is_masked_or_indirect(store, kernel):
        return "the store is masked, indirect, or to a buffer that the kernel also reads"
    if not all(is_harmless(node) or node is reads[0] for node in varying):
        return "the first step reads an uninitialized row buffer, which is safe only for float arithmetic"
    if not all(dtypes.is_float(value.dtype) for value in (reads[0], *invariant)):
        return "the first step reads an uninitialized row buffer, which is safe only if the buffer holds floats"
    return PipelineOperands(store, reads[0], filled, pairs, tuple(invariant))


def illegal_loops(axis: UOp, row_loops: frozenset[UOp], inner_loops: frozenset[UOp]) -> str | None:
    """Returns the legality error of PIPELINE along `axis`, or None.

    row_loops: the loops around each row.
    inner_loops: the loops inside a row.
    """
    if axis.arg.kind not in OUTER or axis not in row_loops or not axis.is_static:
        return (
            f"the axis is {axis.arg.kind.value}; PIPELINE needs a constant-size output loop that fills one row per step"
        )
    if any(loop.arg.kind in FIXED for loop in row_loops) or max(loop.arg.id for loop in row_loops) != axis.arg.id:
        return "the kernel keeps several rows at the same time, or a loop inside this axis encloses each row"
    if any(loop.arg.id < axis.arg.id for loop in inner_loops):
        return "a loop along the row encloses this axis"
    return None


def is_masked_or_indirect(store: UOp, kernel: Kernel) -> bool:
    """Whether `store` has a mask, an address computed from memory, or a buffer that the kernel also reads."""
    index = store.src[0]
    loaded = {node.src[0].src[0] for node in kernel.find(Ops.LOAD)}
    return len(store.src) > 2 or len(index.src) > 2 or index.src[0] in loaded or bool(index.mask & READS)


def parts_of(value: UOp, varying_axes: Iterable[UOp]) -> tuple[list[UOp], list[UOp]]:
    """Returns the nodes of `value` that vary along `varying_axes`, up to loads; and the invariant values that they use.

    The invariant values are loads or reductions.
    """
    axes = frozenset(varying_axes)
    varying: dict[UOp, None] = {}
    invariant: dict[UOp, None] = {}
    pending = [value]
    while pending:
        node = pending.pop()
        if axes.isdisjoint(node.ranges):
            if node.mask & READS:
                invariant[node] = None
        elif node not in varying:
            varying[node] = None
            if node.op in OpGroups.ALU or node.op in (Ops.CAST, Ops.BITCAST):
                pending += node.src
    return list(varying), list(invariant)


def matching_axes(idx: UOp, axes: Iterable[UOp], filling_idx: UOp, fillers: Iterable[UOp]) -> dict[UOp, UOp] | None:
    """Maps each axis of `axes` to the axis of `fillers` with the same stride in the row buffer.

    None unless every step has its own position: overlapping blocks would be overwritten before they are stored.
    """
    terms, offset = linear_terms(idx)
    filler_terms, other_offset = linear_terms(filling_idx)
    if (
        offset != other_offset
        or set(terms) != set(axes)
        or set(filler_terms) != set(fillers)
        or len(terms) != len(filler_terms)
    ):
        return None
    pairs: dict[UOp, UOp] = {}
    stride = 1
    for (axis, factor), (filler, other_factor) in zip(by_factor(terms), by_factor(filler_terms), strict=True):
        pair_kinds = {axis.arg.kind, filler.arg.kind}
        if factor < stride or factor != other_factor or axis.src[0] is not filler.src[0] or not axis.is_static:
            return None
        if len(pair_kinds) > 1 and not pair_kinds.isdisjoint(FIXED):
            return None
        pairs[axis] = filler
        stride = factor * axis.size
    return pairs


def by_factor(terms: dict[UOp, int]) -> list[tuple[UOp, int]]:
    return sorted(terms.items(), key=lambda term: term[1])


def is_harmless(node: UOp) -> bool:
    """Whether `node` is safe on any value: the first step of a block reads a row buffer that holds no row yet."""
    if node.op is Ops.LOAD:
        index = node.src[0]
        return len(node.src) == 1 and index.src[0].op is Ops.DEFINE_GLOBAL and not index.mask & READS
    if node.op is Ops.RANGE or not node.mask & READS:
        return True
    is_arithmetic = node.op in OpGroups.ALU or node.op in (Ops.CAST, Ops.BITCAST)
    return is_arithmetic and (dtypes.is_float(node.dtype) or dtypes.is_bool(node.dtype))


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Stores the results of each step of `axis` in the next step, with `amount` steps to a block.

    The first step of a block has no results to store yet. The second step overwrites the values that the first one
    stores. The last row of a block is stored after its steps.
    """
    if kernel.target.has_local:
        return double_buffer.apply(kernel, axis, opt)
    piped = find_pipelined(kernel, axis)
    assert not isinstance(piped, str)
    how, amount = str(opt), opt.amount
    new_axes = {loop: with_higher_id(loop) for loop in kernel.axes if loop.arg.id > axis.arg.id}
    start = UOp.range(-(-axis.size // amount), replace(axis.arg, ahead=0)) * index_const(amount)
    if axis.size % amount:
        start = start.minimum(index_const(axis.size - amount))
    step = UOp.range(amount, Axis(axis.arg.id + 1, AxisKind.SCAN, axis.arg.ahead))
    last_step = index_const(amount - 1)
    previous_step = (step + index_const(-1)).maximum(index_const(0))
    scratch = [
        UOp(Ops.DEFINE_LOCAL, PtrDType(value.dtype, amount, "local"), (), f"left{number}")
        for number, value in enumerate(piped.left)
    ]
    filler = {store_axis: new_axes[loop] for store_axis, loop in piped.row_axes.items()}
    row = piped.row.src[0].substitute({**new_axes, **filler}, how=how)

    opening_changes = {axis: start + previous_step, **filler, piped.row: UOp(Ops.LOAD, piped.row.dtype, (row,))}
    for value, memory in zip(piped.left, scratch):
        opening_changes[value] = UOp(Ops.LOAD, value.dtype, (memory.index(previous_step),))
    stored = UOp(Ops.BARRIER, dtypes.void, (substitute_recorded(piped.store, opening_changes, how),))

    replacements = {**new_axes, axis: start + step}
    fill, *loops = piped.filled.src
    store = substitute_recorded(fill, replacements, how)
    store = store.replace(src=(*store.src, stored))
    loops = [new_axes[loop] for loop in loops]
    filled = UOp(Ops.BARRIER, dtypes.void, (store, *loops))

    closing_changes = {**new_axes, axis: start + last_step}
    all_filled = UOp(Ops.BARRIER, dtypes.void, (store, *loops, step))
    closing_changes[piped.row] = UOp(
        Ops.LOAD, piped.row.dtype, (piped.row.src[0].substitute(new_axes, how=how), all_filled)
    )
    for value, memory in zip(piped.left, scratch):
        number = substitute_recorded(value, {**replacements, piped.filled: filled}, how)
        stored_value = UOp(Ops.STORE, dtypes.void, (memory.index(step), number, filled))
        stored_step = UOp(Ops.BARRIER, dtypes.void, (stored_value, step))
        closing_changes[value] = UOp(Ops.LOAD, value.dtype, (memory.index(last_step), stored_step))
    record_derived(((piped.filled, filled), (piped.filled, all_filled), (piped.store, stored)), how)
    record_derived(
        [(value, copies[value]) for copies in (opening_changes, closing_changes) for value in (piped.row, *piped.left)],
        how,
    )
    return UOp.sink(substitute_recorded(piped.store, closing_changes, how))


def with_higher_id(loop: UOp) -> UOp:
    """Raises the id of an axis by one, so that a new axis fits outside it."""
    return loop.replace(arg=replace(loop.arg, id=loop.arg.id + 1))


KIND = OptKind(
    (EFFECT, double_buffer.EFFECT),
    legality_error,
    apply,
    amounts=(4, 16, 128),
    reason_to_be_last="its steps already overlap",
    gpu_amounts=(double_buffer.BUFFERS,),
)

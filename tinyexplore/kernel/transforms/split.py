"""Strip mining: splits an axis into blocks of steps, for VECTOR, UPCAST, UNROLL, LOCAL and GROUP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.barriers import copies_result, scratch_of
from tinyexplore.kernel.analysis.scratch import barriers_along
from tinyexplore.kernel.transforms.substitute import record_derived, substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import as_size, simplified, text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

REDUCE_KINDS = (AxisKind.REDUCE, AxisKind.GROUP)


def split_into_blocks(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """Splits `axis` into blocks of `opt.amount` steps, which become an axis of this `kind`. Returns the AST."""
    if axis.arg.kind in REDUCE_KINDS:
        return split_reduce(kernel, axis, opt, kind)
    if axis.arg.kind is AxisKind.ROW:
        return split_row(kernel, axis, opt, kind)
    if axis.arg.kind is AxisKind.SCAN:
        return split_scan(kernel, axis, opt)
    changes = split_output(kernel, axis, opt, kind)
    ast = mask_edge(kernel, axis, opt, kind)
    if kind is AxisKind.UPCAST:
        ast = substitute_recorded(ast, enlarge_row_buffers(kernel, axis, opt), str(opt))
    return substitute_recorded(ast, changes, str(opt))


def split_output(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> dict[UOp, UOp]:
    """Returns the index that replaces `axis`: outer * amount + inner. The last block ends at the end of the axis.

    The last block may overlap the block before it. If `axis` counts such blocks already, it is split into groups of
    blocks, and only the last group overlaps. On a GPU the last block is masked instead (`mask_edge`), because two
    work-items must not store to one address.
    """
    if kernel.target.has_local:
        inner = UOp.range(opt.amount, Axis(kernel.next_id(), kind))
        blocks = simplified((axis.src[0] + (opt.amount - 1)) // opt.amount)
        return {axis: inner if blocks == 1 else UOp.range(blocks, axis.arg) * index_const(opt.amount) + inner}
    if not axis.is_static:
        return {axis: split_symbolic(kernel, axis, opt, kind)}
    size, amount = axis.size, opt.amount
    inner = UOp.range(amount, Axis(kernel.next_id(), kind))
    if size == amount:
        return {axis: inner}
    blocks = ragged_blocks(axis, kernel.nodes)
    if blocks is not None:
        position, step, end = blocks
        stride = step * amount
        if end >= stride:
            outer = UOp.range(-(-end // stride), axis.arg)
            start = _clamp_start(outer * index_const(stride), outer.size * stride, end - stride)
            return {position: start + inner * index_const(step)}
    outer = UOp.range(-(-size // amount), axis.arg)
    return {axis: _clamp_start(outer * index_const(amount), outer.size * amount, size - amount) + inner}


def split_symbolic(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """Returns the index that replaces an axis of symbolic size after the split.

    If the size may be less than the amount, the last block cannot start earlier. Then steps of a tile past the end stay
    at the last index, and lanes past the end are masked (`mask_edge`).
    """
    end, amount = simplified(axis.src[0]), opt.amount
    inner = UOp.range(amount, Axis(kernel.next_id(), kind))
    blocks = simplified((end + (amount - 1)) // amount)
    start = index_const(0) if blocks == 1 else UOp.range(blocks, axis.arg) * index_const(amount)
    if simplified(end % amount) == 0:
        return start + inner
    last_start = as_size(simplified(end - amount))
    if bounds(last_start)[0] >= 0:
        return start.minimum(last_start) + inner
    return start + inner if kind is AxisKind.VECTOR else (start + inner).minimum(as_size(simplified(end - 1)))


def split_scan(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Splits the loop of a scan into blocks of `amount` lanes, which run in sequence. The last block may be masked.

    A lane past the end may hold any value: no lane before it depends on it, and no lane follows.
    """
    blocks = simplified((axis.src[0] + (opt.amount - 1)) // opt.amount)
    inner = UOp.range(opt.amount, Axis(kernel.next_id(), AxisKind.VECTOR))
    outer = UOp.range(blocks, axis.arg) if blocks != 1 else None
    position = inner if outer is None else outer * index_const(opt.amount) + inner
    ast = mask_edge(kernel, axis, opt, AxisKind.VECTOR)
    (scan,) = [node for node in ast.toposort() if node.op is Ops.SCAN]
    value = substitute_recorded(scan.src[0], {axis: position}, str(opt))
    loops = (inner,) if outer is None else (outer, inner)
    split_scan_node = scan.replace(src=(value, *loops))
    record_derived([(scan, split_scan_node)], str(opt))
    return substitute_recorded(ast, {scan: split_scan_node, axis: position}, str(opt))


def mask_edge(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """Masks lanes past the end of `axis` (a symbolic axis, or the axis of a scan). Returns the AST.

    Contiguous accesses are masked. If each lane has its own load, lanes past the end load the last element again. On a
    GPU, and in a tile, every block may extend past the end, and all its accesses there are masked.
    """
    end = axis.src[0]
    has_items = (kernel.target.has_local or kind is AxisKind.TILE) and axis.arg.kind is not AxisKind.SCAN
    overlaps = axis.arg.kind is not AxisKind.SCAN and (axis.is_static or bounds(end)[0] >= opt.amount)
    if simplified(end % opt.amount) == 0 or not (has_items or (kind is AxisKind.VECTOR and not overlaps)):
        return kernel.ast
    stored = {store.src[0] for store in kernel.ast.src}
    changes: dict[UOp, UOp] = {}
    for node in kernel.find(Ops.INDEX):
        if axis not in node.ranges:
            continue
        pointer, idx, *valid = (src.substitute(changes) for src in node.src)
        is_inside = axis < end
        if has_items or node in stored or linear_terms(node.src[1])[0].get(axis) == 1:
            changes[node] = pointer.index(idx, valid[0] & is_inside if valid else is_inside)
        else:
            clamped = {axis: axis.minimum(as_size(simplified(end - 1)))}
            changes[node] = pointer.index(*(source.substitute(clamped) for source in (idx, *valid)))
    return substitute_recorded(kernel.ast, changes, f"{opt}, no further than {text(end)}")


def split_reduce(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind, *, on_top: bool = False) -> UOp:
    """Splits every REDUCE over `axis` into blocks. Remaining steps become a separate REDUCE.

    on_top: the new axis counts the blocks, and the old one the steps in a block.
    """
    end, amount = simplified(axis.src[0]), opt.amount
    inner = UOp.range(amount, Axis(kernel.next_id(), kind))
    blocks, remaining = simplified(end // amount), simplified(end % amount)
    if blocks == 1:
        loops: tuple[UOp, ...] = (inner,)
        position = inner
    else:
        outer = UOp.range(blocks, axis.arg)
        loops = (outer, inner)
        position = inner * as_size(blocks) + outer if on_top else outer * index_const(amount) + inner
    changes: dict[UOp, UOp] = {}
    for reduce in kernel.reduces:
        if axis not in reduce.src[1:]:
            continue
        other_loops = tuple(loop for loop in reduce.src[1:] if loop is not axis)
        body = substitute_recorded(reduce.src[0], {**changes, axis: position}, str(opt))
        if kind is AxisKind.GROUP and len(loops) == 2 and not kernel.target.has_local:
            partial = UOp(Ops.REDUCE, reduce.dtype, (body, inner), reduce.arg)
            blocked = UOp(Ops.REDUCE, reduce.dtype, (partial, *other_loops, outer), reduce.arg)
        else:
            blocked = UOp(Ops.REDUCE, reduce.dtype, (body, *other_loops, *loops), reduce.arg)
        record_derived([(reduce, blocked)], str(opt))
        if remaining != 0:
            remainder_loop = UOp.range(remaining, Axis(kernel.next_id() + 1, AxisKind.REDUCE))
            remainder_position = remainder_loop + as_size(simplified(end - remaining))
            replaced = {axis: remainder_position, **fresh_inner_loops(kernel, reduce.src[0], axis)}
            remainder_body = substitute_recorded(reduce.src[0], {**changes, **replaced}, str(opt))
            remainder = UOp(Ops.REDUCE, reduce.dtype, (remainder_body, *other_loops, remainder_loop), reduce.arg)
            record_derived([(reduce, remainder)], f"{opt}, remainder loop")
            blocked = blocked.alu(reduce.arg, remainder)
        changes[reduce] = blocked
    return substitute_recorded(kernel.ast, changes, str(opt))


def fresh_inner_loops(kernel: Kernel, body: UOp, axis: UOp) -> dict[UOp, UOp]:
    """Creates new axes for the reductions in `body` that depend on `axis`, because a copy of `body` needs its own
    loops."""
    nested_reduces = [node for node in body.toposort() if node.op is Ops.REDUCE and axis in node.ranges]
    inner_loops = {loop for node in nested_reduces for loop in node.src[1:]}
    copied = sorted((loop for loop in inner_loops if loop not in body.ranges), key=lambda loop: loop.arg.id)
    first_id = kernel.next_id() + 2
    return {loop: UOp.range(loop.src[0], Axis(first_id + n, loop.arg.kind)) for n, loop in enumerate(copied)}


def split_row(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """Splits a loop that fills a row buffer. The last block ends at the end and overlaps the block before it.

    If a symbolic end leaves no room for that, lanes past it are masked.
    """
    changes = split_output(kernel, axis, opt, kind)
    ast = mask_edge(kernel, axis, opt, kind)
    new_axes = {loop for position in changes.values() for loop in position.ranges}
    new_loops = tuple(sorted(new_axes, key=lambda loop: loop.arg.id))
    for barrier in [node for node in ast.toposort() if node.op is Ops.BARRIER]:
        if axis in barrier.src[1:]:
            store = substitute_recorded(barrier.src[0], changes, str(opt))
            loops = tuple(new_loop for loop in barrier.src[1:] for new_loop in (new_loops if loop is axis else (loop,)))
            return substitute_recorded(ast, {barrier: UOp(Ops.BARRIER, dtypes.void, (store, *loops))}, str(opt))
    raise ValueError(f"axis {axis.arg.id} fills no row buffer")


def enlarge_row_buffers(kernel: Kernel, axis: UOp, opt: Opt) -> dict[UOp, UOp]:
    """Gives scratch memory that differs along `axis` one row for each step that UPCAST unrolls.

    Returns each access to it with the access that replaces it.
    """
    step = UOp.range(opt.amount, Axis(kernel.next_id(), AxisKind.UPCAST))
    enlarged: dict[UOp, UOp] = {}
    for barrier in barriers_along(kernel, axis):
        if copies_result(barrier):
            continue
        scratch = scratch_of(barrier)
        enlarged[scratch] = scratch.replace(
            dtype=PtrDType(scratch.dtype.base, scratch.dtype.size * opt.amount, "local")
        )
    changes = {}
    for node in kernel.find(Ops.INDEX) if enlarged else ():
        if node.src[0] in enlarged:
            row = step * index_const(node.src[0].dtype.size)
            changes[node] = enlarged[node.src[0]].index(node.src[1] + row, *node.src[2:])
    return changes


def ragged_blocks(axis: UOp, nodes: Iterable[UOp]) -> tuple[UOp, int, int] | None:
    """Finds out whether `axis` counts blocks of which the last overlaps the block before it.

    Returns (the node of a block's start, steps of a block, steps in total), or None.
    """
    users = [node for node in nodes if axis in node.src and node.op not in (Ops.REDUCE, Ops.BARRIER)]
    if len(users) != 1 or users[0].op is not Ops.MUL or users[0].src[1].op is not Ops.CONST:
        return None
    starts = [node for node in nodes if users[0] in node.src]
    if len(starts) != 1 or starts[0].op is not Ops.MIN or starts[0].src[1].op is not Ops.CONST:
        return None
    step, last_start = users[0].src[1].arg, starts[0].src[1].arg
    return (starts[0], step, last_start + step) if -(-(last_start + step) // step) == axis.size else None


def _clamp_start(start: UOp, end: int, last_start: int) -> UOp:
    """Limits `start` to `last_start` if the last block would otherwise end after the axis.

    `end`: the end of the last block without the limit.
    """
    width = start.src[1].arg
    return start if end - width == last_start else start.minimum(index_const(last_start))

"""Strip mining: splits an axis into blocks of steps, for VECTOR, UPCAST, UNROLL, LOCAL and GROUP."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.kernel.analysis.barriers import copies_result, scratch_of
from tinyexplore.kernel.analysis.scratch import kept_along
from tinyexplore.kernel.transforms.substitute import record_derived, substitute_recorded
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import as_size, simplified, text

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

REDUCE_KINDS = (AxisKind.REDUCE, AxisKind.GROUP)


def in_blocks(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """The ast with `axis` in blocks of `opt.amount` steps, each block an axis of this `kind`."""
    if axis.arg.kind in REDUCE_KINDS:
        return split_reduce(kernel, axis, opt, kind)
    if axis.arg.kind is AxisKind.ROW:
        return split_row(kernel, axis, opt, kind)
    if axis.arg.kind is AxisKind.SCAN:
        return split_scan(kernel, axis, opt)
    changes = split_output(kernel, axis, opt, kind)
    ast = with_edge(kernel, axis, opt, kind)
    if kind is AxisKind.UPCAST:
        ast = substitute_recorded(ast, more_rows(kernel, axis, opt), str(opt))
    return substitute_recorded(ast, changes, str(opt))


def split_output(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> dict[UOp, UOp]:
    """The index that replaces `axis`: outer * amount + inner. The last block is shifted to end at the end of the axis.

    An axis that already counts such blocks is split into groups of blocks, which end there too: only the last group
    overlaps. On a GPU the last block is masked instead (`with_edge`), because two work-items must not store to one
    address.
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
        wide = step * amount
        if end >= wide:
            outer = UOp.range(-(-end // wide), axis.arg)
            start = _clamped(outer * index_const(wide), outer.size * wide, end - wide)
            return {position: start + inner * index_const(step)}
    outer = UOp.range(-(-size // amount), axis.arg)
    return {axis: _clamped(outer * index_const(amount), outer.size * amount, size - amount) + inner}


def split_symbolic(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """The index that replaces an axis of symbolic size after the split.

    If the size may be less than the amount, the last block cannot start earlier. Then steps of a tile past the end stay
    at the last index, and lanes past the end are masked (`with_edge`).
    """
    end, amount = simplified(axis.src[0]), opt.amount
    inner = UOp.range(amount, Axis(kernel.next_id(), kind))
    blocks = simplified((end + (amount - 1)) // amount)
    start = index_const(0) if blocks == 1 else UOp.range(blocks, axis.arg) * index_const(amount)
    if simplified(end % amount) == 0:
        return start + inner
    last = as_size(simplified(end - amount))
    if bounds(last)[0] >= 0:
        return start.minimum(last) + inner
    return start + inner if kind is AxisKind.VECTOR else (start + inner).minimum(as_size(simplified(end - 1)))


def split_scan(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    """Splits the loop of a scan into blocks of `amount` lanes, which run in sequence. The last block may be masked.

    A lane past the end may hold any value: no lane before it depends on it, and no lane follows.
    """
    blocks = simplified((axis.src[0] + (opt.amount - 1)) // opt.amount)
    inner = UOp.range(opt.amount, Axis(kernel.next_id(), AxisKind.VECTOR))
    outer = UOp.range(blocks, axis.arg) if blocks != 1 else None
    position = inner if outer is None else outer * index_const(opt.amount) + inner
    ast = with_edge(kernel, axis, opt, AxisKind.VECTOR)
    (scan,) = [node for node in ast.toposort() if node.op is Ops.SCAN]
    value = substitute_recorded(scan.src[0], {axis: position}, str(opt))
    loops = (inner,) if outer is None else (outer, inner)
    after = scan.replace(src=(value, *loops))
    record_derived([(scan, after)], str(opt))
    return substitute_recorded(ast, {scan: after, axis: position}, str(opt))


def with_edge(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """The ast with masks for lanes past the end of `axis`: those of a symbolic axis, or of a scan.

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
        inside = axis < end
        if has_items or node in stored or linear_terms(node.src[1])[0].get(axis) == 1:
            changes[node] = pointer.index(idx, valid[0] & inside if valid else inside)
        else:
            clamped = {axis: axis.minimum(as_size(simplified(end - 1)))}
            changes[node] = pointer.index(*(part.substitute(clamped) for part in (idx, *valid)))
    return substitute_recorded(kernel.ast, changes, f"{opt}, no further than {text(end)}")


def split_reduce(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind, *, on_top: bool = False) -> UOp:
    """Splits every REDUCE over `axis` into blocks. Remaining steps become a separate REDUCE.

    on_top: the new axis counts the blocks, and the old one the steps in a block.
    """
    end, amount = simplified(axis.src[0]), opt.amount
    inner = UOp.range(amount, Axis(kernel.next_id(), kind))
    blocks, left = simplified(end // amount), simplified(end % amount)
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
        others = tuple(loop for loop in reduce.src[1:] if loop is not axis)
        body = substitute_recorded(reduce.src[0], {**changes, axis: position}, str(opt))
        if kind is AxisKind.GROUP and len(loops) == 2 and not kernel.target.has_local:
            part = UOp(Ops.REDUCE, reduce.dtype, (body, inner), reduce.arg)
            after = UOp(Ops.REDUCE, reduce.dtype, (part, *others, outer), reduce.arg)
        else:
            after = UOp(Ops.REDUCE, reduce.dtype, (body, *others, *loops), reduce.arg)
        record_derived([(reduce, after)], str(opt))
        if left != 0:
            rest = UOp.range(left, Axis(kernel.next_id() + 1, AxisKind.REDUCE))
            tail = rest + as_size(simplified(end - left))
            renamed = {axis: tail, **fresh_inner_loops(kernel, reduce.src[0], axis)}
            rest_body = substitute_recorded(reduce.src[0], {**changes, **renamed}, str(opt))
            remainder = UOp(Ops.REDUCE, reduce.dtype, (rest_body, *others, rest), reduce.arg)
            record_derived([(reduce, remainder)], f"{opt}, what is left over")
            after = after.alu(reduce.arg, remainder)
        changes[reduce] = after
    return substitute_recorded(kernel.ast, changes, str(opt))


def fresh_inner_loops(kernel: Kernel, body: UOp, axis: UOp) -> dict[UOp, UOp]:
    """New axes for the reductions inside `body` that depend on `axis`: a copy of `body` needs its own loops."""
    nested = [node for node in body.toposort() if node.op is Ops.REDUCE and axis in node.ranges]
    inside = {loop for node in nested for loop in node.src[1:]}
    own = sorted((loop for loop in inside if loop not in body.ranges), key=lambda loop: loop.arg.id)
    first = kernel.next_id() + 2
    return {loop: UOp.range(loop.src[0], Axis(first + n, loop.arg.kind)) for n, loop in enumerate(own)}


def split_row(kernel: Kernel, axis: UOp, opt: Opt, kind: AxisKind) -> UOp:
    """Splits a loop that fills a row buffer. The last block ends at the end and overlaps the block before it.

    If a symbolic end leaves no room for that, lanes past it are masked.
    """
    changes = split_output(kernel, axis, opt, kind)
    ast = with_edge(kernel, axis, opt, kind)
    fresh = {loop for position in changes.values() for loop in position.ranges}
    own = tuple(sorted(fresh, key=lambda loop: loop.arg.id))
    for barrier in [node for node in ast.toposort() if node.op is Ops.BARRIER]:
        if axis in barrier.src[1:]:
            store = substitute_recorded(barrier.src[0], changes, str(opt))
            loops = tuple(part for loop in barrier.src[1:] for part in (own if loop is axis else (loop,)))
            return substitute_recorded(ast, {barrier: UOp(Ops.BARRIER, dtypes.void, (store, *loops))}, str(opt))
    raise ValueError(f"no row is filled by axis {axis.arg.id}")


def more_rows(kernel: Kernel, axis: UOp, opt: Opt) -> dict[UOp, UOp]:
    """Each access to scratch memory that differs along the output axis `axis`, with the access that replaces it. The
    scratch memory then has one row for each step that UPCAST writes out."""
    step = UOp.range(opt.amount, Axis(kernel.next_id(), AxisKind.UPCAST))
    grown: dict[UOp, UOp] = {}
    for barrier in kept_along(kernel, axis):
        if copies_result(barrier):
            continue
        scratch = scratch_of(barrier)
        grown[scratch] = scratch.replace(dtype=PtrDType(scratch.dtype.base, scratch.dtype.size * opt.amount, "local"))
    changes = {}
    for node in kernel.find(Ops.INDEX) if grown else ():
        if node.src[0] in grown:
            row = step * index_const(node.src[0].dtype.size)
            changes[node] = grown[node.src[0]].index(node.src[1] + row, *node.src[2:])
    return changes


def ragged_blocks(axis: UOp, nodes: Iterable[UOp]) -> tuple[UOp, int, int] | None:
    """(the node of a block's start, steps of a block, steps in total) if `axis` counts overlapping blocks; else
    None."""
    users = [node for node in nodes if axis in node.src and node.op not in (Ops.REDUCE, Ops.BARRIER)]
    if len(users) != 1 or users[0].op is not Ops.MUL or users[0].src[1].op is not Ops.CONST:
        return None
    starts = [node for node in nodes if users[0] in node.src]
    if len(starts) != 1 or starts[0].op is not Ops.MIN or starts[0].src[1].op is not Ops.CONST:
        return None
    step, last = users[0].src[1].arg, starts[0].src[1].arg
    return (starts[0], step, last + step) if -(-(last + step) // step) == axis.size else None


def _clamped(start: UOp, end: int, last: int) -> UOp:
    """`start`, limited to `last` if the last block would end elsewhere. `end`: the end of the last block without a
    limit."""
    width = start.src[1].arg
    return start if end - width == last else start.minimum(index_const(last))

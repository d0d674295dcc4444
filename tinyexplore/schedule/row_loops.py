"""Row buffers: values that several loops of a kernel read row by row are computed once, into scratch memory.

Softmax reads its exponentials twice. Attention reads its scores three times, and their softmax once for every column of
the result. These values need no buffer in memory: one row of them, or the rows of a register tile, stay in the L1 or L2
cache while the kernel needs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.indexing import Index, flat_index, source_index
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import greatest, product, simplified

if TYPE_CHECKING:
    from tinyexplore.schedule.plan import Use

# The most reads that are followed to memory. Each block of a residual network can double the number of reads: the two
# branches read other indices. The programs of bench.cliffs need up to 360.
MAX_VISITS = 5_000
STORED = frozenset({Ops.CONTIGUOUS, Ops.COPY, Ops.SCAN_AXIS, Ops.SCATTER, Ops.FETCH_ADD, Ops.WRITE})  # always in memory


@dataclass(frozen=True, slots=True)
class RowLoops:
    """A row of a node, and the loops over the rows.

    axes: the node's axes that form its row.
    loops: the kernel's loops over the rows.
    """

    axes: tuple[int, ...]
    loops: tuple[UOp, ...]


def _find_walked_axes(node: LazyBuffer, uses: Sequence[Use]) -> tuple[list[int], set[UOp]] | None:
    """Finds the axes along which every use reads all elements, and the loops in the indices along the other axes.

    None if a use does neither along some axis.
    """
    plan = uses[0].plan
    axes: list[int] = []
    outer_loops: set[UOp] = set()
    for axis, size in enumerate(node.shape):
        indices = {use.idxs[axis] for use in uses}
        (index, *other_indices) = indices
        if not other_indices and all(loop in plan.loops for loop in index.ranges):
            outer_loops |= index.ranges
        elif all(index.op is Ops.RANGE and simplified(index.src[0]) == size for index in indices):
            axes.append(axis)
        else:
            return None
    return axes, outer_loops


def common_row(node: LazyBuffer, uses: Sequence[Use]) -> RowLoops | None:
    """Returns the row of `node` that all uses read completely, with equal indices along the other axes; None if there
    is none."""
    plan = uses[0].plan
    if any(use.plan is not plan or use.conditions for use in uses):
        return None
    if any(loop.arg.kind is AxisKind.SCAN for loop in plan.loops):
        return None
    walked_axes = _find_walked_axes(node, uses)
    if walked_axes is None:
        return None
    axes, outer_loops = walked_axes
    depth = max((number + 1 for number, loop in enumerate(plan.loops) if loop in outer_loops), default=0)
    row = RowLoops(tuple(axes), plan.loops[:depth])
    if any(use.idxs[axis] in row.loops for use in uses for axis in axes):
        return None
    last_axes = [axis for axis, size in enumerate(node.shape) if size != 1][-len(axes) :]
    if axes != last_axes:
        return None  # not contiguous: each row would access the memory of many others
    walked = product([*(loop.src[0] for loop in row.loops), *(node.shape[axis] for axis in axes)])
    return row if axes and walked == product(node.shape) else None


def row_bytes(node: LazyBuffer, row: RowLoops) -> int:
    """Returns the largest size of a row in bytes."""
    return greatest(product(node.shape[axis] for axis in row.axes)) * node.dtype.itemsize


def steps_between(row: RowLoops, use: Use) -> int:
    """Counts how often a use reads each row: the steps of its loops that are neither over rows nor inside a row."""
    row_loops = frozenset().union(*(use.idxs[axis].ranges for axis in row.axes))
    return prod(loop.size for loop in use.loops if loop not in row.loops and loop not in row_loops)


def reduces_within(node: LazyBuffer) -> bool:
    """Whether `node` is computed from a reduction that is not in memory."""
    return next(reductions_within(node), None) is not None


def reductions_within(node: LazyBuffer) -> Iterator[LazyBuffer]:
    """Yields the reductions that are not in memory and whose results `node` combines by elementwise operations."""
    visited = {node}
    stack = [node]
    while stack:
        inner = stack.pop()
        if inner.buffer is not None or inner.op in STORED:
            continue
        if inner.op is Ops.REDUCE_AXIS:
            yield inner
            continue
        stack.extend(src for src in inner.src if src not in visited)
        visited.update(inner.src)


def bytes_every_row_reads(node: LazyBuffer, idxs: Index, row: RowLoops) -> int | None:
    """Returns the bytes that every row reads when `node` is computed at `idxs`; None if there are too many reads to
    follow."""
    if not row.loops:
        return 0
    rows = row.loops[-1]
    total = 0
    visited: set[tuple[LazyBuffer, Index]] = set()
    stack = [(node, idxs)]
    while stack:
        inner, indices = stack.pop()
        if (inner, indices) in visited:
            continue
        visited.add((inner, indices))
        if len(visited) > MAX_VISITS:
            return None
        if inner.op in (Ops.CONST, Ops.IOTA):
            continue
        if inner.buffer is not None or inner.op in STORED:
            if not any(rows in idx.ranges for idx in indices):
                total += inner.size * inner.dtype.itemsize // outer_steps(indices)
        elif inner.op in OpGroups.MOVEMENT:
            stack.append((inner.src[0], source_index(inner, indices)[0]))
        elif inner.op is Ops.REDUCE_AXIS:
            reduced = {axis: UOp.range(inner.src[0].shape[axis], Axis(-axis, AxisKind.REDUCE)) for axis in inner.arg[1]}
            stack.append((inner.src[0], tuple(reduced.get(axis, idx) for axis, idx in enumerate(indices))))
        elif inner.op is Ops.GATHER:
            stack.append((inner.src[1], indices))
        else:
            stack.extend((src, indices) for src in inner.src)
    return total


def is_read_across(node: LazyBuffer, idxs: Index) -> bool:
    """Whether the reduction `node` at `idxs` reads memory with a stride where a loop of `idxs` has unit stride.

    Lanes along that loop would read vectors. Inner reductions count as if they were in memory.
    """
    reduced = {axis: UOp.range(node.src[0].shape[axis], Axis(-1 - axis, AxisKind.REDUCE)) for axis in node.arg[1]}
    steps = set(reduced.values())
    unit_loops: set[UOp] = set()  # loops with unit stride in memory that the reduction reads with a stride
    strided_loops: set[UOp] = set()  # loops with a stride in memory that the reduction reads contiguously
    visited: set[tuple[LazyBuffer, Index]] = set()
    stack = [(node.src[0], tuple(reduced.get(axis, idx) for axis, idx in enumerate(idxs)))]
    while stack:
        inner, indices = stack.pop()
        if (inner, indices) in visited or inner.op in (Ops.CONST, Ops.IOTA):
            continue
        visited.add((inner, indices))
        if inner.op is Ops.GATHER:
            return False
        if inner.buffer is not None or inner.op in STORED or inner.op is Ops.REDUCE_AXIS:
            terms, _ = linear_terms(flat_index(inner.shape, indices))
            if any(terms.get(step) == 1 for step in steps):
                strided_loops.update(*[term.ranges - steps for term in terms])
            elif any(step in terms for step in steps):
                unit_loops |= {term for term, stride in terms.items() if stride == 1 and term.op is Ops.RANGE}
        elif inner.op in OpGroups.MOVEMENT:
            stack.append((inner.src[0], source_index(inner, indices)[0]))
        else:
            stack.extend((src, indices) for src in inner.src)
    return not unit_loops <= strided_loops


def outer_steps(idxs: Index) -> int:
    """Returns the number of parts into which the kernel's own loops divide the range of these indices."""
    loops = frozenset().union(*(idx.ranges for idx in idxs))
    return max(1, prod(loop.size for loop in loops if loop.arg.kind is AxisKind.GLOBAL))

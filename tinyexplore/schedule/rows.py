"""Rows: what several loops of one kernel read, row by row, is computed once for each row and kept in scratch memory.

Softmax reads its exponentials twice, attention its scores three times and their softmax once for every column of the
result. Nothing of that needs a buffer of its own: a row of it, or as many rows as a register tile has, lies in the
L1 or L2 cache while it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.indexing import Index, flat_index, source_index
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp
from tinyexplore.uop.divmod import linear_terms
from tinyexplore.uop.symbolic import greatest, product, simplified

if TYPE_CHECKING:
    from tinyexplore.schedule.plan import Visit

STORED = frozenset({Ops.CONTIGUOUS, Ops.COPY, Ops.SCAN_AXIS, Ops.SCATTER, Ops.FETCH_ADD, Ops.WRITE})  # always in memory


@dataclass(frozen=True, slots=True)
class RowLoops:
    """A row of a node, and the loops over the rows.

    axes: the node's axes that make its row.
    loops: the kernel's loops that count the rows.
    """

    axes: tuple[int, ...]
    loops: tuple[UOp, ...]


def common_row(node: LazyBuffer, visits: Sequence[Visit]) -> RowLoops | None:
    """The row of `node` that all visits walk from end to end, while each stands at the same place of the other axes."""
    plan = visits[0].plan
    if any(visit.plan is not plan or visit.conditions for visit in visits):
        return None
    if any(loop.arg.kind is AxisKind.SCAN for loop in plan.loops):
        return None
    axes: list[int] = []
    outside: set[UOp] = set()
    for axis, size in enumerate(node.shape):
        places = {visit.idxs[axis] for visit in visits}
        (place, *others) = places
        if not others and all(loop in plan.loops for loop in place.ranges):
            outside |= place.ranges
        elif all(place.op is Ops.RANGE and simplified(place.src[0]) == size for place in places):
            axes.append(axis)
        else:
            return None
    depth = max((number + 1 for number, loop in enumerate(plan.loops) if loop in outside), default=0)
    row = RowLoops(tuple(axes), plan.loops[:depth])
    if any(visit.idxs[axis] in row.loops for visit in visits for axis in axes):
        return None
    last = [axis for axis, size in enumerate(node.shape) if size != 1][-len(axes) :]
    if axes != last:
        return None  # not side by side: each row would access memory of many
    walked = product([*(loop.src[0] for loop in row.loops), *(node.shape[axis] for axis in axes)])
    return row if axes and walked == product(node.shape) else None


def row_bytes(node: LazyBuffer, row: RowLoops) -> int:
    """What a row takes, at the most."""
    return greatest(product(node.shape[axis] for axis in row.axes)) * node.dtype.itemsize


def steps_between(row: RowLoops, visit: Visit) -> int:
    """How often a visit walks each row: the loops around its reads that count neither rows nor places in one."""
    own = frozenset().union(*(visit.idxs[axis].ranges for axis in row.axes))
    return prod(loop.size for loop in visit.loops if loop not in row.loops and loop not in own)


def reduces_within(node: LazyBuffer) -> bool:
    """True where a reduction that has no memory stands among what `node` is computed from."""
    seen = {node}
    stack = [node]
    while stack:
        inner = stack.pop()
        if inner.op is Ops.REDUCE_AXIS and inner.buffer is None:
            return True
        if inner.buffer is not None or inner.op in STORED:
            continue
        stack.extend(src for src in inner.src if src not in seen)
        seen.update(inner.src)
    return False


def bytes_every_row_reads(node: LazyBuffer, idxs: Index, row: RowLoops) -> int:
    """The memory that computing `node` at `idxs` reads alike for every row."""
    if not row.loops:
        return 0
    rows = row.loops[-1]
    total = 0
    seen: set[tuple[LazyBuffer, Index]] = set()
    stack = [(node, idxs)]
    while stack:
        inner, at = stack.pop()
        if (inner, at) in seen:
            continue
        seen.add((inner, at))
        if inner.op in (Ops.CONST, Ops.IOTA):
            continue
        if inner.buffer is not None or inner.op in STORED:
            if not any(rows in idx.ranges for idx in at):
                total += inner.size * inner.dtype.itemsize // outer_steps(at)
        elif inner.op in OpGroups.MOVEMENT:
            stack.append((inner.src[0], source_index(inner, at)[0]))
        elif inner.op is Ops.REDUCE_AXIS:
            reduced = {axis: UOp.range(inner.src[0].shape[axis], Axis(-axis, AxisKind.REDUCE)) for axis in inner.arg[1]}
            stack.append((inner.src[0], tuple(reduced.get(axis, idx) for axis, idx in enumerate(at))))
        elif inner.op is Ops.GATHER:
            stack.append((inner.src[1], at))
        else:
            stack.extend((src, at) for src in inner.src)
    return total


def is_read_across(node: LazyBuffer, idxs: Index) -> bool:
    """True for a reduction at `idxs` that reads memory with a stride, where a loop of `idxs` has unit stride.

    Lanes along that loop would read vectors. Reductions inside count as if they were in memory.
    """
    reduced = {axis: UOp.range(node.src[0].shape[axis], Axis(-1 - axis, AxisKind.REDUCE)) for axis in node.arg[1]}
    steps = set(reduced.values())
    unit_loops: set[UOp] = set()  # have unit stride in what the reduction reads with a stride
    strided_loops: set[UOp] = set()  # move what the reduction reads side by side
    seen: set[tuple[LazyBuffer, Index]] = set()
    stack = [(node.src[0], tuple(reduced.get(axis, idx) for axis, idx in enumerate(idxs)))]
    while stack:
        inner, at = stack.pop()
        if (inner, at) in seen or inner.op in (Ops.CONST, Ops.IOTA):
            continue
        seen.add((inner, at))
        if inner.op is Ops.GATHER:
            return False
        if inner.buffer is not None or inner.op in STORED or inner.op is Ops.REDUCE_AXIS:
            terms, _ = linear_terms(flat_index(inner.shape, at))
            if any(terms.get(step) == 1 for step in steps):
                strided_loops.update(*[term.ranges - steps for term in terms])
            elif any(step in terms for step in steps):
                unit_loops |= {term for term, stride in terms.items() if stride == 1 and term.op is Ops.RANGE}
        elif inner.op in OpGroups.MOVEMENT:
            stack.append((inner.src[0], source_index(inner, at)[0]))
        else:
            stack.extend((src, at) for src in inner.src)
    return not unit_loops <= strided_loops


def outer_steps(idxs: Index) -> int:
    """How many parts the kernel's own loops make of what these indices walk."""
    loops = frozenset().union(*(idx.ranges for idx in idxs))
    return max(1, prod(loop.size for loop in loops if loop.arg.kind is AxisKind.GLOBAL))

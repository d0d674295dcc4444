"""Which loop of a kernel should prefetch: where no hardware prefetcher follows what is read from memory.

Prefetchers of a CPU follow walks from line to line, within a page. They know nothing of the next row while a kernel is
still busy with this one, nor where a walk goes that is in another page with every step.
"""

from __future__ import annotations

from math import prod

from tinyexplore.kernel.analysis.memory import (
    LOOPS,
    buffer_bytes,
    comes_from_memory,
    footprint_bytes,
    inside,
    is_read_once,
    step_bytes,
)
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.decisions.decision import Proposal, Proposals, exceeds, reaches, weigh
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp

MOST_STEPS = 8
MOST_READS = 5  # of an element, four and the overlap of last blocks: waiting for memory is what takes time
MANY_PAGES = 512  # that a walk down passes: enough to look ahead along itself
AHEAD_BY = "the loop that looks ahead: bytes by which a step of it moves on in memory"


def prefetch(kernel: Kernel) -> Proposals:
    """AHEAD for the next row, where rows are read several times, or for the next lines, where a walk jumps from page to
    page: no prefetcher of the hardware follows these, and waiting for memory is what takes the time."""
    memory = kernel.find(Ops.DEFINE_GLOBAL)
    pointers = {node for node in memory if buffer_bytes(node) > kernel.target.l2_bytes}
    largest = max(map(buffer_bytes, memory), default=0)
    if not exceeds("bytes of the largest buffer, against L2", largest, kernel.target.l2_bytes):
        return
    if kernel.result_copies or any(axis.arg.ahead for axis in kernel.axes):
        return
    loads = [access for access in kernel.accesses if not access.is_store and access.node.src[0] in pointers]
    walked = {axis for reduce in kernel.plain_reduces for axis in reduce.src[1:]}
    unwalked = {axis for reduce in kernel.reduces for axis in reduce.src[1:] if axis not in walked}
    loads = [load for load in loads if unwalked.isdisjoint(load.node.ranges)]
    choice = prefetched_places(kernel) or prefetched_row(kernel, loads) or prefetched_jump(kernel, loads)
    if choice is not None:
        loops = {loop for load in loads for loop in load.node.ranges if loop.arg.kind in LOOPS}
        steps = {
            loop.arg.name: sum(step_bytes(load, loop) for load in loads) for loop in sorted(loops, key=loop_number)
        }
        chosen = next(loop.arg.name for loop in kernel.axes if loop.arg.id == choice.opt.axis)
        weigh(AHEAD_BY, steps, chosen)
        yield choice


def prefetched_places(kernel: Kernel) -> Proposal | None:
    """The loop that stores to places that values say: stores are done in order, and each would wait for its line."""
    places = [store.src[0].src[1] for store in kernel.ast.src]
    load_loops = [axis for place in places if place.find(Ops.LOAD) for axis in place.ranges]
    inner = max(load_loops, key=loop_number, default=None)
    ahead = kernel.target.lines_in_flight
    if inner is None or not inner.is_static or inner.size <= ahead:
        return None
    reason = "stores to places that values say are done in order: each would wait for its line"
    return Proposal(Opt(OptOps.AHEAD, inner.arg.id, ahead), reason)


def loop_number(loop: UOp) -> int:
    return int(loop.arg.id)


def prefetched_row(kernel: Kernel, loads: list[IndexStrides]) -> Proposal | None:
    row = row_read_again(kernel, [load for load in loads if comes_from_memory(load, kernel.target)])
    if row is None:
        return None
    axis, steps = row
    reason = "each row is read several times: the next one is asked for meanwhile"
    return Proposal(Opt(OptOps.AHEAD, axis.arg.id, steps), reason)


def prefetched_jump(kernel: Kernel, loads: list[IndexStrides]) -> Proposal | None:
    """The loop of a walk from page to page. A copy out of a cache needs no prefetch: its tile reads whole lines, and a
    transposition of 1024² or 2048² out of L3 takes 1.1 to 1.5 times as long with it."""
    if not kernel.reduces:
        loads = [load for load in loads if comes_from_memory(load, kernel.target)]
    for load in loads:
        if is_read_seldom(kernel, load) and (jump := jumping_walk(kernel, load)) is not None:
            axis, steps = jump
            reason = "each step is in another page, where no prefetcher of the hardware follows"
            return Proposal(Opt(OptOps.AHEAD, axis.arg.id, steps), reason)
    return None


def row_read_again(kernel: Kernel, loads: list[IndexStrides]) -> tuple[UOp, int] | None:
    """The loop over rows each of which several loops, one after the other, read whole out of one buffer, and by how
    many of them it should look ahead.

    The last of them computes a row of results. Of a row of which one number is made, the second loop has no stores to
    wait for: it leaves room behind it where rows are long and nothing is dear to compute.
    """
    page = kernel.target.page_bytes  # in which prefetchers of the hardware follow a walk
    is_kept = bool(kernel.find(Ops.BARRIER))
    is_dear = not OpGroups.TRANSCENDENTAL.isdisjoint(kernel.by_op)
    for axis in reversed(kernel.output_axes):
        ends_in_row = any(other.arg.kind in LOOPS and other.arg.id > axis.arg.id for other in kernel.output_axes)
        if not ends_in_row and is_dear:
            continue
        # what a row is kept of is dear: there is time for a fetch; a second look at a short sum takes as long as asking
        shortest = page if is_kept else 2 * page if ends_in_row else 4 * page
        steps = 1
        walks: dict[UOp, set[frozenset[UOp]]] = {}
        for load in loads:
            row = footprint_bytes(load, axis)
            if not reaches(f"bytes of a row in {axis.arg.name}", row, shortest):
                continue
            is_long = exceeds("bytes of that row, against a part of L2", row, kernel.target.l2_bytes // 16)
            if not is_long and row <= 2 * step_bytes(load, axis):
                steps = max(steps, -(-2 * page // row))
                walks.setdefault(load.node.src[0], set()).add(inside(load, axis))
        if axis.arg.kind in LOOPS and any(len(jumps) > 1 for jumps in walks.values()):
            return axis, steps
    return None


def is_read_seldom(kernel: Kernel, load: IndexStrides) -> bool:
    """True where each element is loaded at most a few times, as by the product of a few rows with a matrix."""
    if is_read_once(kernel, load):
        return True
    axes = load.node.ranges
    again = prod(axis.size for axis in kernel.output_axes if axis.arg.kind in LOOPS and axis not in axes)
    is_summed = any(axis.arg.kind is AxisKind.REDUCE for axis in axes)
    return is_summed and prod(axis.size for axis in axes) * again <= MOST_READS * int(load.node.src[0].dtype.size)


def jumping_walk(kernel: Kernel, load: IndexStrides) -> tuple[UOp, int] | None:
    """The loop that should look ahead where loops inside it are in another page with every step, and by how many steps.

    It is the one that moves on by a line or some; the loop that jumps, where that one takes too long for a step.
    """
    target = kernel.target
    loops = sorted((axis for axis in load.node.ranges if axis.arg.kind in LOOPS), key=lambda axis: -axis.arg.id)
    jumping = next((axis for axis in loops if step_bytes(load, axis) >= target.page_bytes), None)
    if jumping is None:
        return None
    read, most = footprint_bytes(load, jumping), min(target.page_bytes, step_bytes(load, jumping) // 2)
    if exceeds(f"bytes read of each page that {jumping.arg.name} steps into", read, most):
        return None
    l2_bytes, step = target.l2_bytes, footprint_bytes(load, jumping)
    long_step = target.lines_in_flight * target.line_bytes  # takes long enough for the next pages to be requested
    itemsize = int(load.node.src[0].dtype.base.itemsize)
    down = (jumping, min(target.ahead_bytes // step, jumping.size // MOST_STEPS))
    is_reduced = jumping.arg.kind is AxisKind.REDUCE and (comes_from_memory(load, target) or step >= long_step)
    stretch = prod(axis.size for axis in inside(load, jumping) if axis.arg.kind is not AxisKind.UNROLL)
    is_only = len(kernel.plain_reduces) == 1  # of several walks down, the next column serves all
    is_long = is_only and is_reduced and reaches(f"pages that {jumping.arg.name} passes", jumping.size, MANY_PAGES)
    if is_long and reaches("bytes read of each of them", stretch * itemsize, 4 * target.line_bytes):
        return down
    for axis in loops:
        nearby, walk = step_bytes(load, axis), footprint_bytes(load, axis)
        if axis.arg.id < jumping.arg.id and target.line_bytes <= nearby < long_step:
            least = 2 if is_only or nearby == target.line_bytes else 1  # 1 is on its way where lines come in pairs
            steps = max(least, min(MOST_STEPS, l2_bytes // 4 // walk))
            in_memory = nearby == target.line_bytes or not is_only or comes_from_memory(load, target)
            if in_memory and MOST_STEPS * steps <= axis.size and (steps + 1) * walk <= 6 * l2_bytes:
                return axis, steps
    return down if is_reduced and down[1] >= 1 else None


__all__ = ["prefetch"]

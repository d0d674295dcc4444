"""Proposes a prefetch in the loop whose reads no hardware prefetcher follows.

A CPU's prefetchers follow accesses from line to line, within a page. They cannot predict the next row while a kernel
still works on the current one, nor accesses that reach another page in every step.
"""

from __future__ import annotations

from math import prod

from tinyexplore.kernel.analysis.memory import (
    LOOPS,
    axes_read_by_step,
    buffer_bytes,
    comes_from_memory,
    footprint_bytes,
    is_read_once,
    step_bytes,
)
from tinyexplore.kernel.analysis.strides import IndexStrides
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches, record_scores
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, OpGroups, Ops, UOp

MAX_STEPS = 8
MAX_READS = 5  # reads of an element, four and the overlap of last blocks: a kernel with more does not wait for memory
STRETCH_FACTOR = 2  # short stretches are prefetched ahead by this many times the lines in flight
MIN_PAGES = 512  # pages that a loop down the rows passes: enough for this loop itself to prefetch
ADVANCE_LABEL = "stride in bytes per iteration, by loop (the chosen loop prefetches)"


def loads_from_memory(kernel: Kernel) -> list[IndexStrides]:
    """Returns the loads of buffers larger than L2 that depend on output loops and plain reductions only."""
    pointers = {node for node in kernel.find(Ops.DEFINE_GLOBAL) if buffer_bytes(node) > kernel.target.l2_bytes}
    loads = [access for access in kernel.accesses if not access.is_store and access.node.src[0] in pointers]
    walked = {axis for reduce in kernel.plain_reduces for axis in reduce.src[1:]}
    unwalked = {axis for reduce in kernel.reduces for axis in reduce.src[1:] if axis not in walked}
    return [load for load in loads if unwalked.isdisjoint(load.node.ranges)]


def prefetch(kernel: Kernel) -> Proposals:
    """Proposes PREFETCH for accesses that hardware prefetchers do not follow, in kernels that wait for memory.

    These are: stores to loaded addresses; the next row, if rows are read several times; the next lines of accesses that
    jump from page to page; and short stretches of rows.
    """
    largest = max(map(buffer_bytes, kernel.find(Ops.DEFINE_GLOBAL)), default=0)
    if not exceeds("bytes of the largest buffer (bound: L2)", largest, kernel.target.l2_bytes):
        return
    if kernel.result_copies or any(axis.arg.ahead for axis in kernel.axes):
        return
    loads = loads_from_memory(kernel)
    choice = (
        propose_indirect_prefetch(kernel) or propose_row_prefetch(kernel, loads) or propose_jump_prefetch(kernel, loads)
    )
    choice = choice or propose_stretch_prefetch(kernel, loads)
    if choice is not None:
        loops = {loop for load in loads for loop in load.node.ranges if loop.arg.kind in LOOPS}
        steps = {
            loop.arg.name: sum(step_bytes(load, loop) for load in loads) for loop in sorted(loops, key=loop_number)
        }
        chosen_name = next(loop.arg.name for loop in kernel.axes if loop.arg.id == choice.opt.axis)
        record_scores(ADVANCE_LABEL, steps, chosen_name)
        yield choice


def propose_indirect_prefetch(kernel: Kernel) -> Proposal | None:
    """Returns PREFETCH for a loop that stores to loaded addresses. Stores complete in order, so each store
    would wait for its cache line."""
    indices = [store.src[0].src[1] for store in kernel.ast.src]
    load_loops = [axis for index in indices if index.find(Ops.LOAD) for axis in index.ranges]
    inner = max(load_loops, key=loop_number, default=None)
    ahead = kernel.target.lines_in_flight
    if inner is None or not inner.is_static or inner.size <= ahead:
        return None
    reason = "stores to data-dependent addresses complete in order, so a prefetch hides each cache miss"
    return Proposal(Opt(OptOps.PREFETCH, inner.arg.id, ahead), reason)


def loop_number(loop: UOp) -> int:
    return int(loop.arg.id)


def propose_row_prefetch(kernel: Kernel, loads: list[IndexStrides]) -> Proposal | None:
    row = row_read_again(kernel, [load for load in loads if comes_from_memory(load, kernel.target)])
    if row is None:
        return None
    axis, steps = row
    reason = "the kernel reads each row several times, which leaves time to prefetch the next row"
    return Proposal(Opt(OptOps.PREFETCH, axis.arg.id, steps), reason)


def propose_jump_prefetch(kernel: Kernel, loads: list[IndexStrides]) -> Proposal | None:
    """Returns PREFETCH for a loop whose accesses jump from page to page.

    A copy from a cache gets none: its tile reads whole lines, and a transposition of 1024² or 2048² from L3 takes 1.1
    to 1.5 times as long with a prefetch.
    """
    if not kernel.reduces:
        loads = [load for load in loads if comes_from_memory(load, kernel.target)]
    for load in loads:
        if is_read_seldom(kernel, load) and (jump := jumping_walk(kernel, load)) is not None:
            axis, steps = jump
            reason = "each iteration reads another page, and hardware prefetchers stop at the end of a page"
            return Proposal(Opt(OptOps.PREFETCH, axis.arg.id, steps), reason)
    return None


def row_read_again(kernel: Kernel, loads: list[IndexStrides]) -> tuple[UOp, int] | None:
    """Returns the loop over rows that several inner loops read whole, one after the other, and how many rows to
    prefetch ahead.

    Usually the last inner loop computes a row of results. If a row gives only one number, the second loop has no stores
    to wait for. A prefetch then pays only for long rows without expensive operations.
    """
    page = kernel.target.page_bytes  # hardware prefetchers follow accesses within a page
    has_row_buffer = bool(kernel.find(Ops.BARRIER))
    is_expensive = not OpGroups.TRANSCENDENTAL.isdisjoint(kernel.by_op)
    for axis in reversed(kernel.output_axes):
        ends_in_row = any(
            inner_loop.arg.kind in LOOPS and inner_loop.arg.id > axis.arg.id for inner_loop in kernel.output_axes
        )
        if not ends_in_row and is_expensive:
            continue
        # filling a row buffer leaves time for a prefetch; reading a short row again takes as long as prefetching it
        shortest = page if has_row_buffer else 2 * page if ends_in_row else 4 * page
        steps = 1
        walks: dict[UOp, set[frozenset[UOp]]] = {}
        for load in loads:
            row = footprint_bytes(load, axis)
            if not reaches(f"bytes read per iteration of {axis.arg.name} (one row)", row, shortest):
                continue
            is_long = exceeds("bytes of this row (bound: L2 / 16)", row, kernel.target.l2_bytes // 16)
            if not is_long and row <= 2 * step_bytes(load, axis):
                steps = max(steps, -(-2 * page // row))
                walks.setdefault(load.node.src[0], set()).add(axes_read_by_step(load, axis))
        if axis.arg.kind in LOOPS and any(len(jumps) > 1 for jumps in walks.values()):
            return axis, steps
    return None


def is_read_seldom(kernel: Kernel, load: IndexStrides) -> bool:
    """Whether each element is loaded at most a few times, as in the product of a few rows with a matrix."""
    if is_read_once(kernel, load):
        return True
    axes = load.node.ranges
    times_read = prod(axis.size for axis in kernel.output_axes if axis.arg.kind in LOOPS and axis not in axes)
    is_summed = any(axis.arg.kind is AxisKind.REDUCE for axis in axes)
    return is_summed and prod(axis.size for axis in axes) * times_read <= MAX_READS * int(load.node.src[0].dtype.size)


def propose_stretch_prefetch(kernel: Kernel, loads: list[IndexStrides]) -> Proposal | None:
    """Returns PREFETCH for the sum's loop in a product of few rows with a matrix in a cache past L2.

    The tile shares its loads among all rows and reads two or three lines of each matrix row. That is too little for a
    hardware prefetcher to follow.
    """
    target = kernel.target
    tile = [axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.UPCAST and axis.size > 1]
    for load in loads:
        loops = [axis for axis in load.node.ranges if axis.arg.kind in LOOPS]
        inner_loop = max(loops, key=loop_number, default=None)
        if (
            inner_loop is None
            or inner_loop.arg.kind is not AxisKind.REDUCE
            or not inner_loop.is_static
            or not is_read_seldom(kernel, load)
        ):
            continue
        if all(axis in load.node.ranges for axis in tile) or step_bytes(load, inner_loop) < target.page_bytes // 2:
            continue
        stretch = footprint_bytes(load, inner_loop)
        steps = min(
            STRETCH_FACTOR * target.lines_in_flight * target.line_bytes // stretch, inner_loop.size // MAX_STEPS
        )
        are_few_bytes = not reaches(
            f"bytes read per iteration of {inner_loop.arg.name}", stretch, 4 * target.line_bytes
        )
        if are_few_bytes and stretch > target.line_bytes and steps >= 1:
            reason = "hardware prefetchers do not follow the few cache lines that an iteration reads of a row"
            return Proposal(Opt(OptOps.PREFETCH, inner_loop.arg.id, steps), reason)
    return None


def jumping_walk(kernel: Kernel, load: IndexStrides) -> tuple[UOp, int] | None:
    """Returns the loop that prefetches if a loop inside it reaches another page in every step, and the number of steps
    ahead.

    This is an outer loop that moves by one or a few lines. If each of its steps takes too long, it is the jumping loop
    itself.
    """
    target = kernel.target
    loops = sorted((axis for axis in load.node.ranges if axis.arg.kind in LOOPS), key=lambda axis: -axis.arg.id)
    jumping = next((axis for axis in loops if step_bytes(load, axis) >= target.page_bytes), None)
    if jumping is None:
        return None
    bytes_read, most_bytes = footprint_bytes(load, jumping), min(target.page_bytes, step_bytes(load, jumping) // 2)
    if exceeds(f"bytes read per iteration of {jumping.arg.name} (one page or more apart)", bytes_read, most_bytes):
        return None
    step = footprint_bytes(load, jumping)
    # bytes read in a step that takes long enough to request the next pages
    long_step = target.lines_in_flight * target.line_bytes
    itemsize = int(load.node.src[0].dtype.base.itemsize)
    jump_prefetch = (jumping, min(target.ahead_bytes // step, jumping.size // MAX_STEPS))
    is_reduced = jumping.arg.kind is AxisKind.REDUCE and (comes_from_memory(load, target) or step >= long_step)
    stretch = prod(axis.size for axis in axes_read_by_step(load, jumping) if axis.arg.kind is not AxisKind.UNROLL)
    is_only = len(kernel.plain_reduces) == 1  # several reductions down the rows share the prefetch of the next column
    is_long = is_only and is_reduced and reaches(f"pages accessed by {jumping.arg.name}", jumping.size, MIN_PAGES)
    if is_long and reaches("bytes read per page", stretch * itemsize, 4 * target.line_bytes):
        return jump_prefetch
    for axis in loops:
        if axis.arg.id < jumping.arg.id and target.line_bytes <= step_bytes(load, axis) < long_step:
            if steps := steps_ahead(load, axis, target, is_only):
                return axis, steps
    return jump_prefetch if is_reduced and jump_prefetch[1] >= 1 else None


def steps_ahead(load: IndexStrides, axis: UOp, target: Target, is_only: bool) -> int:
    """Returns how many steps ahead a loop prefetches that moves by a few lines; 0 for no prefetch.

    is_only: no other sum reads down the same memory.
    """
    l2_bytes, nearby, walk = target.l2_bytes, step_bytes(load, axis), footprint_bytes(load, axis)
    # hardware fetches lines in pairs: the next line is on its way
    fewest_steps = 2 if is_only or nearby == target.line_bytes else 1
    steps = max(fewest_steps, min(MAX_STEPS, l2_bytes // 4 // walk))
    in_memory = nearby == target.line_bytes or not is_only or comes_from_memory(load, target)
    return steps if in_memory and MAX_STEPS * steps <= axis.size and (steps + 1) * walk <= 6 * l2_bytes else 0


__all__ = ["prefetch"]

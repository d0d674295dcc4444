"""Proposes independent accumulators in a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, Ops, UOp

# accumulators of one row: past L1, at most one vector arrives per cycle; more accumulators take longer to compile
ROW_ACCUMULATORS = 4
LONGEST_WINDOW = 4  # steps of a fully unrolled window; a window of 3 x 3 would take lanes from too many vectors
MAX_CHAIN_VECTORS = 64  # a chain of this many dependent additions takes less than 0.1 µs


def add_accumulators(kernel: Kernel) -> Proposals:
    """Proposes UNROLL for reductions with too few independent accumulators to hide the latency of an addition.

    A reduction over a few vectors (for example the partial results of a larger sum) gets none: the latency costs less
    than compiling a longer loop and combining the accumulators. A sum in the tile registers of a CPU gets none either,
    because all tile registers are in use.
    """
    if kernel.find(Ops.WMMA):
        return
    if not exceeds("loop iterations", kernel.steps, MAX_CHAIN_VECTORS * kernel.lanes):
        return
    for reduce in kernel.reduces:
        loops = [axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.REDUCE and axis in kernel.axes]
        if is_short_window(reduce, loops):
            reason = "full unrolling removes the loop of a short window and the initialization of its accumulators"
            for loop in loops:
                kernel = yield Proposal(Opt(OptOps.UNROLL, loop.arg.id, loop.size), reason)
            continue
        unrolled = independent_sums(reduce, loops, kernel.target.sums_in_flight)
        if unrolled is not None:
            kernel = yield Proposal(unrolled, "independent accumulators hide the latency of the dependence chain")


def independent_sums(reduce: UOp, loops: Sequence[UOp], most_accumulators: int) -> Opt | None:
    """Returns UNROLL of the longest of `loops` by the number of accumulators; None if the register tile has enough of
    them.

    most_accumulators: the number of accumulators that keep a core busy.
    """
    all_axes = (*reduce.ranges, *reduce.src[1:])
    tiles = prod(axis.size for axis in all_axes if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
    sums = min(ROW_ACCUMULATORS, most_accumulators // tiles)
    quantity = "accumulators of the register tile (bound: half of those that hide latency)"
    exceeds(quantity, tiles, most_accumulators // 2)
    axis = max(loops, key=lambda axis: (axis.size, axis.arg.id), default=None)
    if sums < 2 or axis is None or axis.size < 2:
        return None
    amount = next((n for n in range(min(sums, axis.size), 1, -1) if axis.size % n == 0), min(sums, axis.size))
    if (axis.size % amount or not axis.is_static) and axis.size < 4 * amount:
        return None
    return Opt(OptOps.UNROLL, axis.arg.id, amount)


def is_short_window(reduce: UOp, loops: Sequence[UOp]) -> bool:
    """Whether `reduce` is a window of a few steps in two loops, with lanes along its results. Example: a pool of 2 x 2.

    Unrolled, it takes 0.6 to 0.87 of the time, and half of LLVM's compile time.
    """
    if len(loops) < 2 or len(loops) < len(reduce.src) - 1 or not all(axis.is_static for axis in loops):
        return False
    return prod(axis.size for axis in loops) <= LONGEST_WINDOW

"""Proposes a few vectors at a time for elementwise steps, so that their loads and arithmetic overlap."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.access import is_outer_of, outer_row_axis
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches
from tinyexplore.kernel.heuristics.row_buffers import find_pipeline
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, Ops, UOp

MIN_STEPS = 1 << 12  # with fewer steps, the call itself takes longer
MAX_STEP_OPERATIONS = 40  # most operations of a step: with more, the arithmetic units are busy already


def take_several_vectors(kernel: Kernel) -> Proposals:
    """Proposes UPCAST by 4 for an elementwise loop over vectors, so that loads and arithmetic of several vectors
    overlap."""
    vectors = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    if kernel.reduces or not vectors or not reaches("loop iterations", kernel.steps, MIN_STEPS):
        return
    accesses = kernel.accesses
    outer = next((axis for axis in reversed(kernel.output_axes) if is_outer_of(axis, vectors[0], accesses)), None)
    yield from upcast_four_vectors(outer, kernel.nodes)


def take_several_vectors_of_rows(kernel: Kernel) -> Proposals:
    """Proposes UPCAST by 4 for a loop over vectors that reads a row again after its reductions (layernorm).

    Pipelined rows are left out: their stores run in the steps of a longer computation.
    """
    if find_pipeline(kernel) is not None:
        return
    accesses = kernel.accesses
    ends = [axis for axis in kernel.output_axes if all(axis not in reduce.ranges for reduce in kernel.reduces)]
    if not kernel.reduces or not any(outer_row_axis(kernel, axis) for axis in kernel.output_axes):
        return
    lanes = [axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR]
    outer = next((axis for axis in ends if any(is_outer_of(axis, lane, accesses) for lane in lanes)), None)
    yield from upcast_four_vectors(outer, [node for node in kernel.nodes if outer in node.ranges])


def upcast_four_vectors(loop: UOp | None, nodes: Sequence[UOp]) -> Proposals:
    """Proposes UPCAST by 4 of a `loop` over vectors, if its `nodes` have few operations."""
    arithmetic = sum(node.op is not Ops.INDEX and not computes_index(node) for node in nodes)
    are_few_operations = loop is not None and not exceeds("operations per iteration", arithmetic, MAX_STEP_OPERATIONS)
    if loop is not None and are_few_operations and loop.size % 4 == 0 and loop.is_static:
        yield Proposal(Opt(OptOps.UPCAST, loop.arg.id, 4), "loads and arithmetic of four independent vectors overlap")


def computes_index(node: UOp) -> bool:
    """Whether `node` computes or compares indices: neighboring steps share most of this arithmetic."""
    return node.op is Ops.CONST or node.dtype is dtypes.index or any(src.dtype is dtypes.index for src in node.src)

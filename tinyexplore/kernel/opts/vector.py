"""VECTOR: computes neighboring steps of an axis in the lanes of one vector instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.scratch import barriers_along
from tinyexplore.kernel.opts.kind import BLOCKS, Effect, OptKind
from tinyexplore.kernel.opts.legality import LOOP_KINDS, block_error, remainder_scatter_error
from tinyexplore.kernel.transforms.split import split_into_blocks
from tinyexplore.uop import AxisKind, Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

PLAIN = Effect(
    "Computes `amount` neighboring steps in the lanes of one vector instruction",
    before="for i in 0..64: out[i] = f(i)",
    after="for i in 0..4: out[16*i .. 16*i+15] = f(16*i .. 16*i+15)",
)
SCANNED = Effect(
    "In a scan: combines the lanes of a vector with each other, then with the last lane of the previous vector",
    before="""\
for i in 0..64: acc += f(i)
                out[i] = acc""",
    after="""\
for i in 0..32: v = f(2*i .. 2*i+1); v[1] += v[0]
                acc = v + acc[1]; out[2*i .. 2*i+1] = acc""",
)


def legality_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    reason = remainder_scatter_error(kernel, axis, amount) or block_error(kernel, axis, amount)
    return reason or axis_error(kernel, axis) or lanes_error(kernel, axis, amount) or second_lanes_error(kernel, axis)


def axis_error(kernel: Kernel, axis: UOp) -> str | None:
    if axis.arg.kind is AxisKind.SCAN:
        return scan_legality_error(kernel, axis)
    if axis.arg.kind not in (*LOOP_KINDS, AxisKind.REDUCE, AxisKind.ROW):
        return f"the axis is {axis.arg.kind.value}; VECTOR needs a loop"
    return None


def scan_legality_error(kernel: Kernel, axis: UOp) -> str | None:
    """Returns the legality error of lanes along a SCAN, whose operation must be associative, because lanes are
    combined first."""
    for node in kernel.find(Ops.SCAN):
        if node.src[-1] is axis:
            if node.arg is Ops.MULACC:
                return "each step multiplies the result of the previous step, so lanes cannot run in parallel"
            if node.arg is Ops.MUL and not dtypes.is_int(node.dtype):
                return "illegal because multiplying lanes first may overflow: 0 * inf is NaN, not 0"
            return None
    return "the steps of a scatter must run in order"


def lanes_error(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if amount & (amount - 1) or amount > max(1, kernel.lanes):
        lanes_text = f"a vector of {kernel.target.name} has {kernel.lanes} lanes of {kernel.vector_dtype.name}"
        return f"{lanes_text}; choose a power of two up to that"
    if barriers_along(kernel, axis):
        return "each step of this axis fills the same row buffer, but lanes would need separate buffers"
    if axis in kernel.gathered_along:
        return "addresses along this axis depend on loaded values, so each lane would need its own load"
    return None


def second_lanes_error(kernel: Kernel, axis: UOp) -> str | None:
    """Returns the legality error of a second vector axis: a value has lanes along one axis only, even if nothing
    reads them."""
    vector_axes = [vector_axis for vector_axis in kernel.axes if vector_axis.arg.kind is AxisKind.VECTOR]
    if not vector_axes:
        return None
    node_ranges = [node.ranges for node in kernel.nodes]
    # nothing reads these lanes
    node_ranges += [reduce.src[0].ranges.union(reduce.src[1:]) for reduce in kernel.reduces]
    for vector_axis in vector_axes:
        if any(axis in ranges and vector_axis in ranges for ranges in node_ranges):
            return f"axis {vector_axis.arg.id} is already a vector axis, and a value has lanes along one axis only"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_into_blocks(kernel, axis, opt, AxisKind.VECTOR)


KIND = OptKind((PLAIN, SCANNED), legality_error, apply, amounts=BLOCKS, machine="cpu")

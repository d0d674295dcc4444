"""VECTOR: the lanes of one vector instruction do neighbouring steps of an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.scratch import kept_along
from tinyexplore.kernel.opts.kind import BLOCKS, Law, OptKind
from tinyexplore.kernel.opts.obstacles import LOOP_KINDS, no_block, scatters_once
from tinyexplore.kernel.transforms.split import in_blocks
from tinyexplore.uop import AxisKind, Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

PLAIN = Law(
    "The lanes of one vector instruction do `amount` neighbouring steps",
    before="for i in 0..64: out[i] = f(i)",
    after="for i in 0..4: out[16*i .. 16*i+15] = f(16*i .. 16*i+15)",
)
SCANNED = Law(
    "Of a scan: the lanes of a vector are combined with each other, then with the last one before it",
    before="""\
for i in 0..64: acc += f(i)
                out[i] = acc""",
    after="""\
for i in 0..32: v = f(2*i .. 2*i+1); v[1] += v[0]
                acc = v + acc[1]; out[2*i .. 2*i+1] = acc""",
)


def obstacle(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    reason = scatters_once(kernel, axis, amount) or no_block(kernel, axis, amount)
    return reason or unsuited_axis(kernel, axis) or unsuited_lanes(kernel, axis, amount) or second_lanes(kernel, axis)


def unsuited_axis(kernel: Kernel, axis: UOp) -> str | None:
    if axis.arg.kind is AxisKind.SCAN:
        return scan_obstacle(kernel, axis)
    if axis.arg.kind not in (*LOOP_KINDS, AxisKind.REDUCE, AxisKind.ROW):
        return f"the axis is {axis.arg.kind.value}, and only loops become vectors"
    return None


def scan_obstacle(kernel: Kernel, axis: UOp) -> str | None:
    """Lanes of a running result are combined with each other first: only where that comes to the same."""
    for node in kernel.find(Ops.SCAN):
        if node.src[-1] is axis:
            if node.arg is Ops.MULACC:
                return "each step multiplies what the one before left: lanes would need it first"
            if node.arg is Ops.MUL and not dtypes.is_int(node.dtype):
                return "of lanes multiplied with each other first some may overflow, where a zero before them says 0"
            return None
    return "steps of a scatter come in order"


def unsuited_lanes(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    if amount & (amount - 1) or amount > max(1, kernel.lanes):
        have = f"a vector of {kernel.target.name} has {kernel.lanes} lanes of {kernel.vector_dtype.name}"
        return f"{have}; choose a power of two up to that"
    if kept_along(kernel, axis):
        return "along this axis rows are kept in scratch memory, one after the other: lanes would need all at once"
    if axis in kernel.gathered_along:
        return "along this axis addresses depend on loaded values: each lane would load by itself"
    return None


def second_lanes(kernel: Kernel, axis: UOp) -> str | None:
    """A value has lanes along one axis only, also one that nothing reads."""
    taken = [other for other in kernel.axes if other.arg.kind is AxisKind.VECTOR]
    if not taken:
        return None
    together = [node.ranges for node in kernel.nodes]
    together += [reduce.src[0].ranges.union(reduce.src[1:]) for reduce in kernel.reduces]  # lanes that nothing reads
    for other in taken:
        if any(axis in ranges and other in ranges for ranges in together):
            return f"axis {other.arg.id} is a vector already, and a value has lanes along one axis only"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return in_blocks(kernel, axis, opt, AxisKind.VECTOR)


KIND = OptKind((PLAIN, SCANNED), obstacle, apply, amounts=BLOCKS, machine="cpu")

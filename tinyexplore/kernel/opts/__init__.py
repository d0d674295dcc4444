"""Opts: what may be done to the axes of a kernel. A file for each kind has all that is known of it; here is the table.

Whoever asks for the legal Opts of a kernel, searches among them, explains why one is not legal, or shows its law, asks
the table: another kind is another file, and a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.work_groups import group_dimensions, group_items, shared_bytes
from tinyexplore.kernel.opts import (
    ahead,
    collect,
    cut,
    group,
    grouptop,
    local,
    merge,
    nolocals,
    padto,
    pipe,
    stage,
    swap,
    tc,
    thread,
    unroll,
    upcast,
    vector,
)
from tinyexplore.kernel.opts.kind import Law, OptError, OptKind
from tinyexplore.trace import recording
from tinyexplore.uop import Ops, UOp
from tinyexplore.util.enums import Named, quick_members

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel

MOST_DIMENSIONS = 3  # of a work-group


@quick_members
class OptOps(Named):
    VECTOR = vector.KIND
    UPCAST = upcast.KIND
    UNROLL = unroll.KIND
    THREAD = thread.KIND
    LOCAL = local.KIND
    GROUP = group.KIND
    GROUPTOP = grouptop.KIND
    NOLOCALS = nolocals.KIND
    PADTO = padto.KIND
    SWAP = swap.KIND
    MERGE = merge.KIND
    STAGE = stage.KIND
    COLLECT = collect.KIND
    CUT = cut.KIND
    TC = tc.KIND
    AHEAD = ahead.KIND
    PIPE = pipe.KIND

    @property
    def kind(self) -> OptKind:
        kind: OptKind = self.value
        return kind

    @property
    def law(self) -> str:
        """What it does, in words and as loop nests before and after."""
        return "\n\n".join(law.text for law in self.kind.laws)

    def __repr__(self) -> str:
        return f"OptOps.{self.name}"


OptOps.__doc__ = "\n\n".join(
    (
        "The kinds of Opt, each with its law on the loop nest, before → after. An axis is named by its id in "
        "`Kernel.axes`.",
        *(f"{op.name}: {op.law}" for op in OptOps),
        "An output axis that `amount` does not divide takes its last block so that it ends at the end, over part of\n"
        "the block before (both write the same values); a reduction does the remainder in a loop of its own.",
    )
)


@dataclass(frozen=True, slots=True)
class Opt:
    """`op` on the axis with id `axis`, by `amount`."""

    op: OptOps
    axis: int
    amount: int = 0

    def __str__(self) -> str:
        return f"{self.op.name}({self.axis}, {self.amount})" if self.amount else f"{self.op.name}({self.axis})"


def obstacle(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """What stands against `opt`, in words; None where it is legal."""
    for done in kernel.applied:
        if done.op.kind.comes_last:
            return f"{done.op.kind.comes_last}: {done.op.name} comes last"
    found = (
        wrong_machine(kernel, opt.op)
        or held_by_cores(kernel, opt, axis)
        or opt.op.kind.obstacle(kernel, axis, opt.amount)
    )
    if found is None and kernel.target.has_local and opt.amount and opt.op.kind.partners is None:
        return too_large_a_group(kernel, opt, axis)
    return found


def wrong_machine(kernel: Kernel, op: OptOps) -> str | None:
    """What stands against a kind of Opt that is for other machines."""
    target = kernel.target
    if op.kind.machine == "gpu" and not target.has_local:
        return f"{target.name} has no work-groups: this is for GPUs (TARGET=opencl, say)"
    if op.kind.machine == "cpu" and target.has_local:
        return f"this is for cores with caches and vectors, and {target.name} has work-groups"
    return None


def held_by_cores(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """What stands against an Opt where tensor cores do the sum: it has their registers for each of its results."""
    if not kernel.find(Ops.WMMA):
        return None
    if not opt.op.kind.on_cores:
        return "tensor cores do the sum: do this before TC, or without"
    if opt.op is OptOps.UNROLL and axis.is_static and opt.amount and axis.size % opt.amount:
        return f"what is left over would be a sum of its own, of other registers: choose a divisor of {axis.size}"
    return None


def too_large_a_group(kernel: Kernel, opt: Opt, axis: UOp) -> str | None:
    """What stands against the work-group that a kernel of a GPU would have after `opt`."""
    target = kernel.target
    with recording(None):
        after = opt.op.kind.apply(kernel, axis, opt)
    dimensions = group_dimensions(after)
    if dimensions and any(done.op.kind.ends_groups for done in kernel.applied):
        return "NOLOCALS leaves it to the runtime what is a work-group"
    if len(dimensions) > MOST_DIMENSIONS:
        return f"a work-group has {MOST_DIMENSIONS} dimensions at the most, and all are taken"
    items, nbytes = group_items(after), shared_bytes(after)
    if items > target.group_items:
        return f"a work-group would have {items} work-items; {target.name} has {target.group_items} at the most"
    if nbytes > target.shared_bytes:
        have = f"{target.name} has {target.shared_bytes >> 10}"
        return f"it would take {nbytes >> 10} KiB of shared memory; {have}"
    return None


__all__ = ["Law", "Opt", "OptError", "OptKind", "OptOps", "obstacle"]

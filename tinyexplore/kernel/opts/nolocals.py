"""NOLOCALS: leaves the choice of work-groups to the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.work_groups import group_dimensions
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.uop import UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "The runtime chooses the work-group size. Work-items read only their global index (`axis` and `amount` are not "
    "used)",
    before="grid of 64 groups of 1: i = gidx0: ...",
    after="grid of 64 work-items, in groups of any size: i = idx0: ...",
)


def legality_error(kernel: Kernel, axis: UOp, _: int) -> str | None:
    if any(opt.op.ends_groups for opt in kernel.applied):
        return "NOLOCALS has been applied already"
    if group_dimensions(kernel.ast):
        return "LOCAL or GROUP has already set the work-group size"
    if axis is not kernel.axes[0]:
        return "NOLOCALS applies to the whole kernel; choose the first axis"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return kernel.ast


KIND = OptKind((EFFECT,), legality_error, apply, machine="gpu")

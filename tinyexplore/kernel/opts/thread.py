"""THREAD: divides the steps of the outermost output axis among the cores."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import OUTPUT_KINDS, thread_copy_error
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Divides the steps of the outermost output axis among the cores (`amount` is not used)",
    before="for i in 0..64: ...",
    after="for i in start..stop: ...      (each core with its own start and stop)",
)


def legality_error(kernel: Kernel, axis: UOp, _: int) -> str | None:
    if (reason := thread_copy_error(kernel, axis)) is not None:
        return reason
    if kernel.target.threads < 2:
        return f"{kernel.target.name} has one thread"
    if axis.arg.kind is not AxisKind.GLOBAL:
        return f"the axis is {axis.arg.kind.value}; THREAD needs a global axis"
    if any(kernel_axis.arg.kind is AxisKind.THREAD for kernel_axis in kernel.axes):
        return "threads already divide another axis"
    for store in kernel.ast.src:
        loops = [loop for loop in store.ranges if loop.arg.kind in OUTPUT_KINDS]
        if axis not in loops or min(loops, key=lambda loop: loop.arg.id) is not axis:
            return "the axis is not the outermost loop of every store"
    return None


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    divided = axis.replace(arg=replace(axis.arg, kind=AxisKind.THREAD))
    return substitute_recorded(kernel.ast, {axis: divided}, str(opt))


KIND = OptKind((EFFECT,), legality_error, apply, may_follow_tiles=True, machine="cpu")

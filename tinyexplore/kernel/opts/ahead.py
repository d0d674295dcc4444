"""AHEAD: what is read in a loop is prefetched some steps earlier."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.strides import strides_of
from tinyexplore.kernel.opts.kind import Law, OptKind
from tinyexplore.kernel.opts.obstacles import WRITTEN_OUT
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

LAW = Law(
    "What is read in the loop is prefetched `amount` steps earlier, so that it is in the cache by then (where a row is "
    "kept in scratch memory, by the loop that fills it)",
    before="for i in 0..64: acc += a[1000*i]",
    after="for i in 0..64: fetch(a[1000*(i+2)]); acc += a[1000*i]",
)


def obstacle(kernel: Kernel, axis: UOp, steps: int) -> str | None:
    if axis.arg.kind in WRITTEN_OUT:
        return f"the axis is {axis.arg.kind.value}, and only loops do this"
    if any(other.arg.ahead for other in kernel.axes):
        return "a loop looks ahead already"
    if not 1 <= steps < axis.size:
        return f"the axis has size {axis.size}; choose steps from 1 to {axis.size - 1}"
    for node in kernel.find(Ops.LOAD):
        if len(node.src) == 1 and node.src[0].src[0].op is Ops.DEFINE_GLOBAL:
            if strides_of(node.src[0].src[1]).get(axis):
                return None
    return "no address that is read moves by the same distance with each step of it"


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return substitute_recorded(kernel.ast, {axis: axis.replace(arg=replace(axis.arg, ahead=opt.amount))}, str(opt))


KIND = OptKind((LAW,), obstacle, apply, amounts=(1, 2, 4, 8), machine="cpu")

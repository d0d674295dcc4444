"""PREFETCH: lets a loop prefetch the data that it reads some steps later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.kernel.analysis.strides import strides_of
from tinyexplore.kernel.opts.kind import Effect, OptKind
from tinyexplore.kernel.opts.legality import UNROLLED_KINDS
from tinyexplore.kernel.transforms.substitute import substitute_recorded
from tinyexplore.uop import Ops, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Prefetches the loop's data `amount` steps ahead, so that the loads hit the cache. In kernels with a row buffer, "
    "the loop that fills the buffer prefetches",
    before="for i in 0..64: acc += a[1000*i]",
    after="for i in 0..64: prefetch(a[1000*(i+2)]); acc += a[1000*i]",
)


def legality_error(kernel: Kernel, axis: UOp, steps: int) -> str | None:
    if axis.arg.kind in UNROLLED_KINDS:
        return f"the axis is {axis.arg.kind.value}; PREFETCH needs a loop"
    if any(kernel_axis.arg.ahead for kernel_axis in kernel.axes):
        return "a loop of this kernel already prefetches"
    if not 1 <= steps < axis.size:
        return f"the axis has size {axis.size}; choose steps from 1 to {axis.size - 1}"
    for node in kernel.find(Ops.LOAD):
        if len(node.src) == 1 and node.src[0].src[0].op is Ops.DEFINE_GLOBAL:
            if strides_of(node.src[0].src[1]).get(axis):
                return None
    return "no load has a constant stride along this axis"


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return substitute_recorded(kernel.ast, {axis: axis.replace(arg=replace(axis.arg, ahead=opt.amount))}, str(opt))


KIND = OptKind((EFFECT,), legality_error, apply, amounts=(1, 2, 4, 8), machine="cpu")

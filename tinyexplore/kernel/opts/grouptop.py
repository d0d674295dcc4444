"""GROUPTOP: like GROUP on a GPU, but each work-item reduces consecutive steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.group import legality_error
from tinyexplore.kernel.opts.kind import BLOCKS, GROUP_SIZES, Effect, OptKind
from tinyexplore.kernel.transforms.split import split_reduce
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

EFFECT = Effect(
    "Each of `amount` work-items of a group reduces consecutive steps; they combine their results in shared memory",
    before="for k in 0..64: acc += f(k)",
    after="""\
for k in 0..8: part += f(8*lidx0+k)
shared[lidx0] = part; barrier
for q in 0..8: acc += shared[q]""",
)


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_reduce(kernel, axis, opt, AxisKind.GROUP, on_top=True)


KIND = OptKind((EFFECT,), legality_error, apply, amounts=BLOCKS, gpu_amounts=GROUP_SIZES, machine="gpu")

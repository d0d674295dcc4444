"""GROUPTOP: as GROUP on a GPU, but each work-item does steps that follow each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.group import obstacle
from tinyexplore.kernel.opts.kind import BLOCKS, ITEMS, Law, OptKind
from tinyexplore.kernel.transforms.split import split_reduce
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opt import Opt

LAW = Law(
    "`amount` work-items of a group do a part of a reduction each, from end to end, and meet in shared memory",
    before="for k in 0..64: acc += f(k)",
    after="""\
for k in 0..8: part += f(8*lidx0+k)
shared[lidx0] = part; barrier
for q in 0..8: acc += shared[q]""",
)


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return split_reduce(kernel, axis, opt, AxisKind.GROUP, on_top=True)


KIND = OptKind((LAW,), obstacle, apply, amounts=BLOCKS, items=ITEMS, machine="gpu")

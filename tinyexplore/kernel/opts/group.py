"""GROUP: a reduction is done in blocks, each with a partial result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.kernel.opts.kind import BLOCKS, Law, OptKind
from tinyexplore.kernel.opts.obstacles import no_block, no_reduction
from tinyexplore.kernel.transforms.split import in_blocks
from tinyexplore.uop import AxisKind, UOp

if TYPE_CHECKING:
    from tinyexplore.kernel.kernel import Kernel
    from tinyexplore.kernel.opts import Opt

LAW = Law(
    "A reduction is done in blocks of `amount` steps, each with a partial result",
    before="for k in 0..64: acc += f(k)",
    after="""\
for k in 0..8: part = 0; for q in 0..8: part += f(8*k+q)
               acc += part""",
)


def obstacle(kernel: Kernel, axis: UOp, amount: int) -> str | None:
    return no_block(kernel, axis, amount) or no_reduction(axis)


def apply(kernel: Kernel, axis: UOp, opt: Opt) -> UOp:
    return in_blocks(kernel, axis, opt, AxisKind.GROUP)


KIND = OptKind((LAW,), obstacle, apply, amounts=BLOCKS, splits=True)

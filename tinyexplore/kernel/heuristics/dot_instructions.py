"""Proposes dot instructions for sums of products of small numbers."""

from __future__ import annotations

from tinyexplore.kernel.analysis.dot_products import VALUES_PER_WORD, dot_of
from tinyexplore.kernel.analysis.product import find_product
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, exceeds, reaches, record_scores
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import Ops
from tinyexplore.util import config


def use_dot_instructions(kernel: Kernel) -> Proposals:
    """Proposes TC for a matrix product of small numbers, if its results fill the lanes of the dot instructions.

    TC_OPT=0: only if words divide the sum without a remainder. TC_OPT=1: also with a remainder.
    """
    product = find_product(kernel) if kernel.lanes > 1 and kernel.find(Ops.CAST) else None
    op = dot_of(kernel, product.reduce) if product is not None else None
    if product is None or op is None or len(product.reduce.src) != 2:
        return
    (loop,) = product.reduce.src[1:]
    amount = VALUES_PER_WORD[op]
    if (
        exceeds("remainder of the sum: elements outside dot instructions", loop.size % amount, 0)
        and not config().TC_OPT
    ):
        return
    column_axes = [axis for axis in product.outputs if product.rows_of(product.along(axis))]
    if any(
        reaches(f"results along {axis.arg.name} (bound: vector lanes)", axis.size, kernel.lanes) for axis in column_axes
    ):
        record_scores("multiply-adds per lane and instruction", {op.name: amount, "MULACC": 1}, op.name)
        yield Proposal(
            Opt(OptOps.TC, loop.arg.id, amount), f"one {op.name} instruction does {amount} multiply-adds per lane"
        )

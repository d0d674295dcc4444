"""Proposes to end loops early where a causal mask allows it."""

from __future__ import annotations

from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, record_scores
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts import trim


def trim_masked_loops(kernel: Kernel) -> Proposals:
    """Proposes TRIM under a causal mask. Each block of rows needs only the columns up to its diagonal, half of all
    on average."""
    for axis in kernel.output_axes:
        if trim.legality_error(kernel, axis) is None:
            all_steps = sum(loop.size for loop in kernel.axes if loop.arg.id in trim.trimmed_loops(kernel, axis))
            steps = {"up to the diagonal": all_steps / 2, "all columns": float(all_steps)}
            record_scores("mean iterations of the masked loops per row", steps, "up to the diagonal", least=True)
            yield Proposal(
                Opt(OptOps.TRIM, axis.arg.id),
                "the mask excludes the columns after the diagonal, so the loops skip them",
            )
            return

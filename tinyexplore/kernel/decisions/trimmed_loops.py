"""Heuristic: loops that a causal mask ends early."""

from __future__ import annotations

from tinyexplore.kernel.decisions.decision import Proposal, Proposals, weigh
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.kernel.opts import trim


def trim_masked_loops(kernel: Kernel) -> Proposals:
    """Proposes TRIM under a causal mask. Each block of rows needs only the columns up to its diagonal, half of all
    on average."""
    for axis in kernel.output_axes:
        if trim.legality_error(kernel, axis) is None:
            all_steps = sum(loop.size for loop in kernel.axes if loop.arg.id in trim.trimmed_loops(kernel, axis))
            steps = {"as far as each block sees": all_steps / 2, "to their ends": float(all_steps)}
            weigh("steps of the masked loops for a row, on average", steps, "as far as each block sees", least=True)
            yield Proposal(Opt(OptOps.TRIM, axis.arg.id), "a mask hides the remaining columns from these rows")
            return

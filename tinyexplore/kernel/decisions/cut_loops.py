"""Loops that a causal mask ends early."""

from __future__ import annotations

from tinyexplore.kernel.decisions.decision import Choice, Choices
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opts import Opt, OptOps, cut


def cut_masked_loops(kernel: Kernel) -> Choices:
    """CUT: under a causal mask each block of rows needs only the columns that it can see, half of all."""
    for axis in kernel.output_axes:
        if cut.obstacle(kernel, axis) is None:
            yield Choice(Opt(OptOps.CUT, axis.arg.id), "a mask hides the rest from these rows")
            return

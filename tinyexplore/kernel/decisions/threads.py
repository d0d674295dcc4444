"""The outermost loop divided among the cores."""

from __future__ import annotations

from tinyexplore.kernel.decisions.decision import Choice, Choices, reaches
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opts import Opt, OptOps
from tinyexplore.uop import AxisKind


def divide_among_threads(kernel: Kernel) -> Choices:
    """THREAD for the outermost output loop, where there is enough to do: waking another core takes time as well."""
    if not reaches("cores", kernel.target.threads, 2):
        return
    if not reaches("steps", kernel.steps, kernel.target.waking_steps * max(1, kernel.lanes // 4)):
        return
    outermost = next((axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL), None)
    if outermost is not None and outermost.size > 1:
        yield Choice(Opt(OptOps.THREAD, outermost.arg.id), f"{kernel.steps} steps are worth waking the other cores")

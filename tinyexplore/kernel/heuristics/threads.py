"""Proposes to divide the outermost loop among the cores."""

from __future__ import annotations

from tinyexplore.dtype import dtypes
from tinyexplore.kernel.heuristics.heuristic import Proposal, Proposals, reaches
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import Opt, OptOps
from tinyexplore.uop import AxisKind, OpGroups, Ops
from tinyexplore.uop.ops import multiplications_in


def divide_among_threads(kernel: Kernel) -> Proposals:
    """Proposes THREAD for the outermost output loop, if there is enough work to pay for waking other cores."""
    if not reaches("cores", kernel.target.threads, 2):
        return
    work = int(kernel.steps * max(1.0, functions_in(kernel)))
    fewest = kernel.target.wake_up_steps * max(1, kernel.lanes // 4)
    if not reaches("loop iterations, weighted by functions such as exp", work, fewest):
        return
    outermost = next((axis for axis in kernel.output_axes if axis.arg.kind is AxisKind.GLOBAL), None)
    if outermost is not None and outermost.size > 1:
        yield Proposal(
            Opt(OptOps.THREAD, outermost.arg.id), f"{work:,} loop iterations take longer than waking the other cores"
        )


def functions_in(kernel: Kernel) -> float:
    """Returns how many functions such as `exp` a step has. One takes as long as a step that only loads and stores."""
    heavy = [node for node in kernel.nodes if node.op in OpGroups.ALU and multiplications_in(node.op) > 1]
    values = [node for node in heavy if node.dtype is not dtypes.index]
    return sum([multiplications_in(node.op) for node in values]) / multiplications_in(Ops.EXP)

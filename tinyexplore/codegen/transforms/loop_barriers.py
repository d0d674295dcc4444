"""Pass "loop barriers": a loop that fills shared memory in each step waits until all have read it."""

from __future__ import annotations

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, UOp


def end_steps_with_barriers(program: tuple[UOp, ...], lowering: Lowering) -> tuple[UOp, ...]:
    """Puts a barrier at the end of each loop that has one in its body (a GPU only).

        for i: shared[l] = f(i); barrier; read shared  →  for i: shared[l] = f(i); barrier; read shared; barrier

    Else a work-item could store for the next step while another one still reads what was stored for this.
    """
    if not lowering.target.has_local:
        return program
    found: list[UOp] = []
    waiting: list[bool] = []  # of each open loop: a barrier stands in its body
    for node in program:
        if node.op is Ops.RANGE:
            waiting.append(False)
        elif is_of_group(node) and waiting:
            waiting[-1] = True
        elif node.op is Ops.ENDRANGE and waiting.pop():
            found.append(UOp(Ops.BARRIER, dtypes.void, node.src))
        found.append(node)
    return tuple(found)


def is_of_group(node: UOp) -> bool:
    """True for a barrier of shared memory."""
    return node.op is Ops.BARRIER and node.src[0].src[0].src[0].dtype.space == "shared"


__all__ = ["end_steps_with_barriers"]

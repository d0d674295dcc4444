"""Pass "loop barriers": work-items wait for each other at the end of a loop's step, and not twice where once does."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.work_groups import is_shared
from tinyexplore.kernel.transforms.substitute import record_derived
from tinyexplore.uop import Ops, UOp


def end_steps_with_barriers(program: tuple[UOp, ...], lowering: Lowering) -> tuple[UOp, ...]:
    """Puts a barrier at the end of each loop that has one in its body, and leaves out those that the next one does the
    work of (a GPU only).

        for i: shared[l] = f(i); barrier; read shared  →  for i: shared[l] = f(i); barrier; read shared; barrier
        a[l] = f; barrier; b[l] = g; barrier; read a, b  →  a[l] = f; b[l] = g; barrier; read a, b

    Else a work-item could store for the next step while another one still reads what was stored for this. A loop that
    looks ahead stores that elsewhere: its work-items wait after the last step, if they come there again.
    """
    if not lowering.target.has_local:
        return program
    barriers: list[UOp] = []
    waiting: list[bool] = []  # of each open loop: a barrier stands in its body
    for place, node in enumerate(program):
        if node.op is Ops.RANGE:
            waiting.append(False)
        elif is_of_group(node) and waiting:
            waiting[-1] = True
        ends = UOp(Ops.BARRIER, dtypes.void, node.src) if node.op is Ops.ENDRANGE and waiting.pop() else None
        if ends is not None and not ends.src[0].arg.ahead:
            barriers.append(ends)
        barriers.append(node)
        if ends is not None and ends.src[0].arg.ahead and (waiting or fills_again(program, place)):
            barriers.append(ends)
    return without_early_ones(barriers)


def fills_again(program: Sequence[UOp], place: int) -> bool:
    """True where shared memory that has been stored to by `place` is stored to after it."""
    filled = [node.src[0].src[0] if node.op is Ops.STORE else None for node in program]
    return any(memory is not None and is_shared(memory) and memory in filled[:place] for memory in filled[place:])


def without_early_ones(program: Sequence[UOp]) -> tuple[UOp, ...]:
    """The program without a barrier between which and the next one shared memory is only stored to, and only such as
    has not been accessed since the one before: nobody can tell whether it was waited for. Who waits, waits for the
    next.
    """
    now: dict[UOp, UOp] = {}
    early: list[UOp] = []  # left out, and the next one is still to come
    touched: set[UOp] = set()  # memory, since the last barrier
    outside: list[set[UOp]] = []  # what it was before each open loop, which may have no step
    for place, node in enumerate(program):
        if node.op is Ops.RANGE:
            outside.append(set(touched))
        elif node.op is Ops.ENDRANGE:
            touched |= outside.pop()
        elif node.op in (Ops.LOAD, Ops.STORE):
            touched.add(node.src[0].src[0])
        elif is_of_group(node):
            stored = stored_until_next(node, program[place + 1 :])
            if stored is not None and stored.isdisjoint(touched):
                early.append(node)
                continue
            touched = set()
        src = tuple([now[one] for one in node.src])
        now[node] = node if src == node.src else node.replace(src=src)
        if is_of_group(node):
            now.update(dict.fromkeys(early, now[node]))
            early = []
    record_derived(now.items(), "waiting for a later barrier")
    return tuple(dict.fromkeys(now.values()))


def stored_until_next(barrier: UOp, rest: Sequence[UOp]) -> set[UOp] | None:
    """The memory that is stored to between a barrier and the next of the same loop; None where somebody waits for it
    before that, shared memory is read, or there is none."""
    stored: set[UOp] = set()
    depth = 0
    for node in rest:
        depth += (node.op is Ops.RANGE) - (node.op is Ops.ENDRANGE)
        reads = node.op is Ops.LOAD and is_shared(node.src[0].src[0])
        if depth < 0 or reads or barrier in node.src:
            return None
        if is_of_group(node):
            return None if depth else stored
        if node.op is Ops.STORE:
            stored.add(node.src[0].src[0])
    return None


def is_of_group(node: UOp) -> bool:
    """True for a barrier of shared memory, or of a loop's end."""
    if node.op is not Ops.BARRIER:
        return False
    return node.src[0].op is Ops.RANGE or is_shared(node.src[0].src[0].src[0])


__all__ = ["end_steps_with_barriers", "is_of_group"]

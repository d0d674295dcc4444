"""Pass "loop barriers": lets work-items wait for each other at the end of a loop step, and removes redundant
barriers."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.kernel.analysis.work_groups import is_shared
from tinyexplore.kernel.transforms.substitute import record_derived
from tinyexplore.uop import Ops, UOp


def end_steps_with_barriers(program: tuple[UOp, ...], lowering: Lowering) -> tuple[UOp, ...]:
    """Puts a barrier at the end of each loop that has one in its body, and removes redundant barriers (a GPU only).

        for i: shared[l] = f(i); barrier; read shared  →  for i: shared[l] = f(i); barrier; read shared; barrier
        a[l] = f; barrier; b[l] = g; barrier; read a, b  →  a[l] = f; b[l] = g; barrier; read a, b

    Without the added barrier, a work-item could store for the next step while another one still reads the values of
    this step. A loop that loads ahead stores the next values elsewhere. If its work-items reach the loop again, they
    wait after the last step.
    """
    if not lowering.target.has_local:
        return program
    barriers: list[UOp] = []
    waiting: list[bool] = []  # for each open loop, whether its body has a barrier
    for number, node in enumerate(program):
        if node.op is Ops.RANGE:
            waiting.append(False)
        elif is_of_group(node) and waiting:
            waiting[-1] = True
        ends = UOp(Ops.BARRIER, dtypes.void, node.src) if node.op is Ops.ENDRANGE and waiting.pop() else None
        if ends is not None and not ends.src[0].arg.ahead:
            barriers.append(ends)
        barriers.append(node)
        if ends is not None and ends.src[0].arg.ahead and (waiting or fills_again(program, number)):
            barriers.append(ends)
    return remove_early_barriers(barriers)


def fills_again(program: Sequence[UOp], number: int) -> bool:
    """Whether shared memory that is stored to before `number` is stored to again after it."""
    filled = [node.src[0].src[0] if node.op is Ops.STORE else None for node in program]
    return any(memory is not None and is_shared(memory) and memory in filled[:number] for memory in filled[number:])


def remove_early_barriers(program: Sequence[UOp]) -> tuple[UOp, ...]:
    """Returns the program without redundant barriers.

    The program between a redundant barrier and the next one only stores to shared memory, and only where nothing was
    accessed since the barrier before. Such a wait cannot be observed, and the next barrier waits as well.
    """
    replacements: dict[UOp, UOp] = {}
    early_barriers: list[UOp] = []  # removed barriers before the next one
    accessed_memory: set[UOp] = set()  # memory accessed since the last barrier
    accessed_outside: list[set[UOp]] = []  # the same before each open loop, which may have no step
    for number, node in enumerate(program):
        if node.op is Ops.RANGE:
            accessed_outside.append(set(accessed_memory))
        elif node.op is Ops.ENDRANGE:
            accessed_memory |= accessed_outside.pop()
        elif node.op in (Ops.LOAD, Ops.STORE):
            accessed_memory.add(node.src[0].src[0])
        elif is_of_group(node):
            stored = find_stored_until_next(node, program[number + 1 :])
            if stored is not None and stored.isdisjoint(accessed_memory):
                early_barriers.append(node)
                continue
            accessed_memory = set()
        src = tuple([replacements[source] for source in node.src])
        replacements[node] = node if src == node.src else node.replace(src=src)
        if is_of_group(node):
            replacements.update(dict.fromkeys(early_barriers, replacements[node]))
            early_barriers = []
    record_derived(replacements.items(), "waiting for a later barrier")
    return tuple(dict.fromkeys(replacements.values()))


def find_stored_until_next(barrier: UOp, later_nodes: Sequence[UOp]) -> set[UOp] | None:
    """Returns the memory that is stored to between a barrier and the next one of the same loop.

    None if there is no next one, if a wait for the memory comes before it, or if shared memory is read.
    """
    stored: set[UOp] = set()
    depth = 0
    for node in later_nodes:
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
    """Whether `node` is a barrier of shared memory, or of a loop's end."""
    if node.op is not Ops.BARRIER:
        return False
    return node.src[0].op is Ops.RANGE or is_shared(node.src[0].src[0].src[0])


__all__ = ["end_steps_with_barriers", "is_of_group"]

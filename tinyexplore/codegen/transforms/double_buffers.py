"""Pass "double buffering": lets a loop load the tile of its next step before it computes the current step."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.rewrites.simplify import simplified
from tinyexplore.codegen.transforms.loop_barriers import is_of_group
from tinyexplore.kernel.analysis.work_groups import is_shared
from tinyexplore.kernel.transforms.substitute import record_derived
from tinyexplore.uop import OpGroups, Ops, UOp, index_const


def load_next_block(program: tuple[UOp, ...], lowering: Lowering) -> tuple[UOp, ...]:
    """Moves the loads of staged operands one step ahead, in loops that look ahead (a GPU only;
    `opts/double_buffer.py`).

    for k: tile[k % 2] = a[k]; barrier; compute
    →  next = a[0]; for k: tile[k % 2] = next; barrier; next = a[k+1] if k+1 < n; compute
    """
    if not lowering.target.has_local:
        return program
    for loop in [node for node in program if node.op is Ops.RANGE and node.arg.ahead]:
        program = load_one_step_ahead(program, loop, lowering)
    return program


def load_one_step_ahead(program: tuple[UOp, ...], loop: UOp, lowering: Lowering) -> tuple[UOp, ...]:
    """Rewrites `loop`: it stores the current part of each tile, then loads the next step's part into registers."""
    start = program.index(loop)
    filled = start + last_barrier(program[start:])
    filling, computing = program[start + 1 : filled + 1], program[filled + 1 :]
    staged = {node for store in filling if fills_tile(store) for node in store.src[1].toposort()}
    nodes_before, ahead, replacements = dict.fromkeys(program[:start]), dict[UOp, None](), dict[UOp, UOp]()
    for load in [node for node in filling if node in staged and is_from_memory(node)]:
        first_value, later = (
            value_in_step(load, loop, index_const(0)),
            value_in_step(load, loop, loop + 1, loop < loop.size - 1),
        )
        replacements[load] = register = UOp(Ops.DEFINE_ACC, load.dtype, (first_value,), next(lowering.numbers))
        assigned = UOp(Ops.ASSIGN, load.dtype, (register, later))
        nodes_before.update(dict.fromkeys(register.toposort()))
        ahead.update(dict.fromkeys(assigned.toposort()))
        record_derived([(load, new) for new in (first_value, later, register, assigned)], "a block ahead")
    nodes_before.update(dict.fromkeys([node for node in ahead if loop not in node.ranges]))
    for node in (*filling, *computing):
        replacements.setdefault(node, node.replace(src=tuple([replacements.get(src, src) for src in node.src])))
    record_derived(replacements.items(), "a block ahead")
    changed = (
        *nodes_before,
        loop,
        *map(replacements.__getitem__, filling),
        *ahead,
        *map(replacements.__getitem__, computing),
    )
    return remove_unused_loads(tuple(dict.fromkeys(changed)))


def last_barrier(program: Sequence[UOp]) -> int:
    """Returns the position of the last group barrier directly in the loop that `program` starts with."""
    depth = last_position = 0
    for number, node in enumerate(program):
        depth += (node.op is Ops.RANGE) - (node.op is Ops.ENDRANGE)
        if depth == 1 and is_of_group(node):
            last_position = number
        if depth == 0:
            break
    return last_position


def fills_tile(node: UOp) -> bool:
    return node.op is Ops.STORE and is_shared(node.src[0].src[0])


def is_from_memory(node: UOp) -> bool:
    return node.op is Ops.LOAD and node.src[0].src[0].op is Ops.DEFINE_GLOBAL


def value_in_step(load: UOp, loop: UOp, step: UOp, condition: UOp | None = None) -> UOp:
    """Returns the value of `load` in another step of `loop`, if `condition` holds."""
    pointer, *index_and_mask = load.src[0].src
    index, *valid = [simplified(node.substitute({loop: step})) for node in index_and_mask]
    if condition is not None:
        valid = [valid[0] & condition if valid else condition]
    return load.replace(src=(pointer.index(index, *valid),))


def remove_unused_loads(program: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """Returns the program without unused loads and the addresses of these."""
    needed_nodes: set[UOp] = set()
    used_nodes = []
    for node in reversed(program):
        if node in needed_nodes or not (node.op in OpGroups.ALU or node.op in (Ops.LOAD, Ops.INDEX, Ops.CONST)):
            needed_nodes.update(node.src)
            used_nodes.append(node)
    return tuple(reversed(used_nodes))


__all__ = ["load_next_block"]

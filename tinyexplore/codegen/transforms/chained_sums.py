"""Pass "chained sums": if two sums are added, starts the second one with the result of the first one.

    a = 0                               a = 0
    for k in 0..64: a += f(k)           for k in 0..64: a += f(k)
    b = 0                       →       b = a
    for j in 0..64: b += g(j)           for j in 0..64: b += g(j)
    out = a + b                         out = b

A register tile then holds one sum instead of two for each of its results (`x @ w + h @ v`). Its size assumes this.
"""

from __future__ import annotations

from collections import Counter

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.uop import Ops, UOp

REASON = "its sum goes on where another one ends"


def chain_sums(sink: UOp, lowering: Lowering) -> UOp:
    """Starts the register of a sum with the other sum, if the two are only added to each other."""
    order = sink.toposort()
    sums = {node for node in order if node.op is Ops.RESULT and _is_sum(node)}
    if len(sums) < 2 or not any([node.op is Ops.ADD and node.src[1] in sums for node in order]):
        return sink  # the rest of this function examines all nodes repeatedly
    users = Counter(src for node in order for src in set(node.src))
    earlier = _find_loops_before(order)
    chains: dict[UOp, UOp] = {}
    for node in order:
        if node.op is not Ops.ADD or any(users[src] > 1 or (src not in sums and src not in chains) for src in node.src):
            continue
        first, second = (chains.get(src, src) for src in node.src)
        if node.src[1] in sums and first is not second and _may_follow(first, second, earlier):
            register = second.src[0]
            chains[node] = second.substitute({register: register.replace(src=(first,))}, how=REASON)
            for loop in second.src[2:]:
                earlier[loop].update(first.src[2:])
    return sink.substitute(chains, how=REASON) if chains else sink


def _find_loops_before(order: list[UOp]) -> dict[UOp, set[UOp]]:
    """Returns for each loop of a RESULT the loops whose results are used inside it: these must come first."""
    loops_below: dict[UOp, frozenset[UOp]] = {}  # for each node, the loops of the results that it depends on
    loops_before: dict[UOp, set[UOp]] = {}
    for node in order:
        node_loops = frozenset[UOp]().union(*[loops_below[src] for src in node.src])
        if node.op is Ops.RESULT:
            for loop in node.src[2:]:
                loops_before.setdefault(loop, set()).update(node_loops)
            node_loops = node_loops.union(node.src[2:])
        loops_below[node] = node_loops
    return loops_before


def _is_sum(result: UOp) -> bool:
    """Whether a RESULT's register starts with 0, and its loops add to it."""
    register, assigned, *loops = result.src
    start, changed = register.src[0], assigned.src[1]
    if not loops or len(assigned.src) != 2 or start.op is not Ops.CONST or start.arg != 0:
        return False
    if changed.op is Ops.MULACC:
        return changed.src[2] is register
    return changed.op is Ops.ADD and changed.src[0] is register


def _may_follow(first: UOp, second: UOp, earlier: dict[UOp, set[UOp]]) -> bool:
    """Whether the loops of `second` can come after those of `first`.

    They cannot if one is inside the other, or if they share a loop. They cannot if `second` would be computed in more
    loops than before, or if a loop of `first` has to wait for a loop of `second`: for this sum, or for another one that
    is computed in the same loop.
    """
    first_loops, second_loops = set(first.src[2:]), set(second.src[2:])
    if (
        first_loops & second_loops
        or first_loops & second.ranges
        or second_loops & first.ranges
        or not first.ranges <= second.ranges
    ):
        return False
    waits_for, todo = set(first_loops), list(first_loops)
    while todo:
        new = earlier[todo.pop()] - waits_for
        waits_for |= new
        todo += new
    return not waits_for & second_loops


__all__ = ["chain_sums"]

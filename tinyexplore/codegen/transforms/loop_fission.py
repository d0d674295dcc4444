"""Pass "loop fission": gives reductions over one axis separate loops if they are at different positions of the
program."""

from __future__ import annotations

from dataclasses import replace

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.uop import AxisKind, Ops, UOp

REDUCE_KINDS = (AxisKind.REDUCE, AxisKind.GROUP)


def split_shared_loops(sink: UOp, lowering: Lowering) -> UOp:
    """Gives a reduction its own axis if another reduction over the same axis is at another position of the program.

        for i: a[i] = sum(k, x[i, k]); b = sum(k, y[k])  →  for i: a[i] = sum(k, x[i, k]); b = sum(l, y[l])

    A node that both read, and that depends on that axis alone, would have to be at two positions.
    """
    while (split := with_one_loop_split(sink)) is not None:
        sink = split
    return sink


def with_one_loop_split(sink: UOp) -> UOp | None:
    """Returns the graph with the next shared loop split; None if no loop is shared by two positions."""
    reduces = sink.find(Ops.REDUCE)
    owner: dict[UOp, object] = {}
    for node in reduces:
        key = _find_loops_and_position(node)
        clash = [loop for loop in key[0] if owner.setdefault(loop, key) != key]
        if not clash:
            continue
        first_id = 1 + max(reduce.arg.id for reduce in sink.find(Ops.RANGE))
        reduces_of_key = [reduce for reduce in reduces if _find_loops_and_position(reduce) == key]
        separate_loops = [*clash, *_find_filling_loops(reduces_of_key, frozenset(clash))]
        new_loops = {
            loop: loop.replace(arg=replace(loop.arg, id=first_id + n)) for n, loop in enumerate(separate_loops)
        }
        changes = {reduce: reduce.substitute(new_loops, how="a loop of its own") for reduce in reduces_of_key}
        return sink.substitute(changes, how="a loop of its own")
    return None


def _find_filling_loops(reduces: list[UOp], loops: frozenset[UOp]) -> list[UOp]:
    """Returns the loops that refill scratch memory in each step of `loops`: these would be at both positions."""
    barriers = dict.fromkeys(barrier for reduce in reduces for barrier in reduce.find(Ops.BARRIER))
    inner_barriers = [barrier for barrier in barriers if not loops.isdisjoint(barrier.ranges)]
    return list(dict.fromkeys(src for barrier in inner_barriers for src in barrier.src if src.op is Ops.RANGE))


def _find_loops_and_position(reduce: UOp) -> tuple[tuple[UOp, ...], int, frozenset[UOp]]:
    """Returns the loops of a reduction, the innermost loop around it (-1: none), and loops of reductions around it.

    The remainder of an outer reduction has other loops, inside the same output loops.
    """
    outer_loops = frozenset([loop for loop in reduce.ranges if loop.arg.kind in REDUCE_KINDS])
    return reduce.src[1:], max((loop.arg.id for loop in reduce.ranges), default=-1), outer_loops


__all__ = ["split_shared_loops"]

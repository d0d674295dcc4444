"""Argmax and argmin: finds an extreme and its first index, two reductions that can share one loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tinyexplore.dtype import dtypes
from tinyexplore.uop import AxisKind, Ops, UOp
from tinyexplore.uop.bounds import bounds, is_exact

EXTREMES = (Ops.MAX, Ops.MIN)
SIDE_BY_SIDE = (AxisKind.VECTOR, AxisKind.UNROLL)


@dataclass(frozen=True)
class ArgExtreme:
    """An argmin or argmax whose index is found in the loop of its extreme: the least index at which a value equals the
    extreme.

    index_reduce: the reduction that finds the index.
    extreme: the reduction that finds the extreme; both iterate over the same values.
    loops: for each loop of `index_reduce`, the corresponding loop of `extreme`.
    whole: the extreme of all values, which the values are compared with.
    or_nan: whether a NaN counts as an extreme.
    """

    index_reduce: UOp
    extreme: UOp
    loops: dict[UOp, UOp]
    whole: UOp
    or_nan: bool


def find_argextremes(reduces: Iterable[UOp]) -> Iterator[ArgExtreme]:
    """Finds the pairs of REDUCEs, an extreme and its index. Works at any stage between an ast and its accumulators.

    The index is `min over i of where(x(i) == m, i, none)`, or the same with `x(i) == m or x(i) is NaN`. Here m is
    `extreme`, or the extreme of several values, one of which is `extreme` (the others can be those of other lanes). No
    x(i) may exceed m: then only the positions of `extreme` count. `none` must be no less than any index, and the
    indices must grow from step to step. Then the index is that of the last step at which a value exceeds all values
    before it.
    """
    remaining = list(reduces)
    extremes: dict[tuple[UOp, ...], dict[UOp, list[UOp]]] = {}  # by loops, then by values
    for reduce in remaining:
        if reduce.arg in EXTREMES and not dtypes.is_bool(reduce.dtype):
            extremes.setdefault(reduce.src[1:], {}).setdefault(reduce.src[0], []).append(reduce)
    for reduce in remaining:
        if reduce.arg is not Ops.MIN or not dtypes.is_int(reduce.dtype) or reduce.src[0].op is not Ops.WHERE:
            continue
        holds, position, none = reduce.src[0].src
        value_and_extreme, index_loops = match_equality(holds), reduce.src[1:]
        if (
            value_and_extreme is None
            or bounds(position)[1] > bounds(none)[0]
            or not is_increasing(position, index_loops)
        ):
            continue
        value, whole_extreme = value_and_extreme
        if not value.ranges.issuperset(sequential_loops(index_loops)):
            continue  # the value is the same in several steps, so its comparison would be outside the loop
        for extreme_loops, by_value in extremes.items():
            loops = same_loops(index_loops, extreme_loops)
            if loops is None or extreme_loops == index_loops:
                continue
            extreme = next(
                (
                    candidate
                    for candidate in by_value.get(value.substitute(loops), ())
                    if is_part_of_extreme(candidate, whole_extreme, value)
                ),
                None,
            )
            if extreme is not None and extreme.dtype.count == reduce.dtype.count:
                yield ArgExtreme(reduce, extreme, loops, whole_extreme, holds.op is Ops.OR)
                break


def match_equality(holds: UOp) -> tuple[UOp, UOp] | None:
    """Returns (x, m) if `holds` means `x == m`, or `x == m or x is NaN`; else None."""
    if holds.op is Ops.OR:
        holds, is_nan = holds.src
        if is_nan.op is not Ops.CMPNE or not is_nan.src[0] is is_nan.src[1] is holds.src[0]:
            return None
    return (holds.src[0], holds.src[1]) if holds.op is Ops.CMPEQ else None


def same_loops(loops: Sequence[UOp], other_loops: Sequence[UOp]) -> dict[UOp, UOp] | None:
    """Maps each of `loops` to the loop of `other_loops` at the same position; None unless only their ids differ."""
    if len(loops) != len(other_loops):
        return None
    pairs = dict(zip(loops, other_loops))
    are_alike = all(
        loop.src == other_loop.src and loop.arg.kind is other_loop.arg.kind for loop, other_loop in pairs.items()
    )
    return pairs if are_alike else None


def is_part_of_extreme(extreme: UOp, whole_extreme: UOp, value: UOp) -> bool:
    """Whether `whole_extreme` is an extreme of which `extreme` is one part, as a scalar or in all lanes.

    If `value` is cast from a small float to a wider one, `extreme` may be cast back in between: rounding keeps the
    order.
    """
    types = {value.dtype.scalar, value.src[0].dtype.scalar} if value.op is Ops.CAST else set()
    floats = types if all(dtypes.is_float(dtype) for dtype in types) else set()
    pending = [whole_extreme]
    while pending:
        node = pending.pop()
        if node is extreme:
            return True
        if node.op is extreme.arg:
            pending += node.src
        elif node.op is Ops.HREDUCE and node.arg is extreme.arg:
            pending += node.src[:1]
        elif node.op is Ops.VECTORIZE and all(lane is node.src[0] for lane in node.src):
            pending += node.src[:1]
        elif node.op is Ops.CAST and floats.issuperset((node.dtype.scalar, node.src[0].dtype.scalar)):
            pending += node.src
    return False


def is_increasing(position: UOp, loops: Sequence[UOp]) -> bool:
    """Whether every later step of `loops` has a greater index `position`."""
    factors = factors_of(position, frozenset(loops))
    if factors is None:
        return False
    span = 0
    for loop in sorted(sequential_loops(loops), key=lambda loop: -loop.arg.id):
        factor = factors.get(loop, 0)
        if factor <= span:
            return False
        span += factor * (loop.size - 1)
    return True


def sequential_loops(loops: Iterable[UOp]) -> list[UOp]:
    """Returns the loops whose steps run in sequence. Lanes and unrolled steps have separate extremes."""
    return [loop for loop in loops if loop.arg.kind not in SIDE_BY_SIDE]


def factors_of(position: UOp, loops: frozenset[UOp]) -> dict[UOp, int] | None:
    """Returns the factor of each of `loops` in the index `position`, with or without lanes; None if the index is not
    linear."""
    if loops.isdisjoint(position.ranges):
        return {}
    if not is_exact(position):
        return None
    if position.op is Ops.RANGE:
        return {position: 1}
    if position.op is Ops.CAST or (
        position.op is Ops.VECTORIZE and all(lane is position.src[0] for lane in position.src)
    ):
        return factors_of(position.src[0], loops)
    if position.op is Ops.MUL and position.src[1].op is Ops.CONST:
        inner = factors_of(position.src[0], loops)
        return None if inner is None else {loop: factor * position.src[1].arg for loop, factor in inner.items()}
    if position.op is Ops.ADD:
        first_factors, second_factors = (factors_of(src, loops) for src in position.src)
        if first_factors is None or second_factors is None:
            return None
        return {
            loop: first_factors.get(loop, 0) + second_factors.get(loop, 0)
            for loop in first_factors.keys() | second_factors.keys()
        }
    return None


__all__ = ["ArgExtreme", "find_argextremes"]

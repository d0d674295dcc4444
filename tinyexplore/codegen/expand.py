"""Passes "write out tiles" and "write out reductions": UPCAST and UNROLL axes become copies, one for each step."""

from __future__ import annotations

from itertools import product

from tinyexplore.uop import AxisKind, Ops, PatternMatcher, UOp, UPat, index_const, rule, var


def copies(node: UOp, axes: list[UOp]) -> list[UOp]:
    """`node` for every step of `axes`, the last axis fastest."""
    steps = product(*(range(axis.size) for axis in axes))
    return [node.with_axes(dict(zip(axes, map(index_const, place))), tell="a step written out") for place in steps]


def written_out(node: UOp, kind: AxisKind) -> list[UOp]:
    """The axes of that kind, the one that was split off first last: its steps stand side by side in the program,
    so that a value which they share is loaded, used up and forgotten before the next."""
    return sorted((axis for axis in node.ranges if axis.arg.kind is kind), key=lambda axis: -axis.arg.id)


@rule(UPat.of(Ops.STORE, name="store"))
def store_each(store: UOp) -> UOp | None:
    """A store in an upcast axis becomes one store for each step; equal parts of the copies are the same node."""
    axes = written_out(store, AxisKind.UPCAST)
    return UOp.sink(*copies(store, axes)) if axes else None


@rule(UPat.of(Ops.SINK, name="sink"))
def flatten_sink(sink: UOp) -> UOp | None:
    """A sink of sinks is one sink."""
    if all(src.op is not Ops.SINK for src in sink.src):
        return None
    flat: list[UOp] = []
    for src in sink.src:
        flat.extend(src.src if src.op is Ops.SINK else (src,))
    return UOp.sink(*flat)


@rule(UPat.of(Ops.BARRIER, name="barrier", more_src=True))
def flatten_barrier(barrier: UOp) -> UOp | None:
    """What waits for several stores names them all; an axis that is written out is no loop."""
    if all(src.op is not Ops.SINK for src in barrier.src):
        return None
    flat: list[UOp] = []
    for src in barrier.src:
        if src.op is not Ops.RANGE or src.arg.kind is not AxisKind.UPCAST:
            flat.extend(src.src if src.op is Ops.SINK else (src,))
    return barrier.replace(src=tuple(flat))


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def reduce_each(reduce: UOp, value: UOp) -> UOp | None:
    """A reduction over an unrolled axis becomes one reduction for each step, their results combined pair by pair."""
    axes = [axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.UNROLL]
    if not axes:
        return None
    loops = tuple(axis for axis in reduce.src[1:] if axis.arg.kind is not AxisKind.UNROLL)
    parts = copies(value, axes)
    if loops:
        parts = [UOp(Ops.REDUCE, reduce.dtype, (part, *loops), reduce.arg) for part in parts]
    return combined(reduce.arg, parts)


def combined(op: Ops, parts: list[UOp]) -> UOp:
    """`op` over all parts as a balanced tree."""
    while len(parts) > 1:
        paired = [a.alu(op, b) for a, b in zip(parts[::2], parts[1::2])]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]


@rule(UPat.of(Ops.INDEX, var("pointer"), var("idx"), True))
def valid_always(pointer: UOp, idx: UOp) -> UOp:
    """An access that is always valid is not masked."""
    return pointer.index(idx)


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, var("pointer"), var("idx"), False), name="load"))
def valid_never(load: UOp) -> UOp:
    """A load that is never valid is zero."""
    return UOp.const(load.dtype, 0)


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def reduce_without_loops(reduce: UOp, value: UOp) -> UOp | None:
    """A reduction whose loops are gone is its value."""
    return value if len(reduce.src) == 1 else None


EXPAND_STORES = PatternMatcher((store_each, flatten_sink, flatten_barrier))
EXPAND_REDUCES = PatternMatcher((reduce_each,))
MEMORY_LAWS = PatternMatcher((valid_always, valid_never, reduce_without_loops))

__all__ = ["EXPAND_REDUCES", "EXPAND_STORES", "MEMORY_LAWS", "combined"]

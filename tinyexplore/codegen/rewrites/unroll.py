"""Passes "unroll tiles" and "unroll reductions": copy the nodes of UPCAST and UNROLL axes, once for each step."""

from __future__ import annotations

from functools import cache
from itertools import product

from tinyexplore.trace import active_recorder, node_derived
from tinyexplore.uop import AxisKind, Ops, PatternMatcher, UOp, UPat, index_const, rule, var
from tinyexplore.uop.divmod import wrapped_index
from tinyexplore.uop.uop import axes_mask, make_uop, ops_mask
from tinyexplore.util import toposort


def copies(node: UOp, axes: list[UOp], *, how: str = "a step written out") -> list[UOp]:
    """Returns `node` for every step of `axes`, the last axis fastest.

    A part that depends on only some of the axes is copied once for each step of these. The copies of a node use the
    matching copies of its sources. Nothing is simplified: a later pass does that, law by law.
    """
    recorder = active_recorder()
    # for the axes that a part depends on: the steps, in order
    steps_by_axes: dict[tuple[UOp, ...], list[tuple[int, ...]]] = {}

    def steps_of(part_axes: tuple[UOp, ...]) -> list[tuple[int, ...]]:
        if part_axes not in steps_by_axes:
            steps_by_axes[part_axes] = list(product(*(range(axis.size) for axis in part_axes)))
        return steps_by_axes[part_axes]

    @cache
    def steps_within(part_axes: tuple[UOp, ...], inner: tuple[UOp, ...]) -> list[int]:
        """Returns for each step of `part_axes` the number of the step of `inner`, a subset of the same axes."""
        number_of = {step: number for number, step in enumerate(steps_of(inner))}
        positions = [part_axes.index(axis) for axis in inner]
        return [number_of[tuple([step[position] for position in positions])] for step in steps_of(part_axes)]

    open_axes = frozenset(axes)
    if open_axes.isdisjoint(node.ranges):
        return [node] * len(steps_of(tuple(axes)))
    owned: dict[frozenset[UOp], tuple[UOp, ...]] = {}
    copied: dict[UOp, tuple[tuple[UOp, ...], list[UOp]]] = {}
    for axis in axes:
        copied[axis] = (axis,), [index_const(step) for step in range(axis.size)]

    def open_sources(inner_node: UOp) -> list[UOp]:
        return [src for src in inner_node.src if not open_axes.isdisjoint(src.ranges)]

    for inner_node in toposort((node,), open_sources):
        if inner_node in copied:
            continue
        own_axes = owned.get(inner_node.ranges)
        if own_axes is None:
            own_axes = owned[inner_node.ranges] = tuple([axis for axis in axes if axis in inner_node.ranges])
        count = len(steps_of(own_axes))
        columns = []
        for src in inner_node.src:
            source_copies = copied.get(src)
            if source_copies is None:
                columns.append([src] * count)
            elif source_copies[0] == own_axes:
                columns.append(source_copies[1])
            else:
                values = source_copies[1]
                columns.append([values[position] for position in steps_within(own_axes, source_copies[0])])
        op, dtype, arg = inner_node.op, inner_node.dtype, inner_node.arg
        new_nodes = [make_uop(op, dtype, sources, arg) for sources in zip(*columns)]
        if recorder is not None:
            for copy in new_nodes:
                recorder.record(node_derived((inner_node, copy, how)))
        copied[inner_node] = own_axes, new_nodes
    own_axes, new_nodes = copied[node]
    return [new_nodes[position] for position in steps_within(tuple(axes), own_axes)]


def add_offsets(index: UOp, offsets: list[int]) -> list[UOp]:
    """Returns the index `index` plus each of these numbers, with one constant at the end."""
    constant = 0
    if index.op is Ops.CONST:
        return [wrapped_index(index.arg + offset) for offset in offsets]
    if index.op is Ops.ADD and index.src[1].op is Ops.CONST:
        index, constant = index.src[0], index.src[1].arg
    sums = [constant + offset for offset in offsets]
    return [make_uop(Ops.ADD, index.dtype, (index, wrapped_index(offset))) if offset else index for offset in sums]


def unrolled_axes(node: UOp, kind: AxisKind) -> list[UOp]:
    """Returns the axes of that kind, the axis that was split off first last.

    The steps of that axis are then adjacent in the program, so a value that they share is loaded, used and dead before
    the next one.
    """
    return sorted((axis for axis in node.ranges if axis.arg.kind is kind), key=lambda axis: -axis.arg.id)


@rule(UPat.of(Ops.STORE, name="store"))
def store_each(store: UOp) -> UOp | None:
    """A store in an upcast axis becomes one store for each step. Equal parts of the copies are the same node."""
    axes = unrolled_axes(store, AxisKind.UPCAST)
    return UOp.sink(*copies(store, axes)) if axes else None


@rule(UPat.of(Ops.SINK, name="sink"))
def flatten_sink(sink: UOp) -> UOp | None:
    """A sink of sinks is one sink.

    If a tile has several results, the stores of each step are adjacent. Otherwise registers would hold the operands of
    the second result until the first is stored in every step.
    """
    if all(src.op is not Ops.SINK for src in sink.src):
        return None
    store_groups = [src.src if src.op is Ops.SINK else (src,) for src in sink.src]
    if len({len(stores) for stores in store_groups}) == 1:
        store_groups = list(zip(*store_groups))
    return UOp.sink(*[store for stores in store_groups for store in stores])


@rule(UPat.of(Ops.BARRIER, name="barrier", more_src=True))
def flatten_barrier(barrier: UOp) -> UOp | None:
    """A barrier for several stores names all of them; an unrolled axis is no loop."""
    if all(src.op is not Ops.SINK for src in barrier.src):
        return None
    flat: list[UOp] = []
    for src in barrier.src:
        if src.op is not Ops.RANGE or src.arg.kind is not AxisKind.UPCAST:
            flat.extend(src.src if src.op is Ops.SINK else (src,))
    return barrier.replace(src=tuple(flat))


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def reduce_each(reduce: UOp, value: UOp) -> UOp | None:
    """A reduction over an unrolled axis becomes one reduction for each step, whose results are combined pair by
    pair."""
    axes = [axis for axis in reduce.src[1:] if axis.arg.kind is AxisKind.UNROLL]
    if not axes:
        return None
    loops = tuple(axis for axis in reduce.src[1:] if axis.arg.kind is not AxisKind.UNROLL)
    parts = copies(value, axes)
    if value.op is Ops.WMMA:
        parts = [chain_products(parts)]
    if loops:
        parts = [UOp(Ops.REDUCE, reduce.dtype, (part, *loops), reduce.arg) for part in parts]
    return combine_parts(reduce.arg, parts)


def chain_products(parts: list[UOp]) -> UOp:
    """Chains products of a tensor core: each becomes the addend of the next, so one set of registers is enough."""
    chain, *later_products = parts
    for core_product in later_products:
        chain = core_product.replace(src=(*core_product.src[:2], chain))
    return chain


def combine_parts(op: Ops, parts: list[UOp]) -> UOp:
    """Combines all parts by `op`, as a balanced tree."""
    while len(parts) > 1:
        paired = [a.alu(op, b) for a, b in zip(parts[::2], parts[1::2])]
        parts = paired + parts[len(paired) * 2 :]
    return parts[0]


UNROLL_TILES = PatternMatcher(
    (store_each, flatten_sink, flatten_barrier), within=axes_mask((AxisKind.UPCAST,)) | ops_mask((Ops.SINK,))
)
UNROLL_REDUCTIONS = PatternMatcher((reduce_each,), within=axes_mask((AxisKind.UNROLL,)))

__all__ = ["UNROLL_REDUCTIONS", "UNROLL_TILES", "copies", "flatten_barrier", "flatten_sink", "add_offsets"]

"""The scheduler turns LazyBuffers into an ordered list of kernels and copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tinyexplore.device import Buffer
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.ast import build_item
from tinyexplore.schedule.common_subexpressions import merge_equal
from tinyexplore.schedule.fusion import Fusion
from tinyexplore.schedule.hoisting import hoist_invariants
from tinyexplore.schedule.item import Requirement, ScheduleItem
from tinyexplore.schedule.overrides import NO_OVERRIDES, Overrides
from tinyexplore.schedule.rewritten_graph import RewrittenGraph
from tinyexplore.schedule.splitting import split_reductions
from tinyexplore.schedule.start_offsets import with_shared_programs
from tinyexplore.schedule.writes import NO_WRITES, WritePlan, decide_writes, graph_order, must_be_realized
from tinyexplore.target import Target
from tinyexplore.trace import WritesAllowed, active_recorder, record_stage
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import bind_together
from tinyexplore.util import toposort


def schedule_graph(
    outputs: Sequence[LazyBuffer],
    target_of: Callable[[str], Target],
    writes: WritePlan = NO_WRITES,
    overrides: Overrides = NO_OVERRIDES,
) -> tuple[ScheduleItem, ...]:
    """Returns the kernels and copies, in order, that compute `outputs` and store them in memory. Runs nothing.

    target_of: returns the target of a device by the device's name; the scheduler opens no device itself.
    writes: the memory that may be written in place; each other output gets a new Buffer.
    overrides: the user's changes to the scheduler's choice of kernels.
    """
    unrealized = [node for node in dict.fromkeys(outputs) if node.buffer is None and node.size]
    if not unrealized:
        return ()
    return record_stage("schedule", tuple(unrealized), lambda: _schedule(unrealized, target_of, writes, overrides))


def _schedule(
    outputs: Sequence[LazyBuffer], target_of: Callable[[str], Target], writes: WritePlan, overrides: Overrides
) -> tuple[ScheduleItem, ...]:
    """Runs the graph optimizations and fusion, gives memory to realized nodes, and builds the items in order."""
    recorder = active_recorder()
    if recorder is not None and writes is not NO_WRITES:
        recorder.record(WritesAllowed(writes))
    graph = merge_equal(outputs, writes, overrides.cut)
    cut = overrides.over(graph.rebuilt_node).cut
    hoisted = hoist_invariants(graph.outputs, graph.writes, cut, graph.original_of)
    graph = graph.compose(hoisted)
    if hoisted.original:  # rewriting can make different nodes equal
        cut = overrides.over(graph.rebuilt_node).cut
        graph = graph.compose(merge_equal(graph.outputs, graph.writes, cut, graph.original_of))
    graph = graph.compose(split_reductions(graph.outputs, graph.writes, target_of, graph.original_of))
    writes = graph.writes
    fusion = Fusion(graph.outputs, target_of, writes, graph.original_of, overrides.over(graph.rebuilt_node))
    memory = {node: node.buffer for node in fusion.order if node.buffer is not None}
    # in the order of the graph, so that the result is deterministic
    realized = (node for node in fusion.order if node in fusion.realized)
    for node in realized:
        source = memory.get(node.src[0]) if node.op in (Ops.COPY, Ops.WRITE) else None
        if node in writes.in_place:
            assert source is not None
            memory[node] = source
            continue
        memory[node] = Buffer(node.device, node.size if source is None else source.size, node.dtype)
        if node in fusion.old_values:
            memory[fusion.old_values[node]] = memory[node]
    items = [build_item(plan, memory, graph.original_of) for plan in fusion.plans]
    items = with_shared_programs(items)
    for copy in fusion.copies:
        pair = (memory[copy], memory[copy.src[0]])
        items.append(ScheduleItem(copy.device, None, pair, (copy,), (copy,), reads=(copy.src[0],)))
    bound: dict[UOp, int] = {}
    for item in items:
        for variable, value in item.bound.items():
            bind_together(bound, variable, value)
    return tuple([_with_user_nodes(item, graph) for item in _sort_by_dependence(items, fusion)])


def _with_user_nodes(item: ScheduleItem, graph: RewrittenGraph) -> ScheduleItem:
    """Replaces the nodes of the rewritten graph in `item` by the nodes that the user wrote."""
    if not graph.original:
        return item
    return replace(
        item,
        outputs=tuple([graph.original_of(node) for node in item.outputs]),
        members=graph.with_equal(map(graph.original_of, item.members)),
        origins=tuple([(graph.original_of(node), value, how) for node, value, how in item.origins]),
        reads=tuple([graph.original_of(node) for node in item.reads]),
    )


def _sort_by_dependence(items: list[ScheduleItem], fusion: Fusion) -> tuple[ScheduleItem, ...]:
    """Sorts `items` by dependence: writers before readers, and readers of an old value before its overwriter."""
    writer = {node: item for item in items for node in item.outputs}
    readers: dict[LazyBuffer, list[ScheduleItem]] = {}
    for item in items:
        for node in item.reads:
            readers.setdefault(node, []).append(item)
    items = sorted(items, key=lambda item: min(buffer.id for buffer in item.buffers[: len(item.outputs)]))

    def needs(item: ScheduleItem) -> list[ScheduleItem]:
        dependencies = [writer[node] for node in item.reads if node in writer]
        if item.in_place:
            (write,) = item.outputs
            target = fusion.old_values.get(write, write.src[0])
            dependencies += [writer[target]] if target in writer else []
            dependencies += [reader for reader in readers.get(target, ()) if reader is not item]
        return dependencies

    copied = {copy: write for write, copy in fusion.old_values.items()}
    ordered = _order_kernels_before_copies(toposort(items, needs), needs)
    return tuple(replace(item, outputs=tuple(copied.get(node, node) for node in item.outputs)) for item in ordered)


def _order_kernels_before_copies(
    items: list[ScheduleItem], needs: Callable[[ScheduleItem], list[ScheduleItem]]
) -> list[ScheduleItem]:
    """Orders items of several instances: all kernels that can run before the next copies, then these copies, and so on.

    Between copies, the kernels of one instance are independent of the kernels of the others.
    """
    if len({item.device for item in items if not item.is_copy}) < 2 or not any(item.is_copy for item in items):
        return items
    waits_for = {item: [needed_item for needed_item in needs(item) if needed_item is not item] for item in items}
    ordered_items: set[ScheduleItem] = set()
    order: list[ScheduleItem] = []
    remaining = items
    while remaining:
        for copies in (False, True):
            later = []
            for item in remaining:
                if item.is_copy is copies and ordered_items.issuperset(waits_for[item]):
                    order.append(item)
                    ordered_items.add(item)
                else:
                    later.append(item)
            remaining = later
    return order


__all__ = [
    "NO_OVERRIDES",
    "NO_WRITES",
    "Overrides",
    "Requirement",
    "ScheduleItem",
    "WritePlan",
    "schedule_graph",
    "decide_writes",
    "graph_order",
    "must_be_realized",
]

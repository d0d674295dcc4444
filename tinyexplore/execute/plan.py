"""Plans: schedules without their memory, cached by the structure of the graph.

A program realizes the same graph repeatedly, over other buffers (a training step, for example). One walk computes a key
of the structure. A graph with a known key is not fused, lowered or compiled again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.execute.instances import (
    divide_among_instances,
    estimated_work,
    for_instance,
    instance_of,
    run_side_by_side,
)
from tinyexplore.execute.liveness import Chosen, find_needed_later, in_place_writes, reference_counts
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.step_group import NO_NODE, PlanStep, StepGroup, StepOutput, group_steps
from tinyexplore.lazy import LazyBuffer, SourceNumberBound, first_number, note_source_bound
from tinyexplore.schedule import NO_WRITES, Requirement, ScheduleItem, WritePlan
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import BindingCount, bindings, simplified, sint, unbound, value_of
from tinyexplore.util import GlobalCounters, config
from tinyexplore.util.locks import new_in_children
from tinyexplore.util.lru_cache import LRUCache

NODE_BYTES = 200  # bytes of a key, per node of the graph
LARGEST_GRAPH = 1 << 14  # nodes; for a larger graph, planning again costs little in comparison

Key = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class NumberedGraph:
    """A graph whose nodes and buffers are numbered.

    key: equal for graphs that differ only in the buffers that they read.
    nodes: every LazyBuffer, by number.
    buffers: the buffers that the graph reads, by slot.
    values: the values of the Variables, which are not part of the key.
    first: the number of the oldest node (0: unknown).
    writes: the parts that are written in place.
    """

    key: Key
    nodes: list[LazyBuffer]
    buffers: list[Buffer]
    values: dict[UOp, int]
    first: int
    writes: WritePlan = NO_WRITES


def walk(outputs: Sequence[LazyBuffer]) -> NumberedGraph | None:
    """Returns the numbered graph behind `outputs`; None if it is too large for a cached plan."""
    graph = _number_graph(outputs)
    if graph is None:
        return None
    key, number, slots, has_writes, smallest_number = graph
    writes = NO_WRITES
    if has_writes:
        writes = in_place_writes(number, slots, outputs)
        key.append(tuple([number[node] for node in number if node in writes.in_place]))
    key.append(tuple([number[node] for node in outputs]))
    key.append(config().token)
    structure = tuple(key)
    if not BindingCount.count:
        return NumberedGraph(structure, list(number), list(slots), {}, smallest_number, writes)
    return NumberedGraph(unbound(structure), list(number), list(slots), bindings(structure), smallest_number, writes)


def _number_graph(
    outputs: Sequence[LazyBuffer],
) -> tuple[list[Any], dict[LazyBuffer, int], dict[Buffer, int], bool, int] | None:
    """Numbers the graph that computes `outputs`; None if it is too large.

    Returns:
        The key so far, the number of each node, the slot of each buffer, whether there are WRITEs, and the number of
        the oldest node.
    """
    number: dict[LazyBuffer, int] = {}
    slots: dict[Buffer, int] = {}
    key: list[Any] = []
    has_writes = False
    stack = list(outputs)
    count = 0
    smallest_number = stack[0].number
    while stack:
        node = stack.pop()
        if node in number:
            continue
        buffer, src = node.buffer, node.src
        next_number = node.number
        if buffer is not None:  # a buffer of two nodes is one slot, which the kernel gets once
            next_number = first_number(node) if smallest_number else 0
            key += (None, slots.setdefault(buffer, len(slots)), node.dtype, node.shape, node.device)
        elif not src:
            key += (node.op, node.dtype, _make_constant_key(node.arg), node.shape, node.device)
        else:
            missing = False
            for source in src:
                if source not in number:
                    if not missing:
                        stack.append(node)
                        missing = True
                    stack.append(source)
            if missing:
                continue
            op = node.op
            key += (op, node.dtype, node.arg)  # shape and device follow from these and the sources
            for source in src:
                key.append(number[source])
            if op is Ops.COPY:
                key.append(node.device)
            elif op is Ops.WRITE:
                has_writes = True
        number[node] = count
        count += 1
        if next_number < smallest_number:
            smallest_number = next_number
    return (key, number, slots, has_writes, smallest_number) if len(number) <= LARGEST_GRAPH else None


def _make_constant_key(value: Any) -> Any:
    """Returns a key of a constant that differs for 0.0 and -0.0, which are equal in Python.

    The dtype beside it distinguishes other equal constants.
    """
    return str(value) if value == 0 else value


Unit = tuple[PlanStep | StepGroup, list[tuple[LazyBuffer, int]]]
Units = Sequence[Sequence[Sequence[PlanStep | StepGroup]]]
NO_SLOTS: frozenset[int] = frozenset()
# most patterns of references to a graph's nodes for which a plan caches the nodes that need a buffer
MAX_PATTERNS = 16


def _sum_work(items: Sequence[ScheduleItem], runners: Sequence[Runner | None]) -> tuple[sint, sint]:
    """Returns the operations of all items, and the bytes moved."""
    flops: sint = 0
    moved_bytes: sint = 0
    for item, runner in zip(items, runners):
        flops = flops + (0 if runner is None else runner.flops)
        moved_bytes = moved_bytes + (2 * item.buffers[0].nbytes if runner is None else runner.bytes_moved)
    return flops, moved_bytes


@dataclass(eq=False)
class Plan:
    """The steps that compute every graph of one structure. It holds no memory and no LazyBuffer.

    steps: stages; each holds lists of steps that run in parallel.
    count: the number of kernels and copies.
    slot_count: the number of slots.
    flops: floating-point operations of one run.
    bytes_moved: bytes read and written in one run.
    requires: conditions on the values of Variables.
    chosen: the nodes that the user's tensors may hold.
    nbytes: compiled code of its kernels, in bytes.
    groups: the steps as native groups, after the first run.
    running: whether the groups' tables are in use.
    nodes: slots of the nodes that may have no buffer.
    unneeded: for reference counts of `chosen`: the slots whose values nothing needs later.
    omitted: slots that currently have no buffer.
    unnamed: slots of intermediates that the scheduler made; no tensor can hold them.
    """

    steps: list[list[list[PlanStep]]]
    count: int
    slot_count: int
    flops: sint
    bytes_moved: sint
    requires: tuple[Requirement, ...]
    chosen: Chosen
    nbytes: int
    groups: Units | None = None
    running: bool = False
    nodes: dict[int, int] = field(default_factory=dict)
    unneeded: dict[tuple[int, ...], frozenset[int]] = field(default_factory=dict)
    omitted: frozenset[int] = NO_SLOTS
    unnamed: frozenset[int] = NO_SLOTS

    @staticmethod
    def of(items: Sequence[ScheduleItem], runners: Sequence[Runner | None], graph: NumberedGraph) -> Plan:
        """Returns the plan of `items`, for all graphs with the structure of `graph`."""
        number = {node: position for position, node in enumerate(graph.nodes)}
        slot_of = {buffer: slot for slot, buffer in enumerate(graph.buffers)}
        slots_of_items = [
            tuple([slot_of.setdefault(buffer, len(slot_of)) for buffer in item.buffers]) for item in items
        ]
        last_step = {slot: step for step, slots in enumerate(slots_of_items) for slot in slots}
        steps = []
        for step, (item, runner, slots) in enumerate(zip(items, runners, slots_of_items)):
            plan_steps = tuple(
                StepOutput(slot, number.get(node, NO_NODE), node.device, node.size, node.dtype, not item.in_place)
                for slot, node in zip(slots, item.outputs)
            )
            finished_slots = tuple(slot for slot in dict.fromkeys(slots) if last_step[slot] == step)
            steps.append(PlanStep(runner, slots, plan_steps, finished_slots, item.variables, item.starts))
        flops, moved_bytes = _sum_work(items, runners)
        requires = tuple(node for item in items for node in item.requires if node.buffer is None)
        stretches = divide_among_instances(
            range(len(items)),
            lambda step: instance_of(items[step].device, items[step].buffers, runners[step]),
            lambda step: estimated_work(runners[step]),
        )
        units = [[[steps[step] for step in queue] for queue in queues] for queues in stretches]
        computed = [position for position, node in enumerate(graph.nodes) if node.buffer is None and node.src]
        select_computed: Chosen = itemgetter(*computed) if len(computed) > 1 else tuple
        nbytes = sum([runner.nbytes for runner in set(runners) if runner is not None])
        return Plan(
            units,
            len(steps),
            len(slot_of),
            simplified(flops),
            simplified(moved_bytes),
            requires,
            select_computed,
            nbytes,
        )

    def run(self, graph: NumberedGraph) -> None:
        """Runs every step for `graph`, which is consumed: its nodes get their buffers and drop their sources.

        Dead intermediates get no buffer.
        """
        memory: list[Buffer | None] = [*graph.buffers, *[None] * (self.slot_count - len(graph.buffers))]
        values = graph.values
        for requirement in self.requires:
            requirement.check(values)
        began = time.perf_counter()
        is_first, self.running = not self.running, True  # a finalizer of a freed value may run another graph
        try:
            units: Units = self._prepare(graph.nodes) if is_first else self.steps
            nodes = graph.nodes
            todo = [[[_with_nodes(unit, nodes) for unit in queue] for queue in queues] for queues in units]
            del nodes
            since = SourceNumberBound(graph.first) if graph.first else None
            graph.nodes, graph.buffers = [], []  # consumed, so that a buffer is freed after its last reader
            for stretch in todo:
                if len(stretch) == 1:
                    _run_queue(stretch[0], memory, values, since)
                else:
                    run_side_by_side([partial(_run_queue, queue, memory, values, since) for queue in stretch])
        finally:
            self.running = not is_first
        seconds = time.perf_counter() - began
        flops = self.flops if isinstance(self.flops, int) else value_of(self.flops, values)
        moved_bytes = self.bytes_moved if isinstance(self.bytes_moved, int) else value_of(self.bytes_moved, values)
        GlobalCounters.add(self.count, flops, moved_bytes, seconds)

    def _prepare(self, nodes: list[LazyBuffer]) -> Units:
        """Returns the steps in groups, for a graph whose nodes have the current references.

        nodes: a list that only the caller references.
        """
        if self.groups is None:
            self.omitted = NO_SLOTS
            self.groups = [
                [
                    group_steps(queue)
                    if len(queues) == 1
                    else for_instance(number, len(queues), partial(group_steps, queue))
                    for number, queue in enumerate(queues)
                ]
                for queues in self.steps
            ]
            all_steps = [step for queues in self.steps for queue in queues for step in queue]
            # values computed again read no new value
            if all([output.is_new for step in all_steps for output in step.outputs]):
                inside_groups = {slot for group in self._make_groups() for slot in group.offsets}
                omittable = [output for step in all_steps for output in step.outputs if output.slot in inside_groups]
                self.nodes = {output.node: output.slot for output in omittable if output.node != NO_NODE}
                self.unnamed = frozenset([output.slot for output in omittable if output.node == NO_NODE])
        if self.nodes or self.unnamed:
            counts = reference_counts(nodes, self.chosen)
            omitted = self.unneeded.get(counts)
            if omitted is None:
                omitted = self._find_unneeded(nodes, counts)
            if omitted is not self.omitted:
                self.omitted = omitted
                for group in self._make_groups():
                    group.omit_buffers(omitted)
        return self.groups

    def _make_groups(self) -> list[StepGroup]:
        return [
            unit for queues in self.groups or () for queue in queues for unit in queue if isinstance(unit, StepGroup)
        ]

    def _find_unneeded(self, nodes: list[LazyBuffer], counts: tuple[int, ...]) -> frozenset[int]:
        """Returns the slots of values that nothing needs after the graph is computed. They need no buffer.

        counts: the number of references to each node in `chosen`. The result is cached for these counts.
        """
        slot_of = {nodes[number]: slot for number, slot in self.nodes.items()}
        needed_nodes = find_needed_later(nodes, self.chosen, counts, slot_of)
        slots = self.unnamed.union([slot for node, slot in slot_of.items() if node not in needed_nodes])
        if len(self.unneeded) >= MAX_PATTERNS:
            self.unneeded.clear()
        self.unneeded[counts] = slots = slots if slots != self.omitted else self.omitted
        return slots


def _with_nodes(unit: PlanStep | StepGroup, nodes: list[LazyBuffer]) -> Unit:
    """Returns `unit` with the nodes that get its buffers."""
    return unit, [(nodes[output.node], output.slot) for output in unit.outputs if output.node != NO_NODE]


def _run_queue(
    queue: list[Unit], memory: list[Buffer | None], values: dict[UOp, int], since: SourceNumberBound | None
) -> None:
    """Runs the steps of a queue. Gives the computed nodes their buffers."""
    for unit, targets in queue:
        unit.run(memory, values)
        for node, slot in targets:
            node.buffer = memory[slot]
            node.src = ()
            if since is not None:
                note_source_bound(node, since)
        targets.clear()
        for slot in unit.done:
            memory[slot] = None


class Plans:
    """The cache of plans: the most recently used ones, up to `KERNEL_MB` with their kernels. Any thread may use it."""

    def __init__(self) -> None:
        self._recent: LRUCache[Key, Plan] = LRUCache()
        new_in_children(self._recent, "lock", threading.Lock)

    def find(self, graph: NumberedGraph) -> Plan | None:
        return self._recent.find(graph.key)

    def keep(self, graph: NumberedGraph, plan: Plan) -> None:
        """Stores `plan` for the structure of `graph`, and evicts the least recently used plans."""
        nbytes = NODE_BYTES * len(graph.nodes) + plan.nbytes
        self._recent.keep(graph.key, plan, nbytes, config().KERNEL_MB << 20)

    def cache_clear(self) -> None:
        self._recent.clear()

    def __len__(self) -> int:
        return len(self._recent)


plans = Plans()

__all__ = ["Plan", "Plans", "NumberedGraph", "plans", "walk"]

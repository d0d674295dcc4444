"""Plans: a schedule without its memory, kept under the structure of the graph that it was made for.

A program asks for the same graph over other buffers again and again (a training step, say). What tells such graphs
apart is read off in one walk; one that was met before is neither fused nor lowered nor compiled again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.dtype import DType
from tinyexplore.engine.compile import Runner
from tinyexplore.engine.sight import unseen_writes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, Requirement, ScheduleItem, Writes
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.symbolic import Bound, bindings, simplified, sint, unbound, value_of
from tinyexplore.util import GlobalCounters, config
from tinyexplore.util.locks import new_in_children

MOST_NODES = 1 << 16  # of all graphs that plans are kept for; a key takes some 100 bytes a node
LARGEST_GRAPH = MOST_NODES >> 2  # a larger one takes so long to run that planning it again does not show

Key = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class Walk:
    """A graph as numbers. `key` is equal for graphs that differ in nothing but which buffers they read.

    nodes: every LazyBuffer, by its number. buffers: what the graph reads, by slot. values: of the Variables in it; they
    are not part of the key. writes: which parts are written in place.
    """

    key: Key
    nodes: list[LazyBuffer]
    buffers: list[Buffer]
    values: dict[UOp, int]
    writes: Writes = NO_WRITES


def walk(outputs: Sequence[LazyBuffer]) -> Walk | None:
    """The graph behind `outputs`; None where it is too large to keep a plan for."""
    found = _read_off(outputs)
    if found is None:
        return None
    key, number, slots, has_writes = found
    writes = NO_WRITES
    if has_writes:
        writes = unseen_writes(number, slots, outputs)
        key.append(tuple([number[node] for node in number if node in writes.in_place]))
    key.append(tuple([number[node] for node in outputs]))
    key.append(config().values)
    whole = tuple(key)
    if not Bound.count:
        return Walk(whole, list(number), list(slots), {}, writes)
    return Walk(unbound(whole), list(number), list(slots), bindings(whole), writes)


def _read_off(
    outputs: Sequence[LazyBuffer],
) -> tuple[list[Any], dict[LazyBuffer, int], dict[Buffer, int], bool] | None:
    """The key so far, the number of each node, the slot of each buffer, whether there are WRITEs; None: too large."""
    number: dict[LazyBuffer, int] = {}
    slots: dict[Buffer, int] = {}
    key: list[Any] = []
    has_writes = False
    stack = list(outputs)
    while stack:
        node = stack[-1]
        if node in number:
            stack.pop()
            continue
        buffer, src = node.buffer, node.src
        if buffer is not None:  # one buffer under two nodes is one slot: the kernel gets it once
            key += (None, slots.setdefault(buffer, len(slots)), node.dtype, node.shape, node.device)
        elif not src:
            key += (node.op, node.dtype, _constant(node.arg), node.shape, node.device)
        else:
            missing = [source for source in src if source not in number]
            if missing:
                stack += missing
                continue
            op = node.op
            key += (op, node.dtype, node.arg)  # from these and the sources, shape and device follow
            for source in src:
                key.append(number[source])
            if op is Ops.COPY:
                key.append(node.device)
            elif op is Ops.WRITE:
                has_writes = True
        number[node] = len(number)
        stack.pop()
    return (key, number, slots, has_writes) if len(number) <= LARGEST_GRAPH else None


def _constant(value: Any) -> Any:
    """0.0 and -0.0 are equal to Python; the dtype beside them tells other equal constants apart."""
    return str(value) if value == 0 else value


@dataclass(frozen=True, eq=False, slots=True)
class Made:
    """A buffer that a step fills: its slot, what it is, and the number of the node whose value it holds. `is_new`: it
    gets memory for it; else it stores into a part of what lies in that slot already."""

    slot: int
    node: int
    device: str
    size: int
    dtype: DType
    is_new: bool


@dataclass(frozen=True, eq=False, slots=True)
class Step:
    """A kernel (`runner`) or a copy (None) over the buffers in `slots`; nobody needs those in `done` afterwards.

    variables: the integer arguments of the kernel.
    """

    runner: Runner | None
    slots: tuple[int, ...]
    made: tuple[Made, ...]
    done: tuple[int, ...]
    variables: tuple[UOp, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be done for one structure of graph, in order. Holds no memory and no LazyBuffer."""

    steps: tuple[Step, ...]
    slot_count: int
    flops: sint
    bytes_moved: sint
    requires: tuple[Requirement, ...]

    @staticmethod
    def of(items: Sequence[ScheduleItem], runners: Sequence[Runner | None], graph: Walk) -> Plan:
        """The plan that does for graphs like `graph` what `items` do for it."""
        number = {node: place for place, node in enumerate(graph.nodes)}
        slot_of = {buffer: slot for slot, buffer in enumerate(graph.buffers)}
        used = [tuple([slot_of.setdefault(buffer, len(slot_of)) for buffer in item.buffers]) for item in items]
        last = {slot: place for place, slots in enumerate(used) for slot in slots}
        steps = []
        for place, (item, runner, slots) in enumerate(zip(items, runners, used)):
            made = tuple(
                Made(slot, number[node], node.device, node.size, node.dtype, not item.in_place)
                for slot, node in zip(slots, item.outputs)
            )
            done = tuple(slot for slot in dict.fromkeys(slots) if last[slot] == place)
            steps.append(Step(runner, slots, made, done, item.variables))
        flops: sint = 0
        moved: sint = 0
        for item, runner in zip(items, runners):
            flops = flops + (0 if runner is None else runner.flops)
            moved = moved + (2 * item.buffers[0].nbytes if runner is None else runner.bytes_moved)
        requires = tuple(one for item in items for one in item.requires if one.buffer is None)
        return Plan(tuple(steps), len(slot_of), simplified(flops), simplified(moved), requires)

    def run(self, graph: Walk) -> None:
        """Every step for `graph`, which is used up: its nodes get their buffers and forget their sources."""
        memory: list[Any] = [*graph.buffers, *[None] * (self.slot_count - len(graph.buffers))]
        nodes, values = graph.nodes, graph.values
        for requirement in self.requires:
            requirement.check(values)
        targets = [[nodes[made.node] for made in step.made] for step in reversed(self.steps)]
        del nodes
        graph.nodes, graph.buffers = [], []  # so that a buffer is let go after its last reader
        began = time.perf_counter()
        for step in self.steps:
            for made in step.made:
                if made.is_new:
                    memory[made.slot] = Buffer(made.device, made.size, made.dtype)
            buffers = [memory[slot] for slot in step.slots]
            if step.runner is None:
                (made,), source = step.made, buffers[1]
                if source.size != made.size:  # symbolic: as much room as there is in what is copied
                    buffers[0] = memory[made.slot] = Buffer(made.device, source.size, made.dtype)
                buffers[0].allocate().copyin(source.memoryview())
            elif step.variables:
                numbers = [value_of(variable, values) for variable in step.variables]
                step.runner.run(step.runner.program.bind(buffers, numbers), numbers)
            else:
                step.runner.run(step.runner.program.bind(buffers))
            for node, made in zip(targets.pop(), step.made):
                node.buffer = memory[made.slot]
                node.src = ()
            for slot in step.done:
                memory[slot] = None
            del buffers
        seconds = time.perf_counter() - began
        GlobalCounters.add(len(self.steps), value_of(self.flops, values), value_of(self.bytes_moved, values), seconds)


class Plans:
    """The plans used last, as many as stand for `MOST_NODES` nodes. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plans: OrderedDict[Key, tuple[Plan, int]] = OrderedDict()
        self._nodes = 0

    def find(self, graph: Walk) -> Plan | None:
        with self._lock:
            found = self._plans.get(graph.key)
            if found is None:
                return None
            self._plans.move_to_end(graph.key)
            return found[0]

    def keep(self, graph: Walk, plan: Plan) -> None:
        """`plan` for the structure of `graph`; the one used longest ago makes room."""
        with self._lock:
            if graph.key in self._plans:
                return
            self._plans[graph.key] = (plan, len(graph.nodes))
            self._nodes += len(graph.nodes)
            while self._nodes > MOST_NODES:
                _, (_, count) = self._plans.popitem(last=False)
                self._nodes -= count

    def cache_clear(self) -> None:
        with self._lock:
            self._plans.clear()
            self._nodes = 0

    def __len__(self) -> int:
        return len(self._plans)


plans = Plans()
new_in_children(plans, "_lock")

__all__ = ["Plan", "Plans", "Walk", "plans", "walk"]

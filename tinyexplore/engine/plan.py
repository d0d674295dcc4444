"""Plans: a schedule without its memory, kept under the structure of the graph that it was made for.

A program asks for the same graph over other buffers again and again (a training step, say). What tells such graphs
apart is read off in one walk; one that was met before is neither fused nor lowered nor compiled again.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tinyexplore.device import Buffer, Device, Memory
from tinyexplore.dtype import DType
from tinyexplore.engine.compile import Runner
from tinyexplore.engine.lanes import estimated_work, in_lane, instance_of, run_side_by_side, side_by_side
from tinyexplore.engine.sight import unseen_writes
from tinyexplore.engine.threads import current_lane, parts_for, thread_count
from tinyexplore.lazy import LazyBuffer
from tinyexplore.runtime.native import BoundProgram, NativeProgram
from tinyexplore.runtime.pool import find_native_pool
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
    key.append(config().token)
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
    count = 0
    while stack:
        node = stack.pop()
        if node in number:
            continue
        buffer, src = node.buffer, node.src
        if buffer is not None:  # one buffer under two nodes is one slot: the kernel gets it once
            key += (None, slots.setdefault(buffer, len(slots)), node.dtype, node.shape, node.device)
        elif not src:
            key += (node.op, node.dtype, _constant(node.arg), node.shape, node.device)
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
            key += (op, node.dtype, node.arg)  # from these and the sources, shape and device follow
            for source in src:
                key.append(number[source])
            if op is Ops.COPY:
                key.append(node.device)
            elif op is Ops.WRITE:
                has_writes = True
        number[node] = count
        count += 1
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

    def run(self, memory: list[Any], values: dict[UOp, int]) -> None:
        """The step on the buffers in `memory`, where those that it fills are put."""
        for made in self.made:
            if made.is_new:
                memory[made.slot] = Buffer(made.device, made.size, made.dtype)
        buffers = [memory[slot] for slot in self.slots]
        if self.runner is None:
            (made,), source = self.made, buffers[1]
            if source.size != made.size:  # symbolic: as much room as there is in what is copied
                buffers[0] = memory[made.slot] = Buffer(made.device, source.size, made.dtype)
            buffers[0].allocate().copyin(source.memoryview())
        elif self.variables:
            numbers = [value_of(variable, values) for variable in self.variables]
            self.runner.run(self.runner.program.bind(buffers, numbers), numbers)
        else:
            self.runner.run(self.runner.program.bind(buffers))


@dataclass(frozen=True, eq=False, slots=True)
class Ready:
    """A step of machine code that needs nothing but the addresses of its buffers, in `table`, and then to be called.

    made: for each buffer that it fills, what `Buffer` takes, the bytes of it, and where they come from.
    """

    made: tuple[tuple[int, str, int, DType, int, Callable[[int], Memory]], ...]
    table: array[int]
    call: Callable[[], None]

    @staticmethod
    def of(step: Step) -> Ready | None:
        """None where there is more to it: a copy, Variables, a device without machine code, buffers that the caller
        gives and that must be aligned."""
        pool = find_native_pool(thread_count(), current_lane.get())
        if step.runner is None or step.variables or pool is None:
            return None
        spec, program = step.runner.spec, step.runner.program
        own = [made.slot for made in step.made if made.is_new]
        if not isinstance(program, NativeProgram) or not all(step.slots[place] in own for place in spec.aligned):
            return None
        if (
            len(step.slots) != spec.n_buffers
            or len(own) != len(step.made)
            or not all(step.slots[place] in own for place in spec.writes)
        ):
            return None
        table = array("Q", [0] * max(1, len(step.slots)))
        extent = spec.extent(())
        parts = parts_for(extent, step.runner.work_ns(()), thread_count())
        call = pool.prepare([(BoundProgram(program, [], table), extent, parts)])
        made = tuple(
            (one.slot, one.device, one.size, one.dtype, one.size * one.dtype.itemsize, _memory_of(one.device))
            for one in step.made
        )
        return Ready(made, table, call)

    def run(self, slots: tuple[int, ...], memory: list[Any]) -> None:
        """As `Step.run`. Whoever runs something else in between finds the table in use (`Plan.running`)."""
        for slot, device, size, dtype, nbytes, allocate in self.made:
            memory[slot] = Buffer(device, size, dtype, allocate(nbytes))
        table = self.table
        for place, slot in enumerate(slots):
            table[place] = memory[slot].allocate().address
        self.call()


def _memory_of(device: str) -> Callable[[int], Memory]:
    return Device.allocator(device).allocate


@dataclass(eq=False)
class Plan:
    """What is to be done for one structure of graph, in order. Holds no memory and no LazyBuffer.

    stretches: the numbers of the steps, in lists that run side by side. ready: the steps, as far as they can be.
    running: their tables are in use.
    """

    steps: tuple[Step, ...]
    stretches: list[list[list[int]]]
    slot_count: int
    flops: sint
    bytes_moved: sint
    requires: tuple[Requirement, ...]
    ready: tuple[Ready | None, ...] | None = None
    running: bool = False

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
        stretches = side_by_side(
            range(len(items)),
            lambda place: instance_of(items[place].device, items[place].buffers, runners[place]),
            lambda place: estimated_work(runners[place]),
        )
        return Plan(tuple(steps), stretches, len(slot_of), simplified(flops), simplified(moved), requires)

    def run(self, graph: Walk) -> None:
        """Every step for `graph`, which is used up: its nodes get their buffers and forget their sources."""
        memory: list[Any] = [*graph.buffers, *[None] * (self.slot_count - len(graph.buffers))]
        nodes, values = graph.nodes, graph.values
        for requirement in self.requires:
            requirement.check(values)
        targets = [[nodes[made.node] for made in step.made] for step in self.steps]
        del nodes
        graph.nodes, graph.buffers = [], []  # so that a buffer is let go after its last reader
        began = time.perf_counter()
        is_first, self.running = not self.running, True  # what is let go on the way may ask for a graph of its own
        try:
            self._do(memory, targets, values, self._ready() if is_first else (None,) * len(self.steps))
        finally:
            self.running = not is_first
        seconds = time.perf_counter() - began
        flops = self.flops if isinstance(self.flops, int) else value_of(self.flops, values)
        moved = self.bytes_moved if isinstance(self.bytes_moved, int) else value_of(self.bytes_moved, values)
        GlobalCounters.add(len(self.steps), flops, moved, seconds)

    def _ready(self) -> tuple[Ready | None, ...]:
        if self.ready is None:
            found: dict[int, Ready | None] = {}
            for lanes in self.stretches:
                for lane, places in enumerate(lanes):
                    make = partial(_ready_steps, [self.steps[place] for place in places])
                    found.update(zip(places, make() if len(lanes) == 1 else in_lane(lane, len(lanes), make)))
            self.ready = tuple([found[place] for place in range(len(self.steps))])
        return self.ready

    def _do(
        self,
        memory: list[Any],
        targets: list[list[LazyBuffer]],
        values: dict[UOp, int],
        ready: tuple[Ready | None, ...],
    ) -> None:
        """The steps; `targets` has the nodes that they are for."""

        def do(places: list[int]) -> None:
            for place in places:
                step, quick = self.steps[place], ready[place]
                if quick is None:
                    step.run(memory, values)
                else:
                    quick.run(step.slots, memory)
                for node, made in zip(targets[place], step.made):
                    node.buffer = memory[made.slot]
                    node.src = ()
                targets[place] = []
                for slot in step.done:
                    memory[slot] = None

        for lanes in self.stretches:
            if len(lanes) == 1:
                do(lanes[0])
            else:
                run_side_by_side([partial(do, places) for places in lanes])


def _ready_steps(steps: list[Step]) -> list[Ready | None]:
    return [Ready.of(step) for step in steps]


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

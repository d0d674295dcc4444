"""The graphs of a capture as plain rows, from which they can be rebuilt and scheduled differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.dtype import DType
from tinyexplore.explore.recording.scheduled_graph import ScheduledGraph
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, Overrides, WritePlan
from tinyexplore.uop import Ops

FILES = ("DISK", "NPY")


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """The memory of a node.

    key: the number of its Buffer.
    device: the device that holds it.
    size: the number of elements.
    dtype: the element type.
    """

    key: int
    device: str
    size: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A LazyBuffer of a captured graph.

    node: its id in the trace.
    op: the operation.
    dtype: the element type.
    shape: the shape; symbolic sizes stay objects.
    src: the positions of its operands in the rows.
    arg: the argument of the operation.
    device: the device that computes it.
    memory: its memory, None if it has none.
    calls: the user's calls that created it.
    """

    node: int
    op: Ops
    dtype: DType
    shape: Any
    src: tuple[int, ...]
    arg: Any
    device: str
    memory: NodeMemory | None
    calls: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class CapturedGraph:
    """A captured graph as plain rows, sources first. It holds no memory, and can be rebuilt and scheduled again.

    Positions are indices of `rows`. The last four fields are those of `WritePlan`.

    rows: the LazyBuffers.
    outputs: positions of the requested LazyBuffers.
    in_place: positions of the WRITEs that store into the memory of their target; the others copy it first.
    why: the reason for each WRITE, by position.
    computed_first: positions of readers of old values; they are stored before a write overwrites these values.
    stored_separately: positions of LazyBuffers with a kernel of their own, because it must run before some write.
    """

    rows: tuple[NodeRow, ...]
    outputs: tuple[int, ...]
    in_place: frozenset[int]
    why: Mapping[int, str]
    computed_first: frozenset[int]
    stored_separately: frozenset[int]

    @property
    def computed(self) -> frozenset[int]:
        """Returns the trace ids of the nodes that the graph computes."""
        return frozenset([row.node for row in self.rows if row.memory is None])

    def cannot_rerun(self) -> str:
        """Returns the reason why the graph cannot run on other values, or "" if it can."""
        for row in self.rows:
            devices = [row.device, row.memory.device if row.memory is not None else ""]
            if any(device.startswith(FILES) for device in devices):
                return "the graph reads a file"
            if row.op is Ops.WRITE and row.memory is None and self._depends_on_values(row.src[1]):
                return f"the indices of WRITE node {row.node} depend on values, which the capture does not contain"
        return ""

    def _depends_on_values(self, number: int) -> bool:
        """Whether the row at this position, or one of its transitive sources, has memory."""
        stack, visited = [number], {number}
        while stack:
            row = self.rows[stack.pop()]
            if row.memory is not None:
                return True
            fresh = [src for src in row.src if src not in visited]
            visited.update(fresh)
            stack += fresh
        return False

    def rebuild(self) -> RebuiltGraph:
        """Builds the graph again, with new uninitialized buffers."""
        buffers: dict[int, Buffer] = {}
        nodes: list[LazyBuffer] = []
        for row in self.rows:
            memory = row.memory
            buffer = None
            if memory is not None:
                buffer = buffers.get(memory.key) or Buffer(memory.device, memory.size, memory.dtype)
                buffers[memory.key] = buffer
            src = tuple([nodes[number] for number in row.src])
            node = LazyBuffer(row.op, row.dtype, row.shape, src, row.arg, row.device, buffer)
            node.calls = row.calls
            nodes.append(node)

        def nodes_at(numbers: frozenset[int]) -> frozenset[LazyBuffer]:
            return frozenset([nodes[number] for number in numbers])

        writes = NO_WRITES
        if self.why:
            why = {nodes[number]: text for number, text in self.why.items()}
            writes = WritePlan(
                nodes_at(self.in_place), why, nodes_at(self.computed_first), nodes_at(self.stored_separately)
            )
        numbers = {node: row.node for node, row in zip(nodes, self.rows)}
        return RebuiltGraph(tuple([nodes[number] for number in self.outputs]), writes, tuple(buffers.values()), numbers)


@dataclass(frozen=True, eq=False)
class RebuiltGraph:
    """A captured graph, rebuilt.

    outputs: the requested LazyBuffers.
    writes: the decisions on its WRITEs.
    inputs: the memory that the graph reads.
    numbers: the trace id of each node.
    """

    outputs: tuple[LazyBuffer, ...]
    writes: WritePlan
    inputs: tuple[Buffer, ...]
    numbers: Mapping[LazyBuffer, int]

    def overrides(self, cut: frozenset[int], join: frozenset[int]) -> Overrides:
        """Returns the overrides that cut and join the nodes with these trace ids."""
        return Overrides(
            frozenset([node for node, number in self.numbers.items() if number in cut]),
            frozenset([node for node, number in self.numbers.items() if number in join]),
        )


def capture_graph(scheduled: ScheduledGraph, numbers: Mapping[Any, int]) -> CapturedGraph:
    """Returns a scheduled graph as rows. `numbers` has the trace id of each LazyBuffer."""
    number_of = {node: number for number, node in enumerate(scheduled.order)}
    rows = tuple(
        NodeRow(
            numbers[node],
            node.op,
            node.dtype,
            node.shape,
            tuple([number_of[source] for source in sources]),
            node.arg,
            node.device,
            None if facts is None else NodeMemory(*facts),
            getattr(node, "calls", ()),
        )
        for node, sources, facts in zip(scheduled.order, scheduled.sources, scheduled.memory)
    )
    writes = scheduled.writes

    def numbers_of(nodes: frozenset[LazyBuffer]) -> frozenset[int]:
        return frozenset([number_of[node] for node in nodes])

    return CapturedGraph(
        rows,
        tuple([number_of[node] for node in scheduled.outputs]),
        numbers_of(writes.in_place),
        {number_of[node]: why for node, why in writes.reasons.items()},
        numbers_of(writes.computed_first),
        numbers_of(writes.stored_separately),
    )


def captured_graphs(
    schedules: Sequence[ScheduledGraph], stages: Sequence[int], numbers: Mapping[Any, int]
) -> dict[int, CapturedGraph]:
    """Returns the graphs of a capture, by the stage that scheduled each."""
    return {stage: capture_graph(schedule, numbers) for stage, schedule in zip(stages, schedules, strict=True)}


__all__ = ["CapturedGraph", "RebuiltGraph", "NodeMemory", "NodeRow", "captured_graphs"]

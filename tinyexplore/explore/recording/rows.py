"""The graphs of a capture as plain rows: made again, and scheduled otherwise, when somebody asks for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.dtype import DType
from tinyexplore.explore.recording.scheduled import Scheduled
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, Overrides, Writes
from tinyexplore.uop import Ops

FILES = ("DISK", "NPY")


@dataclass(frozen=True, slots=True)
class NodeMemory:
    """What a node lay in: the number of its Buffer, and what another like it takes."""

    key: int
    device: str
    size: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A LazyBuffer of a kept graph. `node`: its number in the trace; `src`: places of other rows."""

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
class KeptGraph:
    """A captured graph as plain rows, sources first, which holds no memory: it can be made again, and scheduled
    otherwise. Of `writes` there are the places of their nodes."""

    rows: tuple[NodeRow, ...]
    outputs: tuple[int, ...]
    in_place: frozenset[int]
    why: Mapping[int, str]
    first: frozenset[int]
    apart: frozenset[int]

    @property
    def computed(self) -> frozenset[int]:
        """The numbers in the trace of what it computes."""
        return frozenset([row.node for row in self.rows if row.memory is None])

    def obstacle(self) -> str:
        """Why it cannot be run on other values; "" where it can."""
        for row in self.rows:
            devices = [row.device, row.memory.device if row.memory is not None else ""]
            if any(device.startswith(FILES) for device in devices):
                return "it reads a file"
            if row.op is Ops.WRITE and row.memory is None and self._depends_on_values(row.src[1]):
                return f"node {row.node} writes to places that values say, and these are not kept"
        return ""

    def _depends_on_values(self, place: int) -> bool:
        stack, seen = [place], {place}
        while stack:
            row = self.rows[stack.pop()]
            if row.memory is not None:
                return True
            fresh = [src for src in row.src if src not in seen]
            seen.update(fresh)
            stack += fresh
        return False

    def made(self) -> RebuiltGraph:
        """The graph again, over memory of its own that nothing has been written to."""
        buffers: dict[int, Buffer] = {}
        nodes: list[LazyBuffer] = []
        for row in self.rows:
            memory = row.memory
            buffer = None
            if memory is not None:
                buffer = buffers.get(memory.key) or Buffer(memory.device, memory.size, memory.dtype)
                buffers[memory.key] = buffer
            src = tuple([nodes[place] for place in row.src])
            node = LazyBuffer(row.op, row.dtype, row.shape, src, row.arg, row.device, buffer)
            node.calls = row.calls
            nodes.append(node)

        def those(places: frozenset[int]) -> frozenset[LazyBuffer]:
            return frozenset([nodes[place] for place in places])

        writes = NO_WRITES
        if self.why:
            why = {nodes[place]: text for place, text in self.why.items()}
            writes = Writes(those(self.in_place), why, those(self.first), those(self.apart))
        numbers = {node: row.node for node, row in zip(nodes, self.rows)}
        return RebuiltGraph(tuple([nodes[place] for place in self.outputs]), writes, tuple(buffers.values()), numbers)


@dataclass(frozen=True, eq=False)
class RebuiltGraph:
    """A graph that was made again: its outputs, what they may overwrite, the memory that it reads, and the number of
    each node in the trace."""

    outputs: tuple[LazyBuffer, ...]
    writes: Writes
    inputs: tuple[Buffer, ...]
    numbers: Mapping[LazyBuffer, int]

    def overrides(self, cut: frozenset[int], join: frozenset[int]) -> Overrides:
        """Those about the nodes of these numbers."""
        return Overrides(
            frozenset([node for node, number in self.numbers.items() if number in cut]),
            frozenset([node for node, number in self.numbers.items() if number in join]),
        )


def kept_graph(scheduled: Scheduled, numbers: Mapping[Any, int]) -> KeptGraph:
    """What is kept of a graph when its trace is made. numbers: those of LazyBuffers in the trace."""
    place = {node: number for number, node in enumerate(scheduled.order)}
    rows = tuple(
        NodeRow(
            numbers[node],
            node.op,
            node.dtype,
            node.shape,
            tuple([place[source] for source in sources]),
            node.arg,
            node.device,
            None if facts is None else NodeMemory(*facts),
            getattr(node, "calls", ()),
        )
        for node, sources, facts in zip(scheduled.order, scheduled.sources, scheduled.memory)
    )
    writes = scheduled.writes

    def places(nodes: frozenset[LazyBuffer]) -> frozenset[int]:
        return frozenset([place[node] for node in nodes])

    return KeptGraph(
        rows,
        tuple([place[node] for node in scheduled.outputs]),
        places(writes.in_place),
        {place[node]: why for node, why in writes.why.items()},
        places(writes.first),
        places(writes.apart),
    )


def kept_graphs(
    schedules: Sequence[Scheduled], stages: Sequence[int], numbers: Mapping[Any, int]
) -> dict[int, KeptGraph]:
    """The graphs of a capture, by the stage that scheduled each."""
    return {stage: kept_graph(one, numbers) for stage, one in zip(stages, schedules, strict=True)}


__all__ = ["KeptGraph", "RebuiltGraph", "NodeMemory", "NodeRow", "kept_graphs"]

"""Records the graphs that a capture schedules, because a realized LazyBuffer loses its sources.

A capture imports only this module; `captured_graph.py` converts the graphs afterwards.
"""

from __future__ import annotations

from tinyexplore.device import Buffer
from tinyexplore.dtype import DType
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, WritePlan, graph_order

Facts = tuple[int, str, int, DType]  # the fields of a Buffer, in the order of `NodeMemory`


class ScheduledGraph:
    """A graph at the time of its schedule: `order` (sources first), and the sources and memory of each node."""

    __slots__ = ("memory", "order", "outputs", "sources", "writes")

    def __init__(self, outputs: tuple[LazyBuffer, ...]) -> None:
        self.outputs = outputs
        self.order: tuple[LazyBuffer, ...] = tuple(graph_order(outputs))
        self.sources = tuple([() if node.buffer is not None else node.src for node in self.order])
        self.memory = tuple([_find_facts(node.buffer) for node in self.order])
        self.writes: WritePlan = NO_WRITES


def _find_facts(buffer: Buffer | None) -> Facts | None:
    return None if buffer is None else (buffer.id, buffer.device, buffer.size, buffer.dtype)


__all__ = ["Facts", "ScheduledGraph"]

"""The graphs that a capture scheduled, as they were then: a LazyBuffer forgets its sources when it is realized.

A capture imports only this module; `rows.py` converts its graphs afterwards.
"""

from __future__ import annotations

from tinyexplore.device import Buffer
from tinyexplore.dtype import DType
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, Writes, graph_order

Facts = tuple[int, str, int, DType]  # of a Buffer, as `Memory` has them


class Scheduled:
    """A graph while it is being captured: `order` sources first, the sources and the memory of each then."""

    __slots__ = ("memory", "order", "outputs", "sources", "writes")

    def __init__(self, outputs: tuple[LazyBuffer, ...]) -> None:
        self.outputs = outputs
        self.order: tuple[LazyBuffer, ...] = tuple(graph_order(outputs))
        self.sources = tuple([() if node.buffer is not None else node.src for node in self.order])
        self.memory = tuple([_facts_of(node.buffer) for node in self.order])
        self.writes: Writes = NO_WRITES


def _facts_of(buffer: Buffer | None) -> Facts | None:
    return None if buffer is None else (buffer.id, buffer.device, buffer.size, buffer.dtype)


__all__ = ["Facts", "Scheduled"]

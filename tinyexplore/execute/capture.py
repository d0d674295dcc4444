"""Captures the ExecItems that run, so that TinyJit can replay them."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TypeVar
from weakref import WeakSet, ref

from tinyexplore.device import Buffer
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.lazy import LazyBuffer, Simplification, graph_as_written

R = TypeVar("R")


@dataclass(eq=False)
class ExecutionCapture:
    """All items that ran while the capture was active.

    LazyBuffers are referenced weakly. A buffer whose LazyBuffer was freed may be reused after its last read.

    items: the ExecItems, in order.
    used: every LazyBuffer that they computed or read.
    owners: the LazyBuffer whose value each written buffer holds.
    private_buffers: buffers that belong to the capture alone; parts of them may be written in place.
    """

    items: list[ExecItem] = field(default_factory=list)
    used: WeakSet[LazyBuffer] = field(default_factory=WeakSet)
    owners: dict[Buffer, ref[LazyBuffer]] = field(default_factory=dict)
    private_buffers: set[Buffer] = field(default_factory=set)

    def may_overwrite(self, buffer: Buffer) -> bool:
        """Whether only this capture uses the memory: it wrote the memory first, or received it."""
        return buffer in self.owners or buffer in self.private_buffers

    def find_owned(self) -> list[Buffer]:
        """Returns the written buffers whose values are still referenced."""
        return [buffer for buffer, owner in self.owners.items() if owner() is not None]

    def add(self, finished_item: ExecItem) -> None:
        """Adds a finished item, without the graph that it came from."""
        for node in finished_item.item.members:
            self.used.add(node)
            self.used.update(node.src)
            for node_or_source in (node, *node.src):
                if type(node_or_source.noted) is Simplification:
                    self.used.update(graph_as_written(node_or_source))
        for node, buffer in zip(finished_item.item.outputs, finished_item.buffers):
            self.owners[buffer] = ref(node)
        item = replace(finished_item.item, outputs=(), members=(), origins=(), reads=())
        self.items.append(
            ExecItem(item, finished_item.runner, None, finished_item.buffers, finished_item.bound, finished_item.values)
        )


_capture: ContextVar[ExecutionCapture | None] = ContextVar("tinyexplore_capture", default=None)


def capture_variable() -> ContextVar[ExecutionCapture | None]:
    """Returns the context variable that `active_capture` reads."""
    return _capture


def active_capture() -> ExecutionCapture | None:
    """Returns the active capture of this context, or None."""
    return _capture.get()


def capturing(capture: ExecutionCapture | None, work: Callable[[], R]) -> R:
    """Calls `work` and returns its result. Adds the items that it runs to `capture`, or to no capture if that is
    None."""
    outer_capture = _capture.get()
    try:
        _capture.set(capture)
        return work()
    finally:
        _capture.set(outer_capture)


__all__ = ["ExecutionCapture", "active_capture", "capture_variable", "capturing"]

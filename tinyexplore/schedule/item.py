"""ScheduleItem: one piece of work, a kernel's ast or a copy between devices, and the memory it is about."""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.device import Buffer
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import UOp


@dataclass(frozen=True, eq=False)
class ScheduleItem:
    """`ast` is a SINK of STOREs over `buffers` (by the position in DEFINE_GLOBAL), None for a copy.

    outputs: the LazyBuffers that this item realises, in the order of the first buffers. members: every LazyBuffer
    computed in it. values: in a recording, which UOps compute which LazyBuffer (several for several loops).
    A copy has two buffers: to, from.
    """

    device: str
    ast: UOp | None
    buffers: tuple[Buffer, ...]
    outputs: tuple[LazyBuffer, ...]
    members: tuple[LazyBuffer, ...]
    values: tuple[tuple[LazyBuffer, UOp], ...] = ()

    @property
    def is_copy(self) -> bool:
        return self.ast is None

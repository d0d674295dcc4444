"""What values of the engine stand for: graphs by their roots, LazyBuffers by the buffers with their values."""

from __future__ import annotations

from typing import Any, NamedTuple

from tinyexplore.device import Buffer
from tinyexplore.kernel import Kernel
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import ProgramSpec
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import UOp

Roots = tuple[Any, ...]


def roots_of(value: Any) -> Roots:
    """The IR nodes that a value of any floor stands for: itself, its ast, its program, or those of its parts."""
    match value:
        case UOp() | LazyBuffer():
            return (value,)
        case Kernel(ast=ast) | ScheduleItem(ast=ast):
            return () if ast is None else (ast,)
        case ProgramSpec(uops=uops):
            return uops
        case tuple() | list():
            return tuple(root for item in value for root in roots_of(item))
        case _:
            return ()


def buffer_key(buffer: Any) -> Any:
    """What names a buffer without keeping its memory: events carry it already."""
    return buffer.key if isinstance(buffer, Buffer) else buffer


class NodeBuffer(NamedTuple):
    """The buffer with a LazyBuffer's values: its own, or that of what it is a view of."""

    buffer: Any
    is_own: bool


def held_by(value: LazyBuffer) -> NodeBuffer | None:
    """Where the values of a LazyBuffer lie now; None of one that is not computed."""
    base = value.base
    return None if base.buffer is None else NodeBuffer(buffer_key(base.buffer), base is value)

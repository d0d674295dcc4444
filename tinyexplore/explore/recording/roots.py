"""Finds the root nodes of the engine's values, and the buffers of LazyBuffers."""

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
    """Returns the root nodes of a value at any IR level: the value, its AST, its program, or the roots of its parts."""
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
    """Returns a key that identifies a buffer without keeping its memory alive. Events carry this key."""
    return buffer.key if isinstance(buffer, Buffer) else buffer


class NodeBuffer(NamedTuple):
    """The buffer with a LazyBuffer's values: its own, or the buffer of its base."""

    buffer: Any
    is_own: bool


def buffer_of(value: LazyBuffer) -> NodeBuffer | None:
    """Returns the buffer with a LazyBuffer's values; None if they are not computed."""
    base = value.base
    return None if base.buffer is None else NodeBuffer(buffer_key(base.buffer), base is value)

"""Who holds values. They stand above the engine, which asks them before it overwrites a value in its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tinyexplore.lazy.lazybuffer import LazyBuffer

_viewers: list[Callable[[], Iterable[LazyBuffer]]] = []


def add_viewer(find: Callable[[], Iterable[LazyBuffer]]) -> None:
    """`find` lists every LazyBuffer whose value somebody may ask for (not what that is computed from)."""
    _viewers.append(find)


def values_seen() -> Iterator[LazyBuffer]:
    """All that anybody may ask for."""
    for find in _viewers:
        yield from find()

"""The roots of liveness: values that the program holds. The engine asks for them before it overwrites one in place;
who knows them stands above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tinyexplore.lazy.lazybuffer import LazyBuffer

_finders: list[Callable[[], Iterable[LazyBuffer]]] = []


def add_roots(find: Callable[[], Iterable[LazyBuffer]]) -> None:
    """`find` lists every LazyBuffer whose value somebody may ask for (not what that is computed from)."""
    _finders.append(find)


def root_values() -> Iterator[LazyBuffer]:
    """All that anybody may ask for."""
    for find in _finders:
        yield from find()

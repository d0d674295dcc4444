"""The roots of liveness: the values that the program references. The engine reads them before it overwrites a value in
place.

Higher layers register functions that list these values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tinyexplore.lazy.lazybuffer import LazyBuffer

_finders: list[Callable[[], Iterable[LazyBuffer]]] = []


def add_roots(find: Callable[[], Iterable[LazyBuffer]]) -> None:
    """Registers `find`, which lists every LazyBuffer whose value may be requested (without its sources)."""
    _finders.append(find)


def root_values() -> Iterator[LazyBuffer]:
    """Yields all values that may be requested."""
    for find in _finders:
        yield from find()

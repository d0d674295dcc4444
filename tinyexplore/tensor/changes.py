"""Who is told when a tensor takes over another value, and when a random tensor draws its key: TinyJit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinyexplore.device import Buffer
    from tinyexplore.lazy import LazyBuffer
    from tinyexplore.tensor.base import Base


@dataclass(eq=False)
class Notes:
    """The tensors that changed inside a block, by identity, with their values before; and the keys drawn, in order."""

    changed: dict[int, tuple[Base, LazyBuffer]] = field(default_factory=dict)
    keys: list[Buffer] = field(default_factory=list)


class Epoch:
    """Counts changes of any tensor in this process: as long as it stands still, no tensor has another value."""

    count = 0
    _lock = Lock()

    @classmethod
    def advance(cls, seen: int) -> int:
        """Counts a change made by somebody who knows all changes up to `seen`; up to where they know them now."""
        with cls._lock:
            cls.count += 1
            return cls.count if cls.count == seen + 1 else seen


_notes: ContextVar[Notes | None] = ContextVar("tinyexplore_notes", default=None)


@contextmanager
def noting(notes: Notes | None) -> Iterator[None]:
    """Changes inside the block are written down in `notes`."""
    token = _notes.set(notes)
    try:
        yield
    finally:
        _notes.reset(token)


def note_change(tensor: Base) -> None:
    """`tensor` is about to take over another value."""
    Epoch.advance(0)
    notes = _notes.get()
    if notes is not None:
        notes.changed.setdefault(id(tensor), (tensor, tensor.lazydata))


def note_key(buffer: Buffer) -> None:
    """`buffer` holds the key of a random tensor."""
    notes = _notes.get()
    if notes is not None:
        notes.keys.append(buffer)

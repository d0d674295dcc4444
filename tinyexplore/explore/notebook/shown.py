"""What stays of explorers that were shown: a page may ask for a view at any time, and nobody says when it will not.

ipywidgets holds every widget until it is closed, which is right for a page that is loaded again, and has no end in a
cell that is run again and again. A widget refers to the compressed trace only, not to its Explorer; here the rest is
bounded by `EXPLORER_MB` (`docs/performance/pages.md`).
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import ref

from tinyexplore.util import config

OBJECTS_PER_BYTE = 30  # what a trace takes as objects, by its compressed size


class Owner(Protocol):
    """An Explorer, as far as it matters here."""

    def compress(self) -> None:
        """From now on the trace is made of the compressed one, when needed."""


class Shown:
    """The views of this process, in the order in which they were made."""

    def __init__(self) -> None:
        self._views: list[tuple[ref[Any], Any]] = []

    def add(self, owner: Owner, widget: Any) -> None:
        """`widget` shows `owner` from now on. What is too much goes: the oldest first, what was added last never."""
        most = config().EXPLORER_MB << 20
        self._views = [(one, view) for one, view in self._views if view.payload]  # but for those that were closed
        left_traces = left_views = most
        for one, view in reversed(self._views):
            size = len(view.payload)
            found = one()
            if found is None:
                left_views -= size
                if left_views < 0:
                    view.close()
            else:
                left_traces -= size * OBJECTS_PER_BYTE
                if left_traces < 0:
                    found.compress()
        self._views.append((ref(owner), widget))

    def __len__(self) -> int:
        return len(self._views)


shown = Shown()

__all__ = ["OBJECTS_PER_BYTE", "Shown", "shown"]

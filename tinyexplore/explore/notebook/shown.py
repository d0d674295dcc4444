"""Bounds the memory of explorers that were shown, of which a page may request a view at any time.

ipywidgets keeps every widget until it is closed, so that a page can be loaded again. A cell that runs repeatedly would
leak memory. A widget refers to the compressed trace only, not to its Explorer; here the rest is
bounded by `EXPLORER_MB` (`docs/performance/pages.md`).
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import ref

from tinyexplore.util import config

OBJECTS_PER_BYTE = 30  # memory of a trace's objects / its compressed size


class Owner(Protocol):
    """The part of an Explorer that this module uses."""

    def compress(self) -> None:
        """Drop the trace; it is unpacked from the compressed one when needed."""


class Shown:
    """The views of this process, in the order in which they were made."""

    def __init__(self) -> None:
        self._views: list[tuple[ref[Any], Any]] = []

    def add(self, owner: Owner, widget: Any) -> None:
        """`widget` shows `owner` from now on. Above the limit the oldest explorers are dropped first; the newest is
        never dropped.
        """
        most = config().EXPLORER_MB << 20
        self._views = [
            (widget_reference, view) for widget_reference, view in self._views if view.payload
        ]  # but for those that were closed
        left_traces = left_views = most
        for widget_reference, view in reversed(self._views):
            size = len(view.payload)
            shown_widget = widget_reference()
            if shown_widget is None:
                left_views -= size
                if left_views < 0:
                    view.close()
            else:
                left_traces -= size * OBJECTS_PER_BYTE
                if left_traces < 0:
                    shown_widget.compress()
        self._views.append((ref(owner), widget))

    def __len__(self) -> int:
        return len(self._views)


shown = Shown()

__all__ = ["OBJECTS_PER_BYTE", "Shown", "shown"]

"""Limits the memory of explorers that were displayed; a page may request their views at any time.

ipywidgets keeps every widget until it is closed, so that a page can be reloaded. A cell that runs repeatedly would
leak memory. A widget therefore refers only to the compressed trace, not to its Explorer. This module limits the
remaining memory to `EXPLORER_MB` (`docs/performance/pages.md`).
"""

from __future__ import annotations

from typing import Any, Protocol
from weakref import ref

from tinyexplore.util import config

OBJECTS_PER_BYTE = 30  # memory of a trace's objects / its compressed size


class DisplayedExplorer(Protocol):
    """The part of an Explorer that this module uses."""

    def compress(self) -> None:
        """Drops the trace; it is unpacked from the compressed trace when needed."""


class DisplayedViews:
    """The displayed views of this process, in the order of creation."""

    def __init__(self) -> None:
        self._views: list[tuple[ref[Any], Any]] = []

    def add(self, owner: DisplayedExplorer, widget: Any) -> None:
        """Registers that `widget` shows `owner`. Above the limit, it drops the oldest explorers, never the newest."""
        most_bytes = config().EXPLORER_MB << 20
        self._views = [
            (widget_reference, view) for widget_reference, view in self._views if view.payload
        ]  # without the closed ones
        left_traces = left_views = most_bytes
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


displayed_views = DisplayedViews()

__all__ = ["OBJECTS_PER_BYTE", "DisplayedViews", "displayed_views"]

"""The Explorer, as far as its parts ask it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tinyexplore.explore.whatif.view import View

if TYPE_CHECKING:
    from tinyexplore.explore.notebook.capturing import CaptureSession
    from tinyexplore.explore.tracefile.model import Node


class Viewed(View, Protocol):
    """What the kernels, panels and questions of a view need of it."""

    _widget: Any

    @property
    def capture(self) -> CaptureSession: ...

    @property
    def fusion(self) -> Any: ...

    @property
    def widget(self) -> Any: ...

    @property
    def selected(self) -> tuple[Node, ...]: ...


__all__ = ["Viewed"]

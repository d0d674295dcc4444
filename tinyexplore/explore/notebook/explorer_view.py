"""The interface of the Explorer that its parts use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tinyexplore.explore.whatif.session_view import SessionView

if TYPE_CHECKING:
    from tinyexplore.explore.notebook.capture_session import CaptureSession
    from tinyexplore.explore.tracefile.model import Node


class ExplorerView(SessionView, Protocol):
    """The part of a view that its kernels, panels and questions use."""

    _widget: Any

    @property
    def capture(self) -> CaptureSession: ...

    @property
    def fusion(self) -> Any: ...

    @property
    def widget(self) -> Any: ...

    @property
    def selected(self) -> tuple[Node, ...]: ...


__all__ = ["ExplorerView"]

"""The interface of the Explorer that what-if uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tinyexplore.explore.tracefile.trace import Trace
    from tinyexplore.explore.whatif.branches import WhatIf


class SessionView(Protocol):
    """The parts of an Explorer that its kernels, fusion board and rules use; `notebook/explorer.py` implements it."""

    @property
    def trace(self) -> Trace: ...

    @property
    def whatif(self) -> WhatIf: ...

    @property
    def panels(self) -> Any: ...


__all__ = ["SessionView"]

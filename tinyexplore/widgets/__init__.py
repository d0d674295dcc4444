"""Widgets for notebooks; each takes a trace as data and knows nothing of the engine. anywidget is imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyexplore.widgets.explorer import ExplorerWidget

__all__ = ["ExplorerWidget"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tinyexplore.widgets import explorer
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs anywidget, which is not installed; run: pip install anywidget", name=error.name
        ) from error
    return getattr(explorer, name)

"""Widgets for notebooks. Each takes a trace as data and does not import the engine. anywidget is imported on use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyexplore.widgets.panels import PANEL_OF_WIDGET

if TYPE_CHECKING:
    from tinyexplore.widgets.explorer import ExplorerWidget
    from tinyexplore.widgets.parts import CodeWidget, GraphWidget, PartWidget, PredictWidget

__all__ = ["CodeWidget", "ExplorerWidget", "GraphWidget", "PartWidget", "PredictWidget"]
_NAMES = {*__all__, *(f"{name.title()}Widget" for name in PANEL_OF_WIDGET)}  # the classes of panels that have a widget


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(f"{__name__}.{'explorer' if name == 'ExplorerWidget' else 'parts'}")
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs anywidget, which is not installed; run: pip install anywidget", name=error.name
        ) from error
    return getattr(module, name)

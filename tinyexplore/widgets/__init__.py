"""Widgets for notebooks; each takes a trace as data and knows nothing of the engine. anywidget is imported on use."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyexplore.widgets.explorer import ExplorerWidget
    from tinyexplore.widgets.parts import (
        CodeWidget,
        FusionWidget,
        GraphWidget,
        KernelsWidget,
        MemoryWidget,
        ModulesWidget,
        PartWidget,
        PredictWidget,
        RooflineWidget,
        RulesWidget,
        ShapeWidget,
        StepperWidget,
        TimelineWidget,
        TimingWidget,
        TunerWidget,
    )

__all__ = [
    "CodeWidget",
    "ExplorerWidget",
    "FusionWidget",
    "GraphWidget",
    "KernelsWidget",
    "MemoryWidget",
    "ModulesWidget",
    "PartWidget",
    "PredictWidget",
    "RooflineWidget",
    "RulesWidget",
    "ShapeWidget",
    "StepperWidget",
    "TimelineWidget",
    "TimingWidget",
    "TunerWidget",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        home = importlib.import_module(f"{__name__}.{'explorer' if name == 'ExplorerWidget' else 'parts'}")
    except ModuleNotFoundError as error:
        if error.name not in ("anywidget", "traitlets", "ipywidgets"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs anywidget, which is not installed; run: pip install anywidget", name=error.name
        ) from error
    return getattr(home, name)

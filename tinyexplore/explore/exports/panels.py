"""Registers the requests of panels whose row names a function of the trace, and stores their responses for pages."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from tinyexplore.explore.analysis.requests import Request, RequestSource, canonical, request, to_data
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.widgets.panels import PANELS, Panel  # noqa: TID253 (plain data)


def result_of(trace: Trace, panel: Panel) -> Any:
    """The dataclass that a panel shows: its row's function of the trace. ValueError for a panel without one."""
    if not panel.answer:
        names = ", ".join(row.name for row in PANELS if row.answer)
        raise ValueError(f"panel {panel.name!r} has no result that depends on the trace alone; these have: {names}")
    module, _, function = panel.answer.partition(":")
    return getattr(importlib.import_module(module), function)(trace)


def _registered(panel: Panel) -> type[Request]:
    """The request of a panel's name, in the table of all requests."""

    def respond(self: Request, source: RequestSource) -> Any:
        return result_of(source.trace(), panel)

    members = {"__doc__": f"The result that the panel {panel.heading} shows.", "respond": respond}
    request_class: type[Request] = dataclass(frozen=True)(type(panel.name.title(), (Request,), members))
    return request(panel.name, f"{panel.answer.partition(':')[0]}:{panel.response}")(request_class)


PANEL_REQUESTS = {panel.name: _registered(panel) for panel in PANELS if panel.answer}


def panel_responses(trace: Trace) -> dict[str, Any]:
    """The responses that a page stores for these panels, by canonical request."""
    rows = [panel for panel in PANELS if panel.answer]
    return {canonical(PANEL_REQUESTS[panel.name]()): to_data(result_of(trace, panel)) for panel in rows}


__all__ = ["PANEL_REQUESTS", "panel_responses", "result_of"]

"""Registers the requests of panels whose row names a function of the trace, and stores their responses for pages."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from tinyexplore.explore.analysis.requests import Request, RequestSource, request, request_key, to_data
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.widgets.panels import PANELS, Panel  # noqa: TID253 (plain data)


def result_of(trace: Trace, panel: Panel) -> Any:
    """Returns the dataclass that a panel shows: the result of its row's function for the trace.

    Raises:
        ValueError: the panel's row names no function.
    """
    if not panel.answer:
        names = ", ".join(row.name for row in PANELS if row.answer)
        raise ValueError(f"panel {panel.name!r} has no result that depends on the trace alone; these have: {names}")
    module, _, function = panel.answer.partition(":")
    return getattr(importlib.import_module(module), function)(trace)


def _register_panel(panel: Panel) -> type[Request]:
    """Returns a request class for a panel, registered in the table of requests."""

    def respond(self: Request, source: RequestSource) -> Any:
        return result_of(source.trace(), panel)

    members = {"__doc__": f"The result that the panel {panel.heading} shows.", "respond": respond}
    request_class: type[Request] = dataclass(frozen=True)(type(panel.name.title(), (Request,), members))
    return request(panel.name, f"{panel.answer.partition(':')[0]}:{panel.response}")(request_class)


PANEL_REQUESTS = {panel.name: _register_panel(panel) for panel in PANELS if panel.answer}


def panel_responses(trace: Trace) -> dict[str, Any]:
    """Returns the responses that a page stores for these panels, by canonical request."""
    rows = [panel for panel in PANELS if panel.answer]
    return {request_key(PANEL_REQUESTS[panel.name]()): to_data(result_of(trace, panel)) for panel in rows}


__all__ = ["PANEL_REQUESTS", "panel_responses", "result_of"]

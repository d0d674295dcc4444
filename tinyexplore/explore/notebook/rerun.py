"""Connects a view with its capture, and runs the captured program again with further options."""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import ref

from tinyexplore.explore.analysis.requests import EXPLORER_GONE, RequestError
from tinyexplore.explore.notebook.capture_session import CaptureSession, TraceOf
from tinyexplore.explore.notebook.realization import realize_all
from tinyexplore.explore.notebook.requests import RequestHandler
from tinyexplore.explore.whatif.channel import Channel


def connect(capture: CaptureSession, widget: Any) -> None:
    """Connects `widget` to `capture`, so that this capture responds to the widget's requests and commands."""
    trace = TraceOf(capture, widget)
    channel = Channel(capture.whatif, widget)
    rerun = None if capture.called is None else partial(run_again, ref(capture))
    widget.runs_again = rerun is not None
    widget.answer_with(RequestHandler(trace, capture, commands=channel, rerun=rerun).reply_to)
    capture.whatif.ask_for_trace(trace)


def run_again(captured: ref[CaptureSession], options: dict[str, Any], kernel: int) -> int:
    """Calls the captured function again with `options` added to those of the capture, and shows the new capture.

    Returns the number of the kernel with the title of `kernel`, or 0 if there is none. If the function raises, the view
    keeps the old capture.
    """
    capture = captured()
    if capture is None or capture.called is None:
        raise RequestError(EXPLORER_GONE)
    function, arguments = capture.called
    before = capture.trace.kernels
    new = CaptureSession(title=capture.title, options={**capture.options_given, **options})
    new.namespace = capture.namespace or getattr(function, "__globals__", None)
    new.begin()
    try:
        new.call(function, arguments)
        realize_all(new.result)
    except BaseException as error:
        new.end(error)
        raise
    new.end()
    capture.take_state_from(new)
    titles = [(info.title, info.name) for info in capture.trace.kernels]
    identity = (before[kernel].title, before[kernel].name) if kernel < len(before) else ("", "")
    number = titles.index(identity) if identity in titles else 0
    if widget := capture.widget:
        _show_rerun(capture, widget, number)
    return number


def _show_rerun(capture: CaptureSession, widget: Any, kernel: int) -> None:
    """Replaces the trace of the widget, with the same panel selected."""
    if capture.repeat > 1:
        capture.measure_ceilings()
    cursor = {name: value for name, value in widget.cursor.items() if name in ("place", "panel", "graph")}
    widget.selected, widget.branches, widget.places = [], [], {}
    widget.cursor = {**cursor, "kernel": kernel}
    connect(capture, widget)
    widget.payload = capture.pack()


__all__ = ["connect", "run_again"]

"""Responds to the requests of a view, in a notebook and in a page with engine.

This module loads the whole table of requests.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from tinyexplore.explore.analysis.requests import (
    EXPLORER_GONE,
    REQUESTS,
    Data,
    Request,
    RequestError,
    RequestSource,
    from_data,
    is_for_background,
    request,
    request_key,
    respond,
)
from tinyexplore.explore.exports import panels as _panels  # noqa: F401  it registers the requests of panels
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.explore.whatif.branches import CANCELLED
from tinyexplore.explore.whatif.channel import Channel
from tinyexplore.explore.whatif.requests import Commands as _commands  # noqa: F401  it registers further requests

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses
    from tinyexplore.explore.notebook.capture_session import CaptureSession


def respond_from_trace(trace: Trace, data: Any) -> Data:
    """Returns the response to a request about a trace whose kernels cannot run again."""
    return respond(RequestSource(lambda: trace), data)


def _find_analyses(capture: ref[CaptureSession]) -> KernelAnalyses | None:
    capture_session = capture()
    return None if capture_session is None else capture_session.analyses


class RequestHandler:
    """Responds to the requests of one view, in a notebook and in a page with engine. It keeps no Explorer alive.

    commands, opened, rerun: see `RequestSource`.
    """

    def __init__(
        self,
        trace: Callable[[], Trace],
        capture: CaptureSession,
        may_run_code: bool = False,
        *,
        commands: Channel | None = None,
        opened: Callable[[Any], None] | None = None,
        rerun: Callable[[dict[str, Any], int], int] | None = None,
    ) -> None:
        self._source = RequestSource(
            trace, partial(_find_analyses, ref(capture)), may_run_code, commands, opened, rerun
        )

    def __call__(self, data: Any) -> Data:
        return respond(self._source, data)

    def reply_to(self, data: Any, reply: Callable[[Data], None]) -> None:
        """Calls `reply` with the response: immediately, or from a background thread if the request takes long."""

        def work() -> None:
            reply(respond(self._source, data))

        commands = self._source.commands
        if commands is not None and is_for_background(data):
            commands.later(work, lambda: reply({"error": CANCELLED}))
        else:
            work()


__all__ = [
    "EXPLORER_GONE",
    "REQUESTS",
    "RequestHandler",
    "Request",
    "RequestError",
    "RequestSource",
    "respond_from_trace",
    "request_key",
    "from_data",
    "request",
    "respond",
]

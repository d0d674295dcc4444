"""Responding for a view: the whole table of requests, and who responds in a notebook and in a page with engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import ref

from tinyexplore.explore.analysis.requests import (
    GONE,
    REQUESTS,
    Data,
    Request,
    RequestError,
    Source,
    canonical,
    from_data,
    request,
    respond,
)
from tinyexplore.explore.tracefile.model import Trace
from tinyexplore.explore.whatif import requests as _whatif  # noqa: F401  it registers further requests

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.byhand.asked import ByHand


def answer(trace: Trace, data: Any) -> Data:
    """The response to a request about a trace alone, whose kernels cannot run again."""
    return respond(Source(lambda: trace), data)


class Answers:
    """Responds for one view, in a notebook and in a page with engine. It keeps no Explorer alive."""

    def __init__(self, trace: Callable[[], Trace], explorer: ByHand, may_run_code: bool = False) -> None:
        self._source = Source(trace, ref(explorer), may_run_code)

    def __call__(self, data: Any) -> Data:
        return respond(self._source, data)


__all__ = [
    "GONE",
    "REQUESTS",
    "Answers",
    "Request",
    "RequestError",
    "Source",
    "answer",
    "canonical",
    "from_data",
    "request",
    "respond",
]

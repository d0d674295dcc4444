"""The worker of a page with engine: it holds the page's capture, and responds to the page's requests.

Requests and responses are JSON. This module does not depend on a browser.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tinyexplore.explore.analysis.explanations.rules import settings_of
from tinyexplore.explore.exports.engine_pages.page_data import PageData
from tinyexplore.explore.live.interpreted_devices import use_interpreter
from tinyexplore.explore.live.interpreted_edits import try_interpreted
from tinyexplore.explore.live.interpreter_times import MAX_OPERATIONS, time_interpreted
from tinyexplore.explore.live.rebuilt_kernels import RebuiltKernels
from tinyexplore.explore.live.typed_programs import register_targets
from tinyexplore.explore.notebook.explorer import Explorer
from tinyexplore.explore.notebook.requests import RequestError, RequestSource, respond
from tinyexplore.explore.tracefile.codec import rows_from_data, trace_to_bytes
from tinyexplore.explore.tracefile.model import Branch
from tinyexplore.explore.tracefile.trace import Trace, trace_from_bytes
from tinyexplore.explore.whatif.branches import WhatIf
from tinyexplore.explore.whatif.channel import Channel, unpacked_row
from tinyexplore.util import config

Post = Callable[[str, str], None]  # arguments: the kind of message, and JSON


class Page:
    """The part of a widget that the channel of branches uses. It sends each value that is set."""

    is_live = False

    def __init__(self, post: Post) -> None:
        self._post = post
        self.places: dict[str, int] = {}
        self._working: dict[str, Any] = {}

    def add_branches(self, rows: Sequence[str], places: Mapping[str, int]) -> None:
        """Sends further rows and places, and stores none."""
        self._post("branches", json.dumps({"rows": list(rows), "places": dict(places)}))

    @property
    def working(self) -> dict[str, Any]:
        """The progress that was sent last."""
        return self._working

    @working.setter
    def working(self, progress: dict[str, Any]) -> None:
        self._working = progress
        self._post("working", json.dumps(progress))


class PageServer:
    """One page's capture.

    post: called with each message to the page that is not a response.
    played: the file for the trace of a program that a request ran.
    """

    def __init__(self, post: Post, played: str = "") -> None:
        self._post = post
        self._played = played
        self.explorer: Explorer | None = None
        self._source = RequestSource(_refuse_without_trace, may_run_code=True, opened=self._open_program)

    def open(self, trace: bytes, carried: str, recorded: str = "") -> str:
        """Opens the page's trace.

        carried: the data that the page carries.
        recorded: JSON rows of later branches.
        """
        loaded = trace_from_bytes(trace)
        if recorded:
            loaded = with_branches(loaded, json.loads(recorded))
        return self.serve(rebuild_explorer(loaded, PageData.from_json(carried)))

    def open_file(self, path: str, carried: str, recorded: str = "") -> str:
        """Opens a trace in a file, as `open` does."""
        return self.open(Path(path).read_bytes(), carried, recorded)

    def nothing(self, carried: str) -> str:
        """Prepares for a program (request "play") on the machines that the page carries."""
        register_targets(PageData.from_json(carried).targets)
        return json.dumps({"python": platform.python_version(), "live": True})

    def _open_program(self, explorer: Explorer) -> None:
        explorer.whatif.interpret(time_interpreted, try_interpreted, MAX_OPERATIONS)
        self.serve(explorer)
        Path(self._played).write_bytes(trace_to_bytes(explorer.trace))

    def serve(self, explorer: Explorer) -> str:
        """Responds to requests about `explorer` from now on.

        Returns the version of Python and whether kernels can be compiled, as JSON.
        """
        self.explorer = explorer
        channel = Channel(explorer.whatif, Page(self._post))
        self._source = RequestSource(
            lambda: explorer.trace, lambda: explorer.capture.analyses, True, channel, self._open_program
        )
        information = {"python": platform.python_version(), "live": explorer.whatif.is_live}
        return json.dumps(information)

    def respond(self, question: str) -> str:
        """Returns the response to a request, both as JSON. An error is a response, too."""
        try:
            return json.dumps(respond(self._source, json.loads(question)))
        except ValueError as error:
            return json.dumps({"error": f"this is not JSON: {error}"})
        except Exception as error:  # such as RecursionError
            return json.dumps({"error": f"{type(error).__name__}: {error}"})


def _refuse_without_trace() -> Trace:
    raise RequestError("no trace is open in this page yet")


def rebuild_explorer(trace: Trace, carried: PageData) -> Explorer:
    """Returns an Explorer of a trace whose kernels can run again, on interpreted devices."""
    use_interpreter(carried.targets)
    rebuilt = RebuiltKernels(trace, carried)
    kernels, captured = rebuilt.kernels(), rebuilt.captured()
    settings = replace(config(), **{**settings_of(trace), "DEVICE": "", "TARGET": "", "CACHELEVEL": 0})
    explorer = Explorer(trace)
    whatif = WhatIf(trace, kernels, settings, captured, carried.graphs)
    whatif.interpret(time_interpreted, try_interpreted, MAX_OPERATIONS)
    explorer.capture.restore(captured, whatif)
    return explorer


def with_branches(trace: Trace, rows: Sequence[str]) -> Trace:
    """Returns `trace` with branches from rows that were sent to a page (`Channel.send`); the last row counts."""
    branches = {branch.id: branch for branch in trace.branches}
    branches.update({branch.id: branch for branch in rows_from_data(Branch, [unpacked_row(row) for row in rows])})
    return replace(trace, branches=tuple(branches[number] for number in sorted(branches)))


__all__ = ["Page", "Post", "PageServer", "rebuild_explorer", "with_branches"]

"""The explorer as a notebook widget. It sends the trace to the front end, and synchronizes selection and cursor in both
directions.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

import traitlets

from tinyexplore.widgets.front_end import bundle, packed_chunks
from tinyexplore.widgets.pictured import PicturedWidget

LARGE_BYTES = 1_000_000
UNPACKED_BYTES = 64 << 20  # of any payload
UNPACKED_RATIO = 64  # of a large payload: traces have 8 to 20
GZIP_MAGIC = b"\x1f\x8b"
Reply = Callable[[dict[str, Any]], None]
Answering = Callable[[Mapping[str, Any], Reply], None]


class ExplorerWidget(PicturedWidget):
    """The whole explorer over one trace.

    `payload`: the trace as gzipped JSON; it travels with the notebook, so that a stored notebook stays interactive.
    `selected`: ids of the selected nodes. `cursor`: where the reader is ("stage", "step", "kernel", "graph", "panel",
    "place", "tabs"). Both follow the reader and may be set from Python. `height`: of the view, in CSS;
    in a narrow cell it is higher where that is too low for the graph. `mode`: "story"
    (stage by stage) or "workbench" (all views); "" is as the reader last chose. `link`: set to "#stage=4&step=2" it
    goes there once. `tour`: notes on places, as data. `branches`: what was tried since, a row for each branch
    (`add_branches`); `places`: the branches at which the reader is. `working`: what is being done for the view, and how
    far it is; `is_live`: whether its commands (messages) are answered. `answers`: whether Python answers its
    questions (`answer_with`). `runs_again`: whether the captured program can be run again for the view. `chunks`:
    the code of panels that are loaded when they are first opened. `session` names what the widgets of this trace
    (`widgets.parts`) share in a page.
    """

    _esm = traitlets.Unicode(bundle("explorer.js")).tag(sync=True)
    chunks = traitlets.Bytes().tag(sync=True)
    session = traitlets.Unicode().tag(sync=True)
    payload = traitlets.Bytes(b"").tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
    cursor = traitlets.Dict().tag(sync=True)
    height = traitlets.Unicode("780px").tag(sync=True)
    mode = traitlets.Enum(("", "story", "workbench"), "").tag(sync=True)
    link = traitlets.Unicode("").tag(sync=True)
    tour = traitlets.List(traitlets.Dict()).tag(sync=True)
    answers = traitlets.Bool(False).tag(sync=True)
    branches = traitlets.List(traitlets.Unicode()).tag(sync=True)
    places = traitlets.Dict().tag(sync=True)
    working = traitlets.Dict().tag(sync=True)
    is_live = traitlets.Bool(False).tag(sync=True)
    runs_again = traitlets.Bool(False).tag(sync=True)

    def __init__(self, trace_json_gz: bytes, *, selected: Iterable[int] = (), static: str = "", **traits: Any) -> None:
        """`static`: an SVG picture for places where no widget runs; `traits`: first values of the other traits."""
        super().__init__(static=static, payload=trace_json_gz, selected=list(selected), session=uuid4().hex, **traits)
        self._parts: list[PicturedWidget] = []
        self._answer: Answering | None = None

    def answer_with(self, answer: Answering) -> None:
        """Register `answer` for requests that the trace alone cannot answer. It gets the request and a function that
        takes the response; both are plain data.
        """
        if self._answer is None:
            self.on_msg(self._hear)
        self._answer, self.answers = answer, True

    def _hear(self, widget: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, dict):
            return
        if "question" in content and self._answer is not None:
            self._answer(content["question"], lambda answer: self.send({"id": content.get("id"), "answer": answer}))
        if type(since := content.get("since")) is int and since >= 0:
            self._send_branches(since, self.places)

    def add_branches(self, rows: Sequence[str], places: Mapping[str, int]) -> None:
        """Store further rows and places, and send only these.

        The traits grow in place, because a trait that is assigned is sent as a whole. A view counts the rows that it
        has; where some are missing, it asks for them (`since`).
        """
        first = len(self.branches)
        self.branches.extend(rows)
        self.places.update(places)
        self._send_branches(first, places)

    def _send_branches(self, first: int, places: Mapping[str, int]) -> None:
        self.send({"branches": {"first": first, "rows": self.branches[first:], "places": dict(places)}})

    @traitlets.default("chunks")
    def _all_chunks(self) -> bytes:
        return packed_chunks()

    @traitlets.validate("payload")
    def _check_payload(self, proposal: dict[str, Any]) -> bytes:
        data: bytes = proposal["value"]
        if data and not data.startswith(GZIP_MAGIC):
            raise traitlets.TraitError(
                f"payload must be gzipped JSON of a trace, found {len(data)} bytes that begin with {data[:8]!r}; "
                "tinyexplore.explore's trace_to_bytes(trace) makes it"
            )
        return data

    def select(self, nodes: Iterable[Any]) -> None:
        """Select nodes, given by id or as objects with an `id` (the nodes of a trace)."""
        self.selected = [node if isinstance(node, int) else node.id for node in nodes]

    def go(self, **changes: Any) -> None:
        """Move the reader: `widget.go(stage=4, step=12)`."""
        self.cursor = {**self.cursor, **changes}

    def close(self) -> None:
        """Remove the view from the page, and free the trace and the model of its layout."""
        if self.comm is None:  # it is closed already
            return
        for part in self._parts:
            part.close()
        self._parts.clear()
        layout = self.layout
        super().close()
        layout.close()
        self.payload, self.branches, self._static, self._answer = b"", [], "", None

    @property
    def is_large(self) -> bool:
        """Whether the payload makes a stored notebook heavy (over 1 MB); the view's footer says so too."""
        return len(self.payload) > LARGE_BYTES

    @property
    def trace_json(self) -> bytes:
        """The trace as JSON. ValueError for a payload that expands far more than traces do; it stops at the limit."""
        most = max(UNPACKED_BYTES, UNPACKED_RATIO * len(self.payload))
        with gzip.GzipFile(fileobj=io.BytesIO(self.payload)) as file:
            content = file.read(most + 1)
        if len(content) > most:
            raise ValueError(f"the payload has more than {most} bytes, decompressed")
        return content

    def __repr__(self) -> str:
        return f"ExplorerWidget({len(self.payload)} bytes of trace)"

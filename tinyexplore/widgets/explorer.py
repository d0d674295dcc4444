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

from tinyexplore.widgets.base_widget import PicturedWidget
from tinyexplore.widgets.front_end import bundle, packed_chunks

LARGE_BYTES = 1_000_000
UNPACKED_BYTES = 64 << 20  # most unpacked bytes of any payload
UNPACKED_RATIO = 64  # largest ratio of unpacked to packed bytes of a large payload: traces have 8 to 20
GZIP_MAGIC = b"\x1f\x8b"
Reply = Callable[[dict[str, Any]], None]
Answering = Callable[[Mapping[str, Any], Reply], None]


class ExplorerWidget(PicturedWidget):
    """The whole explorer over one trace.

    payload: the trace as gzipped JSON. A stored notebook contains it, and so stays interactive.
    selected: ids of the selected nodes. Follows the reader, and may be set.
    cursor: the reader's position ("stage", "step", "kernel", "graph", "panel", "place", "tabs"). Follows the reader,
    and may be set.
    height: the height of the view, in CSS. In a narrow cell it is higher if it would be too low for the graph.
    mode: "story" (stage by stage) or "workbench" (all views); "" is the story, or the reader's choice.
    link: a position such as "#stage=4&step=2", which the view goes to once.
    tour: notes on positions, as data.
    branches: a row for each what-if branch (`add_branches`).
    places: the current branches of the reader.
    working: the running command of the view, and its progress.
    is_live: whether Python executes the view's commands (messages).
    answers: whether Python responds to the view's requests (`answer_with`).
    runs_again: whether the captured program can run again for the view.
    chunks: the code of panels that are loaded when they are first opened.
    session: the name under which the widgets of this trace (`widgets.parts`) share state in a page.
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
        """Builds the widget.

        static: an SVG picture for places where no widget runs.
        traits: first values of the other traits.
        """
        super().__init__(static=static, payload=trace_json_gz, selected=list(selected), session=uuid4().hex, **traits)
        self._parts: list[PicturedWidget] = []
        self._answer: Answering | None = None

    def answer_with(self, answer: Answering) -> None:
        """Registers `answer` for requests that the trace alone cannot answer.

        It gets the request and a function that takes the response. Both are plain data.
        """
        if self._answer is None:
            self.on_msg(self._receive)
        self._answer, self.answers = answer, True

    def _receive(self, widget: Any, content: Any, buffers: Any) -> None:
        if not isinstance(content, dict):
            return
        if "question" in content and self._answer is not None:
            self._answer(content["question"], lambda answer: self.send({"id": content.get("id"), "answer": answer}))
        if type(since := content.get("since")) is int and since >= 0:
            self._send_branches(since, self.places)

    def add_branches(self, rows: Sequence[str], places: Mapping[str, int]) -> None:
        """Stores further rows and places, and sends only these.

        The traits grow in place, because an assigned trait is sent as a whole. A view counts its rows; if some are
        missing, it requests them (`since`).
        """
        first = len(self.branches)
        self.branches.extend(rows)
        self.places.update(places)
        self._send_branches(first, places)

    def _send_branches(self, first: int, places: Mapping[str, int]) -> None:
        self.send({"branches": {"first": first, "rows": self.branches[first:], "places": dict(places)}})

    @traitlets.default("chunks")
    def _pack_all_chunks(self) -> bytes:
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
        """Selects nodes, given by id or as objects with an `id` (the nodes of a trace)."""
        self.selected = [node if isinstance(node, int) else node.id for node in nodes]

    def go(self, **changes: Any) -> None:
        """Moves the reader: `widget.go(stage=4, step=12)`."""
        self.cursor = {**self.cursor, **changes}

    def close(self) -> None:
        """Removes the view from the page. Frees the trace and the model of its layout."""
        if self.comm is None:  # the widget is already closed
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
        """Whether the payload makes a stored notebook large (over 1 MB). The view's footer says so, too."""
        return len(self.payload) > LARGE_BYTES

    @property
    def trace_json(self) -> bytes:
        """The trace as JSON. Raises ValueError for a payload that expands far more than traces do; it stops at the
        limit."""
        most_bytes = max(UNPACKED_BYTES, UNPACKED_RATIO * len(self.payload))
        with gzip.GzipFile(fileobj=io.BytesIO(self.payload)) as file:
            content = file.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise ValueError(f"the payload has more than {most_bytes} bytes, decompressed")
        return content

    def __repr__(self) -> str:
        return f"ExplorerWidget({len(self.payload)} bytes of trace)"

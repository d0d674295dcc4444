"""The explorer as a notebook widget: a thin shell that carries a trace in, and selection and cursor both ways."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

STATIC = Path(__file__).resolve().parents[1] / "static"
LARGE_BYTES = 1_000_000
GZIP_MAGIC = b"\x1f\x8b"


class ExplorerWidget(anywidget.AnyWidget):
    """The whole explorer over one trace.

    `payload`: the trace as gzipped JSON; it travels with the notebook, so that a stored notebook stays interactive.
    `selected`: ids of the selected nodes. `cursor`: where the reader is ("stage", "step", "kernel", "graph", "panel",
    "place", "tabs"). Both follow the reader and may be set from Python. `height`: of the view, in CSS.
    """

    # the text, not the path: anywidget has the contents of a file hold every widget that shows it, for good
    _esm = traitlets.Unicode((STATIC / "explorer.js").read_text(encoding="utf-8")).tag(sync=True)
    payload = traitlets.Bytes(b"").tag(sync=True)
    selected = traitlets.List(traitlets.Int()).tag(sync=True)
    cursor = traitlets.Dict().tag(sync=True)
    height = traitlets.Unicode("780px").tag(sync=True)

    def __init__(self, trace_json_gz: bytes, *, selected: Iterable[int] = (), static: str = "", **traits: Any) -> None:
        """`static`: an SVG picture for places where no widget runs; `traits`: first values of the other traits."""
        super().__init__(payload=trace_json_gz, selected=list(selected), **traits)
        self._static = static

    @traitlets.validate("payload")
    def _check_payload(self, proposal: dict[str, Any]) -> bytes:
        data = proposal["value"]
        if data and not data.startswith(GZIP_MAGIC):
            raise traitlets.TraitError(
                f"payload must be gzipped JSON of a trace, found {len(data)} bytes that begin with {data[:8]!r}; "
                "tinyexplore.explore's trace_to_bytes(trace) makes it"
            )
        return data

    def select(self, nodes: Iterable[Any]) -> None:
        """Select nodes, given by id or as objects with an `id` (the nodes of a trace)."""
        self.selected = [node if isinstance(node, int) else node.id for node in nodes]

    def go(self, **place: Any) -> None:
        """Move the reader: `widget.go(stage=4, step=12)`."""
        self.cursor = {**self.cursor, **place}

    def close(self) -> None:
        """Takes the view from the page, and frees what it held: the trace, and the model of its layout."""
        if self.comm is None:  # it is closed already
            return
        layout = self.layout
        super().close()
        layout.close()
        self.payload, self._static = b"", ""

    @property
    def is_large(self) -> bool:
        """Whether the payload makes a stored notebook heavy (over 1 MB); the view's footer says so too."""
        return len(self.payload) > LARGE_BYTES

    @property
    def trace_json(self) -> bytes:
        """The trace as JSON."""
        return gzip.decompress(self.payload)

    def __repr__(self) -> str:
        return f"ExplorerWidget({len(self.payload)} bytes of trace)"

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The widget, with a stable text and, where there is one, a picture for readers without widgets."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        data["text/plain"] = repr(self)
        if self._static:
            data["image/svg+xml"] = self._static
        return data, metadata

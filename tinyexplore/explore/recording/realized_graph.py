"""The graph of all LazyBuffers that a process has realized, for GRAPH=1. Its plain nodes keep no memory alive."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from tinyexplore.explore.recording.descriptions import Printer, describe
from tinyexplore.explore.tracefile.encodable_text import write_text
from tinyexplore.explore.tracefile.model import Node
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg
from tinyexplore.lazy import LazyBuffer
from tinyexplore.util import toposort

MAX_BOXES = 600  # of the picture; it shows the nodes nearest to the last results, since a larger layout takes seconds


class RealizedGraph:
    """Collects nodes by LazyBuffer number, so that a value that is realized and read later is one node."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.ids: dict[int, int] = {}
        self.printer = Printer()

    def add(self, roots: Iterable[object]) -> None:
        """Adds the graph under `roots`, before realizing them removes their sources."""
        fresh = [root for root in roots if isinstance(root, LazyBuffer)]
        for value in toposort(fresh, lambda node: () if node.number in self.ids else node.src):
            if value.number not in self.ids:
                self._add_node(value)

    def _add_node(self, value: LazyBuffer) -> None:
        description = describe(value, self.printer)
        number = self.ids[value.number] = len(self.nodes)
        self.nodes.append(
            Node(
                id=number,
                kind="lazybuffer",
                op=value.op.name,
                src=tuple([self.ids[source.number] for source in value.src]),
                dtype=description.dtype,
                shape=description.shape,
                arg=description.arg,
                digest="",
                user=None,
                label=description.label,
                detail=description.detail,
                group=description.group,
            )
        )

    def write(self, path: str = "") -> Path:
        """Writes the picture to `path` (".svg" is appended if missing), by default to a new temporary file."""
        target = Path(path or tempfile.mkstemp(prefix="net-", suffix=".svg")[1])
        if target.suffix != ".svg":
            target = target.with_name(f"{target.name}.svg")
        return write_text(target, graph_svg(self.nodes, max_nodes=MAX_BOXES))

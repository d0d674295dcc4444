"""The public Trace class: the plain data of `model.py` with queries, pictures and exports.

The other modules of this package take `TraceTables`; only this one imports them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.tracefile import queries
from tinyexplore.explore.tracefile.codec import (
    LIMITS,
    Limits,
    load_tables,
    save_trace,
    tables_from_bytes,
    tables_from_json,
)
from tinyexplore.explore.tracefile.graph_export import Graph
from tinyexplore.explore.tracefile.hints import AttributeHints
from tinyexplore.explore.tracefile.model import Node, StageText, Timeline, TraceTables
from tinyexplore.explore.tracefile.modules import Module
from tinyexplore.explore.tracefile.modules import modules as modules_of
from tinyexplore.explore.tracefile.perfetto import to_perfetto
from tinyexplore.explore.tracefile.pictures.drawn_graph import Kind, Which
from tinyexplore.explore.tracefile.pictures.graph_picture import pipeline_svg
from tinyexplore.explore.tracefile.stage_texts import TextPlace, find_lines, line_history
from tinyexplore.explore.tracefile.table_export import to_dataframe
from tinyexplore.explore.tracefile.timeline import timeline as timeline_of

if TYPE_CHECKING:
    import graphviz
    import networkx
    import pandas


class Trace(AttributeHints, TraceTables):
    """A capture as plain data: its tables, with queries, pictures and file formats."""

    __slots__ = ()

    def where(self, **conditions: Any) -> tuple[Node, ...]:
        """Returns the nodes that satisfy every condition: `where(op="LOAD", rule="fold_add")`; see `explore.where`."""
        return queries.where(self, **conditions)

    def find_lines(self, text: str, language: str | None = None) -> tuple[TextPlace, ...]:
        """Returns the lines of stages' texts that match a regular expression: `find_lines("fmul")`.

        Args:
            text: the expression; case is ignored.
            language: a key of the dialect's languages, such as "llvm"; by default all.
        """
        return find_lines(self, text, language)

    def line_history(self, text: StageText | int, number: int) -> tuple[TextPlace, ...]:
        """Returns the lines from which a line of a stage's text was derived, oldest first, and the line itself last.

        Args:
            text: the text, or its id.
            number: the line number, from 0.

        Raises:
            IndexError: there is no such text or line.
        """
        return line_history(self, text, number)

    def graph(
        self, stage: int | None = None, which: Which = "after", kind: Kind = "lazybuffer", max_nodes: int | None = None
    ) -> Graph:
        """Returns a graph to draw, save or convert: all LazyBuffers, or a stage's input or output graph."""
        options = {} if max_nodes is None else {"max_nodes": max_nodes}
        return Graph(self, stage, which, kind, **options)

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """Returns the LazyBuffers as a networkx graph; for other graphs use `graph(stage).to_networkx()`."""
        return self.graph().to_networkx()

    def to_graphviz(self) -> graphviz.Digraph:
        """Returns the LazyBuffers as a `graphviz.Digraph` with a cluster per kernel.

        For other graphs use `graph(stage).to_graphviz()`.
        """
        return self.graph().to_graphviz()

    def to_dataframe(self, table: str = "kernels") -> pandas.DataFrame:
        """Returns a table as a pandas DataFrame; `explore.rows_of` lists the tables."""
        return to_dataframe(self, table)

    def to_perfetto(self, path: str | Path | None = None) -> bytes:
        """Returns the timeline in Perfetto's own format; also write it to `path` if given."""
        return to_perfetto(self, path)

    def svg(self) -> str:
        """Returns the pipeline as one static picture: Python, LazyBuffers, kernels."""
        return pipeline_svg(self)

    def modules(self) -> Module:
        """Returns the time and memory of the user's modules, as a tree that prints as a table."""
        return modules_of(self)

    def timeline(self) -> Timeline:
        """Returns the compiler's stages, the runs of kernels and the allocated memory over time."""
        return timeline_of(self)

    def save(self, path: str | Path) -> Path:
        """Writes the trace as JSON, gzipped if the name ends in ".gz"."""
        return save_trace(self, path)

    @staticmethod
    def load(path: str | Path, limits: Limits = LIMITS) -> Trace:
        """Loads a trace that `save` wrote, and validates it.

        The file may come from an untrusted source: a file above `limits` is rejected during decompression. The defaults
        are 256 MiB of JSON, ten million values and 192 MiB of memory (more for a large file, see `explore.Limits`).

        Raises:
            TraceFormatError: the file is no valid trace; the message has the position and the reason.
        """
        return load_trace(path, limits)


def trace_from_json(text: str | bytes, limits: Limits = LIMITS) -> Trace:
    """Decodes a trace that `trace_to_json` or `trace_to_bytes` wrote; the result is equal (`==`) to the original.

    Raises:
        TraceFormatError: the text is no valid trace, or exceeds `limits`; the message has the position and the reason.
    """
    return tables_from_json(Trace, text, limits)


def trace_from_bytes(data: bytes, limits: Limits = LIMITS) -> Trace:
    """Decodes a trace from JSON text, gzipped or plain."""
    return tables_from_bytes(Trace, data, limits)


def load_trace(path: str | Path, limits: Limits = LIMITS) -> Trace:
    """Loads the trace in a file. The content, not the file name, decides whether it is decompressed."""
    return load_tables(Trace, path, limits)


__all__ = ["Trace", "load_trace", "trace_from_bytes", "trace_from_json"]

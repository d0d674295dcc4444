"""The Trace for users: the plain data of `model.py`, with queries, pictures and exports.

The modules of this package take the data (`TraceTables`); this one alone imports them all.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.tracefile import query
from tinyexplore.explore.tracefile.codec import (
    LIMITS,
    Limits,
    load_tables,
    save_trace,
    tables_from_bytes,
    tables_from_json,
)
from tinyexplore.explore.tracefile.hints import Hinting
from tinyexplore.explore.tracefile.interchange import Graph
from tinyexplore.explore.tracefile.model import Node, StageText, Timeline, TraceTables
from tinyexplore.explore.tracefile.modules import Module
from tinyexplore.explore.tracefile.modules import modules as modules_of
from tinyexplore.explore.tracefile.perfetto import to_perfetto
from tinyexplore.explore.tracefile.pictures.graphs import Kind, Which
from tinyexplore.explore.tracefile.pictures.svg import pipeline_svg
from tinyexplore.explore.tracefile.stagetexts import TextPlace, find_lines, line_history
from tinyexplore.explore.tracefile.tabular import to_dataframe
from tinyexplore.explore.tracefile.timeline import timeline as timeline_of

if TYPE_CHECKING:
    import graphviz
    import networkx
    import pandas


class Trace(Hinting, TraceTables):
    """A capture as plain data: its tables, with queries, pictures and file formats."""

    __slots__ = ()

    def where(self, **conditions: Any) -> tuple[Node, ...]:
        """The nodes that answer to every condition: `where(op="LOAD", rule="fold_add")`; see `explore.where`."""
        return query.where(self, **conditions)

    def find_lines(self, text: str, language: str | None = None) -> tuple[TextPlace, ...]:
        """The lines of stages' texts in which a regular expression is found: `find_lines("fmul")`.

        Args:
            text: the expression; case is ignored.
            language: a key of the dialect's languages, such as "llvm"; by default all.
        """
        return find_lines(self, text, language)

    def line_history(self, text: StageText | int, number: int) -> tuple[TextPlace, ...]:
        """The lines that led to a line of a stage's text, the first one first and the line itself last.

        Args:
            text: the text, or its id.
            number: of the line, from 0.

        Raises:
            IndexError: there is no such text or line.
        """
        return line_history(self, text, number)

    def graph(
        self, stage: int | None = None, which: Which = "after", kind: Kind = "lazybuffer", max_nodes: int | None = None
    ) -> Graph:
        """One graph of the trace, to draw, save or hand on: all LazyBuffers, or what a stage got or left."""
        options = {} if max_nodes is None else {"max_nodes": max_nodes}
        return Graph(self, stage, which, kind, **options)

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """The LazyBuffers as a networkx graph; `graph(stage).to_networkx()` gives any other."""
        return self.graph().to_networkx()

    def to_graphviz(self) -> graphviz.Digraph:
        """The LazyBuffers as a `graphviz.Digraph`, a cluster per kernel; `graph(stage).to_graphviz()` gives others."""
        return self.graph().to_graphviz()

    def to_dataframe(self, table: str = "kernels") -> pandas.DataFrame:
        """A table as a pandas DataFrame: see `explore.rows_of` for the tables."""
        return to_dataframe(self, table)

    def to_perfetto(self, path: str | Path | None = None) -> bytes:
        """The timeline in Perfetto's own format; written to `path` if one is given."""
        return to_perfetto(self, path)

    def svg(self) -> str:
        """The pipeline as one static picture: Python, LazyBuffers, kernels."""
        return pipeline_svg(self)

    def modules(self) -> Module:
        """Time and memory by module of the user's, as a tree; printed, a table."""
        return modules_of(self)

    def timeline(self) -> Timeline:
        """The compiler's stages, the runs of kernels and the allocated memory over time."""
        return timeline_of(self)

    def save(self, path: str | Path) -> Path:
        """Writes the trace as JSON, compressed where the name ends in ".gz"."""
        return save_trace(self, path)

    @staticmethod
    def load(path: str | Path, limits: Limits = LIMITS) -> Trace:
        """A trace that `save` wrote, whole and valid; TraceFormatError, saying what is wrong where, for anything else.

        The file may be of unknown origin. `load` refuses one above `limits` while it decompresses it. The defaults are
        256 MiB of JSON, ten million values and 192 MiB of memory (more for a large file, see `explore.Limits`).
        """
        return load_trace(path, limits)


def trace_from_json(text: str | bytes, limits: Limits = LIMITS) -> Trace:
    """The trace that `trace_to_json` wrote, or `trace_to_bytes` (in columns); equal (`==`) to the one it was given.

    TraceFormatError for anything else, with the place and what is wrong there, and for what is larger than `limits`.
    """
    return tables_from_json(Trace, text, limits)


def trace_from_bytes(data: bytes, limits: Limits = LIMITS) -> Trace:
    """A trace from JSON text, compressed or not."""
    return tables_from_bytes(Trace, data, limits)


def load_trace(path: str | Path, limits: Limits = LIMITS) -> Trace:
    """The trace in a file, compressed or not, whatever its name."""
    return load_tables(Trace, path, limits)


__all__ = ["Trace", "load_trace", "trace_from_bytes", "trace_from_json"]

"""Graphs for other programs: a `graphviz.Digraph`, a networkx graph for algorithms, and pictures of both."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import is_tensor
from tinyexplore.explore.tracefile.encodable_text import for_xml, write_text
from tinyexplore.explore.tracefile.model import Node, TraceTables
from tinyexplore.explore.tracefile.pictures.drawing import COLORS, kernel_color
from tinyexplore.explore.tracefile.pictures.drawn_graph import (
    DrawnGraph,
    DrawnNode,
    Kind,
    Which,
    drawn_graph,
    reachable,
    roots_of_stage,
)
from tinyexplore.explore.tracefile.pictures.graph_picture import graph_svg
from tinyexplore.util.atomic_files import write_whole

if TYPE_CHECKING:
    import graphviz
    import networkx

DOT_SUFFIXES = (".dot", ".gv")
MAX_BOXES = 300  # default limit for the boxes of a picture or a DOT text


class NoDotProgram(RuntimeError):
    """A picture format needs Graphviz's program `dot`, which is not installed."""


@dataclass(frozen=True, slots=True)
class Graph:
    """One graph of a trace.

    `to_networkx` has every node. A picture or a Digraph folds simple nodes into labels and states what it hides.

    trace: the trace.
    stage: the stage that received or returned the graph, None for the LazyBuffers.
    which: whether to show the graph "before" or "after" the stage.
    kind: the kind of the nodes.
    max_nodes: most boxes of a picture.
    """

    trace: TraceTables
    stage: int | None = None
    which: Which = "after"
    kind: Kind = "lazybuffer"
    max_nodes: int = MAX_BOXES

    @property
    def roots(self) -> tuple[Node, ...]:
        """Returns the root nodes: those that no other node of the graph reads."""
        return roots_of_stage(self.trace, self.stage, self.which, self.kind)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """Returns every node of the graph, sources first."""
        table = dict(enumerate(self.trace.nodes))
        return tuple(reachable(table, [node.id for node in self.roots]))

    def to_graphviz(self) -> graphviz.Digraph:
        """Returns the graph as a `graphviz.Digraph` in the explorer's colors, with a cluster per kernel."""
        return _make_digraph(self.trace, self._make_drawn_graph())

    def to_networkx(self) -> networkx.MultiDiGraph[Any]:
        """Returns the whole graph for networkx: nodes by id with their fields as attributes, an edge per operand."""
        return _make_networkx(self.trace, self.nodes)

    def svg(self) -> str:
        """Returns the graph as SVG, placed by the built-in layout."""
        return graph_svg(self.trace, self.stage, self.which, self.kind, self.max_nodes)

    def save(self, path: str | Path) -> Path:
        """Writes a picture of the graph; the suffix of `path` selects the format.

        ".svg" is drawn by Graphviz's `dot`, or by the built-in layout if `dot` is not installed. ".dot" and ".gv" are
        DOT text. Any other suffix must be a format of `dot` (".png", ".pdf").
        """
        path = Path(path)
        suffix = path.suffix.lower()
        if suffix in DOT_SUFFIXES:
            write_text(path, self.to_graphviz().source)
        elif shutil.which("dot"):
            write_whole(path, self.to_graphviz().pipe(format=suffix.removeprefix(".") or "svg"))
        elif suffix == ".svg":
            write_text(path, self.svg())
        else:
            text = f"{path.name}: {suffix or 'a name without a suffix'} needs Graphviz's program `dot`, which is not "
            raise NoDotProgram(f"{text}installed; .svg and .dot do not need it")
        return path

    def _repr_svg_(self) -> str:
        return self.svg()

    def __repr__(self) -> str:
        where = "" if self.stage is None else f" {self.which} stage {self.stage} ({self.trace.stages[self.stage].name})"
        return f"Graph({count_text(len(self.nodes), 'node')} of {self.trace.title!r}{where})"

    def _make_drawn_graph(self) -> DrawnGraph:
        return drawn_graph(self.nodes, [node.id for node in self.roots], self.max_nodes)


def _make_digraph(trace: TraceTables, graph: DrawnGraph) -> graphviz.Digraph:
    """Returns a drawn graph as an object of the package graphviz."""
    import graphviz

    digraph = graphviz.Digraph(
        "tinyexplore",
        graph_attr={"label": _text(graph.note), "fontname": "sans-serif", "fontsize": "10"},
        node_attr={"shape": "box", "style": "rounded,filled", "fontname": "monospace", "fontsize": "10"},
        edge_attr={"color": "#9aa5b3"},
    )
    kernel_of = {node: kernel.id for kernel in reversed(trace.kernels) for node in (*kernel.nodes, *kernel.roots)}
    runs = {run.kernel: run.median_us for run in trace.runs}
    inside: dict[int | None, list[DrawnNode]] = {}
    for node in graph.nodes:
        kernel = kernel_of.get(node.id) if is_tensor(trace, trace.nodes[node.id]) else None
        inside.setdefault(kernel, []).append(node)
    for kernel, nodes in inside.items():
        if kernel is None:
            for node in nodes:
                _add_node(digraph, node)
            continue
        time = f" · {runs[kernel]:.4g} µs" if kernel in runs else ""
        color = kernel_color(kernel)
        with digraph.subgraph(name=f"cluster_{kernel}") as cluster:
            cluster.attr(
                label=_text(f"{kernel}: {trace.kernels[kernel].name}{time}"),
                color=color.light,
                bgcolor=color.light_fill,
            )
            for node in nodes:
                _add_node(cluster, node)
    for node in graph.nodes:
        for src in node.src:
            digraph.edge(f"n{src}", f"n{node.id}")
    return digraph


def _add_node(graph: Any, node: DrawnNode) -> None:
    color = COLORS.get(node.group, COLORS["control"])
    label = "\n".join(part for part in (node.label, node.detail) if part)
    look = {"color": color.light, "fillcolor": color.light_fill, "tooltip": _text(node.tooltip)}
    if color.dash:
        look["style"] = "rounded,filled,dashed"
    graph.node(f"n{node.id}", label=_text(label), **look)


def _text(label: str) -> str:
    """Escapes a text for DOT: no DOT escape, no HTML, and no NUL, at which Graphviz would stop reading."""
    import graphviz

    plain: str = graphviz.nohtml(for_xml(label).replace("\\", "\\\\").replace("\n", "\\n"))
    return plain


def _make_networkx(trace: TraceTables, nodes: tuple[Node, ...]) -> networkx.MultiDiGraph[Any]:
    """Returns the nodes as a NetworkX graph. Its nodes have the fields of the trace."""
    import networkx

    kernels: dict[int, list[int]] = {}
    for kernel in trace.kernels:
        for member in kernel.nodes:
            kernels.setdefault(member, []).append(kernel.id)
    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph(title=trace.title)
    for node in nodes:
        graph.add_node(
            node.id,
            op=node.op,
            kind=node.kind,
            dtype=node.dtype,
            shape=node.shape,
            arg=node.arg,
            digest=node.digest,
            label=node.label,
            detail=node.detail,
            group=node.group,
            name=node.name,
            calls=node.calls,
            kernels=tuple(kernels.get(node.id, ())),
        )
        for operand, src in enumerate(node.src):
            graph.add_edge(src, node.id, operand=operand)
    return graph


def to_dot(
    trace: TraceTables,
    stage: int | None = None,
    which: Which = "after",
    kind: Kind = "lazybuffer",
    max_nodes: int = MAX_BOXES,
) -> str:
    """Returns the graph as DOT text; its label states which nodes are hidden."""
    return str(Graph(trace, stage, which, kind, max_nodes).to_graphviz().source)


def to_networkx(
    trace: TraceTables, stage: int | None = None, which: Which = "after", kind: Kind = "lazybuffer"
) -> networkx.MultiDiGraph[Any]:
    """Returns the whole graph for networkx; see `Graph.to_networkx`."""
    return Graph(trace, stage, which, kind).to_networkx()

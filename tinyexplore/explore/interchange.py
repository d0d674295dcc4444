"""Graphs for other programs: DOT text for graphviz, a networkx graph for algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.explore.graphs import Kind, Which, drawn_graph, reachable, roots_of_stage
from tinyexplore.explore.model import Trace
from tinyexplore.explore.picture import COLOURS

if TYPE_CHECKING:
    import networkx


def to_dot(
    trace: Trace, stage: int | None = None, which: Which = "after", kind: Kind = "lazybuffer", max_nodes: int = 300
) -> str:
    """The graph as DOT text, folded and coloured as `graph_svg` draws it; what it hides is said in its label."""
    roots = [node.id for node in roots_of_stage(trace, stage, which, kind)]
    graph = drawn_graph(reachable(dict(enumerate(trace.nodes)), roots), roots, max_nodes)
    lines = [
        "digraph tinyexplore {",
        f"  graph [label={_quoted(graph.note)}, fontname=sans, fontsize=10];",
        '  node [shape=box, style="rounded,filled", fontname=monospace, fontsize=10];',
        '  edge [color="#9aa5b3"];',
    ]
    for node in graph.nodes:
        colour = COLOURS.get(node.group, COLOURS["control"])
        words = "\n".join(part for part in (node.label, node.detail) if part)
        dashed = ', style="rounded,filled,dashed"' if colour.dash else ""
        lines.append(
            f'  n{node.id} [label={_quoted(words)}, color="{colour.light}", fillcolor="{colour.light_fill}"{dashed}];'
        )
    lines.extend(f"  n{src} -> n{node.id};" for node in graph.nodes for src in node.src)
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(words: str) -> str:
    escaped = words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def to_networkx(
    trace: Trace, stage: int | None = None, which: Which = "after", kind: Kind = "lazybuffer"
) -> networkx.MultiDiGraph[Any]:
    """The whole graph, nothing folded: nodes by id with their fields as attributes, an edge per operand (`operand`).

    Needs networkx.
    """
    import networkx

    roots = [node.id for node in roots_of_stage(trace, stage, which, kind)]
    graph: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for node in reachable(dict(enumerate(trace.nodes)), roots):
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
        )
        for operand, src in enumerate(node.src):
            graph.add_edge(src, node.id, operand=operand)
    return graph

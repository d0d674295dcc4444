"""Static pictures of a trace: one graph, or the pipeline with the kernels as groups.

They are shown where no script runs: stored notebooks, GitHub, nbconvert, the fallback of the HTML export.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from tinyexplore.explore.tracefile.dialect import level_for
from tinyexplore.explore.tracefile.model import Node, TraceTables
from tinyexplore.explore.tracefile.pictures.drawing import (
    SANS_PX,
    box_of,
    document,
    draw_boxes,
    draw_edges,
    draw_frame,
    legend,
    legend_width,
    text,
)
from tinyexplore.explore.tracefile.pictures.drawn_graph import (
    DrawnGraph,
    Kind,
    Which,
    drawn_graph,
    reachable,
    roots_of_stage,
)
from tinyexplore.explore.tracefile.pictures.layout import layout
from tinyexplore.explore.tracefile.pictures.pipeline_picture import pipeline_svg
from tinyexplore.explore.tracefile.pictures.table_pictures import stage_text_svg

__all__ = ["graph_svg", "graph_within", "pipeline_svg"]

_MARGIN = 24.0
_HEADER = 34.0
_FOOTER = 44.0
_LINE = 15.0


def graph_svg(
    graph: TraceTables | Sequence[Node],
    stage: int | None = None,
    which: Which = "after",
    kind: Kind = "lazybuffer",
    max_nodes: int = 120,
    marked: Collection[int] = (),
) -> str:
    """Returns a graph as a standalone SVG; the nodes whose ids are in `marked` are framed.

    Args:
        graph: a trace, or a sequence of nodes (sources first).
        stage: of a trace, the stage whose graph is drawn, or its text if it has no graph. None draws all LazyBuffers,
            or the UOps of the first kernel.
        which: "before" or "after" the stage.
        kind: the kind of nodes, if `stage` is None.
        max_nodes: most boxes; those nearest to the result are drawn. The picture states what it hides and folds.
        marked: ids of nodes to frame.
    """
    if isinstance(graph, TraceTables):
        if stage is not None and _is_text(graph, stage):
            return stage_text_svg(graph, stage)
        table = dict(enumerate(graph.nodes))
        roots = [node.id for node in roots_of_stage(graph, stage, which, kind)]
        drawn = drawn_graph(reachable(table, roots), roots, max_nodes)
        title = _title(graph, stage, which, kind)
    else:
        drawn = drawn_graph(graph, (), max_nodes)
        title = "UOp graph" if any(node.kind == "uop" for node in graph) else "LazyBuffer graph"
    return _draw_graph(drawn, title, marked) or ""


def _is_text(trace: TraceTables, stage: int) -> bool:
    """Whether a stage has a text and no graph."""
    has_graph = 0 <= stage < len(trace.stages) and bool(trace.stages[stage].before or trace.stages[stage].after)
    return not has_graph and any(text.stage == stage for text in trace.stage_texts)


_BOX_COUNT_FACTOR = 0.75  # factor for the number of boxes, as long as the picture is too wide


def graph_within(
    nodes: Sequence[Node], width: float, min_boxes: int, max_boxes: int, marked: Collection[int] = ()
) -> str | None:
    """Draws nodes like `graph_svg`, but at most `width` pixels wide.

    Starts with `max_boxes` boxes and reduces them until the picture fits. Returns None if it would need fewer than
    `min_boxes` boxes, and "" if there are no nodes.
    """
    if not nodes:
        return ""
    boxes = max_boxes
    while boxes >= min_boxes:
        drawn = drawn_graph(nodes, (), boxes)
        picture = _draw_graph(drawn, "UOp graph", marked, width)
        if picture is not None:
            return picture
        boxes = int(min(boxes, len(drawn.nodes)) * _BOX_COUNT_FACTOR)
    return None


def _title(trace: TraceTables, stage: int | None, which: Which, kind: Kind) -> str:
    if stage is None:
        level = level_for(trace, "tensors")
        if trace.dialect is not None and level is not None:
            return f"graph of {level.plural}"
        return "LazyBuffer graph" if kind == "lazybuffer" else f"UOp graph {which} the passes of the first kernel"
    stage_info = trace.stages[stage]
    kernels = [f"kernel {kernel.id} · {kernel.name}" for kernel in trace.kernels if kernel.id == stage_info.kernel]
    name = f"{which} {stage_info.name}" + (f" of {kernels[0]}" if kernels else "")
    return name if stage_info.after or which == "before" else f"before {stage_info.name}, which did not finish"


def _draw_graph(graph: DrawnGraph, title: str, marked: Collection[int] = (), max_width: float = math.inf) -> str | None:
    """Returns the picture of a graph, or None if it is wider than `max_width` pixels. Wraps notes to that width."""
    boxes = [box_of(node) for node in graph.nodes]
    graph_layout = layout(boxes, [(src, node.id) for node in graph.nodes for src in node.src])
    groups = [node.group for node in graph.nodes]
    notes = _wrap_note(graph.note, max_width - 2 * _MARGIN)
    least_width = max(len(title) * 7.4, *(len(note) * SANS_PX for note in notes), legend_width(groups))
    width = max(graph_layout.width, least_width) + 2 * _MARGIN
    if width > max_width:
        return None
    height = graph_layout.height + _HEADER + _FOOTER + _MARGIN + _LINE * (len(notes) - 1)
    dx = (width - graph_layout.width) / 2 - graph_layout.left
    dy = _HEADER + 10 - graph_layout.top
    parts = [text(_MARGIN, 23, title, size=12.5, bold=True), draw_edges(graph_layout.edges, dx, dy)]
    centers = [(x + dx, y + dy) for x, y in (graph_layout.positions[node.id] for node in graph.nodes)]
    placed = list(zip(graph.nodes, boxes, centers, strict=True))
    parts.extend(draw_frame(box, *center) for node, box, center in placed if node.id in marked)
    parts.append(draw_boxes(placed))
    last = height - 12
    parts.append(legend(groups, _MARGIN, last - 18 - _LINE * (len(notes) - 1)))
    parts.extend(text(_MARGIN, last - _LINE * i, note, shade="ink2") for i, note in enumerate(reversed(notes)))
    return document(width, height, title, f"{title}. {graph.note}. Sources stand above what reads them.", parts)


def _wrap_note(note: str, width: float) -> list[str]:
    """Wraps a note to lines of at most `width` pixels, between its facts."""
    lines: list[str] = []
    for fact in note.split(" · "):
        joined = f"{lines[-1]} · {fact}" if lines else fact
        if lines and len(joined) * SANS_PX <= width:
            lines[-1] = joined
        else:
            lines.append(fact)
    return lines

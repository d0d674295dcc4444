"""The whole compilation as one static picture: the pipeline with counts and times, and the LazyBuffers by kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import is_tensor
from tinyexplore.explore.tracefile.figures import figures, summary
from tinyexplore.explore.tracefile.model import Figure, KernelInfo, TraceTables
from tinyexplore.explore.tracefile.pictures.drawing import (
    KERNEL_HUES,
    LABEL_PX,
    SANS_PX,
    box_of,
    document,
    draw_boxes,
    draw_edges,
    kernel_color,
    legend,
    legend_width,
    shorten,
    text,
)
from tinyexplore.explore.tracefile.pictures.drawn_graph import (
    DrawnGraph,
    DrawnNode,
    drawn_graph,
    reachable,
    roots_of_stage,
)
from tinyexplore.explore.tracefile.pictures.layout import Box, Layout, Point, RoutedEdge, layout
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.util import toposort

MAX_BOXES = 150  # of the whole picture; above this, every kernel is drawn as one box
MAX_BOXES_PER_KERNEL = 40  # a larger kernel is drawn as one box
MAX_KERNELS = 60

_MARGIN = 20.0
_STRIP = 52.0
_PADDING = 14.0
_KERNEL_HEADER = 36.0


def pipeline_svg(trace: TraceTables) -> str:
    """Returns the pipeline from Python to time, above the graph of LazyBuffers by kernel."""
    cells = figures(trace).parts
    title = trace.title or "From Python to kernels"
    graph = _Kernels(trace) if trace.kernels else _UngroupedDrawing(trace)
    graph_layout = graph.layout
    facts = " · ".join(summary(trace))
    strip_width = sum(_compute_width(cell) for cell in cells)
    least_width = max(strip_width, legend_width(graph.groups), (len(graph.note) + len(facts)) * SANS_PX + 30)
    width = max(graph_layout.width, least_width) + 2 * _MARGIN
    top = 44.0
    has_graph = graph_layout.height > 0
    height = top + _STRIP + (graph_layout.height + 76.0 if has_graph else 20.0) + 24.0
    parts = [text(_MARGIN, 27, title, size=13.5, bold=True)]
    parts.append(_draw_strip(cells, _MARGIN, top, width - 2 * _MARGIN))
    if has_graph:
        dx = (width - graph_layout.width) / 2 - graph_layout.left
        parts.append(graph.draw(dx, top + _STRIP + 30.0 - graph_layout.top))
        parts.append(legend(graph.groups, _MARGIN, height - 32))
    parts.append(text(_MARGIN, height - 13, graph.note, shade="ink2"))
    parts.append(text(width - _MARGIN, height - 13, facts, shade="ink2", anchor="end"))
    steps = "; ".join(f"{cell.title}: {cell.words}{f', {cell.time}' if cell.time else ''}" for cell in cells)
    return document(width, height, title, f"{steps}. {graph.note}.", parts, len(trace.kernels))


# *** the pipeline ***


def _compute_width(cell: Figure) -> float:
    return max(len(cell.title) * 7.2 + len(cell.time) * SANS_PX + 10, len(cell.words) * SANS_PX) + 24


def _draw_strip(cells: Sequence[Figure], x: float, y: float, width: float) -> str:
    """Returns one cell per stage, as wide as its text; the bar at its foot is the stage's share of the time."""
    spare = (width - sum(_compute_width(cell) for cell in cells)) / max(len(cells), 1)
    longest = max([1e-9, *(cell.time_us for cell in cells)])
    parts = []
    for cell in cells:
        cell_width = _compute_width(cell) + spare
        parts.append(
            f'<rect class="cell" x="{x:.1f}" y="{y:.1f}" width="{cell_width:.1f}" height="{_STRIP:.0f}" '
            f'fill="#f7f8fa" stroke="#dfe3e8"/>'
        )
        parts.append(text(x + 11, y + 20, cell.title, size=12, bold=True))
        if cell.time:
            parts.append(text(x + cell_width - 10, y + 20, cell.time, shade="ink2", anchor="end"))
            bar = max(2.0, (cell_width - 1) * cell.time_us / longest)
            parts.append(
                f'<rect class="brand" x="{x + 0.5:.1f}" y="{y + _STRIP - 3.5:.1f}" width="{bar:.1f}" height="3" '
                f'fill="#0b63ce" opacity="0.55"/>'
            )
        parts.append(text(x + 11, y + 37, cell.words, shade="ink2"))
        x += cell_width
    return "\n".join(parts)


# *** the graph ***


class _UngroupedDrawing:
    """All LazyBuffers as one graph, for a trace without kernels."""

    def __init__(self, trace: TraceTables) -> None:
        roots = [node.id for node in roots_of_stage(trace, None, "after", "lazybuffer")]
        self.graph = drawn_graph(reachable(dict(enumerate(trace.nodes)), roots), roots, MAX_BOXES)
        self.boxes = [box_of(node) for node in self.graph.nodes]
        self.layout = layout(self.boxes, [(src, node.id) for node in self.graph.nodes for src in node.src])
        self.groups = [node.group for node in self.graph.nodes]
        if trace.dialect is not None:
            self.note = self.graph.note
        else:
            self.note = f"no kernels · {self.graph.note}" if self.graph.nodes else "no LazyBuffers, no kernels"

    def draw(self, dx: float, dy: float) -> str:
        centers = [(x + dx, y + dy) for x, y in (self.layout.positions[node.id] for node in self.graph.nodes)]
        placed = zip(self.graph.nodes, self.boxes, centers, strict=True)
        return f"{draw_edges(self.layout.edges, dx, dy)}\n{draw_boxes(placed)}"


@dataclass(frozen=True, slots=True)
class _KernelBoxes:
    """One kernel with its own layout of boxes.

    kernel: the kernel.
    title: the first line.
    subtitle: the second line.
    graph: its LazyBuffers, None if there are too many.
    boxes: the boxes to place.
    layout: the positions of the boxes, None without boxes.
    inputs: for each input box, the kernel that computed it.
    reads: the kernels whose results it reads.
    width: in pixels.
    height: in pixels.
    """

    kernel: KernelInfo
    title: str
    subtitle: str
    graph: DrawnGraph | None
    boxes: tuple[Box, ...]
    layout: Layout | None
    inputs: dict[int, int]
    reads: tuple[int, ...]
    width: float
    height: float


class _Kernels:
    """The LazyBuffers grouped by kernel. A kernel that is too large is one box with the number of its LazyBuffers."""

    def __init__(self, trace: TraceTables) -> None:
        self.trace = trace
        self.maker = {root: kernel.id for kernel in trace.kernels for root in kernel.roots}
        self.medians = {run.kernel: run.median_us for run in trace.runs}
        drawn_kernels = trace.kernels[:MAX_KERNELS]
        graphs = {kernel.id: self._graph_of(kernel) for kernel in drawn_kernels}
        sizes = {i: len(graph.nodes) for i, (graph, _) in graphs.items()}
        open_ids = {i for i, size in sizes.items() if size <= MAX_BOXES_PER_KERNEL}
        if sum(sizes[i] for i in open_ids) > MAX_BOXES:
            open_ids = set()
        self.kernels = [self._group_of(kernel, *graphs[kernel.id], kernel.id in open_ids) for kernel in drawn_kernels]
        ids = {group.kernel.id for group in self.kernels}
        links = [(src, group.kernel.id) for group in self.kernels for src in group.reads if src in ids]
        boxes = [Box(group.kernel.id, group.width, group.height) for group in self.kernels]
        self.layout = layout(boxes, links)
        opened = [group.graph for group in self.kernels if group.graph is not None]
        self.groups = [node.group for graph in opened for node in graph.nodes]
        self.note = self._write_note(opened, sum(kernel.id not in open_ids for kernel in drawn_kernels))

    def _write_note(self, opened: Sequence[DrawnGraph], closed: int) -> str:
        nodes = {i for kernel in self.trace.kernels for i in kernel.nodes}
        lazybuffers = [node for node in self.trace.nodes if is_tensor(self.trace, node)]
        outside = sum(node.id not in nodes and node.group not in ("buffer", "const") for node in lazybuffers)
        parts = []
        if constants := sum(graph.constants for graph in opened):
            parts.append(f"{count_text(constants, 'constant')} folded into labels")
        if views := sum(graph.views for graph in opened):
            parts.append(f"{count_text(views, 'view')} folded into chains")
        if closed:
            parts.append(f"{count_text(closed, 'kernel')} drawn as one box for each kernel")
        if hidden := len(self.trace.kernels) - len(self.kernels):
            parts.append(f"the last {count_text(hidden, 'kernel')} not drawn")
        if outside:
            parts.append(f"{count_text(outside, 'LazyBuffer')} in no kernel, not drawn")
        return " · ".join(parts) or "everything is drawn"

    def _graph_of(self, kernel: KernelInfo) -> tuple[DrawnGraph, dict[int, int]]:
        """Returns the kernel's LazyBuffers with inputs as boxes, and the kernel that computed each input."""
        nodes = self.trace.nodes
        inside = set(kernel.nodes) | set(kernel.roots)
        order = toposort(kernel.roots, lambda i: nodes[i].src if i in inside else ())
        members = []
        inputs: dict[int, int] = {}
        for i in order:
            node = nodes[i]
            if i not in inside:
                maker = self.maker.get(self._find_base(i))
                if maker is not None and maker != kernel.id:
                    inputs[i] = maker
                    node = replace(node, label=f"result of kernel {maker}", group="buffer", src=())
                elif node.op != "CONST":
                    node = replace(node, src=(), group="buffer")
            members.append(node)
        return drawn_graph(members, kernel.roots, MAX_BOXES), inputs

    def _find_base(self, i: int) -> int:
        nodes = self.trace.nodes
        while i not in self.maker and nodes[i].group == "movement" and nodes[i].src:
            i = nodes[i].src[0]
        return i

    def _group_of(self, kernel: KernelInfo, graph: DrawnGraph, inputs: dict[int, int], is_open: bool) -> _KernelBoxes:
        title = f"kernel {kernel.id} · {shorten(kernel.name, 36)}"
        facts = [count_text(len(kernel.nodes), "LazyBuffer")]
        if kernel.id in self.medians:
            facts.append(duration_text(self.medians[kernel.id]))
        if kernel.opts:
            facts.append(count_text(len(kernel.opts), "opt"))
        if kernel.same_as is not None:
            facts.append(f"the program of kernel {kernel.same_as}")
        subtitle = " · ".join(facts)
        reads = tuple(dict.fromkeys(inputs.values()))
        least_width = max(len(title) * LABEL_PX, len(subtitle) * SANS_PX)
        if not is_open:
            width, height = least_width + 2 * _PADDING, _KERNEL_HEADER + 8
            return _KernelBoxes(kernel, title, subtitle, None, (), None, inputs, reads, width, height)
        boxes = tuple(box_of(node) for node in graph.nodes)
        graph_layout = layout(boxes, [(src, node.id) for node in graph.nodes for src in node.src])
        width = max(graph_layout.width, least_width) + 2 * _PADDING
        height = graph_layout.height + _KERNEL_HEADER + 2 * _PADDING
        return _KernelBoxes(kernel, title, subtitle, graph, boxes, graph_layout, inputs, reads, width, height)

    def draw(self, dx: float, dy: float) -> str:
        bands = []
        titles = []
        inner = []
        drawn: dict[tuple[int, int], tuple[DrawnNode, Box, Point]] = {}
        for group in self.kernels:
            x, y = self.layout.positions[group.kernel.id]
            left, top = x + dx - group.width / 2, y + dy - group.height / 2
            band = group.kernel.id % KERNEL_HUES
            color = kernel_color(group.kernel.id)
            bands.append(
                f'<rect class="k-{band}" x="{left:.1f}" y="{top:.1f}" width="{group.width:.1f}" '
                f'height="{group.height:.1f}" rx="9" fill="{color.light_fill}" stroke="{color.light}" '
                'stroke-opacity="0.45"/>'
            )
            halo = f'<g class="h-{band}" stroke="{color.light_fill}" stroke-width="4" paint-order="stroke">'
            name = text(left + _PADDING, top + 18, group.title, size=11.5, bold=True, mono=True)
            facts = text(left + _PADDING, top + 32, group.subtitle, shade="ink2")
            titles.append(f"{halo}{name}{facts}</g>")  # the halo keeps the words legible in front of an edge
            if group.layout is None or group.graph is None:
                continue
            shift_x = x + dx - group.layout.width / 2 - group.layout.left
            shift_y = top + _KERNEL_HEADER + _PADDING - group.layout.top
            inner.append(draw_edges(group.layout.edges, shift_x, shift_y))
            for node, box in zip(group.graph.nodes, group.boxes, strict=True):
                node_x, node_y = group.layout.positions[node.id]
                position = (node_x + shift_x, node_y + shift_y)
                drawn[group.kernel.id, node.id] = (node, box, position)
            inner.append(draw_boxes(drawn[group.kernel.id, node.id] for node in group.graph.nodes))
        between = [edge for routed in self.layout.edges for edge in self._route_edges_between(routed, drawn, dx, dy)]
        return "\n".join([*bands, draw_edges(between), *titles, *inner])

    def _route_edges_between(
        self, routed: RoutedEdge, drawn: dict[tuple[int, int], tuple[DrawnNode, Box, Point]], dx: float, dy: float
    ) -> list[RoutedEdge]:
        """Routes edges from the result of one kernel to its boxes in another kernel, or between kernels' borders."""
        points = [(x + dx, y + dy) for x, y in routed.points]
        source = self.trace.kernels[routed.src]
        target = next(group for group in self.kernels if group.kernel.id == routed.dst)
        ends = [i for i, maker in target.inputs.items() if maker == routed.src and (routed.dst, i) in drawn]
        edges = []
        targets: list[int | None] = [*ends] if ends else [None]
        for i in targets:
            route = list(points)
            start = drawn.get((routed.src, self._find_base(i) if i is not None else source.roots[0]))
            if start is not None:
                _, box, (x, y) = start
                route[0] = (x, y + box.height / 2)
            if i is not None:
                _, box, (x, y) = drawn[routed.dst, i]
                route[-1] = (x, y - box.height / 2)
            edges.append(replace(routed, points=tuple(route)))
        return edges

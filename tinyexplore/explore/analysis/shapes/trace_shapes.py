"""The shape view of a node of a trace: the movements between it and its memory."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Sequence
from typing import Any

from tinyexplore.explore.analysis.shapes.cells import reach_of
from tinyexplore.explore.analysis.shapes.grid import OtherView
from tinyexplore.explore.analysis.shapes.moves import LAWS, MovementStep, apply_movement
from tinyexplore.explore.analysis.shapes.view import MAX_OTHER_VIEWS, ShapeData, ShapeView
from tinyexplore.explore.tracefile.model import Node
from tinyexplore.explore.tracefile.queries import related
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.shape import ShapeTracker

MAX_NODES = 200  # most nodes whose shapes a page stores
Views = Sequence[tuple[Node, Sequence[Node]]]
_VALUE = re.compile(r"[A-Za-z_]\w*=(-?\d+)")  # the value of a Variable: "v=3"


class NotAViewError(ValueError):
    """The node is no view of memory. The message names the nodes that are."""


def shape_of_node(trace: Trace, node: Node | int | None = None, views: Views | None = None) -> ShapeView:
    """Shows which elements of memory a node selects, movement by movement. For a UOp, its LazyBuffer is shown.

    node: None for the first movement of the trace.
    views: the views of the trace, for a caller that inspects many nodes.
    """
    number = _choose_first_source(trace) if node is None else node.id if isinstance(node, Node) else node
    if not 0 <= number < len(trace.nodes):
        raise NotAViewError(f"no node {number}; this trace has nodes 0 … {len(trace.nodes) - 1}")
    chosen = _require_lazybuffer(trace, trace.nodes[number])
    chain = _follow_chain(trace, chosen)
    steps = _make_steps(chain)
    base = chain[0]
    others = tuple(
        _yield_other_views(_find_last_movements(trace) if views is None else views, base, {node.id for node in chain})
    )
    size = max(
        reach_of(step.tracker) for step in (*steps, *(MovementStep("VIEW", None, other.tracker) for other in others))
    )
    return ShapeView(steps, size, base.name or f"{base.label.lower()} {base.id}", (), others)


def shape_data(
    trace: Trace, node: int | None = None, moves: Iterable[Sequence[str]] = (), views: Views | None = None
) -> ShapeData:
    """Returns the shape of a node after further movements ("permute", "1, 0"), as plain data."""
    view = shape_of_node(trace, node, views)
    for op, arg in moves:
        view = view.moved(op, arg)
    return view.as_data()


def shapes_data(trace: Trace) -> dict[int, ShapeData]:
    """Returns the shapes of the first movements of a trace, by node, for a page without Python."""
    shapes: dict[int, ShapeData] = {}
    views = _find_last_movements(trace)
    for node in trace.nodes:
        if node.kind == "lazybuffer" and node.op in LAWS and len(shapes) < MAX_NODES:
            try:
                shapes[node.id] = shape_data(trace, node.id, views=views)
            except (ShapeError, NotAViewError):
                continue  # its sizes change from call to call
    return shapes


def _choose_first_source(trace: Trace) -> int:
    """Returns the most instructive movement: one of several steps, or with padding."""
    moves = [node for node in trace.nodes if node.kind == "lazybuffer" and node.op in LAWS]
    if not moves:
        raise NotAViewError(
            "no tensor of this trace is a view of another one: nothing was reshaped, permuted or padded"
        )
    used = {source for node in moves for source in node.src}
    last = [node for node in moves if node.id not in used]
    return max(last, key=lambda node: (len(_follow_chain(trace, node)), -node.id)).id


def _require_lazybuffer(trace: Trace, node: Node) -> Node:
    if node.kind == "lazybuffer":
        return node
    origins = related(trace, node, "back", kind="lazybuffer")
    used = {source for origin in origins if origin.op in LAWS for source in origin.src}
    views = [origin for origin in origins if origin.op in LAWS and origin.id not in used]
    if not views and not origins:
        raise NotAViewError(
            f"node {node.id} ({node.label}) does not belong to a tensor: choose a node of the LazyBuffer graph"
        )
    return max(views, key=lambda view: len(_follow_chain(trace, view)), default=origins[0])


def _follow_chain(trace: Trace, node: Node) -> list[Node]:
    """Returns the node from which the movements start, then the movements up to `node`."""
    chain = [node]
    while chain[-1].op in LAWS and chain[-1].src:
        chain.append(trace.nodes[chain[-1].src[0]])
    return chain[::-1]


def _make_steps(chain: Sequence[Node]) -> tuple[MovementStep, ...]:
    first = chain[0]
    steps = [MovementStep(first.label, None, ShapeTracker.from_shape(_read_sizes(first)), node=first.id)]
    for node in chain[1:]:
        arg = _read_sizes(node) if node.op in ("RESHAPE", "EXPAND") else _parse_numbers(node.arg)
        steps.append(apply_movement(steps[-1].tracker, node.op, arg, node.id))
    return tuple(steps)


def _read_sizes(node: Node) -> tuple[int, ...]:
    return tuple(_parse_numbers(str(size)) for size in node.shape or ())


def _parse_numbers(text: str) -> Any:
    """Parses a number or a tuple of numbers. Variables have the values of the capture."""
    try:
        return literal_eval(_VALUE.sub(r"\1", text))
    except (ValueError, SyntaxError):
        raise ShapeError(f"{text} has sizes that change from call to call and cannot be drawn") from None


def _yield_other_views(views: Views, base: Node, own_ids: set[int]) -> Iterable[OtherView]:
    """Yields further views of the same memory that some node reads. `views` has the last movements of a trace."""
    count = 0
    for node, chain in views:
        if count == MAX_OTHER_VIEWS:
            return
        if node.id in own_ids or chain[0].id != base.id:
            continue
        try:
            tracker = _make_steps(chain)[-1].tracker
        except ShapeError:
            continue
        count += 1
        yield OtherView(node.name or f"{node.op.lower()} {node.id}", tracker, node.id)


def _find_last_movements(trace: Trace) -> Views:
    """Returns the movements that no further movement reads, each with its chain."""
    moves = [node for node in trace.nodes if node.kind == "lazybuffer" and node.op in LAWS]
    inner = {source for node in moves for source in node.src}
    return [(node, _follow_chain(trace, node)) for node in moves if node.id not in inner]


__all__ = ["NotAViewError", "shape_data", "shape_of_node", "shapes_data"]

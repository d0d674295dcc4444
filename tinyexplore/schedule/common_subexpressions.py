"""Common subexpression elimination: LazyBuffers with the same value are computed once.

A rewrite of the tensor graph before fusion, in one pass from the sources to the outputs. Two nodes have the same value
if they are the same operation, with the same arguments, on the same values. Two views have the same value if they show
the same elements of the same value in the same order. Each merge is recorded as a decision.

Three kinds of node are never merged: a WRITE, the target that it stores into, and memory that a constant fills, because
such memory holds state. Views of memory or of constants compute nothing, so they are compared but not merged. Random
numbers need no rule, because each draw reads its own buffer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.folding import constant_in
from tinyexplore.lazy.lazybuffer import move_like
from tinyexplore.schedule.rewritten_graph import RewrittenGraph, rewritten_writes
from tinyexplore.schedule.writes import WritePlan, graph_order, is_leaf
from tinyexplore.shape import ShapeTracker
from tinyexplore.trace import ScheduleDecided, active_recorder, node_derived, recording
from tinyexplore.uop import OpGroups, Ops, UOp

Key = tuple[Any, ...]
Nodes = Mapping[LazyBuffer, LazyBuffer]


def merge_equal(
    outputs: Sequence[LazyBuffer],
    writes: WritePlan,
    cut: Collection[LazyBuffer] = (),
    recorded_as: Callable[[LazyBuffer], LazyBuffer] = lambda node: node,
) -> RewrittenGraph:
    """Returns the graph that computes `outputs` with one node for each computed value.

    If several requested nodes have the same value, one is computed and the others are copies of it, each in its own
    buffer.
    cut: nodes that the user stores.
    recorded_as: returns the node that the user wrote, for each node of this graph.
    """
    order = graph_order(outputs)
    values = ValueNumbers(order, outputs, cut)
    merged = values.merged
    if not merged:
        return RewrittenGraph(outputs, writes)
    requested = dict.fromkeys(outputs)
    members: dict[LazyBuffer, list[LazyBuffer]] = {}
    for node, representative in merged.items():
        members.setdefault(representative, [representative]).append(node)
    rebuilt: dict[LazyBuffer, LazyBuffer] = {}
    original: dict[LazyBuffer, LazyBuffer] = {}
    copies: dict[LazyBuffer, LazyBuffer] = {}
    for node in order:
        if node in merged:
            rebuilt[node] = rebuilt[merged[node]]
            continue
        src = node.src if node.buffer is not None else tuple([rebuilt[source] for source in node.src])
        rebuilt[node] = new = node if src == node.src else node.over(src)
        equal = members.get(node, [node])
        requested_nodes = [member for member in equal if member in requested]
        original[new] = requested_nodes[0] if requested_nodes else min(equal, key=lambda member: member.number)
        for duplicate in requested_nodes[1:]:
            copies[duplicate] = copy = _copy_of(new)
            original[copy] = duplicate
    replacements = {**rebuilt, **copies}
    rewritten = [replacements[node] for node in outputs]
    computed_with = _find_computed_with(values.number, rebuilt, original, set(graph_order(rewritten)))
    _record(computed_with, merged, recorded_as)
    return RewrittenGraph(rewritten, rewritten_writes(writes, rebuilt), original, replacements, computed_with)


class ValueNumbers:
    """Value numbering of the nodes in `order`.

    merged: for each node that is not computed separately, the first node of `order` with the same value.
    outputs: the requested nodes. A view among them is not merged.
    cut: nodes that the user stores. A view among them counts as a separate value.
    """

    def __init__(
        self, order: Sequence[LazyBuffer], outputs: Sequence[LazyBuffer], cut: Collection[LazyBuffer] = ()
    ) -> None:
        self.merged: dict[LazyBuffer, LazyBuffer] = {}
        self.requested = set(outputs)
        self.targets = {node.src[0] for node in order if node.op is Ops.WRITE and node.buffer is None}
        self.opaque = self.targets.union(cut)
        self.number: dict[LazyBuffer, LazyBuffer] = {}  # for each node, the first node with its value
        self.known: dict[Key, LazyBuffer] = {}  # the first node of each value
        # (root, layout) of the first view of each value
        self.views: dict[LazyBuffer, tuple[LazyBuffer, ShapeTracker]] = {}
        self.shared: dict[LazyBuffer, LazyBuffer] = {}  # the view that represents all views of its value
        for node in order:
            if node.buffer is None and node.op in OpGroups.MOVEMENT:
                self.see_view(node)
                continue
            self.number[node] = representative = self.known.setdefault(self.key(node), node)
            if representative is not node and not is_leaf(node):
                self.merged[node] = representative

    def key(self, node: LazyBuffer) -> Key:
        """Returns a key that is equal for nodes with the same value. A realized node has the value of its memory."""
        if node.buffer is not None:
            return node.buffer, node.dtype, node.shape, node.device
        if node.op is Ops.WRITE or node in self.targets or _is_filled(node):
            return (node,)
        if not node.src:
            return node.op, node.dtype, _make_constant_key(node.arg), node.shape, node.device
        src = [self.number[source] for source in node.src]
        if node.op in OpGroups.COMMUTATIVE:
            src.sort(key=id)
        return (node.op, node.dtype, node.arg, node.device, *src)

    def see_view(self, node: LazyBuffer) -> None:
        """Numbers a movement: by its source and argument if these are symbolic, else by the elements that it
        selects."""
        source = self.number[node.src[0]]
        base, tracker = self.views.get(source) or (source, None)
        if node in self.opaque:
            self.number[node] = node
            return
        if _is_symbolic(source) or _is_symbolic(node):
            representative = self.known.setdefault((node.op, node.arg, source), node)
        else:
            tracker = move_like(tracker or ShapeTracker.from_shape(source.shape), node)
            if tracker.contiguous and tracker.shape == base.shape:
                self.number[node] = base
                return
            representative = self.known.setdefault((base, tracker), node)
            self.views[representative] = base, tracker
        self.number[node] = representative
        if node in self.requested or (is_leaf(base) and node.op is not Ops.PAD):
            return
        shared = self.shared.setdefault(representative, node)
        if shared is not node:
            self.merged[node] = shared


def _is_filled(node: LazyBuffer) -> bool:
    return node.op is Ops.CONTIGUOUS and constant_in(node.src[0]) is not None


def _make_constant_key(value: Any) -> Any:
    """Returns a constant's argument as a key that differs for 0.0 and -0.0, and is equal for NaNs."""
    return str(value) if type(value) is float and (value == 0 or value != value) else value


def _is_symbolic(node: LazyBuffer) -> bool:
    """Whether the shape of `node`, or the offset of a view, depends on a Variable."""
    return UOp in map(type, node.shape) or (node.op in OpGroups.MOVEMENT and node.buffer is None and _has_uop(node.arg))


def _has_uop(arg: Any) -> bool:
    return any([_has_uop(item) for item in arg]) if type(arg) is tuple else type(arg) is UOp


def _copy_of(node: LazyBuffer) -> LazyBuffer:
    with recording(None):
        return LazyBuffer(Ops.CONTIGUOUS, node.dtype, node.shape, (node,), None, node.device)


def _find_computed_with(
    first_of: dict[LazyBuffer, LazyBuffer], rebuilt: Nodes, original: Nodes, reachable: Collection[LazyBuffer]
) -> dict[LazyBuffer, list[LazyBuffer]]:
    """Returns for each computed node the other nodes of the user's graph that are computed with it.

    These are the nodes of the same value, and unmerged views that only merged nodes read.
    first_of: for each node, sources first, the first one with its value.
    """
    representative: dict[LazyBuffer, LazyBuffer] = {}
    reader_of: dict[LazyBuffer, LazyBuffer] = {}
    merged: dict[LazyBuffer, list[LazyBuffer]] = {}
    for node in reversed(first_of):
        if is_leaf(node):
            continue
        reader_of.update(dict.fromkeys(node.src, node))
        new = rebuilt[node] if rebuilt[node] in reachable else rebuilt[first_of[node]]
        is_computed = new in reachable and not is_leaf(new)
        representative[node] = original[new] if is_computed else representative[reader_of[node]]
        if representative[node] is not node:
            merged.setdefault(representative[node], []).append(node)
    return merged


def _record(
    computed_with: Mapping[LazyBuffer, Sequence[LazyBuffer]],
    merged: Nodes,
    recorded_as: Callable[[LazyBuffer], LazyBuffer],
) -> None:
    """Records each merge as a decision, and a link from the merged node to the one that is computed."""
    recorder = active_recorder()
    if recorder is None:
        return
    for representative, nodes in computed_with.items():
        for node in nodes:
            reason = f"a common subexpression: equal to another {node.op.name}, which is computed once"
            if node.op is not representative.op:
                is_merged = node in merged or representative in merged
                reason = (
                    "another view has the same elements" if is_merged else "all its readers are merged with other nodes"
                )
            recorder.record(ScheduleDecided(recorded_as(node), "merge", reason, equal_to=recorded_as(representative)))
            recorder.record(node_derived((recorded_as(node), recorded_as(representative), "merge")))


__all__ = ["ValueNumbers", "merge_equal"]

"""RewrittenGraph: a tensor graph that the scheduler rewrote, with the user's node for each of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.writes import WritePlan


@dataclass(frozen=True, eq=False)
class RewrittenGraph:
    """The result of a rewrite of a tensor graph. The user's nodes stay as they are.

    outputs: the nodes of the new graph that get the memory of the requested nodes, in the same order.
    writes: the decisions on WRITEs, about nodes of the new graph.
    original: for nodes of the new graph, the node that the user wrote; a node that is missing stands for itself.
    replacements: for nodes that the user wrote, the node of the new graph that gets its memory.
    merged_nodes: for a computed node that the user wrote, the other nodes that the user wrote with its value.
    """

    outputs: Sequence[LazyBuffer]
    writes: WritePlan
    original: Mapping[LazyBuffer, LazyBuffer] = field(default_factory=dict)
    replacements: Mapping[LazyBuffer, LazyBuffer] = field(default_factory=dict)
    merged_nodes: Mapping[LazyBuffer, Sequence[LazyBuffer]] = field(default_factory=dict)

    def original_of(self, node: LazyBuffer) -> LazyBuffer:
        """Returns the node that the user wrote; `node` itself where a rewrite introduced it."""
        return self.original.get(node, node)

    def rebuilt_node(self, node: LazyBuffer) -> LazyBuffer:
        """Returns the node of the new graph that gets the memory of `node`, which the user wrote."""
        return self.replacements.get(node, node)

    def with_equal(self, nodes: Iterable[LazyBuffer]) -> tuple[LazyBuffer, ...]:
        """Returns `nodes`, which the user wrote, each followed by the nodes that are computed with it. Each node occurs
        once."""
        if not self.merged_nodes:
            return tuple(dict.fromkeys(nodes))
        return tuple(dict.fromkeys([member for node in nodes for member in (node, *self.merged_nodes.get(node, ()))]))

    def compose(self, later: RewrittenGraph) -> RewrittenGraph:
        """Returns the composition of this rewrite with `later`, a rewrite of its result."""
        if not self.original:
            return later
        if not later.original:
            return replace(self, outputs=later.outputs, writes=later.writes)
        original = {**self.original, **{node: self.original_of(old_node) for node, old_node in later.original.items()}}
        replacements = {node: later.rebuilt_node(old_node) for node, old_node in self.replacements.items()}
        merged_nodes = dict(self.merged_nodes)
        for representative, nodes in later.merged_nodes.items():
            original_node = self.original_of(representative)
            combined = self.with_equal(map(self.original_of, [representative, *nodes]))
            merged_nodes[original_node] = [node for node in combined if node is not original_node]
        return RewrittenGraph(later.outputs, later.writes, original, replacements, merged_nodes)


def rewritten_writes(writes: WritePlan, rebuilt: Mapping[LazyBuffer, LazyBuffer]) -> WritePlan:
    """Replaces each node in `writes` by its node in `rebuilt`."""

    def rebuild_all(nodes: Iterable[LazyBuffer]) -> frozenset[LazyBuffer]:
        return frozenset([rebuilt[node] for node in nodes])

    return WritePlan(
        rebuild_all(writes.in_place),
        {rebuilt[node]: reason for node, reason in writes.reasons.items()},
        rebuild_all(writes.computed_first),
        rebuild_all(writes.stored_separately),
    )


__all__ = ["RewrittenGraph", "rewritten_writes"]

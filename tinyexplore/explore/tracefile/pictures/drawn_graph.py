"""Selects the nodes of a static picture or an export: the graph of a stage, with simple nodes folded into labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.dialect import tensor_kinds
from tinyexplore.explore.tracefile.model import Node, TraceTables
from tinyexplore.util import consumers, toposort

Kind = str
"""The kind of a graph's nodes; "lazybuffer" also selects the corresponding level of a foreign compiler."""
Which = Literal["before", "after"]

MAX_OPERANDS = 4  # the most operands that a label names


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A box of a picture.

    id: the id of its node.
    label: the first line of text.
    detail: the second line of text.
    group: the role of the node, which gives the color.
    src: the ids of the boxes that it reads.
    hidden: how many of the nodes that it reads have no box.
    tooltip: further text.
    """

    id: int
    label: str
    detail: str
    group: str
    src: tuple[int, ...]
    hidden: int
    tooltip: str


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """The boxes of a graph, and the counts of nodes without a box.

    nodes: the boxes, sources first.
    total: the number of all nodes of the graph.
    constants: the number of constants written into the boxes that use them.
    views: the number of movement operations drawn as edges.
    index_maths: the number of folded nodes of index arithmetic.
    hidden: the number of nodes beyond the limit of boxes.
    """

    nodes: tuple[DrawnNode, ...]
    total: int
    constants: int
    views: int
    index_maths: int
    hidden: int

    @property
    def note(self) -> str:
        """Returns the remark about nodes that are not drawn, as text."""
        parts = [
            f"{count_text(len(self.nodes), 'box', 'boxes')} for {self.total} nodes" if self.total != 1 else "1 node"
        ]
        kinds = (
            (self.constants, "constant", ""),
            (self.views, "view", ""),
            (self.index_maths, "index maths", "index maths"),
        )
        folded = [count_text(count, singular, many) for count, singular, many in kinds if count]
        if folded:
            parts.append(f"folded into labels: {', '.join(folded)}")
        if self.hidden:
            parts.append(f"hidden, because they are furthest from the result: {self.hidden}")
        return " · ".join(parts)


def roots_of_stage(trace: TraceTables, stage: int | None, which: Which, kind: Kind) -> tuple[Node, ...]:
    """Returns the root nodes of a graph.

    With a stage: its result, or its input if the stage failed. Without a stage and for LazyBuffers: those that no node
    reads. Without a stage and for UOps: the input of the first pass ("before"), or the result of the last pass of the
    first kernel ("after").
    """
    nodes = trace.nodes
    if stage is not None:
        if not 0 <= stage < len(trace.stages):
            raise IndexError(f"stage {stage}: the trace has {count_text(len(trace.stages), 'stage')}, numbered from 0")
        stage_info = trace.stages[stage]
        ids = stage_info.before if which == "before" else stage_info.after or stage_info.before
        return tuple(nodes[i] for i in dict.fromkeys(ids))
    if kind == "lazybuffer":
        kinds = tensor_kinds(trace)
        read = {src for node in nodes if node.kind in kinds for src in node.src}
        return tuple(node for node in nodes if node.kind in kinds and node.id not in read)
    passes = [stage for stage in trace.stages if stage.steps and stage.kernel is not None]
    if not passes:
        return ()
    first = passes[0]
    last = [stage for stage in passes if stage.kernel == first.kernel][-1]
    ids = first.before if which == "before" else last.after or last.before
    return tuple(nodes[i] for i in ids)


def reachable(nodes: Mapping[int, Node], roots: Iterable[int]) -> list[Node]:
    """Returns `roots` and all their transitive sources, sources first."""
    order = toposort(roots, lambda i: nodes[i].src)
    return [nodes[i] for i in order]


def drawn_graph(nodes: Sequence[Node], roots: Iterable[int] = (), max_nodes: int = 120) -> DrawnGraph:
    """Returns the graph of `nodes` (sources first) as it is drawn: at most `max_nodes` boxes, nearest to the roots.

    Three kinds of nodes are folded: constants and their views into the labels of their users; a chain of views into its
    last view; index arithmetic into the expressions that INDEX, LOAD and STORE show.
    """
    table = {node.id: node for node in nodes}
    present = {node.id: tuple(src for src in node.src if src in table) for node in nodes}
    users = consumers(table, lambda i: present[i])
    shown_roots = list(dict.fromkeys(roots)) or [i for i, read in users.items() if not read]
    keep = set(shown_roots)
    constants = _write_constants(nodes, keep)
    views = {node.id: users[node.id][0] for node in nodes if _is_inner_view(node, table, users, keep, constants)}
    maths = _index_maths(nodes, table, users, keep)
    folded = {*constants, *views, *maths}
    # a node → the boxes that represent it: itself, or its sources if it has no box
    sources: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        inner = dict.fromkeys(i for src in present[node.id] for i in sources[src])
        sources[node.id] = () if node.id in constants else tuple(inner) if node.id in folded else (node.id,)
    direct = {
        node.id: tuple(dict.fromkeys(i for src in present[node.id] for i in sources[src]))
        for node in nodes
        if node.id not in folded
    }
    drawn_nodes = _find_nearest_nodes(shown_roots, direct, max_nodes)
    chains = _find_view_chains(nodes, views)
    drawn = []
    for node in nodes:
        if node.id not in drawn_nodes:
            continue
        read = tuple(src for src in direct[node.id] if src in drawn_nodes)
        label = _label(node, [table[src] for src in node.src if src in table], constants, chains.get(node.id, []))
        missing = len(direct[node.id]) - len(read)
        drawn.append(DrawnNode(node.id, label, node.detail, node.group, read, missing, _write_tooltip(node)))
    hidden = len(direct) - len(drawn)
    return DrawnGraph(tuple(drawn), len(nodes), len(constants), len(views), len(maths), hidden)


def _find_view_chains(nodes: Iterable[Node], views: Mapping[int, int]) -> dict[int, list[Node]]:
    """Returns the folded views of each node that ends a chain of views, in the order in which they apply.

    views: each folded view and the node that reads it.
    """
    chains: dict[int, list[Node]] = {}
    for node in nodes:  # sources come first
        if node.id in views:
            end = views[node.id]
            while end in views:
                end = views[end]
            chains.setdefault(end, []).append(node)
    return chains


def _write_tooltip(node: Node) -> str:
    """Returns the tooltip of a node: operation, shape, dtype, argument, Python name, and the calls that created it."""
    text = f"{node.op} #{node.id} {node.detail}\n{node.dtype}{f' {node.arg}' if node.arg else ''}".strip()
    if node.name:
        text += f"\n{node.name} in Python"
    if node.calls:
        text += f"\nmade by {' → '.join(node.calls)}"
    return text


def _write_constants(nodes: Iterable[Node], keep: set[int]) -> dict[int, str]:
    """Returns the value as text of each constant, and of each view of constants alone."""
    values: dict[int, str] = {}
    for node in nodes:
        if node.id in keep:
            continue
        if node.op == "CONST":
            values[node.id] = node.detail
        elif node.group == "movement" and node.src and all(src in values for src in node.src):
            texts = dict.fromkeys(values[src] for src in node.src)
            values[node.id] = next(iter(texts)) if len(texts) == 1 else f"({', '.join(texts)})"
    return values


def _is_inner_view(
    node: Node, table: Mapping[int, Node], users: Mapping[int, list[int]], keep: set[int], constants: Mapping[int, str]
) -> bool:
    """Whether `node` is a movement of a LazyBuffer whose only reader is another movement."""
    if node.kind != "lazybuffer" or node.group != "movement" or node.id in keep or node.id in constants:
        return False
    read = users[node.id]
    return len(read) == 1 and table[read[0]].group == "movement"


def _index_maths(
    nodes: Sequence[Node], table: Mapping[int, Node], users: Mapping[int, list[int]], keep: set[int]
) -> set[int]:
    """Returns the ids of arithmetic nodes that only compute addresses, and of INDEX nodes that only a LOAD or STORE
    reads."""
    index_nodes: set[int] = set()
    for node in reversed(nodes):
        read = users[node.id]
        if node.kind != "uop" or node.id in keep or not read:
            continue
        if node.op == "INDEX":
            if all(table[user].op in ("LOAD", "STORE") for user in read):
                index_nodes.add(node.id)
        elif node.group == "alu" and all(_reads_as_index(table[user], node.id, index_nodes) for user in read):
            index_nodes.add(node.id)
    return index_nodes


def _reads_as_index(user: Node, source: int, maths: set[int]) -> bool:
    if user.op == "INDEX":
        return user.src[0] != source
    return user.id in maths


def _find_nearest_nodes(roots: Sequence[int], sources: Mapping[int, Sequence[int]], limit: int) -> set[int]:
    """Returns the first `limit` nodes of a breadth-first walk from the roots."""
    queue = [root for root in roots if root in sources]
    visited = set(queue)
    for node in queue:
        for src in sources[node]:
            if src not in visited:
                visited.add(src)
                queue.append(src)
    return set(queue[:limit])


def _label(node: Node, sources: Sequence[Node], constants: Mapping[int, str], chain: Sequence[Node]) -> str:
    """Returns the label of a box: "MUL ·, 0.5" (an operation with its constant operands), "RESHAPE → EXPAND" (views).

    A node with a Python name shows the name: "x" for memory, "h = ADD" for a computed value.
    """
    if node.name and node.group == "buffer":
        return node.name
    if node.name:
        return f"{node.name} = {_make_operation(node, sources, constants, chain)}"
    return _make_operation(node, sources, constants, chain)


def _make_operation(node: Node, sources: Sequence[Node], constants: Mapping[int, str], chain: Sequence[Node]) -> str:
    if chain:
        return " → ".join(dict.fromkeys([*(view.label for view in chain), node.label]))
    is_plain = node.group != "alu" or not any(src.id in constants for src in sources)
    if is_plain or len(sources) > MAX_OPERANDS:
        return node.label
    names = [constants.get(src.id, "·") for src in sources]
    return f"{node.label} {', '.join(names)}"

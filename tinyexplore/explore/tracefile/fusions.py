"""Explains fusion: the scheduler's decision on each edge between LazyBuffers, with the numbers that it compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tinyexplore.explore.tracefile.model import (
    Decision,
    FusionEdge,
    KernelInfo,
    Node,
    NumberComparison,
    ScheduleVariant,
    TraceTables,
)
from tinyexplore.explore.tracefile.result_display import DisplayableResult, DisplayableRow, Table, join_lines

Mark = Literal["fused", "cut", "again", "read"]
_MAX_MOVEMENTS = 8  # the most movements on the path of one edge


@dataclass(frozen=True, slots=True, repr=False)
class Edge(DisplayableRow):
    """The scheduler's result for one edge: `dst` reads `src`.

    src: the LazyBuffer that `dst` reads.
    dst: the LazyBuffer that reads `src`.
    mark: "fused": `src` is computed in the kernel of `dst`. "cut": one kernel stores `src`, another one loads it.
        "again": several kernels compute `src`. "read": `src` was in memory before.
    decision: the scheduler's decision on `src`, "" if there is none.
    reason: the reason of the decision.
    compared: the numbers that the scheduler compared.
    kernels: the kernels that compute `src`.
    into: the kernels that compute `dst`.
    against_cut: why cutting this edge is illegal, "" if it is legal.
    against_join: why joining this edge is illegal, "" if it is legal.
    """

    src: int
    dst: int
    mark: Mark
    decision: str
    reason: str
    compared: tuple[NumberComparison, ...]
    kernels: tuple[int, ...]
    into: tuple[int, ...]
    against_cut: str = ""
    against_join: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class WhyKernels(DisplayableResult):
    """Whether two LazyBuffers share a kernel, and why.

    a: the id of the first LazyBuffer.
    b: the id of the second LazyBuffer.
    text: the explanation as a sentence.
    together: the kernels that compute both.
    kernels_of_a: the kernels that compute `a`.
    kernels_of_b: the kernels that compute `b`.
    edges: the path from one to the other, empty if there is no path.
    """

    a: int
    b: int
    text: str
    together: tuple[int, ...]
    kernels_of_a: tuple[int, ...]
    kernels_of_b: tuple[int, ...]
    edges: tuple[Edge, ...]

    def table(self) -> Table:
        """Returns a table with one row for each edge on the path."""
        rows = tuple(map(_make_row, self.edges))
        return Table(self.text, ("edge", "result", "decision and reason", "numbers compared"), rows)


def _make_row(edge: Edge) -> tuple[str, str, str, str]:
    numbers = join_lines(map(compared_text, edge.compared))
    return f"{edge.src} → {edge.dst}", edge.mark, f"{edge.decision}: {edge.reason}", numbers


def compared_text(compared: NumberComparison) -> str:
    """Returns a comparison as text: "times that each element would be computed: 4096, over 1.5"."""
    relation = "over" if compared.over else "within"
    return f"{compared.what}: {_format_number(compared.value)}, {relation} {_format_number(compared.bound)}"


def _format_number(value: float) -> str:
    """Formats a number: a whole number with all digits, any other number with six significant digits."""
    return f"{value:,.0f}" if abs(value) < 1e15 and value == int(value) else f"{value:,.6g}"


class Fusions:
    """The scheduler's decisions on the LazyBuffers of one trace.

    With `variant`, the decisions of a schedule in a branch. Its kernels are numbered in their order.
    """

    def __init__(self, trace: TraceTables, variant: ScheduleVariant | None = None) -> None:
        self.trace = trace
        self.decisions: dict[int, Decision] = {}
        decision_lists = [stage.decisions for stage in trace.stages] if variant is None else [variant.decisions]
        for decisions in decision_lists:
            self.decisions.update({decision.node: decision for decision in decisions})
        kernels: list[tuple[int, tuple[int, ...]]] = []
        if variant is None:
            kernels = [(position.id, (*position.nodes, *position.roots)) for position in trace.kernels]
        else:
            kernels = [(position, (*kernel.nodes, *kernel.roots)) for position, kernel in enumerate(variant.kernels)]
        self.computed: dict[int, list[int]] = {}
        for number, nodes in kernels:
            for node in dict.fromkeys(nodes):
                self.computed.setdefault(node, []).append(number)

    def kernels(self, node: int) -> tuple[int, ...]:
        """Returns the ids of the kernels that compute a LazyBuffer."""
        return tuple(self.computed.get(node, ()))

    def edge(self, src: int, dst: int) -> Edge:
        """Returns the edge on which `dst` reads `src`, with the scheduler's decision."""
        producers, consumers = self.kernels(src), self.kernels(dst)
        decision = self.decisions.get(src)
        mark: Mark = "read"
        if producers:
            mark = "cut" if set(producers).isdisjoint(consumers) else "again" if len(producers) > 1 else "fused"
        word, reason = ("", "already in memory") if decision is None else (decision.decision, decision.reason)
        compared = () if decision is None else decision.compared
        return Edge(
            src, dst, mark, word, reason, compared, producers, consumers, *self._find_objections(src, mark, decision)
        )

    def _find_objections(self, src: int, mark: Mark, decision: Decision | None) -> tuple[str, str]:
        """Returns why the edge from `src` cannot be cut, and why it cannot be joined; "" if it can."""
        node = self.trace.nodes[src]
        if src in self._made_by_splitting:
            why = "the scheduler created this node when it split a reduction: SPLIT_REDUCEOP=0 disables splitting"
            return why, why
        if src in self._made_by_hoisting:
            why = "the scheduler created this node when it moved a reduction out of a loop"
            return why, why
        if mark == "read" or decision is None:
            constant = node.op in ("CONST", "IOTA")
            why = "a constant, written into the kernels that use it" if constant else "already in memory"
            return why, why
        if mark == "cut":
            return f"already cut: {decision.reason}", decision.legality_error
        return "", "already joined: computed by the kernel that reads it"

    @cached_property
    def _made_by_hoisting(self) -> frozenset[int]:
        return frozenset(link.dst for link in self.trace.links if link.how == "hoist")

    @cached_property
    def _made_by_splitting(self) -> frozenset[int]:
        return frozenset(link.dst for link in self.trace.links if link.how == "split")

    def edges(self) -> tuple[Edge, ...]:
        """Returns all edges between LazyBuffers that kernels compute or read."""
        rows = [self.trace.nodes[number] for number in sorted(self.computed)]
        return tuple(self.edge(src, node.id) for node in rows for src in dict.fromkeys(node.src))

    def fusion_edges(self) -> tuple[FusionEdge, ...]:
        """Returns all edges of `edges()`, and those through movement operations, as rows of a trace."""
        pairs = [(src, dst) for dst in sorted(self.computed) for src in self._find_sources(dst)]
        return tuple(self._make_fusion_edge(self.edge(src, dst)) for src, dst in pairs)

    @staticmethod
    def _make_fusion_edge(edge: Edge) -> FusionEdge:
        illegal = edge.against_join if edge.mark == "cut" else edge.against_cut
        return FusionEdge(edge.src, edge.dst, edge.mark, illegal)

    def _find_sources(self, dst: int) -> Iterable[int]:
        """Returns the LazyBuffers that `dst` reads, directly or through movement operations."""
        nodes = self.trace.nodes
        sources = dict.fromkeys(nodes[dst].src)
        reached = [src for src in sources if nodes[src].group == "movement"]
        for _ in range(_MAX_MOVEMENTS):
            reached = [src for node in reached for src in nodes[node].src if src not in sources]
            sources.update(dict.fromkeys(reached))
            reached = [src for src in reached if nodes[src].group == "movement"]
        return sources

    def why(self, a: int, b: int) -> WhyKernels:
        """Explains why LazyBuffers `a` and `b` share a kernel or not."""
        of_a, of_b = self.kernels(a), self.kernels(b)
        shared_kernels = tuple(kernel for kernel in of_a if kernel in of_b)
        path = self._find_path(a, b) or self._find_path(b, a)
        edges = tuple(self.edge(src, dst) for src, dst in zip(path, path[1:], strict=False))
        return WhyKernels(a, b, self._text(a, b, shared_kernels, edges), shared_kernels, of_a, of_b, edges)

    def _find_path(self, start: int, end: int) -> list[int]:
        """Returns the shortest path of edges from `start` to `end`; empty if there is none."""
        nodes = self.trace.nodes
        before: dict[int, int] = {end: end}
        queue = deque([end])
        while queue:
            node = queue.popleft()
            if node == start:
                path = [start]
                while path[-1] != end:
                    path.append(before[path[-1]])
                return path
            for src in nodes[node].src:
                if src not in before:
                    before[src] = node
                    queue.append(src)
        return []

    def _text(self, a: int, b: int, shared_kernels: tuple[int, ...], edges: tuple[Edge, ...]) -> str:
        names = {node: name_of(self.trace.nodes[node]) for node in (a, b)}
        kernels = {kernel.id: kernel for kernel in self.trace.kernels}
        for node in (a, b):
            if node not in self.computed:
                decision = self.decisions.get(node)
                why = (
                    "already in memory, or no result needs it"
                    if decision is None
                    else f"{decision.decision}: {decision.reason}"
                )
                return f"no kernel computes {names[node]}: {why}"
        if shared_kernels:
            return f"one kernel: {_join_names(kernels, shared_kernels)} computes both {names[a]} and {names[b]}"
        of_a, of_b = (_join_names(kernels, self.kernels(node)) for node in (a, b))
        two = f"{names[a]} is computed by {of_a}, {names[b]} by {of_b}"
        cuts = [edge for edge in edges if edge.mark == "cut"]
        if cuts:
            producer = name_of(self.trace.nodes[cuts[0].src])
            return f"two kernels: {two}; between them {producer} goes through memory: {cuts[0].reason}"
        if edges:
            return f"two kernels: {two}"
        return f"two kernels: {two}; neither depends on the other, and a kernel has one loop nest for one result"


def _join_names(kernels: Mapping[int, KernelInfo], ids: Iterable[int]) -> str:
    return ", ".join(f"kernel {number} ({kernels[number].name})" for number in ids)


def name_of(node: Node) -> str:
    """Returns the name of a LazyBuffer: the user's name, else its operation."""
    return f"{node.name} ({node.label})" if node.name and node.name != node.label else f"{node.label} #{node.id}"


def why_kernels(trace: TraceTables, a: Node | int, b: Node | int) -> WhyKernels:
    """Explains why one kernel computes both LazyBuffers, or why two kernels do.

    The result has the path between the nodes. Each edge has the scheduler's reason and the numbers that it compared.
    """
    ids = [node.id if isinstance(node, Node) else node for node in (a, b)]
    for node in ids:
        if not 0 <= node < len(trace.nodes) or trace.nodes[node].kind != "lazybuffer":
            raise ValueError(
                f"node {node} is not a LazyBuffer of this trace; trace.where(kind='lazybuffer') lists them"
            )
    return Fusions(trace).why(*ids)


__all__ = ["Edge", "Fusions", "WhyKernels", "compared_text", "why_kernels"]

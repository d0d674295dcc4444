"""Queries on a Trace: the origins of nodes, their results, their lines in listings, and differences.

Every function takes nodes or their ids, and returns rows of the model.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tinyexplore.explore.tracefile.dialect import tensor_kinds
from tinyexplore.explore.tracefile.model import (
    Frame,
    KernelInfo,
    Line,
    Link,
    Node,
    Program,
    RuleInfo,
    Stage,
    Step,
    TraceTables,
    Transform,
)
from tinyexplore.explore.tracefile.result_display import DisplayableRow

NodeLike = int | Node
Direction = Literal["back", "forward", "both"]


@dataclass(frozen=True, slots=True, repr=False)
class LineRef(DisplayableRow):
    """A line of a listing.

    program: the listing.
    number: the line number, from 0.
    line: the line.
    """

    program: Program
    number: int
    line: Line


@dataclass(frozen=True, slots=True, repr=False)
class Firing(DisplayableRow):
    """One step of a pass.

    stage: the pass.
    number: the number of the step, from 0.
    step: the step.
    rule: the rule that fired; None for a transform, and for a node that was rebuilt because its sources changed.
    transform: the transform, None for other passes.
    """

    stage: Stage
    number: int
    step: Step
    rule: RuleInfo | None
    transform: Transform | None = None


class _Index:
    """The relations of one trace, computed once and indexed in both directions."""

    def __init__(self, trace: TraceTables) -> None:
        self.trace = trace
        self.known_frames: dict[int | None, dict[int, set[int]]] = {}

    @cached_property
    def back(self) -> dict[int, list[Link]]:
        links: dict[int, list[Link]] = {}
        for link in self.trace.links:
            links.setdefault(link.dst, []).append(link)
        return links

    @cached_property
    def forward(self) -> dict[int, list[Link]]:
        links: dict[int, list[Link]] = {}
        for link in self.trace.links:
            links.setdefault(link.src, []).append(link)
        return links

    @cached_property
    def lines_of(self) -> dict[int, list[LineRef]]:
        lines: dict[int, list[LineRef]] = {}
        for program in self.trace.programs:
            for number, line in enumerate(program.lines):
                for node in line.nodes:
                    lines.setdefault(node, []).append(LineRef(program, number, line))
        return lines

    @cached_property
    def firings_of(self) -> dict[int, list[Firing]]:
        """Returns the steps that created each node, by node id."""
        firings: dict[int, list[Firing]] = {}
        for stage in self.trace.stages:
            transform = None if stage.transform is None else self.trace.transforms[stage.transform]
            for number, step in enumerate(stage.steps):
                rule = self.trace.rules[step.rule] if step.rule is not None else None
                firings.setdefault(step.after, []).append(Firing(stage, number, step, rule, transform))
        return firings

    @cached_property
    def kernel_of_stage(self) -> dict[int | None, int | None]:
        return {None: None, **{stage.id: stage.kernel for stage in self.trace.stages}}

    @cached_property
    def kernels(self) -> dict[int, KernelInfo]:
        return {kernel.id: kernel for kernel in self.trace.kernels}

    @cached_property
    def users_in(self) -> dict[int, dict[int, list[int]]]:
        """Returns, for each kernel and node, the nodes of that kernel's programs that read it."""
        users_of: dict[int, dict[int, list[int]]] = {}
        for program in self.trace.programs:
            users = users_of.setdefault(program.kernel, {})
            visited: set[int] = set()
            stack = [node for line in program.lines for node in line.nodes]
            while stack:
                node = stack.pop()
                if node in visited:
                    continue
                visited.add(node)
                for src in self.trace.nodes[node].src:
                    users.setdefault(src, []).append(node)
                    stack.append(src)
        return users_of

    def closure(self, ids: Iterable[int], links: dict[int, list[Link]], end: str, kernel: int | None) -> set[int]:
        """Returns `ids` and all nodes reachable from them by links.

        kernel: if given, follow only links of this kernel and links outside of any kernel.
        """
        closed = set(ids)
        stack = list(closed)
        while stack:
            for link in links.get(stack.pop(), ()):
                other = link.src if end == "src" else link.dst
                if other not in closed and self.belongs(link, kernel):
                    closed.add(other)
                    stack.append(other)
        return closed

    def frames_behind(self, node: int, kernel: int | None) -> tuple[int, ...]:
        """Returns the frames of the LazyBuffers from which `node` was derived."""
        frames_of = self.known_frames.get(kernel)
        if frames_of is None:
            frames_of = self.known_frames[kernel] = self.spread_frames(kernel)
        return tuple(sorted(frames_of.get(node, ())))

    def spread_frames(self, kernel: int | None) -> dict[int, set[int]]:
        """Returns the frames of every node. Each frame is propagated along the links from the nodes that it built."""
        frames: dict[int, set[int]] = {node.id: {node.user} for node in self.trace.nodes if node.user is not None}
        pending = list(frames)
        while pending:
            node = pending.pop()
            for link in self.forward.get(node, ()):
                if not self.belongs(link, kernel):
                    continue
                reached = frames.setdefault(link.dst, set())
                if not frames[node] <= reached:
                    reached |= frames[node]
                    pending.append(link.dst)
        return frames

    def belongs(self, link: Link, kernel: int | None) -> bool:
        """Whether a walk for `kernel` may follow `link`.

        Equal nodes of two kernels are one node, so a walk for one kernel must not enter the history of the other.
        """
        if kernel is None:
            return True
        of_link = self.kernel_of_stage[link.stage]
        if of_link is not None:
            return of_link == kernel
        members = self.kernels[kernel].nodes if kernel in self.kernels else ()
        source = self.trace.nodes[link.src]
        return not members or source.kind not in self.tensor_kinds or source.id in self.member_sets[kernel]

    @cached_property
    def tensor_kinds(self) -> frozenset[str]:
        """Returns the kinds of nodes of the whole program's graph."""
        return tensor_kinds(self.trace)

    @cached_property
    def member_sets(self) -> dict[int, frozenset[int]]:
        """Returns, for each kernel, the LazyBuffers that it computes, stores or reads."""
        member_sets = {}
        for kernel in self.trace.kernels:
            members = set(kernel.nodes) | set(kernel.roots)
            for member in tuple(members):
                members.update(self.trace.nodes[member].src)
            member_sets[kernel.id] = frozenset(members)
        return member_sets


_indexes: OrderedDict[int, _Index] = OrderedDict()
_MAX_INDEXES = 8


def _index(trace: TraceTables) -> _Index:
    """Returns the index of `trace`, cached for the few traces used last.

    A cached index keeps its trace alive, so the trace's `id()` stays unique.
    """
    index = _indexes.get(id(trace))
    if index is None:
        index = _indexes[id(trace)] = _Index(trace)
        if len(_indexes) > _MAX_INDEXES:
            _indexes.popitem(last=False)
    _indexes.move_to_end(id(trace))
    return index


def _list_ids(nodes: NodeLike | Iterable[NodeLike]) -> list[int]:
    if isinstance(nodes, (int, Node)):
        nodes = (nodes,)
    return [node.id if isinstance(node, Node) else node for node in nodes]


# *** provenance ***


def related(
    trace: TraceTables,
    nodes: NodeLike | Iterable[NodeLike],
    direction: Direction = "both",
    *,
    kernel: int | None = None,
    kind: str | None = None,
) -> tuple[Node, ...]:
    """Returns the nodes from which `nodes` were derived ("back"), those derived from them ("forward"), or both.

    The result includes `nodes` and is sorted by id.

    kernel: follow only the history of this kernel.
    kind: return only nodes of this IR.
    """
    index = _index(trace)
    start = _list_ids(nodes)
    ids: set[int] = set(start)
    if direction in ("back", "both"):
        ids |= index.closure(start, index.back, "src", kernel)
    if direction in ("forward", "both"):
        ids |= index.closure(start, index.forward, "dst", kernel)
    chosen = (trace.nodes[node] for node in sorted(ids))
    return tuple(node for node in chosen if kind is None or node.kind == kind)


def user_lines(trace: TraceTables, node: NodeLike, *, kernel: int | None = None) -> tuple[Frame, ...]:
    """Returns the user's lines that led to `node`: those that created the LazyBuffers from which it was derived."""
    (node_id,) = _list_ids(node)
    return tuple(trace.frames[frame] for frame in _index(trace).frames_behind(node_id, kernel))


def trace_lines(
    trace: TraceTables, nodes: NodeLike | Iterable[NodeLike], *, language: str | None = None
) -> tuple[LineRef, ...]:
    """Returns the lines of listings that come from `nodes` or from nodes derived from them."""
    index = _index(trace)
    lines: dict[tuple[int, int], LineRef] = {}
    for kernel in index.kernels:
        reached = index.closure(_list_ids(nodes), index.forward, "dst", kernel)
        for node in reached:
            for ref in index.lines_of.get(node, ()):
                if ref.program.kernel == kernel and language in (None, ref.program.language):
                    lines[ref.program.id, ref.number] = ref
    return tuple(lines[key] for key in sorted(lines))


def line_frames(trace: TraceTables, program: int, line: int) -> tuple[Frame, ...]:
    """Returns the user's lines behind one line (from 0) of a listing.

    The search follows all links back from the UOps of the line. If none leads to a Tensor's line, it continues from the
    UOps that use them. For text without a UOp (a brace), the result is the lines of the whole kernel.
    """
    index = _index(trace)
    kernel = trace.programs[program].kernel
    users = index.users_in.get(kernel, {})
    wave = list(trace.programs[program].lines[line].nodes)
    visited: set[int] = set()
    while wave:
        frames = {frame.id: frame for node in wave for frame in user_lines(trace, node, kernel=kernel)}
        if frames:
            return tuple(frames[key] for key in sorted(frames))
        visited.update(wave)
        wave = [user for node in wave for user in users.get(node, ()) if user not in visited]
    return kernel_frames(trace, kernel)


def kernel_frames(trace: TraceTables, kernel: int) -> tuple[Frame, ...]:
    """Returns the user's lines that a kernel computes: those of its stored LazyBuffers, else of all fused ones."""
    info = _index(trace).kernels.get(kernel)
    if info is None:
        return ()
    for nodes in (info.roots, info.nodes):
        users = (trace.nodes[node].user for node in nodes)
        frames = {user for user in users if user is not None}
        if frames:
            return tuple(trace.frames[frame] for frame in sorted(frames))
    return ()


def rewrite_history(trace: TraceTables, node: NodeLike, *, kernel: int | None = None) -> tuple[Firing, ...]:
    """Returns the firings that led to `node`, in execution order."""
    index = _index(trace)
    ancestors = index.closure(_list_ids(node), index.back, "src", kernel)
    firings = [firing for ancestor in ancestors for firing in index.firings_of.get(ancestor, ())]
    if kernel is not None:
        firings = [firing for firing in firings if firing.stage.kernel in (None, kernel)]
    led = [firing for firing in firings if firing.step.before in ancestors]
    return tuple(sorted(led, key=lambda firing: (firing.stage.id, firing.number)))


# *** searching ***


def where(
    trace: TraceTables,
    *,
    op: str | None = None,
    kind: str | None = None,
    rule: str | None = None,
    shape: tuple[int, ...] | None = None,
    dtype: str | None = None,
    user_line: int | None = None,
    text: str | None = None,
    digest: str | None = None,
    call: str | None = None,
) -> tuple[Node, ...]:
    """Returns the nodes that satisfy every given condition.

    Args:
        trace: the trace.
        op, kind, dtype, shape, digest: the value of that field of `Node`.
        rule: the name of a rule; matches the nodes that its firings created.
        user_line: a line of the user's code; matches the nodes that it created and all nodes derived from them.
        text: a regular expression, searched in label and detail.
        call: the name of a public function; matches the LazyBuffers that it created, called by the user or by another
            function ("softmax", "__add__").
    """
    nodes: Iterable[Node] = trace.nodes
    if rule is not None:
        nodes = _find_replaced(trace, rule)
    if user_line is not None:
        index = _index(trace)
        frames = {frame.id for frame in trace.frames if frame.line == user_line}
        built = [node.id for node in trace.nodes if node.user in frames]
        reached = index.closure(built, index.forward, "dst", None)
        nodes = [node for node in nodes if node.id in reached]
    conditions = {"op": op, "kind": kind, "shape": shape, "dtype": dtype, "digest": digest}
    for name, value in conditions.items():
        if value is not None:
            nodes = [node for node in nodes if getattr(node, name) == value]
    if call is not None:
        nodes = [node for node in nodes if call in node.calls]
    if text is not None:
        pattern = re.compile(text)
        nodes = [node for node in nodes if pattern.search(f"{node.label} {node.detail}")]
    return tuple(nodes)


def _find_replaced(trace: TraceTables, rule: str) -> list[Node]:
    ids = {named.id for named in trace.rules if named.name == rule}
    if not ids:
        fired = ", ".join(sorted({named.name for named in trace.rules})) or "none"
        raise ValueError(f"no rule {rule!r} fired in this trace; fired: {fired}")
    after_ids = {step.after for stage in trace.stages for step in stage.steps if step.rule in ids}
    return [trace.nodes[node] for node in sorted(after_ids)]

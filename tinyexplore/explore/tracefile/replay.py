"""Replay a rewrite stage: compute its intermediate graphs from its steps.

widgets/src/replay.ts is the same algorithm. Both are tested on the fixtures in tests/replay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import TraceTables
from tinyexplore.explore.tracefile.result_display import DisplayableRow

_KEPT_GRAPHS = 4
_ROOT = -1  # stands for the stage itself, as the user of its root nodes


@dataclass(frozen=True, slots=True, repr=False)
class DisplayedNode(DisplayableRow):
    """A box of a replayed graph.

    node: the node of the trace whose label it shows.
    src: the display ids of its operands, in order.
    """

    node: int
    src: tuple[int, ...]


@dataclass(frozen=True, slots=True, repr=False)
class DisplayedGraph(DisplayableRow):
    """A graph at one step of a pass.

    root: the display ids of the root nodes.
    nodes: the boxes by display id.
    changed: the display ids of the boxes that the last step changed.
    """

    root: tuple[int, ...]
    nodes: dict[int, DisplayedNode]
    changed: frozenset[int]


@dataclass(frozen=True, slots=True)
class _ResolvedGraph:
    """The graph after some steps.

    root: the display ids of the root nodes.
    nodes: the boxes by display id.
    id_of: the display id of each node of the trace.
    """

    root: tuple[int, ...]
    nodes: dict[int, DisplayedNode]
    id_of: dict[int, int]


class StageReplay:
    """Replays one stage: `graph_at(k)` is the graph after its first k steps.

    A step replaces every occurrence of its `before` by its `after`. A node that is rebuilt because its sources changed
    keeps its display id, so its box does not move.
    """

    count: int

    def __init__(self, trace: TraceTables, stage_id: int) -> None:
        if not 0 <= stage_id < len(trace.stages):
            raise IndexError(
                f"stage {stage_id}: the trace has {count_text(len(trace.stages), 'stage')}, numbered from 0"
            )
        stage = trace.stages[stage_id]
        self.count = len(stage.steps)
        self._sources = [node.src for node in trace.nodes]
        self._before = stage.before
        self._steps = stage.steps
        # node → (step, target), …: from that step on, target replaces it (None: the node itself again)
        self._replacements: dict[int, list[tuple[int, int | None]]] = {}
        # node → (step, display id), …: its display id from that step on (its own id before)
        self._display_ids: dict[int, list[tuple[int, int]]] = {}
        self._recent: dict[int, _ResolvedGraph] = {}
        self._collect_replacements()
        self._collect_display_ids()

    def graph_at(self, k: int, *, marked: bool = True) -> DisplayedGraph:
        """Returns the graph after `k` steps, 0 ≤ k ≤ count, in time O(nodes shown).

        marked: whether to compute `changed`; without it, the replay takes half the time.
        """
        if not 0 <= k <= self.count:
            raise IndexError(f"step {k}: the stage has {self.count} steps; choose 0 to {self.count}")
        resolved = self._resolve_sources(k)
        changed: set[int] = set()
        if k > 0 and marked:
            past = self._resolve_sources(k - 1).nodes
            for shown_id, node in resolved.nodes.items():
                old = past.get(shown_id)
                if old is None or old.node != node.node:
                    changed.add(shown_id)
            target = resolved.id_of.get(self._find_latest(self._steps[k - 1].after, k, {}))
            if target is not None:
                changed.add(target)
        return DisplayedGraph(resolved.root, dict(resolved.nodes), frozenset(changed))

    def _collect_replacements(self) -> None:
        """Records the replacements of each node by step. A step back to a node removes that node's replacement."""
        current: dict[int, int] = {}
        for index, step in enumerate(self._steps):
            if step.before == step.after:
                continue
            end = step.after
            while end != step.before and end in current:
                end = current[end]
            if end == step.before:
                current.pop(step.after, None)
                self._replacements.setdefault(step.after, []).append((index, None))
            current[step.before] = step.after
            self._replacements.setdefault(step.before, []).append((index, step.after))

    def _collect_display_ids(self) -> None:
        """Assigns display ids: a node that another node is rebuilt as gets the display id of that node."""
        display_graph = _DisplayedNodes(self._sources, self._before)
        for index, step in enumerate(self._steps):
            takes_over = (
                step.rule is None and step.before in display_graph.users and step.after not in display_graph.users
            )
            target = self._find_latest(step.after, index + 1, {})
            if takes_over and target == step.after:
                shown_id = self._display_id(step.before, index)
                self._display_ids.setdefault(target, []).append((index, shown_id))
            display_graph.replace(step.before, target, partial(self._find_latest, k=index + 1, memo={}))

    def _display_id(self, node: int, k: int) -> int:
        for index, shown_id in reversed(self._display_ids.get(node, ())):
            if index < k:
                return shown_id
        return node

    def _find_replacement(self, node: int, k: int) -> int | None:
        for index, target in reversed(self._replacements.get(node, ())):
            if index < k:
                return target
        return None

    def _find_latest(self, node: int, k: int, memo: dict[int, int]) -> int:
        """Returns the node that replaces `node` after k steps. `memo` shortens chains of replacements."""
        path = []
        end = node
        while True:
            if end in memo:
                end = memo[end]
                break
            following = self._find_replacement(end, k)
            if following is None:
                break
            path.append(end)
            end = following
        for passed in path:
            memo[passed] = end
        return end

    def _resolve_sources(self, k: int) -> _ResolvedGraph:
        resolved = self._recent.get(k)
        if resolved is None:
            resolved = self._resolve(k)
            if len(self._recent) >= _KEPT_GRAPHS:
                del self._recent[next(iter(self._recent))]
            self._recent[k] = resolved
        return resolved

    def _resolve(self, k: int) -> _ResolvedGraph:
        """Computes the graph after `k` steps by a depth-first walk that replaces each source by its latest version.

        A rule that wraps its match makes a node part of its own replacement. Inside the replacement, this node stays at
        the last version that does not contain the replacement. Such a version has a key beyond the trace's nodes.
        """
        memo: dict[int, int] = {}
        total = len(self._sources)
        opened: set[int] = set()
        sources_of: dict[int, list[int]] = {}  # keys of the sources of each finished node, in post-order
        root: list[int] = []
        for start in self._before:
            first = self._find_latest(start, k, memo)
            root.append(first)
            if first in sources_of:
                continue
            stack: list[tuple[int, list[int]]] = [(first, [])]
            opened.add(first)
            while stack:
                key, src = stack[-1]
                original = self._sources[key if key < total else key - total]
                if len(src) == len(original):
                    stack.pop()
                    opened.remove(key)
                    sources_of[key] = src
                    continue
                source = original[len(src)]
                target = self._find_latest(source, k, memo) if key < total else total + source
                if target in opened:
                    target = self._find_last_outside(source, k, opened)
                    if target in opened:
                        target = total + source
                src.append(target)
                if target not in sources_of:
                    stack.append((target, []))
                    opened.add(target)
        return self._resolve_displayed(k, root, sources_of)

    def _find_last_outside(self, source: int, k: int, opened: set[int]) -> int:
        """Returns the last replacement of `source` that is not one of its current users."""
        target = source
        following = self._find_replacement(target, k)
        while following is not None and following not in opened:
            target = following
            following = self._find_replacement(target, k)
        return target

    def _resolve_displayed(self, k: int, root: list[int], sources_of: dict[int, list[int]]) -> _ResolvedGraph:
        total = len(self._sources)
        id_of: dict[int, int] = {}
        used_ids: set[int] = set()
        for key in sources_of:
            preferred = self._display_id(key, k)
            shown_id = 2 * total + key if preferred in used_ids else preferred
            used_ids.add(shown_id)
            id_of[key] = shown_id
        nodes = {}
        for key, src in sources_of.items():
            ids = tuple([id_of[source] for source in src])
            nodes[id_of[key]] = DisplayedNode(key if key < total else key - total, ids)
        return _ResolvedGraph(tuple([id_of[key] for key in root]), nodes, id_of)


class _DisplayedNodes:
    """The nodes of the current graph (the keys of `users`), updated by each replacement."""

    def __init__(self, sources: Sequence[Sequence[int]], roots: Sequence[int]) -> None:
        self._sources = sources
        self._src: dict[int, list[int]] = {}
        self.users: dict[int, set[int]] = {}
        for root in roots:
            self._add(root, lambda node: node)
            self.users[root].add(_ROOT)

    def _add(self, node: int, latest: Callable[[int], int]) -> None:
        if node in self.users:
            return
        self.users[node] = set()
        stack = [node]
        while stack:
            user = stack.pop()
            self._src[user] = [latest(source) for source in self._sources[user]]
            for source in self._src[user]:
                if source not in self.users:
                    self.users[source] = set()
                    stack.append(source)
                self.users[source].add(user)

    def replace(self, before: int, after: int, latest: Callable[[int], int]) -> None:
        """Makes all users of `before` read `after`, and removes nodes without users."""
        if before not in self.users or before == after:
            return
        self._add(after, latest)
        for user in self.users[before]:
            self.users[after].add(user)
            if user != _ROOT:
                self._src[user] = [after if source == before else source for source in self._src[user]]
        self.users[before] = set()
        unread = [before]
        while unread:
            node = unread.pop()
            del self.users[node]
            for source in self._src.pop(node):
                users = self.users.get(source)
                if users is not None and node in users:
                    users.discard(node)
                    if not users:
                        unread.append(source)

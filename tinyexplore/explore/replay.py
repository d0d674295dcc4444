"""The intermediate graphs of a rewrite stage, replayed from its steps.

The same algorithm as widgets/src/replay.ts; both are checked on the fixtures in tests/replay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tinyexplore.explore.model import Trace

_KEPT_GRAPHS = 4


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A box: the trace node whose label it bears, and the display ids of its sources, operand by operand."""

    node: int
    src: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownGraph:
    """`root` and the keys of `nodes` are display ids; `changed` are the boxes that the last step touched."""

    root: tuple[int, ...]
    nodes: dict[int, ShownNode]
    changed: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Resolved:
    root: tuple[int, ...]
    nodes: dict[int, ShownNode]
    id_of: dict[int, int]


class Replay:
    """`graph_at(k)` is the graph after the first k steps of a stage.

    Every occurrence of a step's `before` is its `after` from that step on. A node whose sources changed keeps its
    display id, and the node that it is rebuilt as takes that id over: a box does not jump for being made anew.
    """

    count: int

    def __init__(self, trace: Trace, stage_id: int) -> None:
        if not 0 <= stage_id < len(trace.stages):
            raise IndexError(f"stage {stage_id}: the trace has {len(trace.stages)} stages, numbered from 0")
        stage = trace.stages[stage_id]
        self.count = len(stage.steps)
        self._sources = [node.src for node in trace.nodes]
        self._before = stage.before
        self._steps = stage.steps
        # node → (step, target), …: from that step on it is target (None: itself again)
        self._replacements: dict[int, list[tuple[int, int | None]]] = {}
        self._display_ids: dict[int, int] = {}
        self._recent: dict[int, _Resolved] = {}
        self._collect_replacements()
        self._collect_display_ids()

    def graph_at(self, k: int) -> ShownGraph:
        """The graph after `k` steps, 0 ≤ k ≤ count; O(nodes shown)."""
        if not 0 <= k <= self.count:
            raise IndexError(f"step {k}: the stage has {self.count} steps; choose 0 to {self.count}")
        now = self._resolved(k)
        changed: set[int] = set()
        if k > 0:
            past = self._resolved(k - 1).nodes
            for shown_id, shown in now.nodes.items():
                old = past.get(shown_id)
                if old is None or old.node != shown.node:
                    changed.add(shown_id)
            target = now.id_of.get(self._latest(self._steps[k - 1].after, k, {}))
            if target is not None:
                changed.add(target)
        return ShownGraph(now.root, dict(now.nodes), frozenset(changed))

    def _collect_replacements(self) -> None:
        """Where each node leads, step by step; a step that leads back to where it came from undoes its target."""
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
        """A node that first appears as the rebuilt form of another takes over its display id."""
        known: set[int] = set()

        def meet(roots: Iterable[int]) -> None:
            stack = list(roots)
            while stack:
                node = stack.pop()
                if node not in known:
                    known.add(node)
                    stack.extend(self._sources[node])

        meet(self._before)
        for step in self._steps:
            if step.rule is None and step.after not in known:
                self._display_ids[step.after] = self._display_ids.get(step.before, step.before)
            meet((step.after,))

    def _replacement(self, node: int, k: int) -> int | None:
        for index, target in reversed(self._replacements.get(node, ())):
            if index < k:
                return target
        return None

    def _latest(self, node: int, k: int, memo: dict[int, int]) -> int:
        """What `node` has become after k steps; `memo` shortens the chains."""
        path = []
        end = node
        while True:
            if end in memo:
                end = memo[end]
                break
            following = self._replacement(end, k)
            if following is None:
                break
            path.append(end)
            end = following
        for passed in path:
            memo[passed] = end
        return end

    def _resolved(self, k: int) -> _Resolved:
        found = self._recent.get(k)
        if found is None:
            found = self._resolve(k)
            if len(self._recent) >= _KEPT_GRAPHS:
                del self._recent[next(iter(self._recent))]
            self._recent[k] = found
        return found

    def _resolve(self, k: int) -> _Resolved:
        """A depth-first walk over what the nodes have become.

        A node inside its own replacement (a rule that wraps what it matched) is taken as far as it was before it
        would contain itself; keys past the trace's nodes are such nodes as they stood originally.
        """
        memo: dict[int, int] = {}
        total = len(self._sources)
        opened: set[int] = set()
        made: dict[int, list[int]] = {}  # keys of the sources of what is finished, in post-order
        root: list[int] = []
        for start in self._before:
            first = self._latest(start, k, memo)
            root.append(first)
            if first in made:
                continue
            stack: list[tuple[int, list[int]]] = [(first, [])]
            opened.add(first)
            while stack:
                key, src = stack[-1]
                original = self._sources[key if key < total else key - total]
                if len(src) == len(original):
                    stack.pop()
                    opened.remove(key)
                    made[key] = src
                    continue
                source = original[len(src)]
                target = self._latest(source, k, memo) if key < total else total + source
                if target in opened:
                    target = self._before_containing(source, k, opened)
                    if target in opened:
                        target = total + source
                src.append(target)
                if target not in made:
                    stack.append((target, []))
                    opened.add(target)
        return self._displayed(root, made)

    def _before_containing(self, source: int, k: int, opened: set[int]) -> int:
        """The last of what `source` has been that is not one of its users now."""
        target = source
        following = self._replacement(target, k)
        while following is not None and following not in opened:
            target = following
            following = self._replacement(target, k)
        return target

    def _displayed(self, root: list[int], made: dict[int, list[int]]) -> _Resolved:
        total = len(self._sources)
        id_of: dict[int, int] = {}
        taken: set[int] = set()
        for key in made:
            wanted = self._display_ids.get(key, key)
            shown_id = 2 * total + key if wanted in taken else wanted
            taken.add(shown_id)
            id_of[key] = shown_id
        nodes = {}
        for key, src in made.items():
            ids = tuple([id_of[source] for source in src])
            nodes[id_of[key]] = ShownNode(key if key < total else key - total, ids)
        return _Resolved(tuple([id_of[key] for key in root]), nodes, id_of)

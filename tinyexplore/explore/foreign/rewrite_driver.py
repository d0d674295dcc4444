"""Reconstruct the steps of tinygrad's rewrite driver on a graph from its recorded matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.explore.tracefile.model import Node, Step

# rewrites do not enter the body of such a call
_OPAQUE = frozenset(("SINK", "PROGRAM", "LINEAR", "COPY", "CUSTOM_FUNCTION"))


class RewriteDriver:
    """The steps of tinygrad's rewrite driver on a graph: its recorded matches, and the rebuilt nodes between them."""

    def __init__(
        self,
        nodes: Sequence[Node],
        rebuilt: Callable[[int, tuple[int, ...]], int],
        matches: list[tuple[int, int, int, float]],
        walk: bool,
        enter_calls: bool,
    ) -> None:
        self._nodes = nodes
        self._rebuild = rebuilt
        self._matches = matches
        self._walk = walk
        self._enter_calls = enter_calls
        self._target = {before: after for before, after, *_ in matches}
        self._made = set(self._target.values())
        self._final: dict[int, int] = {}
        self._became: dict[int, int] = {}  # node → the node that it is first rewritten to or rebuilt as
        self._rebuilt: dict[int, list[int]] = {}  # rebuilt node → its previous nodes

    def final_node(self, root: int) -> int:
        """Returns the final node in place of a node, after all matches."""
        stack, opened = [root], set()
        while stack:
            node = stack[-1]
            if node in self._final:
                stack.pop()
                continue
            opened.add(node)
            pending = [] if node in self._became else self._step(node, opened)
            if pending:
                stack += pending
                continue
            replacement = self._became[node]
            if replacement == node or replacement in self._final:
                self._final[node] = self._final.get(replacement, replacement)
            elif self._walk:  # in a single walk, the results of rules are not visited again
                self._final[node] = (
                    self._target.get(replacement, replacement) if replacement not in self._made else replacement
                )
            elif replacement in opened:  # the node contains itself
                self._final[node] = replacement
            else:
                stack.append(replacement)
        return self._final[root]

    def _step(self, node: int, opened: set[int]) -> list[int]:
        """Sets the next version of the node and returns []; if sources are not final, returns these instead."""
        if node in self._target:
            self._became[node] = self._target[node]
            return []
        sources = self._nodes[node].src
        visited = sources if self._enter_calls or not self._is_opaque(node) else sources[1:]
        pending = [inner for inner in visited if inner not in self._final and inner not in opened]
        if not pending:
            body = sources[: len(sources) - len(visited)]
            src = (*body, *(self._final.get(inner, inner) for inner in visited))
            self._became[node] = node if src == sources else self._rebuild(node, src)
            if src != sources:
                self._rebuilt.setdefault(self._became[node], []).append(node)
        return pending

    def _is_opaque(self, node: int) -> bool:
        """Whether a node calls a body that rewrites do not enter."""
        op, src = self._nodes[node].op, self._nodes[node].src
        return bool(src) and (op == "FUNCTION" or (op == "CALL" and self._nodes[src[0]].op in _OPAQUE))

    def steps(self) -> tuple[Step, ...]:
        """Returns the matches in order, each after the rebuilt nodes that it needs, then the other rebuilt nodes."""
        steps: list[Step] = []
        clock = 0.0
        rebuilt = dict(self._rebuilt)

        def rebuild(node: int) -> None:
            chain = []
            while node in rebuilt:
                chain.append((node, rebuilt.pop(node)))
                node = chain[-1][1][0]
            for new, olds in reversed(chain):
                steps.extend(Step(None, old, new, clock) for old in olds)

        for before, after, rule, us in self._matches:
            rebuild(before)
            clock += us
            steps.append(Step(rule, before, after, clock))
        for node in list(rebuilt):
            rebuild(node)
        return tuple(steps)


__all__ = ["RewriteDriver"]

"""Writes a graph as the text of a Python expression: nested like its nodes. Shared nodes are named at their first
occurrence.

The length of the text is proportional to the number of nodes and edges, and Python can evaluate it. Nodes that would be
nested deeper than Python's parser allows are named before the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, TypeVar

from tinyexplore.util.graph import toposort

T = TypeVar("T")

WIDTH = 110
_DEEPEST = 40  # Python 3.10's parser allows 200 nested brackets, and each level has up to three


def tree_text(
    root: T, sources: Callable[[T], Sequence[T]], head: Callable[[T], str], tail: Callable[[T], str], name: str = "x"
) -> str:
    """Returns `root` as an expression. A node is written as `head(node)`, its sources as `src=(...)`, `rest(node)`.

    Shared nodes are called `x0`, `x1`, … (`name` for another letter). Short nodes without sources (constants, for
    example) are written out each time.
    """
    return _TreeWriter(root, sources, head, tail, name).text()


class _TreeWriter(Generic[T]):
    def __init__(
        self,
        root: T,
        sources: Callable[[T], Sequence[T]],
        head: Callable[[T], str],
        tail: Callable[[T], str],
        name: str,
    ) -> None:
        self.root, self.sources, self.head, self.rest, self.letter = root, sources, head, tail, name
        self.order = toposort([root], sources)
        self.names: dict[T, str] = {}
        self.written: set[T] = set()
        readers: dict[T, int] = {}
        for node in self.order:
            for source in sources(node):
                readers[source] = readers.get(source, 0) + 1
        self.shared = {node for node, count in readers.items() if count > 1 and (sources(node) or self.is_long(node))}

    def is_long(self, node: T) -> bool:
        return len(self.head(node)) + len(self.rest(node)) > 44

    def text(self) -> str:
        ahead = self.ahead()
        if not ahead:
            return "\n".join(self.lines(self.root))
        indented = [_indent(self.lines(node)) for node in (*ahead, self.root)]
        return "(\n" + ",\n".join("\n".join(node_lines) for node_lines in indented) + ",\n)[-1]"

    def ahead(self) -> list[T]:
        """Returns the nodes at which the text would become too deep, sources first."""
        height: dict[T, int] = {}
        matches = []
        for node in self.order:
            height[node] = 1 + max((height[source] for source in self.sources(node)), default=0)
            if height[node] >= _DEEPEST and node is not self.root:
                matches.append(node)
                self.shared.add(node)
                height[node] = 0
        return matches

    def lines(self, node: T) -> list[str]:
        """Returns the text of a node, on one line if it fits, nested no deeper than `ahead` allows."""
        if node in self.written:
            return [self.names[node]]
        named = ""
        lines_of_sources = [self.lines(source) for source in self.sources(node)]
        if node in self.shared:
            self.written.add(node)
            self.names[node] = f"{self.letter}{len(self.names)}"
            named = f"{self.names[node]}:="
        head, tail = named + self.head(node), self.rest(node)
        if not lines_of_sources:
            return [head + tail]
        if all(len(lines_of_source) == 1 for lines_of_source in lines_of_sources):
            inner = ", ".join(lines_of_source[0] for lines_of_source in lines_of_sources) + (
                "," if len(lines_of_sources) == 1 else ""
            )
            if len(head) + len(inner) + len(tail) < WIDTH:
                return [f"{head}, src=({inner}){tail}"]
        source_lines: list[str] = []
        for lines_of_source in lines_of_sources:
            source_lines += lines_of_source[:-1]
            source_lines.append(lines_of_source[-1] + ",")
        return [f"{head}, src=(", *_indent(source_lines), f"){tail}"]


def _indent(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]

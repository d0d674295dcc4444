"""Walks over directed acyclic graphs. They are iterative, so that deep graphs do not reach the recursion limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def toposort(roots: Iterable[T], sources: Callable[[T], Iterable[T]]) -> list[T]:
    """Returns every node reachable from `roots`, each after all of its sources, in a stable order."""
    order: list[T] = []
    visited: set[T] = set()
    stack: list[tuple[T, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, sources_done = stack.pop()
        if sources_done:
            order.append(node)
            continue
        if node in visited:
            continue
        visited.add(node)
        stack.append((node, True))
        stack.extend((src, False) for src in reversed(list(sources(node))) if src not in visited)
    return order


def consumers(order: Iterable[T], sources: Callable[[T], Iterable[T]]) -> dict[T, list[T]]:
    """Returns for each node of `order` the nodes that read it, each once, in the given order."""
    users: dict[T, list[T]] = {node: [] for node in order}
    for node in users:
        for src in dict.fromkeys(sources(node)):
            if src in users:
                users[src].append(node)
    return users

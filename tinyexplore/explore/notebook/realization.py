"""Realizes all Tensors of a result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tinyexplore.tensor import Tensor


def realize_all(value: Any) -> int:
    """Realizes every Tensor in `value`, nested in tuples, lists and dicts, and returns their number."""
    tensors = list(_yield_tensors(value))
    if tensors:
        tensors[0].realize(*tensors[1:])
    return len(tensors)


def _yield_tensors(value: Any) -> Iterator[Tensor]:
    """Yields the Tensors in nested containers, in order; visits each container once.

    No code of the user's classes runs.
    """
    left, visited = [value], set[int]()
    while left:
        value = left.pop()
        kind = type(value)
        if issubclass(kind, Tensor):
            yield value
        elif id(value) in visited:
            continue
        elif issubclass(kind, dict):
            visited.add(id(value))
            left += reversed(list(dict.values(value)))
        elif issubclass(kind, (list, tuple)):
            visited.add(id(value))
            left += reversed(list(list.__iter__(value) if issubclass(kind, list) else tuple.__iter__(value)))


__all__ = ["realize_all"]

"""The dialect of a trace: the levels and languages of its compiler, and the panels that this compiler supports."""

from __future__ import annotations

from typing import Final

from tinyexplore.explore.tracefile.model import Dialect, Language, Level, Node, TraceTables
from tinyexplore.explore.tracefile.texts import LANGUAGE_NAMES

OWN: Final = Dialect(
    compiler="tinyexplore",
    version="",
    levels=(
        Level("lazybuffer", "LazyBuffer", "LazyBuffers", "tensors"),
        Level("uop", "UOp", "UOps", "program"),
    ),
    languages=tuple(Language(key, name) for key, name in LANGUAGE_NAMES.items()),
    panels=(),
)
"""The dialect of a trace without one. It supports every panel whose data exists."""


def dialect_of(trace: TraceTables) -> Dialect:
    """Returns the dialect of a trace; the dialect of tinyexplore if the trace has none."""
    return trace.dialect or OWN


def tensor_kinds(trace: TraceTables) -> frozenset[str]:
    """Returns the kinds of the nodes that form the graph of the whole program."""
    return frozenset(level.kind for level in dialect_of(trace).levels if level.role == "tensors")


def is_tensor(trace: TraceTables, node: Node) -> bool:
    """Whether a node belongs to the graph of the whole program, not to the graph of a stage."""
    return any(level.kind == node.kind and level.role == "tensors" for level in dialect_of(trace).levels)


def level_for(trace: TraceTables, role: str) -> Level | None:
    """Returns the first level with this role ("tensors" or "program"), or None if the compiler has none."""
    return next((level for level in dialect_of(trace).levels if level.role == role), None)


def language_name(trace: TraceTables, key: str) -> str:
    """Returns the display name of a language."""
    named = {language.key: language.name for language in dialect_of(trace).languages}
    return named.get(key) or LANGUAGE_NAMES.get(key, key)


__all__ = ["OWN", "dialect_of", "is_tensor", "language_name", "level_for", "tensor_kinds"]

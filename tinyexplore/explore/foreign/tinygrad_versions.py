"""Reads the rewrites that tinygrad's tracking records, in versions 0.10.3 and later."""

from __future__ import annotations

import importlib
import os.path
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from tinyexplore.explore.foreign.dump import ForeignError
from tinyexplore.explore.foreign.trace_builder import strip_colors

FIRST = "0.10.3"  # earlier versions assign a match to the last rewrite that began, which can be another one


@dataclass(frozen=True, slots=True)
class TrackedRewrite:
    """One rewrite of a graph.

    name: tinygrad's name; before 0.12 it may be the position of the call.
    sink: the number of the UOp that was rewritten.
    depth: the number of enclosing rewrites.
    walk: whether it is a single walk, which does not visit the results of rules.
    enter_calls: whether it enters the bodies of calls.
    matches: for each match, the numbers of the UOp before and after it, the file and line of the pattern, and seconds.
    """

    name: str
    sink: int
    depth: int
    walk: bool
    enter_calls: bool
    matches: list[tuple[int, int, tuple[str, int], float]]


class Tracking:
    """The tracking data of the imported tinygrad.

    Versions before 0.11 store UOps, later ones their numbers. Version 0.12 added times of matches, 0.14 the two flags.

    Raises:
        ForeignError: this version has no tracking data.
    """

    def __init__(self) -> None:
        self.version = metadata.version("tinygrad")
        ops = _ops(self.version)
        self._ops = ops
        self._numbers: dict[int, int] = {}
        self._numbered: list[Any] = []  # keeps these UOps alive
        self.fields: dict[int, tuple[Any, ...]] = getattr(ops, "uop_fields", {})
        """Of a UOp by its number: op, dtype, numbers of its sources, argument, tag and perhaps metadata."""
        if not hasattr(ops, "active_rewrites"):
            raise ForeignError(_unknown_text(self.version))

    @property
    def is_on(self) -> bool:
        """Whether tinygrad was imported with tracking."""
        return bool(self._ops.PatternMatcher.__name__ == "TrackedPatternMatcher")

    def stop(self) -> None:
        """Disables the tracking: at exit tinygrad would write a pickle and print."""
        self._ops.TRACK_MATCH_STATS.value = 0

    @property
    def count(self) -> int:
        """Returns the number of groups that tinygrad has recorded so far."""
        return len(self._ops.tracked_keys)

    def groups(self, first: int) -> Iterator[tuple[str, list[TrackedRewrite]]]:
        """Yields the name and the rewrites of each schedule or kernel."""
        for key, rewrites in zip(self._ops.tracked_keys[first:], self._ops.tracked_ctxs[first:]):
            name = getattr(key, "display_name", None) or getattr(key, "name", None) or key
            shown = str(name) if isinstance(name, str) else type(key).__name__
            yield strip_colors(shown), [self._rewrite(rewrite) for rewrite in rewrites]

    def _rewrite(self, rewrite: Any) -> TrackedRewrite:
        matches = []
        for before, after, pattern, *seconds in rewrite.matches:
            if pattern is not None and after is not None:
                location = getattr(pattern, "location", pattern)
                matches.append(
                    (self.number(before), self.number(after), (location[0], location[1]), *(seconds or [0.0]))
                )
        return TrackedRewrite(
            name=name_of(rewrite),
            sink=self.number(rewrite.sink),
            depth=getattr(rewrite, "depth", 0),
            walk=bool(getattr(rewrite, "walk", False)),
            enter_calls=bool(getattr(rewrite, "enter_calls", True)),
            matches=matches,
        )

    def number(self, uop: Any) -> int:
        """Returns the number of a UOp. Before 0.11 UOps have none and are numbered here, after their sources."""
        if isinstance(uop, int):
            return uop
        stack = [uop]
        while stack:
            pending = [source for source in stack[-1].src if id(source) not in self._numbers]
            stack += pending
            if not pending:
                self._add(stack.pop())
        return self._numbers[id(uop)]

    def _add(self, uop: Any) -> None:
        if id(uop) in self._numbers:
            return
        note = getattr(uop, "metadata", None)
        notes = () if note is None else note if isinstance(note, tuple) else (note,)
        number = self._numbers[id(uop)] = len(self._numbered)
        self._numbered.append(uop)
        sources = tuple(self._numbers[id(source)] for source in uop.src)
        self.fields[number] = (uop.op, uop.dtype, sources, uop.arg, getattr(uop, "tag", None), notes)


def name_of(rewrite: Any) -> str:
    """Returns the name of a recorded rewrite, or the position of its call if it has none."""
    name = getattr(rewrite, "name", None)
    return name or f"rewrite at {os.path.basename(rewrite.loc[0])}:{rewrite.loc[1]}"


def _ops(version: str) -> Any:
    for name in ("tinygrad.uop.ops", "tinygrad.ops"):  # the second one before 0.11
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ForeignError(_unknown_text(version))


def _unknown_text(version: str) -> str:
    return f"tinygrad {version} notes no rewrites that can be read; {FIRST} and later do: pip install -U tinygrad"


__all__ = ["FIRST", "TrackedRewrite", "Tracking", "name_of"]

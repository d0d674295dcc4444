"""Substitutes nodes of an ast and records the replacement of each axis."""

from __future__ import annotations

from collections.abc import Iterable

from tinyexplore.trace import Derived, active_recorder
from tinyexplore.uop import Ops, UOp


def substitute_recorded(root: UOp, changes: dict[UOp, UOp], how: str) -> UOp:
    """Returns `root.substitute(changes)`, and records the replacement of each axis."""
    recorder = active_recorder()
    if recorder is not None:
        for before, after in changes.items():
            if before.op is not Ops.RANGE:
                continue
            for part in after.toposort():
                if part is after or part.op is Ops.RANGE:
                    recorder.record(Derived(before, part, how))
    return root.substitute(changes, how=how)


def record_derived(pairs: Iterable[tuple[UOp, UOp]], how: str) -> None:
    """Records for each pair that the second node was derived from the first, if they differ."""
    recorder = active_recorder()
    if recorder is not None:
        for before, after in pairs:
            if before is not after:
                recorder.record(Derived(before, after, how))

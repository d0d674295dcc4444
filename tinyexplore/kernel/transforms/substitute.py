"""Substitution that records what became of each axis."""

from __future__ import annotations

from collections.abc import Iterable

from tinyexplore.trace import Derived, active_recorder
from tinyexplore.uop import Ops, UOp


def substitute_recorded(root: UOp, changes: dict[UOp, UOp], how: str) -> UOp:
    """`root.substitute(changes)`, with what became of each axis recorded as well."""
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
    """Records what was derived from what, where the two differ."""
    recorder = active_recorder()
    if recorder is not None:
        for before, after in pairs:
            if before is not after:
                recorder.record(Derived(before, after, how))

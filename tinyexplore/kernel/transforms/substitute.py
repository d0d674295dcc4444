"""Substitutes nodes of an ast and records the replacement of each axis."""

from __future__ import annotations

from collections.abc import Iterable

from tinyexplore.trace import NodeDerived, active_recorder
from tinyexplore.uop import Ops, UOp


def substitute_recorded(root: UOp, changes: dict[UOp, UOp], how: str) -> UOp:
    """Returns `root.substitute(changes)`, and records the replacement of each axis."""
    recorder = active_recorder()
    if recorder is not None:
        for axis, replacement in changes.items():
            if axis.op is not Ops.RANGE:
                continue
            for node in replacement.toposort():
                if node is replacement or node.op is Ops.RANGE:
                    recorder.record(NodeDerived(axis, node, how))
    return root.substitute(changes, how=how)


def record_derived(pairs: Iterable[tuple[UOp, UOp]], how: str) -> None:
    """Records for each pair that the second node was derived from the first, if they differ."""
    recorder = active_recorder()
    if recorder is not None:
        for before, after in pairs:
            if before is not after:
                recorder.record(NodeDerived(before, after, how))

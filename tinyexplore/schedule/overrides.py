"""The user's overrides of fusion: nodes to store although they could be fused, and nodes to fuse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyexplore.lazy import LazyBuffer


@dataclass(frozen=True, eq=False)
class Overrides:
    """The user's overrides of fusion decisions.

    cut: nodes that get memory, and a separate kernel.
    join: nodes that are computed in the kernels that read them, at any cost. If a node must be in memory, the kernel
    that reads it also stores it, if possible. A node that cannot be joined is realized as usual, and its decision
    states the reason (`ScheduleDecided.legality_error`).
    """

    cut: frozenset[LazyBuffer] = frozenset()
    join: frozenset[LazyBuffer] = frozenset()

    def over(self, rebuilt: Callable[[LazyBuffer], LazyBuffer]) -> Overrides:
        """Returns the same overrides for a rebuilt graph, in which `rebuilt(node)` replaces each node."""
        return Overrides(frozenset(map(rebuilt, self.cut)), frozenset(map(rebuilt, self.join)))


NO_OVERRIDES = Overrides()

__all__ = ["NO_OVERRIDES", "Overrides"]

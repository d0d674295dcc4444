"""Where the scheduler is overridden: what gets memory though it could be fused, and what is fused all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyexplore.lazy import LazyBuffer


@dataclass(frozen=True, eq=False)
class Overrides:
    """cut: nodes that get memory, and a kernel of their own. join: nodes that are computed where they are read,
    whatever that costs; one that must lie in memory is stored by the kernel that reads it, where that can be. What
    cannot be joined is realised as ever, and its decision says what forbids it (`Decided.obstacle`)."""

    cut: frozenset[LazyBuffer] = frozenset()
    join: frozenset[LazyBuffer] = frozenset()

    def over(self, rebuilt: Callable[[LazyBuffer], LazyBuffer]) -> Overrides:
        """The same for a graph in which `made` of each node stands for it."""
        return Overrides(frozenset(map(rebuilt, self.cut)), frozenset(map(rebuilt, self.join)))


NO_OVERRIDES = Overrides()

__all__ = ["NO_OVERRIDES", "Overrides"]

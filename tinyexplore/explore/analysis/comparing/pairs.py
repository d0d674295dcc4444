"""The kernels and listings of two captures in pairs: what a comparison and its page are made of."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from tinyexplore.explore.analysis.comparing.difference import StagePair, TraceDiff
from tinyexplore.explore.analysis.comparing.noise import Times
from tinyexplore.explore.tracefile.model import KernelInfo, Node
from tinyexplore.explore.tracefile.readable import ReadableRow

Change = Literal["same", "changed", "only in a", "only in b"]


CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True, repr=False)
class ListingPair(ReadableRow):
    """One language's listing of a kernel in a and in b, as lines; None where only the other has one."""

    language: str
    a: tuple[str, ...] | None
    b: tuple[str, ...] | None

    @property
    def same(self) -> bool:
        return self.a == self.b

    def lines(self, context: int = CONTEXT_LINES) -> tuple[str, ...]:
        """The difference as a unified diff without file names; no line where there is none."""
        if self.a is None or self.b is None:
            return ()
        return tuple(difflib.unified_diff(self.a, self.b, n=context, lineterm=""))[2:]


@dataclass(frozen=True, slots=True, repr=False)
class KernelPair(ReadableRow):
    """A kernel of a and the one of b that stands in its place; None where there is none.

    `reasons`: what differs, as text ("opts", "c", "uops"). `first`: the first stage in which the two part. `only_a`
    and `only_b`: the nodes of the program that the other has no equal of.
    """

    a: KernelInfo | None
    b: KernelInfo | None
    change: Change
    reasons: tuple[str, ...]
    first: StagePair | None
    only_a: tuple[Node, ...]
    only_b: tuple[Node, ...]
    listings: tuple[ListingPair, ...]
    times: Times

    @property
    def name(self) -> str:
        """ "r_64_64", or "r_64_64 → r_16_64" where the two have different names."""
        names = dict.fromkeys(kernel.name for kernel in (self.a, self.b) if kernel is not None)
        return " → ".join(names)


def first_words(difference: TraceDiff) -> str:
    """Where two traces part, as text."""
    if difference.first is None:
        return "the same nodes in the same stages"
    where = "" if difference.first.kernel is None else f" of kernel {difference.first.kernel}"
    return f"they part in stage {difference.first.name!r}{where}"


def change_words(pair: KernelPair) -> str:
    """ "changed: opts, uops, c", "only in a"."""
    return f"{pair.change}: {', '.join(pair.reasons)}" if pair.reasons else pair.change

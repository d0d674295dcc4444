"""Pairs of kernels and listings of two captures, for a comparison and its page."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal, Protocol

from tinyexplore.explore.analysis.comparisons.noise import TimeComparison
from tinyexplore.explore.analysis.comparisons.trace_diff import StagePair, TextPair, TraceDiff
from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import KernelInfo, Node
from tinyexplore.explore.tracefile.result_display import DisplayableRow

Change = Literal["same", "changed", "only in a", "only in b"]


CONTEXT_LINES = 3


class ComparisonSummary(Protocol):
    """The data of a summary; a Comparison has it."""

    @property
    def kernels(self) -> tuple[KernelPair, ...]: ...

    @property
    def changed(self) -> tuple[KernelPair, ...]: ...

    @property
    def texts(self) -> tuple[TextPair, ...]: ...

    @property
    def stages(self) -> tuple[StagePair, ...]: ...


@dataclass(frozen=True, slots=True, repr=False)
class ListingPair(DisplayableRow):
    """One listing of a kernel in two traces.

    language: the language of the listing.
    a: its lines in the first trace, None if only the other one has it.
    b: its lines in the second trace, None if only the other one has it.
    """

    language: str
    a: tuple[str, ...] | None
    b: tuple[str, ...] | None

    @property
    def same(self) -> bool:
        return self.a == self.b

    def lines(self, context: int = CONTEXT_LINES) -> tuple[str, ...]:
        """Returns the difference as a unified diff without file names; empty if there is none."""
        if self.a is None or self.b is None:
            return ()
        return tuple(difflib.unified_diff(self.a, self.b, n=context, lineterm=""))[2:]


@dataclass(frozen=True, slots=True, repr=False)
class KernelPair(DisplayableRow):
    """A kernel of the first trace, and its partner in the second.

    a: the kernel of the first trace, None if only the other one has it.
    b: the kernel of the second trace, None if only the other one has it.
    change: whether it is equal, changed, new or gone.
    reasons: the differing parts ("opts", "c", "uops").
    first: the first stage that differs, None for none.
    only_a: the nodes that only the first program has.
    only_b: the nodes that only the second program has.
    listings: the listings that both have.
    times: the times of both.
    """

    a: KernelInfo | None
    b: KernelInfo | None
    change: Change
    reasons: tuple[str, ...]
    first: StagePair | None
    only_a: tuple[Node, ...]
    only_b: tuple[Node, ...]
    listings: tuple[ListingPair, ...]
    times: TimeComparison

    @property
    def name(self) -> str:
        """The name of both kernels: "r_64_64", or "r_64_64 → r_16_64" if the names differ."""
        names = dict.fromkeys(kernel.name for kernel in (self.a, self.b) if kernel is not None)
        return " → ".join(names)


def describe_first_difference(difference: TraceDiff) -> str:
    """Returns the first difference between two traces, as text."""
    if difference.first is None:
        return "the same nodes in the same stages"
    owner = "" if difference.first.kernel is None else f" of kernel {difference.first.kernel}"
    return f"they differ from stage {difference.first.name!r}{owner}"


def describe_counts(comparison: ComparisonSummary) -> str:
    """Returns the counts as text: "3 kernels, 1 changed", "2 of 3 texts differ at the end, 17 stages made another"."""
    texts = comparison.texts
    facts = []
    if comparison.kernels or not texts:
        facts.append(f"{count_text(len(comparison.kernels), 'kernel')}, {len(comparison.changed)} changed")
    if texts:
        differing = sum(not text.same for text in texts)
        facts.append(f"{differing} of {count_text(len(texts), 'text')} differ at the end")
        facts.append(f"{count_text(len(comparison.stages), 'stage')} with a different text")
    return ", ".join(facts)


def describe_change(pair: KernelPair) -> str:
    """Returns the change of a pair as text: "changed: opts, uops, c", "only in a"."""
    return f"{pair.change}: {', '.join(pair.reasons)}" if pair.reasons else pair.change

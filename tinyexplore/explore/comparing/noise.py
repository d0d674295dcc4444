"""Whether two sets of timings differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, median
from typing import Literal

from tinyexplore.explore.model import Run

Verdict = Literal["faster", "slower", "noise", "unknown"]

LEAST_RUNS = 5  # with fewer on a side the rank test cannot reach its level
LEVEL = 0.01


@dataclass(frozen=True, slots=True)
class Times:
    """The timings of a kernel in a and in b, in microseconds: medians, quartiles, and what their difference is worth.

    `ratio` is b's median over a's. `verdict`: b is "faster" or "slower"; "noise": the difference is no more than that;
    "unknown": there are too few runs to tell. `p_value`: how often chance alone would part the ranks as far.
    """

    a: Run | None
    b: Run | None
    ratio: float | None
    verdict: Verdict
    p_value: float | None

    @property
    def words(self) -> str:
        """ "12.1 µs (11.9 to 12.4) → 6.0 µs (5.9 to 6.1): 2.02 times as fast"."""
        spans = " → ".join("not run" if run is None else _span(run) for run in (self.a, self.b))
        match self.verdict, self.ratio:
            case "unknown", None:
                return spans
            case "unknown", _:
                return f"{spans}: fewer than {LEAST_RUNS} runs on a side, nothing can be said"
            case "noise", _:
                return f"{spans}: no more than noise"
            case "faster", ratio if ratio:
                return f"{spans}: {1 / ratio:.2f} times as fast"
            case _, ratio:
                return f"{spans}: takes {ratio:.2f} times as long"


def _span(run: Run) -> str:
    return f"{run.median_us:.4g} µs ({run.low_us:.4g} to {run.high_us:.4g})"


def compare_times(a: Run | None, b: Run | None) -> Times:
    """A difference is more than noise where the quartiles do not overlap and the rank test is below its level of 1 %.

    The rank test alone would call a drift of the clock's speed between two captures a difference, quartiles alone
    one of few runs.
    """
    if a is None or b is None or not a.median_us or not b.median_us:
        return Times(a, b, None, "unknown", None)
    ratio = b.median_us / a.median_us
    if min(len(a.times_us), len(b.times_us)) < LEAST_RUNS:
        return Times(a, b, ratio, "unknown", None)
    p_value = rank_test(a.times_us, b.times_us)
    apart = a.high_us < b.low_us or b.high_us < a.low_us
    if not apart or p_value >= LEVEL:
        return Times(a, b, ratio, "noise", p_value)
    return Times(a, b, ratio, "slower" if median(b.times_us) > median(a.times_us) else "faster", p_value)


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of the Mann–Whitney U test, by the normal approximation, corrected for ties and
    continuity."""
    both = sorted([*a, *b])
    ranks: dict[float, float] = {}
    ties = 0
    first = 0
    while first < len(both):
        last = first
        while last + 1 < len(both) and both[last + 1] == both[first]:
            last += 1
        ranks[both[first]] = (first + last) / 2 + 1
        count = last - first + 1
        ties += count**3 - count
        first = last + 1
    n, m = len(a), len(b)
    u = sum(ranks[value] for value in a) - n * (n + 1) / 2
    total = n + m
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(abs(u - n * m / 2) - 0.5, 0.0) / sqrt(variance)
    return 2 * (1 - NormalDist().cdf(z))

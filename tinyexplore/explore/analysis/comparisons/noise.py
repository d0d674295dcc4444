"""Whether two sets of timings differ by more than chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, median
from typing import Literal

from tinyexplore.explore.tracefile.figures import span_text
from tinyexplore.explore.tracefile.model import Run
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.texts import figures_text

Verdict = Literal["faster", "slower", "noise", "unknown"]

MIN_SAMPLES = 5  # fewest samples on a side for which the rank test can reach its level
LEVEL = 0.01
CLEAR_RATIO = 2.0  # slowest sample of one side / fastest of the other, from which on two samples a side are enough
COUNTED_SAMPLES = 24  # most samples on both sides together for which every order is counted


@dataclass(frozen=True, slots=True, repr=False)
class TimeComparison(DisplayableRow):
    """The times of a kernel in two traces.

    a: the samples of the first trace, None without.
    b: the samples of the second trace, None without.
    ratio: b's median / a's median, None without samples.
    verdict: b is "faster" or "slower"; "noise": the difference is not significant; "unknown": there are too few
        samples.
    p_value: the probability that chance alone separates the ranks this far, None without samples.
    """

    a: Run | None
    b: Run | None
    ratio: float | None
    verdict: Verdict
    p_value: float | None

    @property
    def text(self) -> str:
        """Returns both times as text: "12.1 µs (11.9 to 12.4 µs) → 6.00 µs (5.90 to 6.10 µs): 2.02 times as fast"."""
        spans = " → ".join("not run" if run is None else span_text(run) for run in (self.a, self.b))
        match self.verdict, self.ratio:
            case "unknown", None if self.a is not None and self.b is not None and self.a.warm != self.b.warm:
                return f"{spans}: samples with warm caches and a single cold run are not comparable"
            case "unknown", None:
                return spans
            case "unknown", _ if self.p_value is None:
                return f"{spans}: fewer than {MIN_SAMPLES} runs on a side, too few to compare"
            case "unknown", _:
                return f"{spans}: too few samples, or their spread is too large"
            case "noise", _:
                return f"{spans}: no difference beyond the spread"
            case "faster", ratio if ratio:
                return f"{spans}: {figures_text(1 / ratio)} times as fast"
            case _, ratio:
                return f"{spans}: takes {figures_text(ratio or 0.0)} times as long"


def compare_times(a: Run | None, b: Run | None) -> TimeComparison:
    """Compares two times. A difference is significant if the quartiles do not overlap and the rank test is below 1 %.

    With fewer samples, all samples of one side must take at least twice as long as all of the other.
    If the quartiles do not overlap but the rank test is above its level, there are too few samples.

    The rank test alone would report a drift of the clock between two captures. Quartiles alone would report a
    difference between a few samples.
    """
    if a is None or b is None or not a.median_us or not b.median_us:
        return TimeComparison(a, b, None, "unknown", None)
    if a.warm != b.warm:
        return TimeComparison(a, b, None, "unknown", None)
    ratio = b.median_us / a.median_us
    if (fewest := min(len(a.times_us), len(b.times_us))) < MIN_SAMPLES:
        if fewest >= 2 and CLEAR_RATIO * max(a.times_us) <= min(b.times_us):
            return TimeComparison(a, b, ratio, "slower", None)
        if fewest >= 2 and CLEAR_RATIO * max(b.times_us) <= min(a.times_us):
            return TimeComparison(a, b, ratio, "faster", None)
        return TimeComparison(a, b, ratio, "unknown", None)
    p_value = rank_test(a.times_us, b.times_us)
    if a.high_us >= b.low_us and b.high_us >= a.low_us:
        return TimeComparison(a, b, ratio, "noise", p_value)
    if p_value >= LEVEL:  # separate quartiles, but some samples lie among the others
        return TimeComparison(a, b, ratio, "unknown", p_value)
    return TimeComparison(a, b, ratio, "slower" if median(b.times_us) > median(a.times_us) else "faster", p_value)


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """Returns the two-sided p-value of the Mann–Whitney U test: exact for few samples, else the normal approximation.

    For five samples against five larger ones, the approximation gives 1.2 %; the exact value is 2 of 252.
    """
    ranks = _compute_doubled_ranks([*a, *b])
    if len(ranks) <= COUNTED_SAMPLES:
        return _compute_exact_p_value(ranks, len(a))
    return _compute_normal_p_value(ranks, len(a))


def _compute_doubled_ranks(values: Sequence[float]) -> list[int]:
    """Returns twice the rank of each value, from 1 on; equal values share their mean rank."""
    first: dict[float, int] = {}
    count: dict[float, int] = {}
    for rank, value in enumerate(sorted(values)):
        first.setdefault(value, rank)
        count[value] = count.get(value, 0) + 1
    return [2 * first[value] + count[value] + 1 for value in values]


def _compute_exact_p_value(ranks: Sequence[int], n: int) -> float:
    """Returns the share of all choices of n ranks that are at least as extreme as the first n ranks."""
    # by the number of chosen ranks: sum → number of ways
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(n))]
    for rank in ranks:
        for chosen in range(n, 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + rank] = ways[chosen].get(total + rank, 0) + count
    mean = n * (len(ranks) + 1)
    distance = abs(sum(ranks[:n]) - mean)
    extreme_choices = sum(count for total, count in ways[n].items() if abs(total - mean) >= distance)
    return extreme_choices / sum(ways[n].values())


def _compute_normal_p_value(ranks: Sequence[int], n: int) -> float:
    """Returns the p-value by the normal approximation, corrected for ties and continuity."""
    total = len(ranks)
    m = total - n
    ties = sum(count**3 - count for count in Counter(ranks).values())
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(abs(sum(ranks[:n]) - n * (total + 1)) / 2 - 0.5, 0.0) / sqrt(variance)
    return 2 * (1 - NormalDist().cdf(z))

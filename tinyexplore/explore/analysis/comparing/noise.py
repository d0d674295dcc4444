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
from tinyexplore.explore.tracefile.readable import ReadableRow

Verdict = Literal["faster", "slower", "noise", "unknown"]

LEAST_RUNS = 5  # with fewer on a side the rank test cannot reach its level
LEVEL = 0.01
COUNTED = 24  # runs on both sides together, up to which every order of them is counted


@dataclass(frozen=True, slots=True, repr=False)
class Times(ReadableRow):
    """The times of a kernel in two traces.

    a: the samples of the first trace, None without.
    b: the samples of the second trace, None without.
    ratio: b's median over a's, None without samples.
    verdict: b is "faster" or "slower"; "noise": the difference is not larger; "unknown": there are too few samples.
    p_value: the probability that chance alone separates the ranks as far, None without samples.
    """

    a: Run | None
    b: Run | None
    ratio: float | None
    verdict: Verdict
    p_value: float | None

    @property
    def words(self) -> str:
        """ "12.1 µs (11.9 to 12.4 µs) → 6.00 µs (5.90 to 6.10 µs): 2.02 times as fast"."""
        spans = " → ".join("not run" if run is None else span_text(run) for run in (self.a, self.b))
        match self.verdict, self.ratio:
            case "unknown", None if self.a is not None and self.b is not None and self.a.warm != self.b.warm:
                return f"{spans}: samples with warm caches and a single cold run are not comparable"
            case "unknown", None:
                return spans
            case "unknown", _ if self.p_value is None:
                return f"{spans}: fewer than {LEAST_RUNS} runs on a side, too few to compare"
            case "unknown", _:
                return f"{spans}: too few samples, or their spread is too large"
            case "noise", _:
                return f"{spans}: no difference beyond the spread"
            case "faster", ratio if ratio:
                return f"{spans}: {1 / ratio:.2f} times as fast"
            case _, ratio:
                return f"{spans}: takes {ratio:.2f} times as long"


def compare_times(a: Run | None, b: Run | None) -> Times:
    """A difference is more than noise where the quartiles do not overlap and the rank test is below its level of 1 %;
    where they do not, and it is above, more samples would decide.

    The rank test alone would call a drift of the clock's speed between two captures a difference, quartiles alone
    one of few runs.
    """
    if a is None or b is None or not a.median_us or not b.median_us:
        return Times(a, b, None, "unknown", None)
    if a.warm != b.warm:
        return Times(a, b, None, "unknown", None)
    ratio = b.median_us / a.median_us
    if min(len(a.times_us), len(b.times_us)) < LEAST_RUNS:
        return Times(a, b, ratio, "unknown", None)
    p_value = rank_test(a.times_us, b.times_us)
    if a.high_us >= b.low_us and b.high_us >= a.low_us:
        return Times(a, b, ratio, "noise", p_value)
    if p_value >= LEVEL:  # far apart, and a run or two among the others'
        return Times(a, b, ratio, "unknown", p_value)
    return Times(a, b, ratio, "slower" if median(b.times_us) > median(a.times_us) else "faster", p_value)


def rank_test(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of the Mann–Whitney U test: of few runs by counting, of many by the normal approximation.

    The approximation gives five runs against five that are all longer 1.2 %, in truth it is 2 of 252.
    """
    ranks = _doubled_ranks([*a, *b])
    if len(ranks) <= COUNTED:
        return _counted_p_value(ranks, len(a))
    return _normal_p_value(ranks, len(a))


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value from 1 on; equal ones share the mean of theirs."""
    first: dict[float, int] = {}
    count: dict[float, int] = {}
    for rank, value in enumerate(sorted(values)):
        first.setdefault(value, rank)
        count[value] = count.get(value, 0) + 1
    return [2 * first[value] + count[value] + 1 for value in values]


def _counted_p_value(ranks: Sequence[int], n: int) -> float:
    """The share of all choices of n ranks whose sum is at least as far from the mean as the sum of the first n."""
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in range(n))]  # by how many are chosen: sum -> ways
    for rank in ranks:
        for chosen in range(n, 0, -1):
            for total, count in ways[chosen - 1].items():
                ways[chosen][total + rank] = ways[chosen].get(total + rank, 0) + count
    mean = n * (len(ranks) + 1)
    distance = abs(sum(ranks[:n]) - mean)
    far = sum(count for total, count in ways[n].items() if abs(total - mean) >= distance)
    return far / sum(ways[n].values())


def _normal_p_value(ranks: Sequence[int], n: int) -> float:
    """Corrected for ties and continuity."""
    total = len(ranks)
    m = total - n
    ties = sum(count**3 - count for count in Counter(ranks).values())
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0:
        return 1.0
    z = max(abs(sum(ranks[:n]) - n * (total + 1)) / 2 - 0.5, 0.0) / sqrt(variance)
    return 2 * (1 - NormalDist().cdf(z))

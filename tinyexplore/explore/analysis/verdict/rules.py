"""The rules in order: each is a condition on the facts, with its threshold and the reason.

`judge` is a pure function of the facts, so stored facts give the same kind on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tinyexplore.explore.analysis.verdict.facts import WAKE_UP_US, KernelFacts
from tinyexplore.explore.tracefile.result_display import DisplayableRow

VERDICT_KINDS = (
    "bandwidth",
    "compute",
    "latency",
    "random access",
    "strided access",
    "re-reads",
    "redundant work",
    "unaligned loads",
    "not vectorized",
    "one thread",
    "launch overhead",
    "spills",
    "noise",
    "unexplained",
)
MODEL_ERROR_RATIO = 1.3  # modeled / measured time; above this ratio the model is not used, and no port is named


@dataclass(frozen=True, slots=True, repr=False)
class BottleneckRule(DisplayableRow):
    """A rule of the verdict.

    kind: the bottleneck of a kernel for which the rule holds.
    threshold: the condition, as a sentence.
    reason: the reason, as a sentence.
    holds: the condition, as a function of the facts.
    """

    kind: str
    threshold: str
    reason: str
    holds: Callable[[KernelFacts], bool]


def share_of_time(facts: KernelFacts, time_us: float) -> float:
    """Returns `time_us` / the judged time."""
    return time_us / facts.judged_us if facts.judged_us else 0.0


def _is_compute_longer(facts: KernelFacts) -> bool:
    memory_us, compute_us = facts.least_us
    return compute_us >= memory_us


def _is_launch_bound(facts: KernelFacts) -> bool:
    """Whether launch overhead dominates: the time is at most 3 launches, or 6 if the work is below half a launch."""
    is_tiny = max(facts.least_us) < 0.5 * facts.launch_us
    return facts.judged_us <= (6 if is_tiny else 3) * facts.launch_us


def _is_redundant(facts: KernelFacts) -> bool:
    return facts.redundant >= 4


def _is_random(facts: KernelFacts) -> bool:
    part = share_of_time(facts, facts.gather_us)
    others = max(
        facts.busiest / facts.cycles * facts.code_share if facts.cycles else 0.0, _compute_pattern_share(facts)
    )
    return facts.gathers > 0 and facts.gather_bytes <= 64 and part >= 0.35 and part > others


def _compute_pattern_share(facts: KernelFacts) -> float:
    return share_of_time(facts, facts.pattern_us)


def _compute_bytes_share(facts: KernelFacts) -> float:
    """Returns the share of the time that its bytes explain: read once and in order, plus those its stores fetch."""
    return share_of_time(facts, facts.own_memory_us + facts.fetch_us)


def _has_low_line_use(facts: KernelFacts) -> bool:
    return facts.line_use < 0.5 and share_of_time(facts, max(facts.pattern_us, facts.own_memory_us)) >= 0.5


def _limit_share(facts: KernelFacts) -> float:
    """Returns the least time (the longer of bytes and operations, plus the launch) divided by the measured time."""
    return share_of_time(facts, max(facts.least_us) + facts.launch_us)


def _is_compute_bound(facts: KernelFacts) -> bool:
    return _is_compute_longer(facts) and _limit_share(facts) >= 0.65


def _is_bandwidth_bound(facts: KernelFacts) -> bool:
    return not _is_compute_longer(facts) and _limit_share(facts) >= 0.7


def _is_memory_slow(facts: KernelFacts) -> bool:
    return 0.7 <= share_of_time(facts, facts.stream_us) <= 1.3


def _is_reread(facts: KernelFacts) -> bool:
    """Whether repeated reads from beyond the L2 take longer than the kernel's instructions."""
    return (
        facts.l2_traffic >= 1.8
        and _compute_pattern_share(facts) >= 0.5
        and _compute_pattern_share(facts) > 0.8 * facts.code_share
    )


def _has_rereads(facts: KernelFacts) -> bool:
    return _is_reread(facts) and not _has_short_runs(facts)


def _has_short_runs(facts: KernelFacts) -> bool:
    """Whether the most expensive operand has pieces shorter than a cache line, far apart."""
    return 0 < facts.worst_run < 64 <= facts.worst_pitch


def _has_strided_rereads(facts: KernelFacts) -> bool:
    return _is_reread(facts) and _has_short_runs(facts)


def _is_unaligned(facts: KernelFacts) -> bool:
    part = share_of_time(facts, facts.crossing_us)
    return part >= 0.4 and part > 1.1 * facts.code_share and part > _compute_bytes_share(facts)


def _is_limited_by_short_runs(facts: KernelFacts) -> bool:
    is_far = facts.worst_pitch >= 4096 and facts.worst_run < 4096
    is_longer = facts.pattern_us >= 1.3 * facts.own_memory_us and _compute_pattern_share(facts) > 0.8 * facts.code_share
    return is_far and is_longer and _compute_pattern_share(facts) >= 0.5


def _is_chain_bound(facts: KernelFacts) -> bool:
    waits = facts.has_model and facts.is_carried and facts.cycles >= 1.5 * facts.busiest
    return waits and facts.code_share >= 0.5


def _is_scalar(facts: KernelFacts) -> bool:
    part = facts.code_share if facts.has_model else 1.0
    return facts.has_code and facts.vector == 0 and part >= 0.4


def _has_spills(facts: KernelFacts) -> bool:
    is_often = facts.stack >= 4 and facts.stack >= 0.08 * facts.instructions
    return facts.has_code and is_often and facts.stack >= 0.25 * facts.vector


def _has_set_conflicts(facts: KernelFacts) -> bool:
    is_open = facts.code_share < 0.5 and _compute_bytes_share(facts) < 0.6 and _compute_pattern_share(facts) < 1.0
    return facts.conflict_pitch >= 1024 and is_open


def _is_limited_by_one_thread(facts: KernelFacts) -> bool:
    is_busy = share_of_time(facts, facts.own_limit_us) >= 0.45 or _is_port_bound(facts)
    return _is_single_threaded(facts) and is_busy


def _is_single_threaded(facts: KernelFacts) -> bool:
    """Whether only one of several threads runs, long enough that others could help."""
    return not facts.has_thread_axis and facts.all_threads > 1 and facts.judged_us >= 50


def _is_own_bandwidth_bound(facts: KernelFacts) -> bool:
    return share_of_time(facts, facts.own_limit_us) >= 0.7 and facts.own_memory_us >= facts.own_compute_us


def _is_random_partly(facts: KernelFacts) -> bool:
    part = share_of_time(facts, facts.gather_us)
    return facts.gathers > 0 and facts.gather_bytes <= 64 and part >= 0.12 and part > facts.code_share


def _is_port_bound(facts: KernelFacts) -> bool:
    return facts.has_model and facts.code_share >= 0.6


def _is_memory_partly(facts: KernelFacts) -> bool:
    return (
        max(_compute_bytes_share(facts), _compute_pattern_share(facts)) + share_of_time(facts, facts.launch_us) >= 0.6
    )


def _is_unexplained(facts: KernelFacts) -> bool:
    """Whether its instructions explain less than half of the time, and so do its bytes in order."""
    return facts.has_model and facts.code_share < 0.5 and _compute_bytes_share(facts) < 0.5


def _is_random_remainder(facts: KernelFacts) -> bool:
    return 0 < facts.gather_bytes < 4096 and _is_unexplained(facts) and _compute_pattern_share(facts) < 0.5


def _is_strided_remainder(facts: KernelFacts) -> bool:
    is_apart = facts.worst_pitch >= 1024 and 0 < facts.worst_run < facts.worst_pitch and facts.worst_run < 1024
    return (is_apart or facts.line_use < 0.5) and _is_unexplained(facts) and _compute_pattern_share(facts) >= 0.3


def _compute_mixed_shares(facts: KernelFacts) -> tuple[float, float]:
    """Returns the share of the time that instructions explain, and the share that memory explains."""
    memory = max(_compute_bytes_share(facts), share_of_time(facts, max(facts.pattern_us, facts.refill_us)))
    return facts.code_share, memory + share_of_time(facts, facts.launch_us)


def _is_mixed_compute(facts: KernelFacts) -> bool:
    code, memory = _compute_mixed_shares(facts)
    return code >= memory and code + 0.5 * memory >= 0.5


def _is_mixed_bandwidth(facts: KernelFacts) -> bool:
    code, memory = _compute_mixed_shares(facts)
    return memory > code and memory + 0.5 * code >= 0.5


def _is_memory_remainder(facts: KernelFacts) -> bool:
    is_far = facts.level in ("L3", "memory") and facts.has_model
    return is_far and facts.code_share < 0.25 <= _compute_bytes_share(facts)


def _is_scaling_remainder(facts: KernelFacts) -> bool:
    scales = facts.threads > 1 and facts.single_us >= 0.8 * facts.threads * facts.judged_us
    return scales and not facts.gathers and _compute_bytes_share(facts) < 0.25 and _compute_pattern_share(facts) < 0.25


def _is_short_remainder(facts: KernelFacts) -> bool:
    return facts.judged_us <= min(WAKE_UP_US, 10 * facts.launch_us)


NEEDS_MODEL = (_has_set_conflicts,)  # rules that hold if instructions do not explain the time

RULES = (
    BottleneckRule(
        "launch overhead",
        "The kernel takes at most 3 times the launch overhead, or 6 times if its work takes less than half a launch.",
        "Better code cannot remove the launch, so such a kernel becomes at most 3 times faster (small work: 6 times).",
        _is_launch_bound,
    ),
    BottleneckRule(
        "redundant work",
        "The kernel executes at least 4 times the accumulations that its result needs.",
        "Overlapping tiles and padding add less than 30 %.",
        _is_redundant,
    ),
    BottleneckRule(
        "random access",
        "Accesses to data-dependent addresses explain at least 35 % of the time, the largest share.",
        "The measured rate of such accesses predicts their time within a factor of 2.",
        _is_random,
    ),
    BottleneckRule(
        "strided access",
        "The kernel uses less than half of each fetched cache line, and its memory accesses explain half of the time.",
        "Fetching an unused byte takes as long as fetching a used byte.",
        _has_low_line_use,
    ),
    BottleneckRule(
        "compute",
        "The kernel's arithmetic at peak rate takes at least 65 % of the time.",
        "Good matrix products reach 66 to 79 % of the peak rate.",
        _is_compute_bound,
    ),
    BottleneckRule(
        "bandwidth",
        "Moving the kernel's bytes at the measured bandwidth takes at least 70 % of the time.",
        "Streams on an idle machine reach 74 to 117 % of this bandwidth.",
        _is_bandwidth_bound,
    ),
    BottleneckRule(
        "bandwidth",
        "A stream of the same size, measured with the verdict, takes 70 to 130 % of the time.",
        "Other programs use the memory now, so its bandwidth is below the ceiling.",
        _is_memory_slow,
    ),
    BottleneckRule(
        "strided access",
        "The kernel fetches its bytes at least 1.8 times from L3 or memory, in runs shorter than a cache line.",
        "Sequential accesses fetch each byte once.",
        _has_strided_rereads,
    ),
    BottleneckRule(
        "re-reads",
        "The kernel fetches its bytes at least 1.8 times from L3 or memory.",
        "A tile that stays in the cache fetches each byte once.",
        _has_rereads,
    ),
    BottleneckRule(
        "unaligned loads",
        "Loads that cross cache lines explain at least 40 % of the time, more than bytes or instructions explain.",
        "A load that crosses a cache line takes 2.2 times as long as an aligned load.",
        _is_unaligned,
    ),
    BottleneckRule(
        "strided access",
        "Runs below 4 KB, at least 4 KB apart, explain at least 50 % of the time.",
        "Hardware prefetchers stop at the end of a 4 KB page.",
        _is_limited_by_short_runs,
    ),
    BottleneckRule(
        "latency",
        "Each iteration waits for the previous iteration and takes at least 1.5 times as long as its busiest port.",
        "Iterations without such a dependence take 1.0 to 1.25 times as long as their busiest port.",
        _is_chain_bound,
    ),
    BottleneckRule(
        "not vectorized",
        "The kernel's busiest loop has no vector instruction, and its instructions explain at least 40 % of the time.",
        "One vector instruction computes 4 to 16 values.",
        _is_scalar,
    ),
    BottleneckRule(
        "spills",
        "Stack accesses are at least 8 % of the busiest loop's instructions and 25 % of its vector instructions.",
        "A register tile that fits needs no stack access. A few stack accesses beside much arithmetic cost nothing.",
        _has_spills,
    ),
    BottleneckRule(
        "strided access",
        "The kernel's rows start a multiple of 1 KB apart, so they map to few cache sets.",
        "Padding the rows made such kernels 2.1 to 2.3 times faster.",
        _has_set_conflicts,
    ),
    BottleneckRule(
        "one thread",
        "One of several threads works. It reaches 45 % of its limit, or its instructions explain 60 % of the time.",
        "The idle cores are the largest remaining factor.",
        _is_limited_by_one_thread,
    ),
    BottleneckRule(
        "bandwidth",
        "At the bandwidth of the threads in use, moving the kernel's bytes takes at least 70 % of the time.",
        "A small kernel does not use all threads.",
        _is_own_bandwidth_bound,
    ),
    BottleneckRule(
        "random access",
        "Accesses to data-dependent addresses explain at least 12 % of the time, more than instructions explain.",
        "Other work evicts the table from the caches, so the accesses take longer than measured.",
        _is_random_partly,
    ),
    BottleneckRule(
        "compute",
        "The kernel's instructions explain at least 60 % of the time.",
        "The instruction model explained 77 to 94 % of the time of such loops.",
        _is_port_bound,
    ),
    BottleneckRule(
        "bandwidth",
        "Memory traffic and the launch explain at least 60 % of the time.",
        "Instructions overlap with an unknown share of the memory accesses.",
        _is_memory_partly,
    ),
    BottleneckRule(
        "random access",
        "The kernel reads blocks below 4 KB at data-dependent addresses, and no other cost explains half of the time.",
        "With small pages, a random access takes up to 10 times as long as measured.",
        _is_random_remainder,
    ),
    BottleneckRule(
        "strided access",
        "Short runs far apart, or half-used cache lines, explain 30 % of the time. No other cost explains half.",
        "The rates of short runs were measured with 16 KB rows on large pages. Small pages can be slower.",
        _is_strided_remainder,
    ),
    BottleneckRule(
        "one thread",
        "One of several threads works, and no earlier rule holds.",
        "The idle cores are the largest known factor.",
        _is_single_threaded,
    ),
    BottleneckRule(
        "compute",
        "Instructions and memory together explain half of the time. Instructions take longer than memory.",
        "Instructions and memory accesses overlap in part, so half of the shorter time is added to the longer time.",
        _is_mixed_compute,
    ),
    BottleneckRule(
        "bandwidth",
        "Instructions and memory together explain half of the time. Memory takes longer than instructions.",
        "Instructions and memory accesses overlap in part, so half of the shorter time is added to the longer time.",
        _is_mixed_bandwidth,
    ),
    BottleneckRule(
        "bandwidth",
        "Bytes from L3 or memory explain at least a quarter of the time. Instructions explain less than a quarter.",
        "The kernel waits for memory longer than a copy of the same size.",
        _is_memory_remainder,
    ),
    BottleneckRule(
        "launch overhead",
        "The kernel takes at most 10 times the launch overhead and at most 20 µs, and no earlier rule holds.",
        "At this size startup (thread wake-up, cold caches) dominates.",
        _is_short_remainder,
    ),
    BottleneckRule(
        "compute",
        "The kernel scales with its threads, and memory explains less than a quarter of the time.",
        "Instructions limit a kernel that scales with its threads, even if the model underestimates them.",
        _is_scaling_remainder,
    ),
)


def judge(facts: KernelFacts) -> tuple[str, str, BottleneckRule | None]:
    """Returns the kind of bottleneck, the kind by the fastest sample (differs only for "noise"), and the rule.

    Raises:
        ValueError: the kernel has no samples.
    """
    if not facts.time_us:
        raise ValueError(f"kernel {facts.kernel} has no samples: {facts.not_run or 'capture it with repeat=10'}")
    rule = next((candidate for candidate in RULES if candidate.holds(facts)), None)
    likely = rule.kind if rule is not None else "unexplained"
    return ("noise" if facts.is_disturbed else likely), likely, rule


__all__ = ["VERDICT_KINDS", "NEEDS_MODEL", "RULES", "BottleneckRule", "share_of_time", "judge"]

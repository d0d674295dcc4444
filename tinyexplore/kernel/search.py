"""Beam search: finds the fastest Opts by measurement. The clock is an argument; tests pass a formula."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from random import Random
from typing import Protocol

from tinyexplore.kernel.apply import apply_opt
from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.legality import available_opts
from tinyexplore.kernel.opt import Opt, OptError, OptOps
from tinyexplore.kernel.opts import OPT_KINDS
from tinyexplore.trace import CandidateMeasured, SearchEnded, active_recorder, recording
from tinyexplore.uop import AxisKind, UOp

MAX_UNROLLED_STEPS = (
    64  # most unrolled steps, register tile times unrolling: beyond it, programs grow and registers spill
)
MAX_ROUNDS = 8
PER_ROUND = 32  # candidates of one round per kernel in the beam
BETTER_RATIO = 0.99  # a better kernel takes at most this fraction of the other's time


@dataclass(frozen=True)
class CandidateTime:
    """The measured time of one candidate of a search.

    seconds: seconds of one run; infinite if the candidate failed.
    note: why it failed, or the origin of the time: another candidate with the same program, or a measurement that
    stopped early.
    disturbed: whether other programs used the cores during the measurement, so that the time is unreliable.
    """

    seconds: float
    note: str = ""
    disturbed: bool = False


class Clock(Protocol):
    """Measures kernels for a search."""

    def time_candidates(self, kernels: Sequence[Kernel], best: float) -> Iterable[CandidateTime]:
        """Yields the time of each of `kernels`, in their order, as it becomes known.

        best: the time to beat, in seconds; a kernel that is clearly slower need not be timed to the end.
        """
        ...

    def compare_two(self, first: Kernel, second: Kernel) -> tuple[float, float]:
        """Times both kernels again, interleaved. The fastest of many candidates may only have been lucky."""
        ...


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    kernel: the fastest kernel.
    seconds: its time.
    start_seconds: the time of the first starting kernel.
    tried: the number of candidates measured.
    disturbed: the number of unreliable times, because the machine was busy.
    why_lost: why candidates failed, if none could be measured.
    """

    kernel: Kernel
    seconds: float
    start_seconds: float
    tried: int
    disturbed: int = 0
    why_lost: str = ""

    @property
    def source(self) -> str:
        """The origin of the opts, as text without times. Measured times are recorded only with the candidates."""
        return self.why_lost or f"the fastest of {self.tried} measured candidates"

    @property
    def reason(self) -> str:
        """The outcome as text."""
        if self.why_lost:
            return f"no candidate could be measured, so the default schedule is used: {self.why_lost}"
        busy = f" (other programs ran during {self.disturbed} of the measurements)" if self.disturbed else ""
        if not self.seconds < self.start_seconds * BETTER_RATIO:
            return f"none of {self.tried} measured candidates is faster than the default schedule{busy}"
        if math.isinf(self.start_seconds):
            return f"the fastest of {self.tried} measured candidates; the default schedule could not be measured{busy}"
        gain = self.start_seconds / self.seconds
        times = f"{self.seconds * 1e6:.3g} µs instead of {self.start_seconds * 1e6:.3g} µs"
        ratio = f"{gain:.2f}" if gain < 10 else f"{gain:.3g}"
        faster = f"{ratio}× faster than the default schedule ({times})"
        return f"{faster}, the fastest of {self.tried} measured candidates{busy}"


def beam_search(starts: Iterable[Kernel], width: int, clock: Clock, seed: int = 0) -> SearchResult:
    """Searches for the fastest kernel that opts make of `starts`. Each round keeps the `width` fastest kernels.

    A round tries each single change of each kernel in the beam: one opt more or less, or another amount. If there are
    too many candidates, `seed` determines the selection and its order; equal times keep that order. The result depends
    only on the seed and the clock. The first of `starts` is the baseline: it is the result unless another kernel is
    more than 1 % faster, also in a duel. Each time is recorded as `CandidateMeasured`, the outcome as `SearchEnded`.
    The search records no events of the measurement itself.
    """
    search = _SearchState(clock)
    beam = list(starts)
    start = beam[0]
    random = Random(seed)
    search.time(beam)
    for _ in range(MAX_ROUNDS):
        beam = sorted(beam, key=search.seconds)[:width]
        best_seconds = search.seconds(beam[0])
        if math.isinf(best_seconds):
            break  # no kernel runs
        new_kernels = {
            neighbor.ast: neighbor
            for kernel in beam
            for neighbor in neighbors(kernel)
            if neighbor.ast not in search.known
        }
        if not new_kernels:
            break
        candidates = list(new_kernels.values())
        random.shuffle(candidates)
        candidates = candidates[: PER_ROUND * width]
        search.time(candidates)
        beam.extend(candidates)
        if min(search.seconds(kernel) for kernel in candidates) >= best_seconds * BETTER_RATIO:
            break
    return search.verdict(start, min(beam, key=search.seconds))


class _SearchState:
    """The state of one search: its candidates and their times."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.recorder = active_recorder()
        self.known: dict[UOp, CandidateTime] = {}
        self.best = math.inf

    def seconds(self, kernel: Kernel) -> float:
        return self.known[kernel.ast].seconds

    def time(self, kernels: Sequence[Kernel]) -> None:
        for kernel, timing in zip(kernels, self.measured(kernels), strict=True):
            self.known[kernel.ast] = timing
            self.best = min(self.best, timing.seconds)
            if self.recorder is not None:
                self.recorder.record(CandidateMeasured(kernel, timing.seconds, timing.note))

    def measured(self, kernels: Sequence[Kernel]) -> Iterator[CandidateTime]:
        with recording(None):
            yield from self.clock.time_candidates(kernels, self.best)

    def verdict(self, start: Kernel, best: Kernel) -> SearchResult:
        seconds, start_seconds, why_lost = self.seconds(best), self.seconds(start), ""
        if best.ast is not start.ast and seconds < start_seconds * BETTER_RATIO < math.inf:
            with recording(None):
                start_seconds, seconds = self.clock.compare_two(start, best)
        if math.isinf(seconds):
            why_lost = next((timing.note for timing in self.known.values() if timing.note), "no program ran")
        if not seconds < start_seconds * BETTER_RATIO:
            best, seconds = start, start_seconds
        disturbed = sum(timing.disturbed for timing in self.known.values())
        result = SearchResult(best, seconds, start_seconds, len(self.known), disturbed, why_lost)
        if self.recorder is not None:
            self.recorder.record(SearchEnded(start, best, start_seconds, seconds, result.tried, result.reason))
        return result


# *** candidates ***


def neighbors(kernel: Kernel) -> list[Kernel]:
    """Returns the kernels one change away from `kernel`: with an opt more, an opt less, or another amount."""
    with recording(None):
        results = [apply_opt(kernel, opt) for opt in available_opts(kernel) if not exceeds_limits(kernel, opt)]
        for number, old in enumerate(kernel.applied):
            earlier_opts, later_opts = kernel.applied[:number], kernel.applied[number + 1 :]
            changes: list[tuple[Opt, ...]] = [()]
            other_amounts = [amount for amount in OPT_KINDS[old.op].amounts if amount != old.amount]
            changes += [(Opt(old.op, old.axis, amount),) for amount in other_amounts]
            for change in changes:
                replayed = find_replayed(kernel, (*earlier_opts, *change, *later_opts), limited=True)
                if replayed is not None:
                    results.append(replayed)
    return results


def find_replayed(kernel: Kernel, opts: Sequence[Opt], *, limited: bool = False) -> Kernel | None:
    """Returns `kernel` restarted with `opts`; None if one of them is illegal, or exceeds the limits (if `limited`)."""
    replayed = kernel.restart(kernel.start)
    for opt in opts:
        try:
            if limited and exceeds_limits(replayed, opt):
                return None
            replayed = apply_opt(replayed, opt)
        except OptError:
            return None
    return replayed


def exceeds_limits(kernel: Kernel, opt: Opt) -> bool:
    """Whether the program would be too long, or its vectors too short, to be worth a measurement."""
    if opt.op is OptOps.VECTOR:
        return opt.amount < min(4, kernel.lanes)
    if opt.op not in (OptOps.UPCAST, OptOps.UNROLL):
        return False
    copies = prod(axis.size for axis in kernel.axes if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
    return copies * opt.amount > MAX_UNROLLED_STEPS


__all__ = ["Clock", "SearchResult", "CandidateTime", "beam_search", "find_replayed", "neighbors"]

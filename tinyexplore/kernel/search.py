"""beam_search: the best Opts by measuring. The clock is an argument, so that a formula can stand in for it in tests."""

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
from tinyexplore.kernel.opts import KINDS
from tinyexplore.trace import CandidateMeasured, Searched, active_recorder, recording
from tinyexplore.uop import AxisKind, UOp

MOST_COPIES = 64  # steps written out, register tile times unrolling: beyond it programs grow and registers spill
MOST_ROUNDS = 8
PER_ROUND = 32  # candidates of one round for each kernel that the beam is wide
WORTH_IT = 0.99  # a kernel must take at most this part of another's time to be called better


@dataclass(frozen=True)
class CandidateTime:
    """The measured time of one candidate of a search.

    seconds: seconds of one run; infinite where the candidate failed.
    note: why it failed, or where the time is from: another candidate with the same program, or a measurement that
      stopped early.
    disturbed: whether other programs used the cores during the measurement, so that the time is unreliable.
    """

    seconds: float
    note: str = ""
    disturbed: bool = False


class Clock(Protocol):
    """What measures for a search."""

    def times(self, kernels: Sequence[Kernel], best: float) -> Iterable[CandidateTime]:
        """The time of each of `kernels`, in their order, as it becomes known. `best`: what there is to beat, in
        seconds; a kernel that is clearly slower need not be timed to the end."""
        ...

    def duel(self, first: Kernel, second: Kernel) -> tuple[float, float]:
        """The two once more, run interleaved: a minimum of many measurements favours whoever was lucky."""
        ...


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search.

    kernel: the fastest kernel.
    seconds: its time.
    start_seconds: the time of the first starting kernel.
    tried: number of candidates measured.
    disturbed: number of unreliable times, because the machine was busy.
    why_lost: why candidates failed, where none could be measured.
    """

    kernel: Kernel
    seconds: float
    start_seconds: float
    tried: int
    disturbed: int = 0
    why_lost: str = ""

    @property
    def source(self) -> str:
        """Where the opts come from, without times: those are the search's own, and stand with its candidates only."""
        return self.why_lost or f"the search's choice, of {self.tried} measured"

    @property
    def reason(self) -> str:
        """The outcome as text."""
        if self.why_lost:
            return f"nothing could be measured, the hand-coded choice stays: {self.why_lost}"
        busy = f" (other programs ran during {self.disturbed} of the measurements)" if self.disturbed else ""
        if not self.seconds < self.start_seconds * WORTH_IT:
            return f"none of {self.tried} measured beats the hand-coded choice{busy}"
        if math.isinf(self.start_seconds):
            return f"the best of {self.tried} measured; the hand-coded choice could not be{busy}"
        gain = self.start_seconds / self.seconds
        times = f"{self.seconds * 1e6:.3g} µs instead of {self.start_seconds * 1e6:.3g} µs"
        return f"{gain:.2f}× faster than the hand-coded choice ({times}), the best of {self.tried} measured{busy}"


def beam_search(starts: Iterable[Kernel], width: int, clock: Clock, seed: int = 0) -> SearchResult:
    """The fastest kernel that opts lead to from `starts`, keeping the `width` best of each round.

    A round tries what one change makes of each kernel kept: an opt more, an opt less, another amount. Where there are
    too many, `seed` says which and in what order; equal times keep that order. So the result varies with the seed and
    the clock, and with nothing else. The first of `starts` is the one to beat: it is the result unless another is
    faster by more than 1 %, also in a duel. Each time is recorded as `CandidateMeasured`, the outcome as `Searched`;
    the measurement itself is not recorded.
    """
    search = _Search(clock)
    beam = list(starts)
    first = beam[0]
    random = Random(seed)
    search.time(beam)
    for _ in range(MOST_ROUNDS):
        beam = sorted(beam, key=search.seconds)[:width]
        floor = search.seconds(beam[0])
        if math.isinf(floor):
            break  # nothing runs
        fresh = {after.ast: after for kernel in beam for after in neighbours(kernel) if after.ast not in search.known}
        if not fresh:
            break
        grown = list(fresh.values())
        random.shuffle(grown)
        grown = grown[: PER_ROUND * width]
        search.time(grown)
        beam.extend(grown)
        if min(search.seconds(kernel) for kernel in grown) >= floor * WORTH_IT:
            break
    return search.verdict(first, min(beam, key=search.seconds))


class _Search:
    """What is known of the candidates of one search."""

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
            yield from self.clock.times(kernels, self.best)

    def verdict(self, first: Kernel, best: Kernel) -> SearchResult:
        seconds, start_seconds, why_lost = self.seconds(best), self.seconds(first), ""
        if best.ast is not first.ast and seconds < start_seconds * WORTH_IT < math.inf:
            with recording(None):
                start_seconds, seconds = self.clock.duel(first, best)
        if math.isinf(seconds):
            why_lost = next((timing.note for timing in self.known.values() if timing.note), "no program ran")
        if not seconds < start_seconds * WORTH_IT:
            best, seconds = first, start_seconds
        disturbed = sum(timing.disturbed for timing in self.known.values())
        result = SearchResult(best, seconds, start_seconds, len(self.known), disturbed, why_lost)
        if self.recorder is not None:
            self.recorder.record(Searched(first, best, start_seconds, seconds, result.tried, result.reason))
        return result


# *** candidates ***


def neighbours(kernel: Kernel) -> list[Kernel]:
    """What one change makes of `kernel`: each opt more, each opt less, each other amount of one that it has."""
    with recording(None):
        results = [apply_opt(kernel, opt) for opt in available_opts(kernel) if not is_too_much(kernel, opt)]
        for place, old in enumerate(kernel.applied):
            before, after = kernel.applied[:place], kernel.applied[place + 1 :]
            changes: list[tuple[Opt, ...]] = [()]
            others = [amount for amount in KINDS[old.op].amounts if amount != old.amount]
            changes += [(Opt(old.op, old.axis, amount),) for amount in others]
            for change in changes:
                replayed = find_replayed(kernel, (*before, *change, *after), limited=True)
                if replayed is not None:
                    results.append(replayed)
    return results


def find_replayed(kernel: Kernel, opts: Sequence[Opt], *, limited: bool = False) -> Kernel | None:
    """`opts` from where `kernel` started; None where one is not legal there, or (limited) `is_too_much`."""
    replayed = kernel.restarted(kernel.start)
    for opt in opts:
        try:
            if limited and is_too_much(replayed, opt):
                return None
            replayed = apply_opt(replayed, opt)
        except OptError:
            return None
    return replayed


def is_too_much(kernel: Kernel, opt: Opt) -> bool:
    """True where the program would be too long, or its vectors shorter than is worth a try."""
    if opt.op is OptOps.VECTOR:
        return opt.amount < min(4, kernel.lanes)
    if opt.op not in (OptOps.UPCAST, OptOps.UNROLL):
        return False
    copies = prod(axis.size for axis in kernel.axes if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
    return copies * opt.amount > MOST_COPIES


__all__ = ["Clock", "SearchResult", "CandidateTime", "beam_search", "find_replayed", "neighbours"]

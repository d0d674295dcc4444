"""beam_search: the best Opts by measuring. The clock is an argument, so that a formula can stand in for it in tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import prod

from tinyexplore.kernel.kernel import Kernel
from tinyexplore.kernel.opt import OptOps
from tinyexplore.trace import Measured, active_recorder, recording
from tinyexplore.uop import AxisKind, UOp

MOST_COPIES = 64  # steps written out, register tile times unrolling: beyond it programs grow and registers spill
MOST_ROUNDS = 8
WORTH_IT = 0.99  # a candidate must take at most this part of the best time so far to be called better


@dataclass(frozen=True)
class SearchResult:
    """The fastest `kernel` found, in `seconds`; `tried` how many were measured, `start_seconds` the one to beat."""

    kernel: Kernel
    seconds: float
    start_seconds: float
    tried: int

    @property
    def reason(self) -> str:
        """The outcome in words."""
        if self.seconds < self.start_seconds * WORTH_IT:
            gain = self.start_seconds / self.seconds
            return f"{gain:.2f}× faster than the hand-coded choice, the best of {self.tried} measured"
        return f"none of {self.tried} measured beats the hand-coded choice"


def beam_search(starts: Iterable[Kernel], width: int, measure: Callable[[Kernel], float]) -> SearchResult:
    """The fastest kernel that opts lead to from `starts`, keeping the `width` best of each round.

    `measure` gives seconds (`math.inf` for one that failed). The first of `starts` is the one to beat: it is the
    result unless another is faster by more than a hundredth. Every measurement is told as `Measured`; what measuring
    itself does is not. The order of candidates is fixed, so the result varies only as the clock does.
    """
    recorder = active_recorder()
    times: dict[UOp, float] = {}

    def timed(kernel: Kernel) -> float:
        if kernel.ast not in times:
            with recording(None):
                times[kernel.ast] = measure(kernel)
            if recorder is not None:
                recorder.record(Measured(kernel, times[kernel.ast]))
        return times[kernel.ast]

    beam = list(starts)
    first = best = beam[0]
    for kernel in beam:
        timed(kernel)
    for _ in range(MOST_ROUNDS):
        beam = sorted(beam, key=timed)[:width]
        if timed(beam[0]) < timed(best) * WORTH_IT:
            best = beam[0]
        grown = [after for kernel in beam for after in candidates(kernel) if after.ast not in times]
        if not grown:
            break
        floor = timed(beam[0])
        for kernel in grown:
            timed(kernel)
        if min(timed(kernel) for kernel in grown) >= floor:
            break
        beam.extend(grown)
    final = min(beam, key=timed)
    if timed(final) < timed(best) * WORTH_IT:
        best = final
    return SearchResult(best, timed(best), timed(first), len(times))


def candidates(kernel: Kernel) -> list[Kernel]:
    """What one more opt makes of `kernel`, without programs that would be too long."""
    copies = prod(axis.size for axis in kernel.axes if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL))
    found = []
    for opt in kernel.available_opts():
        if opt.op in (OptOps.UPCAST, OptOps.UNROLL) and copies * opt.amount > MOST_COPIES:
            continue
        if opt.op is OptOps.VECTOR and opt.amount < min(4, kernel.lanes):
            continue
        with recording(None):
            found.append(kernel.apply(opt))
    return found


__all__ = ["SearchResult", "beam_search", "candidates"]

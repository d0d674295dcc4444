"""Checks the suggestions of a verdict: other opts and fusions are timed beside the captured ones, a copy is priced."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.opts import WhatIfError, to_opt
from tinyexplore.explore.analysis.verdict.facts import KernelFacts
from tinyexplore.explore.analysis.verdict.suggestions import PREFETCHES, Suggestion
from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
from tinyexplore.explore.analysis.why.fusions import Edge, Fusions, name_of
from tinyexplore.explore.tracefile.model import Branch, KernelVariant
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.whatif.commands import AsCaptured, AsScheduled, HandCode, Join, SetOpts
from tinyexplore.explore.whatif.offers import legal_opts

if TYPE_CHECKING:
    from tinyexplore.explore.whatif.view import View

BUDGET_S = 1.0  # no experiment begins later than that
MOST = 3  # experiments on one kernel
LANES = 16  # at most, of a VECTOR opt that is tried
OTHER_OPTS = ("latency", "not vectorized", "strided access", "re-reads", "spills", "one thread", "unaligned loads")

Clock = Callable[[], float]


def checked(view: View, verdict: SpeedVerdict, clock: Clock = time.perf_counter) -> SpeedVerdict:
    """`verdict` with what its suggestions gain on this machine: at most MOST experiments, none begun after BUDGET_S.

    A gain stands there only if the quartiles do not overlap. The kernel's branch stays where it was.
    """
    number, kind = verdict.kernel, verdict.likely
    if number is None or not view.whatif.is_live:
        return verdict
    until = _Deadline(clock)
    if kind in OTHER_OPTS:
        found = _other_opts(view, number, kind, until)
    elif kind in ("launch overhead", "bandwidth"):
        found = _fusions(view, number, until)
    else:
        return verdict
    priced = _priced(verdict.facts) if verdict.facts is not None and kind == "strided access" else []
    best = sorted(found, key=lambda one: -(one.gain or 0.0))
    return replace(verdict, suggestions=(*best, *priced, *verdict.suggestions))


class _Deadline:
    """Ends after MOST experiments; and after BUDGET_S, once there is one."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began = clock, clock()

    def is_over(self, done: int) -> bool:
        return done == MOST or (done > 0 and self._clock() - self._began > BUDGET_S)


def _other_opts(view: View, number: int, kind: str, until: _Deadline) -> list[Suggestion]:
    """What other opts bring."""
    before = view.whatif.at(number)
    found: list[Suggestion] = []
    try:
        captured = view.whatif.do(AsCaptured(number))
        base = _variant(captured)
        for opts in _candidates(view, captured, kind):
            if until.is_over(len(found)):
                break
            found.append(_tried(view, number, base, opts))
    except WhatIfError:
        return []
    finally:
        if before is not None:
            view.whatif.do(SetOpts(number, ", ".join(_variant(before).opts)) if before.kernels else AsCaptured(number))
    return found


def _fusions(view: View, number: int, until: _Deadline) -> list[Suggestion]:
    """What comes of joining the kernel with those that make what it reads, and those that read what it makes."""
    found: list[Suggestion] = []
    tried: set[int] = set()
    for edge in Fusions(view.trace, None).edges():
        if edge.mark != "cut" or edge.against_join or edge.src in tried or number not in (*edge.kernels, *edge.into):
            continue
        stage = view.whatif.schedule_of(edge.src, edge.dst)
        if stage is None or until.is_over(len(found)):
            continue
        tried.add(edge.src)
        before = view.whatif.at_schedule(stage)
        try:
            root = view.whatif.do(AsScheduled(stage))
            found.append(_joined(view, edge, view.whatif.do(Join(stage, edge.src, edge.dst), root)))
            view.whatif.go(root if before is None else before)
        except WhatIfError:
            continue
    return found


def _joined(view: View, edge: Edge, branch: Branch) -> Suggestion:
    """What the schedule without memory between two kernels brings, both timed in turns."""
    source = name_of(view.trace.nodes[edge.src])
    text = f"one kernel for {source} and what reads it: view.fusion.join({edge.src}, {edge.dst})"
    found = branch.schedule
    if branch.status != "done" or found is None or found.median_us is None or found.base_median_us is None:
        return Suggestion(text, note=f"not timed: {branch.reason or 'there are no samples'}")
    note = f"{duration_text(found.median_us)} instead of {duration_text(found.base_median_us)} for the whole schedule"
    if found.verdict not in ("faster", "slower"):
        return Suggestion(text, None, found.median_us, None, f"no difference beyond the noise: {note}")
    return Suggestion(text, None, found.median_us, found.base_median_us / found.median_us, note)


def _variant(branch: Branch) -> KernelVariant:
    return branch.kernels[0]


def _candidates(view: View, captured: Branch, kind: str) -> Iterator[tuple[str, ...]]:
    """Other opts, the most promising first."""
    opts = _variant(captured).opts
    number = _variant(captured).kernel
    assert number is not None
    if kind == "spills":
        yield from _smaller_tiles(opts)
    chosen = _variant(
        view.whatif.do(
            HandCode(
                number,
            ),
            captured,
        )
    ).opts
    if chosen != opts:
        yield chosen
    legal = legal_opts(_variant(view.whatif.whole(captured)).offers)
    if kind == "one thread":
        yield from ((*opts, one) for one in legal if one.startswith("THREAD("))
    if kind in ("latency", "not vectorized"):
        vectors = [to_opt(one) for one in legal if one.startswith("VECTOR(")]
        vectors = sorted((one for one in vectors if one.amount <= LANES), key=lambda one: -one.amount)
        yield from ((*opts, str(one)) for one in vectors[:1])
    without = tuple(one for one in opts if not one.startswith(PREFETCHES))
    if without != opts:
        yield without


def _smaller_tiles(opts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The largest UPCAST by half, by a quarter."""
    amounts = {place: to_opt(one).amount for place, one in enumerate(opts) if one.startswith("UPCAST(")}
    place = max(amounts, key=lambda one: amounts[one], default=None)
    if place is None:
        return
    largest = to_opt(opts[place])
    for part in (2, 4):
        if (amount := largest.amount // part) > 1:
            yield (*opts[:place], str(replace(largest, amount=amount)), *opts[place + 1 :])


def _tried(view: View, number: int, base: KernelVariant, opts: tuple[str, ...]) -> Suggestion:
    """What these opts bring, both timed by the same worker process."""
    text = f"the opts {', '.join(opts)}" if opts else "no opts"
    branch = view.whatif.do(SetOpts(number, ", ".join(opts)))
    found = _variant(branch) if branch.kernels else None
    if branch.status != "done" or found is None or found.median_us is None or base.median_us is None:
        return Suggestion(text, opts, note=f"not timed: {branch.reason or 'there are no samples'}")
    overlaps = _low(found) <= _high(base) and _low(base) <= _high(found)
    note = f"{duration_text(found.median_us)} instead of {duration_text(base.median_us)}"
    if overlaps:
        return Suggestion(text, opts, found.median_us, None, f"no difference beyond the noise: {note}")
    return Suggestion(text, opts, found.median_us, base.median_us / found.median_us, note)


def _low(variant: KernelVariant) -> float:
    return variant.low_us or variant.median_us or 0.0


def _high(variant: KernelVariant) -> float:
    return variant.high_us or variant.median_us or 0.0


def _priced(facts: KernelFacts) -> list[Suggestion]:
    """What a contiguous copy of the worst operand costs: its bytes read and written at the kernel's bandwidth."""
    if not facts.worst_bytes or not facts.memory_us or not facts.bytes_moved:
        return []
    copy_us = 2 * facts.worst_bytes * facts.memory_us / facts.bytes_moved
    price = f"a copy takes at least {duration_text(copy_us)}, this kernel {duration_text(facts.judged_us)}"
    return [Suggestion(f"{facts.worst}.contiguous() before:", note=price)]


__all__ = ["BUDGET_S", "MOST", "checked"]

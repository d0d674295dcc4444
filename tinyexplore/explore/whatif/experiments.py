"""Checks the suggestions of a verdict: times other opts and fusions against the captured ones, and estimates a copy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.opts import WhatIfError, to_opt
from tinyexplore.explore.analysis.verdict.facts import KernelFacts
from tinyexplore.explore.analysis.verdict.suggestions import PREFETCHES, Suggestion, set_opts_text, smaller_tiles
from tinyexplore.explore.analysis.verdict.verdict import SpeedVerdict
from tinyexplore.explore.tracefile.fusions import Edge, Fusions, name_of
from tinyexplore.explore.tracefile.model import Branch, KernelVariant
from tinyexplore.explore.tracefile.texts import duration_text
from tinyexplore.explore.whatif.commands import AsCaptured, AsScheduled, Join, SetOpts, UseHeuristics
from tinyexplore.explore.whatif.opt_offers import legal_opts

if TYPE_CHECKING:
    from tinyexplore.explore.whatif.session_view import SessionView

BUDGET_S = 1.0  # seconds after which no experiment begins
MAX_EXPERIMENTS = 3  # most experiments on one kernel
LANES = 16  # most lanes of a VECTOR opt that is tried
OTHER_OPTS = ("latency", "not vectorized", "strided access", "re-reads", "spills", "one thread", "unaligned loads")

Clock = Callable[[], float]


def with_measured_gains(view: SessionView, verdict: SpeedVerdict, clock: Clock = time.perf_counter) -> SpeedVerdict:
    """Returns `verdict` with the measured gains of its suggestions, from at most MAX_EXPERIMENTS experiments.

    No experiment begins after BUDGET_S. A gain is added only if the quartiles do not overlap. The current branch of the
    kernel stays the same.
    """
    number, kind = verdict.kernel, verdict.likely
    if number is None or not view.whatif.is_live:
        return verdict
    until = _Deadline(clock)
    if kind in OTHER_OPTS:
        suggestions = _suggest_opts(view, number, kind, until)
    elif kind in ("launch overhead", "bandwidth"):
        suggestions = _suggest_fusions(view, number, until)
    else:
        return verdict
    priced = _copy_estimate(verdict.facts) if verdict.facts is not None and kind == "strided access" else []
    best = sorted(suggestions, key=lambda suggestion: -(suggestion.gain or 0.0))
    return replace(verdict, suggestions=(*best, *priced, *verdict.suggestions))


class _Deadline:
    """The end of the experiments: after MAX_EXPERIMENTS of them, or after BUDGET_S if there was at least one."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._began = clock, clock()

    def is_over(self, done: int) -> bool:
        return done == MAX_EXPERIMENTS or (done > 0 and self._clock() - self._began > BUDGET_S)


def _suggest_opts(view: SessionView, number: int, kind: str, until: _Deadline) -> list[Suggestion]:
    """Returns suggestions of other opts, with their measured gains."""
    before = view.whatif.at(number)
    suggestions: list[Suggestion] = []
    try:
        captured = view.whatif.do(AsCaptured(number))
        base = _variant_of(captured)
        for opts in _yield_candidates(view, captured, kind):
            if until.is_over(len(suggestions)):
                break
            suggestions.append(_measure_opts(view, number, base, opts))
    except WhatIfError:
        return []
    finally:
        if before is not None:
            view.whatif.do(
                SetOpts(number, ", ".join(_variant_of(before).opts)) if before.kernels else AsCaptured(number)
            )
    return suggestions


def _suggest_fusions(view: SessionView, number: int, until: _Deadline) -> list[Suggestion]:
    """Returns suggestions to fuse the kernel with its producers or consumers, with their measured gains."""
    suggestions: list[Suggestion] = []
    sources_tried: set[int] = set()
    for edge in Fusions(view.trace, None).edges():
        if (
            edge.mark != "cut"
            or edge.against_join
            or edge.src in sources_tried
            or number not in (*edge.kernels, *edge.into)
        ):
            continue
        stage = view.whatif.schedule_of(edge.src, edge.dst)
        if stage is None or until.is_over(len(suggestions)):
            continue
        sources_tried.add(edge.src)
        before = view.whatif.at_schedule(stage)
        try:
            root = view.whatif.do(AsScheduled(stage))
            suggestions.append(_measure_fusion(view, edge, view.whatif.do(Join(stage, edge.src, edge.dst), root)))
            view.whatif.go(root if before is None else before)
        except WhatIfError:
            continue
    return suggestions


def _measure_fusion(view: SessionView, edge: Edge, branch: Branch) -> Suggestion:
    """Returns the gain of the fused schedule of two kernels, timed alternately with the captured schedule."""
    source = name_of(view.trace.nodes[edge.src])
    text = f"one kernel for {source} and its readers: view.fusion.join({edge.src}, {edge.dst})"
    variant = branch.schedule
    if branch.status != "done" or variant is None or variant.median_us is None or variant.base_median_us is None:
        return Suggestion(text, note=f"not timed: {branch.reason or 'there are no samples'}")
    note = (
        f"{duration_text(variant.median_us)} instead of {duration_text(variant.base_median_us)} for the whole schedule"
    )
    if variant.verdict not in ("faster", "slower"):
        return Suggestion(text, None, variant.median_us, None, f"no difference above the noise: {note}")
    return Suggestion(text, None, variant.median_us, variant.base_median_us / variant.median_us, note)


def _variant_of(branch: Branch) -> KernelVariant:
    return branch.kernels[0]


def _yield_candidates(view: SessionView, captured: Branch, kind: str) -> Iterator[tuple[str, ...]]:
    """Yields other opts, the most promising first."""
    opts = _variant_of(captured).opts
    number = _variant_of(captured).kernel
    assert number is not None
    if kind == "spills":
        yield from smaller_tiles(opts)
    chosen = _variant_of(
        view.whatif.do(
            UseHeuristics(
                number,
            ),
            captured,
        )
    ).opts
    if chosen != opts:
        yield chosen
    legal = legal_opts(_variant_of(view.whatif.complete_branch(captured)).offers)
    if kind == "one thread":
        yield from ((*opts, opt) for opt in legal if opt.startswith("THREAD("))
    if kind in ("latency", "not vectorized"):
        vectors = [to_opt(opt) for opt in legal if opt.startswith("VECTOR(")]
        vectors = sorted((opt for opt in vectors if opt.amount <= LANES), key=lambda opt: -opt.amount)
        yield from ((*opts, str(vector)) for vector in vectors[:1])
    without = tuple(opt for opt in opts if not opt.startswith(PREFETCHES))
    if without != opts:
        yield without


def _measure_opts(view: SessionView, number: int, base: KernelVariant, opts: tuple[str, ...]) -> Suggestion:
    """Returns the measured gain of these opts. The same worker process times both kernels."""
    assert base.kernel is not None
    text = set_opts_text(base.kernel, opts)
    branch = view.whatif.do(SetOpts(number, ", ".join(opts)))
    variant = _variant_of(branch) if branch.kernels else None
    if branch.status != "done" or variant is None or variant.median_us is None or base.median_us is None:
        return Suggestion(text, opts, note=f"not timed: {branch.reason or 'there are no samples'}")
    overlaps = _low_us_of(variant) <= _high_us_of(base) and _low_us_of(base) <= _high_us_of(variant)
    note = f"{duration_text(variant.median_us)} instead of {duration_text(base.median_us)}"
    if overlaps:
        return Suggestion(text, opts, variant.median_us, None, f"no difference above the noise: {note}")
    return Suggestion(text, opts, variant.median_us, base.median_us / variant.median_us, note)


def _low_us_of(variant: KernelVariant) -> float:
    return variant.low_us or variant.median_us or 0.0


def _high_us_of(variant: KernelVariant) -> float:
    return variant.high_us or variant.median_us or 0.0


def _copy_estimate(facts: KernelFacts) -> list[Suggestion]:
    """Estimates a contiguous copy of the worst operand: its bytes read and written at the kernel's bandwidth."""
    if not facts.worst_bytes or not facts.memory_us or not facts.bytes_moved:
        return []
    copy_us = 2 * facts.worst_bytes * facts.memory_us / facts.bytes_moved
    price = f"a copy takes at least {duration_text(copy_us)}, this kernel {duration_text(facts.time_us)}"
    return [Suggestion(f"Store {facts.worst} in this order before, by .contiguous():", note=price)]


__all__ = ["BUDGET_S", "MAX_EXPERIMENTS", "with_measured_gains"]

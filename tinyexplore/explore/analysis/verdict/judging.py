"""Verdicts on the kernels of a view: each is judged once, kernels of one program once for all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.byhand.asked import NotKeptError
from tinyexplore.explore.analysis.verdict.gpu import gpu_verdict
from tinyexplore.explore.analysis.verdict.measured import facts_of
from tinyexplore.explore.analysis.verdict.rules import judge
from tinyexplore.explore.analysis.verdict.verdict import Evidence, SpeedVerdict, program_verdict, verdict_of
from tinyexplore.explore.tracefile.readable import ReadableRow

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.byhand.asked import KernelAnalyses

NEEDS_NO_MODEL = ("launch overhead", "redundant work", "strided access", "compute", "bandwidth", "re-reads")


def kernel_verdict(view: KernelAnalyses, number: int) -> SpeedVerdict:
    """The verdict on one kernel. ValueError: it has no samples, or cannot be compiled here."""
    known = view.verdicts
    if number not in known:
        if view.kept(number).spec.target.has_local:
            known[number] = gpu_verdict(view, number)
        else:
            known[number] = _judged(view, number)
    return known[number]


def _judged(view: KernelAnalyses, number: int) -> SpeedVerdict:
    """llvm-mca takes 15 to 70 ms; most kernels need no such model."""
    facts = facts_of(view, number, model=False)
    _, likely, rule = judge(facts)
    is_decided = rule is not None and likely in NEEDS_NO_MODEL and (facts.share >= 0.65 or likely not in ("compute",))
    if not is_decided or likely in ("compute", "bandwidth") and facts.share < 0.65:
        facts = facts_of(view, number)
    return verdict_of(facts)


def all_verdicts(view: KernelAnalyses) -> list[SpeedVerdict]:
    """Those of all kernels that have one, in the kernels' order."""
    found = []
    for kernel in view.trace.kernels:
        try:
            owner = kernel.id if kernel.same_as is None else kernel.same_as
            if owner != kernel.id and owner in view.verdicts:
                found.append(replace(view.verdicts[owner], kernel=kernel.id))
            else:
                found.append(kernel_verdict(view, kernel.id))
        except (ValueError, NotKeptError):
            continue
    return found


@dataclass(frozen=True, slots=True, repr=False)
class TrialRow(ReadableRow):
    """Something to try, and what it gained."""

    text: str
    result: str


@dataclass(frozen=True, slots=True, repr=False)
class VerdictRow(ReadableRow):
    """A verdict as views show it: see `SpeedVerdict`."""

    kernel: int | None
    name: str
    kind: str
    likely: str
    level: str
    share: float | None
    tone: str
    text: str
    evidence: tuple[Evidence, ...]
    suggestions: tuple[TrialRow, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class VerdictList(ReadableRow):
    """The verdicts on the kernels that have one, and on the program; None where no kernel has one."""

    rows: tuple[VerdictRow, ...]
    whole: VerdictRow | None


def verdict_list(view: KernelAnalyses) -> VerdictList:
    """What views show."""
    rows = tuple(_row(one) for one in all_verdicts(view))
    return VerdictList(rows, _row(whole_verdict(view)) if rows else None)


def _row(one: SpeedVerdict) -> VerdictRow:
    trials = tuple(TrialRow(trial.text, trial.result) for trial in one.suggestions)
    return VerdictRow(
        kernel=one.kernel,
        name=one.name,
        kind=one.kind,
        likely=one.likely,
        level=one.level,
        share=one.share_of_limit,
        tone=one.tone,
        text=one.text,
        evidence=one.evidence,
        suggestions=trials,
        missing=one.missing,
    )


def whole_verdict(view: KernelAnalyses) -> SpeedVerdict:
    """The verdict on the program: that of the kernel which takes longest."""
    parts = all_verdicts(view)
    unknown = len(view.trace.kernels) - len(parts)
    return program_verdict(view.trace.title, parts, [1] * len(parts), unknown)


__all__ = ["VerdictList", "VerdictRow", "all_verdicts", "kernel_verdict", "verdict_list", "whole_verdict"]

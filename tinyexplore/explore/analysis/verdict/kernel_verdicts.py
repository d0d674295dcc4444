"""Verdicts on the kernels of a view. Kernels with the same program are judged once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tinyexplore.explore.analysis.models.kernel_analyses import KernelUnavailableError
from tinyexplore.explore.analysis.verdict.fact_measurement import facts_of
from tinyexplore.explore.analysis.verdict.gpu import gpu_verdict
from tinyexplore.explore.analysis.verdict.rules import NEEDS_MODEL, judge
from tinyexplore.explore.analysis.verdict.verdict import Evidence, SpeedVerdict, judge_kernel, program_verdict
from tinyexplore.explore.tracefile.result_display import DisplayableRow

if TYPE_CHECKING:
    from tinyexplore.explore.analysis.models.kernel_analyses import KernelAnalyses

VECTORS = ("VECTOR", "UPCAST:VECTOR")  # opts
NEEDS_NO_MODEL = ("launch overhead", "redundant work", "strided access", "compute", "bandwidth", "re-reads")


def kernel_verdict(view: KernelAnalyses, number: int) -> SpeedVerdict:
    """Returns the verdict on one kernel.

    Raises:
        ValueError: it has no samples, or cannot be compiled here.
    """
    verdicts = view.verdicts
    if number not in verdicts:
        if view.captured(number).spec.target.has_local:
            verdicts[number] = gpu_verdict(view, number)
        else:
            verdicts[number] = _judge_kernel(view, number)
    return verdicts[number]


def _judge_kernel(view: KernelAnalyses, number: int) -> SpeedVerdict:
    """Returns the verdict on one kernel; runs llvm-mca (15 to 70 ms) only if the rules need it."""
    facts = facts_of(view, number, model=False)
    _, likely, rule = judge(facts)
    is_decided = rule is not None and rule.holds not in NEEDS_MODEL and likely in NEEDS_NO_MODEL
    if not is_decided or likely in ("compute", "bandwidth") and facts.share < 0.65:
        facts = facts_of(view, number)
    return _add_llvm_explanation(view, number, judge_kernel(facts))


def _add_llvm_explanation(view: KernelAnalyses, number: int, verdict: SpeedVerdict) -> SpeedVerdict:
    """Adds the values that LLVM spills, or its reason for a loop without vectors, to a verdict."""
    if verdict.likely not in ("spills", "not vectorized") or verdict.facts is None:
        return verdict
    if verdict.likely == "not vectorized" and any(opt.startswith(VECTORS) for opt in verdict.facts.opts or ()):
        return verdict  # the opts vectorize this kernel, so LLVM's reason does not matter
    explanation = view.llvm_explanation(number, verdict.likely)
    if not explanation:
        return verdict
    evidence = Evidence("LLVM", explanation, "llvm")
    return replace(verdict, text=f"{verdict.text} {explanation}", evidence=(*verdict.evidence, evidence))


def all_verdicts(view: KernelAnalyses) -> list[SpeedVerdict]:
    """Returns the verdicts on all kernels that have one, in the order of the kernels."""
    verdicts = []
    for kernel in view.trace.kernels:
        try:
            owner = kernel.id if kernel.same_as is None else kernel.same_as
            if owner != kernel.id and owner in view.verdicts:
                verdicts.append(replace(view.verdicts[owner], kernel=kernel.id))
            else:
                verdicts.append(kernel_verdict(view, kernel.id))
        except (ValueError, KernelUnavailableError):
            continue
    return verdicts


@dataclass(frozen=True, slots=True, repr=False)
class TrialRow(DisplayableRow):
    """A suggestion that was tried.

    text: the suggestion.
    result: the measured gain.
    """

    text: str
    result: str


@dataclass(frozen=True, slots=True, repr=False)
class VerdictRow(DisplayableRow):
    """A verdict as views show it; see `SpeedVerdict`.

    kernel: the number of the kernel, None for the whole program.
    name: the name of the kernel.
    kind: the bottleneck, one of `VERDICT_KINDS`.
    likely: for "noise" the kind by the fastest sample, else `kind`.
    level: "L1", "L2", "L3" or "memory"; "" for other kinds.
    share: the least time on this machine / the median; None if one of them is unknown.
    tone: "fast", "middle", "slow", or "none" if speed does not matter or is unknown.
    text: the verdict as a sentence.
    evidence: the figures on which it is based.
    suggestions: possible improvements.
    missing: figures that were not available.
    """

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
class VerdictList(DisplayableRow):
    """The verdicts of a trace.

    rows: the verdicts on the kernels that have one.
    whole: the verdict on the program, None if no kernel has one.
    """

    rows: tuple[VerdictRow, ...]
    whole: VerdictRow | None


def verdict_list(view: KernelAnalyses) -> VerdictList:
    """Returns the verdicts of a trace as views show them."""
    rows = tuple(_make_row(verdict) for verdict in all_verdicts(view))
    return VerdictList(rows, _make_row(judge_program(view)) if rows else None)


def _make_row(verdict: SpeedVerdict) -> VerdictRow:
    trials = tuple(TrialRow(trial.text, trial.result) for trial in verdict.suggestions)
    return VerdictRow(
        kernel=verdict.kernel,
        name=verdict.name,
        kind=verdict.kind,
        likely=verdict.likely,
        level=verdict.level,
        share=verdict.share_of_limit,
        tone=verdict.tone,
        text=verdict.text,
        evidence=verdict.evidence,
        suggestions=trials,
        missing=verdict.missing,
    )


def judge_program(view: KernelAnalyses) -> SpeedVerdict:
    """Returns the verdict on the program: mainly that of its slowest kernel."""
    parts = all_verdicts(view)
    unknown = len(view.trace.kernels) - len(parts)
    return program_verdict(view.trace.title, parts, [1] * len(parts), unknown, view.trace.outside)


__all__ = ["VerdictList", "VerdictRow", "all_verdicts", "kernel_verdict", "verdict_list", "judge_program"]

"""Quotes LLVM's passes about a slow kernel: the values that are spilled, and why a loop is not vectorized."""

from __future__ import annotations

from collections.abc import Iterator

from tinyexplore.explore.analysis.passes.sequence import LLVMPasses, Remark, Spill
from tinyexplore.explore.tracefile.counts import count_text

MAX_NAMED_UOPS = 3  # most UOps in a sentence
MAX_UOP_CHARACTERS = 72  # most characters of a UOp
_REFUSED = ("loop not vectorized", "vectorization was impossible", "the cost-model indicates that vectorization")


def spills_text(passes: LLVMPasses) -> str:
    """Returns the spills as text: "The pass X spills 5 values: 4 of `%a = fma …` (notebook:3, from loop to done); …".

    Returns "" without spills.
    """
    if not passes.spills:
        return ""
    by_subject: dict[str, list[Spill]] = {}
    for spill in sorted(passes.spills, key=lambda spill: -(spill.stores + spill.loads)):
        by_subject.setdefault(spill.subject, []).append(spill)
    ordered = sorted(by_subject.values(), key=lambda each: -sum(spill.stores + spill.loads for spill in each))
    named = [_values_text(each) for each in ordered[:MAX_NAMED_UOPS]]
    more = f"; and those of {count_text(len(ordered) - len(named), 'more UOp')}" if len(ordered) > len(named) else ""
    return f"The pass {passes.spilled_by} spills {count_text(len(passes.spills), 'value')}: {'; '.join(named)}{more}."


def refusal_text(passes: LLVMPasses) -> str:
    """Returns LLVM's reason for a loop without vectors, as a quotation; "" if it gives none."""
    refusal = next(_yield_refusals(passes), None)
    if refusal is None:
        return ""
    about = f" of `{refusal.subject}`" if refusal.subject else ""
    return f"LLVM says{about}: “{refusal.text}”."


def _yield_refusals(passes: LLVMPasses) -> Iterator[Remark]:
    """Yields the remarks about loops that LLVM did not vectorize, those with a reason first."""
    refusals = [remark for remark in passes.remarks if remark.text.lower().startswith(_REFUSED)]
    yield from sorted(refusals, key=lambda remark: remark.text.strip() == "loop not vectorized")


def _values_text(values: list[Spill]) -> str:
    """Returns the spilled values of one UOp as text. An operation on many lanes has several values."""
    first = values[0]
    shown = first.subject if len(first.subject) <= MAX_UOP_CHARACTERS else f"{first.subject[: MAX_UOP_CHARACTERS - 1]}…"
    value = f"`{shown}`" if shown else "several UOps"
    about = ", ".join(text for text in (*first.python[:1], first.live_range) if text)
    return f"{len(values)} of {value}{f' ({about})' if about else ''}"


__all__ = ["refusal_text", "spills_text"]

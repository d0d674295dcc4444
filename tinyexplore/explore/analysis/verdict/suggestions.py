"""Suggestions against a bottleneck. A suggestion is tried if that takes less than a second."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tinyexplore.explore.analysis.opts import to_opt
from tinyexplore.explore.analysis.verdict.facts import KernelFacts
from tinyexplore.explore.tracefile.result_display import DisplayableRow

PREFETCHES = ("PREFETCH(", "AHEAD(")  # both spellings of the opt


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion(DisplayableRow):
    """One suggestion to make a kernel faster."""

    text: str
    """The suggestion, as a sentence."""
    opts: tuple[str, ...] | None = None
    """The opts to try, if the suggestion is about opts."""
    time_us: float | None = None
    """Median with the suggestion, in microseconds; None if it was not tried."""
    gain: float | None = None
    """Time before / time with it, measured alternately; None if it was not tried, or if the quartiles overlap."""
    note: str = ""
    """Result of the trial, as text."""

    @property
    def result(self) -> str:
        """The measured gain of the suggestion as text, or a note; "" if it was not tried."""
        if self.gain is not None:
            ratio = max(self.gain, 1 / self.gain)
            figures = f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
            word = f"{figures}× faster" if self.gain > 1 else f"{figures}× slower"
            return f"{word}, measured: {self.note}" if self.note else f"{word}, measured"
        return self.note


REMEDIES = {  # by the kind of the bottleneck; {kernel} is the Python expression for the kernel
    "latency": "Break the chain into several independent sums: apply VECTOR or UPCAST. "
    "{kernel}.available_opts() lists the legal ones, and {kernel}.verdict(check=True) times some.",
    "random access": "If the order of the results does not matter, sort the indices first (.sort()). Neighboring "
    "accesses to {gather_of} then use the same cache line.",
    "re-reads": "A larger tile fetches {worst} fewer times: choose an UPCAST from {kernel}.available_opts().",
    "redundant work": "Store the value that is computed several times: .contiguous() on it, before the .expand() or "
    "broadcast that repeats it.",
    "unaligned loads": "If the row size of {crossing} is not a multiple of 64 bytes, pad it: .pad(…).contiguous(). "
    "The shifted windows of a convolution always cross cache lines.",
    "not vectorized": "Apply a VECTOR opt: {kernel}.available_opts() lists the legal ones.",
    "one thread": "Apply a THREAD opt from {kernel}.available_opts(). A sum with few results gets one if "
    "SPLIT_REDUCEOP=1 (the default) splits it.",
    "launch overhead": "Put more work in each kernel, or use TinyJit: one call launches all kernels of a function.",
}


def suggestions_for(kind: str, facts: KernelFacts) -> Iterator[Suggestion]:
    """Yields suggestions that helped against this kind of bottleneck in experiments. They are not tried here.

    Each names an existing opt, method, setting or panel. Its text calls the Explorer `view`.
    """
    kernel = kernel_text(facts.kernel)
    if facts.unused_dots and kind not in ("launch overhead", "noise"):
        yield Suggestion(
            f"This machine has {facts.unused_dots} instructions that the kernel does not use: capture the kernel with "
            "tc=1 (the default), and multiply the narrow tensors themselves, not copies in another type."
        )
    if facts.opts == () and facts.share < 0.5 and kind not in ("launch overhead", "random access"):
        yield Suggestion(
            f"Let the heuristics choose opts: capture the kernel without noopt=1, or {kernel}.use_heuristics()."
        )
    if kind == "bandwidth" and facts.level == "memory":
        if facts.stream_us > facts.limit_us:
            yield Suggestion(
                "Capture it again when no other program uses the memory: a stream of the same size is slower now, too."
            )
        yield Suggestion(
            "Move fewer bytes: a narrower type such as .half(), or one kernel instead of this one and its neighbor "
            "(panel Fusion, view.fusion)."
        )
    if kind == "compute" and facts.share < 0.65:
        yield Suggestion(f"Use cheaper operations, or search for other opts: {kernel}.search().")
    if kind == "strided access":
        yield from _suggest_against_strides(facts, kernel)
    if kind == "spills":
        yield from _suggest_against_spills(facts, kernel)
    if kind in REMEDIES:
        names = {"gather_of": facts.gather_of or "the table", "worst": facts.worst or "an operand"}
        yield Suggestion(REMEDIES[kind].format(kernel=kernel, crossing=facts.crossing or "an operand", **names))


def kernel_text(number: int) -> str:
    """Returns the Python expression for the kernel: "view.kernels[3]"."""
    return f"view.kernels[{number}]"


def set_opts_text(number: int, opts: Iterable[str]) -> str:
    """Returns the call that gives a kernel these opts."""
    return f'{kernel_text(number)}.set_opts("{", ".join(opts)}")'


def smaller_tiles(opts: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yields these opts with half and with a quarter of the largest UPCAST."""
    amounts = {number: to_opt(opt).amount for number, opt in enumerate(opts) if opt.startswith("UPCAST(")}
    number = max(amounts, key=lambda candidate: amounts[candidate], default=None)
    if number is None:
        return
    largest = to_opt(opts[number])
    for part in (2, 4):
        if (amount := largest.amount // part) > 1:
            yield (*opts[:number], str(replace(largest, amount=amount)), *opts[number + 1 :])


def _suggest_against_spills(facts: KernelFacts, kernel: str) -> Iterator[Suggestion]:
    tile = next(smaller_tiles(facts.opts or ()), None)
    if tile is not None:
        yield Suggestion(f"A smaller register tile: {set_opts_text(facts.kernel, tile)}.", tile)
    elif facts.opts:
        yield Suggestion(f"A smaller register tile: fewer or smaller UPCAST and UNROLL opts by {kernel}.set_opts(…).")


def _suggest_against_strides(facts: KernelFacts, kernel: str) -> Iterator[Suggestion]:
    """Yields suggestions against strided accesses: other orders, longer rows, or no prefetch."""
    name = facts.worst or facts.conflict or "the operand"
    if not facts.operations:
        yield Suggestion(
            "This kernel only copies: remove the .contiguous() after it if only one kernel reads the copy."
        )
    else:
        yield Suggestion(
            f"Where several kernels read {name} in this order, store it in this order once: .contiguous() on the "
            "transposed or permuted tensor."
        )
    if facts.conflict:
        yield Suggestion(
            f"Make the rows of {facts.conflict} longer by a cache line, 64 bytes: .pad(…).contiguous(), 16 elements of "
            "float32."
        )
    opts = facts.opts or ()
    without_prefetch = tuple(opt for opt in opts if not opt.startswith(PREFETCHES))
    if without_prefetch != opts:
        text = set_opts_text(facts.kernel, without_prefetch)
        yield Suggestion(
            f"Measure the kernel without software prefetches (PREFETCH), which slow some access orders: {text}.",
            without_prefetch,
        )


__all__ = ["Suggestion", "kernel_text", "set_opts_text", "smaller_tiles", "suggestions_for"]

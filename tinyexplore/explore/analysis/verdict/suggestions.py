"""What to try against a bottleneck; checked where that takes less than a second."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tinyexplore.explore.analysis.verdict.facts import KernelFacts
from tinyexplore.explore.tracefile.readable import ReadableRow

PREFETCHES = ("PREFETCH(", "AHEAD(")  # both spellings of the opt


@dataclass(frozen=True, slots=True, repr=False)
class Suggestion(ReadableRow):
    """One thing to try."""

    text: str
    """What to do."""
    opts: tuple[str, ...] | None = None
    """The kernel's opts, where these are what to try."""
    time_us: float | None = None
    """The median with it; None: it was not tried."""
    gain: float | None = None
    """The time before / the time with it, measured alike; None: it was not tried, or the quartiles overlap."""
    note: str = ""
    """What became of the trial."""

    @property
    def result(self) -> str:
        """The outcome as text; "" where it was not tried."""
        if self.gain is not None:
            word = f"{self.gain:.2g}× faster" if self.gain > 1 else f"{1 / self.gain:.2g}× slower"
            return f"{word}, measured: {self.note}" if self.note else f"{word}, measured"
        return self.note


def suggestions_for(kind: str, facts: KernelFacts) -> Iterator[Suggestion]:
    """What helped against this kind in experiments, not tried here."""
    if facts.unused_dots and kind not in ("launch overhead", "noise"):
        yield Suggestion(
            f"{facts.unused_dots} instructions (opt TC): this machine has them, and the kernel does not use them."
        )
    if facts.opts == () and facts.share < 0.5 and kind not in ("launch overhead", "random access"):
        yield Suggestion("Let the heuristics choose opts: capture it without noopt=1, or kernel.use_heuristics().")
    match kind:
        case "bandwidth" if facts.level == "memory":
            yield Suggestion("Fuse it with the kernel that makes or reads its data, or use a narrower type.")
        case "compute":
            if facts.share < 0.65:
                yield Suggestion("Use cheaper operations, or a search for other opts: kernel.search().")
        case "latency":
            yield Suggestion("Several accumulators: a VECTOR or UPCAST opt, or the heuristics' opts.")
        case "random access":
            yield Suggestion("Sort the indices first: then neighbours come from the same cache line.")
        case "strided access":
            if not facts.operations:
                yield Suggestion("This kernel only copies. Where its result is read once, read the view instead.")
            else:
                name = facts.worst or facts.conflict or "the operand"
                yield Suggestion(
                    f"Where several kernels read {name} in this order, store it once in this order before."
                )
            if facts.conflict:
                yield Suggestion(f"Make the rows of {facts.conflict} longer by a cache line: 16 elements of float32.")
            if any(opt.startswith(PREFETCHES) for opt in facts.opts or ()):
                yield Suggestion("Leave out the prefetch (opt AHEAD).")
        case "re-reads":
            yield Suggestion("A larger tile: UPCAST of the axis along which the operand comes again.")
        case "redundant work":
            yield Suggestion("Compute the repeated value once: .contiguous() on the expanded operand.")
        case "unaligned loads":
            yield Suggestion("Pad the rows to a multiple of 64 bytes.")
        case "not vectorized":
            yield Suggestion("A VECTOR opt, or the heuristics' opts.")
        case "spills":
            yield Suggestion("A smaller register tile: less UPCAST.")
        case "one thread":
            yield Suggestion("A THREAD opt, or a sum that is split.")
        case "launch overhead":
            yield Suggestion("More work in each call, or TinyJit, which launches several kernels at once.")


__all__ = ["Suggestion", "suggestions_for"]

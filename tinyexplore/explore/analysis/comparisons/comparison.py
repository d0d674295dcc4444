"""Compares two captures kernel by kernel: changes, their listings, and whether times differ by more than noise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tinyexplore.explore.analysis.comparisons.comparison_page import comparison_html
from tinyexplore.explore.analysis.comparisons.noise import TimeComparison, compare_times
from tinyexplore.explore.analysis.comparisons.pairs import (
    Change,
    KernelPair,
    ListingPair,
    describe_change,
    describe_counts,
    describe_first_difference,
)
from tinyexplore.explore.analysis.comparisons.trace_diff import StagePair, TextPair, TraceDiff, diff, last_texts
from tinyexplore.explore.analysis.passes.sequence import LLVMPasses
from tinyexplore.explore.analysis.passes.stages import trace_of as passes_trace
from tinyexplore.explore.tracefile.encodable_text import PageText, for_terminal, write_text
from tinyexplore.explore.tracefile.model import KernelInfo, Node, Program, Run
from tinyexplore.explore.tracefile.result_display import page_frame
from tinyexplore.explore.tracefile.trace import Trace
from tinyexplore.util import toposort


class HasTrace(Protocol):
    """An object with a trace: an Explorer."""

    @property
    def trace(self) -> Trace: ...


Comparable = Trace | HasTrace | LLVMPasses | str | Path


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of `compare`. A notebook displays it as the page from `to_html`.

    a: the first trace.
    b: the second trace.
    diff: the difference of options, nodes and stages.
    kernels: the kernels of both, in pairs.
    """

    a: Trace
    b: Trace
    diff: TraceDiff
    kernels: tuple[KernelPair, ...]

    @property
    def changed(self) -> tuple[KernelPair, ...]:
        """The kernels whose programs differ."""
        return tuple(pair for pair in self.kernels if pair.change != "same")

    @property
    def same(self) -> bool:
        """Whether every kernel has the same program in both and the last texts are equal. Times are not compared."""
        return not self.changed and all(text.same for text in self.texts)

    @property
    def texts(self) -> tuple[TextPair, ...]:
        """The last text in each language: LLVM IR, machine IR and assembly of two pipelines."""
        return last_texts(self.a, self.b)

    @property
    def stages(self) -> tuple[StagePair, ...]:
        """The stages whose texts differ, in order, including stages that only one trace has."""
        return tuple(pair for pair in self.diff.stages if pair.texts and not pair.same)

    def __repr__(self) -> str:
        return for_terminal(comparison_text(self))

    def to_dict(self) -> dict[str, Any]:
        """Returns plain data for JSON: options, the first difference, and for each kernel its listings' differences."""
        return comparison_dict(self)

    def to_html(self, path: str | Path | None = None) -> str:
        """Returns one page without any request; also write it to `path` if given."""
        page = comparison_html(self)
        if path is not None:
            write_text(path, page)
        return PageText(page)

    def _repr_html_(self) -> str:
        # in a frame, so that its style does not affect the notebook
        return page_frame("comparison", self.to_html(), "36rem", scripts=True)


def compare(a: Comparable, b: Comparable) -> Comparison:
    """Compares two captures: Explorers, Traces, saved files, or LLVM's passes of two pipelines.

    Kernels that compute the same LazyBuffers are paired, then those of the same calls and operations. A kernel has
    changed if a listing that both have differs. Stages with texts are paired by name.
    """
    left, right = trace_of(a), trace_of(b)
    difference = diff(left, right)
    programs_a, programs_b = _programs_by_kernel(left), _programs_by_kernel(right)
    runs_a = {run.kernel: run for run in left.runs}
    runs_b = {run.kernel: run for run in right.runs}
    kernels = []
    for i, j in difference.kernels:
        of_a = programs_a.get(i, {}) if i is not None else {}
        of_b = programs_b.get(j, {}) if j is not None else {}
        times = compare_times(_find_run(runs_a, i), _find_run(runs_b, j))
        first = next((pair for pair in difference.stages if not pair.same and _belongs_to_kernels(pair, i, j)), None)
        kernels.append(_pair_kernel(left, right, i, j, of_a, of_b, first, times))
    return Comparison(left, right, difference, tuple(kernels))


def trace_of(capture: Comparable) -> Trace:
    """Returns the trace of an Explorer, of a file, or of LLVM's passes; returns a trace unchanged."""
    if isinstance(capture, Trace):
        return capture
    if isinstance(capture, LLVMPasses):
        return passes_trace(capture)
    if isinstance(capture, (str, Path)):
        return Trace.load(capture)
    trace = getattr(capture, "trace", None)
    if not isinstance(trace, Trace):
        raise TypeError(
            f"compare({type(capture).__name__}): expected an Explorer, a Trace or the path of a saved trace"
        )
    return trace


def _programs_by_kernel(trace: Trace) -> dict[int, dict[str, Program]]:
    programs: dict[int, dict[str, Program]] = {}
    for program in trace.programs:
        programs.setdefault(program.kernel, {})[program.language] = program
    return programs


def _find_run(runs: dict[int, Run], kernel: int | None) -> Run | None:
    return None if kernel is None else runs.get(kernel)


def _belongs_to_kernels(pair: StagePair, i: int | None, j: int | None) -> bool:
    """Whether a stage belongs to kernel i of a, or to kernel j of b. The enclosing stage "kernel" does not count."""
    if pair.name == "kernel":
        return False
    if pair.a is not None:
        return i is not None and pair.a.kernel == i
    return j is not None and pair.b is not None and pair.b.kernel == j


def _pair_kernel(
    a: Trace,
    b: Trace,
    i: int | None,
    j: int | None,
    of_a: dict[str, Program],
    of_b: dict[str, Program],
    first: StagePair | None,
    times: TimeComparison,
) -> KernelPair:
    """Returns the comparison of two kernels: their listings, UOps, opts and times."""
    left = a.kernels[i] if i is not None else None
    right = b.kernels[j] if j is not None else None
    listings = tuple(
        ListingPair(language, _program_lines(of_a.get(language)), _program_lines(of_b.get(language)))
        for language in dict.fromkeys([*of_a, *of_b])
    )
    nodes_a, nodes_b = _program_nodes(a, of_a), _program_nodes(b, of_b)
    only_a, only_b = _subtract_nodes(nodes_a, nodes_b), _subtract_nodes(nodes_b, nodes_a)
    reasons: list[str] = []
    if left is None or right is None:
        change: Change = "only in a" if right is None else "only in b"
    else:
        reasons += ["device"] if left.device != right.device else []
        reasons += ["opts"] if left.opts != right.opts else []
        both = [pair for pair in listings if pair.a is not None and pair.b is not None]
        reasons += [pair.language for pair in both if not pair.same]
        change = "changed" if reasons else "same"
    return KernelPair(left, right, change, tuple(reasons), first, only_a, only_b, listings, times)


def _program_lines(program: Program | None) -> tuple[str, ...] | None:
    return None if program is None else tuple(line.text for line in program.lines)


def _program_nodes(trace: Trace, programs: dict[str, Program]) -> list[Node]:
    """Returns the UOps of a kernel's linear program and all their sources."""
    if "uops" not in programs:
        return []
    roots = [node for line in programs["uops"].lines for node in line.nodes]
    return [trace.nodes[node] for node in toposort(roots, lambda node: trace.nodes[node].src)]


def _subtract_nodes(nodes: list[Node], others: list[Node]) -> tuple[Node, ...]:
    left = Counter(node.digest for node in others)
    remaining = []
    for node in nodes:
        if left[node.digest]:
            left[node.digest] -= 1
        else:
            remaining.append(node)
    return tuple(remaining)


# *** text and data ***


def comparison_text(comparison: Comparison) -> str:
    """Returns the comparison as text: the first difference, a line per kernel, and the differing options."""
    titles = " with ".join(repr(trace.title) for trace in (comparison.a, comparison.b))
    lines = [f"{titles}: {describe_counts(comparison)}"]
    lines.append(describe_first_difference(comparison.diff))
    lines.extend(f"{name}: {a} → {b}" for name, a, b in comparison.diff.options)
    for number, pair in enumerate(comparison.kernels):
        lines.append(f"{number:3}  {pair.name}  {describe_change(pair)}")
        lines.append(f"     {pair.times.text}")
    for text in comparison.texts:
        lines.append(f"at the end, {text.as_text()}")
        lines.extend([] if text.same or None in (text.a, text.b) else text.diff().splitlines())
    return "\n".join(lines)


def comparison_dict(comparison: Comparison) -> dict[str, Any]:
    """Returns the data of `Comparison.to_dict`."""
    first = comparison.diff.first
    return {
        "titles": [comparison.a.title, comparison.b.title],
        "same": comparison.same,
        "options": [list(option) for option in comparison.diff.options],
        "first": None if first is None else {"stage": first.name, "kernel": first.kernel},
        "kernels": [_pair_to_dict(pair) for pair in comparison.kernels],
        "stages": [
            {
                "name": pair.name,
                "in": [side for side, kernel in (("a", pair.a), ("b", pair.b)) if kernel is not None],
                "texts": {text.title or text.language: text.diff().splitlines() for text in pair.texts},
            }
            for pair in comparison.stages
        ],
    }


def _pair_to_dict(pair: KernelPair) -> dict[str, Any]:
    """Returns a pair of kernels as plain data."""
    return {
        "a": _kernel_to_dict(pair.a, pair.times.a),
        "b": _kernel_to_dict(pair.b, pair.times.b),
        "change": pair.change,
        "reasons": list(pair.reasons),
        "first": None if pair.first is None else pair.first.name,
        "nodes": {"only_a": len(pair.only_a), "only_b": len(pair.only_b)},
        "times": {"ratio": pair.times.ratio, "verdict": pair.times.verdict, "p_value": pair.times.p_value},
        "listings": {listing.language: list(listing.lines()) for listing in pair.listings if not listing.same},
    }


def _kernel_to_dict(kernel: KernelInfo | None, run: Run | None) -> dict[str, Any] | None:
    """Returns a kernel and its time as plain data; None if there is no kernel."""
    if kernel is None:
        return None
    return {
        "kernel": kernel.id,
        "name": kernel.name,
        "device": kernel.device,
        "opts": list(kernel.opts),
        "median_us": None if run is None else run.median_us,
        "times_us": [] if run is None else list(run.times_us),
    }

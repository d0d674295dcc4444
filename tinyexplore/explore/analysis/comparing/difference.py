"""Two traces side by side: what tells them apart, aligned by digest, the first difference first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tinyexplore.explore.tracefile.counted import count_text
from tinyexplore.explore.tracefile.model import KernelInfo, Node, Stage
from tinyexplore.explore.tracefile.readable import ReadableRow
from tinyexplore.explore.tracefile.trace import Trace


@dataclass(frozen=True, slots=True, repr=False)
class StagePair(ReadableRow):
    """Two stages in the same place of two traces; one of them None where only the other trace has it."""

    name: str
    kernel: int | None
    a: Stage | None
    b: Stage | None
    same: bool


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """What tells two traces apart. Nodes are equal where their digests are.

    `stages` in order; `first` the first of them that differs, inner stages before those that hold them.
    """

    options: tuple[tuple[str, str | None, str | None], ...]
    only_a: tuple[Node, ...]
    only_b: tuple[Node, ...]
    stages: tuple[StagePair, ...]
    first: StagePair | None
    kernels: tuple[tuple[int | None, int | None], ...]

    @property
    def same(self) -> bool:
        """True where both traces hold the same nodes in the same stages."""
        return self.first is None and not self.only_a and not self.only_b

    def __repr__(self) -> str:
        if self.same:
            parts = ["the same nodes in the same stages"]
        else:
            parts = [f"{count_text(len(self.only_a), 'node')} only in a, {len(self.only_b)} only in b"]
        if self.first is not None:
            where = "" if self.first.kernel is None else f" of kernel {self.first.kernel}"
            parts.append(f"they part in stage {self.first.name!r}{where}")
        parts.extend(f"{name}: {a} → {b}" for name, a, b in self.options)
        return f"TraceDiff({'; '.join(parts)})"


def diff(a: Trace, b: Trace) -> TraceDiff:
    """The differences of two traces, aligned by digest: graphs, then stages, then options."""
    options_a, options_b = dict(a.options), dict(b.options)
    names = dict.fromkeys((*options_a, *options_b))
    options = tuple((name, options_a.get(name), options_b.get(name)) for name in names)
    kernels = _align_kernels(a, b)
    stages = _align_stages(a, b, kernels)
    differing = [pair for pair in stages if not pair.same]
    parents = {stage.parent for pair in differing for stage in (pair.a,) if stage is not None}
    innermost = [pair for pair in differing if pair.a is None or pair.a.id not in parents]
    return TraceDiff(
        options=tuple(option for option in options if option[1] != option[2]),
        only_a=_left_over(a, b),
        only_b=_left_over(b, a),
        stages=stages,
        first=innermost[0] if innermost else None,
        kernels=kernels,
    )


def _left_over(a: Trace, b: Trace) -> tuple[Node, ...]:
    """The nodes of `a` that `b` has no (further) equal of."""
    left = Counter(node.digest for node in b.nodes)
    unpaired = []
    for node in a.nodes:
        if left[node.digest]:
            left[node.digest] -= 1
        else:
            unpaired.append(node)
    return tuple(unpaired)


def _digests(trace: Trace, nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(trace.nodes[node].digest for node in nodes)


def _align_kernels(a: Trace, b: Trace) -> tuple[tuple[int | None, int | None], ...]:
    """Kernels that compute the same LazyBuffers belong together; of the rest, those of the same calls and operations
    (of another shape, say), then those of the same calls, then whatever is left, in order."""
    waiting = {kernel.id: _digests(b, kernel.roots) for kernel in b.kernels}
    pairs: list[tuple[int | None, int | None]] = []
    unmatched = []
    for kernel in a.kernels:
        digests = _digests(a, kernel.roots)
        match = next((number for number, other in waiting.items() if other == digests), None)
        if match is None:
            unmatched.append(kernel.id)
        else:
            pairs.append((kernel.id, match))
            del waiting[match]
    for trait in (_work_of, _calls_of, _anything):
        unmatched = _pair_by(trait, a, b, unmatched, waiting, pairs)
    pairs.extend((number, None) for number in unmatched)
    pairs.extend((None, number) for number in waiting)
    return tuple(sorted(pairs, key=lambda pair: (pair[0] is None, pair[0] or 0)))


Trait = Callable[[Trace, KernelInfo], Any]


def _work_of(trace: Trace, kernel: KernelInfo) -> Any:
    """What is computed, whatever its shapes."""
    return kernel.calls, tuple(sorted(trace.nodes[node].op for node in kernel.nodes))


def _calls_of(trace: Trace, kernel: KernelInfo) -> Any:
    return kernel.calls


def _anything(trace: Trace, kernel: KernelInfo) -> Any:
    return None


def _pair_by(
    trait: Trait,
    a: Trace,
    b: Trace,
    unmatched: list[int],
    waiting: dict[int, tuple[str, ...]],
    pairs: list[tuple[int | None, int | None]],
) -> list[int]:
    """Pairs kernels that have the trait in common, in order, out of `waiting` into `pairs`; who of a found none."""
    candidates: dict[Any, list[int]] = {}
    for number in waiting:
        candidates.setdefault(trait(b, b.kernels[number]), []).append(number)
    left = []
    for number in unmatched:
        matches = candidates.get(trait(a, a.kernels[number]))
        if matches:
            other = matches.pop(0)
            pairs.append((number, other))
            del waiting[other]
        else:
            left.append(number)
    return left


StageKey = tuple[int | None, str, int]


def _keyed(trace: Trace) -> dict[StageKey, Stage]:
    """Each stage under its kernel, its name, and which of that name it is."""
    count: Counter[tuple[int | None, str]] = Counter()
    stages: dict[StageKey, Stage] = {}
    for stage in trace.stages:
        stages[stage.kernel, stage.name, count[stage.kernel, stage.name]] = stage
        count[stage.kernel, stage.name] += 1
    return stages


def _align_stages(a: Trace, b: Trace, kernels: tuple[tuple[int | None, int | None], ...]) -> tuple[StagePair, ...]:
    partner: dict[int | None, int | None] = {None: None}
    partner.update((left, right) for left, right in kernels if left is not None)
    waiting = _keyed(b)
    pairs = []
    for (kernel, name, number), stage in _keyed(a).items():
        other_kernel = partner.get(kernel)
        match = None
        if kernel is None or other_kernel is not None:
            match = waiting.pop((other_kernel, name, number), None)
        same = match is not None and (
            _digests(a, stage.before) == _digests(b, match.before)
            and _digests(a, stage.after) == _digests(b, match.after)
        )
        pairs.append(StagePair(name, kernel, stage, match, same))
    pairs.extend(StagePair(name, kernel, None, stage, False) for (kernel, name, _), stage in waiting.items())
    return tuple(pairs)

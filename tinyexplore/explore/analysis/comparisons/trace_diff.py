"""Computes the differences of two traces, aligned by digest, the first difference first."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tinyexplore.explore.tracefile.counts import count_text
from tinyexplore.explore.tracefile.model import KernelInfo, Node, Stage
from tinyexplore.explore.tracefile.result_display import DisplayableRow
from tinyexplore.explore.tracefile.stage_texts import CONTEXT
from tinyexplore.explore.tracefile.trace import Trace


@dataclass(frozen=True, slots=True, repr=False)
class TextPair(DisplayableRow):
    """The texts after the two stages of a pair. If a stage changed nothing, its text is that of its input.

    language: the language of both texts.
    title: the title of both texts, if a stage has several.
    a: the lines in the first trace, None if only the other one has such a text.
    b: the lines in the second trace, None if only the other one has such a text.
    """

    language: str
    title: str
    a: tuple[str, ...] | None
    b: tuple[str, ...] | None

    @property
    def same(self) -> bool:
        return self.a == self.b

    def diff(self, context: int = CONTEXT) -> str:
        """Returns the difference as a unified diff without file names; "" if there is none."""
        lines = difflib.unified_diff(self.a or (), self.b or (), n=context, lineterm="")
        return "\n".join([*lines][2:])

    def as_text(self) -> str:
        counts = [count_text(len(lines), "line") if lines is not None else "no text" for lines in (self.a, self.b)]
        return f"{self.title or self.language}: {counts[0]}, {counts[1]}{', the same' if self.same else ''}"


@dataclass(frozen=True, slots=True, repr=False)
class StagePair(DisplayableRow):
    """Two stages at the same position of two traces.

    name: the name of the stage.
    kernel: the kernel, None for all.
    a: the stage of the first trace, None if only the other one has it.
    b: the stage of the second trace, None if only the other one has it.
    same: whether both have the same result.
    texts: the texts of both; empty if neither changed one.
    """

    name: str
    kernel: int | None
    a: Stage | None
    b: Stage | None
    same: bool
    texts: tuple[TextPair, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceDiff:
    """The difference between two traces. Nodes are equal if their digests are.

    options: (name, a, b) of each option that differs.
    only_a: the nodes that only the first trace has.
    only_b: the nodes that only the second trace has.
    stages: the pairs of stages, in order.
    first: the first stage that differs, inner stages before enclosing ones; None for none.
    kernels: the numbers of each pair of kernels, None for a missing kernel.
    """

    options: tuple[tuple[str, str | None, str | None], ...]
    only_a: tuple[Node, ...]
    only_b: tuple[Node, ...]
    stages: tuple[StagePair, ...]
    first: StagePair | None
    kernels: tuple[tuple[int | None, int | None], ...]

    @property
    def same(self) -> bool:
        """Whether both traces have the same nodes in the same stages."""
        return self.first is None and not self.only_a and not self.only_b

    def __repr__(self) -> str:
        if self.same:
            parts = ["the same nodes in the same stages"]
        else:
            parts = [f"{count_text(len(self.only_a), 'node')} only in a, {len(self.only_b)} only in b"]
        if self.first is not None:
            owner = "" if self.first.kernel is None else f" of kernel {self.first.kernel}"
            parts.append(f"they differ from stage {self.first.name!r}{owner}")
        parts.extend(f"{name}: {a} → {b}" for name, a, b in self.options)
        return f"TraceDiff({'; '.join(parts)})"


def diff(a: Trace, b: Trace) -> TraceDiff:
    """Returns the differences of two traces, aligned by digest: graphs, then stages, then options."""
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
        only_a=_find_unpaired_nodes(a, b),
        only_b=_find_unpaired_nodes(b, a),
        stages=stages,
        first=innermost[0] if innermost else None,
        kernels=kernels,
    )


def _find_unpaired_nodes(a: Trace, b: Trace) -> tuple[Node, ...]:
    """Returns the nodes of `a` without an equal node in `b`, counted with repetitions."""
    left = Counter(node.digest for node in b.nodes)
    unpaired = []
    for node in a.nodes:
        if left[node.digest]:
            left[node.digest] -= 1
        else:
            unpaired.append(node)
    return tuple(unpaired)


def _list_digests(trace: Trace, nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(trace.nodes[node].digest for node in nodes)


def _align_kernels(a: Trace, b: Trace) -> tuple[tuple[int | None, int | None], ...]:
    """Pairs the kernels of two traces.

    Kernels that compute the same LazyBuffers are paired first. Then follow kernels with the same calls and operations
    (such as those of another shape), then those with the same calls, then the rest in order.
    """
    unpaired_b = {kernel.id: _list_digests(b, kernel.roots) for kernel in b.kernels}
    pairs: list[tuple[int | None, int | None]] = []
    unmatched = []
    for kernel in a.kernels:
        digests = _list_digests(a, kernel.roots)
        match = next((number for number, other in unpaired_b.items() if other == digests), None)
        if match is None:
            unmatched.append(kernel.id)
        else:
            pairs.append((kernel.id, match))
            del unpaired_b[match]
    for trait in (_calls_and_ops, _calls_of, _match_any_kernel):
        unmatched = _pair_kernels_by(trait, a, b, unmatched, unpaired_b, pairs)
    pairs.extend((number, None) for number in unmatched)
    pairs.extend((None, number) for number in unpaired_b)
    return tuple(sorted(pairs, key=lambda pair: (pair[0] is None, pair[0] or 0)))


Trait = Callable[[Trace, KernelInfo], Any]


def _calls_and_ops(trace: Trace, kernel: KernelInfo) -> Any:
    """Returns the calls and operations of a kernel, without its shapes."""
    return kernel.calls, tuple(sorted(trace.nodes[node].op for node in kernel.nodes))


def _calls_of(trace: Trace, kernel: KernelInfo) -> Any:
    return kernel.calls


def _match_any_kernel(trace: Trace, kernel: KernelInfo) -> Any:
    return None


def _pair_kernels_by(
    trait: Trait,
    a: Trace,
    b: Trace,
    unmatched: list[int],
    unpaired_b: dict[int, tuple[str, ...]],
    pairs: list[tuple[int | None, int | None]],
) -> list[int]:
    """Moves kernels with an equal trait from `unpaired_b` to `pairs`, in order; returns the unpaired kernels of `a`."""
    candidates: dict[Any, list[int]] = {}
    for number in unpaired_b:
        candidates.setdefault(trait(b, b.kernels[number]), []).append(number)
    left = []
    for number in unmatched:
        matches = candidates.get(trait(a, a.kernels[number]))
        if matches:
            other = matches.pop(0)
            pairs.append((number, other))
            del unpaired_b[other]
        else:
            left.append(number)
    return left


StageKey = tuple[int | None, str, int]


def _index_stages(trace: Trace) -> dict[StageKey, Stage]:
    """Returns the stages by (kernel, name, number among the stages of that kernel and name)."""
    count: Counter[tuple[int | None, str]] = Counter()
    stages: dict[StageKey, Stage] = {}
    for stage in trace.stages:
        stages[stage.kernel, stage.name, count[stage.kernel, stage.name]] = stage
        count[stage.kernel, stage.name] += 1
    return stages


def _align_stages(a: Trace, b: Trace, kernels: tuple[tuple[int | None, int | None], ...]) -> tuple[StagePair, ...]:
    """Pairs the stages of two traces by kernel, name and number. A stage without a partner has the partner None."""
    partner: dict[int | None, int | None] = {None: None}
    partner.update((left, right) for left, right in kernels if left is not None)
    unpaired_b = _index_stages(b)
    texts_a, texts_b = _index_texts(a), _index_texts(b)
    changing = ({text.stage for text in a.stage_texts}, {text.stage for text in b.stage_texts})
    pairs = []
    for (kernel, name, number), stage in _index_stages(a).items():
        other_kernel = partner.get(kernel)
        match = None
        if kernel is None or other_kernel is not None:
            match = unpaired_b.pop((other_kernel, name, number), None)
        texts: tuple[TextPair, ...] = ()
        if stage.id in changing[0] or (match is not None and match.id in changing[1]):
            texts = _pair_texts(texts_a.get(stage.id, {}), {} if match is None else texts_b.get(match.id, {}))
        same = match is not None and (
            _list_digests(a, stage.before) == _list_digests(b, match.before)
            and _list_digests(a, stage.after) == _list_digests(b, match.after)
            and all(text.same for text in texts)
        )
        pairs.append(StagePair(name, kernel, stage, match, same, texts))
    for (kernel, name, _), stage in unpaired_b.items():
        texts_of_b = texts_b[stage.id] if stage.id in changing[1] else {}
        pairs.append(StagePair(name, kernel, None, stage, False, _pair_texts({}, texts_of_b)))
    return tuple(pairs)


Texts = dict[tuple[str, str], tuple[str, ...]]


def _index_texts(trace: Trace) -> dict[int, Texts]:
    """Returns the texts after each stage, by language and title. A stage without a change has the previous text."""
    texts_of: dict[int, Texts] = {}
    for text in trace.stage_texts:
        texts_of.setdefault(text.stage, {})[text.language, text.title] = tuple(line.text for line in text.lines)
    last: Texts = {}
    for stage in trace.stages if texts_of else ():
        stage_texts = texts_of.setdefault(stage.id, last)
        last = stage_texts if len(stage_texts) == 1 else {}  # after several texts, the next stage processes only one
    return texts_of


def last_texts(a: Trace, b: Trace) -> tuple[TextPair, ...]:
    """Returns the last texts of two traces, by language and title."""
    ends: list[Texts] = []
    for trace in (a, b):
        last = {(text.language, text.title): text for text in trace.stage_texts}
        ends.append({key: tuple(line.text for line in text.lines) for key, text in last.items()})
    return _pair_texts(*ends)


def _pair_texts(a: Texts, b: Texts) -> tuple[TextPair, ...]:
    return tuple(TextPair(*key, a.get(key), b.get(key)) for key in dict.fromkeys((*a, *b)))

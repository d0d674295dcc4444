"""Realizes a few programs, with or without a capture of the explorer, and prints the results."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from hashlib import sha256
from typing import Any

import numpy as np

from tinyexplore import Tensor, capture, engine, nn
from tinyexplore.compile.runner_cache import runners
from tinyexplore.engine import ExecItem
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.schedule.fusion import Fusion
from tinyexplore.trace import RuleApplied, ScheduleDecided, active_recorder
from tinyexplore.uop import PatternMatcher, UOp


def given(*shape: int) -> Tensor:
    return Tensor(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)).realize()


def transformer_step() -> list[LazyBuffer]:
    x, weights = given(2, 8, 16), [given(16, 16) for _ in range(4)]
    for weight in weights:
        weight.requires_grad = True
    q, k, v = ((x @ weight).reshape(2, 8, 2, 8).transpose(1, 2) for weight in weights[:3])
    mixed = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(2, 8, 16) @ weights[3]
    (mixed + x).layernorm().square().mean().backward()
    return [weight.grad.lazydata for weight in weights if weight.grad is not None]


def convnet_step() -> list[LazyBuffer]:
    convolution, norm, linear = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(36, 3)
    parameters = nn.state.get_parameters([convolution, norm, linear])
    for parameter in parameters:
        parameter.requires_grad = True
        parameter.realize()
    with Tensor.train():
        hidden = norm(convolution(given(4, 1, 8, 8))).relu().max_pool2d()
        linear(hidden.flatten(1)).log_softmax().mean().backward()
    return [parameter.grad.lazydata for parameter in parameters if parameter.grad is not None]


PROGRAMS: dict[str, Callable[[], list[LazyBuffer]]] = {
    "a transformer's step": transformer_step,
    "a convnet's step": convnet_step,
    "a sort": lambda: [part.lazydata for part in given(37, 5).sort(0)],
    "attention": lambda: [given(2, 24, 16).scaled_dot_product_attention(given(2, 24, 16), given(2, 24, 16)).lazydata],
}


def counted(fired: Counter[str]) -> Callable[[PatternMatcher, UOp], Iterator[Any]]:
    """`PatternMatcher.candidates`, which counts what fires."""
    candidates = PatternMatcher.candidates

    def counting(self: PatternMatcher, node: UOp) -> Iterator[Any]:
        for rule, match, function in candidates(self, node):

            def tried(*arguments: Any, name: str = rule.name, match: Any = match) -> UOp | None:
                after: UOp | None = match(*arguments)
                fired[name] += after is not None
                return after

            yield rule, tried, function

    return counting


def work(build: Callable[[], list[LazyBuffer]], *, watched: bool) -> dict[str, Any]:
    """What realizing came to: decisions, asts, sources, and how often each rule fired. Watched, `told` says whether the
    recorder recorded exactly these."""
    fired: Counter[str] = Counter()
    decided: list[list[tuple[str, str, str]]] = []
    ready: list[ExecItem] = []
    init, candidates, compile_many = Fusion.__init__, PatternMatcher.candidates, engine.compile_many

    def noting(self: Fusion, *arguments: Any) -> None:
        init(self, *arguments)
        decided.append(sorted(self.decisions.values()))

    def collecting(items: Sequence[ScheduleItem]) -> list[ExecItem]:
        found = compile_many(items)
        ready.extend(found)
        return found

    outputs = build()
    runners.cache_clear()  # each program finds nothing that one before it compiled
    Fusion.__init__, PatternMatcher.candidates = noting, counted(fired)  # type: ignore[method-assign, assignment]
    engine.compile_many = collecting  # type: ignore[attr-defined]
    try:
        with capture() if watched else nullcontext():
            engine.realize(outputs)
            recorder = active_recorder()
            events = [] if recorder is None else list(recorder.events)
    finally:
        Fusion.__init__, PatternMatcher.candidates = init, candidates  # type: ignore[method-assign]
        engine.compile_many = compile_many  # type: ignore[attr-defined]
    told = Counter(event.rule.name for event in events if isinstance(event, RuleApplied))
    rewrites = ("merge", "split")  # decided before fusion
    decisions = (event for event in events if isinstance(event, ScheduleDecided) and event.decision not in rewrites)
    heard = sorted((event.decision, event.reason, event.legality_error) for event in decisions)
    return {
        "asts": [None if one.item.ast is None else one.item.ast.digest for one in ready],
        "decisions": decided,
        "sources": [sha256(one.runner.spec.source.encode()).hexdigest() for one in ready if one.runner is not None],
        "fired": dict(sorted((name, count) for name, count in fired.items() if count)),
        "told": not watched or ([heard] == decided and told <= fired),
    }


if __name__ == "__main__":
    print(json.dumps({name: work(build, watched="watched" in sys.argv) for name, build in PROGRAMS.items()}, indent=1))

"""beam_search with a formula as its clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import pytest

from tests.graphs import from_numpy, matmul, numbers
from tests.support.kernels import kernel_of
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt, beam_search
from tinyexplore.kernel.search import CandidateTime, find_replayed, neighbors
from tinyexplore.trace import CandidateMeasured, Recorder, SearchEnded, recording
from tinyexplore.uop import Ops


class Formula:
    """A clock that computes the times; `asked` has what it was asked, in order."""

    def __init__(self, seconds: Callable[[Kernel], float], rematch: Callable[[Kernel], float] | None = None) -> None:
        self.seconds = seconds
        self.rematch = rematch or seconds
        self.asked: list[Kernel] = []

    def time_candidates(self, kernels: Sequence[Kernel], best: float) -> Iterator[CandidateTime]:
        for kernel in kernels:
            self.asked.append(kernel)
            seconds = self.seconds(kernel)
            yield CandidateTime(seconds, "lost" if math.isinf(seconds) else "")

    def compare_two(self, first: Kernel, second: Kernel) -> tuple[float, float]:
        return self.rematch(first), self.rematch(second)


def start() -> Kernel:
    return kernel_of(from_numpy(numbers(64, 64)).reduce(Ops.ADD, (1,)))


def likes_vectors_and_unrolling(kernel: Kernel) -> float:
    worth = {OptOps.VECTOR: 8.0, OptOps.UNROLL: 2.0}
    return 1.0 / math.prod(worth.get(opt.op, 0.9) * (opt.amount or 1) for opt in kernel.applied)


def test_the_search_finds_the_fastest_candidate() -> None:
    result = beam_search([start()], 2, Formula(likes_vectors_and_unrolling))
    assert any(opt.op is OptOps.VECTOR and opt.amount == 16 for opt in result.kernel.applied)
    assert result.seconds < 1 / 100
    assert result.reason.startswith(f"{result.start_seconds / result.seconds:.3g}× faster")


def test_an_unbeaten_start_is_kept_and_reported() -> None:
    kernel = start()
    result = beam_search([kernel], 3, Formula(lambda candidate: 1.0 if candidate.ast is kernel.ast else 2.0))
    assert result.kernel is kernel
    assert f"none of {result.tried} measured" in result.reason


def test_a_duel_removes_lucky_measurements() -> None:
    kernel = start()
    recorder = Recorder()
    with recording(recorder):
        result = beam_search([kernel], 2, Formula(likes_vectors_and_unrolling, rematch=lambda candidate: 1.0))
    assert result.kernel is kernel and result.seconds == result.start_seconds == 1.0
    (searched,) = (event for event in recorder.events if isinstance(event, SearchEnded))
    assert searched.before is searched.after is kernel
    assert f"none of {result.tried} measured" in searched.reason


def test_failed_candidates_are_skipped_and_every_measurement_is_recorded() -> None:
    recorder = Recorder()
    fails_often = Formula(lambda k: math.inf if k.applied[:1] and k.applied[0].amount > 4 else 1.0)
    with recording(recorder):
        result = beam_search([start()], 1, fails_often)
    told = [event for event in recorder.events if isinstance(event, CandidateMeasured)]
    assert len(told) == result.tried > 5
    assert {event.note for event in told if event.seconds == math.inf} == {"lost"}
    assert isinstance(recorder.events[-1], SearchEnded)


def test_if_nothing_runs_the_start_is_kept_with_a_reason() -> None:
    result = beam_search([start()], 2, Formula(lambda kernel: math.inf))
    assert result.tried == 1
    assert "is used: lost" in result.reason


@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_and_times_give_the_same_candidates_and_choice(seed: int) -> None:
    runs = [Formula(likes_vectors_and_unrolling) for _ in range(2)]
    chosen = [beam_search([start()], 2, clock, seed).kernel.applied for clock in runs]
    assert chosen[0] == chosen[1]
    assert [kernel.applied for kernel in runs[0].asked] == [kernel.applied for kernel in runs[1].asked]


def test_the_seed_orders_the_candidates_and_equal_times_keep_that_order() -> None:
    def ties(kernel: Kernel) -> float:
        return 0.5 if kernel.applied else 1.0

    clocks = [Formula(ties) for _ in range(3)]
    results = [beam_search([start()], 1, clock, seed) for seed, clock in enumerate(clocks)]
    for result, clock in zip(results, clocks):
        assert result.kernel is next(kernel for kernel in clock.asked if kernel.applied)
    assert len({clock.asked[1].ast for clock in clocks}) > 1


def test_neighbors_differ_by_one_opt_more_less_or_changed() -> None:
    kernel = kernel_of(matmul(from_numpy(numbers(64, 64)), from_numpy(numbers(64, 64))))
    for opt in (Opt(OptOps.VECTOR, 1, 16), Opt(OptOps.UPCAST, 0, 4)):
        kernel = apply_opt(kernel, opt)
    found = {after.applied for after in neighbors(kernel)}
    vector, upcast = kernel.applied
    assert (vector,) in found and (upcast,) in found
    assert (vector, Opt(OptOps.UPCAST, 0, 6)) in found and (Opt(OptOps.VECTOR, 1, 8), upcast) in found
    assert (vector, upcast, Opt(OptOps.THREAD, 0)) in found
    assert all(len(opts) <= 3 for opts in found)
    replayed = find_replayed(kernel, kernel.applied)
    assert replayed is not None and replayed.ast is kernel.ast
    assert find_replayed(kernel, (upcast, upcast, upcast, upcast, upcast)) is None

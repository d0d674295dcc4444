"""beam_search with a formula for its clock."""

from __future__ import annotations

import math

from tests.graphs import from_numpy, numbers
from tests.unit.kernel.test_opts import kernel_of
from tinyexplore.kernel import Kernel, Opt, OptOps, beam_search
from tinyexplore.trace import Measured, Recorder, recording
from tinyexplore.uop import Ops


def start() -> Kernel:
    return kernel_of(from_numpy(numbers(64, 64)).reduce(Ops.ADD, (1,)))


def likes_vectors_and_unrolling(kernel: Kernel) -> float:
    worth = {OptOps.VECTOR: 8.0, OptOps.UNROLL: 2.0}
    return 1.0 / math.prod(worth.get(opt.op, 0.9) * (opt.amount or 1) for opt in kernel.applied)


def test_the_search_climbs_to_what_the_clock_likes() -> None:
    result = beam_search([start()], 2, likes_vectors_and_unrolling)
    assert Opt(OptOps.VECTOR, 1, 16) in result.kernel.applied or any(
        o.op is OptOps.VECTOR for o in result.kernel.applied
    )
    assert result.seconds < 1 / 100
    assert result.reason.startswith(f"{result.start_seconds / result.seconds:.2f}× faster")


def test_a_start_that_nothing_beats_stays_and_the_result_says_so() -> None:
    kernel = start()
    result = beam_search([kernel], 3, lambda candidate: 1.0 if candidate is kernel else 2.0)
    assert result.kernel is kernel
    assert result.reason == f"none of {result.tried} measured beats the hand-coded choice"


def test_failures_are_passed_over_and_every_measurement_is_told() -> None:
    recorder = Recorder()
    with recording(recorder):
        result = beam_search([start()], 1, lambda k: math.inf if k.applied[:1] and k.applied[0].amount > 4 else 1.0)
    told = [event for event in recorder.events if isinstance(event, Measured)]
    assert len(told) == result.tried > 5 and any(event.seconds == math.inf for event in told)

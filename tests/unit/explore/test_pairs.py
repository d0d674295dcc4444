"""Paired times are measured alternately, and their comparison claims no more than the spread allows."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

import pytest

from tinyexplore.compile.search_worker import MIN_SAMPLES, sample_alternately
from tinyexplore.dtype import dtypes
from tinyexplore.explore.live.interpreter_times import alternate_times
from tinyexplore.explore.tracefile.model import EditReport
from tinyexplore.explore.tracefile.texts import ratio_text
from tinyexplore.explore.whatif.editing.client import describe_verdict
from tinyexplore.explore.whatif.editing.output_comparison import compare_outputs, compare_without_numpy
from tinyexplore.explore.whatif.measurement import Measurement


@dataclass
class Machine:
    """A machine by a formula: a run takes `seconds` at first, and longer over time."""

    drift: float = 0.0
    now: float = 0.0
    order: list[int] = field(default_factory=list)

    def run_of(self, number: int, seconds: float):
        def run() -> None:
            self.order.append(number)
            self.now += seconds * (1 + self.drift * self.now)

        return run

    def seconds_of(self, run, calls: int) -> tuple[float, bool]:
        began = self.now
        for _ in range(calls):
            run()
        return (self.now - began) / calls, True

    def clock(self) -> float:
        return self.now


def test_equal_kernels_have_equal_medians_on_a_machine_that_becomes_slower() -> None:
    machine = Machine(drift=20.0)
    mine, base = sample_alternately([machine.run_of(n, 1e-3) for n in range(2)], 20, machine.seconds_of, machine.clock)
    assert max(mine) > 1.5 * min(mine)
    assert median(mine) == pytest.approx(median(base), rel=0.02)
    assert Measurement(tuple(mine), tuple(base)).fields()["verdict"] == "noise"


def test_rounds_alternate_direction_after_a_warm_up_run() -> None:
    machine = Machine()
    found = sample_alternately([machine.run_of(n, 1e-3) for n in range(3)], 2, machine.seconds_of, machine.clock)
    assert machine.order == [0, 1, 2, 0, 1, 2, 2, 1, 0]
    assert [len(one) for one in found] == [2, 2, 2]


@pytest.mark.parametrize(("seconds", "rounds"), [(1e-3, 20), (0.1, MIN_SAMPLES), (10.0, 1)])
def test_long_kernels_get_fewer_samples_and_both_as_many(seconds: float, rounds: int) -> None:
    machine = Machine()
    found = sample_alternately([machine.run_of(n, seconds) for n in range(2)], 20, machine.seconds_of, machine.clock)
    assert [len(one) for one in found] == [rounds, rounds]


def test_samples_of_an_interpreter_are_interleaved_too() -> None:
    machine = Machine(drift=1.0)
    mine, base = alternate_times([machine.run_of(n, 1e-2) for n in range(2)], machine.clock)
    assert machine.order[:4] == [0, 1, 1, 0] and len(mine) == len(base)


@pytest.mark.parametrize(
    ("factor", "verdict", "ratio"), [(0.5, "faster", "2.00×"), (2.0, "slower", "2.00×"), (1.0, "noise", "")]
)
def test_a_ratio_is_reported_if_it_exceeds_the_spread(factor: float, verdict: str, ratio: str) -> None:
    base = tuple(10 + 0.1 * (number % 5) for number in range(20))
    found = Measurement(tuple(factor * time_us for time_us in base), base).fields()
    assert found["verdict"] == verdict and found["base_median_us"] == 10.2
    text = ratio_text(found["median_us"], found["base_median_us"], found["verdict"])
    assert ratio in text and ("×" in text) == bool(ratio)


def test_times_without_a_baseline_have_no_ratio() -> None:
    found = Measurement((1.0, 2.0, 3.0)).fields()
    assert found["median_us"] == 2.0 and found["base_median_us"] is None and "verdict" not in found
    assert ratio_text(2.0, None, "unknown") == ""


@pytest.mark.parametrize("compare", [compare_outputs, compare_without_numpy])
def test_a_difference_is_reported_with_magnitude_and_tolerance(compare) -> None:
    import struct

    names = [("data0", dtypes.float32)]
    right, found = (struct.pack("4f", 1.0, -200.0, last, 0.0) for last in (50.0, 50.0078125))
    told = compare(names, {0: found}, {0: right})
    assert (told["verdict"], told["largest_error"], told["magnitude"]) == ("within rounding", 0.0078125, 200.0)
    assert told["tolerance"] == 1e-3
    words = describe_verdict(EditReport("c", against="the kernel", **told))
    assert "0.00781" in words and "3.9e-05" in words and "0.001" in words

"""Samples: every launch is timed under the same conditions, and results stay the same. A formula is the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pytest

from tinyexplore import Tensor
from tinyexplore.engine import Sampling, compile_many, sampling, schedule, step_by_step
from tinyexplore.execute import sampling as limits
from tinyexplore.execute.sampling import overwritten_inputs
from tinyexplore.explore import capture, explore
from tinyexplore.trace import ExecItemRan, ExecItemRetimed, Recorder, recording


@dataclass(eq=False)
class Timed:
    """A launch that takes `seconds` by the clock in `now`."""

    seconds: float
    now: list[float]
    runner: Any = None
    buffers: tuple[Any, ...] = ()
    runs: list[float] = field(default_factory=list)

    def measure(self, repeat: int) -> list[float]:
        self.now[0] += repeat * self.seconds
        self.runs += [self.seconds] * repeat
        return [self.seconds] * repeat


def sampled(request: Sampling, now: list[float], *seconds: float) -> list[ExecItemRetimed]:
    for one in seconds:
        request.add(Timed(one, now), one)
    return request.take()


def with_clock(count: int) -> tuple[Sampling, list[float]]:
    now = [0.0]
    return Sampling(count, clock=lambda: now[0]), now


def test_each_launch_gets_the_same_number_of_samples_after_a_run_that_is_not_counted() -> None:
    request, now = with_clock(10)
    launches = [Timed(1e-5, now) for _ in range(3)]
    for launch in launches:
        request.add(launch, 0.3)  # the first run of a launch may be slow
    found = request.take()
    assert [one.seconds for one in found] == [(1e-5,) * 10] * 3
    assert [len(launch.runs) for launch in launches] == [1 + 2 * 10] * 3  # before each sample one run warms the caches


def test_equal_launches_have_equal_medians_when_the_machine_changes_speed() -> None:
    """One sample of each launch in a round, there and back: each launch sees the same part of slow and fast time."""
    now = [0.0]
    runs: list[int] = []

    @dataclass(eq=False)
    class Launch:
        number: int
        runner: Any = None
        buffers: tuple[Any, ...] = ()

        def measure(self, repeat: int) -> list[float]:
            runs.append(self.number)
            seconds = 1e-2 * (1 + now[0])  # slower and slower
            now[0] += seconds
            return [seconds]

    request = Sampling(10, clock=lambda: now[0])
    for number in range(3):
        request.add(Launch(number), 1e-2)
    medians = [median(one.seconds) for one in request.take()]
    assert runs == [0, 1, 2, *([0, 1, 2, 2, 1, 0] * 5)]
    assert max(medians) / min(medians) < 1.02


def test_launches_that_hold_much_memory_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_PENDING_BYTES", 1000)
    x = Tensor.ones(64).contiguous().realize()
    events = recorded(lambda: [(x + n).realize() for n in range(5)], Sampling(3)).events
    order = "".join(
        type(one).__name__.removeprefix("ExecItem")[1]
        for one in events
        if isinstance(one, (ExecItemRan, ExecItemRetimed))
    )
    assert order == "aaaeeeaaee"  # ExecItemRan and ExecItemRetimed three times each: 256 bytes each, and those of x
    ran = [one.exec_item for one in events if isinstance(one, ExecItemRan)]
    assert [one.exec_item for one in events if isinstance(one, ExecItemRetimed)] == ran


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
def test_samples_change_no_memory_that_was_written_later(device: str) -> None:
    """Samples of the first kernels are taken after their memory was overwritten, by kernels and from outside."""
    x = Tensor([1.0, 2.0, 3.0, 4.0], device=device).realize()
    y = (x * 2).realize()
    z = [x]

    def work() -> None:
        z[0] = (x + 1).contiguous().realize()
        assert z[0].lazydata.buffer is not None
        y.assign(y + z[0]).realize()
        x.assign(y * 2).realize()
        y.assign(y + x).realize()
        z[0].lazydata.base.buffer.copyin(bytes(16))  # type: ignore[union-attr]

    recorded(work, Sampling(3))
    assert x.tolist() == [8.0, 14.0, 20.0, 26.0]
    assert y.tolist() == [12.0, 21.0, 30.0, 39.0]
    assert z[0].tolist() == [0.0] * 4


def test_a_long_launch_gets_fewer_samples_and_at_least_two() -> None:
    request, now = with_clock(10)
    found = sampled(request, now, 0.05, 0.2, 2.0)
    assert [len(one.seconds) for one in found] == [5, 2, 2]
    assert [one.took for one in found] == pytest.approx([0.3, 0.6, 6.0])


def test_a_launch_without_samples_has_a_reason() -> None:
    request, now = with_clock(10)
    (found,) = sampled(request, now, 4.0)
    assert found.seconds == () and "4 s" in found.reason and now == [0.0]
    request.spent_s = limits.LIMIT_S + 1
    (found,) = sampled(request, now, 1e-6)
    assert found.seconds == () and found.reason


def test_launches_of_one_program_have_as_many_samples_as_the_first() -> None:
    request, now = with_clock(10)
    runner = type("Runner", (), {"spec": type("Spec", (), {"uops": (), "writes": frozenset()})})
    for one in (0.05, 0.01, 0.2):
        request.add(Timed(one, now, runner), one)
    counts = [len(found.seconds) for found in request.take()]
    assert counts == [5, 5, 5]


def recorded(work: Any, request: Sampling) -> Recorder:
    recorder = Recorder()
    with step_by_step(), recording(recorder), sampling(request):
        work()
    return recorder


def test_kernels_run_again_only_inside_a_request_and_with_no_recorder_as_well() -> None:
    x = Tensor([1.0, 2.0]).realize()
    plain = Recorder()
    with step_by_step(), recording(plain):
        (x + 1).realize()
    assert [type(one) for one in plain.events if isinstance(one, (ExecItemRan, ExecItemRetimed))] == [ExecItemRan]
    request = Sampling(3)
    with step_by_step(), sampling(request):
        (x + 1).realize()
    assert request.spent_s > 0
    events = recorded(lambda: (x + 1).realize(), Sampling(3)).events
    assert [len(one.seconds) for one in events if isinstance(one, ExecItemRetimed)] == [3]


def test_an_enclosing_request_for_more_samples_holds() -> None:
    x = Tensor([1.0, 2.0]).realize()
    recorder = Recorder()
    with step_by_step(), recording(recorder), sampling(Sampling(4)), sampling(Sampling(2)):
        (x + 1).realize()
    assert [len(one.seconds) for one in recorder.events if isinstance(one, ExecItemRetimed)] == [4]


def test_only_what_a_kernel_reads_and_writes_is_restored() -> None:
    x = Tensor([1.0, 2.0, 3.0]).realize()
    (plain,) = compile_many(schedule([(x + 1).lazydata]))
    assert overwritten_inputs(plain) == []


def in_place(x: Tensor) -> Tensor:
    x[1:] = x[1:] * 2 + 1
    return x.realize()


def accumulated(x: Tensor) -> Tensor:
    return x.assign(x * 0.5 + 1).realize()


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON", "WASM"])
@pytest.mark.parametrize("work", [in_place, accumulated])
def test_a_kernel_that_overwrites_its_input_computes_what_one_run_computes(work: Any, device: str) -> None:
    values = [float(number) for number in range(64)]
    expected = work(Tensor(values, device=device).realize()).tolist()
    view = explore(work, Tensor(values, device=device).realize(), device=device, repeat=4)
    assert view.result.tolist() == expected
    assert all(run.warm for run in view.trace.runs)


def three_times() -> None:
    x = Tensor.ones(64, 64).contiguous().realize()
    for _ in range(3):
        x = (x @ x).realize()


def test_all_launches_of_one_program_are_sampled_equally() -> None:
    trace = explore(three_times, repeat=7).trace
    equal = [kernel.id for kernel in trace.kernels if kernel.same_as is not None or kernel.name.startswith("r_")]
    assert len(equal) == 3
    runs = [run for run in trace.runs if run.kernel in equal]
    assert [(len(run.times_us), run.warm) for run in runs] == [(7, True)] * 3
    assert all(run.first_us > 0 for run in runs)


def test_without_samples_every_launch_has_its_own_single_cold_run() -> None:
    with capture() as session:
        three_times()
    assert {(len(run.times_us), run.warm) for run in session.trace.runs} == {(1, False)}
    assert all(run.times_us == (run.first_us,) == (run.median_us,) for run in session.trace.runs)


def test_copies_between_devices_are_sampled_too() -> None:
    x = Tensor([1.0, 2.0, 3.0], device="LLVM").realize()
    trace = explore(lambda: x.to("PYTHON") + 1, repeat=3).trace
    assert {kernel.name for kernel in trace.kernels} >= {"copy"}
    assert {len(run.times_us) for run in trace.runs} == {3}


def test_a_launch_without_samples_has_no_time_if_others_have_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single cold run is in no column or sum with medians."""
    add = Sampling.add
    added: list[Any] = []

    def all_but_the_first_are_long(self: Sampling, launch: Any, first_s: float) -> None:
        added.append(launch)
        add(self, launch, first_s if len(added) == 1 else 60.0)

    monkeypatch.setattr(Sampling, "add", all_but_the_first_are_long)
    x = Tensor([1.0, 2.0]).realize()
    trace = explore(lambda: ((x + 1).realize(), (x * 3).realize()), repeat=3).trace
    assert [run.kernel for run in trace.runs] == [0]
    assert [bool(kernel.not_run) for kernel in trace.kernels] == [False, True]
    from tinyexplore.explore.tracefile.figures import figures

    assert figures(trace).run_us == trace.runs[0].median_us


def test_a_nested_capture_has_samples_only() -> None:
    x = Tensor([1.0, 2.0]).realize()
    with capture() as outer:
        (x + 1).realize()
        explore(lambda: (x * 3).realize(), repeat=3)
    assert [run.warm for run in outer.trace.runs] == [True]


def test_the_last_recorded_launch_of_a_capture_has_samples() -> None:
    x = Tensor([1.0, 2.0]).realize()
    trace = explore(lambda: [(x * n).realize() for n in range(2, 7)], repeat=3, kernels=2).trace
    assert [len(run.times_us) for run in trace.runs] == [3, 3]


def test_samples_during_which_threads_waited_for_a_core_are_replaced() -> None:
    """Another process takes a core in two of three samples: the median is that of the others."""
    now, waits, runs = [0.0], [0.0], [0]

    @dataclass(eq=False)
    class Disturbed:
        runner: Any = None
        buffers: tuple[Any, ...] = ()

        def measure(self, repeat: int) -> list[float]:
            runs[0] += 1
            late = 0.0 if runs[0] % 6 == 2 else 0.01  # a run that warms stands before each sample
            now[0] += 0.002 + late
            waits[0] += late
            return [0.002 + late]

    request = Sampling(4, clock=lambda: now[0], waited=lambda: waits[0])
    request.add(Disturbed(), 0.002)
    (found,) = request.take()
    assert found.seconds == (0.002,) * 4 and found.waited == 0.0

    endless = Sampling(4, clock=lambda: now[0], waited=lambda: now[0])  # all samples wait: they stay, and say so
    endless.add(Timed(0.002, now), 0.002)
    (found,) = endless.take()
    assert len(found.seconds) == 4 and found.waited == pytest.approx(1.0)

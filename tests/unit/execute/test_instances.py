"""Concurrent instances of a device: which ones run concurrently, their order, and the visible effects."""

from __future__ import annotations

import os
import threading
import time
import warnings
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import random_array
from tests.support.interrupts import Interrupter
from tests.support.patience import seconds
from tinyexplore import Context, GlobalCounters, Tensor, TinyJit, capture
from tinyexplore.execute import instances
from tinyexplore.execute.instances import divide_among_instances, run_side_by_side
from tinyexplore.execute.plan import plans

INSTANCES = ("LLVM", "LLVM:1", "LLVM:2")


@given(st.lists(st.tuples(st.sampled_from([None, "A", "B", "C"]), st.integers(0, 200_000))), st.integers(1, 4))
def test_copies_wait_for_all_and_an_instance_keeps_its_order(items: list[tuple[str | None, int]], threads: int) -> None:
    numbered = list(enumerate(items))
    with Context(THREADS=threads):
        found = divide_among_instances(numbered, lambda item: item[1][0], lambda item: item[1][1])
    assert sorted(item for stretch in found for queue in stretch for item in queue) == numbered
    done: set[int] = set()
    for stretch in found:
        assert len(stretch) <= threads
        inside = [number for queue in stretch for number, _ in queue]
        assert done == set(range(min(inside))), "whole stretches, one after the other"
        done.update(inside)
        for queue in stretch:
            assert queue == sorted(queue) or len(stretch) > 1
            for name in "ABC":
                own = [number for number, (device, _) in queue if device == name]
                assert own == sorted(own)
        if len(stretch) > 1:
            assert None not in {device for queue in stretch for _, (device, _) in queue}
            assert len({device for queue in stretch for device in {one for _, (one, _) in queue}}) >= len(stretch)
            assert sum(sum(work for _, (_, work) in queue) >= instances.MIN_WORK_NS for queue in stretch) >= 2


def test_instances_run_in_parallel_on_their_share_of_the_cores_and_raise_errors() -> None:
    meeting = threading.Barrier(3, timeout=seconds(20))
    ended: list[int] = []

    def work(number: int) -> None:
        meeting.wait()  # passes only if all three are here
        shares.append(instances.thread_count())
        ended.append(number)
        if number:
            raise ValueError(f"instance {number}")

    shares: list[int] = []
    with Context(THREADS=6), pytest.raises(ValueError, match="instance 1"):
        run_side_by_side([lambda n=n: work(n) for n in range(3)])  # type: ignore[misc]
    assert sorted(ended) == [0, 1, 2] and shares == [2, 2, 2]
    run_side_by_side([lambda: None] * 3)


def layers(x: Tensor, w: Tensor) -> Tensor:
    for _ in range(3):
        x = ((x @ w).tanh() + x.flip(1) * 0.5).contiguous()
    return x.sum(0)


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_instances_compute_and_count_as_sequential_execution_does(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    array, weight = random_array((30, 24)), random_array((24, 24))
    x, w = Tensor(array).contiguous().shard(INSTANCES, 0), Tensor(weight).contiguous().shard(INSTANCES)
    x, w = x.contiguous().realize(), w.contiguous().realize()

    def results(worth: float) -> tuple[list[np.ndarray], list[tuple[int, int, int]], int]:
        monkeypatch.setattr(instances, "MIN_WORK_NS", worth)
        plans.cache_clear()
        calls: list[int] = []
        monkeypatch.setattr(instances, "share_of", lambda count: calls.append(count) or max(1, threads // count))
        replayed = TinyJit(lambda x, w: layers(x, w).realize())
        found, counted = [], []
        for run in (lambda: layers(x, w).realize(), lambda: layers(x, w).realize(), *[lambda: replayed(x, w)] * 4):
            GlobalCounters.reset()
            found.append(run().numpy())
            counted.append((GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem))
        return found, counted, len(calls)

    with Context(THREADS=threads):
        alone, counted, none = results(float("inf"))
        together, same, several = results(0)
    assert none == 0 < several
    for one, other in zip(alone, together):
        np.testing.assert_array_equal(one, other)
    assert counted == same
    expected = array
    for _ in range(3):
        expected = np.tanh(expected @ weight) + expected[:, ::-1] * 0.5
    np.testing.assert_allclose(together[-1], expected.sum(0), rtol=1e-3, atol=1e-3)


def test_a_recording_runs_instances_sequentially(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "MIN_WORK_NS", 0)
    x = Tensor(random_array((6, 8))).shard(INSTANCES, 0).realize()
    with capture() as session:
        x.exp().sum(1).realize()
    assert len(session.trace.runs) == 3 and all(run.median_us > 0 for run in session.trace.runs)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_has_workers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "MIN_WORK_NS", 0)
    with Context(THREADS=3):
        plans.cache_clear()
        x = Tensor(random_array((9, 8))).shard(INSTANCES, 0).realize()
        expected = x.exp().sum(1).numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os._exit(0 if (x.exp().sum(1).numpy() == expected).all() else 1)
        _, status = os.waitpid(child, 0)
    assert status == 0


def test_an_interrupt_stops_all_parallel_work() -> None:
    at_work: list[int] = []

    def queue() -> None:
        at_work.append(1)
        time.sleep(0.002)
        at_work.pop()

    interrupter = Interrupter()
    call = partial(run_side_by_side, [lambda: None, queue, queue])
    places = interrupter.count(call)
    for place in range(1, places + 1):
        interrupter.run(call, place)
        assert at_work == [], place
    time.sleep(0.01)
    assert at_work == []

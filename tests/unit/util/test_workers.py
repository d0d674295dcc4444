"""Workers: their results, and their state after an interrupt."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from tests.support.interrupts import Interrupter
from tinyexplore.util.workers import Job, ThreadWorkers, wait_for_all


def test_a_job_returns_its_result_or_raises_its_error() -> None:
    workers = ThreadWorkers(2)
    jobs = [Job(partial(divmod, 7, number)) for number in (2, 0, 3)]
    workers.submit(jobs)
    wait_for_all(jobs)
    assert (jobs[0].result(), jobs[2].result()) == ((3, 1), (2, 1))
    with pytest.raises(ZeroDivisionError):
        jobs[1].result()


def test_the_callers_work_runs_alongside_the_jobs_and_both_may_raise() -> None:
    workers, done = ThreadWorkers(2), []
    workers.run_alongside([Job(partial(done.append, number)) for number in (1, 2)], partial(done.append, 0))
    assert sorted(done) == [0, 1, 2]
    with pytest.raises(ZeroDivisionError):
        workers.run_alongside([Job(partial(divmod, 7, 0)), Job(partial(done.append, 3))], partial(done.append, 4))
    assert sorted(done) == [0, 1, 2, 3, 4]
    with pytest.raises(KeyError):
        workers.run_alongside([Job(partial(done.append, 5))], partial({}.pop, "own"))
    assert sorted(done) == [0, 1, 2, 3, 4, 5]


def test_an_interrupt_submits_all_jobs_or_none_and_leaves_no_lock() -> None:
    workers = ThreadWorkers(3)
    interrupter = Interrupter()
    place, is_interrupted = 1, True
    while is_interrupted:
        done: list[int] = []
        told: list[bool] = []
        jobs = [Job(partial(done.append, number)) for number in range(4)]

        def call(jobs: list[Job[None]] = jobs, told: list[bool] = told) -> None:
            workers.submit(jobs, [partial(told.append, True)])
            wait_for_all(jobs)

        is_interrupted = interrupter.run(call, place)
        if told:
            wait_for_all(jobs)
        assert sorted(done) == ([0, 1, 2, 3] if told else []), place
        place += 1
    after = Job(threading.get_ident)
    workers.submit([after])
    assert after.result() != threading.get_ident()

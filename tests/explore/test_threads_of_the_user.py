"""Kernels of other threads during a capture: recorded if they have its context, otherwise counted in a warning."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import numpy as np

from tinyexplore import Tensor, TinyJit
from tinyexplore.explore import capture


def program(number: int) -> float:
    ones = Tensor(np.full((5, 3 + number), 1, np.float32))
    return float((ones * 2).sum().item())


def warnings_of(session: object) -> list[str]:
    return [message.text for message in session.trace.messages if "other threads" in message.text]  # type: ignore[attr-defined]


def test_kernels_of_an_executor_are_counted_with_their_threads() -> None:
    program(0)
    with capture() as session, ThreadPoolExecutor(1, "pool") as executor:
        assert [*executor.map(program, range(3))] == [30.0, 40.0, 50.0]
    (text,) = warnings_of(session)
    assert "other threads ran 3 kernels" in text and "pool_0: 3" in text


def test_kernels_of_a_thread_are_counted_in_addition_to_captured_ones() -> None:
    with capture() as session:
        thread = threading.Thread(target=program, args=(4,), name="mine")
        thread.start()
        thread.join()
        program(5)
    (text,) = warnings_of(session)
    assert "other threads ran 1 kernel " in text and "mine: 1" in text
    assert len(session.trace.kernels) == 1


def test_replays_in_another_thread_are_counted() -> None:
    jitted = TinyJit(lambda x: (x + 1).realize())
    x = Tensor(np.ones(4, np.float32)).realize()
    for _ in range(3):
        jitted(x)

    def replay() -> None:
        for _ in range(7):
            jitted(x)

    with capture() as session:
        thread = threading.Thread(target=replay)
        thread.start()
        thread.join()
    (text,) = warnings_of(session)
    assert "other threads ran 7 kernels" in text


def test_a_thread_in_the_captures_context_is_recorded() -> None:
    with capture() as session, ThreadPoolExecutor(1) as executor:
        assert executor.submit(copy_context().run, program, 3).result() == 60.0
        # a loop of its own thread: a browser test of the same process may have left one running in this thread
        assert executor.submit(copy_context().run, asyncio.run, asyncio.to_thread(program, 4)).result() == 70.0
    assert warnings_of(session) == []
    assert len(session.trace.kernels) == 2


def test_no_warning_where_no_other_thread_ran_anything() -> None:
    with capture() as session:
        program(6)
    program(7)
    assert warnings_of(session) == []


def test_threads_that_compile_in_parallel_have_separate_stages() -> None:
    with capture() as session, ThreadPoolExecutor(4) as executor:
        jobs = [executor.submit(copy_context().run, program, 10 + number) for number in range(8)]
        assert [job.result() for job in jobs] == [10.0 * (13 + number) for number in range(8)]
    trace = session.trace
    assert len(trace.kernels) == len(trace.runs) == 8
    assert all(kernel.roots and kernel.flops for kernel in trace.kernels)
    named = [stage for stage in trace.stages if stage.name == "kernel"]
    assert sorted(stage.kernel for stage in named if stage.kernel is not None) == list(range(8))
    assert not any("recording ended inside" in message.text for message in trace.messages)

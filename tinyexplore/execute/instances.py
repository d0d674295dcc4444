"""Runs several instances at the same time. Between two copies, kernels access only the memory of their own instance.

Each instance with enough work gets a thread and its share of the cores. If an instance has little work, all run one
after the other, each on all cores. The kernels of an instance keep their order, and copies wait for all instances. The
assignment to threads changes no bit of a result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import cache, partial
from itertools import groupby
from typing import TypeVar

from tinyexplore.device import Buffer
from tinyexplore.execute.runner import Runner
from tinyexplore.execute.threads import current_instance, thread_count
from tinyexplore.util import Context
from tinyexplore.util.workers import Job, ThreadWorkers

MIN_WORK_NS = 100_000  # least work of two instances, in ns on one core: a handover takes some 30 µs

T = TypeVar("T")
Work = Callable[[], None]


def divide_among_instances(
    items: Sequence[T], device: Callable[[T], str | None], work_ns: Callable[[T], float]
) -> list[list[list[T]]]:
    """Divides `items` into stages. Each stage is a list of queues that may run at the same time, one for each instance.

    There are at most as many queues as threads. A stage in which fewer than two instances have `MIN_WORK_NS` of work
    is one queue, in the given order.
    device: returns the instance of an item, or None if it must wait for all items before it, and all items after it
    must wait (a copy).
    work_ns: returns the work of an item.
    """
    stages: list[list[list[T]]] = []
    threads = thread_count()
    for is_alone, stretch in groupby(items, key=lambda item: device(item) is None):
        stage = list(stretch)
        instances: dict[str | None, list[T]] = {}
        if not is_alone:
            for item in stage:
                instances.setdefault(device(item), []).append(item)
        queues: list[list[T]] = [[] for _ in range(min(len(instances), threads))]
        for number, instance_items in enumerate(instances.values()):
            queues[number % len(queues)] += instance_items
        if sum(sum(map(work_ns, queue)) >= MIN_WORK_NS for queue in queues) >= 2:
            stages.append(queues)
        elif stages and len(stages[-1]) == 1:
            stages[-1][0].extend(stage)
        else:
            stages.append([stage])
    return stages


def instance_of(device: str, buffers: Sequence[Buffer], runner: Runner | None) -> str | None:
    """Returns the only instance whose memory a machine-code kernel accesses; None if there are several."""
    if runner is None or runner.program.entry_address is None or any(buffer.device != device for buffer in buffers):
        return None
    return device


def estimated_work(runner: Runner | None) -> float:
    """Returns the estimated nanoseconds on one core; 0 if the estimate depends on Variables."""
    return 0.0 if runner is None or runner.spec.variables else runner.work_ns(())


def share_of(queues: int) -> int:
    """Returns the number of threads for each of `queues` instances."""
    return max(1, thread_count() // queues)


def run_side_by_side(queues: Sequence[Work]) -> None:
    """Runs each of `queues` on a separate thread, under the current options except THREADS.

    Returns when all have ended. Raises the exception of the first queue, in the given order, that raised one.
    """
    share = share_of(len(queues))
    jobs = [
        Job(partial(copy_context().run, as_instance, number, share, queue))
        for number, queue in enumerate(queues[1:], 1)
    ]
    _workers(len(jobs)).run_alongside(jobs, partial(copy_context().run, as_instance, 0, share, queues[0]))


def as_instance(number: int, share: int, work: Callable[[], T]) -> T:
    """Calls `work` as instance `number`, on `share` threads from a separate pool, and returns its result."""
    with Context(THREADS=share):
        current_instance.set(number)
        return work()


def for_instance(number: int, queues: int, work: Callable[[], T]) -> T:
    """Calls `work`, which prepares launches for that instance, and returns its result."""
    return copy_context().run(as_instance, number, share_of(queues), work)


@cache
def _workers(count: int) -> ThreadWorkers:
    return ThreadWorkers(count)

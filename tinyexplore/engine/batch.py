"""A list of ExecItems as few functions: neighbouring kernels of machine code are one native call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tinyexplore.engine.execitem import ExecItem
from tinyexplore.engine.instances import estimated_work, for_instance, instance_of, run_side_by_side, side_by_side
from tinyexplore.engine.threads import current_instance, parts_for, thread_count
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import find_native_pool

NativeCall = tuple[BoundProgram, int | None, int]


def prepare_batch(items: Sequence[ExecItem]) -> list[Callable[[], None]]:
    """Functions that together, in order, do what running `items` one after the other does.

    A native item is bound now; its buffers may be exchanged afterwards in `item.bound.pointers`.
    """
    steps: list[Callable[[], None]] = []
    stretches = side_by_side(
        items,
        lambda item: instance_of(item.item.device, item.buffers, item.runner),
        lambda item: estimated_work(item.runner),
    )
    for queues in stretches:
        if len(queues) == 1:
            steps += _one_after_another(queues[0])
        else:
            prepared = [
                for_instance(number, len(queues), partial(_one_after_another, queue))
                for number, queue in enumerate(queues)
            ]
            steps.append(partial(run_side_by_side, [partial(_run_all, functions) for functions in prepared]))
    return steps


def _run_all(functions: Sequence[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _one_after_another(items: Sequence[ExecItem]) -> list[Callable[[], None]]:
    threads = thread_count()
    steps: list[Callable[[], None]] = []
    calls: list[NativeCall] = []

    def flush() -> None:
        pool = find_native_pool(threads, current_instance.get()) if calls else None
        if pool is not None:
            steps.append(pool.prepare(tuple(calls)))
            calls.clear()

    for item in items:
        call = _native_call(item, threads)
        if call is None:
            flush()
            steps.append(item.execute)
        else:
            calls.append(call)
    flush()
    return steps


def _native_call(item: ExecItem, threads: int) -> NativeCall | None:
    """What the native pool needs to run `item`, or None for what only Python can run."""
    if item.runner is None:
        return None
    if item.bound is None:
        item.bound = item.runner.program.bind(item.buffers, item.values)
    if not isinstance(item.bound, BoundProgram) or find_native_pool(threads) is None:
        return None
    extent = item.runner.spec.extent(item.values)
    return item.bound, extent, parts_for(extent, item.runner.work_ns(item.values), threads)


def give_values(item: ExecItem, values: tuple[int, ...]) -> None:
    """`values` for the Variables of `item` from now on, also in the functions that `prepare_batch` made of it."""
    if values == item.values:
        return
    assert item.runner is not None
    item.values = ()  # who is interrupted on the way gives them again
    if isinstance(item.bound, BoundProgram):
        item.bound.give_values(values)
        extent = item.runner.spec.extent(values)
        if extent is not None:
            item.bound.divide(extent, parts_for(extent, item.runner.work_ns(values), thread_count()))
    else:
        item.bound = None
    item.values = values

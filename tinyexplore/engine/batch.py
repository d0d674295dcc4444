"""A list of ExecItems as few functions: neighbouring kernels of machine code are one native call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.engine.runner import ExecItem
from tinyexplore.engine.threads import parts_for, thread_count
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import find_native_pool

NativeCall = tuple[BoundProgram, int | None, int]


def prepare_batch(items: Sequence[ExecItem]) -> list[Callable[[], None]]:
    """Functions that together, in order, do what running `items` one after the other does.

    A native item is bound now; its buffers may be exchanged afterwards in `item.bound.pointers`.
    """
    threads = thread_count()
    steps: list[Callable[[], None]] = []
    calls: list[NativeCall] = []

    def flush() -> None:
        pool = find_native_pool(threads) if calls else None
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
    item.values = values
    assert item.runner is not None
    if not isinstance(item.bound, BoundProgram):
        item.bound = None
        return
    item.bound.give_values(values)
    extent = item.runner.spec.extent(values)
    if extent is not None:
        item.bound.divide(extent, parts_for(extent, item.runner.work_ns(values), thread_count()))

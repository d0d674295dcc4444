"""Batches a list of ExecItems: neighboring native kernels become one native call, or one graph on a device with
graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from tinyexplore.execute.execitem import ExecItem
from tinyexplore.execute.graph import graph_functions
from tinyexplore.execute.instances import (
    divide_among_instances,
    estimated_work,
    for_instance,
    instance_of,
    run_side_by_side,
)
from tinyexplore.execute.step_group import group_native, native_call
from tinyexplore.runtime.native import BoundProgram
from tinyexplore.runtime.pool import NativePool


def prepare_batch(items: Sequence[ExecItem]) -> list[Callable[[], None]]:
    """Returns functions that together, in order, run `items` one after the other.

    Native items are bound now. Their buffers may be exchanged afterwards in `item.bound.pointers`.
    """
    steps: list[Callable[[], None]] = []
    stretches = divide_among_instances(
        items,
        lambda item: instance_of(item.item.device, item.buffers, item.runner),
        lambda item: estimated_work(item.runner),
    )
    for queues in stretches:
        if len(queues) == 1:
            steps += _run_in_sequence(queues[0])
        else:
            prepared = [
                for_instance(number, len(queues), partial(_run_in_sequence, queue))
                for number, queue in enumerate(queues)
            ]
            steps.append(partial(run_side_by_side, [partial(_run_all, functions) for functions in prepared]))
    return steps


def _run_all(functions: Sequence[Callable[[], None]]) -> None:
    for function in functions:
        function()


def _run_in_sequence(items: Sequence[ExecItem]) -> list[Callable[[], None]]:
    """Returns functions that together run the items in order. Neighboring native calls are one function."""
    for item in items:
        if item.runner is not None:
            item.bind()
    steps = group_native(
        items, lambda item: isinstance(item.bound, BoundProgram), _prepare_one_call, most_items=len(items)
    )
    calls: list[Callable[[], None]] = []
    for is_call, neighbors in groupby(steps, key=lambda step: not isinstance(step, ExecItem)):
        neighboring_items: list[Any] = list(neighbors)
        calls += neighboring_items if is_call else graph_functions(neighboring_items)
    return calls


def _prepare_one_call(items: list[ExecItem], pool: NativePool) -> Callable[[], None]:
    calls = []
    for item in items:
        assert item.runner is not None and isinstance(item.bound, BoundProgram)
        calls.append(native_call(item.bound, item.runner, item.values))
    return pool.prepare(tuple(calls))


def give_values(item: ExecItem, values: tuple[int, ...]) -> None:
    """Sets the Variables of `item` to `values`, also in functions that `prepare_batch` made of it."""
    if values == item.values:
        return
    assert item.runner is not None
    item.values = ()  # None, so that a call after an interrupt sets them again
    if isinstance(item.bound, BoundProgram):
        item.bound.give_values(values)
        bound, extent, parts = native_call(item.bound, item.runner, values)
        if extent is not None:
            bound.divide(extent, parts)
    else:
        item.bound = None
    item.values = values

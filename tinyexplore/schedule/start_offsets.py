"""Kernels that differ only in their start offsets share one program, which takes the offset as an argument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd
from typing import Any

from tinyexplore.schedule.item import ScheduleItem, kernel_variables
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.divmod import from_terms, linear_terms
from tinyexplore.uop.symbolic import Variable
from tinyexplore.uop.uop import ops_mask

COMPUTED = ops_mask((Ops.LOAD, Ops.REDUCE))  # an index with these is unknown before the kernel runs
HOW = "the start offset is a kernel argument"
IndexTerms = dict[UOp, tuple[dict[UOp, int], int]]  # for each INDEX: the terms of its index, and the constant
Starts = dict[UOp, int]  # for each buffer of the kernel: the start offset that all its indices have in common


def with_shared_programs(items: Sequence[ScheduleItem]) -> list[ScheduleItem]:
    """Gives one ast, and so one program, to items that differ only by constants in indices.

        h1 = tanh(x[0] @ w)   load x[i]                             load x[start1 * 8192 + i], start1 = 0
        h2 = tanh(x[1] @ w)   load x[8192 + i]                →     the same,                  start1 = 1

    Example: the steps of a recurrent network. Lowering and compiling each step separately would take most of the first
    run.
    """
    similar_items: dict[Any, list[int]] = {}
    for number, item in enumerate(items):
        if item.ast is not None:
            similar_items.setdefault(_make_resemblance_key(item), []).append(number)
    result = list(items)
    for numbers in similar_items.values():
        if len(numbers) < 2:
            continue
        equal: dict[UOp, list[tuple[int, IndexTerms, Starts]]] = {}
        for number in numbers:
            indices = _find_read_indices(items[number])
            starts: Starts = {}
            for index, (_, constant) in indices.items():
                starts[index.src[0]] = min(constant, starts.get(index.src[0], constant))
            equal.setdefault(_shift_indices(items[number], indices, starts, {}), []).append((number, indices, starts))
        for group in equal.values():
            steps = _choose_start_arguments([starts for _, _, starts in group])
            if steps:
                for number, indices, starts in group:
                    result[number] = _with_arguments(items[number], indices, starts, steps)
    return result


def _make_resemblance_key(item: ScheduleItem) -> Any:
    """Returns a cheap key that is equal for items that may differ only in constants."""
    return (
        item.device,
        len(item.members),
        item.variables,
        tuple([(buffer.dtype, buffer.size) for buffer in item.buffers]),
    )


def _find_read_indices(item: ScheduleItem) -> IndexTerms:
    """Returns the indices of reads in buffers that the kernel does not write, if they do not depend on loaded
    values."""
    assert item.ast is not None
    written_buffers = {store.src[0].src[0] for store in item.ast.find(Ops.STORE)}
    terms_of: IndexTerms = {}
    for index in item.ast.find(Ops.INDEX):
        buffer, position = index.src[:2]
        if buffer.op is Ops.DEFINE_GLOBAL and buffer not in written_buffers:
            if position.mask & COMPUTED:
                written_buffers.add(buffer)
            else:
                terms_of[index] = linear_terms(position)
    return {index: terms for index, terms in terms_of.items() if index.src[0] not in written_buffers}


def _choose_start_arguments(starts: Sequence[Starts]) -> dict[UOp, tuple[UOp, int]]:
    """Returns for each buffer with different `starts` the argument, and the number of elements that one unit of it
    counts."""
    steps = {}
    for buffer in starts[0]:
        offsets = [item_starts[buffer] for item_starts in starts]
        if len(set(offsets)) > 1 and min(offsets) >= 0:
            step = gcd(*offsets)
            steps[buffer] = Variable(f"start{buffer.arg}", 0, max(offsets) // step), step
    return steps


def _shift_indices(
    item: ScheduleItem,
    indices: IndexTerms,
    starts: Starts,
    steps: Mapping[UOp, tuple[UOp, int]],
    how: str | None = None,
) -> UOp:
    """Returns the ast of `item` with indices relative to `starts`, plus the arguments in `steps`."""
    assert item.ast is not None
    changes = {}
    for index, (terms, constant) in indices.items():
        buffer = index.src[0]
        if steps and buffer not in steps:
            continue
        argument = dict([steps[buffer]]) if steps else {}
        position = from_terms({**argument, **terms}, constant - starts[buffer])
        changes[index] = index.replace(src=(buffer, position, *index.src[2:]))
    return item.ast.substitute(changes, how)


def _with_arguments(
    item: ScheduleItem, indices: IndexTerms, starts: Starts, steps: Mapping[UOp, tuple[UOp, int]]
) -> ScheduleItem:
    names_in_use = {variable.arg[0] for variable in item.variables}
    if not names_in_use.isdisjoint([argument.arg[0] for argument, _ in steps.values()]):
        return item  # a user's Variable already has the name
    ast = _shift_indices(item, indices, starts, steps, HOW)
    argument_values = {argument: starts[buffer] // step for buffer, (argument, step) in steps.items()}
    return replace(item, ast=ast, variables=kernel_variables(ast.toposort()), starts=argument_values)

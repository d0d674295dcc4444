"""Prunes a replay: removes kernels whose results are the same in every call."""

from __future__ import annotations

from collections.abc import Iterable

from tinyexplore.device import Buffer
from tinyexplore.engine import ExecItem
from tinyexplore.jit.arguments import buffers_of, own_buffers
from tinyexplore.jit.replay import CapturedCall, read_by, written_by


def prune(call: CapturedCall) -> set[Buffer]:
    """Removes kernels and copies that depend on nothing that may change. Returns the memory that they wrote.

    They ran when the call was captured, and their results remain. Assignments to the tensors that they read are no
    longer followed: such an assignment requires a new capture. The memory of a result is written in every call.
    """
    changing = _find_changing_buffers(call)
    remaining = [item for item in call.items if _depends_on(item, changing)]
    if not remaining or len(remaining) == len(call.items):
        return set()
    unchanging_items = [item for item in call.items if not _depends_on(item, changing)]
    read_buffers = read_by(unchanging_items)
    call.items = remaining
    baked = {id(tensor) for tensor, _ in call.baked}
    for tensor, value in call.others:
        if id(tensor) not in baked and not read_buffers.isdisjoint(buffers_of(value)):
            call.baked.append((tensor, value))
    return written_by(unchanging_items)


def _find_changing_buffers(call: CapturedCall) -> set[Buffer]:
    """Returns the buffers that may have another content, or be another buffer, in another call."""
    changing = set(call.keys)
    for state in call.states:
        changing.update((*state.before, *state.buffers[0], *state.buffers[1]))
    values = [*call.argument_values, *(value for _, value in call.assigned)]
    values += [output.value for output in call.outputs if output.value is not None]
    for value in values:
        changing.update(own_buffers(value))
    count = -1
    # also backwards: a buffer that is written again later must be written again before, too
    while count != len(changing):
        count = len(changing)
        for item in call.items:
            if _depends_on(item, changing):
                changing |= written_by((item,))
    return changing


def _depends_on(item: ExecItem, changing: Iterable[Buffer]) -> bool:
    has_variables = bool(item.item.free_variables or item.item.bound)
    return has_variables or any(buffer in changing for buffer in item.buffers)

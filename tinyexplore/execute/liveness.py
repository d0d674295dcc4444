"""Liveness: finds the old values that may still be read. All others may be overwritten.

Outside of recordings, references are counted: a value to which only its graph refers has no other reader. A recording
refers to everything that it records, and TinyJit to everything that it captures. There, every living tensor is examined
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from tinyexplore.device import Buffer
from tinyexplore.execute.capture import active_capture
from tinyexplore.lazy import LazyBuffer, Simplified
from tinyexplore.lazy.roots import root_values
from tinyexplore.schedule import NO_WRITES, Writes, decide_writes, graph_order, must_be_realized
from tinyexplore.uop import Ops
from tinyexplore.util.interpreter import ASKING, TRICKS, references


def is_alone(value: LazyBuffer) -> bool:
    """True if only `value` refers to its memory: no other value, program or captured call does."""
    assert value.buffer is not None
    return value.buffer.is_unshared and references((value.buffer,))[0] == ASKING + 1


def _references_among(nodes: Iterable[LazyBuffer]) -> Iterator[LazyBuffer]:
    """The nodes to which the graph of `nodes` refers, once for each reference: by sources, and by notes of simplified
    operations."""
    sources: dict[int, tuple[LazyBuffer, ...]] = {}
    for node in nodes:
        if node.buffer is None:
            sources[id(node.src)] = node.src
            note = getattr(node, "note", None)
            if type(note) is Simplified:
                sources[id(note.src)] = note.src
    for some in sources.values():
        yield from some


def unseen_writes(
    number: Mapping[LazyBuffer, int], slots: Mapping[Buffer, int], outputs: Sequence[LazyBuffer]
) -> Writes:
    """Which WRITEs of a graph may be in place, by counting references: to its nodes, and to the buffers that it reads.

    The caller refers to them only by dicts of both and by `outputs`.
    """
    if not TRICKS:
        return writes_now(outputs)
    others = {node: count - ASKING for node, count in zip(number, references(number))}
    owners = dict(zip(slots, references(slots)))
    for source in _references_among(number):
        if source in others:
            others[source] -= 1

    def is_seen(node: LazyBuffer) -> bool:
        buffer = node.buffer
        if buffer is not None and (owners[buffer] > ASKING + 1 or not buffer.is_unshared):
            return True
        return others[node] > 0

    return decide_writes(list(number), must_be_realized(number, outputs), is_seen)


Chosen = Callable[[list[LazyBuffer]], tuple[LazyBuffer, ...]]


def reference_counts(nodes: list[LazyBuffer], chosen: Chosen) -> tuple[int, ...]:
    """The number of references to each of the `chosen` ones of `nodes`, a list that only the caller holds."""
    return references(chosen(nodes))


def asked_for_later(
    nodes: list[LazyBuffer], chosen: Chosen, counts: Sequence[int], computed: Collection[LazyBuffer]
) -> set[LazyBuffer]:
    """The `computed` nodes that may be needed after the graph of `nodes` is computed. They have references from
    elsewhere, or a node with such references would be computed from them again. `counts`: the `reference_counts` of the
    `chosen` nodes."""
    inside = dict.fromkeys(nodes, 0)
    for source in _references_among(nodes):
        if source in inside:
            inside[source] += 1
    stack = [node for node, count in zip(chosen(nodes), counts) if count - ASKING - 1 > inside[node]]
    needed: set[LazyBuffer] = set()
    walked: set[LazyBuffer] = set()
    while stack:
        node = stack.pop()
        if node in walked or node.buffer is not None:
            continue
        walked.add(node)
        if node in computed:
            needed.add(node)
        else:
            stack += node.src
    return needed


def writes_now(outputs: Sequence[LazyBuffer]) -> Writes:
    """Which WRITEs behind `outputs` may be in place, determined from all holders of values.

    Captured items run again: there, only memory that the capture made or was given is written in place.
    """
    order = graph_order(outputs)
    if not any(node.op is Ops.WRITE and node.buffer is None for node in order):
        return NO_WRITES
    forced = must_be_realized(order, outputs)
    reachable = _seen_from(root_values(), forced)
    buffers = {node.buffer for node in reachable}
    capture = active_capture()

    def is_seen(node: LazyBuffer) -> bool:
        buffer = node.buffer
        if node in reachable:
            return True
        if buffer is None:
            return False
        mine = TRICKS and buffer.is_own if capture is None else capture.may_overwrite(buffer)
        return not mine or buffer in buffers

    return decide_writes(order, forced, is_seen)


def _seen_from(values: Iterable[LazyBuffer], stops: Collection[LazyBuffer]) -> set[LazyBuffer]:
    """All nodes that `values` are, or will be computed from. Nodes in `stops` get memory before anything is
    overwritten: the nodes behind them are not seen."""
    reachable: set[LazyBuffer] = set()
    stack = list(values)
    while stack:
        node = stack.pop()
        if node in reachable:
            continue
        reachable.add(node)
        if node.buffer is None and node not in stops:
            stack += node.src
    return reachable

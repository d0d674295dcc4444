"""Who can see an old value? What nobody sees may be overwritten.

A program that runs on counts references: a value that its graph alone refers to is seen by nothing else. A recording
refers to all that it tells of, and TinyJit to what it captures, so there every tensor alive is asked instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from tinyexplore.device import Buffer
from tinyexplore.execute.capture import active_capture
from tinyexplore.lazy import Known, LazyBuffer
from tinyexplore.lazy.roots import root_values
from tinyexplore.schedule import NO_WRITES, Writes, decide_writes, graph_order, must_be_realized
from tinyexplore.uop import Ops
from tinyexplore.util.interpreter import ASKING, TRICKS, references


def is_alone(value: LazyBuffer) -> bool:
    """True where the memory of `value` is nothing else's: no other value, program or captured call refers to it."""
    assert value.buffer is not None
    return value.buffer.is_unshared and references((value.buffer,))[0] == ASKING + 1


def _references_among(nodes: Iterable[LazyBuffer]) -> Iterator[LazyBuffer]:
    """What the graph of `nodes` refers to, as often as it does: by sources, and by notes of what was written."""
    sources: dict[int, tuple[LazyBuffer, ...]] = {}
    for node in nodes:
        if node.buffer is None:
            sources[id(node.src)] = node.src
            note = getattr(node, "note", None)
            if type(note) is Known:
                sources[id(note.src)] = note.src
    for some in sources.values():
        yield from some


def unseen_writes(
    number: Mapping[LazyBuffer, int], slots: Mapping[Buffer, int], outputs: Sequence[LazyBuffer]
) -> Writes:
    """Which WRITEs of a graph may be in place, by counting references: to its nodes, and to the buffers that it reads.

    The caller has dicts of both and `outputs`, and refers to none of them otherwise.
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
    """References to the `chosen` ones of `nodes`, a list that the caller alone has."""
    return references(chosen(nodes))


def asked_for_later(
    nodes: list[LazyBuffer], chosen: Chosen, counts: Sequence[int], computed: Collection[LazyBuffer]
) -> set[LazyBuffer]:
    """Those of `made` that somebody may want when the graph of `nodes` is computed: who refers to one, or to what would
    be computed from it again. `counts` are the `reference_counts` of the `chosen` nodes."""
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
    """Which WRITEs behind `outputs` may be in place, by asking everybody who holds a value.

    What is captured runs again: there only memory that the capture made, or was given for it, is written in place.
    """
    order = graph_order(outputs)
    if not any(node.op is Ops.WRITE and node.buffer is None for node in order):
        return NO_WRITES
    forced = must_be_realized(order, outputs)
    seen = _seen_from(root_values(), forced)
    buffers = {node.buffer for node in seen}
    capture = active_capture()

    def is_seen(node: LazyBuffer) -> bool:
        buffer = node.buffer
        if node in seen:
            return True
        if buffer is None:
            return False
        mine = TRICKS and buffer.is_own if capture is None else capture.may_overwrite(buffer)
        return not mine or buffer in buffers

    return decide_writes(order, forced, is_seen)


def _seen_from(values: Iterable[LazyBuffer], stops: Collection[LazyBuffer]) -> set[LazyBuffer]:
    """All that `values` are, or will be computed from. What is in `stops` gets memory before anything is overwritten:
    who sees that sees nothing behind it."""
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

"""Liveness: finds the old values that may still be read. All others may be overwritten.

Outside recordings, references are counted: a value that only its graph references has no other reader. A recording
references everything that it records, and TinyJit everything that it captures. There, every living tensor is examined
instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from tinyexplore.device import Buffer
from tinyexplore.execute.capture import active_capture
from tinyexplore.lazy import LazyBuffer, Simplification
from tinyexplore.lazy.liveness_roots import root_values
from tinyexplore.schedule import NO_WRITES, WritePlan, decide_writes, graph_order, must_be_realized
from tinyexplore.uop import Ops
from tinyexplore.util.interpreter import BASE_REFERENCES, TRICKS, references


def is_alone(value: LazyBuffer) -> bool:
    """Whether only `value` refers to its memory, and no other value, program or captured call does."""
    assert value.buffer is not None
    return value.buffer.is_unshared and references((value.buffer,))[0] == BASE_REFERENCES + 1


def _list_references_among(nodes: Iterable[LazyBuffer]) -> Iterator[LazyBuffer]:
    """Yields the nodes that the graph of `nodes` references, once for each reference.

    A node references its sources, and the sources in its note if it is a simplified operation.
    """
    sources: dict[int, tuple[LazyBuffer, ...]] = {}
    for node in nodes:
        if node.buffer is None:
            sources[id(node.src)] = node.src
            note = getattr(node, "note", None)
            if type(note) is Simplification:
                sources[id(note.src)] = note.src
    for node_sources in sources.values():
        yield from node_sources


def in_place_writes(
    number: Mapping[LazyBuffer, int], slots: Mapping[Buffer, int], outputs: Sequence[LazyBuffer]
) -> WritePlan:
    """Decides which WRITEs of a graph may be done in place.

    A write is unsafe if anything outside this graph still refers to the old value. The check uses CPython reference
    counts; without them, `writes_now` examines all living tensors. Precondition: the caller holds references to nodes
    and buffers only in `number`, `slots` and `outputs`.

    number: the number of each node of the graph.
    slots: the slot of each buffer that the graph reads.
    """
    if not TRICKS:
        return writes_now(outputs)
    other_references = {node: count - BASE_REFERENCES for node, count in zip(number, references(number))}
    owners = dict(zip(slots, references(slots)))
    for source in _list_references_among(number):
        if source in other_references:
            other_references[source] -= 1

    def is_seen(node: LazyBuffer) -> bool:
        buffer = node.buffer
        if buffer is not None and (owners[buffer] > BASE_REFERENCES + 1 or not buffer.is_unshared):
            return True
        return other_references[node] > 0

    return decide_writes(list(number), must_be_realized(number, outputs), is_seen)


Chosen = Callable[[list[LazyBuffer]], tuple[LazyBuffer, ...]]


def reference_counts(nodes: list[LazyBuffer], chosen: Chosen) -> tuple[int, ...]:
    """Counts the references to each of the `chosen` nodes. Only the caller may hold the list `nodes`."""
    return references(chosen(nodes))


def find_needed_later(
    nodes: list[LazyBuffer], chosen: Chosen, counts: Sequence[int], computed: Collection[LazyBuffer]
) -> set[LazyBuffer]:
    """Returns the `computed` nodes that may be needed after the graph of `nodes` is computed.

    Such a node has references from outside the graph, or a node with such references would be computed from it again.
    counts: the `reference_counts` of the `chosen` nodes.
    """
    inner_references = dict.fromkeys(nodes, 0)
    for source in _list_references_among(nodes):
        if source in inner_references:
            inner_references[source] += 1
    stack = [node for node, count in zip(chosen(nodes), counts) if count - BASE_REFERENCES - 1 > inner_references[node]]
    needed_nodes: set[LazyBuffer] = set()
    walked: set[LazyBuffer] = set()
    while stack:
        node = stack.pop()
        if node in walked or node.buffer is not None:
            continue
        walked.add(node)
        if node in computed:
            needed_nodes.add(node)
        else:
            stack += node.src
    return needed_nodes


def writes_now(outputs: Sequence[LazyBuffer]) -> WritePlan:
    """Decides which WRITEs in the graph of `outputs` may be done in place. Examines all living tensors.

    Captured items run again. In a capture, only memory that the capture allocated or received is written in place.
    """
    order = graph_order(outputs)
    if not any(node.op is Ops.WRITE and node.buffer is None for node in order):
        return NO_WRITES
    forced = must_be_realized(order, outputs)
    reachable = _find_dependencies(root_values(), forced)
    buffers = {node.buffer for node in reachable}
    capture = active_capture()

    def is_seen(node: LazyBuffer) -> bool:
        buffer = node.buffer
        if node in reachable:
            return True
        if buffer is None:
            return False
        may_overwrite = TRICKS and buffer.is_own if capture is None else capture.may_overwrite(buffer)
        return not may_overwrite or buffer in buffers

    return decide_writes(order, forced, is_seen)


def _find_dependencies(values: Iterable[LazyBuffer], stops: Collection[LazyBuffer]) -> set[LazyBuffer]:
    """Finds the nodes that `values` depend on, `values` included.

    Nodes in `stops` get memory before anything is overwritten, so their sources are not searched.
    """
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

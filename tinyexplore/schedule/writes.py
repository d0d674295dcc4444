"""Decides how to write a part of a buffer: in place if nothing reads the old value later, else in a copy.

`assign` is functional: references to the old value keep it. So a WRITE may store into the memory of its target only
under two conditions: all readers of the target are computed before, and nothing outside the graph can read the old
value later.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.overrides import NO_OVERRIDES, Overrides
from tinyexplore.uop import Ops
from tinyexplore.util import toposort

Readers = Mapping[LazyBuffer, Sequence[LazyBuffer]]


@dataclass(frozen=True, eq=False)
class WritePlan:
    """The decisions on the WRITEs of one graph.

    in_place: the WRITEs that store into the memory of their target. The others store into a copy of it.
    reasons: the reason for each decision.
    computed_first: nodes that read an old value for later nodes. They are stored before the value is overwritten.
    stored_separately: nodes that a separate kernel stores, because that kernel must run before some write.
    """

    in_place: frozenset[LazyBuffer] = frozenset()
    reasons: Mapping[LazyBuffer, str] = field(default_factory=dict)
    computed_first: frozenset[LazyBuffer] = frozenset()
    stored_separately: frozenset[LazyBuffer] = frozenset()


NO_WRITES = WritePlan()


def graph_order(outputs: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """Returns the nodes that `outputs` are computed from, sources first, down to realized nodes.

    Nodes that no output needs are not among them: this is dead code elimination.
    """
    return toposort(outputs, lambda node: () if node.buffer is not None else node.src)


def must_be_realized(
    order: Collection[LazyBuffer], outputs: Iterable[LazyBuffer], overrides: Overrides = NO_OVERRIDES
) -> set[LazyBuffer]:
    """Returns the nodes that always get memory: outputs, nodes needed in memory, contiguous nodes, and the user's
    cuts."""
    forced = find_needed_in_memory(order).union(outputs, overrides.cut)
    forced.update(node for node in order if node.op is Ops.CONTIGUOUS and node not in overrides.join)
    return {node for node in forced if node.buffer is None}


def find_needed_in_memory(order: Iterable[LazyBuffer]) -> set[LazyBuffer]:
    """Returns the nodes that must be in memory: copies and their sources, WRITEs and their targets, and tables of
    gathers."""
    in_memory: set[LazyBuffer] = set()
    for node in order:
        if node.buffer is not None:
            continue  # the node is realized, so it has no sources any more
        if node.op in (Ops.COPY, Ops.WRITE):
            in_memory.update((node, node.src[0]))
        elif node.op is Ops.GATHER and not is_leaf(node.src[0].base):
            in_memory.add(node.src[0].base)
    return in_memory


def is_leaf(node: LazyBuffer) -> bool:
    """Whether a node needs no computation: memory, a constant, a counter."""
    return node.buffer is not None or node.op in (Ops.CONST, Ops.IOTA)


def decide_writes(
    order: Sequence[LazyBuffer], forced: set[LazyBuffer], is_seen: Callable[[LazyBuffer], bool]
) -> WritePlan:
    """Decides which of the WRITEs in `order` (sources first) are in place.

    is_seen: whether the value of a node may be read later from outside the graph, from its memory or by computing it.
    It must return True if it does not know.
    """
    waiting = [node for node in order if node.op is Ops.WRITE and node.buffer is None]
    if not waiting:
        return NO_WRITES
    readers: dict[LazyBuffer, list[LazyBuffer]] = {node: [] for node in order}
    sharing: dict[object, int] = {}
    for node in order:
        for source in node.src if node.buffer is None else ():
            readers[source].append(node)
        if node.buffer is not None:
            sharing[node.buffer] = sharing.get(node.buffer, 0) + 1
    in_place_after: dict[
        LazyBuffer, list[LazyBuffer]
    ] = {}  # the in-place writes that must follow a node without reading it
    in_place: set[LazyBuffer] = set()
    copied_readers: set[LazyBuffer] = set()
    stored_separately: set[LazyBuffer] = set()
    reasons: dict[LazyBuffer, str] = {}
    for write in waiting:
        target = write.src[0]
        if target.buffer is not None and sharing[target.buffer] > 1:
            reasons[write] = "several nodes alias the memory of its target"
            continue
        readers_before: tuple[set[LazyBuffer], set[LazyBuffer]] | None = set(), set()
        if len(readers[target]) > 1:
            readers_before = _find_readers_before(
                write, _collect_reached(write, readers, in_place_after), forced, readers
            )
        if readers_before is None or any(
            reader in in_place and reader.src[0] is target for reader in readers_before[0]
        ):
            reasons[write] = "the program needs the old and the new value at the same time"
            continue
        early_readers, copied = readers_before
        if is_seen(target) or any(is_seen(node) for node in early_readers if node not in forced):
            reasons[write] = "a later read may need the old value"
            continue
        in_place.add(write)
        copied_readers |= copied
        stored_separately |= early_readers & forced | copied
        reasons[write] = "no later read needs the old value"
        for node in early_readers:
            in_place_after.setdefault(node, []).append(write)
    return WritePlan(frozenset(in_place), reasons, frozenset(copied_readers), frozenset(stored_separately))


def _collect_reached(start: LazyBuffer, readers: Readers, in_place_after: Readers) -> set[LazyBuffer]:
    """Returns `start` and all nodes that must come after it."""
    reached = {start}
    stack = [start]
    while stack:
        node = stack.pop()
        for reader in (*readers[node], *in_place_after.get(node, ())):
            if reader not in reached:
                reached.add(reader)
                stack.append(reader)
    return reached


def _find_readers_before(
    write: LazyBuffer, later: set[LazyBuffer], forced: set[LazyBuffer], readers: Readers
) -> tuple[set[LazyBuffer], set[LazyBuffer]] | None:
    """Returns the readers of the old value of the target of `write`, and which of them must be realized before the
    write.

    A reader must be realized if a node in `later` reads it. None if the target itself must be: then the write is not in
    place.
    """
    target = write.src[0]
    early_readers: set[LazyBuffer] = set()
    readers_to_copy: set[LazyBuffer] = set()
    stack = [target]
    while stack:
        node = stack.pop()
        for reader in readers[node]:
            if reader is write and node is target and target not in write.src[1:]:
                continue
            if reader in later:
                if node is target:
                    return None
                readers_to_copy.add(node)
            elif reader not in early_readers:
                early_readers.add(reader)
                if reader not in forced:
                    stack.append(reader)
    return early_readers, readers_to_copy

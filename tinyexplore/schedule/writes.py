"""Writes to a part of what lies in memory: in place where nobody reads the old value afterwards, else in a copy.

`assign` is functional: whoever has the old value keeps it. So a WRITE may store into the memory of its target only
where all that reads the target is computed before, and nobody outside the graph can ask for the old value later.
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
class Writes:
    """What is decided for the WRITEs of one graph.

    in_place: those that store into the memory of their target; the others get a copy of it first. why: the reason of
    each. first: what reads an old value on behalf of those that come later, and so is computed into memory before it
    is gone. apart: what is stored by a kernel of its own, because that kernel must run before some write.
    """

    in_place: frozenset[LazyBuffer] = frozenset()
    why: Mapping[LazyBuffer, str] = field(default_factory=dict)
    first: frozenset[LazyBuffer] = frozenset()
    apart: frozenset[LazyBuffer] = frozenset()


NO_WRITES = Writes()


def graph_order(outputs: Sequence[LazyBuffer]) -> list[LazyBuffer]:
    """What `outputs` are computed from, sources first, down to what lies in memory."""
    return toposort(outputs, lambda node: () if node.buffer is not None else node.src)


def must_be_realized(
    order: Collection[LazyBuffer], outputs: Iterable[LazyBuffer], overrides: Overrides = NO_OVERRIDES
) -> set[LazyBuffer]:
    """The nodes that get memory whatever else is decided: outputs, what only memory will do for, what is asked to be
    contiguous, and where the user cuts."""
    forced = needed_in_memory(order).union(outputs, overrides.cut)
    forced.update(node for node in order if node.op is Ops.CONTIGUOUS and node not in overrides.join)
    return {node for node in forced if node.buffer is None}


def needed_in_memory(order: Iterable[LazyBuffer]) -> set[LazyBuffer]:
    """Copies and what they copy, what is written to or gathered from."""
    needed: set[LazyBuffer] = set()
    for node in order:
        if node.buffer is not None:
            continue  # realised before: it has no sources any more
        if node.op in (Ops.COPY, Ops.WRITE):
            needed.update((node, node.src[0]))
        elif node.op is Ops.GATHER and not is_leaf(node.src[0].base):
            needed.add(node.src[0].base)
    return needed


def is_leaf(node: LazyBuffer) -> bool:
    """True where nothing is left to compute: memory, a constant, a counter."""
    return node.buffer is not None or node.op in (Ops.CONST, Ops.IOTA)


def decide_writes(
    order: Sequence[LazyBuffer], forced: set[LazyBuffer], is_seen: Callable[[LazyBuffer], bool]
) -> Writes:
    """Which of the WRITEs in `order` (sources first) are done in place.

    is_seen: whether somebody outside the graph may ask for the value of a node later, from its memory or by computing
    it; it must not say no where it does not know.
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
    after: dict[LazyBuffer, list[LazyBuffer]] = {}  # what is written in place after a node, though it reads it not
    in_place: set[LazyBuffer] = set()
    first: set[LazyBuffer] = set()
    apart: set[LazyBuffer] = set()
    why: dict[LazyBuffer, str] = {}
    for write in waiting:
        target = write.src[0]
        if target.buffer is not None and sharing[target.buffer] > 1:
            why[write] = "its memory is read under two names"
            continue
        readers_before: tuple[set[LazyBuffer], set[LazyBuffer]] | None = set(), set()
        if len(readers[target]) > 1:
            readers_before = _readers_before(write, _reached(write, readers, after), forced, readers)
        if readers_before is None or any(other in in_place and other.src[0] is target for other in readers_before[0]):
            why[write] = "the old value is needed together with the new one"
            continue
        early, copied = readers_before
        if is_seen(target) or any(is_seen(node) for node in early if node not in forced):
            why[write] = "the old value can be asked for later"
            continue
        in_place.add(write)
        first |= copied
        apart |= early & forced | copied
        why[write] = "nobody can ask for the old value any more"
        for node in early:
            after.setdefault(node, []).append(write)
    return Writes(frozenset(in_place), why, frozenset(first), frozenset(apart))


def _reached(start: LazyBuffer, readers: Readers, after: Readers) -> set[LazyBuffer]:
    """All that must come after `start`, and that itself."""
    reached = {start}
    stack = [start]
    while stack:
        node = stack.pop()
        for reader in (*readers[node], *after.get(node, ())):
            if reader not in reached:
                reached.add(reader)
                stack.append(reader)
    return reached


def _readers_before(
    write: LazyBuffer, later: set[LazyBuffer], forced: set[LazyBuffer], readers: Readers
) -> tuple[set[LazyBuffer], set[LazyBuffer]] | None:
    """What reads the old value of the target of `write` (down to what is realised anyway), and the nodes among it
    that must be realised since something in `later` reads them. None where that is the target itself."""
    target = write.src[0]
    early: set[LazyBuffer] = set()
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
            elif reader not in early:
                early.add(reader)
                if reader not in forced:
                    stack.append(reader)
    return early, readers_to_copy

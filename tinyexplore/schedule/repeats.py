"""Pieces of a graph that occur again, over other memory: they are scheduled once, and the others take that over.

A piece is what one kernel surely has to itself: element by element arithmetic from what lies in memory, or will, to a
value that is asked to be contiguous, with nothing on the way that anything else reads. So the many rounds of a sorting
network are as few decisions and asts as there are different ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tinyexplore.device import Buffer
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.item import ScheduleItem
from tinyexplore.trace import active_recorder, derived
from tinyexplore.uop import Group, Ops
from tinyexplore.uop.symbolic import is_symbolic

INSIDE = Group.ALU | Group.MOVEMENT | {Ops.CAST, Ops.BITCAST, Ops.CONST, Ops.IOTA}
LARGEST = 256  # nodes: a larger piece is more than a kernel


@dataclass(frozen=True, eq=False)
class Piece:
    """`nodes`: the root and all that it is computed from, down to `leaves`, in an order that equal pieces share.
    `key` is equal for pieces that differ in nothing but their memory."""

    nodes: tuple[LazyBuffer, ...]
    leaves: frozenset[LazyBuffer]
    key: tuple[Any, ...]


def repeated_pieces(
    order: Sequence[LazyBuffer], forced: set[LazyBuffer], users: Mapping[LazyBuffer, int]
) -> dict[LazyBuffer, Piece]:
    """By their roots, the pieces of the graph `order` that occur more than once.

    forced: what gets memory whatever else is decided. users: how many nodes read each node.
    """
    roots = [node for node in order if node.op is Ops.CONTIGUOUS and node.buffer is None and node in forced]
    if len(roots) < 2:
        return {}
    pieces = {root: piece for root in roots if (piece := piece_of(root, forced, users)) is not None}
    counts = Counter(piece.key for piece in pieces.values())
    several = {key for key, count in counts.items() if count > 1 and not is_symbolic(key)}
    return {root: piece for root, piece in pieces.items() if piece.key in several}


def piece_of(root: LazyBuffer, forced: set[LazyBuffer], users: Mapping[LazyBuffer, int]) -> Piece | None:
    """The piece that ends in `root`; None where what it is computed from is something else, or read elsewhere."""
    number: dict[LazyBuffer, int] = {}
    leaves = []
    readers: Counter[LazyBuffer] = Counter()
    stack = [root]
    while stack:
        node = stack.pop()
        if node in number:
            continue
        number[node] = len(number)
        if node is not root and (node.buffer is not None or node in forced):
            leaves.append(node)
            continue
        if node is not root and node.op not in INSIDE or len(number) > LARGEST:
            return None
        readers.update(set(node.src))
        stack.extend(node.src)
    apart = frozenset(leaves)
    memory: dict[Buffer | LazyBuffer, int] = {}
    key: list[Any] = [root.device]
    for node in number:
        if node in apart:
            dtype = node.dtype if node.buffer is None else node.buffer.dtype
            key += (memory.setdefault(node.buffer or node, len(memory)), dtype, node.dtype, node.shape)
            continue
        if node is not root and node.src and readers[node] != users[node]:
            return None
        value = str(node.arg) if node.op is Ops.CONST and node.arg == 0 else node.arg  # 0.0 is not -0.0
        key += (node.op, node.dtype, node.shape, value, *[number[src] for src in node.src])
    return Piece(tuple(number), apart, tuple(key))


def taken_over(
    item: ScheduleItem,
    from_piece: Piece,
    piece: Piece,
    memory: Mapping[LazyBuffer, Buffer],
    original_of: Callable[[LazyBuffer], LazyBuffer],
) -> ScheduleItem:
    """What `item` does for `from_piece`, done for `piece`, whose key is the same.

    original_of: as what each node is recorded."""
    nodes = dict(zip(from_piece.nodes, piece.nodes))
    buffers = {memory[known]: memory[node] for known, node in nodes.items() if known in memory}
    origins = tuple([(nodes[node], value, how) for node, value, how in item.origins])
    if recorder := active_recorder():
        for origin in origins:
            recorder.record(derived((original_of(origin[0]), *origin[1:])))
    return replace(
        item,
        buffers=tuple([buffers[buffer] for buffer in item.buffers]),
        outputs=tuple([nodes[node] for node in item.outputs]),
        members=tuple([nodes[node] for node in item.members]),
        reads=tuple([nodes[node] for node in item.reads]),
        origins=origins,
    )


__all__ = ["Piece", "piece_of", "repeated_pieces", "taken_over"]

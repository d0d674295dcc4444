"""Finds stores that may bypass the caches: large results, written once, in whole cache lines, and never read.

An ordinary store first fetches the line that it overwrites. For a result that no cache could hold, that is a third to
half of all memory traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from tinyexplore.dtype import PtrDType
from tinyexplore.target import Target
from tinyexplore.uop import Ops, UOp


def factor(node: UOp) -> int:
    """Returns a common divisor of all values of this index expression (0 if the index is always 0)."""
    if node.op is Ops.CONST:
        return abs(node.arg)
    if node.op is Ops.ADD:
        return gcd(factor(node.src[0]), factor(node.src[1]))
    if node.op is Ops.MUL:
        return factor(node.src[0]) * factor(node.src[1])
    if node.op is Ops.SHL and node.src[1].op is Ops.CONST:
        return factor(node.src[0]) << node.src[1].arg
    return 1


def streaming_stores(uops: Sequence[UOp], target: Target) -> set[UOp]:
    """Returns the STOREs that may bypass the caches, provided that their buffers start at a cache line.

    Stores of a scatter's copy are excluded, because some of it is written again.
    """
    buffers = [node for node in uops if node.op is Ops.DEFINE_GLOBAL]
    if not any(is_large(buffer, target) for buffer in buffers):
        return set()
    read_memory = {
        node.src[0].src[0] for node in uops if node.op is Ops.LOAD or len(node.src) > 2 and node.op is Ops.STORE
    }
    groups: dict[tuple[UOp, UOp | None], list[tuple[int, UOp]]] = {}
    open_loops: list[UOp] = []
    for node in uops:
        if node.op is Ops.RANGE:
            open_loops.append(node)
        elif node.op is Ops.ENDRANGE:
            open_loops.pop()
        elif node.op is Ops.STORE and _is_once_and_large(node, open_loops, read_memory, target):
            buffer, position = node.src[0].src
            base, offset = _split(position)
            groups.setdefault((buffer, base), []).append((offset, node))
    streamed: set[UOp] = set()
    for (_, base), stores in groups.items():
        for run in _split_runs(stores):
            if _fills_whole_lines(base, run, target.line_bytes):
                streamed.update(store for _, store in run)
    return streamed


def is_large(buffer: UOp, target: Target) -> bool:
    assert isinstance(buffer.dtype, PtrDType)
    return buffer.dtype.size * buffer.dtype.base.itemsize >= target.min_memory_bytes


def _is_once_and_large(node: UOp, open_loops: Sequence[UOp], read_memory: set[UOp], target: Target) -> bool:
    index, value = node.src[:2]
    buffer = index.src[0]
    if buffer.op is not Ops.DEFINE_GLOBAL or buffer in read_memory or len(index.src) > 2 or value.dtype.count == 1:
        return False
    if not is_large(buffer, target):
        return False
    return index.src[1].ranges.issuperset(open_loops)  # a loop that the index does not depend on writes it again


def _split(position: UOp) -> tuple[UOp | None, int]:
    """Splits an index into an expression and a constant."""
    if position.op is Ops.CONST:
        return None, position.arg
    if position.op is Ops.ADD and position.src[1].op is Ops.CONST:
        return position.src[0], position.src[1].arg
    return position, 0


def _split_runs(stores: list[tuple[int, UOp]]) -> Iterator[list[tuple[int, UOp]]]:
    """Yields sequences of stores to consecutive addresses, in order. Example: each row of a tile."""
    run: list[tuple[int, UOp]] = []
    expected_offset = 0
    for offset, store in sorted(stores, key=lambda pair: pair[0]):
        if run and offset != expected_offset:
            yield run
            run = []
        run.append((offset, store))
        expected_offset = offset + store.src[1].dtype.count
    yield run


def _fills_whole_lines(base: UOp | None, run: list[tuple[int, UOp]], line_bytes: int) -> bool:
    """Whether a sequence of stores fills whole cache lines, with each store aligned to its width."""
    size = run[0][1].src[1].dtype.itemsize
    for offset, store in run:
        if offset % store.src[1].dtype.count:
            return False
    first_offset, (last_offset, store) = run[0][0], run[-1]
    starts_at_line = (first_offset * size) % line_bytes == 0 and (base is None or factor(base) * size % line_bytes == 0)
    return starts_at_line and (last_offset + store.src[1].dtype.count - first_offset) * size % line_bytes == 0

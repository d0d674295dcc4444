"""Splits large reductions to few results, and long running sums, into parts for several cores.

A rewrite of the graph before fusion. The user's graph stays unchanged; the kernels come from an equivalent graph. Each
split is recorded as a decision, with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import Shape
from tinyexplore.schedule.rewritten_graph import RewrittenGraph, rewritten_writes
from tinyexplore.schedule.writes import WritePlan, graph_order
from tinyexplore.target import Target, planned_cores
from tinyexplore.trace import LazyBufferBuilt, ScheduleDecided, active_recorder, node_derived, recording
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.symbolic import greatest
from tinyexplore.util import config, toposort

# a policy, the same for every machine, that determines the order of additions (machine facts are in `Target`)
MIN_RESULTS = 16  # a reduction to fewer results leaves cores idle
MUCH_TO_REDUCE = 1 << 18  # elements from which a second kernel costs less than idle cores
MUCH_IN_SHORT_ROWS = 1 << 20  # elements in short rows from which cores share rows rather than columns
SHORT_ROW_BYTES = 2048
MAX_PARTS = 256
MIN_STRETCHED_PARTS = 64  # fewest parts of a sum that has pieces of several stretches of memory in each part
WHOLE_VECTORS = 16  # the size of a piece is a multiple of this, for any vector width
MAX_EXAMINED_NODES = 16  # most nodes to examine
MUCH_TO_SCAN = 1 << 20  # elements from which idle cores cost more than reading twice
MAX_BLOCKS_PER_CORE = 4  # most blocks of a running sum, per core

_ELEMENTWISE = (OpGroups.ALU - OpGroups.TRANSCENDENTAL) | OpGroups.MOVEMENT | {Ops.CAST, Ops.BITCAST}


def split_reductions(
    outputs: Sequence[LazyBuffer],
    writes: WritePlan,
    target_of: Callable[[str], Target],
    recorded_as: Callable[[LazyBuffer], LazyBuffer] = lambda node: node,
) -> RewrittenGraph:
    """Returns the graph that computes `outputs`, with reductions and running sums split where that is faster.

    target_of: returns the target of a device by the device's name.
    recorded_as: returns the node that the user wrote, for each node of this graph.
    """
    if not config().SPLIT_REDUCEOP:
        return RewrittenGraph(outputs, writes)
    order = graph_order(outputs)
    if not any([_is_large(node) for node in order]):
        return RewrittenGraph(outputs, writes)
    rebuilt: dict[LazyBuffer, LazyBuffer] = {}
    original: dict[LazyBuffer, LazyBuffer] = {}
    for node in order:
        rebuilt[node] = node
        if node.buffer is not None or not node.src:
            continue
        src = tuple([rebuilt[source] for source in node.src])
        with recording(None):
            split = _split(node, src[0], target_of(node.device)) if _is_large(node) else None
        if split is not None:
            rebuilt[node], reason = split
            _record_split(recorded_as(node), rebuilt[node], src[0], reason)
        elif src != node.src:
            rebuilt[node] = node.over(src)
        if rebuilt[node] is not node:
            original[rebuilt[node]] = original[_stored_node(rebuilt[node], node)] = node
    if not original:
        return RewrittenGraph(outputs, writes)
    replacements = {node: _stored_node(new, node) for node, new in rebuilt.items()}
    return RewrittenGraph(
        [replacements[node] for node in outputs], rewritten_writes(writes, rebuilt), original, replacements
    )


def _stored_node(result: LazyBuffer, node: LazyBuffer) -> LazyBuffer:
    """Returns the node that gets the memory of `node`: for a split running sum, the last scan under the final
    reshape."""
    return result.src[0] if node.op is Ops.SCAN_AXIS and result.op is Ops.RESHAPE else result


def _is_large(node: LazyBuffer) -> bool:
    if node.buffer is not None:
        return False
    if node.op is Ops.REDUCE_AXIS:
        return node.src[0].size >= MUCH_TO_REDUCE
    return node.op is Ops.SCAN_AXIS and node.arg[0] is Ops.ADD and node.size >= MUCH_TO_SCAN


def _split(node: LazyBuffer, source: LazyBuffer, target: Target) -> tuple[LazyBuffer, str] | None:
    """Splits `node`, a reduction or scan of `source`. Returns the result and the reason; None if the split does not
    pay."""
    op, where = node.arg
    if node.op is Ops.SCAN_AXIS:
        blocks = _choose_block_count(source, where)
        if blocks == 1:
            return None
        reason = f"the scan is split into {blocks} blocks, so that all {planned_cores()} cores have work"
        return _sum_in_blocks(source, where, blocks, target), reason
    result_count: Any = prod(node.shape)
    if type(result_count) is not int:
        return None
    if result_count < MIN_RESULTS:
        split = _reduce_in_two_steps(source, op, where, node.shape, _choose_axis(source, where), target)
        results = f"{result_count} result{'s' if result_count > 1 else ''}"
        explanation = f"reducing {source.size} elements to {results} leaves cores idle"
    else:
        sums_rows = where == tuple(range(len(where)))
        is_short = result_count * node.dtype.itemsize <= SHORT_ROW_BYTES
        if not sums_rows or source.size < MUCH_IN_SHORT_ROWS or not is_short:
            return None
        split = _reduce_in_two_steps(source, op, where, node.shape, 0, target)
        explanation = f"its rows of {result_count} elements are too short to divide among cores"
    if split is None:
        return None
    result, part_count = split
    return result, f"split into {part_count} partial results in memory: {explanation}"


def _record_split(node: LazyBuffer, result: LazyBuffer, source: LazyBuffer, reason: str) -> None:
    """Records the decision, and the origin of the nodes that the split adds."""
    recorder = active_recorder()
    if recorder is None:
        return
    recorder.record(ScheduleDecided(node, "split", reason))
    for new in toposort(_stored_node(result, node).src, lambda new_node: () if new_node is source else new_node.src):
        if new is not source:
            recorder.record(LazyBufferBuilt(new, new.src, None, getattr(node, "calls", ())))
            recorder.record(node_derived((node, new, "split")))


def _make_reduction(source: LazyBuffer, op: Ops, axes: tuple[int, ...], shape: Shape) -> LazyBuffer:
    return LazyBuffer(Ops.REDUCE_AXIS, source.dtype, shape, (source,), (op, axes), source.device)


def largest_part_count(size: int) -> int:
    """Returns the number of equal parts into which an axis can be divided among cores."""
    return max(n for n in range(1, MAX_PARTS + 1) if size % n == 0)


def _choose_axis(source: LazyBuffer, axes: tuple[int, ...]) -> int:
    """Chooses the axis to split: among those with enough parts, the one with the largest stride in memory.

    Each part is then contiguous. If no axis has enough parts, returns the longest axis.
    """
    longest = max(axes, key=lambda axis: greatest(source.shape[axis]))
    if len(axes) == 1 or any(type(size) is not int for size in source.shape):
        return longest
    steps = source.st.real_strides
    long_axes = [axis for axis in axes if steps[axis] and largest_part_count(source.shape[axis]) >= MIN_RESULTS]
    return max(long_axes, key=lambda axis: abs(steps[axis] or 0), default=longest)


def _reduce_in_two_steps(
    source: LazyBuffer, op: Ops, axes: tuple[int, ...], shape: Shape, outer: int, target: Target
) -> tuple[LazyBuffer, int] | None:
    """Computes many partial results along `outer`, which the cores share, then combines them. Returns the number of
    parts, too.

    None if there are few parts. The sum is also more accurate, and each core reads one contiguous stretch of memory.
    """
    size = source.shape[outer]
    if type(size) is not int:
        return None
    stretches, part_count = _choose_stretches(source, op, axes, outer, target)
    if part_count < MIN_RESULTS:
        return None
    piece_sizes = stretches, part_count, size // (stretches * part_count)
    split = source.reshape((*source.shape[:outer], *piece_sizes, *source.shape[outer + 1 :]))
    other_axes = [axis if axis < outer else axis + 2 for axis in axes if axis != outer]
    inner = tuple(sorted([*other_axes, outer, outer + 2]))
    partial_shape = tuple([1 if axis in inner else n for axis, n in enumerate(split.shape)])
    partial = _make_reduction(split, op, inner, partial_shape).contiguous()
    flat = partial.reshape((*partial_shape[:outer], part_count, *partial_shape[outer + 3 :]))
    return _make_reduction(flat, op, (outer,), shape), part_count


def _choose_stretches(
    source: LazyBuffer, op: Ops, axes: tuple[int, ...], outer: int, target: Target
) -> tuple[int, int]:
    """Returns into how many stretches `outer` is divided, and the number of parts, each with a piece of every stretch.

    A sum from memory is faster if it reads several stretches at a time (`kernel/heuristics/row_reductions.py`). If
    these add up to one result, fewer lanes must be combined, by a program of half the length.
    """
    size = source.shape[outer]
    is_sum = op is Ops.ADD and len(source.shape) - 1 in axes
    if is_sum and _comes_from_memory(source, target) and _is_plain(source):
        stretches = target.streams
        smallest_step = stretches * (WHOLE_VECTORS if outer == len(source.shape) - 1 else 1)
        part_count = largest_part_count(size // smallest_step) if size % smallest_step == 0 else 0
        if part_count >= MIN_STRETCHED_PARTS:
            return stretches, part_count
    return 1, largest_part_count(size)


def _comes_from_memory(source: LazyBuffer, target: Target) -> bool:
    return source.size * source.dtype.itemsize >= target.min_memory_bytes


def _is_plain(source: LazyBuffer) -> bool:
    """Whether reading `source` takes most of its time, in any order.

    So it is in memory, will be in memory, or is computed from memory element by element in a few cheap operations.
    """
    stack, visited_count = [source], 0
    while stack and visited_count < MAX_EXAMINED_NODES:
        node = stack.pop()
        visited_count += 1
        if node.buffer is not None or node.op is Ops.CONTIGUOUS or node.op is Ops.COPY:
            continue
        if node.src and node.op not in _ELEMENTWISE:
            return False
        stack += node.src
    return not stack


def _choose_block_count(source: LazyBuffer, axis: int) -> int:
    """Returns the number of blocks of a running sum along `axis`; 1 if it is not split."""
    size = source.shape[axis]
    if type(size) is not int:
        return 1
    cores, rows = planned_cores(), source.size // size
    return next((n for n in range(-(-cores // rows), MAX_BLOCKS_PER_CORE * cores) if size % n == 0), 1)


def _sum_in_blocks(source: LazyBuffer, axis: int, blocks: int, target: Target) -> LazyBuffer:
    """Computes a running sum in blocks, which the cores share. Each block begins with the sum of all blocks before it.

    These sums are computed first, so all blocks but the last are read twice.
    """
    size = source.shape[axis] // blocks
    split = source.reshape((*source.shape[:axis], blocks, size, *source.shape[axis + 1 :]))
    outer_bounds, inner_bounds = [(0, n) for n in source.shape[:axis]], [(0, n) for n in source.shape[axis + 1 :]]
    earlier = split.shrink([*outer_bounds, (0, blocks - 1), (0, size), *inner_bounds])
    sums = earlier.reduce(Ops.ADD, (axis + 1,))
    if sums.op is Ops.REDUCE_AXIS and _is_large(sums):
        resplit = _split(sums, earlier, target)
        sums = sums if resplit is None else resplit[0]
    sums_before = _make_scan(sums, axis) if blocks > 2 else sums
    unchanged = [(0, 0)] * len(outer_bounds), [(0, 0)] * len(inner_bounds)
    block_starts = sums_before.pad([*unchanged[0], (1, 0), (0, size - 1), *unchanged[1]])
    return _make_scan(block_starts.alu(Ops.ADD, split), axis + 1).reshape(source.shape)


def _make_scan(source: LazyBuffer, axis: int) -> LazyBuffer:
    return LazyBuffer(Ops.SCAN_AXIS, source.dtype, source.shape, (source,), (Ops.ADD, axis), source.device)


__all__ = ["split_reductions"]

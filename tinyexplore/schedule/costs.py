"""The scheduler's cost model: recomputing a value compared with storing and loading it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.overrides import NO_OVERRIDES, Overrides
from tinyexplore.schedule.row_loops import STORED
from tinyexplore.schedule.writes import is_leaf
from tinyexplore.uop import OpGroups, Ops

EXPENSIVE = OpGroups.TRANSCENDENTAL | {Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.SQRT}
COUNTED_UP_TO = STORED | {Ops.REDUCE_AXIS}  # operations are counted from these nodes on
# a policy in counts and ratios, the same for every machine
CHEAP_OPS = 4  # a chain of at most this many light operations is recomputed rather than stored
MAX_REPEATED_OPS = 16  # a longer chain is stored without an estimate of the cost
OP_IN_READS = 0.25  # the time of an operation, relative to reading a value from beyond the L2 cache
WRITE_IN_READS = 2  # a write first reads the cache line


def is_over(quantity: str, value: float, bound: float) -> bool:
    """Whether `value` of `quantity` is more than `bound`."""
    return value > bound


class CostModel:
    """Counts the operations that compute one element of each node of `order`.

    operations: the count of each node (sources first; capped).
    counted_from: nodes at which counting starts: memory, reductions, and nodes that will be stored anyway, because they
    have several readers and are too expensive to recompute.

    The cost of an expanded value is divided among its elements: a channel's scale is computed once for all pixels.
    """

    def __init__(self, order: Sequence[LazyBuffer], overrides: Overrides = NO_OVERRIDES) -> None:
        self.operations: dict[LazyBuffer, float] = {}
        self.counted_from: set[LazyBuffer] = set()
        self.input_sizes: dict[LazyBuffer, int] = {}
        self.is_complete = False  # adding nodes to `counted_from` changes sizes
        readers = reader_counts(order)
        for node in order:
            is_stored = node.op in COUNTED_UP_TO and not (node.op is Ops.CONTIGUOUS and node in overrides.join)
            if is_leaf(node) or is_stored or node in overrides.cut:
                self.operations[node] = 0
                self.counted_from.add(node)
                continue
            node_cost = operations_of(node.op)
            source_cost = sum([0 if src in self.counted_from else self.operations[src] for src in node.src])
            if node.op is Ops.EXPAND and node.size:
                source_cost *= node.src[0].size / node.size
            self.operations[node] = min(node_cost + source_cost, 1 << 20)
            count = readers.get(node, 0)
            if node_cost and count > 1 and node.size and not self.recomputing_is_cheaper(node, count):
                self.counted_from.add(node)
        self.is_complete = True

    def recomputing_is_cheaper(
        self, node: LazyBuffer, kernels: int, exceeds: Callable[[str, float, float], bool] = is_over
    ) -> bool:
        """Whether recomputing `node` in each of `kernels` kernels is cheaper than storing it once and loading it."""
        operations = self.operations[node]
        if not exceeds("operations per element (recomputed up to the bound)", operations, CHEAP_OPS):
            return True
        if exceeds("operations per element (stored in memory above the bound)", operations, MAX_REPEATED_OPS):
            return False
        inputs = self.input_size(node) / node.size
        stored = inputs + WRITE_IN_READS + kernels
        recompute_cost = (kernels - 1) * operations * OP_IN_READS + kernels * inputs
        return not exceeds(
            "recompute cost per element, in reads (bound: cost of storing it once)", recompute_cost, stored
        )

    def is_little_to_read(self, node: LazyBuffer) -> bool:
        """Whether a value is cheaper to recompute than to load, because it consists of constants or is expanded many
        times."""
        is_light = self.operations[node] <= CHEAP_OPS and node.op not in EXPENSIVE
        return is_light and self.input_size(node) * 2 <= node.size

    def input_size(self, node: LazyBuffer) -> int:
        """Returns the number of elements in memory that `node` is computed from, if its cheap inputs are inlined."""
        cached = self.input_sizes.get(node)
        if cached is not None:
            return cached
        total = 0
        visited = {node}
        stack = [node]
        while stack:
            inner = stack.pop()
            if (
                inner.buffer is not None
                or inner.op in COUNTED_UP_TO
                or (inner in self.counted_from and inner is not node)
            ):
                total += 0 if inner.op in (Ops.CONST, Ops.IOTA) else inner.size
                continue
            for src in inner.src:
                if src not in visited:
                    visited.add(src)
                    stack.append(src)
        if self.is_complete:
            self.input_sizes[node] = total
        return total


def operations_of(op: Ops) -> int:
    """Returns the cost of an operation, in simple operations."""
    if op in OpGroups.MOVEMENT or op is Ops.BITCAST:
        return 0
    return 20 if op in OpGroups.TRANSCENDENTAL else 8 if op in EXPENSIVE else 1


def reader_counts(order: Sequence[LazyBuffer]) -> dict[LazyBuffer, int]:
    """Counts the computed nodes that read each node, directly or through movements."""
    counts: dict[LazyBuffer, int] = {}
    for node in order:
        if is_leaf(node) or node.op in OpGroups.MOVEMENT:
            continue
        sources = set()
        for src in node.src:
            while src.op in OpGroups.MOVEMENT and src.buffer is None:
                src = src.src[0]
            sources.add(src)
        for src in sources:
            counts[src] = counts.get(src, 0) + 1
    return counts

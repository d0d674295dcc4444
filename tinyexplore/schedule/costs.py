"""What it costs to compute a value again, beside what it costs to store it and read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.overrides import NO_OVERRIDES, Overrides
from tinyexplore.schedule.rows import STORED
from tinyexplore.schedule.writes import is_leaf
from tinyexplore.uop import OpGroups, Ops

EXPENSIVE = OpGroups.TRANSCENDENTAL | {Ops.FDIV, Ops.IDIV, Ops.MOD, Ops.SQRT}
COUNTED_UP_TO = STORED | {Ops.REDUCE_AXIS}  # costs are counted from these on
# a policy in counts and ratios, the same for every machine
CHEAP_OPS = 4  # a chain of at most this many light operations is rather done twice than stored
MOST_REPEATED_OPS = 16  # a longer one is stored, and nobody asks what that costs
OP_IN_READS = 0.25  # an operation on a value, in times of reading one from beyond the L2 cache
WRITE_IN_READS = 2  # the line is read before it is written


def is_over(what: str, value: float, bound: float) -> bool:
    """Whether `value` of `what` is more than `bound`."""
    return value > bound


class Costs:
    """`operations`: to compute one element of each node of `order` (sources first; capped).

    They are counted from memory, from reductions, and from what will be stored anyway, because it has several readers
    and is not light enough for all of them (`counted_from`). What is spread over more elements than it has, each of
    them pays a part of: a channel's scale is made once for all its pixels.
    """

    def __init__(self, order: Sequence[LazyBuffer], overrides: Overrides = NO_OVERRIDES) -> None:
        self.operations: dict[LazyBuffer, float] = {}
        self.counted_from: set[LazyBuffer] = set()
        self.input_sizes: dict[LazyBuffer, int] = {}
        self.is_complete = False  # while nodes are added to `counted_from`, sizes change
        readers = reader_counts(order)
        for node in order:
            is_stored = node.op in COUNTED_UP_TO and not (node.op is Ops.CONTIGUOUS and node in overrides.join)
            if is_leaf(node) or is_stored or node in overrides.cut:
                self.operations[node] = 0
                self.counted_from.add(node)
                continue
            own = operations_of(node.op)
            below = sum([0 if src in self.counted_from else self.operations[src] for src in node.src])
            if node.op is Ops.EXPAND and node.size:
                below *= node.src[0].size / node.size
            self.operations[node] = min(own + below, 1 << 20)
            count = readers.get(node, 0)
            if own and count > 1 and node.size and not self.is_rather_repeated(node, count):
                self.counted_from.add(node)
        self.is_complete = True

    def is_rather_repeated(
        self, node: LazyBuffer, kernels: int, exceeds: Callable[[str, float, float], bool] = is_over
    ) -> bool:
        """True where that many kernels rather compute `node` each for itself than read what one of them stored."""
        operations = self.operations[node]
        if not exceeds("operations, of which few are rather done again than stored", operations, CHEAP_OPS):
            return True
        if exceeds("operations, of which many are rather stored than done again", operations, MOST_REPEATED_OPS):
            return False
        inputs = self.input_size(node) / node.size
        stored = inputs + WRITE_IN_READS + kernels
        again = (kernels - 1) * operations * OP_IN_READS + kernels * inputs
        return not exceeds("cost of computing an element in each kernel, beside storing it, in reads", again, stored)

    def is_little_to_read(self, node: LazyBuffer) -> bool:
        """True for a light value that takes less to compute again than to load: made of constants, or much expanded."""
        is_light = self.operations[node] <= CHEAP_OPS and node.op not in EXPENSIVE
        return is_light and self.input_size(node) * 2 <= node.size

    def input_size(self, node: LazyBuffer) -> int:
        """Elements in the memory that `node` is computed from, were its inputs inlined as far as they are light."""
        known = self.input_sizes.get(node)
        if known is not None:
            return known
        total = 0
        seen = {node}
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
                if src not in seen:
                    seen.add(src)
                    stack.append(src)
        if self.is_complete:
            self.input_sizes[node] = total
        return total


def operations_of(op: Ops) -> int:
    """About how many simple operations take as long."""
    if op in OpGroups.MOVEMENT or op is Ops.BITCAST:
        return 0
    return 20 if op in OpGroups.TRANSCENDENTAL else 8 if op in EXPENSIVE else 1


def reader_counts(order: Sequence[LazyBuffer]) -> dict[LazyBuffer, int]:
    """How many computed nodes read each node, through movements or not."""
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

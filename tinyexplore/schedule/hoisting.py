"""Hoisting: loop-invariant code motion for reductions. A value that no step of a loop changes is computed outside the
loop.

A rewrite of the tensor graph before fusion. It finds the axes on which the operand of each reduction depends
(`dependence.py`):

- A reduction whose operand does not depend on an axis of the result is computed once along that axis, then expanded.
- A sum over an axis on which the operand does not depend is a multiplication by its size. A maximum or minimum is the
operand.
- A concatenation of equal parts (`concatenations.py`) is a repetition of one of them.
- A factor that does not depend on a summed axis is multiplied with the sum of the other factors, if this halves the
number of steps. The sum over j of g[k]·w[i,j], for all k and i, is g[k] times the sum over j of w[i,j].

Sums of equal values and factored sums round differently: integers are equal; floats are equal up to rounding unless a
value or a partial sum is infinite or NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod

from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule.concatenations import Concatenation
from tinyexplore.schedule.dependence import (
    DependenceAnalysis,
    Digit,
    Layout,
    aligned_groups,
    dependence_flags,
    depends,
    refine_digits,
    regroup_digits,
)
from tinyexplore.schedule.rewritten_graph import RewrittenGraph, rewritten_writes
from tinyexplore.schedule.writes import WritePlan, graph_order
from tinyexplore.trace import LazyBufferBuilt, ScheduleDecided, active_recorder, node_derived, recording
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.semantics import wrap
from tinyexplore.uop.symbolic import greatest, product, sint
from tinyexplore.util import toposort

MIN_SAVED_STEPS = 1 << 10  # steps that must be saved to pay for another kernel
MAX_FACTORS = 8
MAX_REBUILD_DEPTH = 100  # operations that are rebuilt over other axes; below them, results are sliced instead

_INNER = {Ops.ADD: Ops.MUL, Ops.MAX: Ops.ADD, Ops.MIN: Ops.ADD}  # the operation over which each reduction distributes

Nodes = Collection[LazyBuffer]
# (terms to multiply, digits of these terms, digits to sum)
Step = tuple[tuple[int, ...], frozenset[int], frozenset[int]]


def hoist_invariants(
    outputs: Sequence[LazyBuffer],
    writes: WritePlan,
    stops: Nodes = frozenset(),
    recorded_as: Callable[[LazyBuffer], LazyBuffer] = lambda node: node,
) -> RewrittenGraph:
    """Returns the graph that computes `outputs` in which no reduction is repeated along an axis on which it does
    not depend.

    stops: nodes that get memory, and are read from it.
    recorded_as: returns the node that the user wrote, for each node of this graph.
    """
    order = graph_order(outputs)
    if not any([node.op is Ops.REDUCE_AXIS and node.buffer is None for node in order]):
        return RewrittenGraph(outputs, writes)
    dependence = DependenceAnalysis()
    fixed = {*outputs, *writes.computed_first, *stops}
    rebuilt: dict[LazyBuffer, LazyBuffer] = {}
    original: dict[LazyBuffer, LazyBuffer] = {}
    in_memory: set[LazyBuffer] = set()
    for node in order:
        rebuilt[node] = node
        if node.buffer is not None or not node.src:
            continue
        src = tuple([rebuilt[source] for source in node.src])
        hoisted = None
        if node.op is Ops.REDUCE_AXIS and node.size:
            with recording(None):
                hoisted = _Reduction(node, src[0], dependence, in_memory).hoist()
        elif node.op is Ops.ADD and node.size:
            with recording(None):
                hoisted = _repeat_equal_parts(node if src == node.src else node.over(src), in_memory)
        if hoisted is not None:
            rebuilt[node], reason = hoisted
            _record(recorded_as(node), rebuilt[node], src, reason)
        elif src != node.src:
            rebuilt[node] = node.over(src)
        if rebuilt[node] is not node:
            original[rebuilt[node]] = node
        if node in fixed:
            in_memory.add(rebuilt[node])
    if not original:
        return RewrittenGraph(outputs, writes)
    return RewrittenGraph([rebuilt[node] for node in outputs], rewritten_writes(writes, rebuilt), original, rebuilt)


def _repeat_equal_parts(node: LazyBuffer, in_memory: Nodes) -> tuple[LazyBuffer, str] | None:
    """Returns a concatenation of equal parts as a repetition, and the reason; None if `node` is none."""
    join = Concatenation.of(node, in_memory)
    value = None if join is None else join.find_repetition()
    if join is None or value is None:
        return None
    return value, f"some of the {len(join.parts)} concatenated parts are equal: each is computed once and repeated"


def _record(node: LazyBuffer, result: LazyBuffer, sources: Sequence[LazyBuffer], reason: str) -> None:
    """Records the decision, and the origin of the added nodes."""
    recorder = active_recorder()
    if recorder is None:
        return
    existing_nodes = set(graph_order(sources))
    recorder.record(ScheduleDecided(node, "hoist", reason))
    for new in toposort([result], lambda new_node: [src for src in new_node.src if src not in existing_nodes]):
        if new not in existing_nodes and new is not result:
            recorder.record(LazyBufferBuilt(new, new.src, None, getattr(node, "calls", ())))
            recorder.record(node_derived((node, new, "hoist")))


class _Reduction:
    """A reduction of `source`, with its axes split into digits."""

    def __init__(self, node: LazyBuffer, source: LazyBuffer, dependence: DependenceAnalysis, in_memory: Nodes) -> None:
        self.node = node
        self.source = source
        self.in_memory = in_memory
        self.op, self.axes = node.arg
        self.factors = self._find_factors(source)
        layouts = [dependence.of(factor) for factor, _ in self.factors]
        self.cut: list[tuple[sint, ...]] = []
        self.sizes: list[sint] = []
        self.reduced: set[int] = set()
        depending: list[list[bool]] = [[] for _ in layouts]
        for axis, digits in enumerate(zip(*layouts)):
            sizes = refine_digits(digits)
            if sizes is None:
                sizes = (source.shape[axis],)
                for value_digits, list_of in zip(digits, depending):
                    list_of.append(depends(value_digits))
            else:
                for value_digits, list_of in zip(digits, depending):
                    list_of += dependence_flags(value_digits, sizes)
            if axis in self.axes:
                self.reduced.update(range(len(self.sizes), len(self.sizes) + len(sizes)))
            self.cut.append(sizes)
            self.sizes += sizes
        self.depending = [
            frozenset([number for number, varies in enumerate(varies_by_digit) if varies])
            for varies_by_digit in depending
        ]

    def _find_factors(self, source: LazyBuffer) -> list[tuple[LazyBuffer, bool]]:
        """Returns the factors of `source` and whether each is a divisor. For a maximum or minimum of floats: the
        addends."""
        inner = _INNER.get(self.op)
        if inner is Ops.ADD and not dtypes.is_float(source.dtype):
            inner = None  # a sum of ints may wrap, so it does not keep the order
        factors: list[tuple[LazyBuffer, bool]] = []
        waiting = [(source, False)]
        while waiting:
            node, is_divisor = waiting.pop()
            is_plain = node.buffer is None and node not in self.in_memory and not is_divisor
            if is_plain and len(factors) + len(waiting) < MAX_FACTORS:
                if node.op is inner:
                    waiting += [(node.src[1], False), (node.src[0], False)]
                    continue
                if node.op is Ops.FDIV and inner is Ops.MUL:
                    waiting += [(node.src[1], True), (node.src[0], False)]
                    continue
            factors.append((node, is_divisor))
        return factors

    def steps(self, digits: Collection[int]) -> int:
        return prod([greatest(self.sizes[digit]) for digit in digits])

    def hoist(self) -> tuple[LazyBuffer, str] | None:
        """Returns a graph with the same value in fewer steps, and the reason; None if there is none."""
        all_digits = frozenset(range(len(self.sizes)))
        needed_digits = frozenset().union(*self.depending)
        if self.op is Ops.MUL:
            needed_digits |= self.reduced
        steps_before = self.steps(all_digits)
        groups = self._choose_groups(needed_digits)
        steps_after = sum([self.steps(digits) for _, digits, _ in groups]) if groups else self.steps(needed_digits)
        if steps_before - steps_after < MIN_SAVED_STEPS or 2 * steps_after > steps_before:
            return None
        value = self._reduce_by_groups(groups) if groups else self._reduce_at_once(needed_digits)
        equal_digits = self.reduced - needed_digits
        if equal_digits and self.op is Ops.ADD and self.node.dtype is not dtypes.bool:
            value = _multiply_by_count(value, product([self.sizes[digit] for digit in equal_digits]))
        full = tuple([1 if digit in self.reduced else size for digit, size in enumerate(self.sizes)])
        return value.expand(full).reshape(self.node.shape), self._format_reason(
            needed_digits, equal_digits, bool(groups), steps_before, steps_after
        )

    def _format_reason(
        self,
        needed_digits: frozenset[int],
        equal_digits: Collection[int],
        grouped: bool,
        steps_before: int,
        steps_after: int,
    ) -> str:
        clauses = []
        repeats = self.steps(frozenset(range(len(self.sizes))) - needed_digits - self.reduced)
        if repeats > 1:
            clauses.append(f"loop-invariant: computed once instead of {repeats} times")
        if equal_digits:
            word = "sum" if self.op is Ops.ADD else "extreme"
            clauses.append(f"the {word} of {self.steps(equal_digits)} equal values needs only one of them")
        if grouped:
            clauses.append("factors that are invariant along a reduced axis are hoisted out of its loop")
        return f"{'; '.join(clauses)}: {steps_after} steps instead of {steps_before}"

    def _choose_groups(self, needed_digits: frozenset[int]) -> list[Step]:
        """Returns the order in which digits are reduced, as (terms to multiply, digits of these terms, digits to sum).

        Terms are numbered: the factors first, then the results of the groups. An empty list: all in one step.
        """
        terms = dict(enumerate(self.depending))
        groups: list[Step] = []
        while True:
            total = self.steps(frozenset().union(*terms.values()))
            users: dict[tuple[int, ...], frozenset[int]] = {}
            for digit in self.reduced & needed_digits:
                using = tuple([number for number, digits in terms.items() if digit in digits])
                if using:
                    users[using] = users.get(using, frozenset()) | {digit}
            grouped = []
            for using, digits in users.items():
                inner = frozenset().union(*[terms[number] for number in using])
                is_possible = not any([number < len(self.factors) and self.factors[number][1] for number in using])
                if is_possible and len(using) < len(terms) and 2 * self.steps(inner) <= total:
                    grouped.append((self.steps(inner), using, inner, digits))
            if not grouped:
                break
            _, using, inner, digits = min(grouped, key=lambda group: group[:2])
            groups.append((using, inner, digits))
            terms[len(self.factors) + len(groups) - 1] = inner - digits
            for number in using:
                del terms[number]
        if groups:
            remaining_digits = frozenset().union(*terms.values())
            groups.append((tuple(terms), remaining_digits, remaining_digits & self.reduced))
        return groups

    def _reduce_at_once(self, needed_digits: frozenset[int]) -> LazyBuffer:
        value = slice_independent(self.source, self._make_layout(needed_digits), self.in_memory)
        return self._reduce(value, self.reduced & needed_digits)

    def _reduce_by_groups(self, groups: Sequence[Step]) -> LazyBuffer:
        """Builds the groups in order: multiplies and sums the terms of each group. The result is a term of a later
        group."""
        terms = [
            (slice_independent(factor, self._make_layout(digits), self.in_memory), is_divisor)
            for (factor, is_divisor), digits in zip(self.factors, self.depending)
        ]
        for using, digits, summed in groups:
            shape = tuple([size if digit in digits else 1 for digit, size in enumerate(self.sizes)])
            group_terms = sorted([terms[number] for number in using], key=lambda term: term[1])
            (value, _), *other_terms = [(value.expand(shape), is_divisor) for value, is_divisor in group_terms]
            for operand, is_divisor in other_terms:
                value = _alu(Ops.FDIV if is_divisor else _INNER[self.op], value, operand)
            terms.append((self._reduce(value, summed), False))
        return terms[-1][0]

    def _reduce(self, value: LazyBuffer, digits: Collection[int]) -> LazyBuffer:
        return value.reduce(self.op, tuple(digits)) if digits else value

    def _make_layout(self, digits: Collection[int]) -> Layout:
        """Returns the layout with all elements along `digits`, and the first element along the other digits."""
        layout: list[tuple[Digit, ...]] = []
        first_digit = 0
        for sizes in self.cut:
            layout.append(tuple([(size, first_digit + number in digits) for number, size in enumerate(sizes)]))
            first_digit += len(sizes)
        return tuple(layout)


def _alu(op: Ops, a: LazyBuffer, b: LazyBuffer) -> LazyBuffer:
    return LazyBuffer(op, a.dtype, a.shape, (a, b), None, a.device)


def _multiply_by_count(value: LazyBuffer, count: sint) -> LazyBuffer:
    """Returns `value` times `count`, computed in float32 if a narrower float may not represent the count."""
    wide_dtype = dtypes.float32 if dtypes.is_float(value.dtype) and value.dtype.itemsize < 4 else value.dtype
    number = dtypes.as_const(count, wide_dtype) if isinstance(count, int) and dtypes.is_float(wide_dtype) else count
    if isinstance(number, int):
        number = wrap(number, wide_dtype)
    factor = LazyBuffer.const(number, wide_dtype, value.device, value.shape)
    return value.cast(wide_dtype).alu(Ops.MUL, factor).cast(value.dtype)


def slice_independent(node: LazyBuffer, layout: Layout, in_memory: Nodes, depth: int = 0) -> LazyBuffer:
    """Returns `node` with one axis per digit of `layout`: the whole digit if it is flagged, else its first element.

    `node` does not depend on the digits that are not flagged. Its operations are rebuilt over smaller sources, down to
    nodes `in_memory`.
    """
    flat = _flat_shape(layout)
    if all([taken_whole for _, taken_whole in _flatten_digits(layout)]):
        return node.reshape(flat)
    if node.buffer is not None or node in in_memory or depth > MAX_REBUILD_DEPTH:
        return _take_first_elements(node, layout)
    depth += 1
    if node.op in OpGroups.ALU:
        src = tuple([slice_independent(source, layout, in_memory, depth) for source in node.src])
        return LazyBuffer(node.op, node.dtype, flat, src, node.arg, node.device)
    if node.op is Ops.CONST:
        return LazyBuffer(Ops.CONST, node.dtype, flat, (), node.arg, node.device)
    if node.op is Ops.EXPAND:
        (source,) = node.src
        source_layout = tuple(
            [
                digits if source_size == size else ()
                for digits, source_size, size in zip(layout, source.shape, node.shape)
            ]
        )
        inner = slice_independent(source, source_layout, in_memory, depth)
        sliced_sources = [
            size if is_whole and source_size == new_size else 1
            for digits, source_size, new_size in zip(layout, source.shape, node.shape)
            for size, is_whole in digits
        ]
        return inner.reshape(tuple(sliced_sources)).expand(flat)
    if node.op is Ops.PERMUTE:
        result_axis = {axis: number for number, axis in enumerate(node.arg)}
        inner = slice_independent(
            node.src[0], tuple([layout[result_axis[axis]] for axis in range(len(layout))]), in_memory, depth
        )
        first_digit = [0]
        for axis in range(len(layout)):
            first_digit.append(first_digit[-1] + len(layout[result_axis[axis]]))
        return inner.permute(
            [first_digit[axis] + n for axis in node.arg for n in range(len(layout[result_axis[axis]]))]
        )
    if node.op is Ops.RESHAPE:
        own_layout = _undo_reshape(layout, node.src[0].shape, node.shape)
        if own_layout is not None:
            return slice_independent(node.src[0], own_layout, in_memory, depth).reshape(flat)
    return _take_first_elements(node, layout)


def _undo_reshape(layout: Layout, source_shape: Sequence[sint], result_shape: Sequence[sint]) -> Layout | None:
    """Maps the digits of a reshape's result to the digits of its source; None if they do not match its axes."""
    source_layout: list[tuple[Digit, ...]] = []
    for axes, new_axes in aligned_groups(source_shape, result_shape):
        groups = regroup_digits(
            [digit for axis in new_axes for digit in layout[axis]], [source_shape[axis] for axis in axes]
        )
        if groups is None:
            return None
        source_layout += map(tuple, groups)
    return tuple(source_layout)


def _flatten_digits(layout: Layout) -> list[Digit]:
    return [digit for digits in layout for digit in digits]


def _flat_shape(layout: Layout) -> tuple[sint, ...]:
    return tuple([size if is_whole else 1 for size, is_whole in _flatten_digits(layout)])


def _take_first_elements(node: LazyBuffer, layout: Layout) -> LazyBuffer:
    split_node = node.reshape(tuple([size for size, _ in _flatten_digits(layout)]))
    return split_node.shrink([(0, size if is_whole else 1) for size, is_whole in _flatten_digits(layout)])


__all__ = ["hoist_invariants"]

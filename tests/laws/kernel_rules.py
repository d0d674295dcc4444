"""A law for each rule about memory, loops and lanes: it preserves the results of random pieces of kernels.

A law makes a piece of which the rule's pattern matches one node, fires the rule on that node alone, and compares what
Python makes of both. It says whether the rule has fired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np

from tests.laws.kernel_meaning import Machine, run_kernel
from tinyexplore.codegen.rewrites import (
    accumulators,
    dot_products,
    fp8,
    masked_addresses,
    simplify,
    unroll,
    vectorize,
)
from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, PatternMatcher, Rule, UOp, graph_rewrite, index_const
from tinyexplore.uop.semantics import evaluate, to_bits

Law = Callable[[Rule, "Pieces"], bool]
SIZE = 600
REDUCTIONS = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN)
NUMBERS = (dtypes.float32, dtypes.int32, dtypes.uint8)
ML_DTYPES = {dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn, dtypes.fp8e5m2: ml_dtypes.float8_e5m2}
FOUR_WORDS = SimpleNamespace(dots=(Ops.DOT_BF16, Ops.DOT_I8, Ops.DOT_U8), vector_bytes=16)


class Pieces:
    """Random parts of kernels, and the memory that they read; the same seed, the same parts."""

    def __init__(self, seed: str) -> None:
        self.random = Random(seed)
        self.numbers = count(1)
        self.memory: dict[int, list[Any]] = {}

    def axis(self, kind: AxisKind, size: int = 0) -> UOp:
        return UOp.range(size or self.random.randint(2, 4), Axis(next(self.numbers), kind))

    def axes(self, kind: AxisKind, least: int, most: int) -> list[UOp]:
        return [self.axis(kind) for _ in range(self.random.randint(least, most))]

    def number(self, dtype: DType) -> Any:
        """Small whole numbers, of which sums and products in any order are the same; any word."""
        if dtype is dtypes.uint32:
            return self.random.getrandbits(32)
        return dtypes.as_const(
            self.random.randint(0, 4) if dtype is dtypes.uint8 else self.random.randint(-3, 3), dtype
        )

    def buffer(self, dtype: DType, size: int = SIZE, space: str = "global") -> UOp:
        number = next(self.numbers)
        self.memory[number] = [self.number(dtype) for _ in range(size)]
        return UOp(Ops.DEFINE_GLOBAL, PtrDType(dtype, size, space), (), number)

    def place(self, axes: list[UOp]) -> UOp:
        """An index: a sum of some multiples of the axes, and a constant."""
        total = index_const(self.random.randint(0, 20))
        for axis in axes:
            total = axis * self.random.choice((0, 1, 1, 2, 5, 12)) + total
        return total

    def separate(self, axes: list[UOp]) -> UOp:
        """An index that is another one in every step."""
        axes = self.random.sample(axes, len(axes))
        total, stride = index_const(self.random.randint(0, 5)), 1
        for axis in axes:
            total, stride = axis * stride + total, stride * axis.size * self.random.choice((1, 1, 2))
        return total

    def condition(self, axes: list[UOp]) -> UOp:
        return self.place(axes) < self.random.randint(0, 40)

    def load(self, axes: list[UOp], dtype: DType, *, lanes: int = 1, masked: bool | None = None) -> UOp:
        masked = self.random.random() < 0.3 if masked is None else masked
        valid = self.condition(axes) if masked else None
        return UOp(Ops.LOAD, dtype.vec(lanes), (self.buffer(dtype).index(self.place(axes), valid),))

    def value(self, axes: list[UOp], dtype: DType, depth: int = 2) -> UOp:
        """Arithmetic of one element."""
        pick = self.random.random()
        if dtype is dtypes.bool:
            return self.condition(axes)
        if depth == 0 or pick < 0.2:
            return self.load(axes, dtype)
        if pick < 0.3:
            return UOp.const(dtype, self.number(dtype))
        if pick < 0.4:
            return self.place(axes).cast(dtype)
        first, second = (self.value(axes, dtype, depth - 1) for _ in range(2))
        if pick < 0.5:
            return self.condition(axes).where(first, second)
        return first.alu(self.random.choice(REDUCTIONS), second)

    def vector(self, axes: list[UOp], dtype: DType, lanes: int) -> UOp:
        """A value of several lanes: loaded, put together or computed."""
        if dtype is dtypes.bool:
            return UOp(Ops.VECTORIZE, dtype.vec(lanes), tuple([self.condition(axes) for _ in range(lanes)]))
        pick = self.random.random()
        if pick < 0.4:
            return self.load(axes, dtype, lanes=lanes)
        if pick < 0.7:
            return UOp(Ops.VECTORIZE, dtype.vec(lanes), tuple([self.value(axes, dtype, 1) for _ in range(lanes)]))
        return self.load(axes, dtype, lanes=lanes).alu(Ops.ADD, self.load(axes, dtype, lanes=lanes))

    def kind(self) -> DType:
        return self.random.choice(NUMBERS)

    def numbers_of_lanes(self, size: int) -> UOp:
        return UOp(Ops.VECTORIZE, dtypes.index.vec(size), tuple(index_const(step) for step in range(size)))

    def context(self) -> SimpleNamespace:
        return SimpleNamespace(numbers=self.numbers, target=FOUR_WORDS)


# *** judging ***


def points(axes: list[UOp]) -> Iterator[dict[UOp, Any]]:
    return Machine({}, False).points(axes, {})


def same_value(pieces: Pieces, before: UOp, after: UOp, axes: list[UOp], *, lanes: bool = False) -> bool:
    """AssertionError where the two differ at a step of `axes`."""
    for at in points(axes):
        expected = Machine(pieces.memory, lanes).value(before, dict(at))
        found = Machine(pieces.memory, lanes).value(after, dict(at))
        assert tuple(found) == tuple(expected), f"{expected} has become {found}: {before!r} → {after!r}"
        assert after.dtype is before.dtype or lanes
    return True


def same_lanes(pieces: Pieces, before: UOp, after: UOp, axis: UOp, axes: list[UOp]) -> bool:
    """`before` in each step of the VECTOR axis is a lane of `after`."""
    for at in points(axes):
        found = Machine(pieces.memory, True).value(after, dict(at))
        steps = [Machine(pieces.memory, False).value(before, {**at, axis: (step,)}) for step in range(axis.size)]
        expected = tuple([lane for (lane,) in steps])
        assert found == expected or found * axis.size == expected, f"{expected} has become {found}: {after!r}"
    return True


def same_memory(pieces: Pieces, before: UOp, after: UOp, *, lanes: tuple[bool, bool] = (False, False)) -> bool:
    """Both store the same into all buffers."""
    found = []
    for sink, has_lanes in zip((before, after), lanes):
        memory = {number: list(values) for number, values in pieces.memory.items()}
        run_kernel(sink if sink.op is Ops.SINK else UOp.sink(sink), memory, lanes=has_lanes)
        found.append(memory)
    assert found[0] == found[1], f"{before!r} → {after!r}"
    assert found[0] != pieces.memory
    return True


def store(pieces: Pieces, place: UOp, value: UOp, buffer: UOp | None = None, arg: int | None = None) -> UOp:
    """A store of numbers that memory does not hold yet."""
    if buffer is None:
        buffer = pieces.buffer(value.dtype.scalar)
        pieces.memory[buffer.arg] = [99] * SIZE
    return UOp(Ops.STORE, dtypes.void, (buffer.index(place), value), arg)


# *** loops that are written out ***


def store_each(rule: Rule, pieces: Pieces) -> bool:
    outer, copied = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axes(AxisKind.UPCAST, 1, 2)
    before = store(pieces, pieces.separate(outer + copied), pieces.value(outer + copied, pieces.kind()))
    after = rule(before)
    assert after is not None and after.op is Ops.SINK
    assert not {axis.arg.kind for one in after.src for axis in one.ranges} & {AxisKind.UPCAST}
    return same_memory(pieces, before, after)


def some_stores(pieces: Pieces) -> UOp:
    buffer = pieces.buffer(dtypes.float32)
    pieces.memory[buffer.arg] = [99.0] * SIZE
    number = pieces.random.randint(2, 3)
    stores = [store(pieces, index_const(place), pieces.value([], dtypes.float32, 1), buffer) for place in range(number)]
    return UOp.sink(*stores)


def flatten_sink(rule: Rule, pieces: Pieces) -> bool:
    parts = [some_stores(pieces) for _ in range(pieces.random.randint(1, 3))]
    alone = [store(pieces, index_const(3), pieces.value([], dtypes.int32)) for _ in range(pieces.random.randint(0, 1))]
    before = UOp.sink(*pieces.random.sample([*parts, *alone], len(parts) + len(alone)))
    after = rule(before)
    assert after is not None and all(one.op is Ops.STORE for one in after.src)
    flat = [one for part in before.src for one in (part.src if part.op is Ops.SINK else (part,))]
    assert sorted(one.digest for one in after.src) == sorted(one.digest for one in flat)
    return same_memory(pieces, before, after)


def filled(pieces: Pieces, extra: tuple[UOp, ...], *, sink: bool) -> UOp:
    """A barrier for the stores that fill scratch memory, and `extra`."""
    loop = pieces.axis(AxisKind.COPY, 3)
    local = UOp(Ops.DEFINE_LOCAL, PtrDType(dtypes.float32, 8, "local"), (), f"tile{next(pieces.numbers)}")
    stores = [
        UOp(Ops.STORE, dtypes.void, (local.index(loop * 2 + part), pieces.value([loop], dtypes.float32, 1)))
        for part in range(2)
    ]
    first = (UOp.sink(*stores),) if sink else tuple(stores)
    return UOp(Ops.BARRIER, dtypes.void, (*first, loop, *extra))


def after_barrier(pieces: Pieces, before: UOp, after: UOp) -> bool:
    stored = before.src[0].src[0] if before.src[0].op is Ops.SINK else before.src[0]
    local = stored.src[0].src[0]
    for place in pieces.random.sample(range(6), 2):
        first, second = (
            UOp(Ops.LOAD, dtypes.float32, (local.index(index_const(place)), one)) for one in (before, after)
        )
        same_value(pieces, first, second, [])
    return True


def flatten_barrier(rule: Rule, pieces: Pieces) -> bool:
    before = filled(pieces, tuple(pieces.axes(AxisKind.UPCAST, 0, 2)), sink=True)
    after = rule(before)
    assert after is not None
    assert all(one.op is Ops.STORE or one.arg.kind is AxisKind.COPY for one in after.src)
    return after_barrier(pieces, before, after)


def barrier_without_lanes(rule: Rule, pieces: Pieces) -> bool:
    before = filled(pieces, (pieces.numbers_of_lanes(4),), sink=False)
    after = rule(before)
    assert after is not None and all(one.op in (Ops.STORE, Ops.RANGE) for one in after.src)
    return after_barrier(pieces, before, after)


def product_of_words(pieces: Pieces, axes: list[UOp], *, op: Ops, lanes: int = 4) -> UOp:
    words = [pieces.load(axes, dtypes.uint32, lanes=lanes, masked=False) for _ in range(2)]
    if op is Ops.DOT_BF16:  # of whole numbers: sums in any order are the same
        for word in words:
            numbers = [pieces.random.randint(-3, 3) for _ in range(2 * SIZE)]
            words_of = np.array(numbers, ml_dtypes.bfloat16).view("u4")
            pieces.memory[word.src[0].src[0].arg] = words_of.tolist()
    dtype = (dtypes.float32 if op is Ops.DOT_BF16 else dtypes.int32).vec(lanes)
    return UOp(op, dtype, (*words, UOp.const(dtype, 0)))


def product_of_a_core(pieces: Pieces, axes: list[UOp]) -> UOp:
    dtype = dtypes.float32.vec(2)
    a, b = (pieces.load(axes, dtypes.float32, lanes=2) for _ in range(2))
    return UOp(Ops.WMMA, dtype, (a, b, UOp.const(dtype, 0)), "any")


def summed(pieces: Pieces, axes: list[UOp]) -> tuple[UOp, Ops]:
    """A value to be reduced, and how: products, too, of numbers, words and tensor cores."""
    pick = pieces.random.random()
    if pick < 0.15:
        return product_of_a_core(pieces, axes), Ops.ADD
    if pick < 0.4:
        return product_of_words(pieces, axes, op=pieces.random.choice(sorted(OpGroups.DOT))), Ops.ADD
    if pick < 0.6:
        return pieces.load(axes, dtypes.float32) * pieces.load(axes, dtypes.float32), Ops.ADD
    dtype = pieces.random.choice((*NUMBERS, dtypes.bool))
    return pieces.value(axes, dtype), pieces.random.choice(REDUCTIONS)


def reduce_each(rule: Rule, pieces: Pieces) -> bool:
    outer, copied = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axes(AxisKind.UNROLL, 1, 2)
    loops = pieces.axes(AxisKind.REDUCE, 0, 1)
    value, op = summed(pieces, outer + copied + loops)
    before = UOp(Ops.REDUCE, value.dtype, (value, *pieces.random.sample(copied + loops, len(copied + loops))), op)
    after = rule(before)
    assert after is not None
    return same_value(pieces, before, after, outer)


def accumulate(rule: Rule, pieces: Pieces) -> bool:
    outer, loops = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axes(AxisKind.REDUCE, 1, 2)
    value, op = summed(pieces, outer + loops)
    after = rule(UOp(Ops.REDUCE, value.dtype, (value, *loops), op), pieces.context())
    assert after is not None and after.op is Ops.RESULT
    return same_value(pieces, UOp(Ops.REDUCE, value.dtype, (value, *loops), op), after, outer)


def scanned(pieces: Pieces, scan: UOp, loop: UOp | None, at: dict[UOp, Any]) -> list[Any]:
    """What a SCAN gives in each step of its loop, and in each lane of a step where it runs along these."""
    values = scan.src[: scan.value_count]
    in_lanes = scan.src[-1].op is not Ops.RANGE
    dtype = scan.dtype.scalar
    held: tuple[Any, ...] | None = None
    found: list[Any] = []
    for step in range(loop.size if loop is not None else 1):
        here = {**at, loop: (step,)} if loop is not None else dict(at)
        now = [Machine(pieces.memory, True).value(one, dict(here)) for one in values]
        parts = [[(lane,) for lane in one] for one in now] if in_lanes else [[one] for one in now]
        for part in zip(*parts):
            if scan.arg is Ops.MULACC:
                before = held or (0,) * len(part[0])
                factors = [lane * len(part[0]) if len(lane) == 1 else lane for lane in part[1:]]
                held = tuple([evaluate(Ops.MULACC, dtype, h, f, v) for h, f, v in zip(before, factors[0], part[0])])
            elif held is None:
                held = part[0]
            else:
                held = tuple([evaluate(scan.arg, dtype, h, v) for h, v in zip(held, part[0])])
            found.extend(held)
    return found


def stepped(pieces: Pieces, result: UOp, loop: UOp | None, at: dict[UOp, Any]) -> list[Any]:
    """What a register that is read in the step that changes it holds in each step."""
    if result.op is not Ops.RESULT:
        return list(Machine(pieces.memory, True).value(result, dict(at)))
    register, assigned = result.src
    assert loop is not None and assigned.src[2] is loop
    held = Machine(pieces.memory, True).value(register.src[0], dict(at))
    found: list[Any] = []
    for step in range(loop.size):
        here = {**at, loop: (step,), register: held}
        held = Machine(pieces.memory, True).value(assigned.src[1], here)
        found.extend(held)
    return found


def carry(rule: Rule, pieces: Pieces) -> bool:
    outer, loop = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axis(AxisKind.SCAN)
    lanes = pieces.random.choice((1, 2, 4, 8))
    in_lanes = lanes > 1 and pieces.random.random() < 0.6
    loops: tuple[UOp, ...] = (loop,)
    if in_lanes:
        loops = ((loop,) if pieces.random.random() < 0.7 else ()) + (pieces.numbers_of_lanes(lanes),)
    axes = outer + [one for one in loops if one is loop]
    dtype = pieces.random.choice((*NUMBERS, dtypes.bool))
    op = pieces.random.choice(REDUCTIONS)
    values = [pieces.vector(axes, dtype, lanes) if lanes > 1 else pieces.value(axes, dtype)]
    if not in_lanes and dtype is not dtypes.bool and pieces.random.random() < 0.4:
        op = Ops.MULACC
        values.append(pieces.vector(axes, dtype, lanes) if lanes > 1 else pieces.value(axes, dtype))
    before = UOp(Ops.SCAN, values[0].dtype, (*values, *loops), op)
    after = rule(before, pieces.context())
    assert after is not None
    kept = loop if loop in loops else None
    for at in points(outer):
        # SCAN's sources are the value and the factor; MULACC's are the register, the factor and the value
        assert stepped(pieces, after, kept, at) == scanned(pieces, before, kept, at), f"{before!r} → {after!r}"
    return True


# *** lanes ***


def vector_load(rule: Rule, pieces: Pieces) -> bool:
    outer, axis = pieces.axes(AxisKind.GLOBAL, 0, 2), pieces.axis(AxisKind.VECTOR)
    before = pieces.load([*outer, axis], pieces.kind())
    if pieces.random.random() < 0.2:  # an index that is no sum of products
        buffer, place = before.src[0].src[:2]
        place = place.alu(Ops.IDIV, index_const(2)) + place.alu(Ops.MOD, index_const(3)) * 4
        before = before.replace(src=(buffer.index(place, *before.src[0].src[2:]),))
    after = rule(before)
    return after is not None and same_lanes(pieces, before, after, axis, outer)


def masked_address(rule: Rule, pieces: Pieces) -> bool:
    """One step of the loop may reach into the buffer, at one of its edges; the others are far outside."""
    random, loop = pieces.random, pieces.axis(AxisKind.GLOBAL)
    size, lanes, stride = random.randint(5, 40), random.choice((2, 4, 8)), random.randint(5000, 6000)
    near = random.choice((1 - lanes, -lanes, 0, size - lanes, size - 1, size))
    start = loop * stride + (near - stride * random.randrange(loop.size))
    valid = UOp(
        Ops.VECTORIZE,
        dtypes.bool.vec(lanes),
        tuple([(start + lane > -1) & (start + lane < size) for lane in range(lanes)]),
    )
    before = UOp(Ops.LOAD, pieces.kind().vec(lanes), ())
    before = before.replace(src=(pieces.buffer(before.dtype.scalar, size).index(start, valid),))
    after = rule(before)
    assert after is not None
    for at in points([loop]):
        machine = Machine(pieces.memory, False)
        (address,) = machine.value(start, dict(at))
        (found,) = machine.value(after.src[0].src[1], dict(at))
        assert found == (address if any(machine.value(valid, dict(at))) else 0)
    return same_value(pieces, before, after, [loop])


def vector_store(rule: Rule, pieces: Pieces) -> bool:
    outer, axis = pieces.axes(AxisKind.GLOBAL, 0, 2), pieces.axis(AxisKind.VECTOR)
    value = pieces.load([*outer, axis], dtypes.float32, masked=False)
    before = store(pieces, pieces.separate([*outer, axis]), value)
    after = rule(before)
    assert after is not None
    vectors = graph_rewrite(after.src[1], PatternMatcher((vectorize.vector_load,)))
    return same_memory(pieces, before, after.replace(src=(after.src[0], vectors)), lanes=(False, True))


def vector_reduce(rule: Rule, pieces: Pieces) -> bool:
    outer, loops = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axes(AxisKind.REDUCE, 0, 2)
    axis = pieces.axis(AxisKind.VECTOR)
    value = pieces.load([*outer, *loops, axis], pieces.kind(), masked=False)
    if not {axis, *loops} <= value.ranges:
        return False
    op = pieces.random.choice(REDUCTIONS)
    before = UOp(Ops.REDUCE, value.dtype, (value, *pieces.random.sample([*loops, axis], len(loops) + 1)), op)
    after = rule(before)
    assert after is not None and after.op is Ops.HREDUCE
    vectors = vectorize.vector_load(value)
    assert vectors is not None
    after = after.substitute({value: vectors})
    for at in points(outer):
        (expected,) = Machine(pieces.memory, False).value(before, dict(at))
        (found,) = Machine(pieces.memory, True).value(after, dict(at))
        assert found == expected, f"{expected} has become {found}: {after!r}"
    return True


def combine_vectors_first(rule: Rule, pieces: Pieces) -> bool:
    outer, axis, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axis(AxisKind.VECTOR), pieces.kind()
    ops = [pieces.random.choice(REDUCTIONS)] * 3
    if pieces.random.random() < 0.2:
        ops = [pieces.random.choice(REDUCTIONS) for _ in range(3)]
    first, second = (UOp(Ops.HREDUCE, kind, (pieces.vector(outer, kind, axis.size), axis), op) for op in ops[:2])
    before = first.alu(ops[2], second)
    after = rule(before)
    return after is not None and same_value(pieces, before, after, outer, lanes=True)


def lane_numbers(rule: Rule, pieces: Pieces) -> bool:
    axis = pieces.axis(AxisKind.VECTOR, pieces.random.choice((2, 3, 4, 8, 16, 64)))
    after = rule(axis)
    assert after is not None and after.dtype is dtypes.index.vec(axis.size)
    return same_value(pieces, axis, after, [], lanes=True)


def widen(rule: Rule, pieces: Pieces) -> bool:
    outer, lanes, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.random.choice((2, 4, 8)), pieces.kind()

    def source(dtype: DType) -> UOp:
        return pieces.vector(outer, dtype, lanes) if pieces.random.random() < 0.6 else pieces.value(outer, dtype, 1)

    op = pieces.random.choice((*REDUCTIONS, Ops.CMPLT, Ops.CMPEQ, Ops.WHERE, Ops.MULACC, Ops.CAST, Ops.REDUCE))
    loops = pieces.axes(AxisKind.REDUCE, 1, 2)
    if op is Ops.REDUCE:
        value = pieces.vector(outer + loops, kind, lanes)
        before = UOp(op, kind, (value, *loops), pieces.random.choice(REDUCTIONS))
    elif op is Ops.CAST:
        before = UOp(op, pieces.kind(), (source(kind),))
    elif op is Ops.WHERE:
        before = UOp(op, kind, (source(dtypes.bool), source(kind), source(kind)))
    else:
        sources = [source(kind) for _ in range(3 if op is Ops.MULACC else 2)]
        before = UOp(op, dtypes.bool if op in OpGroups.COMPARE else kind, tuple(sources))
    after = rule(before)
    if after is None:
        return False
    assert after.dtype.count == lanes
    assert {src.dtype.count for src in after.src[: after.value_count]} == {lanes}
    return same_value(pieces, before, after, outer, lanes=True)


def lanes_combined(rule: Rule, pieces: Pieces) -> bool:
    outer, lanes, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.random.choice((2, 4, 8)), pieces.kind()
    value = pieces.vector(outer, kind, lanes) if pieces.random.random() < 0.5 else pieces.value(outer, kind)
    op = pieces.random.choice(REDUCTIONS)
    after = rule(UOp(Ops.HREDUCE, kind, (value, pieces.numbers_of_lanes(lanes)), op))
    assert after is not None and after.src[0].dtype.count == lanes
    for at in points(outer):
        found = Machine(pieces.memory, True).value(value, dict(at))
        row = found * lanes if len(found) == 1 else found
        expected = reduce(lambda a, b: evaluate(op, kind, a, b), row)
        assert Machine(pieces.memory, True).value(after, dict(at)) == (expected,)
    return True


def lanes_scanned(rule: Rule, pieces: Pieces) -> bool:
    lanes, kind, loop = pieces.random.choice((2, 4, 8)), pieces.kind(), pieces.axis(AxisKind.SCAN)
    loops = ((loop,) if pieces.random.random() < 0.7 else ()) + (pieces.numbers_of_lanes(lanes),)
    kept = loop if loop in loops else None
    axes = [loop] if kept is not None else []
    value = pieces.vector(axes, kind, lanes) if pieces.random.random() < 0.5 else pieces.value(axes, kind)
    op = pieces.random.choice(REDUCTIONS)
    after = rule(UOp(Ops.SCAN, kind, (value, *loops), op))
    assert after is not None and after.dtype is after.src[0].dtype is kind.vec(lanes)
    every: list[Any] = []
    for step in range(loop.size if kept is not None else 1):
        found = Machine(pieces.memory, True).value(value, {loop: (step,)})
        every += found * lanes if len(found) == 1 else found
    expected = [reduce(lambda a, b: evaluate(op, kind, a, b), every[: end + 1]) for end in range(len(every))]
    assert scanned(pieces, after, kept, {}) == expected
    return True


def store_lanes(rule: Rule, pieces: Pieces) -> bool:
    outer, lanes, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.random.choice((2, 4)), pieces.kind()
    value = pieces.vector(outer, kind, lanes) if pieces.random.random() < 0.5 else pieces.value(outer, kind)
    place = pieces.separate(outer) * lanes
    before = store(pieces, place, value, arg=lanes)
    after = rule(before)
    assert after is not None and after.arg is None and after.src[1].dtype.count == lanes
    return same_memory(pieces, before, after, lanes=(True, True))


def scatter(rule: Rule, pieces: Pieces) -> bool:
    outer, lanes, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.random.choice((2, 4)), pieces.kind()
    value = pieces.vector(outer, kind, lanes) if pieces.random.random() < 0.7 else pieces.value(outer, kind)
    buffer = pieces.buffer(kind)
    pieces.memory[buffer.arg] = [99] * SIZE
    steps = pieces.random.sample(range(9), lanes)
    places = [buffer.index(pieces.separate(outer) * 9 + step) for step in steps[:1]]
    places += [buffer.index(places[0].src[1] + step - steps[0] + 9) for step in steps[1:]]
    before = UOp(Ops.STORE, dtypes.void, (UOp(Ops.VECTORIZE, dtypes.void, tuple(places)), value))
    after = rule(before)
    assert after is not None and len(after.src) == lanes
    return same_memory(pieces, before, after, lanes=(True, True))


def lane_of_vector(rule: Rule, pieces: Pieces) -> bool:
    outer, lanes, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.random.choice((2, 4, 8)), pieces.kind()
    vector = UOp(Ops.VECTORIZE, kind.vec(lanes), tuple([pieces.value(outer, kind) for _ in range(lanes)]))
    before = UOp(Ops.GEP, kind, (vector,), pieces.random.randrange(lanes))
    after = rule(before)
    assert after is not None
    return same_value(pieces, before, after, outer)


def lane_of_constant(rule: Rule, pieces: Pieces) -> bool:
    lanes, kind = pieces.random.choice((2, 4, 8)), pieces.random.choice((*NUMBERS, dtypes.bool, dtypes.index))
    constant = UOp.const(kind.vec(lanes), pieces.number(kind))
    before = UOp(Ops.GEP, kind, (constant,), pieces.random.randrange(lanes))
    after = rule(before)
    assert after is not None
    return same_value(pieces, before, after, [])


def lane_by_number(rule: Rule, pieces: Pieces) -> bool:
    outer, lanes, kind = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.random.choice((2, 4, 8)), pieces.kind()
    number = index_const(pieces.random.randrange(lanes))
    before = UOp(Ops.GEP, kind, (pieces.vector(outer, kind, lanes), number))
    after = rule(before)
    assert after is not None and after.arg == number.arg
    return same_value(pieces, before, after, outer)


# *** masks and loops that are none ***


def valid_always(rule: Rule, pieces: Pieces) -> bool:
    outer, kind = pieces.axes(AxisKind.GLOBAL, 0, 2), pieces.kind()
    buffer, is_store = pieces.buffer(kind), pieces.random.random() < 0.5
    before = buffer.index(pieces.separate(outer), UOp.const(dtypes.bool, True))
    after = rule(before)
    assert after is not None and len(after.src) == 2
    if not is_store:
        first, second = (UOp(Ops.LOAD, kind, (place,)) for place in (before, after))
        return same_value(pieces, first, second, outer)
    pieces.memory[buffer.arg] = [99] * SIZE
    value = pieces.value(outer, kind)
    first, second = (UOp(Ops.STORE, dtypes.void, (place, value)) for place in (before, after))
    return same_memory(pieces, first, second)


def valid_never(rule: Rule, pieces: Pieces) -> bool:
    outer, kind, lanes = pieces.axes(AxisKind.GLOBAL, 0, 2), pieces.kind(), pieces.random.choice((1, 4))
    place = pieces.buffer(kind).index(pieces.place(outer), UOp.const(dtypes.bool, False))
    before = UOp(Ops.LOAD, kind.vec(lanes), (place,))
    after = rule(before)
    assert after is not None
    return same_value(pieces, before, after, outer)


def reduce_without_loops(rule: Rule, pieces: Pieces) -> bool:
    outer, kind = pieces.axes(AxisKind.GLOBAL, 0, 2), pieces.random.choice((*NUMBERS, dtypes.bool))
    value = pieces.value(outer, kind)
    before = UOp(Ops.REDUCE, kind, (value,), pieces.random.choice(REDUCTIONS))
    after = rule(before)
    assert after is not None
    return same_value(pieces, before, after, outer)


# *** products of words ***


def bytes_of(words: tuple[int, ...]) -> np.ndarray:
    return np.array(words, "<u4").view(np.int8).reshape(-1, 4).astype(np.int64)


def signs_at_the_end(rule: Rule, pieces: Pieces) -> bool:
    outer, loops = pieces.axes(AxisKind.GLOBAL, 0, 1), pieces.axes(AxisKind.REDUCE, 1, 2)
    dot = product_of_words(pieces, outer + loops, op=Ops.DOT_I8)
    after = rule(UOp(Ops.REDUCE, dot.dtype, (dot, *loops), Ops.ADD), pieces.context())
    assert after is not None and all(one.op is not Ops.DOT_I8 for one in after.toposort())
    for at in points(outer):
        total = np.zeros(4, np.int64)
        for inside in Machine({}, False).points(loops, at):
            x, y = (Machine(pieces.memory, False).value(word, dict(inside)) for word in dot.src[:2])
            total += (bytes_of(x) * bytes_of(y)).sum(1)
        assert Machine(pieces.memory, False).value(after, dict(at)) == tuple(total.tolist())
    return True


def dot_written_out(rule: Rule, pieces: Pieces) -> bool:
    op = pieces.random.choice((Ops.DOT_BF16, Ops.DOT_I8))
    dot = product_of_words(pieces, [], op=op, lanes=pieces.random.choice((1, 2, 8)))
    start = pieces.load([], dot.dtype.scalar, lanes=dot.dtype.count)
    after = rule(dot.replace(src=(*dot.src[:2], start)), pieces.context())
    assert after is not None and not OpGroups.DOT & {one.op for one in after.toposort()}
    machine = Machine(pieces.memory, False)
    x, y, z, found = (machine.value(one, {}) for one in (*dot.src[:2], start, after))
    if op is Ops.DOT_I8:
        expected = (bytes_of(x) * bytes_of(y)).sum(1) + np.array(z)
    else:
        parts = [np.array(words, "<u4").view(ml_dtypes.bfloat16).reshape(-1, 2).astype(float) for words in (x, y)]
        expected = (parts[0] * parts[1]).sum(1) + np.array(z)
    assert found == tuple(expected.tolist())
    return True


# *** floats in a byte ***


def any_fp8(pieces: Pieces, kind: DType) -> float:
    return float(np.array(pieces.random.getrandbits(8), np.uint8).view(ML_DTYPES[kind]))


def fp8_constant(rule: Rule, pieces: Pieces) -> bool:
    kind, lanes = pieces.random.choice(dtypes.fp8s), pieces.random.choice((1, 4))
    value = any_fp8(pieces, kind)
    after = rule(UOp.const(kind.vec(lanes), value))
    assert after is not None and after.dtype is dtypes.uint8.vec(lanes)
    back = float(np.array(after.arg, np.uint8).view(ML_DTYPES[kind]))
    assert str(back) == str(value)  # zeros of different sign differ, all NaNs are equal
    return True


def same_bits(rule: Rule, pieces: Pieces) -> bool:
    """A byte read as an fp8, which is a byte; bits read as what they are."""
    kind, lanes = pieces.random.choice((*dtypes.fp8s, dtypes.uint8, dtypes.float32)), pieces.random.choice((1, 4))
    here = dtypes.uint8 if kind in dtypes.fp8s else kind
    leaf = pieces.load([], here, lanes=lanes, masked=False)
    before = UOp(Ops.BITCAST, kind.vec(lanes), (leaf,))
    after = rule(before)
    assert after is not None and after.dtype is here.vec(lanes)
    machine = Machine(pieces.memory, False)
    assert machine.value(after, {}) == machine.value(leaf, {})
    return True


def moved(pieces: Pieces, axes: list[UOp], kind: DType, lanes: int, depth: int) -> UOp:
    """An fp8 value that memory, choices and lanes bring about."""
    pick = pieces.random.random()
    if depth and pick < 0.3:
        condition = pieces.condition(axes).broadcast(lanes)
        yes, no = (moved(pieces, axes, kind, lanes, depth - 1) for _ in range(2))
        return UOp(Ops.WHERE, kind.vec(lanes), (condition, yes, no))
    if depth and lanes > 1 and pick < 0.6:
        return UOp(Ops.VECTORIZE, kind.vec(lanes), tuple([moved(pieces, axes, kind, 1, 0) for _ in range(lanes)]))
    if depth and lanes == 1 and pick < 0.6:
        return UOp(Ops.GEP, kind, (moved(pieces, axes, kind, 4, depth - 1),), pieces.random.randrange(4))
    load = pieces.load(axes, kind, lanes=lanes)
    buffer = load.src[0].src[0].arg
    pieces.memory[buffer] = [any_fp8(pieces, kind) for _ in range(SIZE)]
    return load


def fp8_moves_as_byte(rule: Rule, pieces: Pieces) -> bool:
    kind, lanes = pieces.random.choice(dtypes.fp8s), pieces.random.choice((1, 4))
    outer = pieces.axes(AxisKind.GLOBAL, 0, 1)
    before = moved(pieces, outer, kind, lanes, 2)
    after = graph_rewrite(before, PatternMatcher((rule,)))
    assert after.dtype is dtypes.uint8.vec(lanes)
    kinds = {one.dtype.base if isinstance(one.dtype, PtrDType) else one.dtype.scalar for one in after.toposort()}
    assert kinds.isdisjoint(dtypes.fp8s)
    buffers = {one.arg for one in before.find(Ops.DEFINE_GLOBAL)}
    in_bytes = {
        number: [to_bits(value, kind) for value in values] if number in buffers else values
        for number, values in pieces.memory.items()
    }
    for at in points(outer):
        values = Machine(pieces.memory, False).value(before, dict(at))
        found = Machine(in_bytes, False).value(after, dict(at))
        assert found == tuple([to_bits(value, kind) for value in values])
    return True


LAWS: dict[Rule, Law] = {
    unroll.store_each: store_each,
    unroll.flatten_sink: flatten_sink,
    unroll.flatten_barrier: flatten_barrier,
    unroll.reduce_each: reduce_each,
    accumulators.accumulate: accumulate,
    accumulators.carry: carry,
    vectorize.vector_load: vector_load,
    vectorize.vector_store: vector_store,
    vectorize.vector_reduce: vector_reduce,
    vectorize.combine_vectors_first: combine_vectors_first,
    vectorize.lane_numbers: lane_numbers,
    vectorize.widen: widen,
    vectorize.lanes_combined: lanes_combined,
    vectorize.lanes_scanned: lanes_scanned,
    vectorize.barrier_without_lanes: barrier_without_lanes,
    vectorize.store_lanes: store_lanes,
    vectorize.scatter: scatter,
    vectorize.lane_of_vector: lane_of_vector,
    vectorize.lane_of_constant: lane_of_constant,
    masked_addresses.masked_address: masked_address,
    simplify.lane_by_number: lane_by_number,
    simplify.valid_always: valid_always,
    simplify.valid_never: valid_never,
    simplify.reduce_without_loops: reduce_without_loops,
    dot_products.signs_at_the_end: signs_at_the_end,
    dot_products.dot_written_out: dot_written_out,
    fp8.fp8_constant: fp8_constant,
    fp8.same_bits: same_bits,
    fp8.fp8_moves_as_byte: fp8_moves_as_byte,
}

"""Late passes: what the target lacks is written out, and reductions become accumulators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from tinyexplore.dtype import DType, dtypes
from tinyexplore.target import Target
from tinyexplore.uop import AxisKind, Group, Ops, PatternMatcher, UOp, UPat, cvar, rule, var
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.identity import reduce_identity
from tinyexplore.uop.uop import ops_mask
from tinyexplore.util import config


@dataclass
class LateContext:
    """What the late passes know: the target, and the next accumulator's number."""

    target: Target
    numbers: count[int]


SMALL_FLOATS = (dtypes.float16, dtypes.bfloat16, *dtypes.fp8s)
REDUCED = (AxisKind.REDUCE, AxisKind.GROUP)
KEPT = frozenset({Ops.CAST, Ops.BITCAST, Ops.WHERE})


@rule(UPat.of((Group.ALU - KEPT) | {Ops.REDUCE, Ops.HREDUCE, Ops.SCAN}, name="node"))
def compute_in_float32(node: UOp, ctx: LateContext) -> UOp | None:
    """A small float that the target only stores: computed in float32, then rounded, which gives the same result."""
    values = node.src[: node.value_count]
    stored = (*ctx.target.storage_only, *dtypes.fp8s)
    small = next((src.dtype for src in values if src.dtype.scalar in stored), None)
    if small is None:
        return None
    assert isinstance(small, DType) and isinstance(node.dtype, DType)
    wide = tuple(src.cast(dtypes.float32.vec(src.dtype.count)) for src in values)
    if node.op in Group.COMPARE:
        return node.replace(src=wide)
    inner = node.replace(dtype=dtypes.float32.vec(node.dtype.count), src=(*wide, *node.src[len(values) :]))
    return inner.cast(node.dtype)


@rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, var("x", SMALL_FLOATS), name="up"), name="down"))
def cast_there_and_back(down: UOp, up: UOp, x: UOp) -> UOp | None:
    """A small float made float32 and then what it was is unchanged."""
    return x if down.dtype is x.dtype and up.dtype.scalar is dtypes.float32 else None


@rule(UPat.of(Ops.CAST, var("x"), name="cast"))
def cast_through_float32(cast: UOp, x: UOp, ctx: LateContext) -> UOp | None:
    """bfloat16 and the fp8s are converted from and to float32 only; other types take the way over it."""
    here, there = x.dtype.scalar, cast.dtype.scalar
    over = (dtypes.bfloat16, *dtypes.fp8s)
    if (here in over and there is not dtypes.float32) or (there in over and here is not dtypes.float32):
        return x.cast(dtypes.float32.vec(cast.dtype.count)).cast(cast.dtype)
    return None


@rule(UPat.of((Ops.ADD, Ops.MAX), var("x", (dtypes.bool,)), var("y"), name="node"))
def bool_or(node: UOp, x: UOp, y: UOp) -> UOp:
    """The sum and the larger of two truths: one of them is true."""
    return x | y


@rule(UPat.of((Ops.MUL, Ops.MIN), var("x", (dtypes.bool,)), var("y"), name="node"))
def bool_and(node: UOp, x: UOp, y: UOp) -> UOp:
    """The product and the smaller of two truths: both are true."""
    return x & y


@rule(UPat.of(Ops.CAST, var("x"), name="cast"))
def cast_to_bool(cast: UOp, x: UOp) -> UOp | None:
    """A number is true where it is not zero (NaN is true)."""
    if cast.dtype.scalar is not dtypes.bool or x.dtype.scalar is dtypes.bool:
        return None
    return x.ne(UOp.const(x.dtype, 0))


@rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", more_src=True))
def accumulate(reduce: UOp, value: UOp, ctx: LateContext) -> UOp:
    """A reduction is a register: set before its loops, changed in them, read after them."""
    loops = reduce.src[1:]
    register = UOp(Ops.DEFINE_ACC, reduce.dtype, (reduce_identity(reduce.arg, reduce.dtype),), next(ctx.numbers))
    step = multiply_add(register, value) if reduce.arg is Ops.ADD else None
    changed = combined_with(register, reduce.arg, value) if step is None else step
    assigned = UOp(Ops.ASSIGN, reduce.dtype, (register, changed))
    return UOp(Ops.RESULT, reduce.dtype, (register, assigned, *loops))


@rule(UPat.of(Ops.SCAN, var("value"), name="scan", more_src=True))
def carry(scan: UOp, value: UOp, ctx: LateContext) -> UOp:
    """A scan is a register too: set before its loop, changed in every step, read in the same step."""
    if scan.src[-1].op is not Ops.RANGE:
        return carry_past_lanes(scan, value, ctx)
    *factor, loop = scan.src[1:]
    start = reduce_identity(Ops.ADD if factor else scan.arg, scan.dtype)
    register = UOp(Ops.DEFINE_ACC, scan.dtype, (start,), next(ctx.numbers))
    changed = register.alu(scan.arg, *factor, value) if factor else combined_with(register, scan.arg, value)
    assigned = UOp(Ops.ASSIGN, scan.dtype, (register, changed, loop))
    return UOp(Ops.RESULT, scan.dtype, (register, assigned))


def carry_past_lanes(scan: UOp, value: UOp, ctx: LateContext) -> UOp:
    """The lanes of a step combined with those before them, then with the last lane of the step before.

    The former takes log n rounds, and waits for nothing: of each two blocks of 1, 2, 4, … lanes, all of the second are
    combined with the last of the first (Sklansky, "Conditional-sum addition logic", 1960). The first block stays.
    """
    assert isinstance(scan.dtype, DType)
    count = scan.dtype.count
    identity = reduce_identity(scan.arg, scan.dtype)
    nothing = UOp(Ops.GEP, scan.dtype.scalar, (identity,), 0)
    block = 1
    while block < count:
        lasts = [UOp(Ops.GEP, scan.dtype.scalar, (value,), first + block - 1) for first in range(0, count, 2 * block)]
        lanes = [part for last in lasts for part in (*[nothing] * block, *[last] * block)]
        value = combined_with(value, scan.arg, UOp(Ops.VECTORIZE, scan.dtype, tuple(lanes)))
        block *= 2
    (*loops, _) = scan.src[1:]
    if not loops:
        return value
    register = UOp(Ops.DEFINE_ACC, scan.dtype, (identity,), next(ctx.numbers))
    last = UOp(Ops.GEP, scan.dtype.scalar, (register,), count - 1)
    changed = combined_with(last.broadcast(count), scan.arg, value)
    assigned = UOp(Ops.ASSIGN, scan.dtype, (register, changed, *loops))
    return UOp(Ops.RESULT, scan.dtype, (register, assigned))


def combined_with(register: UOp, op: Ops, value: UOp) -> UOp:
    """The register and one more value, combined; truths by or and and."""
    if dtypes.is_bool(register.dtype):
        return register | value if op in (Ops.ADD, Ops.MAX) else register & value
    return register.alu(op, value)


def multiply_add(register: UOp, value: UOp) -> UOp | None:
    """register + x * y as one operation, rounded once where the target can; a dot product of words added to it."""
    if value.op in Group.DOT and value.src[2].op is Ops.CONST and value.src[2].arg == 0:
        return value.replace(src=(*value.src[:2], register))
    if value.op is not Ops.MUL or not dtypes.is_float(value.dtype):
        return None
    return UOp(Ops.MULACC, value.dtype, (*value.src, register))


@rule(UPat.of(Ops.SINK, name="sink"))
def separate_loops(sink: UOp) -> UOp | None:
    """Reductions over one axis share a loop only where they stand in the same place; else each gets its own axis.

    What both would read, depending on that axis alone, would have to stand in two places of the program.
    """
    reduces = sink.find(Ops.REDUCE)
    owner: dict[UOp, object] = {}
    for node in reduces:
        key = _loops_and_place(node)
        clash = [loop for loop in key[0] if owner.setdefault(loop, key) != key]
        if not clash:
            continue
        first = 1 + max(other.arg.id for other in sink.find(Ops.RANGE))
        fresh = {loop: loop.replace(arg=replace(loop.arg, id=first + n)) for n, loop in enumerate(clash)}
        alike = [other for other in reduces if _loops_and_place(other) == key]
        changes = {other: other.substitute(fresh, tell="a loop of its own") for other in alike}
        return sink.substitute(changes, tell="a loop of its own")
    return None


def _loops_and_place(reduce: UOp) -> tuple[tuple[UOp, ...], int, frozenset[UOp]]:
    """The loops that a reduction walks, the innermost loop that it stands in (-1: none), and the reductions' loops
    among those around it: what is left over of an outer reduction has others, in the same output loops."""
    around = frozenset([loop for loop in reduce.ranges if loop.arg.kind in REDUCED])
    return reduce.src[1:], max((loop.arg.id for loop in reduce.ranges), default=-1), around


@rule(UPat.of(Group.COMPARE, var("x", (dtypes.index,)), var("y", (dtypes.index,)), name="node"))
def compare_in_int32(node: UOp, x: UOp, y: UOp) -> UOp | None:
    """Places in lanes that lie in the range of int32 are compared as such: a vector has twice as many of them."""
    if x.dtype.count == 1 or not (_fits_int32(x) and _fits_int32(y)):
        return None
    first, second = in_int32(x), in_int32(y)
    return None if first is None or second is None else first.alu(node.op, second)


def _fits_int32(value: UOp) -> bool:
    low, high = bounds(value)
    return -(1 << 31) <= low and high < 1 << 31


def in_int32(value: UOp) -> UOp | None:
    """A vector of places as sums and products of int32, which wrap as those of the long ones do; None for others."""
    lanes = dtypes.int32.vec(value.dtype.count)
    match value.op:
        case Ops.CONST:
            return UOp.const(lanes, value.arg) if abs(value.arg) < 1 << 31 else None
        case Ops.VECTORIZE if value.src[0] is value.src[-1]:
            return value.src[0].cast(dtypes.int32).broadcast(value.dtype.count)
        case Ops.VECTORIZE if all(lane.op is Ops.CONST and abs(lane.arg) < 1 << 31 for lane in value.src):
            return UOp(Ops.VECTORIZE, lanes, tuple([UOp.const(dtypes.int32, lane.arg) for lane in value.src]))
        case Ops.ADD | Ops.MUL:
            first, second = (in_int32(src) for src in value.src)
            return None if first is None or second is None else first.alu(value.op, second)
    return None


@rule(UPat.of(Ops.REDUCE, UPat.of(Ops.DOT_I8, var("x"), var("y"), cvar("z"), name="dot"), name="reduce", more_src=True))
def signs_at_the_end(reduce: UOp, dot: UOp, x: UOp, y: UOp, z: UOp, ctx: LateContext) -> UOp | None:
    """Σ x · y of signed bytes is Σ (x + 128) · y - 128 Σ y, where the instruction takes the first factor as unsigned.

    The second sum is the same for all rows of a product: it costs less than a correction of each of their terms.
    """
    if reduce.arg is not Ops.ADD or z.arg != 0 or not has_instruction(dot, ctx.target):
        return None
    upper_bits = UOp.const(x.dtype, 0x80808080)  # flipped in a byte, 128 is added to what it says
    products = dot.replace(op=Ops.DOT_U8, src=(x ^ upper_bits, y, z))
    excess = dot.replace(op=Ops.DOT_U8, src=(upper_bits, y, z))
    loops = reduce.src[1:]
    return reduce.replace(src=(products, *loops)) + -reduce.replace(src=(excess, *loops))


def has_instruction(dot: UOp, target: Target) -> bool:
    """True where the target multiplies words in as many lanes by one instruction."""
    return dot.op in target.dots and dot.dtype.count * 4 == target.vector_bytes and config().TC == 1


@rule(UPat.of((Ops.DOT_BF16, Ops.DOT_I8), var("x"), var("y"), var("z"), name="dot"))
def dot_written_out(dot: UOp, x: UOp, y: UOp, z: UOp, ctx: LateContext) -> UOp | None:
    """z + x₀ · y₀ + x₁ · y₁ + … of the parts of two words, where the target has no instruction for it."""
    if has_instruction(dot, ctx.target):
        return None
    for first, second in zip(parts_of_word(dot.op, x), parts_of_word(dot.op, y)):
        z = first * second + z if dot.op is Ops.DOT_I8 else UOp(Ops.MULACC, dot.dtype, (first, second, z))
    return z


def parts_of_word(op: Ops, word: UOp) -> list[UOp]:
    """The numbers in a word, the lowest first, as the dtype that they are multiplied in."""
    if op is Ops.DOT_BF16:
        high = word & UOp.const(word.dtype, 0xFFFF0000)
        low = word.alu(Ops.SHL, UOp.const(word.dtype, 16))
        return [part.bitcast(dtypes.float32.vec(word.dtype.count)) for part in (low, high)]
    shifts = [word.alu(Ops.SHL, UOp.const(word.dtype, 24 - 8 * place)) if place < 3 else word for place in range(4)]
    signed = dtypes.int32.vec(word.dtype.count)
    return [part.bitcast(signed).alu(Ops.SHR, UOp.const(signed, 24)) for part in shifts]


SMALL_FLOAT_PASS = PatternMatcher((compute_in_float32, cast_through_float32, cast_there_and_back), only=SMALL_FLOATS)
BOOL_PASS = PatternMatcher((bool_or, bool_and, cast_to_bool), only=(dtypes.bool,))
SEPARATE_LOOPS = PatternMatcher((separate_loops,))
ACCUMULATE = PatternMatcher((accumulate, carry))
SIGNS = PatternMatcher((signs_at_the_end,), within=ops_mask((Ops.DOT_I8,)))
DOTS = PatternMatcher((dot_written_out,))
MASKS = PatternMatcher((compare_in_int32,))

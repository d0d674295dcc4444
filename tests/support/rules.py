"""Hand-written rules: wrong ones, each a typical mistake, and correct ones that look wrong.

Each has a node on which it fires. They were written before the check that must separate them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tinyexplore.dtype import DType, PtrDType, dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, Rule, UOp, UPat, cvar, law, rule, var
from tinyexplore.uop.bounds import bounds

f32, f16, i8, i32, i64, u8, u32, b1 = (
    dtypes.float32,
    dtypes.float16,
    dtypes.int8,
    dtypes.int32,
    dtypes.int64,
    dtypes.uint8,
    dtypes.uint32,
    dtypes.bool,
)
x, y, z = var("x"), var("y"), var("z")
a, b = cvar("a"), cvar("b")


@dataclass(frozen=True)
class Case:
    """A rule and a node on which it fires.

    rule: correct or wrong.
    before: the node.
    tolerance: permitted difference of the results, if the rule states one.
    """

    rule: Rule
    before: UOp
    tolerance: float | None = None

    @property
    def after(self) -> UOp:
        found = self.rule(self.before)
        assert found is not None, f"{self.rule.name} does not fire"
        return found


# *** nodes ***


def loop(size: int, number: int = 0, kind: AxisKind = AxisKind.GLOBAL) -> UOp:
    return UOp.range(size, Axis(number, kind))


def buffer(dtype: DType, number: int = 1, size: int = 16) -> UOp:
    return UOp(Ops.DEFINE_GLOBAL, PtrDType(dtype, size), (), number)


def read(dtype: DType, number: int = 1, place: UOp | None = None, valid: UOp | None = None, size: int = 16) -> UOp:
    """An element of buffer `number`."""
    return UOp(Ops.LOAD, dtype, (buffer(dtype, number, size).index(loop(size) if place is None else place, valid),))


def const(dtype: DType, value: float) -> UOp:
    return UOp.const(dtype, value)


def total(value: UOp, *loops: UOp, op: Ops = Ops.ADD) -> UOp:
    return UOp(Ops.REDUCE, value.dtype, (value, *loops), op)


F, G, H = read(f32, 1), read(f32, 2), read(f32, 3)
A, B, C = read(i32, 1), read(i32, 2), read(i32, 3)
P, Q = read(b1, 4), read(b1, 5)
STEP, INNER = loop(16), loop(8, 1, AxisKind.REDUCE)

# *** wrong ***


@rule(UPat.of(Ops.MOD, var("x", dtypes.ints), a))
def mask_of_power(x: UOp, a: UOp) -> UOp | None:
    """x % 2**n is x & (2**n - 1) (not for what is negative: % takes the sign of x)."""
    return x & (a.arg - 1) if a.arg > 0 and not a.arg & (a.arg - 1) else None


@rule(UPat.of(Ops.CMPLT, y, x * 2))
def halve_both_sides(x: UOp, y: UOp) -> UOp:
    """y < x * 2 is y // 2 < x (x * 2 wraps, and y // 2 goes towards zero)."""
    return y.alu(Ops.IDIV, const(y.dtype, 2)) < x


@rule(x.maximum(y))
def maximum_as_choice(x: UOp, y: UOp) -> UOp:
    """max(x, y) is x < y ? y : x (not with NaN)."""
    return (x < y).where(y, x)


@rule(UPat.of(Ops.SHR, UPat.of(Ops.SHL, var("x", dtypes.unsigned), a), b))
def shift_there_and_back(x: UOp, a: UOp, b: UOp) -> UOp | None:
    """(x << a) >> a is x (the upper bits are gone)."""
    return x if a is b else None


@rule(UPat.of(Ops.SHL, UPat.of(Ops.SHL, x, a), b))
def add_shifts(x: UOp, a: UOp, b: UOp) -> UOp:
    """(x << a) << b is x << (a + b) (which may be the whole width)."""
    return x.alu(Ops.SHL, const(x.dtype, a.arg + b.arg))


@rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, x), name="root"))
def cast_chain(root: UOp, x: UOp) -> UOp | None:
    """There and back is nowhere (by a narrower type: something is lost)."""
    return x if root.dtype is x.dtype else None


@rule(UPat.of(Ops.WHERE, UPat.of(Ops.CMPNE, var("p", (b1,)), True), x, y))
def turn_choice(p: UOp, x: UOp, y: UOp) -> UOp:
    """not p ? x : y is p ? x : y (forgotten: the other way round)."""
    return p.where(x, y)


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, var("pointer"), var("idx"), var("valid")), name="load"))
def drop_mask(load: UOp, pointer: UOp, idx: UOp, valid: UOp) -> UOp:
    """A load needs no mask (it does where the buffer ends)."""
    return load.replace(src=(pointer.index(idx), *load.src[1:]))


@rule(UPat.of(Ops.CMPLT, UPat.of(Ops.RANGE, name="i"), a))
def always_less(i: UOp, a: UOp) -> UOp | None:
    """i < a holds where the greatest i is a (off by one)."""
    return const(b1, True) if bounds(i)[1] <= a.arg else None


@rule(UPat.of(Ops.REDUCE, x + y, more_src=True, name="root"))
def take_term_out(root: UOp, x: UOp, y: UOp) -> UOp | None:
    """sum(x + y) is sum(x) + y where y stays the same (it is added in each step)."""
    if root.arg is not Ops.ADD or not y.ranges.isdisjoint(root.src[1:]):
        return None
    return root.replace(src=(x, *root.src[1:])) + y


@rule(UPat.of(Ops.REDUCE, x * y, more_src=True, name="root"))
def take_factor_out_of_maximum(root: UOp, x: UOp, y: UOp) -> UOp | None:
    """max(x * y) is max(x) * y where y stays the same (not for a negative one)."""
    if root.arg is not Ops.MAX or not y.ranges.isdisjoint(root.src[1:]):
        return None
    return root.replace(src=(x, *root.src[1:])) * y


@rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, var("pointer"), var("idx") + a), name="load"))
def forget_offset(load: UOp, pointer: UOp, idx: UOp, a: UOp) -> UOp:
    """buffer[i + a] is buffer[i]."""
    return load.replace(src=(pointer.index(idx),))


@rule(UPat.of(Ops.STORE, UPat.of(Ops.INDEX, var("pointer"), var("idx"), var("valid")), x, name="store"))
def choose_then_store(store: UOp, pointer: UOp, idx: UOp, valid: UOp, x: UOp) -> UOp:
    """A masked store stores zero where the mask does not hold (what lay there must stay)."""
    return store.replace(src=(pointer.index(idx), valid.where(x, x._to_operand(0))))


@rule(UPat.of(Ops.CMPLT, UPat.of(Ops.CAST, var("x", (i64,))), a))
def widen_comparison(x: UOp, a: UOp) -> UOp:
    """int32(x) < a is x < int64(a) (the cast has thrown bits away)."""
    return x < const(x.dtype, a.arg)


@rule(x / a)
def reciprocal(x: UOp, a: UOp) -> UOp:
    """x / a is x * (1 / a) (rounded twice)."""
    return x * const(x.dtype, 1 / a.arg)


WRONG = (
    Case(mask_of_power, A % 8),
    Case(law("divide_and_multiply", (x // a) * a, x), (A // 4) * 4),
    Case(law("multiply_and_divide", (x * a) // a, x), (A * 3) // 3),
    Case(halve_both_sides, B < A * 2),
    Case(law("minus_itself", x + -x, 0), F + -F),
    Case(maximum_as_choice, F.maximum(G)),
    Case(shift_there_and_back, (read(u32) << 4) >> 4),
    Case(add_shifts, (A << 20) << 12),
    Case(cast_chain, A.cast(i8).cast(i32)),
    Case(cast_chain, A.cast(f32).cast(i32)),
    Case(turn_choice, P.ne(True).where(F, G)),
    Case(drop_mask, read(f32, 1, STEP + -1, const(i64, 0) < STEP)),
    Case(law("add_zero_float", x + 0.0, x), F + 0.0),
    Case(law("times_zero_float", x * 0.0, 0), F * 0.0),
    Case(law("negate_by_subtraction", -x, x * -1.0 + 0.0), -F),
    Case(law("add_floats_first", (x + y) + z, x + (y + z)), (F + G) + H),
    Case(reciprocal, F / 3.0),
    Case(law("less_by_difference", x + y * -1 < 0, x < y), A + B * -1 < 0),
    Case(law("not_less", (x < y).ne(True), UPat.of(Ops.CMPLE, y, x)), (F < G).ne(True)),
    Case(law("root_of_square", UPat.of(Ops.SQRT, x * x), x), UOp(Ops.SQRT, f32, (F * F,))),
    Case(always_less, STEP < 15),
    Case(law("divide_each_term", (x + y) // a, x // a + y // a), (A + B) // 4),
    Case(law("remainder_of_rest", (x * a + y) % a, y), (STEP * 4 + loop(5, 2)) % 4),
    Case(take_term_out, total(read(f32, 1, INNER) + G, INNER)),
    Case(take_factor_out_of_maximum, total(read(f32, 1, INNER) * -2.0, INNER, op=Ops.MAX)),
    Case(
        law("power_of_logarithm", UPat.of(Ops.EXP2, UPat.of(Ops.LOG2, x)), x),
        UOp(Ops.EXP2, f32, (UOp(Ops.LOG2, f32, (F,)),)),
        1e-5,
    ),
    Case(forget_offset, read(f32, 1, STEP + 1, size=17)),
    Case(
        choose_then_store,
        UOp(Ops.STORE, dtypes.void, (buffer(f32, 0).index(STEP, STEP < 12), F)),
    ),
    Case(widen_comparison, read(i64).cast(i32) < 100),
    Case(law("unsigned_minus", x + y * 255 < x, UPat.of(Ops.CMPLT, y * 0, y)), read(u8) + read(u8, 2) * 255 < read(u8)),
    Case(law("distribute_float", x * (y + z), x * y + x * z), F * (G + H)),
)


# *** true ***


@rule(UPat.of(Ops.MOD, var("x", dtypes.ints), a))
def mask_of_positive(x: UOp, a: UOp) -> UOp | None:
    """x % 2**n is x & (2**n - 1) for x that is never negative."""
    return x & (a.arg - 1) if bounds(x)[0] >= 0 and a.arg > 0 and not a.arg & (a.arg - 1) else None


@rule(UPat.of(Ops.REDUCE, x * y, more_src=True, name="root"))
def take_factor_out(root: UOp, x: UOp, y: UOp) -> UOp | None:
    """sum(x * y) is sum(x) * y where y stays the same; integers wrap alike."""
    if root.arg is not Ops.ADD or not y.ranges.isdisjoint(root.src[1:]):
        return None
    return root.replace(src=(x, *root.src[1:])) * y


@rule(UPat.of(Ops.REDUCE, x + y, more_src=True, name="root"))
def take_term_out_times(root: UOp, x: UOp, y: UOp) -> UOp | None:
    """sum(x + y) is sum(x) + n * y where y stays the same in n steps."""
    if root.arg is not Ops.ADD or not y.ranges.isdisjoint(root.src[1:]):
        return None
    return root.replace(src=(x, *root.src[1:])) + y * root.src[1].size


@rule(UPat.of(Ops.WHERE, var("p", (b1,)), UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, var("pointer"), var("idx"))), 0))
def choice_as_mask(p: UOp, pointer: UOp, idx: UOp) -> UOp:
    """p ? buffer[i] : 0 is a load with a mask."""
    return UOp(Ops.LOAD, pointer.dtype.base, (pointer.index(idx, p),))


@rule(UPat.of(Ops.CMPLT, UPat.of(Ops.RANGE, name="i"), a))
def always_less_than_end(i: UOp, a: UOp) -> UOp | None:
    """i < a holds where the greatest i is less."""
    return const(b1, True) if bounds(i)[1] < a.arg else None


@rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, x, name="wide"), name="root"))
def cast_through_wider(root: UOp, wide: UOp, x: UOp) -> UOp | None:
    """By a wider integer and back."""
    return x if root.dtype is x.dtype and wide.dtype.itemsize > x.dtype.itemsize else None


@rule(UPat.of(Ops.GEP, UPat.of(Ops.VECTORIZE, name="vector"), name="lane"))
def lane_of(lane: UOp, vector: UOp) -> UOp:
    """A lane of a vector put together from scalars is that scalar."""
    return vector.src[lane.arg]


@rule(UPat.of(Ops.STORE, UPat.of(Ops.INDEX, var("pointer"), var("idx"), var("valid")), x, name="store"))
def keep_what_lay_there(store: UOp, pointer: UOp, idx: UOp, valid: UOp, x: UOp) -> UOp:
    """A masked store stores what lay there where the mask does not hold."""
    place = pointer.index(idx)
    return store.replace(src=(place, valid.where(x, UOp(Ops.LOAD, x.dtype, (place,)))))


TRUE = (
    Case(law("times_one", x * 1, x), A * 1),
    Case(law("add_negative_zero", x + -0.0, x), F + -0.0),
    Case(law("minus_itself_int", x + x * -1, 0), A + A * -1),
    Case(law("quotient_and_remainder", (x // a) * a + x % a, x), (A // 7) * 7 + A % 7),
    Case(law("negate_twice", UPat.of(Ops.NEG, -x), x), (-F).alu(Ops.NEG)),
    Case(mask_of_positive, STEP % 8),
    Case(law("not_less_int", (x < y).ne(True), UPat.of(Ops.CMPLE, y, x)), (A < B).ne(True)),
    Case(law("twice", x * 2.0, x + x), F * 2.0),
    Case(law("quarter", x / 4.0, x * 0.25), F / 4.0),
    Case(cast_through_wider, read(i8).cast(i32).cast(i8)),
    Case(law("same_choice", UPat.of(Ops.WHERE, var("p"), x, x), x), P.where(F, F)),
    Case(law("shift_is_product", UPat.of(Ops.SHL, x, 3), x * 8), A << 3),
    Case(law("maximum_of_itself", x.maximum(x), x), F.maximum(F)),
    Case(always_less_than_end, STEP < 16),
    Case(law("quotient_of_digits", (x * 4 + y) // 4, x), (STEP * 4 + loop(4, 2)) // 4),
    Case(law("remainder_of_digits", (x * 4 + y) % 4, y), (STEP * 4 + loop(4, 2)) % 4),
    Case(take_factor_out, total(read(i32, 1, INNER) * B, INNER)),
    Case(take_term_out_times, total(read(i32, 1, INNER) + B, INNER)),
    Case(choice_as_mask, (STEP < 12).where(F, 0.0)),
    Case(law("compare_negatives", -x < -y, y < x), -F < -G),
    Case(law("shift_of_unsigned", UPat.of(Ops.SHR, x, 3), x // 8), read(u8) >> 3),
    Case(lane_of, UOp(Ops.GEP, f32, (UOp(Ops.VECTORIZE, f32.vec(4), (F, G, H, F)),), 2)),
    Case(law("add_floats_in_any_order", (x + y) + z, x + (y + z)), (F + G) + H, 1e-5),
    Case(law("both_truths", var("p").where(var("q"), False), var("p") & var("q")), P.where(Q, False)),
    Case(keep_what_lay_there, UOp(Ops.STORE, dtypes.void, (buffer(f32, 0).index(STEP, STEP < 12), F))),
    Case(law("de_morgan", (x & y) ^ -1, (x ^ -1) | (y ^ -1)), (A & B) ^ -1),
    Case(law("add_in_any_order", (x + y) + z, x + (y + z)), (A + B) + C),
)

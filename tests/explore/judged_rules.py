"""Rules for tests of the equivalence check: typical mistakes of compiler writers, and correct rules that look
wrong. They were written without knowledge of the check, each with a program on which it fires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tinyexplore import Tensor, dtypes
from tinyexplore.explore import playground
from tinyexplore.explore.playground import Ops, UPat, cvar, var
from tinyexplore.uop import UOp
from tinyexplore.uop.bounds import bounds

Program = Callable[[], Tensor]


@dataclass(frozen=True)
class Judged:
    """A rule, a program on which it fires, and the pass into which it goes. because: what is wrong, or why it holds."""

    rule: Any
    program: Program
    because: str
    at: str = "simplify"


FLOATS, INTS = (dtypes.float32,), (dtypes.int32,)
BYTES, BOOLS, INDEX = (dtypes.uint8,), (dtypes.bool,), (dtypes.index,)
SIGNED = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)

f, g, h = var("f", FLOATS), var("g", FLOATS), var("h", FLOATS)
n, m = var("n", INTS), var("m", INTS)
u, v = var("u", BYTES), var("v", BYTES)
a, b = var("a", BOOLS), var("b", BOOLS)
k = var("k", INDEX)
x, y = var("x"), var("y")
c, d = cvar("c"), cvar("d")


def floats() -> Tensor:
    return Tensor([0.5, -1.5, 2.0, 3.25] * 8).realize()


def others() -> Tensor:
    return Tensor([1.0, 2.0, -4.0, 0.25] * 8).realize()


def ints(dtype: Any = dtypes.int32) -> Tensor:
    return Tensor([1, 2, 3, 40] * 8, dtype=dtype).realize()


def more(dtype: Any = dtypes.int32) -> Tensor:
    return Tensor([7, 5, 3, 1] * 8, dtype=dtype).realize()


def truths() -> Tensor:
    return Tensor([True, False, True, True] * 8).realize()


def like(node: UOp, value: Any) -> UOp:
    return UOp.const(node.dtype, value)


# *** wrong: whole numbers ***


@playground.rule(UPat.of(Ops.IDIV, n, c))
def divide_by_shift(n: UOp, c: UOp) -> UOp | None:
    """x // 2**s is x >> s."""
    if c.arg <= 0 or c.arg & (c.arg - 1):
        return None
    return n >> (c.arg.bit_length() - 1)


@playground.rule(UPat.of(Ops.MOD, UPat.of(Ops.MOD, u, c), d))
def mod_twice(u: UOp, c: UOp, d: UOp) -> UOp | None:
    """(x % c) % d is x % d where c is the larger."""
    return u % d if c.arg > d.arg > 0 else None


@playground.rule(UPat.of(Ops.CMPLT, n + c, d))
def compare_without_offset(n: UOp, c: UOp, d: UOp) -> UOp:
    """x + c < d is x < d - c."""
    return n < like(n, d.arg - c.arg)


difference_is_positive = playground.law("difference_is_positive", UPat.of(Ops.CMPLT, 0, u + -v), v < u)
round_trip_narrow = playground.law(
    "round_trip_narrow", UPat.of(Ops.CAST, UPat.of(Ops.CAST, n, dtypes=(dtypes.int8,)), dtypes=INTS), n
)
shift_there_and_back = playground.law("shift_there_and_back", UPat.of(Ops.SHR, UPat.of(Ops.SHL, n, c), c), n)


@playground.rule(UPat.of(Ops.SHL, UPat.of(Ops.SHL, n, c), d))
def shift_twice_masked(n: UOp, c: UOp, d: UOp) -> UOp:
    """(x << c) << d is x << (c + d), the count as the machine takes it."""
    return n << ((c.arg + d.arg) & 31)


@playground.rule(n < m)
def less_as_at_most(n: UOp, m: UOp) -> UOp | None:
    """x < y is x <= y - 1."""
    return None if m.op is Ops.CONST or n.op is Ops.CONST else n <= m + -1


not_less = playground.law("not_less", (n < m).eq(False), m < n)
quotient_times_divisor = playground.law("quotient_times_divisor", UPat.of(Ops.IDIV, n, c) * c, n)
product_over_factor = playground.law("product_over_factor", UPat.of(Ops.IDIV, n * c, c), n)
negate_quotient = playground.law("negate_quotient", UPat.of(Ops.IDIV, -n, c), -UPat.of(Ops.IDIV, n, c))
magnitude_not_negative = playground.law("magnitude_not_negative", UPat.of(Ops.CMPLE, 0, (n < 0).where(-n, n)), True)
complement_as_minus = playground.law("complement_as_minus", n ^ -1, -n)
minimum_as_maximum = playground.law("minimum_as_maximum", n.minimum(m), -((-n).maximum(-m)))
average_of_bits = playground.law(
    "average_of_bits",
    UPat.of(Ops.SHR, n + m, 1),
    (n & m) + UPat.of(Ops.SHR, n ^ m, UPat(frozenset((Ops.CONST,)), (), 1)),
)


@playground.rule(UPat.of(Ops.IDIV, n + c, d))
def divide_sum(n: UOp, c: UOp, d: UOp) -> UOp | None:
    """(x + c) // d is x // d + c // d where d divides c."""
    if d.arg <= 0 or c.arg % d.arg:
        return None
    return n.alu(Ops.IDIV, d) + c.arg // d.arg


@playground.rule((UPat.of(Ops.AND, u, c)).ne(0))
def any_bit_as_all(u: UOp, c: UOp) -> UOp:
    """x & mask != 0 is x & mask == mask."""
    return (u & c).eq(c)


@playground.rule(UPat.of(Ops.CMPLT, n, 0))
def sign_bit(n: UOp) -> UOp:
    """x < 0 where the bit of the sign is set."""
    return (n & (1 << 30)).ne(0)


@playground.rule(UPat.of(Ops.IDIV, u, 7))
def seventh_by_multiply(u: UOp) -> UOp:
    """x // 7 is x * 37 >> 8, in 32 bits."""
    return ((u.cast(dtypes.int32) * 37) >> 8).cast(u.dtype)


@playground.rule(UPat.of(Ops.IDIV, var("w", (dtypes.uint16,)), 3))
def third_by_multiply_signed(w: UOp) -> UOp:
    """x // 3 is x * 0xaaab >> 17, in 32 bits."""
    return ((w.cast(dtypes.int32) * 0xAAAB) >> 17).cast(w.dtype)


@playground.rule(UPat.of(Ops.CAST, var("w", (dtypes.int8, dtypes.uint8)) + var("z"), name="wide"))
def widen_before_add(wide: UOp, w: UOp, z: UOp) -> UOp | None:
    """The sum of two bytes as a word is the sum of the two words."""
    return w.cast(wide.dtype) + z.cast(wide.dtype) if wide.dtype.scalar is dtypes.int32 else None


@playground.rule(UPat.of(Ops.CMPLT, *(UPat.of(Ops.CAST, p, dtypes=(dtypes.int8,)) for p in (u, v))))
def compare_before_cast(u: UOp, v: UOp) -> UOp:
    """A cast between types of one size changes no comparison."""
    return u < v


@playground.rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, var("w", (dtypes.int8,)), dtypes=BYTES), name="wide", dtypes=INTS))
def cast_past_sign(wide: UOp, w: UOp) -> UOp:
    """A cast through a type of the same size is the last cast."""
    return w.cast(wide.dtype)


@playground.rule(UPat.of(Ops.MOD, n, c))
def remainder_in_range(n: UOp, c: UOp) -> UOp | None:
    """x % c is x where x is never more than c."""
    low, high = bounds(n)
    return n if 0 <= low and high <= c.arg else None


# *** wrong: floats ***

reassociate = playground.law("reassociate", (f + g) + h, f + (g + h))
add_zero_float = playground.law("add_zero_float", f + 0.0, f)
mul_zero_float = playground.law("mul_zero_float", f * 0.0, 0.0)
subtract_self = playground.law("subtract_self", f + -f, 0.0)
divide_self = playground.law("divide_self", f / f, 1.0)
negate_difference = playground.law("negate_difference", -(f + -g), g + -f)
equal_self_float = playground.law("equal_self_float", f.eq(f), True)
relu_as_where = playground.law("relu_as_where", f.maximum(0.0), UPat.of(Ops.CMPLT, 0.0, f).where(f, 0.0))
sqrt_of_square = playground.law("sqrt_of_square", UPat.of(Ops.SQRT, f * f), f)
square_of_sqrt = playground.law("square_of_sqrt", UPat.of(Ops.SQRT, f) * UPat.of(Ops.SQRT, f), f)
log_of_exp = playground.law("log_of_exp", UPat.of(Ops.LOG, UPat.of(Ops.EXP, f)), f)
log2_of_product = playground.law(
    "log2_of_product", UPat.of(Ops.LOG2, f * g), UPat.of(Ops.LOG2, f) + UPat.of(Ops.LOG2, g)
)
exp2_of_sum = playground.law("exp2_of_sum", UPat.of(Ops.EXP2, f) * UPat.of(Ops.EXP2, g), UPat.of(Ops.EXP2, f + g))
exp_is_positive = playground.law("exp_is_positive", UPat.of(Ops.CMPLT, 0.0, UPat.of(Ops.EXP, f)), True)
floor_of_negative = playground.law("floor_of_negative", UPat.of(Ops.FLOOR, -f), -UPat.of(Ops.FLOOR, f))
turn_comparison = playground.law("turn_comparison", (f < g).where(x, y), (g <= f).where(y, x))
where_equal_float = playground.law("where_equal_float", f.eq(g).where(f, g), g)
zero_where_zero = playground.law("zero_where_zero", f.eq(0.0).where(0.0, f), f)


@playground.rule(f / c)
def divide_by_reciprocal(f: UOp, c: UOp) -> UOp:
    """x / c is x * (1 / c)."""
    return f * (1 / c.arg)


@playground.rule((f * c) * d)
def join_scales(f: UOp, c: UOp, d: UOp) -> UOp:
    """(x * c) * d is x * (c * d): the product of powers of two is exact."""
    return f * (c.arg * d.arg)


@playground.rule((f < 0.0).where(-f, f))
def clear_sign(f: UOp) -> UOp:
    """A number without its sign has the bit of the sign cleared."""
    return (f.bitcast(dtypes.int32) & 0x7FFFFFFF).bitcast(f.dtype)


@playground.rule(f < g)
def compare_bits(f: UOp, g: UOp) -> UOp:
    """Floats are ordered as their bits are."""
    return f.bitcast(dtypes.int32) < g.bitcast(dtypes.int32)


@playground.rule(a.where(f, g))
def select_by_arithmetic(a: UOp, f: UOp, g: UOp) -> UOp:
    """Without a branch: c * x + (1 - c) * y."""
    chosen = a.cast(f.dtype)
    return chosen * f + (like(f, 1.0) + -chosen) * g


@playground.rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, f, dtypes=INTS), name="node", dtypes=FLOATS))
def truncate_as_floor(node: UOp, f: UOp) -> UOp:
    """A float made an integer and a float again is rounded down."""
    return f.alu(Ops.FLOOR)


@playground.rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, n, dtypes=FLOATS), name="node", dtypes=INTS))
def int_float_int(node: UOp, n: UOp) -> UOp:
    """A float holds an integer."""
    return n


@playground.rule(
    UPat.of(
        Ops.CAST, UPat.of(Ops.CAST, var("w", (dtypes.float64,)), dtypes=FLOATS), name="node", dtypes=(dtypes.float16,)
    )
)
def round_once(node: UOp, w: UOp) -> UOp:
    """Narrowing in two steps is narrowing in one."""
    return w.cast(node.dtype)


@playground.rule(UPat.of(Ops.CAST, n, name="node", dtypes=FLOATS))
def reinterpret(node: UOp, n: UOp) -> UOp:
    """A cast between types of one size keeps the bits."""
    return n.bitcast(node.dtype)


# *** wrong: truths ***

de_morgan = playground.law("de_morgan", (a & b).eq(False), a.eq(False) & b.eq(False))
or_as_xor = playground.law("or_as_xor", a | b, a ^ b)


# *** wrong: masks, places, reductions ***


@playground.rule(UPat.of(Ops.INDEX, var("pointer"), var("idx"), var("valid"), name="node"))
def forget_mask(node: UOp, pointer: UOp, idx: UOp, valid: UOp) -> UOp:
    """A place is a place, whatever its mask."""
    return pointer.index(idx)


@playground.rule(UPat.of(Ops.INDEX, var("pointer"), var("idx"), a & b, name="node"))
def half_a_mask(node: UOp, pointer: UOp, idx: UOp, a: UOp, b: UOp) -> UOp:
    """Who is past the one end is not before the other."""
    return pointer.index(idx, a)


@playground.rule(UPat.of(Ops.CMPLT, cvar("c", INDEX), k))
def mask_from_edge(c: UOp, k: UOp) -> UOp:
    """c < i, as i >= c."""
    return c <= k


@playground.rule(UPat.of(Ops.INDEX, var("pointer"), k * -1 + c, name="node"))
def reversed_is_same(node: UOp, pointer: UOp, k: UOp, c: UOp) -> UOp:
    """A loop that runs backwards visits the same elements."""
    return pointer.index(k)


@playground.rule(UPat.of(Ops.INDEX, var("pointer"), k + c, name="node"))
def offset_by_one(node: UOp, pointer: UOp, k: UOp, c: UOp) -> UOp | None:
    """Numbered from one."""
    return pointer.index(k + (c.arg - 1)) if c.arg > 3 else None


@playground.rule(UPat.of(Ops.MOD, k, c))
def place_without_wrap(k: UOp, c: UOp) -> UOp | None:
    """The remainder of a place that is in range is the place."""
    return k if c.arg > 1 else None


@playground.rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", arg=Ops.MAX, more_src=True))
def maximum_from_zero(reduce: UOp, value: UOp, ctx: Any) -> UOp:
    """The register of a maximum starts at zero."""
    register = UOp(Ops.DEFINE_ACC, reduce.dtype, (like(reduce, 0),), next(ctx.numbers))
    assigned = UOp(Ops.ASSIGN, reduce.dtype, (register, register.maximum(value)))
    return UOp(Ops.RESULT, reduce.dtype, (register, assigned, *reduce.src[1:]))


@playground.rule(UPat.of(Ops.REDUCE, f * c, name="reduce", arg=Ops.MAX, more_src=True))
def maximum_of_scaled(reduce: UOp, f: UOp, c: UOp) -> UOp:
    """max(x * c) is max(x) * c."""
    return reduce.replace(src=(f, *reduce.src[1:])) * c


@playground.rule(UPat.of(Ops.REDUCE, n + c, name="reduce", arg=Ops.ADD, more_src=True))
def sum_of_shifted(reduce: UOp, n: UOp, c: UOp) -> UOp:
    """sum(x + c) is sum(x) + c."""
    return reduce.replace(src=(n, *reduce.src[1:])) + c


@playground.rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", arg=Ops.ADD, more_src=True))
def sum_of_constant(reduce: UOp, value: UOp) -> UOp | None:
    """The sum of what does not change in the loop is that value."""
    nodes = value.toposort()
    return None if any(loop in nodes for loop in reduce.src[1:]) else value


@playground.rule(UPat.of(Ops.REDUCE, n + c, name="reduce", arg=Ops.MAX, more_src=True))
def maximum_of_shifted_ints(reduce: UOp, n: UOp, c: UOp) -> UOp:
    """max(x + c) is max(x) + c, of integers."""
    return reduce.replace(src=(n, *reduce.src[1:])) + c


@playground.rule(UPat.of(Ops.REDUCE, f * c, name="reduce", arg=Ops.ADD, more_src=True))
def sum_of_doubled(reduce: UOp, f: UOp, c: UOp) -> UOp:
    """sum(x * 2) is sum(x) * 2."""
    return reduce.replace(src=(f, *reduce.src[1:])) * c


def average(first: Tensor, second: Tensor) -> Tensor:
    return (first + second) >> 1


def grid() -> Tensor:
    return floats().reshape(4, 8)


def long_rows() -> Tensor:
    return Tensor.full((4, 200), -1.0).contiguous().realize()


WRONG = (
    Judged(divide_by_shift, lambda: ints() // 4, "division rounds towards zero, a shift down"),
    Judged(mod_twice, lambda: ints(dtypes.uint8) % 12 % 5, "12 is no multiple of 5"),
    Judged(compare_without_offset, lambda: ints() + 5 < 100, "the sum wraps"),
    Judged(difference_is_positive, lambda: (ints(dtypes.uint8) - more(dtypes.uint8)) > 0, "wraps below zero"),
    Judged(round_trip_narrow, lambda: ints().cast(dtypes.int8).cast(dtypes.int32), "bits are lost"),
    Judged(shift_there_and_back, lambda: (ints() << 3) >> 3, "bits are lost at the top"),
    Judged(shift_twice_masked, lambda: (ints() << 20) << 15, "35 places leave nothing"),
    Judged(less_as_at_most, lambda: ints() < more(), "the least integer has none below it"),
    Judged(not_less, lambda: (ints() < more()).logical_not(), "equal is not less"),
    Judged(quotient_times_divisor, lambda: ints()._divide_ints(Tensor.full((32,), 3))[0] * 3, "the remainder is lost"),
    Judged(product_over_factor, lambda: ints() * 3 // 3, "the product wraps"),
    Judged(negate_quotient, lambda: -ints() // 3, "the least integer is its own negative"),
    Judged(magnitude_not_negative, lambda: (lambda t: (t < 0).where(-t, t) >= 0)(ints()), "the least integer"),
    Judged(complement_as_minus, lambda: ~ints(), "~x is -x - 1"),
    Judged(minimum_as_maximum, lambda: ints().minimum(more()), "the least integer"),
    Judged(average_of_bits, lambda: average(ints(), more()), "the sum wraps"),
    Judged(divide_sum, lambda: (ints() + 6) // 3, "rounds towards zero on both sides of it"),
    Judged(any_bit_as_all, lambda: (ints(dtypes.uint8) & 6) != 0, "one bit of two"),
    Judged(sign_bit, lambda: (ints() < 0).where(1, 2), "the sign is bit 31"),
    Judged(seventh_by_multiply, lambda: ints(dtypes.uint8) // 7, "from 90 on"),
    Judged(third_by_multiply_signed, lambda: ints(dtypes.uint16) // 3, "the product passes 2**31"),
    Judged(widen_before_add, lambda: (ints(dtypes.uint8) + more(dtypes.uint8)).cast(dtypes.int32), "wraps at 256"),
    Judged(
        compare_before_cast,
        lambda: ints(dtypes.uint8).cast(dtypes.int8) < more(dtypes.uint8).cast(dtypes.int8),
        "200 as int8 is negative",
    ),
    Judged(cast_past_sign, lambda: ints(dtypes.int8).cast(dtypes.uint8).cast(dtypes.int32), "-1 becomes 255"),
    Judged(remainder_in_range, lambda: Tensor.arange(9) % 8, "8 % 8 is 0"),
    Judged(reassociate, lambda: (floats() + others()) + floats().sin(), "rounding, overflow"),
    Judged(add_zero_float, lambda: floats() + 0.0, "-0 + 0 is 0"),
    Judged(mul_zero_float, lambda: floats() * 0.0, "infinity, NaN, -0"),
    Judged(subtract_self, lambda: (lambda t: t - t)(floats()), "inf - inf is NaN"),
    Judged(divide_self, lambda: (lambda t: t / t)(floats()), "0 / 0 is NaN"),
    Judged(negate_difference, lambda: -(floats() - others()), "-(x - x) is -0"),
    Judged(equal_self_float, lambda: (lambda t: t == t)(floats()), "NaN"),
    Judged(relu_as_where, lambda: floats().maximum(0.0), "NaN becomes 0"),
    Judged(sqrt_of_square, lambda: (lambda t: (t * t).sqrt())(floats()), "of negative numbers"),
    Judged(square_of_sqrt, lambda: (lambda t: t.sqrt() * t.sqrt())(floats()), "rounding, negative numbers"),
    Judged(log_of_exp, lambda: floats().exp().log(), "rounding, overflow"),
    Judged(log2_of_product, lambda: (floats() * others()).log2(), "two negative numbers"),
    Judged(exp2_of_sum, lambda: floats().exp2() * others().exp2(), "rounding, inf * 0"),
    Judged(exp_is_positive, lambda: floats().exp() > 0.0, "underflow, NaN"),
    Judged(floor_of_negative, lambda: (-floats()).floor(), "that is the ceiling"),
    Judged(turn_comparison, lambda: (floats() < others()).where(1.0, 2.0), "NaN"),
    Judged(where_equal_float, lambda: (lambda s, t: (s == t).where(s, t))(floats(), others()), "-0 == 0"),
    Judged(zero_where_zero, lambda: (lambda t: (t == 0.0).where(0.0, t))(floats()), "-0 == 0"),
    Judged(divide_by_reciprocal, lambda: floats() / 3.0, "1 / 3 is rounded"),
    Judged(join_scales, lambda: floats() * 0.5 * 2.0, "denormals lose their last bit"),
    Judged(clear_sign, lambda: (lambda t: (t < 0.0).where(-t, t))(floats()), "-0 stays -0"),
    Judged(compare_bits, lambda: floats() < others(), "negative numbers, NaN"),
    Judged(select_by_arithmetic, lambda: truths().where(floats(), others()), "0 * inf is NaN"),
    Judged(truncate_as_floor, lambda: floats().cast(dtypes.int32).cast(dtypes.float32), "negative numbers, range"),
    Judged(int_float_int, lambda: ints().cast(dtypes.float32).cast(dtypes.int32), "past 2**24"),
    Judged(
        round_once,
        lambda: floats().cast(dtypes.float64).realize().cast(dtypes.float32).cast(dtypes.float16),
        "what the first rounding makes a tie",
    ),
    Judged(reinterpret, lambda: ints().cast(dtypes.float32), "a cast converts"),
    Judged(de_morgan, lambda: (truths() & (floats() < 1.0)).logical_not(), "not both is either not"),
    Judged(or_as_xor, lambda: truths() | (floats() < 1.0), "both"),
    Judged(forget_mask, lambda: grid().pad(((1, 1), (0, 0))) * 2.0, "reads outside, where zero stood"),
    Judged(half_a_mask, lambda: grid().pad(((1, 1), (0, 0))) * 2.0, "the other end"),
    Judged(mask_from_edge, lambda: grid().pad(((1, 1), (0, 0))) * 2.0, "c itself"),
    Judged(reversed_is_same, lambda: floats().flip(0) * 2.0, "in another order"),
    Judged(offset_by_one, lambda: floats()[5:13] * 2.0, "the element before"),
    Judged(place_without_wrap, lambda: grid().transpose(0, 1).reshape(32)[1:31] * 2.0, "reads on, past the eighth"),
    Judged(maximum_from_zero, lambda: long_rows().max(1), "all negative", "accumulators"),
    Judged(maximum_of_scaled, lambda: (grid() * -2.0).max(1), "a negative factor"),
    Judged(sum_of_shifted, lambda: (ints().reshape(4, 8) + 3).sum(1), "c as often as the loop runs"),
    Judged(sum_of_constant, lambda: floats()[:4].reshape(4, 1).expand(4, 8).sum(1), "as often as the loop runs"),
    Judged(maximum_of_shifted_ints, lambda: (ints().reshape(4, 8) + 3).max(1), "the sum wraps"),
    Judged(sum_of_doubled, lambda: (grid() * 3.0).sum(1), "rounding, overflow on the way"),
)


# *** true ***

wrapping_bits = playground.law("wrapping_bits", n + m, (n ^ m) + (n & m) * UPat(frozenset((Ops.CONST,)), (), 2))
divide_and_rest = playground.law("divide_and_rest", UPat.of(Ops.IDIV, n, c) * c + UPat.of(Ops.MOD, n, c), n)
double_as_sum = playground.law("double_as_sum", f * 2.0, f + f)
minus_by_product = playground.law("minus_by_product", -f, f * -1.0)
negate_by_product = playground.law("negate_by_product", f * -1.0, -f)
half_by_product = playground.law("half_by_product", f / 2.0, f * 0.5)
equal_or_not_int = playground.law("equal_or_not_int", n.eq(m).where(n, m), m)
turn_equality = playground.law("turn_equality", f.eq(g).where(x, y), f.ne(g).where(y, x))
cosine_is_even = playground.law("cosine_is_even", UPat.of(Ops.COS, -f), UPat.of(Ops.COS, f))
root_not_negative = playground.law(
    "root_not_negative", UPat.of(Ops.CMPLE, 0.0, UPat.of(Ops.SQRT, f)), UPat.of(Ops.CMPLE, 0.0, f)
)
de_morgan_whole = playground.law("de_morgan_whole", (a & b).eq(False), a.eq(False) | b.eq(False))
where_as_or = playground.law("where_as_or", a.where(True, b), a | b)
distribute_wrapping = playground.law("distribute_wrapping", (n + m) * c, n * c + m * c)
complement_whole = playground.law("complement_whole", n ^ -1, -n + -1)


@playground.rule(UPat.of(Ops.CAST, n, name="node", dtypes=(dtypes.uint32,)))
def cast_is_bitcast(node: UOp, n: UOp) -> UOp:
    """Between integers of one size a cast keeps the bits."""
    return n.bitcast(node.dtype)


@playground.rule(UPat.of(Ops.IDIV, u, 3))
def third_by_multiply(u: UOp) -> UOp:
    """x // 3 is x * 171 >> 9, in 32 bits."""
    return ((u.cast(dtypes.int32) * 171) >> 9).cast(u.dtype)


@playground.rule(UPat.of(Ops.IDIV, var("w", (dtypes.uint16,)), 3))
def third_by_multiply_unsigned(w: UOp) -> UOp:
    """x // 3 is x * 0xaaab >> 17, in 32 bits without a sign."""
    return ((w.cast(dtypes.uint32) * 0xAAAB) >> 17).cast(w.dtype)


@playground.rule(UPat.of(Ops.CMPLT, n, 0))
def sign_by_shift(n: UOp) -> UOp:
    """x < 0 where what is left of the bits is -1."""
    return (n >> 31).ne(0)


@playground.rule(UPat.of(Ops.SHL, n, c))
def shift_as_product(n: UOp, c: UOp) -> UOp:
    """x << c is x * 2**c, wrapping."""
    return n * (1 << c.arg)


@playground.rule(UPat.of(Ops.CMPLT, f.maximum(c), d))
def maximum_below(f: UOp, c: UOp, d: UOp) -> UOp | None:
    """max(x, c) < d is x < d where c < d: NaN is not less."""
    return f < d if c.arg < d.arg else None


@playground.rule((n.maximum(c)).minimum(d))
def clamp_other_way(n: UOp, c: UOp, d: UOp) -> UOp | None:
    """min(max(x, c), d) is max(min(x, d), c) where c is not more than d."""
    return n.minimum(d).maximum(c) if c.arg <= d.arg else None


@playground.rule(UPat.of(Ops.REDUCE, n * c, name="reduce", arg=Ops.ADD, more_src=True))
def sum_of_scaled_ints(reduce: UOp, n: UOp, c: UOp) -> UOp:
    """sum(x * c) is sum(x) * c, wrapping."""
    return reduce.replace(src=(n, *reduce.src[1:])) * c


@playground.rule(UPat.of(Ops.REDUCE, f + c, name="reduce", arg=Ops.MAX, more_src=True))
def maximum_of_shifted(reduce: UOp, f: UOp, c: UOp) -> UOp:
    """max(x + c) is max(x) + c: rounding keeps the order."""
    return reduce.replace(src=(f, *reduce.src[1:])) + c


@playground.rule(UPat.of(Ops.INDEX, var("pointer"), var("idx"), a & b, name="node"))
def mask_in_other_order(node: UOp, pointer: UOp, idx: UOp, a: UOp, b: UOp) -> UOp:
    """A mask as not (not a or not b)."""
    return pointer.index(idx, (a.eq(False) | b.eq(False)).eq(False))


@playground.rule(UPat.of(Ops.MOD, n, c))
def remainder_below(n: UOp, c: UOp) -> UOp | None:
    """x % c is x where x is less than c."""
    low, high = bounds(n)
    return n if 0 <= low and high < c.arg else None


TRUE = (
    Judged(wrapping_bits, lambda: ints() + more(), "the sum without carries, and the carries"),
    Judged(
        divide_and_rest,
        lambda: (lambda q, r: q * 3 + r)(*ints()._divide_ints(Tensor.full((32,), 3))),
        "by definition",
    ),
    Judged(double_as_sum, lambda: floats() * 2.0, "exact, infinities included"),
    Judged(minus_by_product, lambda: -floats(), "only the sign, -0 and NaN included"),
    Judged(negate_by_product, lambda: floats() * -1.0, "only the sign, -0 and NaN included"),
    Judged(half_by_product, lambda: floats() / 2.0, "1 / 2 is exact: both are rounded once"),
    Judged(
        equal_or_not_int, lambda: (lambda s, t: (s == t).where(s, t))(ints(), more()), "equal integers are the same"
    ),
    Judged(turn_equality, lambda: (floats() == others()).where(1.0, 2.0), "not equal is the opposite, NaN included"),
    Judged(cosine_is_even, lambda: (-floats()).cos(), "by definition"),
    Judged(root_not_negative, lambda: floats().sqrt() >= 0.0, "-0 is at least 0, and so is its root"),
    Judged(de_morgan_whole, lambda: (truths() & (floats() < 1.0)).logical_not(), "de Morgan"),
    Judged(where_as_or, lambda: truths().where(True, floats() < 1.0), "true where a is, else b"),
    Judged(distribute_wrapping, lambda: (ints() + more()) * 5, "modulo 2**32"),
    Judged(complement_whole, lambda: ~ints(), "two's complement"),
    Judged(cast_is_bitcast, lambda: ints().cast(dtypes.uint32), "modulo 2**32"),
    Judged(third_by_multiply, lambda: ints(dtypes.uint8) // 3, "for every byte"),
    Judged(third_by_multiply_unsigned, lambda: ints(dtypes.uint16) // 3, "for every one of 65536"),
    Judged(sign_by_shift, lambda: (ints() < 0).where(1, 2), "the sign fills in"),
    Judged(shift_as_product, lambda: ints() << 5, "modulo 2**32"),
    Judged(maximum_below, lambda: floats().maximum(1.0) < 2.0, "NaN is less than nothing"),
    Judged(clamp_other_way, lambda: ints().maximum(3).minimum(9), "3 is less than 9"),
    Judged(sum_of_scaled_ints, lambda: (ints().reshape(4, 8) * 3).sum(1), "a ring"),
    Judged(maximum_of_shifted, lambda: (grid() + 1.5).max(1), "rounding is monotone"),
    Judged(mask_in_other_order, lambda: grid().pad(((1, 1), (0, 0))) * 2.0, "de Morgan"),
    Judged(remainder_below, lambda: Tensor.arange(8) % 8, "0 … 7"),
)


# *** wrong at few places ***


@playground.rule(n < c)
def at_most_constant(n: UOp, c: UOp) -> UOp | None:
    """x < c, as x <= c."""
    return n <= c if c.arg > 100 else None


@playground.rule(f < c)
def at_most_constant_float(f: UOp, c: UOp) -> UOp:
    """x < c, as x <= c."""
    return f <= c


@playground.rule(k < cvar("c", INDEX))
def place_at_most(k: UOp, c: UOp) -> UOp | None:
    """i < c, as i <= c."""
    return k <= c if c.arg > 100 else None


never_this_number = playground.law("never_this_number", n.eq(123457).where(x, y), y)
never_so_far_apart = playground.law("never_so_far_apart", (n + -m).eq(123457), False)
remainder_below_last = playground.law("remainder_below_last", UPat.of(Ops.CMPLT, UPat.of(Ops.MOD, n, 1000), 999), True)
max_and_min_of_floats = playground.law("max_and_min_of_floats", f.maximum(g) + f.minimum(g), f + g)
minimum_by_comparison = playground.law("minimum_by_comparison", (f < g).where(f, g), f.minimum(g))
difference_is_zero = playground.law("difference_is_zero", f.eq(g), (f + -g).eq(0.0))
root_by_division = playground.law("root_by_division", f / UPat.of(Ops.SQRT, f), UPat.of(Ops.SQRT, f))
power_as_root = playground.law("power_as_root", UPat.of(Ops.POW, f, 0.5), UPat.of(Ops.SQRT, f))
maximum_swapped = playground.law("maximum_swapped", UPat.of(Ops.MAX, f, g), g.maximum(f))


@playground.rule(UPat.of(Ops.CMPLT, (n < 0).where(-n, n), c))
def magnitude_below(n: UOp, c: UOp) -> UOp:
    """|x| < c is -c < x and x < c."""
    return (like(n, -c.arg) < n) & (n < c)


@playground.rule(UPat.of(Ops.CMPLT, UPat.of(Ops.CAST, n, dtypes=FLOATS), UPat.of(Ops.CAST, m, dtypes=FLOATS)))
def compare_as_ints(n: UOp, m: UOp) -> UOp:
    """Integers made floats are ordered as they are."""
    return n < m


@playground.rule(UPat.of(Ops.AND, UPat.of(Ops.CMPLE, cvar("c", INTS), n), n < d))
def range_check_too_wide(n: UOp, c: UOp, d: UOp) -> UOp:
    """c <= x and x < d is x - c <= d - c without a sign."""
    return (n + -c.arg).cast(dtypes.uint32) <= UOp.const(dtypes.uint32, d.arg - c.arg)


@playground.rule(UPat.of(Ops.CAST, UPat.of(Ops.CAST, n, dtypes=FLOATS), name="node", dtypes=(dtypes.bfloat16,)))
def int_to_bfloat16(node: UOp, n: UOp) -> UOp:
    """An integer made bfloat16 need not be a float32 first."""
    return n.cast(dtypes.float64).cast(node.dtype)


@playground.rule(
    UPat.of(Ops.CAST, UPat.of(Ops.CAST, var("w", (dtypes.int64,)), dtypes=(dtypes.float64,)), dtypes=FLOATS)
)
def long_to_float(w: UOp) -> UOp:
    """An integer made float32 need not be a float64 first."""
    return w.cast(dtypes.float32)


@playground.rule(UPat.of(Ops.CAST, f * g, name="node", dtypes=(dtypes.bfloat16,)))
def multiply_narrow(node: UOp, f: UOp, g: UOp) -> UOp:
    """A product to be narrowed may have narrow factors."""
    return f.cast(node.dtype) * g.cast(node.dtype)


@playground.rule(UPat.of(Ops.FLOOR, f + 0.5))
def round_half_up(f: UOp) -> UOp:
    """floor(x + 0.5) is the next integer by way of int32."""
    return (f + 0.5).cast(dtypes.int32).cast(f.dtype)


# *** wrong: where the graph has more than values ***


@playground.rule(UPat.of(Ops.REDUCE, var("value"), name="reduce", arg=Ops.MIN, more_src=True))
def minimum_from_zero(reduce: UOp, value: UOp) -> UOp:
    """The minimum, started at zero."""
    return reduce.minimum(like(reduce, 0))


@playground.rule(UPat.of(Ops.RANGE, cvar("size"), name="loop"))
def loop_one_less(loop: UOp, size: UOp) -> UOp | None:
    """The last number of a loop is its size less one."""
    return UOp.range(7, loop.arg) if size.arg == 8 else None


@playground.rule(UPat.of(Ops.SCAN, n + c, name="scan", more_src=True))
def scan_of_shifted(scan: UOp, n: UOp, c: UOp) -> UOp:
    """cumsum(x + c) is cumsum(x) + c."""
    return scan.replace(src=(n, *scan.src[1:])) + c


@playground.rule(UPat.of(Ops.STORE, var("place"), f.maximum(0.0), name="store"))
def store_unclamped(store: UOp, place: UOp, f: UOp) -> UOp:
    """What is stored was clamped before."""
    return store.replace(src=(place, f))


@playground.rule(UPat.of(Ops.LOAD, var("place"), UPat.of(Ops.BARRIER, more_src=True), name="load"))
def load_without_barrier(load: UOp, place: UOp) -> UOp:
    """A load needs no barrier."""
    return load.replace(src=(place,))


@playground.rule(UPat.of(Ops.DEFINE_ACC, c, name="register"))
def register_from_one(register: UOp, c: UOp) -> UOp | None:
    """A register starts at one."""
    return register.replace(src=(like(register, 1),)) if c.arg == 0 else None


@playground.rule(UPat.of(Ops.GEP, var("vector"), name="lane"))
def first_lane(lane: UOp, vector: UOp) -> UOp | None:
    """Every lane is the first."""
    return lane.replace(arg=0) if lane.arg != 0 else None


@playground.rule(UPat.of(Ops.VECTORIZE, name="vector"))
def lanes_reversed(vector: UOp) -> UOp | None:
    """The last lane first, as in a big-endian register."""
    return vector.replace(src=vector.src[::-1]) if vector.src[0].render() < vector.src[-1].render() else None


@playground.rule(UPat.of(Ops.LOAD, UPat.of(Ops.INDEX, var("pointer"), var("idx"), name="place"), name="load"))
def load_from_start(load: UOp, place: UOp, pointer: UOp, idx: UOp) -> UOp | None:
    """Every load reads the first element."""
    return None if idx.op is Ops.CONST else load.replace(src=(pointer.index(UOp.const(idx.dtype, 0)),))


WRONG += (
    Judged(at_most_constant, lambda: ints() < 123457, "at 123457"),
    Judged(at_most_constant_float, lambda: floats() < 0.3, "at 0.3"),
    Judged(place_at_most, lambda: Tensor.ones(1000).contiguous().realize().pad(((0, 777),)) * 2.0, "i = 1000"),
    Judged(never_this_number, lambda: (ints() == 123457).where(1, 2), "at 123457"),
    Judged(never_so_far_apart, lambda: ints() - more() == 123457, "where they are"),
    Judged(remainder_below_last, lambda: ints().fmod(1000) < 999, "999 and 1999"),
    Judged(max_and_min_of_floats, lambda: (lambda s, t: s.maximum(t) + s.minimum(t))(floats(), others()), "0 and -0"),
    Judged(minimum_by_comparison, lambda: (lambda s, t: (s < t).where(s, t))(floats(), others()), "NaN first"),
    Judged(difference_is_zero, lambda: floats() == others(), "inf - inf is NaN"),
    Judged(root_by_division, lambda: (lambda t: t / t.sqrt())(floats()), "0 / 0, rounding"),
    Judged(power_as_root, lambda: floats().pow(Tensor.full((32,), 0.5)), "-0, -inf"),
    Judged(maximum_swapped, lambda: floats().maximum(others()), "0 and -0: the second is taken"),
    Judged(magnitude_below, lambda: (lambda t: (t < 0).where(-t, t) < 5)(ints()), "the least integer"),
    Judged(
        compare_as_ints,
        lambda: ints().cast(dtypes.float32) < more().cast(dtypes.float32),
        "2**24 and 2**24 + 1 are the same float",
    ),
    Judged(range_check_too_wide, lambda: (lambda t: (t >= 200) & (t < 7000))(ints()), "at 7000"),
    Judged(
        long_to_float,
        lambda: ints(dtypes.int64).cast(dtypes.float64).cast(dtypes.float32),
        "what the first makes a tie",
    ),
    Judged(multiply_narrow, lambda: (floats() * others()).cast(dtypes.bfloat16), "rounding"),
    Judged(round_half_up, lambda: (floats() + 0.5).floor(), "negative numbers, range"),
    Judged(minimum_from_zero, lambda: grid().min(1), "all positive"),
    Judged(loop_one_less, lambda: grid().sum(1), "the eighth is left out"),
    Judged(scan_of_shifted, lambda: (ints() + 3).cumsum(), "c as often as steps were taken"),
    Judged(store_unclamped, lambda: floats().maximum(0.0), "it was not"),
    Judged(load_without_barrier, lambda: grid().softmax(), "the loop that fills it may come later"),
    Judged(register_from_one, lambda: long_rows().sum(1), "a sum starts at zero", "simplify the rest"),
    Judged(first_lane, lambda: grid().transpose(0, 1).contiguous() * 2.0, "the others", "simplify the rest"),
    Judged(lanes_reversed, lambda: grid().transpose(0, 1).contiguous() * 2.0, "the others", "simplify the rest"),
    Judged(load_from_start, lambda: floats() * 2.0, "the others"),
)


# *** true, for a reason that few see ***

max_and_min_of_ints = playground.law("max_and_min_of_ints", n.maximum(m) + n.minimum(m), n + m)
two_in_a_row = playground.law("two_in_a_row", UPat.of(Ops.MOD, n * (n + 1), 2).eq(0), True)
square_is_not_three = playground.law("square_is_not_three", (n * n).eq(1234567), False)
sine_is_odd = playground.law("sine_is_odd", UPat.of(Ops.SIN, -f), -UPat.of(Ops.SIN, f))
not_at_least = playground.law("not_at_least", (f < g) | (g <= f), f.eq(f) & g.eq(g))


@playground.rule(UPat.of(Ops.AND, UPat.of(Ops.CMPLE, cvar("c", INTS), n), n < d))
def range_check(n: UOp, c: UOp, d: UOp) -> UOp:
    """c <= x and x < d is x - c < d - c without a sign."""
    return (n + -c.arg).cast(dtypes.uint32) < UOp.const(dtypes.uint32, d.arg - c.arg)


@playground.rule(UPat.of(Ops.CMPLT, UPat.of(Ops.CAST, u, dtypes=FLOATS), UPat.of(Ops.CAST, v, dtypes=FLOATS)))
def compare_bytes(u: UOp, v: UOp) -> UOp:
    """Bytes made floats are ordered as they are."""
    return u < v


@playground.rule(
    UPat.of(Ops.CAST, *[UPat.of(Ops.CAST, f, dtypes=(dtypes.float64,)) + UPat.of(Ops.CAST, g)], dtypes=FLOATS)
)
def add_in_float(f: UOp, g: UOp) -> UOp:
    """A sum in twice the bits and two more, rounded again, is the sum."""
    return f + g


@playground.rule(
    UPat.of(Ops.CAST, UPat.of(Ops.CAST, var("w", (dtypes.int16,)), dtypes=FLOATS), name="node", dtypes=(dtypes.int16,))
)
def short_float_short(node: UOp, w: UOp) -> UOp:
    """A float holds 16 bits."""
    return w


@playground.rule(n < c)
def at_most_one_less(n: UOp, c: UOp) -> UOp | None:
    """x < c is x <= c - 1."""
    return n <= c.arg - 1 if c.arg > dtypes.min(dtypes.int32) else None


@playground.rule(UPat.of(Ops.SCAN, n * c, name="scan", more_src=True))
def scan_of_scaled(scan: UOp, n: UOp, c: UOp) -> UOp:
    """cumsum(x * c) is cumsum(x) * c, wrapping."""
    return scan.replace(src=(n, *scan.src[1:])) * c


@playground.rule(UPat.of(Ops.REDUCE, -f, name="reduce", arg=Ops.MIN, more_src=True))
def minimum_of_negated(reduce: UOp, f: UOp) -> UOp:
    """min(-x) is -max(x): both take the later of two equals."""
    return -reduce.replace(src=(f, *reduce.src[1:]), arg=Ops.MAX)


@playground.rule(UPat.of(Ops.STORE, var("place"), f.maximum(0.0), name="store"))
def store_clamped_twice(store: UOp, place: UOp, f: UOp) -> UOp | None:
    """To clamp twice is to clamp once."""
    if f.op is Ops.MAX:
        return None
    return store.replace(src=(place, f.maximum(0.0).maximum(0.0)))


TRUE += (
    Judged(max_and_min_of_ints, lambda: (lambda s, t: s.maximum(t) + s.minimum(t))(ints(), more()), "one is each"),
    Judged(two_in_a_row, lambda: (lambda t: (t * (t + 1)).fmod(2) == 0)(ints()), "one of two is even, wrapping too"),
    Judged(square_is_not_three, lambda: (lambda t: t * t == 1234567)(ints()), "squares are 0, 1 or 4 modulo 8"),
    Judged(sine_is_odd, lambda: (-floats()).sin(), "by definition"),
    Judged(not_at_least, lambda: (lambda s, t: (s < t) | (s >= t))(floats(), others()), "but for NaN"),
    Judged(range_check, lambda: (lambda t: (t >= 200) & (t < 7000))(ints()), "what is less wraps to much"),
    Judged(
        compare_bytes,
        lambda: ints(dtypes.uint8).cast(dtypes.float32) < more(dtypes.uint8).cast(dtypes.float32),
        "exact",
    ),
    Judged(
        add_in_float,
        lambda: (floats().cast(dtypes.float64) + others().cast(dtypes.float64)).cast(dtypes.float32),
        "53 is at least 2 * 24 + 2 (Figueroa 1995)",
    ),
    Judged(short_float_short, lambda: ints(dtypes.int16).cast(dtypes.float32).cast(dtypes.int16), "24 bits hold 16"),
    Judged(at_most_one_less, lambda: ints() < 123457, "c is not the least"),
    Judged(scan_of_scaled, lambda: (ints() * 3).cumsum(), "a ring"),
    Judged(
        int_to_bfloat16,
        lambda: ints().cast(dtypes.float32).cast(dtypes.bfloat16),
        "whatever becomes bfloat16 is rounded to float32 first (`semantics.bfloat16`)",
    ),
    Judged(minimum_of_negated, lambda: (-grid()).min(1), "order turned over"),
    Judged(store_clamped_twice, lambda: floats().maximum(0.0), "NaN and -0 as well"),
)

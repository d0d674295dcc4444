"""SIMPLIFY: arithmetic laws that hold in every kernel.

Laws of integers hold under wrapping; the others are guarded by `is_exact`. Laws of floats hold bit for bit, including
signed zeros, infinities and NaN.
"""

from __future__ import annotations

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.bounds import bounds, is_exact
from tinyexplore.uop.divmod import from_terms, linear_form, quotient, remainder
from tinyexplore.uop.ops import OpGroups, Ops
from tinyexplore.uop.pattern import PatternMatcher, UPat, cvar, law, rule, var
from tinyexplore.uop.semantics import evaluate, wrap
from tinyexplore.uop.uop import UOp, index_const

INTS = (dtypes.bool, *dtypes.ints)
INDEX = (dtypes.index,)

x, y, z = var("x"), var("y"), var("z")
i, j = var("i", INTS), var("j", INTS)
n = var("n", dtypes.ints)
k = var("k", INDEX)
b, p = var("b", (dtypes.bool,)), var("p", (dtypes.bool,))
c, d = cvar("c"), cvar("d")
ci, di = cvar("c", INDEX), cvar("d", INDEX)

add_zero = law("add_zero", n + 0, n)
mul_one = law("mul_one", n * 1, n)
mul_one_float = law("mul_one_float", var("x", dtypes.floats) * 1.0, x, "Exact for every float, NaN included.")
mul_zero = law("mul_zero", n * 0, 0, "Integers only: 0 * inf and 0 * NaN are NaN.")
idiv_one = law("idiv_one", n // 1, n)
mod_one = law("mod_one", n % 1, 0)
fdiv_one = law("fdiv_one", var("x", dtypes.floats) / 1.0, x)
neg_neg = law("neg_neg", UPat.of(Ops.NEG, -x), x)
xor_self = law("xor_self", UPat.of(Ops.XOR, i, i), 0)
and_self = law("and_self", i & i, i)
or_self = law("or_self", i | i, i)
and_true = law("and_true", b & True, b)
and_false = law("and_false", b & False, False)
or_true = law("or_true", b | True, True)
or_false = law("or_false", b | False, b)
where_same = law("where_same", b.where(x, x), x, "The condition decides nothing.")
where_true = law("where_true", UPat.of(Ops.WHERE, True, x, y), x)
where_false = law("where_false", UPat.of(Ops.WHERE, False, x, y), y)
max_self = law("max_self", x.maximum(x), x)
min_self = law("min_self", x.minimum(x), x)
where_where = law("where_where", b.where(b.where(x, y), z), b.where(x, z), "The inner question has the outer's answer.")
less_self = law("less_self", i < i, False)


@rule(UPat.of(OpGroups.ALU, name="node", every=Ops.CONST))
def fold_constants(node: UOp) -> UOp | None:
    """An operation on constants is computed at compile time, by the reference semantics."""
    dtype = node.dtype
    if not isinstance(dtype, DType):
        return None
    source_dtypes = tuple([src.dtype.scalar for src in node.src])
    return UOp.const(dtype, evaluate(node.op, dtype.scalar, *[src.arg for src in node.src], src_dtypes=source_dtypes))


@rule(UPat.of(OpGroups.COMPARE, i, j, name="node"))
def compare_by_bounds(node: UOp) -> UOp | None:
    """If the bounds of both sides do not overlap, they decide the comparison."""
    low, high = bounds(node)
    return UOp.const(node.dtype, bool(low)) if low == high else None


@rule(UPat.of((Ops.MAX, Ops.MIN), i, j, name="node"))
def extremum_by_bounds(node: UOp, i: UOp, j: UOp) -> UOp | None:
    """The maximum or minimum of two integers whose bounds do not overlap is one of them."""
    (a, b), (c, d) = bounds(i), bounds(j)
    if a >= d:
        return i if node.op is Ops.MAX else j
    if c >= b:
        return j if node.op is Ops.MAX else i
    return None


@rule(UPat.of((Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN), c, x, name="node", dtypes=dtypes.ints, in_order=True))
def constant_last(node: UOp, c: UOp, x: UOp) -> UOp | None:
    """A constant operand is moved to the right, where other laws find it."""
    return None if x.op is Ops.CONST else x.alu(node.op, c)


@rule((n + c) + d)
def add_constants(n: UOp, c: UOp, d: UOp) -> UOp:
    """(n + c) + d is n + (c + d), wrapping."""
    return n + UOp.const(c.dtype, wrap(c.arg + d.arg, c.dtype.scalar))


@rule(((var("i", INDEX) + ci) + var("j", INDEX)).named("node"))
def constant_outwards(node: UOp, i: UOp, j: UOp, c: UOp) -> UOp | None:
    """(i + c) + j is (i + j) + c, wrapping.

    Indices that differ by a constant then share the sum i + j, and equal loads are one node. The other terms keep their
    order, as if there were no constant.
    """
    if j.op is Ops.CONST:
        return None
    return (i + j if node.src[1] is j else j + i) + c


@rule((n * c) * d)
def mul_constants(n: UOp, c: UOp, d: UOp) -> UOp:
    """(n * c) * d is n * (c * d), wrapping."""
    return n * UOp.const(c.dtype, wrap(c.arg * d.arg, c.dtype.scalar))


@rule((var("i", INDEX) + var("j", INDEX)) * ci)
def distribute_constant(i: UOp, j: UOp, c: UOp) -> UOp:
    """(i + j) * c is i * c + j * c, so that the rules for indices match sums of products."""
    return i * c + j * c


@rule(UPat.of(Ops.ADD, var("i", INDEX), var("j", INDEX), name="node"))
def collect_terms(node: UOp) -> UOp | None:
    """Terms that differ by a constant factor become one term; the constant goes last."""
    if node.dtype.count > 1:
        return None
    terms, constant, count = linear_form(node)
    if len(terms) + (constant != 0) == count and all(terms.values()):
        return None
    return from_terms(terms, constant)


@rule(UPat.of(Ops.IDIV, k, ci))
def divide_terms(k: UOp, c: UOp) -> UOp | None:
    """Terms that are multiples of the divisor are taken out of the division. Bounds decide the quotient of the rest."""
    low, high = bounds(k)
    if c.arg <= 0 or k.dtype.count > 1 or low < 0 or not is_exact(k):
        return None
    return index_const(0) if high < c.arg else quotient(k, c.arg)


@rule(UPat.of(Ops.MOD, k, ci))
def remainder_of_terms(k: UOp, c: UOp) -> UOp | None:
    """Terms that are multiples of the divisor leave no remainder. Bounds decide the remainder of the rest."""
    low, high = bounds(k)
    if c.arg <= 0 or k.dtype.count > 1 or low < 0 or not is_exact(k):
        return None
    return k if high < c.arg else remainder(k, c.arg)


def _fits(value: int) -> bool:
    return dtypes.min(dtypes.index) <= value <= dtypes.max(dtypes.index)


@rule(UPat.of(Ops.IDIV, UPat.of(Ops.IDIV, k, ci), di))
def divide_twice(k: UOp, c: UOp, d: UOp) -> UOp | None:
    """(k // c) // d is k // (c * d) for positive c and d."""
    if c.arg <= 0 or d.arg <= 0 or not _fits(c.arg * d.arg):
        return None
    return k.alu(Ops.IDIV, UOp.const(k.dtype, c.arg * d.arg))


@rule(UPat.of((Ops.CMPLT, Ops.CMPLE), k + ci, di, name="node"))
def compare_shifted(node: UOp, k: UOp, c: UOp, d: UOp) -> UOp | None:
    """k + c < d is k < d - c if the sum cannot wrap."""
    if node.src[1] is not d or not is_exact(node.src[0]) or not _fits(d.arg - c.arg):
        return None
    return k.alu(node.op, UOp.const(k.dtype, d.arg - c.arg))


@rule(UPat.of((Ops.CMPLT, Ops.CMPLE), ci, k + di, name="node"))
def compare_shifted_right(node: UOp, k: UOp, c: UOp, d: UOp) -> UOp | None:
    """c < k + d is c - d < k if the sum cannot wrap."""
    if not is_exact(node.src[1]) or not _fits(c.arg - d.arg):
        return None
    return UOp.const(k.dtype, c.arg - d.arg).alu(node.op, k)


@rule(UPat.of(Ops.CMPLT, UPat.of(Ops.MUL, k, ci), di))
def compare_scaled(k: UOp, c: UOp, d: UOp) -> UOp | None:
    """k * c < d is k < ceil(d / c) for positive c, if the product cannot wrap."""
    if c.arg <= 0 or not is_exact(k * c):
        return None
    return k.alu(Ops.CMPLT, UOp.const(k.dtype, -(-d.arg // c.arg)))


@rule(UPat.of(Ops.CAST, x, name="node"))
def cast_to_itself(node: UOp, x: UOp) -> UOp | None:
    """A cast to the dtype of its source is the source."""
    return x if node.dtype is x.dtype else None


@rule(UPat.of(Ops.VECTORIZE, name="node"))
def broadcast_constant(node: UOp) -> UOp | None:
    """The same constant in every lane is one vector constant."""
    constant = node.src[0]
    if constant.op is not Ops.CONST or any(src is not constant for src in node.src):
        return None
    return UOp.const(node.dtype, constant.arg)


SIMPLIFY = PatternMatcher(
    (
        fold_constants,
        add_zero,
        mul_one,
        mul_one_float,
        mul_zero,
        idiv_one,
        mod_one,
        fdiv_one,
        neg_neg,
        xor_self,
        and_self,
        or_self,
        and_true,
        and_false,
        or_true,
        or_false,
        where_same,
        where_true,
        where_false,
        where_where,
        max_self,
        min_self,
        less_self,
        compare_by_bounds,
        extremum_by_bounds,
        constant_last,
        add_constants,
        constant_outwards,
        mul_constants,
        distribute_constant,
        collect_terms,
        divide_terms,
        remainder_of_terms,
        divide_twice,
        compare_shifted,
        compare_shifted_right,
        compare_scaled,
        cast_to_itself,
        broadcast_constant,
    ),
    remembers=True,
)

"""FOLDING: laws by which the result of an operation is one of its operands, or a constant, without computation.

Laws that also hold in kernels are taken from SIMPLIFY. As there, laws of floats hold bit for bit: x + 0.0 is not x,
because -0.0 + 0.0 is 0.0.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from tinyexplore.dtype import ConstType, DType, dtypes
from tinyexplore.uop import algebra
from tinyexplore.uop.algebra import INTS
from tinyexplore.uop.ops import Ops
from tinyexplore.uop.pattern import PatternMatcher, UPat, cvar, law, rule, var
from tinyexplore.uop.semantics import evaluate, wrap
from tinyexplore.uop.uop import UOp

x = var("x")
i = var("i", INTS)
n = var("n", dtypes.ints)
f = var("f", dtypes.floats)
b = var("b", (dtypes.bool,))

add_false = law("add_false", b + False, b, "Of bools, ADD is or.")
add_true = law("add_true", b + True, True)
mul_true = law("mul_true", b * True, b, "Of bools, MUL is and.")
mul_false = law("mul_false", b * False, False)
and_zero = law("and_zero", n & 0, 0)
or_zero = law("or_zero", n | 0, n)
xor_zero = law("xor_zero", i ^ 0, i)
shl_zero = law("shl_zero", UPat.of(Ops.SHL, n, 0), n)
shr_zero = law("shr_zero", UPat.of(Ops.SHR, n, 0), n)
max_least = law("max_least", f.maximum(-math.inf), f, "NaN stays NaN.")
min_greatest = law("min_greatest", f.minimum(math.inf), f, "NaN stays NaN.")
less_than_least = law("less_than_least", f < -math.inf, False, "NaN is less than nothing.")
greater_than_greatest = law("greater_than_greatest", UPat.of(Ops.CMPLT, math.inf, f), False)
pow_one = law("pow_one", UPat.of(Ops.POW, f, 1.0), f)
pow_zero = law("pow_zero", UPat.of(Ops.POW, f, 0.0), 1, "Of NaN, too.")
is_true = law("is_true", b.eq(True), b)
is_not_false = law("is_not_false", b.ne(False), b)
not_not = law("not_not", b.eq(False).eq(False), b)


@rule(f + cvar("c"))
def add_minus_zero(f: UOp, c: UOp) -> UOp | None:
    """x + -0.0 is x for every float. (x + 0.0 is not: -0.0 would become 0.0.)"""
    return f if c.arg == 0 and math.copysign(1.0, c.arg) < 0 else None


def _all_ones(dtype: DType) -> int:
    return wrap(-1, dtype.scalar)


@rule((n & cvar("c")).named("node"))
def and_ones(node: UOp, n: UOp, c: UOp) -> UOp | None:
    """x & c is x if every bit of c is set."""
    return n if c.arg == _all_ones(c.dtype) else None


@rule((n | cvar("c")).named("node"))
def or_ones(node: UOp, n: UOp, c: UOp) -> UOp | None:
    """x | c is c if every bit of c is set."""
    return c if c.arg == _all_ones(c.dtype) else None


@rule((n ^ cvar("c")) ^ cvar("d"))
def xor_constants(n: UOp, c: UOp, d: UOp) -> UOp | None:
    """(x ^ c) ^ c is x."""
    return n if c.arg == d.arg else None


@rule((n + cvar("c")) + cvar("d"))
def add_opposites(n: UOp, c: UOp, d: UOp) -> UOp | None:
    """(x + c) + d is x if c + d is 0, wrapping."""
    return n if wrap(c.arg + d.arg, c.dtype.scalar) == 0 else None


TENSOR_LAWS = PatternMatcher(
    (
        add_false,
        add_true,
        add_minus_zero,
        add_opposites,
        mul_true,
        mul_false,
        and_zero,
        and_ones,
        or_zero,
        or_ones,
        xor_zero,
        xor_constants,
        shl_zero,
        shr_zero,
        max_least,
        min_greatest,
        less_than_least,
        greater_than_greatest,
        pow_one,
        pow_zero,
        is_true,
        is_not_false,
        not_not,
    )
)

FOLDING = (
    PatternMatcher(
        (
            algebra.fold_constants,
            algebra.add_zero,
            algebra.mul_one,
            algebra.mul_one_float,
            algebra.mul_zero,
            algebra.idiv_one,
            algebra.mod_one,
            algebra.fdiv_one,
            algebra.neg_neg,
            algebra.xor_self,
            algebra.and_self,
            algebra.or_self,
            algebra.and_true,
            algebra.and_false,
            algebra.or_true,
            algebra.or_false,
            algebra.where_same,
            algebra.where_true,
            algebra.where_false,
            algebra.max_self,
            algebra.min_self,
            algebra.less_self,
            algebra.compare_by_bounds,
            algebra.extremum_by_bounds,
        )
    )
    + TENSOR_LAWS
)

Outcome = tuple[str, int | None, Any]  # (name of the law, number of the operand or None for a constant, the constant)


@lru_cache(4096)
def outcome(op: Ops, dtype: DType, sources: tuple[Any, ...]) -> Outcome | None:
    """Returns the known result of `op` on `sources`, by one law of the table; None if it must be computed.

    A source is one of:
    (dtype, number): an operand without known properties.
    (dtype, None, text of the value, value): a constant. The text distinguishes 0.0 and -0.0, which are equal in Python.
    (dtype, op, sources): an operation.
    """
    node = UOp(op, dtype, tuple([_build_expression(source) for source in sources]))
    rewritten = FOLDING.rewrite(node)
    if rewritten is None:
        return None
    law, result = rewritten
    if result.op is Ops.CONST:
        return law.name, None, result.arg
    if result.op is Ops.DEFINE_VAR:
        return law.name, int(result.arg[0]), None
    return None


def _build_expression(source: tuple[Any, ...]) -> UOp:
    dtype, op_or_number = source[:2]
    if op_or_number is None:
        return UOp.const(dtype, source[3])
    if isinstance(op_or_number, Ops):
        return UOp(op_or_number, dtype, tuple([_build_expression(operand) for operand in source[2]]))
    lowest, highest = (0, 0) if dtypes.is_float(dtype) else (int(dtypes.min(dtype)), int(dtypes.max(dtype)))
    return UOp(Ops.DEFINE_VAR, dtype, (), (str(op_or_number), lowest, highest))


def reduced_constant(op: Ops, dtype: DType, value: ConstType, count: int) -> ConstType:
    """Reduces `count` (at least 1) copies of `value` by `op` (ADD, MUL, MAX or MIN), and rounds once."""
    if op in (Ops.MAX, Ops.MIN) or count == 1 or dtype is dtypes.bool:
        return value
    if not isinstance(value, float):
        number = int(value)
        return wrap(number * count, dtype) if op is Ops.ADD else wrap(pow(number, count, 1 << 64), dtype)
    try:
        result = value * count if op is Ops.ADD else value**count
    except OverflowError:
        result = math.copysign(math.inf, value if count % 2 or op is Ops.ADD else 1.0)
    return evaluate(Ops.CAST, dtype, result, src_dtypes=(dtypes.float64,))

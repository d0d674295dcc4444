"""Pass "logistic functions": computes quotients by 1 + exp(x), and 1 + tanh(x), as one function on devices without exp.

As one function they are shorter than their parts, and 1 + tanh(x) does not cancel if tanh(x) is near -1. Sigmoid, silu
and gelu use them. The rewrite of a function depends on all its readers, which a pattern of one node does not see.
"""

from __future__ import annotations

from math import log
from typing import Any

from tinyexplore.codegen.lowering import Lowering
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.parts import as_float, is_native, scales
from tinyexplore.uop.transcendental import exp2_by_table, exp_by_table, exp_parts
from tinyexplore.uop.uop import ops_mask

FUNCTIONS = ops_mask((Ops.EXP, Ops.TANH))
HALF_EXPONENT = 126  # the biased exponent of 1/2
# limits at which half of 2**n has the exponents of 0 and of infinity; for 2**n itself they are lower by ln 2
MIN_EXPONENT, MAX_EXPONENT = -87.3, 89.3
LN2 = log(2.0)
EXP_LIMIT = 104.0  # exp(x) and its half are 0 below -FAR, infinite above FAR
EXP2_LIMIT = 151.0  # the same for 2**x
LARGEST_FINITE = 3e38
SMALLEST_FACTOR, LARGEST_FACTOR = 2.0**-10, 2.0**10  # the range in which float32 constants keep all their digits

Users = dict[UOp, list[UOp]]
Changes = dict[UOp, UOp]


def fuse_logistic(sink: UOp, lowering: Lowering) -> UOp:
    """Computes quotients by 1 + exp(x), and 1 + tanh(x), as one function: with h(x) = (1 + exp(x)) / 2.

        y / (1 + exp(x))  →  (y / 2) / h(x)
        1 + tanh(x)       →  1 / h(-2x)

    1 - tanh(x)² is then exp(-2x) s² with s = 1 + tanh(x). If nothing else reads the sum, y (1 + tanh(x)) is y / h(-2x),
    and half of it is y / (1 + exp(-2x)). The rewrite applies only if no tanh, and no exp, would remain beside it.
    """
    while (fused := fuse_one_plus_exp(sink, lowering.function_target)) is not None:
        sink = fused
    return sink


def fuse_one_plus_exp(sink: UOp, ctx: Any) -> UOp | None:
    """Takes one step of the rewrite; None if nothing changes. `ctx`: the target, or an object with its attributes."""
    if not sink.mask & FUNCTIONS:
        return None
    functions = sink.toposort(FUNCTIONS)
    users: Users = {}
    for node in functions:
        for src in dict.fromkeys(node.src):
            users.setdefault(src, []).append(node)
    changes: Changes = {}
    for node in functions:
        if node.dtype.scalar is not dtypes.float32 or is_native(ctx, node.dtype, Ops.EXP):
            continue
        if node.op is Ops.TANH:
            changes.update(_replace_tanh(node, users, changes, ctx))
        elif node.op is Ops.FDIV and _is_one_plus_exp(node.src[1], users):
            (exp,) = (src for src in node.src[1].src if src.op is Ops.EXP)
            half_exp = half_of_exp(exp.src[0], 1.0, changes, ctx)
            changes[node] = _apply_changes(node.src[0], changes) * 0.5 / (half_exp + 0.5)
    return sink.substitute(changes, how="by exp alone") if changes else None


def half_of_exp(x: UOp, factor: float, changes: Changes, ctx: Any, *, is_whole: bool = False) -> UOp:
    """Returns exp(factor x) / 2 (`is_whole`: exp(factor x)) within 1.2 ulp; 0 or infinite near the ends of the range.

    The half has a larger range: 2**128 is no float32. If `x` is a product with a constant, the constant is merged into
    the factor. If the constants in `x` absorb the factor and log2(e) as well, the result is a power of two, whose whole
    part is subtracted by additions alone. `x` has been rounded several times by then, and the constants add no more
    error.
    """
    while (constant := _split_constant_factor(x)) is not None:
        inner, merged_factor = constant
        if not SMALLEST_FACTOR <= abs(factor * merged_factor) <= LARGEST_FACTOR:
            break
        x, factor = inner, factor * merged_factor
    x = _apply_changes(x, changes)
    by_table = scales(ctx, x.dtype)
    if by_table and (power := _multiply_into(x, factor / LN2)) is not None:
        return exp2_by_table(power.maximum(-EXP2_LIMIT).minimum(EXP2_LIMIT), 1.0 if is_whole else 0.5)
    ends = (-EXP_LIMIT, EXP_LIMIT) if by_table else (MIN_EXPONENT - is_whole * LN2, MAX_EXPONENT - is_whole * LN2)
    low, high = sorted(bound / factor for bound in ends)
    x = x.maximum(low).minimum(high)  # NaN stays
    if by_table:
        return exp_by_table(x, factor, 1.0 if is_whole else 0.5)
    value, n_bits = exp_parts(x, factor, HALF_EXPONENT + is_whole)
    return value * as_float(n_bits << 23)


def _replace_tanh(tanh: UOp, users: Users, changes: Changes, ctx: Any) -> Changes:
    """Returns the replacements of all readers of `tanh`; empty if some reader uses it in another way."""
    sums = [user for user in users[tanh] if _is_one_plus(user, tanh)]
    squares = [user for user in users[tanh] if user.op is Ops.MUL and user.src == (tanh, tanh)]
    if len(sums) + len(squares) < len(users[tanh]):
        return {}
    slopes = []
    for square in squares:
        for negated in users[square]:
            if negated.op is not Ops.NEG or not all(_is_one_plus(user, negated) for user in users[negated]):
                return {}
            slopes += users[negated]
    if len(sums) == 1 and not slopes and len(users[sums[0]]) == 1:
        (product,) = users[sums[0]]
        other_factors = [src for src in product.src if src is not sums[0]]
        if product.op is Ops.MUL and len(other_factors) == 1 and product.ranges == sums[0].ranges:
            halved = _split_constant_factor(other_factors[0])
            if halved is not None and halved[1] == 0.5:
                denominator = half_of_exp(tanh.src[0], -2.0, changes, ctx, is_whole=True) + 1.0
                return {product: _apply_changes(halved[0], changes) / denominator}
            half_denominator = half_of_exp(tanh.src[0], -2.0, changes, ctx) + 0.5
            return {product: _apply_changes(other_factors[0], changes) / half_denominator}
    half_exp = half_of_exp(tanh.src[0], -2.0, changes, ctx)
    half_denominator = half_exp + 0.5
    half_reciprocal = UOp.const(tanh.dtype, 1.0) / half_denominator
    # 0 times infinity would be NaN
    slope = half_exp.minimum(LARGEST_FINITE) * half_reciprocal * (half_reciprocal + half_reciprocal)
    return {**dict.fromkeys(sums, half_reciprocal), **dict.fromkeys(slopes, slope)}


def _is_one_plus_exp(node: UOp, users: Users) -> bool:
    """Whether this is 1 + exp(x) that is only a divisor, and whose exp has no other reader."""
    if not all(user.op is Ops.FDIV and user.src[1] is node and user.src[0] is not node for user in users[node]):
        return False
    return any(src.op is Ops.EXP and len(users[src]) == 1 and _is_one_plus(node, src) for src in node.src)


def _is_one_plus(node: UOp, x: UOp) -> bool:
    if node.op is not Ops.ADD:
        return False
    addend = node.src[node.src[0] is x]
    return x in node.src and addend.op is Ops.CONST and addend.arg == 1


def _split_constant_factor(x: UOp) -> tuple[UOp, float] | None:
    """Returns y and c if x is y c; else None."""
    if x.op is Ops.NEG:
        return x.src[0], -1.0
    if x.op is Ops.MUL:
        for constant, factor in (x.src, x.src[::-1]):
            if constant.op is Ops.CONST:
                return factor, constant.arg
    return None


def _multiply_into(x: UOp, factor: float) -> UOp | None:
    """Returns x times `factor` without an additional operation, if x is y (a + b z²) with constants a, b of one sign.

    A sum that may cancel is excluded: the rounding of its constants would exceed that of the sum.
    """
    if x.op is not Ops.MUL:
        return None
    for y, total in (x.src, x.src[::-1]):
        if total.op is not Ops.ADD:
            continue
        for a, term in (total.src, total.src[::-1]):
            if a.op is not Ops.CONST or (factors := _split_constant_factor(term)) is None:
                continue
            square, b = factors
            if square.op is Ops.MUL and square.src[0] is square.src[1] and a.arg * b > 0:
                return y * (square * (b * factor) + a.arg * factor)
    return None


def _apply_changes(x: UOp, changes: Changes) -> UOp:
    return x.substitute(changes) if changes and x.mask & FUNCTIONS else x


__all__ = ["fuse_logistic", "fuse_one_plus_exp"]

"""Division and remainder of index arithmetic, taken apart term by term.

Everything here is floor division; it agrees with the truncating IDIV and MOD wherever the dividend is not negative.
"""

from __future__ import annotations

from math import gcd

from tinyexplore.dtype import dtypes
from tinyexplore.uop.bounds import bounds
from tinyexplore.uop.ops import Ops
from tinyexplore.uop.semantics import wrap
from tinyexplore.uop.uop import UOp, index_const, sum_of


def linear_terms(expr: UOp) -> tuple[dict[UOp, int], int]:
    """`expr` as a sum of distinct nodes times whole factors, and a constant."""
    terms: dict[UOp, int] = {}
    constant = 0
    stack = [(expr, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.ADD:
            stack.append((node.src[1], factor))
            stack.append((node.src[0], factor))
        elif node.op is Ops.CONST:
            constant += node.arg * factor
        elif node.op is Ops.MUL and node.src[1].op is Ops.CONST:
            stack.append((node.src[0], factor * node.src[1].arg))
        elif node.op is Ops.MUL and node.src[0].op is Ops.CONST:
            stack.append((node.src[1], factor * node.src[0].arg))
        else:
            terms[node] = terms.get(node, 0) + factor
    return terms, constant


def from_terms(terms: dict[UOp, int], constant: int) -> UOp:
    """The sum written out: terms in the order found, the constant last, nothing for a factor of 0."""
    parts = [node if factor == 1 else node * _const(factor) for node, factor in terms.items() if factor]
    if constant or not parts:
        parts.append(_const(constant))
    return sum_of(parts)


def _const(value: int) -> UOp:
    """`value` in the index type, wrapping."""
    return index_const(value if -(1 << 62) < value < 1 << 62 else wrap(value, dtypes.index))


def floor_divide(expr: UOp, divisor: int) -> tuple[UOp, UOp] | None:
    """(quotient, remainder) without a division on what need not be divided; None where nothing can be taken out."""
    if divisor == 1:
        return expr, index_const(0)
    terms, constant = linear_terms(expr)
    whole = {node: factor // divisor for node, factor in terms.items() if factor % divisor == 0}
    rest = {node: factor for node, factor in terms.items() if factor % divisor}
    whole_constant, rest_constant = divmod(constant, divisor)
    remainder = from_terms(rest, rest_constant)
    low, high = bounds(remainder)
    if low // divisor == high // divisor:
        shift = low // divisor
        return from_terms(whole, whole_constant + shift), from_terms(rest, rest_constant - shift * divisor)
    if low < 0:  # what is divided by IDIV must not be negative: take fewer whole divisors out
        shift = low // divisor
        whole_constant += shift
        rest_constant -= shift * divisor
        remainder = from_terms(rest, rest_constant)
    # a common factor of the divisor and of every remaining term: divide both by it
    common = divisor
    for factor in rest.values():
        common = gcd(common, factor)
    if common > 1:
        small = from_terms({node: factor // common for node, factor in rest.items()}, rest_constant // common)
        quotient, inner = divide(small, divisor // common)
        left_over = rest_constant % common
        quotient = from_terms(whole, whole_constant) + quotient if whole or whole_constant else quotient
        scaled = inner * index_const(common)
        return quotient, scaled + index_const(left_over) if left_over else scaled
    if not whole and not whole_constant:
        return None
    quotient, inner = divide(remainder, divisor)
    return from_terms(whole, whole_constant) + quotient, inner


def divide(expr: UOp, divisor: int) -> tuple[UOp, UOp]:
    """(quotient, remainder) of an index; exact for every value of `expr` that is not negative.

    For a negative value only what is taken out whole is exact; such values occur where a padded read is not valid.
    """
    found = floor_divide(expr, divisor)
    if found is not None:
        return found
    by = index_const(divisor)
    return expr.alu(Ops.IDIV, by), expr.alu(Ops.MOD, by)

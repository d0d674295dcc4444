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
    terms, constant, _ = linear_form(expr)
    return dict(terms), constant


def linear_form(expr: UOp) -> tuple[dict[UOp, int], int, int]:
    """As `linear_terms`, and of how many terms the sum is written: what is known of the node, not to be changed."""
    pending = []
    while expr.op is Ops.ADD and expr._linear is None:
        pending.append(expr)
        expr = expr.src[0]
    form = expr._linear or _one_term(expr)
    while pending:
        node = pending.pop()
        form = node._linear = _added(form, linear_form(node.src[1]))
    return form


def _one_term(node: UOp) -> tuple[dict[UOp, int], int, int]:
    factor = 1
    while node.op is Ops.MUL:
        left, right = node.src
        if right.op is Ops.CONST:
            node, factor = left, factor * right.arg
        elif left.op is Ops.CONST:
            node, factor = right, factor * left.arg
        else:
            break
    if node.op is Ops.CONST:
        return {}, node.arg * factor, 1
    if node.op is Ops.ADD:
        terms, constant, _ = linear_form(node)
        return {term: times * factor for term, times in terms.items()}, constant * factor, 1
    return {node: factor}, 0, 1


def _added(
    left: tuple[dict[UOp, int], int, int], right: tuple[dict[UOp, int], int, int]
) -> tuple[dict[UOp, int], int, int]:
    terms = left[0]
    if right[0]:
        terms = dict(terms)
        for term, factor in right[0].items():
            terms[term] = terms.get(term, 0) + factor
    return terms, left[1] + right[1], left[2] + right[2]


def from_terms(terms: dict[UOp, int], constant: int) -> UOp:
    """The sum written out: terms in the order found, the constant last, nothing for a factor of 0."""
    parts = [node if factor == 1 else node * wrapped_index(factor) for node, factor in terms.items() if factor]
    if constant or not parts:
        parts.append(wrapped_index(constant))
    return sum_of(parts)


def wrapped_index(value: int) -> UOp:
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

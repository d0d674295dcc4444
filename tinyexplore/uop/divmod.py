"""Simplifies division and remainder of index arithmetic, term by term.

All divisions here round down. They agree with the truncating IDIV and MOD if the dividend is not negative.
"""

from __future__ import annotations

from math import gcd

from tinyexplore.dtype import dtypes
from tinyexplore.uop.bounds import bounds, limits
from tinyexplore.uop.ops import Ops
from tinyexplore.uop.semantics import wrap
from tinyexplore.uop.uop import UOp, index_const, make_uop

SUMS = frozenset((Ops.ADD, Ops.MUL))
Sum = tuple[dict[UOp, int], int]  # (distinct nodes with integer factors, a constant)
Parts = tuple[Sum, Sum, int, int]
Form = tuple[dict[UOp, int], int, int]  # the same, and the number of terms in the written sum


def linear_terms(expr: UOp) -> Sum:
    """Returns `expr` as a sum of distinct nodes with integer factors, and a constant."""
    terms, constant, _ = linear_form(expr)
    return dict(terms), constant


def linear_form(expr: UOp) -> Form:
    """Returns `linear_terms`, and the number of terms in the written sum. The result is cached: do not change it."""
    pending = []
    while expr.op is Ops.ADD and expr._linear is None:
        pending.append(expr)
        expr = expr.src[0]
    form = expr._linear or _add_term({}, 0, 0, expr)
    while pending:
        node = pending.pop()
        form = node._linear = _add_term(*form, node.src[1])
    return form


def _add_term(terms: dict[UOp, int], constant: int, count: int, added: UOp) -> Form:
    """Returns the form of a sum plus `added`, given the form of the sum."""
    node, factor = added, 1
    while node.op is Ops.MUL:
        first_factor, second_factor = node.src
        if second_factor.op is Ops.CONST:
            node, factor = first_factor, factor * second_factor.arg
        elif first_factor.op is Ops.CONST:
            node, factor = second_factor, factor * first_factor.arg
        else:
            break
    if node.op is Ops.CONST:
        return terms, constant + node.arg * factor, count + 1
    terms = terms.copy()
    if node.op is not Ops.ADD:
        terms[node] = terms.get(node, 0) + factor
        return terms, constant, count + 1
    added_terms, offset, number = linear_form(node)
    for term, times in added_terms.items():
        terms[term] = terms.get(term, 0) + times * factor
    return terms, constant + offset * factor, count + (number if node is added else 1)


def from_terms(terms: dict[UOp, int], constant: int) -> UOp:
    """Returns the sum as a UOp: terms in their order without those of factor 0, the constant last."""
    total: UOp | None = None
    for node, factor in terms.items():
        if factor:
            term = node if factor == 1 else make_uop(Ops.MUL, node.dtype, (node, wrapped_index(factor)))
            total = term if total is None else make_uop(Ops.ADD, total.dtype, (total, term))
    if total is None:
        return wrapped_index(constant)
    return make_uop(Ops.ADD, total.dtype, (total, wrapped_index(constant))) if constant else total


def wrapped_index(value: int) -> UOp:
    """Returns `value` wrapped to the range of the index dtype."""
    return index_const(value if -(1 << 62) < value < 1 << 62 else wrap(value, dtypes.index))


def quotient(expr: UOp, divisor: int) -> UOp | None:
    """Returns `expr` // `divisor` with only the necessary division; None if no term can be taken out."""
    return None if _is_indivisible(expr, divisor) else _make_quotient(_split_multiples(expr, divisor), divisor)


def remainder(expr: UOp, divisor: int) -> UOp | None:
    """Returns `expr` % `divisor` of only the terms that leave a remainder; None if no term can be taken out."""
    return None if _is_indivisible(expr, divisor) else _make_remainder(_split_multiples(expr, divisor), divisor)


def _is_indivisible(expr: UOp, divisor: int) -> bool:
    """Whether `expr` is a single term whose bounds are on both sides of a multiple of `divisor`: a fast path for the
    usual case."""
    low, high = bounds(expr)
    return expr.op not in SUMS and low >= 0 and low // divisor != high // divisor


def divide(expr: UOp, divisor: int) -> tuple[UOp, UOp]:
    """Returns quotient and remainder of an index, exact for every nonnegative value of `expr`.

    For a negative value only the terms that are taken out are exact. Negative values occur in padded reads that are
    masked.
    """
    if divisor == 1:
        return expr, index_const(0)
    parts = _split_multiples(expr, divisor)
    return _use_operation_if_none(_make_quotient(parts, divisor), Ops.IDIV, expr, divisor), _use_operation_if_none(
        _make_remainder(parts, divisor), Ops.MOD, expr, divisor
    )


def _split_multiples(expr: UOp, divisor: int) -> Parts | None:
    """Splits `expr` into (whole, rest, common, left over) with expr = whole * divisor + rest * common + left over.

    Here left over < `common`, and `common` divides the divisor and every term of the original rest. It is 0 if
    the rest needs no division. None if the index dtype cannot represent every value of the rest, because its
    quotient would be wrong after wrapping.
    """
    terms, constant, _ = linear_form(expr)
    multiples: dict[UOp, int] = {}
    remaining: dict[UOp, int] = {}
    for node, factor in terms.items():
        if factor % divisor:
            remaining[node] = factor
        else:
            multiples[node] = factor // divisor
    whole_constant, rest_constant = divmod(constant, divisor)
    low, high = _compute_interval(remaining, rest_constant)
    shift = low // divisor
    if shift == high // divisor:
        return (multiples, whole_constant + shift), (remaining, rest_constant - shift * divisor), 0, 0
    if shift < 0:  # the dividend of IDIV must not be negative, so take out fewer whole divisors
        whole_constant += shift
        rest_constant -= shift * divisor
    lowest, highest = limits(dtypes.index)
    if low < lowest or high - min(shift, 0) * divisor > highest:
        return None
    # the divisor and every remaining term have a common factor: divide both by it
    common = gcd(divisor, *remaining.values())
    if common > 1:
        remaining = {node: factor // common for node, factor in remaining.items()}
    return (multiples, whole_constant), (remaining, rest_constant // common), common, rest_constant % common


def _compute_interval(terms: dict[UOp, int], constant: int) -> tuple[int, int]:
    """Returns the least and the greatest value of a sum, before wrapping."""
    low = high = constant
    for node, factor in terms.items():
        lowest, highest = bounds(node)
        low += factor * (lowest if factor > 0 else highest)
        high += factor * (highest if factor > 0 else lowest)
    return low, high


def _find_bounds_of(terms: dict[UOp, int], constant: int) -> tuple[int, int]:
    """Returns the bounds of `from_terms(terms, constant)`, without building it."""
    low, high = _compute_interval(terms, constant)
    lowest, highest = limits(dtypes.index)
    return (low, high) if lowest <= low and high <= highest else (lowest, highest)


def _make_quotient(parts: Parts | None, divisor: int) -> UOp | None:
    """Builds the quotient from the split sum; None if nothing can be taken out of the division."""
    if parts is None:
        return None
    multiples, remaining, common, _ = parts
    if not common:
        return from_terms(*multiples)
    has_multiples = bool(multiples[0]) or multiples[1] != 0
    dividend, divisor = from_terms(*remaining), divisor // common
    digits = _split_digits(*remaining, divisor) if common == 1 else None
    if digits is not None:
        dividend, _, unit = digits
        divisor //= unit
    elif common == 1 and not has_multiples:
        return None
    result = (
        dividend if divisor == 1 else _use_operation_if_none(quotient(dividend, divisor), Ops.IDIV, dividend, divisor)
    )
    return from_terms(*multiples) + result if has_multiples else result


def _make_remainder(parts: Parts | None, divisor: int) -> UOp | None:
    """Builds the remainder from the split sum; None if nothing can be taken out of the division."""
    if parts is None:
        return None
    multiples, remaining, common, left_over = parts
    if not common:
        return from_terms(*remaining)
    dividend, divisor = from_terms(*remaining), divisor // common
    digits = _split_digits(*remaining, divisor) if common == 1 else None
    if digits is not None:
        high, low, unit = digits
        unit_count = divisor // unit
        if unit_count == 1:
            return low
        return _use_operation_if_none(remainder(high, unit_count), Ops.MOD, high, unit_count) * index_const(unit) + low
    if common == 1 and not multiples[0] and not multiples[1]:
        return None
    result = _use_operation_if_none(remainder(dividend, divisor), Ops.MOD, dividend, divisor)
    if common > 1:
        result = result * index_const(common)
    return result + index_const(left_over) if left_over else result


def _split_digits(terms: dict[UOp, int], constant: int, divisor: int) -> tuple[UOp, UOp, int] | None:
    """Splits a sum into (high, low, unit): high * unit + low, where unit divides the divisor and 0 <= low < unit.

    Then only high is divided: the row of (row * 48 + column) // 96 is row // 2. None if there are no such parts, or
    high may be negative.
    """
    order = sorted(terms, key=lambda node: abs(terms[node]))
    unit = divisor
    for number in range(len(order) - 1, 0, -1):
        unit = gcd(unit, terms[order[number]])
        if unit == 1:
            return None
        low = {node: terms[node] for node in order[:number]}
        lowest, highest = _find_bounds_of(low, constant % unit)
        if lowest < 0 or highest >= unit:
            continue
        high = {node: terms[node] // unit for node in order[number:]}
        if _find_bounds_of(high, constant // unit)[0] < 0:
            return None
        return from_terms(high, constant // unit), from_terms(low, constant % unit), unit
    return None


def _use_operation_if_none(simpler: UOp | None, op: Ops, expr: UOp, divisor: int) -> UOp:
    """Returns `simpler`, or the operation itself if `simpler` is None."""
    return expr.alu(op, index_const(divisor)) if simpler is None else simpler

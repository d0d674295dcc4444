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
    form = expr._linear or _with_term({}, 0, 0, expr)
    while pending:
        node = pending.pop()
        form = node._linear = _with_term(*form, node.src[1])
    return form


def _with_term(terms: dict[UOp, int], constant: int, count: int, added: UOp) -> Form:
    """Returns the form of a sum plus `added`, given the form of the sum."""
    node, factor = added, 1
    while node.op is Ops.MUL:
        left, right = node.src
        if right.op is Ops.CONST:
            node, factor = left, factor * right.arg
        elif left.op is Ops.CONST:
            node, factor = right, factor * left.arg
        else:
            break
    if node.op is Ops.CONST:
        return terms, constant + node.arg * factor, count + 1
    terms = terms.copy()
    if node.op is not Ops.ADD:
        terms[node] = terms.get(node, 0) + factor
        return terms, constant, count + 1
    more, offset, number = linear_form(node)
    for term, times in more.items():
        terms[term] = terms.get(term, 0) + times * factor
    return terms, constant + offset * factor, count + (number if node is added else 1)


def from_terms(terms: dict[UOp, int], constant: int) -> UOp:
    """Returns the sum as a UOp: terms in their order without those of factor 0, the constant last."""
    total: UOp | None = None
    for node, factor in terms.items():
        if factor:
            part = node if factor == 1 else make_uop(Ops.MUL, node.dtype, (node, wrapped_index(factor)))
            total = part if total is None else make_uop(Ops.ADD, total.dtype, (total, part))
    if total is None:
        return wrapped_index(constant)
    return make_uop(Ops.ADD, total.dtype, (total, wrapped_index(constant))) if constant else total


def wrapped_index(value: int) -> UOp:
    """Returns `value` wrapped to the range of the index dtype."""
    return index_const(value if -(1 << 62) < value < 1 << 62 else wrap(value, dtypes.index))


def quotient(expr: UOp, divisor: int) -> UOp | None:
    """Returns `expr` // `divisor` with only the necessary division; None if no term can be taken out."""
    return None if _is_indivisible(expr, divisor) else _quotient(_split_multiples(expr, divisor), divisor)


def remainder(expr: UOp, divisor: int) -> UOp | None:
    """Returns `expr` % `divisor` of only the terms that leave a remainder; None if no term can be taken out."""
    return None if _is_indivisible(expr, divisor) else _remainder(_split_multiples(expr, divisor), divisor)


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
    return _or_operation(_quotient(parts, divisor), Ops.IDIV, expr, divisor), _or_operation(
        _remainder(parts, divisor), Ops.MOD, expr, divisor
    )


def _split_multiples(expr: UOp, divisor: int) -> Parts | None:
    """Splits `expr` into (whole, rest, common, left over) with expr = whole * divisor + rest * common + left over.

    Here left over < `common`, and `common` divides the divisor and every term of the original rest. It is 0 if the rest
    (times 1) is below the divisor. None if the index dtype cannot represent every value of the rest, because its
    quotient would be wrong after wrapping.
    """
    terms, constant, _ = linear_form(expr)
    whole: dict[UOp, int] = {}
    rest: dict[UOp, int] = {}
    for node, factor in terms.items():
        if factor % divisor:
            rest[node] = factor
        else:
            whole[node] = factor // divisor
    whole_constant, rest_constant = divmod(constant, divisor)
    low, high = _interval(rest, rest_constant)
    shift = low // divisor
    if shift == high // divisor:
        return (whole, whole_constant + shift), (rest, rest_constant - shift * divisor), 0, 0
    if shift < 0:  # the dividend of IDIV must not be negative, so take out fewer whole divisors
        whole_constant += shift
        rest_constant -= shift * divisor
    least, greatest = limits(dtypes.index)
    if low < least or high - min(shift, 0) * divisor > greatest:
        return None
    # the divisor and every remaining term have a common factor: divide both by it
    common = gcd(divisor, *rest.values())
    if common > 1:
        rest = {node: factor // common for node, factor in rest.items()}
    return (whole, whole_constant), (rest, rest_constant // common), common, rest_constant % common


def _interval(terms: dict[UOp, int], constant: int) -> tuple[int, int]:
    """Returns the least and the greatest value of a sum, before wrapping."""
    low = high = constant
    for node, factor in terms.items():
        least, greatest = bounds(node)
        low += factor * (least if factor > 0 else greatest)
        high += factor * (greatest if factor > 0 else least)
    return low, high


def _bounds_of(terms: dict[UOp, int], constant: int) -> tuple[int, int]:
    """Returns the bounds of `from_terms(terms, constant)`, without building it."""
    low, high = _interval(terms, constant)
    least, greatest = limits(dtypes.index)
    return (low, high) if least <= low and high <= greatest else (least, greatest)


def _quotient(parts: Parts | None, divisor: int) -> UOp | None:
    if parts is None:
        return None
    whole, rest, common, _ = parts
    if not common:
        return from_terms(*whole)
    has_whole = bool(whole[0]) or whole[1] != 0
    small, divisor = from_terms(*rest), divisor // common
    digits = _digits(*rest, divisor) if common == 1 else None
    if digits is not None:
        small, _, unit = digits
        divisor //= unit
    elif common == 1 and not has_whole:
        return None
    result = small if divisor == 1 else _or_operation(quotient(small, divisor), Ops.IDIV, small, divisor)
    return from_terms(*whole) + result if has_whole else result


def _remainder(parts: Parts | None, divisor: int) -> UOp | None:
    if parts is None:
        return None
    whole, rest, common, left_over = parts
    if not common:
        return from_terms(*rest)
    small, divisor = from_terms(*rest), divisor // common
    digits = _digits(*rest, divisor) if common == 1 else None
    if digits is not None:
        high, low, unit = digits
        unit_count = divisor // unit
        if unit_count == 1:
            return low
        return _or_operation(remainder(high, unit_count), Ops.MOD, high, unit_count) * index_const(unit) + low
    if common == 1 and not whole[0] and not whole[1]:
        return None
    result = _or_operation(remainder(small, divisor), Ops.MOD, small, divisor)
    if common > 1:
        result = result * index_const(common)
    return result + index_const(left_over) if left_over else result


def _digits(terms: dict[UOp, int], constant: int, divisor: int) -> tuple[UOp, UOp, int] | None:
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
        least, greatest = _bounds_of(low, constant % unit)
        if least < 0 or greatest >= unit:
            continue
        high = {node: terms[node] // unit for node in order[number:]}
        if _bounds_of(high, constant // unit)[0] < 0:
            return None
        return from_terms(high, constant // unit), from_terms(low, constant % unit), unit
    return None


def _or_operation(simpler: UOp | None, op: Ops, expr: UOp, divisor: int) -> UOp:
    """Returns `simpler`, or the operation itself if `simpler` is None."""
    return expr.alu(op, index_const(divisor)) if simpler is None else simpler

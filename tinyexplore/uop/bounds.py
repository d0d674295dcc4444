"""Interval arithmetic: the least and greatest value that an integer or bool UOp can have."""

from __future__ import annotations

from functools import cache

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.ops import OpGroups, Ops
from tinyexplore.uop.uop import Queries, UOp

Bounds = tuple[int, int]
ARITHMETIC = OpGroups.BINARY - OpGroups.COMPARE
# integer operations that can give any value of their dtype (this module computes no interval for them)
ANY_VALUE = OpGroups.DOT | {Ops.POW, Ops.BITCAST, Ops.SHL, Ops.SHR}


def bounds(node: UOp) -> Bounds:
    """Returns (least, greatest) of an integer or bool node; the limits of its dtype if no better bounds are known."""
    cached = node._bounds
    if cached is not None:
        return cached
    stack = [node]
    while stack:
        inner = stack[-1]
        for source in inner.src:
            if source._bounds is None:
                stack.append(source)
        if stack[-1] is inner:
            inner._bounds = _compute_bounds(inner)
            stack.pop()
    assert node._bounds is not None
    return node._bounds


def vmin(node: UOp) -> int:
    return bounds(node)[0]


def vmax(node: UOp) -> int:
    return bounds(node)[1]


def is_exact(node: UOp) -> bool:
    """Whether the arithmetic of this integer node cannot wrap: its interval fits in the dtype."""
    low, high = widest = limits(node.dtype)
    if bounds(node) != widest:
        return True  # narrower than the dtype, so the interval gave it
    if node.op in (Ops.CONST, Ops.RANGE, Ops.SPECIAL, Ops.DEFINE_VAR, Ops.BIND):
        return True
    interval = _compute_interval(node)
    return interval is not None and low <= interval[0] and interval[1] <= high


@cache
def limits(dtype: object) -> Bounds:
    """Returns the least and greatest value of an integer or bool type. For other types, returns those of the index
    type."""
    if isinstance(dtype, DType) and (dtypes.is_int(dtype) or dtypes.is_bool(dtype)):
        return int(dtypes.min(dtype)), int(dtypes.max(dtype))
    return (-(1 << 63), (1 << 63) - 1)


@cache
def _is_countable(dtype: object) -> bool:
    """Whether the dtype is an integer or a bool."""
    return isinstance(dtype, DType) and not dtypes.is_float(dtype)


def _compute_bounds(node: UOp) -> Bounds:
    low, high = limits(node.dtype)
    interval = _compute_interval(node)
    if interval is None or interval[0] < low or interval[1] > high:
        return low, high
    return interval


def _compute_interval(node: UOp) -> Bounds | None:
    """Returns the interval before wrapping; None if every value of the dtype is possible. The sources have bounds
    already."""
    op, src = node.op, node.src
    if not _is_countable(node.dtype):
        return None
    if op in ARITHMETIC:
        return _combine_intervals(op, bounds(src[0]), bounds(src[1]), node.dtype)
    if op is Ops.CONST:
        return int(node.arg), int(node.arg)
    if op is Ops.RANGE or op is Ops.SPECIAL:
        return 0, max(0, bounds(src[0])[1] - 1)
    if op is Ops.DEFINE_VAR:
        return node.arg[1], node.arg[2]
    if op is Ops.BIND:
        return bounds(src[0])  # not the bound value: the kernel serves all values
    if op in OpGroups.COMPARE:
        return _compare(op, src)
    if op in (Ops.CAST, Ops.WHERE, Ops.VECTORIZE, Ops.GEP):
        return _unite_source_intervals(op, src)
    if op is Ops.NEG:
        low, high = bounds(src[0])
        return (low, high) if dtypes.is_bool(node.dtype) else (-high, -low)
    if op is Ops.MULACC:
        product = _combine_intervals(Ops.MUL, bounds(src[0]), bounds(src[1]), node.dtype)
        return None if product is None else _combine_intervals(Ops.ADD, product, bounds(src[2]), node.dtype)
    if op in OpGroups.ALU and op not in ANY_VALUE:
        raise NotImplementedError(f"no interval arithmetic is implemented for {op.name}")
    return None


def _combine_intervals(op: Ops, first: Bounds, second: Bounds, dtype: DType) -> Bounds | None:
    """Returns `_compute_interval` of an operation on two integers, or two bools, within these bounds."""
    (a, b), (c, d) = first, second
    match op:
        case Ops.ADD:
            return a + c, b + d
        case Ops.MUL:
            if a >= 0 and c >= 0:
                return a * c, b * d
            return _span_values([a * c, a * d, b * c, b * d])
        case Ops.MAX:
            return max(a, c), max(b, d)
        case Ops.MIN:
            return min(a, c), min(b, d)
        case Ops.IDIV:
            return _divide_intervals(first, second)
        case Ops.MOD:
            return _remainder_interval(first, second)
        case Ops.AND | Ops.OR | Ops.XOR:
            return _bitwise_interval(op, first, second, dtype)
        case Ops.SHL | Ops.SHR if 0 <= c and d < dtype.bits:
            return _span_values([_shift(op, x, y) for x in first for y in second])
    if op in ANY_VALUE:
        return None
    raise NotImplementedError(f"no interval arithmetic is implemented for {op.name}")


def _span_values(values: list[int]) -> Bounds:
    return min(values), max(values)


def _divide_intervals(first: Bounds, second: Bounds) -> Bounds:
    """Returns the interval of IDIV, which rounds towards 0. A quotient by 0 is 0.

    The extremes are at the ends of the intervals and at divisors 1 and -1.
    """
    (a, b), (c, d) = first, second
    if a >= 0 and c > 0:
        return a // d, b // c
    divisors = [y for y in (c, d, -1, 1) if y != 0 and c <= y <= d]
    quotients = [_divide_truncating(x, y) for x in first for y in divisors]
    return _span_values([*quotients, 0] if c <= 0 <= d else quotients)


def _divide_truncating(value: int, divisor: int) -> int:
    quotient = abs(value) // abs(divisor)
    return quotient if (value < 0) == (divisor < 0) else -quotient


def _remainder_interval(first: Bounds, second: Bounds) -> Bounds:
    """Returns the interval of MOD, which has the sign of its dividend and is nearer to 0 than both sources. A
    remainder by 0 is 0."""
    (a, b), (c, d) = first, second
    if a >= 0 and b < c:
        return a, b
    most_remainder = max(abs(c), abs(d), 1) - 1
    return max(min(a, 0), -most_remainder), min(max(b, 0), most_remainder)


def _bitwise_interval(op: Ops, first: Bounds, second: Bounds, dtype: DType) -> Bounds:
    """Returns the interval of AND, OR and XOR in two's complement, from the signs and the length of the longer
    source."""
    (a, b), (c, d) = first, second
    if dtypes.is_bool(dtype):
        corners = {Ops.AND: (min(a, c), min(b, d)), Ops.OR: (max(a, c), max(b, d))}
        return corners.get(op, (0, 1))
    non_negative = [high for low, high in (first, second) if low >= 0]
    if op is Ops.AND and non_negative:
        return 0, min(non_negative)
    ends = (*first, *second)
    all_ones = (1 << max([(x if x >= 0 else -1 - x).bit_length() for x in ends])) - 1
    if len(non_negative) < 2:
        return -1 - all_ones, all_ones
    return (max(a, c) if op is Ops.OR else 0), all_ones


def _shift(op: Ops, value: int, count: int) -> int:
    return value << count if op is Ops.SHL else value >> count


def _compare(op: Ops, src: tuple[UOp, ...]) -> Bounds:
    """Returns the interval of a comparison: (1, 1) or (0, 0) if the bounds of the sources decide it."""
    if not _is_countable(src[0].dtype):
        return 0, 1
    (a, b), (c, d) = bounds(src[0]), bounds(src[1])
    if op is Ops.CMPLT:
        return int(b < c), int(a < d)
    if op is Ops.CMPLE:
        return int(b <= c), int(a <= d)
    are_disjoint = b < c or d < a
    are_equal = a == b == c == d
    if op is Ops.CMPEQ:
        return int(are_equal), int(not are_disjoint)
    return int(are_disjoint), int(not are_equal)


def _unite_source_intervals(op: Ops, src: tuple[UOp, ...]) -> Bounds | None:
    values = src[1:] if op is Ops.WHERE else src
    if not all(_is_countable(value.dtype) for value in values):
        return None
    intervals = [bounds(value) for value in values]
    return min(low for low, _ in intervals), max(high for _, high in intervals)


Queries.bounds = bounds

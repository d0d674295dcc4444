"""Bounds: the least and greatest value that an integer or bool UOp can have, by interval arithmetic."""

from __future__ import annotations

from functools import cache

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop.ops import Group, Ops
from tinyexplore.uop.uop import UOp

Bounds = tuple[int, int]
ARITHMETIC = Group.BINARY - Group.COMPARE


def bounds(node: UOp) -> Bounds:
    """(least, greatest) of an integer or bool node; the limits of its dtype where nothing better is known."""
    found = node._bounds
    if found is not None:
        return found
    stack = [node]
    while stack:
        inner = stack[-1]
        for source in inner.src:
            if source._bounds is None:
                stack.append(source)
        if stack[-1] is inner:
            inner._bounds = _bounds(inner)
            stack.pop()
    assert node._bounds is not None
    return node._bounds


def vmin(node: UOp) -> int:
    return bounds(node)[0]


def vmax(node: UOp) -> int:
    return bounds(node)[1]


def is_exact(node: UOp) -> bool:
    """True where the arithmetic of this integer node cannot wrap: its interval fits the dtype by itself."""
    low, high = widest = limits(node.dtype)
    if bounds(node) != widest:
        return True  # narrower than the type: found by the interval
    if node.op in (Ops.CONST, Ops.RANGE, Ops.SPECIAL, Ops.DEFINE_VAR, Ops.BIND):
        return True
    interval = _interval(node)
    return interval is not None and low <= interval[0] and interval[1] <= high


@cache
def limits(dtype: object) -> Bounds:
    """The least and greatest value of an integer or bool type; of any other, those of the index type."""
    if isinstance(dtype, DType) and (dtypes.is_int(dtype) or dtypes.is_bool(dtype)):
        return int(dtypes.min(dtype)), int(dtypes.max(dtype))
    return (-(1 << 63), (1 << 63) - 1)


@cache
def _counts(dtype: object) -> bool:
    """True for integers and truths."""
    return isinstance(dtype, DType) and not dtypes.is_float(dtype)


def _bounds(node: UOp) -> Bounds:
    low, high = limits(node.dtype)
    interval = _interval(node)
    if interval is None or interval[0] < low or interval[1] > high:
        return low, high
    return interval


def _interval(node: UOp) -> Bounds | None:
    """The interval before wrapping; None where the op says nothing. The sources' bounds are known."""
    op, src = node.op, node.src
    if not _counts(node.dtype):
        return None
    if op in ARITHMETIC:
        return _of_two(op, bounds(src[0]), bounds(src[1]), node.dtype)
    if op is Ops.CONST:
        return int(node.arg), int(node.arg)
    if op is Ops.RANGE or op is Ops.SPECIAL:
        return 0, max(0, bounds(src[0])[1] - 1)
    if op is Ops.DEFINE_VAR:
        return node.arg[1], node.arg[2]
    if op is Ops.BIND:
        return bounds(src[0])  # not its value: what is built serves them all
    if op in Group.COMPARE:
        return _compare(op, src)
    if op in (Ops.CAST, Ops.WHERE, Ops.VECTORIZE, Ops.GEP):
        return _passed_on(op, src)
    return None


def _of_two(op: Ops, first: Bounds, second: Bounds, dtype: DType) -> Bounds | None:
    """`_interval` of an operation on two numbers, or truths, within these bounds."""
    (a, b), (c, d) = first, second
    if op is Ops.ADD:
        return a + c, b + d
    if op is Ops.MUL:
        if a >= 0 and c >= 0:
            return a * c, b * d
        corners: tuple[int, ...] = (a * c, a * d, b * c, b * d)
        return min(corners), max(corners)
    if op is Ops.MAX:
        return max(a, c), max(b, d)
    if op is Ops.MIN:
        return min(a, c), min(b, d)
    if op is Ops.IDIV and c > 0:
        if a >= 0:
            return a // d, b // c
        corners = tuple([_truncated(x, y) for x in (a, b) for y in (c, d)])
        return min(corners), max(corners)
    if op is Ops.MOD and c > 0:
        if a >= 0 and b < c:
            return a, b
        return (0 if a >= 0 else 1 - d), (0 if b <= 0 else min(b, d - 1))
    if op in (Ops.AND, Ops.OR) and dtypes.is_bool(dtype):
        return (min(a, c), min(b, d)) if op is Ops.AND else (max(a, c), max(b, d))
    return None


def _truncated(value: int, divisor: int) -> int:
    return value // divisor if value >= 0 else -(-value // divisor)


def _compare(op: Ops, src: tuple[UOp, ...]) -> Bounds:
    if not _counts(src[0].dtype):
        return 0, 1
    (a, b), (c, d) = bounds(src[0]), bounds(src[1])
    if op is Ops.CMPLT:
        return int(b < c), int(a < d)
    if op is Ops.CMPLE:
        return int(b <= c), int(a <= d)
    apart = b < c or d < a
    same = a == b == c == d
    if op is Ops.CMPEQ:
        return int(same), int(not apart)
    return int(apart), int(not same)


def _passed_on(op: Ops, src: tuple[UOp, ...]) -> Bounds | None:
    values = src[1:] if op is Ops.WHERE else src
    if not all(_counts(value.dtype) for value in values):
        return None
    found = [bounds(value) for value in values]
    return min(low for low, _ in found), max(high for _, high in found)

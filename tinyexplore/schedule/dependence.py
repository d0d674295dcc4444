"""Dependence analysis: along which parts of its axes the value of a LazyBuffer changes.

An axis is a sequence of *digits*, outermost first. The product of their sizes is the size of the axis, as in a
mixed-radix number. Example: repeat a matrix with four rows three times along axis 0. Axis 0 then has the digits 3,
along which the value does not change, and 4, along which it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import gcd
from operator import itemgetter

from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import OpGroups, Ops
from tinyexplore.uop.symbolic import greatest, product, simplified, sint
from tinyexplore.util import toposort

Digit = tuple[sint, bool]  # (size, which is not 1; whether the value depends on the digit)
Digits = tuple[Digit, ...]  # the digits of one axis; none if its size is 1
Layout = tuple[Digits, ...]  # the digits of each axis


class Dependence:
    """Computes and caches the layouts of LazyBuffers."""

    def __init__(self) -> None:
        self._known: dict[LazyBuffer, Layout] = {}

    def of(self, node: LazyBuffer) -> Layout:
        dependence = self._known.get(node)
        if dependence is None:
            for inner in toposort([node], self._unknown_sources):
                self._known[inner] = _layout(inner, [self._known[source] for source in _sources(inner)])
            dependence = self._known[node]
        return dependence

    def _unknown_sources(self, node: LazyBuffer) -> list[LazyBuffer]:
        return [source for source in _sources(node) if source not in self._known]


def _sources(node: LazyBuffer) -> tuple[LazyBuffer, ...]:
    """Returns the nodes that the layout of `node` depends on."""
    is_followed = (
        node.op in OpGroups.ALU or node.op in OpGroups.MOVEMENT or node.op in (Ops.REDUCE_AXIS, Ops.CONTIGUOUS)
    )
    return node.src if is_followed and node.buffer is None and node.size else ()


def _layout(node: LazyBuffer, sources: Sequence[Layout]) -> Layout:
    if not sources:
        return uniform(node.shape, node.op is not Ops.CONST or node.buffer is not None)
    (source, *others) = sources
    match node.op:
        case Ops.REDUCE_AXIS:
            return tuple([() if axis in node.arg[1] else digits for axis, digits in enumerate(source)])
        case Ops.RESHAPE:
            return _reshaped(source, node.src[0].shape, node.shape)
        case Ops.EXPAND:
            before = node.src[0].shape
            return tuple(
                [
                    digits if source_size == size else ((size, False),)
                    for digits, source_size, size in zip(source, before, node.shape)
                ]
            )
        case Ops.PERMUTE:
            return tuple([source[axis] for axis in node.arg])
        case Ops.FLIP:
            return source
        case Ops.SHRINK | Ops.PAD:
            return tuple([_moved(node, axis, source[axis]) for axis in range(len(source))])
        case Ops.WINDOW:
            axis, *_ = node.arg
            varies = depends(source[axis])
            positions, taps = uniform((node.shape[axis], node.shape[-1]), varies)
            return (*source[:axis], positions, *source[axis + 1 :], taps)
        case Ops.DIAGONAL:
            first, second = node.arg
            (walked,) = uniform((node.shape[first],), depends(source[first]) or depends(source[second]))
            return (*source[:first], walked, *source[first + 1 : second], *source[second + 1 :])
    if not others:
        return source
    return tuple([_together(size, digits) for size, digits in zip(node.shape, zip(*sources))])


def uniform(shape: Sequence[sint], varies: bool) -> Layout:
    """Returns a layout with one digit per axis."""
    return tuple([() if size == 1 else ((size, varies),) for size in shape])


def depends(digits: Digits) -> bool:
    """Whether a value changes along an axis."""
    return any([varies for _, varies in digits])


def merged(digits: Iterable[Digit]) -> Digits:
    """Returns the digits of an axis, merged into the fewest digits."""
    groups = groupby([digit for digit in digits if digit[0] != 1], itemgetter(1))
    return tuple([(product([size for size, _ in group]), varies) for varies, group in groups])


def refined(digits: Sequence[Digits]) -> tuple[sint, ...] | None:
    """Returns the finest digit sizes, outermost first, that make up several descriptions of one axis; None if there are
    none."""
    sizes = {tuple([size for size, _ in value_digits]) for value_digits in digits}
    if len(sizes) == 1:
        return sizes.pop()
    bounds: set[int] = set()
    for value_sizes in sizes:
        bound = 1
        for size in reversed(value_sizes):
            if not isinstance(size, int):
                return None
            bound *= size
            bounds.add(bound)
    steps = [1, *sorted(bounds)]
    if any([outer % inner for inner, outer in zip(steps, steps[1:])]):
        return None
    return tuple([outer // inner for inner, outer in zip(steps, steps[1:])][::-1])


def dependence_flags(digits: Digits, sizes: Sequence[sint]) -> list[bool]:
    """Whether a value that has `digits` depends on each of the finer digits of `sizes`."""
    flags_by_axis: list[bool] = []
    remaining: sint = 1
    rest: Iterator[Digit] = reversed(digits)
    varies = False
    for size in reversed(sizes):
        if remaining == 1:
            remaining, varies = next(rest)
        flags_by_axis.append(varies)
        remaining = 1 if remaining == size else remaining // size
    return flags_by_axis[::-1]


def _together(size: sint, digits: Sequence[Digits]) -> Digits:
    """Returns the digits of an axis along which at least one of several values changes."""
    sizes = refined(digits)
    if sizes is None:
        return ((size, any(map(depends, digits))),)
    columns = zip(*[dependence_flags(value_digits, sizes) for value_digits in digits])
    return merged(zip(sizes, map(any, columns)))


def _moved(node: LazyBuffer, axis: int, digits: Digits) -> Digits:
    """Returns the digits of an axis after a SHRINK or PAD. If it moves whole steps of the outermost digit, only that
    size changes."""
    before, after = node.src[0].shape[axis], node.shape[axis]
    first, second = node.arg[axis]
    is_pad = node.op is Ops.PAD
    if after == 1:
        return ()
    if (first, second) == ((0, 0) if is_pad else (0, before)):
        return digits
    varies = depends(digits)
    if not varies and not is_pad:
        return ((after, False),)
    inner: sint = product([size for size, _ in digits[1:]])
    if not all([isinstance(size, int) for size in (before, inner, first, second, after)]):
        return ((after, True),)
    if not varies:
        alike = gcd(before, first, second)
        return merged(((after // alike, True), (alike, False)))
    if first % inner or second % inner:
        return ((after, True),)
    return merged(((after // inner, is_pad or digits[0][1]), *digits[1:]))


def aligned_groups(before: Sequence[sint], after: Sequence[sint]) -> Iterator[tuple[range, range]]:
    """Yields pairs of axis groups, of two shapes of one memory, that cover the same elements."""
    a = b = 0
    while a < len(before) or b < len(after):
        first_a, first_b = a, b
        remaining: sint = 1
        right: sint = 1
        if a < len(before):
            remaining, a = before[a], a + 1
        if b < len(after):
            right, b = after[b], b + 1
        while remaining != right and (a < len(before) or b < len(after)):
            if b == len(after) or (a < len(before) and greatest(remaining) < greatest(right)):
                remaining, a = simplified(remaining * before[a]), a + 1
            else:
                right, b = simplified(right * after[b]), b + 1
        yield range(first_a, a), range(first_b, b)


def regrouped(digits: Sequence[Digit], sizes: Sequence[sint]) -> list[list[Digit]] | None:
    """Divides `digits`, outermost first, among axes of `sizes`. Splits a digit if an axis ends inside it; None if
    impossible."""
    regrouped_digits: list[list[Digit]] = []
    rest = list(reversed(digits))
    for size in reversed(sizes):
        axis: list[Digit] = []
        remaining: sint = size
        while remaining != 1:
            if not rest:
                return None
            digit_size, varies = rest.pop(0)
            if digit_size == remaining:
                axis.append((digit_size, varies))
                break
            if not isinstance(digit_size, int) or not isinstance(remaining, int):
                return None
            if remaining % digit_size == 0:
                axis.append((digit_size, varies))
                remaining //= digit_size
            elif digit_size % remaining == 0:
                axis.append((remaining, varies))
                rest.insert(0, (digit_size // remaining, varies))
                break
            else:
                return None
        regrouped_digits.append(axis[::-1])
    return None if rest else regrouped_digits[::-1]


def _reshaped(source: Layout, before: Sequence[sint], after: Sequence[sint]) -> Layout:
    layout: list[Digits] = []
    for axes, new_axes in aligned_groups(before, after):
        digits = [digit for axis in axes for digit in source[axis]]
        sizes = [after[axis] for axis in new_axes]
        groups = regrouped(merged(digits), sizes)
        if groups is None:
            layout += uniform(sizes, any([varies for _, varies in digits]))
        else:
            layout += map(merged, groups)
    return tuple(layout)


__all__ = [
    "Dependence",
    "Digit",
    "Digits",
    "Layout",
    "aligned_groups",
    "depends",
    "dependence_flags",
    "refined",
    "regrouped",
    "uniform",
]

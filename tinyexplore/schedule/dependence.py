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


class DependenceAnalysis:
    """Computes and caches the layouts of LazyBuffers."""

    def __init__(self) -> None:
        self._known: dict[LazyBuffer, Layout] = {}

    def of(self, node: LazyBuffer) -> Layout:
        dependence = self._known.get(node)
        if dependence is None:
            for inner in toposort([node], self._unknown_sources):
                self._known[inner] = _compute_layout(
                    inner, [self._known[source] for source in _followed_sources(inner)]
                )
            dependence = self._known[node]
        return dependence

    def _unknown_sources(self, node: LazyBuffer) -> list[LazyBuffer]:
        return [source for source in _followed_sources(node) if source not in self._known]


def _followed_sources(node: LazyBuffer) -> tuple[LazyBuffer, ...]:
    """Returns the nodes that the layout of `node` depends on."""
    is_followed = (
        node.op in OpGroups.ALU or node.op in OpGroups.MOVEMENT or node.op in (Ops.REDUCE_AXIS, Ops.CONTIGUOUS)
    )
    return node.src if is_followed and node.buffer is None and node.size else ()


def _compute_layout(node: LazyBuffer, sources: Sequence[Layout]) -> Layout:
    """Returns the digits of each axis of `node`, given those of its sources."""
    if not sources:
        return uniform(node.shape, node.op is not Ops.CONST or node.buffer is not None)
    (source, *other_sources) = sources
    match node.op:
        case Ops.REDUCE_AXIS:
            return tuple([() if axis in node.arg[1] else digits for axis, digits in enumerate(source)])
        case Ops.RESHAPE:
            return _reshape_layout(source, node.src[0].shape, node.shape)
        case Ops.EXPAND:
            source_shape = node.src[0].shape
            return tuple(
                [
                    digits if source_size == size else ((size, False),)
                    for digits, source_size, size in zip(source, source_shape, node.shape)
                ]
            )
        case Ops.PERMUTE:
            return tuple([source[axis] for axis in node.arg])
        case Ops.FLIP:
            return source
        case Ops.SHRINK | Ops.PAD:
            return tuple([_resize_digits(node, axis, source[axis]) for axis in range(len(source))])
        case Ops.WINDOW:
            axis, *_ = node.arg
            varies = depends(source[axis])
            positions, taps = uniform((node.shape[axis], node.shape[-1]), varies)
            return (*source[:axis], positions, *source[axis + 1 :], taps)
        case Ops.DIAGONAL:
            first_axis, second_axis = node.arg
            (walked,) = uniform((node.shape[first_axis],), depends(source[first_axis]) or depends(source[second_axis]))
            return (*source[:first_axis], walked, *source[first_axis + 1 : second_axis], *source[second_axis + 1 :])
    if not other_sources:
        return source
    return tuple([_merge_digits(size, digits) for size, digits in zip(node.shape, zip(*sources))])


def uniform(shape: Sequence[sint], varies: bool) -> Layout:
    """Returns a layout with one digit per axis."""
    return tuple([() if size == 1 else ((size, varies),) for size in shape])


def depends(digits: Digits) -> bool:
    """Whether a value changes along an axis."""
    return any([varies for _, varies in digits])


def merge_digits(digits: Iterable[Digit]) -> Digits:
    """Returns the digits of an axis, merged into the fewest digits."""
    groups = groupby([digit for digit in digits if digit[0] != 1], itemgetter(1))
    return tuple([(product([size for size, _ in group]), varies) for varies, group in groups])


def refine_digits(digits: Sequence[Digits]) -> tuple[sint, ...] | None:
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
    remaining_digits: Iterator[Digit] = reversed(digits)
    varies = False
    for size in reversed(sizes):
        if remaining == 1:
            remaining, varies = next(remaining_digits)
        flags_by_axis.append(varies)
        remaining = 1 if remaining == size else remaining // size
    return flags_by_axis[::-1]


def _merge_digits(size: sint, digits: Sequence[Digits]) -> Digits:
    """Returns the digits of an axis along which at least one of several values changes."""
    sizes = refine_digits(digits)
    if sizes is None:
        return ((size, any(map(depends, digits))),)
    columns = zip(*[dependence_flags(value_digits, sizes) for value_digits in digits])
    return merge_digits(zip(sizes, map(any, columns)))


def _resize_digits(node: LazyBuffer, axis: int, digits: Digits) -> Digits:
    """Returns the digits of an axis after a SHRINK or PAD. If it moves whole steps of the outermost digit, only that
    size changes."""
    old_size, new_size = node.src[0].shape[axis], node.shape[axis]
    start_amount, stop_amount = node.arg[axis]
    is_pad = node.op is Ops.PAD
    if new_size == 1:
        return ()
    if (start_amount, stop_amount) == ((0, 0) if is_pad else (0, old_size)):
        return digits
    varies = depends(digits)
    if not varies and not is_pad:
        return ((new_size, False),)
    inner: sint = product([size for size, _ in digits[1:]])
    if not all([isinstance(size, int) for size in (old_size, inner, start_amount, stop_amount, new_size)]):
        return ((new_size, True),)
    if not varies:
        common_step = gcd(old_size, start_amount, stop_amount)
        return merge_digits(((new_size // common_step, True), (common_step, False)))
    if start_amount % inner or stop_amount % inner:
        return ((new_size, True),)
    return merge_digits(((new_size // inner, is_pad or digits[0][1]), *digits[1:]))


def aligned_groups(old_shape: Sequence[sint], new_shape: Sequence[sint]) -> Iterator[tuple[range, range]]:
    """Yields pairs of axis groups, of two shapes of one memory, that cover the same elements."""
    old_axis = new_axis = 0
    while old_axis < len(old_shape) or new_axis < len(new_shape):
        first_a, first_b = old_axis, new_axis
        old_remaining: sint = 1
        new_remaining: sint = 1
        if old_axis < len(old_shape):
            old_remaining, old_axis = old_shape[old_axis], old_axis + 1
        if new_axis < len(new_shape):
            new_remaining, new_axis = new_shape[new_axis], new_axis + 1
        while old_remaining != new_remaining and (old_axis < len(old_shape) or new_axis < len(new_shape)):
            if new_axis == len(new_shape) or (
                old_axis < len(old_shape) and greatest(old_remaining) < greatest(new_remaining)
            ):
                old_remaining, old_axis = simplified(old_remaining * old_shape[old_axis]), old_axis + 1
            else:
                new_remaining, new_axis = simplified(new_remaining * new_shape[new_axis]), new_axis + 1
        yield range(first_a, old_axis), range(first_b, new_axis)


def regroup_digits(digits: Sequence[Digit], sizes: Sequence[sint]) -> list[list[Digit]] | None:
    """Divides `digits`, outermost first, among axes of `sizes`. Splits a digit if an axis ends inside it; None if
    impossible."""
    regrouped_digits: list[list[Digit]] = []
    remaining_digits = list(reversed(digits))
    for size in reversed(sizes):
        axis: list[Digit] = []
        remaining: sint = size
        while remaining != 1:
            if not remaining_digits:
                return None
            digit_size, varies = remaining_digits.pop(0)
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
                remaining_digits.insert(0, (digit_size // remaining, varies))
                break
            else:
                return None
        regrouped_digits.append(axis[::-1])
    return None if remaining_digits else regrouped_digits[::-1]


def _reshape_layout(source: Layout, old_shape: Sequence[sint], new_shape: Sequence[sint]) -> Layout:
    """Returns the digits after a RESHAPE. Axes whose digits do not match change along every element."""
    layout: list[Digits] = []
    for axes, new_axes in aligned_groups(old_shape, new_shape):
        digits = [digit for axis in axes for digit in source[axis]]
        sizes = [new_shape[axis] for axis in new_axes]
        groups = regroup_digits(merge_digits(digits), sizes)
        if groups is None:
            layout += uniform(sizes, any([varies for _, varies in digits]))
        else:
            layout += map(merge_digits, groups)
    return tuple(layout)


__all__ = [
    "DependenceAnalysis",
    "Digit",
    "Digits",
    "Layout",
    "aligned_groups",
    "depends",
    "dependence_flags",
    "refine_digits",
    "regroup_digits",
    "uniform",
]

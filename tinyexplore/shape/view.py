"""View: an affine map from indices to memory offsets, with a box of the valid indices.

Element (i0, i1, ...) is at offset `offset + Σ i_k * strides[k]` if `start_k ≤ i_k < stop_k` for every axis of `mask`;
elsewhere there is padding. Every movement returns a new View, or None if no single View can express the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

Shape = tuple[int, ...]
Bounds = tuple[int, int]
Mask = tuple[Bounds, ...] | None
Dim = tuple[int, int, Bounds]  # size, stride and mask of several axes that walk memory like one axis

CACHED_VIEWS = 1 << 12  # entries of each cache: some megabytes in all


@dataclass(frozen=True)
class View:
    """An affine map from indices to memory offsets, in normal form: `View.create` makes equal maps equal.

    shape: sizes of the axes.
    strides: memory step of each axis, in elements.
    offset: offset of the first element.
    mask: the valid range (begin, end) of each axis, or None.

    Normal form: an axis with one element, or one valid index, has stride 0. A mask that allows all indices is None. If
    no index is valid, the mask is (0, 0) on every axis. A shape without elements has zero strides, offset and mask.
    """

    shape: Shape
    strides: tuple[int, ...]
    offset: int = 0
    mask: Mask = None

    @staticmethod
    def create(shape: Shape, strides: tuple[int, ...] | None = None, offset: int = 0, mask: Mask = None) -> View:
        """Returns the View in its normal form. Without `strides` it is row-major."""
        return _row_major_view(shape) if strides is None else _create(shape, strides, offset, mask)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def contiguous(self) -> bool:
        """Whether the elements are in row-major order from offset 0, without padding."""
        return self.mask is None and self.offset == 0 and self.strides == _row_major_view(self.shape).strides

    @property
    def has_no_valid_element(self) -> bool:
        """Whether all elements are padding. False for a View without elements."""
        return bool(self.mask) and self.mask[0] == (0, 0)  # type: ignore[index]

    def __repr__(self) -> str:
        texts = [f"{self.shape}"]
        if self.strides != _row_major_view(self.shape).strides:
            texts.append(f"strides={self.strides}")
        if self.offset:
            texts.append(f"offset={self.offset}")
        if self.mask is not None:
            texts.append("mask=" + "×".join(f"{start}:{stop}" for start, stop in self.mask))
        return f"View({', '.join(texts)})"

    # *** movements ***

    def permute(self, order: Sequence[int]) -> View:
        mask = self.mask
        return _create(
            tuple([self.shape[axis] for axis in order]),
            tuple([self.strides[axis] for axis in order]),
            self.offset,
            mask if mask is None else tuple([mask[axis] for axis in order]),
        )

    def expand(self, shape: Shape) -> View:
        """Repeats axes of size 1, which have stride 0."""
        mask = self.mask
        if mask is not None and not self.has_no_valid_element:
            mask = tuple([(0, new) if old == 1 else bounds for old, new, bounds in zip(self.shape, shape, mask)])
        return _create(shape, self.strides, self.offset, mask)

    def pad(self, amounts: Sequence[Bounds]) -> View:
        old = self.mask or tuple([(0, size) for size in self.shape])
        shape = tuple([size + before + after for size, (before, after) in zip(self.shape, amounts)])
        mask = tuple([(start + before, stop + before) for (start, stop), (before, _) in zip(old, amounts)])
        offset = self.offset - sum([before * stride for (before, _), stride in zip(amounts, self.strides)])
        return _create(shape, self.strides, offset, mask)

    def shrink(self, bounds: Sequence[Bounds]) -> View:
        mask = self.mask
        if mask is not None:
            mask = tuple(
                [(max(low, start) - start, min(high, stop) - start) for (low, high), (start, stop) in zip(mask, bounds)]
            )
        offset = self.offset + sum([start * stride for (start, _), stride in zip(bounds, self.strides)])
        return _create(tuple([stop - start for start, stop in bounds]), self.strides, offset, mask)

    def flip(self, axes: Sequence[int]) -> View:
        strides = list(self.strides)
        mask = None if self.mask is None else list(self.mask)
        offset = self.offset
        for axis in axes:
            size = self.shape[axis]
            offset += (size - 1) * strides[axis]
            strides[axis] = -strides[axis]
            if mask is not None:
                start, stop = mask[axis]
                mask[axis] = (size - stop, size - start)
        return _create(self.shape, tuple(strides), offset, None if mask is None else tuple(mask))

    def window(self, axis: int, size: int, stride: int, dilation: int) -> View | None:
        """Returns the sliding windows along `axis`. None if padding makes validity depend on two indices."""
        count = (self.shape[axis] - dilation * (size - 1) - 1) // stride + 1
        shape = (*self.shape[:axis], count, *self.shape[axis + 1 :], size)
        step = self.strides[axis]
        strides = (*self.strides[:axis], step * stride, *self.strides[axis + 1 :], step * dilation)
        if self.mask is None or self.has_no_valid_element:
            return _create(shape, strides, self.offset, None if self.mask is None else (*self.mask, (0, 0)))
        interval = _find_bounds_of_sum(self.mask[axis], 0, ((count, stride), (size, dilation)))
        if interval is None:
            return None
        mask = (*self.mask[:axis], interval[0], *self.mask[axis + 1 :], interval[1])
        return _create(shape, strides, self.offset, mask)

    def diagonal(self, first: int, second: int) -> View:
        shape = self.shape[:second] + self.shape[second + 1 :]
        strides = list(self.strides)
        strides[first] += strides.pop(second)
        if self.mask is None:
            return _create(shape, tuple(strides), self.offset, None)
        mask = list(self.mask)
        second_bounds = mask.pop(second)
        mask[first] = (max(mask[first][0], second_bounds[0]), min(mask[first][1], second_bounds[1]))
        return _create(shape, tuple(strides), self.offset, tuple(mask))

    def reshape(self, shape: Shape) -> View | None:
        """Reshapes the View. None if the new axes would cut across memory strides or across the edge of the padding."""
        return self if shape == self.shape else _reshape(self, shape)

    def over(self, inner: View) -> View | None:
        """Composes this View with `inner`, in which this View's offsets are row-major positions. None if one View
        cannot express it."""
        return _compose(self, inner)

    # *** offsets ***

    def locate(self, coords: Sequence[int]) -> int | None:
        """Returns the memory offset of an element, or None in the padding."""
        if self.mask is not None and not all(start <= i < stop for i, (start, stop) in zip(coords, self.mask)):
            return None
        return self.offset + sum(i * stride for i, stride in zip(coords, self.strides))


@lru_cache(CACHED_VIEWS)
def _row_major_view(shape: Shape) -> View:
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step if size != 1 else 0)
        step *= size
    return View(shape, tuple(reversed(strides)) if step else (0,) * len(shape))


@lru_cache(CACHED_VIEWS)
def _create(shape: Shape, strides: tuple[int, ...], offset: int, mask: Mask) -> View:
    """Returns the View in normal form: stride 0 for axes of one element, no mask that allows everything."""
    if 0 in shape:
        return View(shape, (0,) * len(shape))
    if mask is not None:
        if any([start >= stop for start, stop in mask]):
            return View(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape))
        for (start, stop), stride in zip(mask, strides):
            if stop - start == 1:
                offset += start * stride
        strides = tuple([0 if stop - start == 1 else stride for (start, stop), stride in zip(mask, strides)])
        if all([start == 0 and stop == size for (start, stop), size in zip(mask, shape)]):
            mask = None
    elif 1 in shape:
        strides = tuple([0 if size == 1 else stride for size, stride in zip(shape, strides)])
    return View(shape, strides, offset, mask)


@lru_cache(CACHED_VIEWS)
def _merge_dims(view: View) -> tuple[tuple[Dim, ...], int]:
    """Returns the (size, stride, valid range) of merged axes, outermost first, and the offset."""
    mask = view.mask or tuple([(0, size) for size in view.shape])
    offset = view.offset
    merged: list[Dim] = []
    for axis, (size, stride, bounds) in enumerate(zip(view.shape, view.strides, mask)):
        if size == 1:
            continue
        if merged:
            outer_size, outer_stride, (start, stop) = merged[-1]
            if stop - start == 1:  # the outer index is constant: one contiguous part of the merged axis is valid
                run = start * size
                merged[-1] = (outer_size * size, stride, (run + bounds[0], run + bounds[1]))
                offset += start * outer_stride - run * stride
                continue
            if outer_stride == stride * size and bounds == (0, view.shape[axis]):
                merged[-1] = (outer_size * size, stride, (start * size, stop * size))
                continue
        merged.append((size, stride, bounds))
    return tuple(merged), offset


def _split_bounds(bounds: Bounds, sizes: Sequence[int]) -> list[Bounds] | None:
    """Returns the box, over axes of `sizes`, of the row-major positions in `bounds`. None if they do not form a box."""
    start, stop = bounds
    inner = prod(sizes)
    box: list[Bounds] = []
    for position, size in enumerate(sizes):
        inner //= size
        if start % inner == 0 and stop % inner == 0:
            box.append((start // inner, stop // inner))
            box.extend((0, inner_size) for inner_size in sizes[position + 1 :])
            return box
        run = start // inner
        if (stop - 1) // inner != run:
            return None
        box.append((run, run + 1))
        start -= run * inner
        stop -= run * inner
    return box


@lru_cache(CACHED_VIEWS)
def _reshape(view: View, shape: Shape) -> View | None:
    """Returns the View with `shape`; None if one View cannot represent it."""
    if 0 in shape or view.contiguous:
        return _row_major_view(shape)
    if view.has_no_valid_element:
        return _create(shape, (0,) * len(shape), 0, ((0, 0),) * len(shape)) if shape else None
    dims, offset = _merge_dims(view)
    strides: list[int] = []
    mask: list[Bounds] = []
    sizes = list(shape)
    for size, stride, bounds in reversed(dims):
        merged_axes: list[int] = []
        covered = 1
        while covered < size:
            if not sizes:
                return None
            merged_axes.append(sizes.pop())
            strides.append(stride * covered)
            covered *= merged_axes[-1]
        if covered != size:
            return None
        box = _split_bounds(bounds, merged_axes[::-1])
        if box is None:
            return None
        mask.extend(reversed(box))
    strides.extend([0] * len(sizes))  # all axes that are left have size 1
    mask.extend([(0, 1)] * len(sizes))
    return _create(shape, tuple(reversed(strides)), offset, tuple(reversed(mask)))


def _find_bounds_of_sum(bounds: Bounds, lowest: int, terms: Sequence[tuple[int, int]]) -> list[Bounds] | None:
    """Returns the box of indices with start ≤ first + Σ step * i < stop. None if they do not form a box.

    terms: (size, positive step) of each index.
    """
    start, stop = bounds
    free = [(0, size) for size, _ in terms]
    highest = lowest + sum((size - 1) * step for size, step in terms)
    if start <= lowest and highest < stop:
        return free
    if highest < start or lowest >= stop:
        return [(0, 0)] * len(terms)
    moving = [position for position, (size, _) in enumerate(terms) if size > 1]
    if len(moving) != 1:
        return None
    size, step = terms[moving[0]]
    low = max(0, -((lowest - start) // step))
    high = min(size, (stop - 1 - lowest) // step + 1)
    free[moving[0]] = (low, max(low, high))
    return free


@lru_cache(CACHED_VIEWS)
def _compose(top: View, inner: View) -> View | None:
    """Implements `View.over`, by cases: contiguous, masked, flipped, then by strides."""
    if inner.contiguous or 0 in top.shape or top.has_no_valid_element:
        return top
    if inner.has_no_valid_element:
        return _create(top.shape, top.strides, 0, ((0, 0),) * len(top.shape)) if top.shape else None
    if top.contiguous:
        return inner.reshape(top.shape)
    if top.mask is not None:
        valid_part = _compose(top.shrink(top.mask), inner)
        if valid_part is None:
            return None
        return valid_part.pad([(start, size - stop) for (start, stop), size in zip(top.mask, top.shape)])
    backwards = [axis for axis, stride in enumerate(top.strides) if stride < 0]
    if backwards:
        forwards = _compose(top.flip(backwards), inner)
        return None if forwards is None else forwards.flip(backwards)
    mask = inner.mask or tuple([(0, size) for size in inner.shape])
    composed = _compose_dims(top, tuple(zip(inner.shape, inner.strides, mask)), inner.offset)
    return composed if composed is not None else _compose_dims(top, *_merge_dims(inner))


def _compose_dims(top: View, dims: Sequence[Dim], offset: int) -> View | None:
    """Composes `top`, which has no mask and strides ≥ 0, with `dims`: splits each stride into steps along every dim."""
    strides = [0] * len(top.shape)
    mask = [(0, size) for size in top.shape]
    remaining_strides = list(top.strides)
    first_rest = top.offset
    for size, stride, bounds in reversed(dims):
        steps = [remaining % size for remaining in remaining_strides]
        remaining_strides = [remaining // size for remaining in remaining_strides]
        first_index = first_rest % size
        first_rest //= size
        if first_index + sum([step * (count - 1) for step, count in zip(steps, top.shape)]) >= size:
            return None  # a carry: the walk wraps around in this dim
        offset += first_index * stride
        walking = [axis for axis, step in enumerate(steps) if step]
        for axis in walking:
            strides[axis] += steps[axis] * stride
        box = _find_bounds_of_sum(bounds, first_index, [(top.shape[axis], steps[axis]) for axis in walking])
        if box is None:
            return None
        if not walking and not bounds[0] <= first_index < bounds[1]:
            return _create(top.shape, top.strides, 0, ((0, 0),) * len(top.shape)) if top.shape else None
        for axis, (start, stop) in zip(walking, box):
            mask[axis] = (max(mask[axis][0], start), min(mask[axis][1], stop))
    return _create(top.shape, tuple(strides), offset, tuple(mask))


__all__ = ["View"]

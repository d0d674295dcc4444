"""Operations defined by strides in the storage of a tensor: as_strided and its inverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.frontends.torch.values import DTYPES, StridedLayout, dense_layout
from tinyexplore.tensor import Tensor


@dataclass(frozen=True)
class BlockedView:
    """A strided view as a slice of its storage, reshaped to axes that each have one stride.

    Attributes:
        shape: the sizes of the axes of the reshaped storage, slowest first.
        bounds: the slice of each of these axes.
        order: for each of these axes but the last, the axis of the view that moves along it.
    """

    shape: tuple[int, ...]
    bounds: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    @property
    def permutation(self) -> tuple[int, ...]:
        """The order of the slice's axes in the view; the axis of size 1 comes last."""
        return (*sorted(range(len(self.order)), key=self.order.__getitem__), len(self.order))


def moving_axes(size: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Returns the axes along which the offset changes, in descending order of stride."""
    axes = [axis for axis, (length, step) in enumerate(zip(size, stride)) if length > 1 and step]
    return sorted(axes, key=lambda axis: -stride[axis])


def blocks_of(size: Sequence[int], stride: Sequence[int], offset: int, count: int) -> BlockedView | None:
    """Returns a strided view as a slice of reshaped storage; None if strides do not divide each other or axes overlap.

    Args:
        size: sizes of the view's axes, none of them 0.
        stride: their strides, in elements.
        offset: the position of the first element.
        count: the number of elements in the storage.
    """
    shape, bounds, order = [], [], moving_axes(size, stride)
    step, position = count, offset
    for axis in order:
        if axis == order[0]:
            step -= step % stride[axis]  # whole blocks of the storage
        if step % stride[axis]:
            return None
        start, position = divmod(position, stride[axis])
        shape.append(step // stride[axis])
        bounds.append((start, start + size[axis]))
        if bounds[-1][1] > shape[-1]:
            return None
        step = stride[axis]
    return BlockedView((*shape, step), (*bounds, (position, position + 1)), tuple(order))


def read_strided(storage: Tensor, size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
    """Returns the elements at `offset` plus multiples of the strides of a tensor with one axis, by movements alone."""
    order = moving_axes(size, stride)
    blocks = blocks_of(size, stride, offset, storage.shape[0])
    if blocks is not None:
        padded = storage.shrink(((0, math.prod(blocks.shape)),)).reshape(blocks.shape)
        moving = padded.shrink(blocks.bounds).permute(blocks.permutation)
    else:
        moving = storage.shrink(((offset, offset + span(size, stride)),))
        for axis in sorted(order):
            moving = moving._window(0, size[axis], dilation=stride[axis])
    sizes = tuple([length if axis in order else 1 for axis, length in enumerate(size)])
    return moving.reshape(sizes).expand(tuple(size))


def span(size: Sequence[int], stride: Sequence[int]) -> int:
    """Returns the distance from the first to the last element of a view with elements, plus one."""
    return 1 + sum([(length - 1) * step for length, step in zip(size, stride)])


def layout_in_storage(val: Any) -> StridedLayout:
    """Returns the layout of a fake tensor.

    Raises:
        TranslationError: it has gaps, or no elements.
    """
    shape = tuple([int(length) for length in val.shape])
    layout = None if 0 in shape else dense_layout(shape, val.stride(), DTYPES[val.dtype])
    if layout is None:
        raise TranslationError("as_strided of a tensor with gaps or without elements has no translation")
    return layout


def storage_of(a: Tensor, val: Any) -> Tensor:
    """Returns the elements of a tensor in the order of PyTorch's storage, as one axis.

    Args:
        a: the tensor.
        val: its fake tensor, which has the strides.

    Raises:
        TranslationError: the elements have gaps in the storage, or there are none.
    """
    layout = layout_in_storage(val)
    repeated = tuple([(0, length if axis in layout.order else 1) for axis, length in enumerate(a.shape)])
    others = [axis for axis in range(a.ndim) if axis not in layout.order]
    return a.shrink(repeated).permute((*layout.order, *others)).reshape((-1,)) if a.ndim else a.reshape((1,))


def offset_in(val: Any, size: Sequence[int], stride: Sequence[int], offset: int | None) -> int:
    """Returns the offset of a view relative to the first element of its base.

    Raises:
        TranslationError: the view has elements of the storage that its base does not have.
    """
    start = 0 if offset is None else int(offset) - int(val.storage_offset())
    if start < 0 or start + span(size, stride) > layout_in_storage(val).count:
        raise TranslationError("the view reads elements of the storage outside of its base")
    return start


@aten("as_strided", "as_strided_copy")
def as_strided(
    call: AtenCall, a: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None
) -> Tensor:
    """Returns the elements of the storage of `a` at an offset plus multiples of the strides."""
    if 0 in call.shape:
        return call.full(0)
    base = call.operands[0]
    start = offset_in(base, size, stride, storage_offset)
    return read_strided(storage_of(a, base), size, stride, start)


@aten("as_strided_scatter")
def as_strided_scatter(
    call: AtenCall,
    a: Tensor,
    source: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """Returns `a` with the elements at an offset plus multiples of the strides replaced."""
    if 0 in size or 0 in call.shape:
        return a
    result = call.first
    start = offset_in(result, size, stride, storage_offset)
    if overlaps(size, stride):
        raise TranslationError("writes to overlapping positions have no translation")
    storage = storage_of(a, result)
    value = source.cast(a.dtype)
    blocks = blocks_of(size, stride, start, storage.shape[0])
    if blocks is not None and math.prod(blocks.shape) == storage.shape[0]:
        written = write_strided(storage, value, blocks)
    else:
        positions = read_strided(Tensor.arange(storage.shape[0]), size, stride, start)
        written = storage.scatter(0, positions.reshape((-1,)), value.reshape((-1,)))
    return read_strided(written, call.shape, result.stride(), 0)


def overlaps(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether two elements of a view may have one position."""
    reach = 0
    for length, step in sorted(zip(size, stride), key=lambda pair: pair[1]):
        if length == 1:
            continue
        if step <= reach:
            return True
        reach += (length - 1) * step
    return False


def write_strided(storage: Tensor, value: Tensor, blocks: BlockedView) -> Tensor:
    """Returns a storage with a slice of its blocks replaced."""
    lengths = tuple([stop - start for start, stop in blocks.bounds])
    ordered = value.reshape(tuple([lengths[axis] for axis in blocks.permutation]))
    part = ordered.permute(tuple([blocks.permutation.index(axis) for axis in range(len(lengths))]))
    if lengths == blocks.shape:
        return part.reshape(storage.shape)
    around = tuple([(start, length - stop) for (start, stop), length in zip(blocks.bounds, blocks.shape)])
    is_inside = Tensor.ones(*lengths, dtype="bool").pad(around)
    return is_inside.where(part.pad(around), storage.reshape(blocks.shape)).reshape(storage.shape)

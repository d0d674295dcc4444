"""Operations that move elements: reshape, permute, slice, concatenate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tinyexplore.frontends.torch.table import AtenCall, aten
from tinyexplore.tensor import Tensor


@aten(
    *("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy", "unsqueeze", "unsqueeze_copy"),
    *("squeeze", "squeeze_copy", "flatten", "_reshape_alias"),
)
def view(call: AtenCall, a: Tensor, *args: Any) -> Tensor:
    """Reshapes the tensor."""
    return a.reshape(call.shape)


@aten(
    *("clone", "alias", "detach", "alias_copy", "detach_copy", "lift", "lift_fresh", "lift_fresh_copy"),
    *("contiguous", "view_of", "positive", "_conj_physical", "conj_physical", "resolve_conj", "resolve_neg"),
)
def same(call: AtenCall, a: Tensor, *args: Any, **options: Any) -> Tensor:
    """Returns the same values."""
    return a


@aten("copy")
def copy(call: AtenCall, a: Tensor, b: Tensor, non_blocking: bool = False) -> Tensor:
    """Returns the values of b, in the shape and dtype of a."""
    return b.cast(call.dtype).expand(call.shape)


@aten("expand", "expand_copy")
def expand(call: AtenCall, a: Tensor, size: Sequence[int], *, implicit: bool = False) -> Tensor:
    """Repeats axes of size 1."""
    return a.reshape((*[1] * (len(call.shape) - a.ndim), *a.shape)).expand(call.shape)


@aten("broadcast_in_dim")
def broadcast_in_dim(call: AtenCall, a: Tensor, shape: Sequence[int], axes: Sequence[int]) -> Tensor:
    """Puts the axes at positions of a larger shape, and repeats them."""
    sizes = [1] * len(call.shape)
    for number, size in zip(axes, a.shape):
        sizes[number] = size
    return a.reshape(tuple(sizes)).expand(call.shape)


@aten("permute", "permute_copy")
def permute(call: AtenCall, a: Tensor, order: Sequence[int]) -> Tensor:
    """Reorders the axes."""
    return a.permute(tuple(order)) if len(order) else a


@aten("transpose", "transpose_copy")
def transpose(call: AtenCall, a: Tensor, first: int, second: int) -> Tensor:
    """Swaps two axes."""
    return a.transpose(first, second) if a.ndim else a


@aten("t", "t_copy")
def matrix_transpose(call: AtenCall, a: Tensor) -> Tensor:
    """Transposes a matrix."""
    return a.transpose(0, 1) if a.ndim == 2 else a


@aten("flip", "rev")
def flip(call: AtenCall, a: Tensor, axes: Sequence[int]) -> Tensor:
    """Reverses the order along axes."""
    return a.flip(tuple([axis % a.ndim for axis in axes])) if a.ndim and len(axes) else a


@aten("repeat")
def repeat(call: AtenCall, a: Tensor, counts: Sequence[int]) -> Tensor:
    """Repeats the tensor along each axis."""
    if not len(counts):
        return a
    if math.prod(call.shape) == 0:
        return call.full(0)
    return a.reshape((*[1] * (len(counts) - a.ndim), *a.shape)).repeat(tuple(counts))


def _resolve_slice(size: int, start: Any, end: Any, step: int) -> range:
    """Returns the indices that a slice selects."""
    last = None if end is None or end > 2**60 else end
    return range(*slice(start, last, step).indices(size))


@aten("slice", "slice_copy")
def slice_(call: AtenCall, a: Tensor, axis: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensor:
    """Returns every `step`-th element of an axis, from `start` to `end`."""
    axis %= a.ndim
    positions = _resolve_slice(a.shape[axis], start, end, step)
    stop = max(positions.start, positions.stop)
    return a[tuple([slice(None)] * axis + [slice(positions.start, stop, step)])]


@aten("select", "select_copy")
def select(call: AtenCall, a: Tensor, axis: int, index: int) -> Tensor:
    """Returns one slice of an axis, without the axis."""
    return a[tuple([slice(None)] * (axis % a.ndim) + [int(index)])]


@aten("narrow", "narrow_copy")
def narrow(call: AtenCall, a: Tensor, axis: int, start: int, length: int) -> Tensor:
    """Returns `length` elements of an axis, from `start` on."""
    return slice_(call, a, axis, start, start + length)


@aten("slice_scatter")
def slice_scatter(
    call: AtenCall, a: Tensor, source: Tensor, axis: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensor:
    """Returns `a` with a slice of an axis replaced."""
    axis %= a.ndim
    positions = _resolve_slice(a.shape[axis], start, end, step)
    if len(positions) == 0:
        return a
    value = source.cast(a.dtype)
    if len(positions) == a.shape[axis]:
        return value
    if step == 1:
        before, after = [slice(None)] * a.ndim, [slice(None)] * a.ndim
        before[axis], after[axis] = slice(0, positions.start), slice(positions.stop, None)
        return join([a[tuple(before)], value, a[tuple(after)]], axis)
    indices = Tensor.arange(a.shape[axis])
    distance = indices - positions.start
    is_inside = (indices >= positions.start) & (indices < positions.stop) & ((distance % step) == 0)
    number = (distance // step).maximum(0).minimum(len(positions) - 1)
    shape = tuple([a.shape[axis] if dimension == axis else 1 for dimension in range(a.ndim)])
    spread = value.gather(axis, number.reshape(shape).expand(a.shape))
    return is_inside.reshape(shape).expand(a.shape).where(spread, a)


def join(parts: Sequence[Tensor], axis: int) -> Tensor:
    """Concatenates tensors. Leaves out those without elements."""
    nonempty = [part for part in parts if part.shape[axis] != 0] or list(parts[:1])
    return nonempty[0] if len(nonempty) == 1 else nonempty[0].cat(*nonempty[1:], dim=axis)


@aten("select_scatter")
def select_scatter(call: AtenCall, a: Tensor, source: Tensor, axis: int, index: int) -> Tensor:
    """Returns `a` with one index of an axis replaced."""
    axis %= a.ndim
    position = index % a.shape[axis]
    return slice_scatter(call, a, source.unsqueeze(axis), axis, position, position + 1)


@aten("cat", "concat", "concatenate")
def cat(call: AtenCall, tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Concatenates tensors. Ignores empty tensors of one axis."""
    parts = [part.cast(call.dtype) for part in tensors if part.shape != (0,)]
    if not parts:
        return call.full(0)
    return join(parts, axis % parts[0].ndim)


@aten("stack")
def stack(call: AtenCall, tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Stacks tensors along a new axis."""
    parts = [part.cast(call.dtype) for part in tensors]
    return parts[0].stack(*parts[1:], dim=axis)


@aten("split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(call: AtenCall, a: Tensor, sizes: Sequence[int], axis: int = 0) -> list[Tensor]:
    """Splits an axis into parts of the given sizes."""
    axis %= a.ndim
    starts = [sum(sizes[:number]) for number in range(len(sizes))]
    return [slice_(call, a, axis, start, start + size) for start, size in zip(starts, sizes)]


@aten("split", "split_copy")
def split(call: AtenCall, a: Tensor, size: int, axis: int = 0) -> list[Tensor]:
    """Splits an axis into parts of one size."""
    length = a.shape[axis % a.ndim]
    if size == 0:
        return [a]
    return split_with_sizes(call, a, [min(size, length - start) for start in range(0, max(length, 1), size)], axis)


@aten("unbind", "unbind_copy")
def unbind(call: AtenCall, a: Tensor, axis: int = 0) -> list[Tensor]:
    """Returns all slices of an axis, without the axis."""
    return [select(call, a, axis, number) for number in range(a.shape[axis % a.ndim])]


@aten("diagonal", "diagonal_copy")
def diagonal(call: AtenCall, a: Tensor, offset: int = 0, first: int = 0, second: int = 1) -> Tensor:
    """Returns a diagonal of two axes, as the last axis."""
    return a.diagonal(offset, first, second)


@aten("constant_pad_nd")
def constant_pad_nd(call: AtenCall, a: Tensor, amounts: Sequence[int], value: Any = 0) -> Tensor:
    """Pads with a value; negative amounts cut. The last axis comes first in `amounts`."""
    pairs = [(0, 0)] * a.ndim
    for number in range(len(amounts) // 2):
        pairs[a.ndim - 1 - number] = (amounts[2 * number], amounts[2 * number + 1])
    if 0 in call.shape:
        return call.full(0)
    cut = a[tuple([slice(max(-before, 0), size - max(-after, 0)) for (before, after), size in zip(pairs, a.shape)])]
    growth = tuple([(max(before, 0), max(after, 0)) for before, after in pairs])
    if not any(before or after for before, after in growth):
        return cut
    if 0 in cut.shape:
        return call.full(value)
    if isinstance(value, (bool, int, float)) and value == 0:
        return cut.pad(growth)
    is_inside = Tensor.ones(*cut.shape, dtype="bool").pad(growth)
    return is_inside.where(cut.pad(growth), call.tensor(value))


@aten("unfold", "unfold_copy")
def unfold(call: AtenCall, a: Tensor, axis: int, size: int, step: int) -> Tensor:
    """Returns sliding windows of an axis, as a new last axis."""
    if not a.ndim:
        return a.reshape(call.shape)
    return a.unfold(axis, size, step)


@aten("roll")
def roll(call: AtenCall, a: Tensor, shifts: Any, axes: Any = ()) -> Tensor:
    """Rotates the elements along axes."""
    if not a.ndim or 0 in a.shape:
        return a
    shift = list(shifts) if isinstance(shifts, (list, tuple)) else [shifts]
    axis_list = list(axes) if isinstance(axes, (list, tuple)) else [axes]
    if not axis_list:
        return a.reshape((-1,)).roll(shift[0], 0).reshape(call.shape)
    for amount, axis in zip(shift, axis_list):
        a = a.roll(amount, axis)
    return a

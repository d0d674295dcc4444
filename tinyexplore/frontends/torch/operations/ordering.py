"""Operations that sort."""

from __future__ import annotations

from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.table import AtenCall, aten
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.selection import nth_index


def _make_zero_index() -> Tensor:
    return Tensor.full((), 0, dtype=dtypes.int64)


@aten("sort.stable")
def sort_stable(
    call: AtenCall, a: Tensor, *, stable: Any = None, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    """Returns the sorted elements of an axis, and their old indices. Equal elements keep their order."""
    return sort(call, a, dim, descending)


@aten("sort")
def sort(call: AtenCall, a: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the sorted elements of an axis, and their old indices."""
    if not a.ndim:
        return a, _make_zero_index()
    values, indices = a.sort(axis, descending)
    return values, indices.cast(dtypes.int64)


@aten("topk")
def topk(
    call: AtenCall, a: Tensor, k: int, axis: int = -1, largest: bool = True, ordered: bool = True
) -> tuple[Tensor, Tensor]:
    """Returns the k largest or smallest elements of an axis, in order, and their indices."""
    if not a.ndim:
        return a.reshape(call.shape), _make_zero_index().reshape(call.shape)
    values, indices = a.topk(k, axis, largest)
    return values, indices.cast(dtypes.int64)


@aten("kthvalue")
def kthvalue(call: AtenCall, a: Tensor, k: int, axis: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Returns the k-th smallest element of an axis, and its index."""
    if not a.ndim:
        return a, _make_zero_index()
    rows = a.transpose(axis, -1)
    indices = nth_index(rows.reshape((-1, rows.shape[-1])), k).reshape((*rows.shape[:-1], 1)).transpose(axis, -1)
    return a.gather(axis, indices).reshape(call.shape), indices.cast(dtypes.int64).reshape(call.shape)


@aten("cummax")
def cummax(call: AtenCall, a: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Returns the running maximum, and its index."""
    if not a.ndim:
        return a, _make_zero_index()
    values, indices = a.cummax(axis)
    return values, indices.cast(dtypes.int64)


@aten("cummin")
def cummin(call: AtenCall, a: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Returns the running minimum, and its index."""
    if not a.ndim:
        return a, _make_zero_index()
    values, indices = a.cummin(axis)
    return values, indices.cast(dtypes.int64)

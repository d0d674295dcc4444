"""Converts PyTorch tensors to Tensors and back, in the same memory if the layout allows it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import torch

from tinyexplore.device import Buffer, Device, Memory
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor import Tensor

DTYPES: dict[Any, DType] = {
    torch.float32: dtypes.float32,
    torch.float64: dtypes.float64,
    torch.float16: dtypes.float16,
    torch.bfloat16: dtypes.bfloat16,
    torch.int8: dtypes.int8,
    torch.int16: dtypes.int16,
    torch.int32: dtypes.int32,
    torch.int64: dtypes.int64,
    torch.uint8: dtypes.uint8,
    torch.uint16: dtypes.uint16,
    torch.uint32: dtypes.uint32,
    torch.uint64: dtypes.uint64,
    torch.bool: dtypes.bool,
}


def is_plain(value: Any) -> bool:
    """Whether a Tensor can have the elements of a PyTorch tensor: dense, on the CPU, and of a known dtype."""
    return (
        value.dtype in DTYPES
        and value.layout == torch.strided
        and value.device.type == "cpu"
        and not value.is_quantized
        and not value.is_neg()
    )


@dataclass(frozen=True, eq=False)
class StridedLayout:
    """The layout of a tensor's elements in dense memory.

    Attributes:
        shape: the sizes of its axes.
        dtype: the dtype of its elements.
        order: the axes that move in memory, slowest first; axes of size 1 and expanded axes are left out.
        count: the number of elements in memory.
    """

    shape: tuple[int, ...]
    dtype: DType
    order: tuple[int, ...]
    count: int

    def view_memory(self, flat: Tensor) -> Tensor:
        """Returns the tensor whose elements are in `flat`, in the order of memory."""
        in_memory = tuple([self.shape[axis] for axis in self.order])
        if self.order == tuple(range(len(self.shape))):
            return flat.reshape(self.shape)
        others = [axis for axis in range(len(self.shape)) if axis not in self.order]
        order = [*self.order, *others]
        strided = flat.reshape((*in_memory, *[1] * len(others)))
        return strided.permute(tuple([order.index(axis) for axis in range(len(order))])).expand(self.shape)


def layout_of(tensor: Any) -> StridedLayout | None:
    """Returns the layout of a PyTorch tensor; None if it has gaps, so that it must be copied first."""
    dtype = DTYPES[tensor.dtype]
    return None if tensor.data_ptr() % dtype.itemsize else dense_layout(tuple(tensor.shape), tensor.stride(), dtype)


@lru_cache(4096)
def dense_layout(shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> StridedLayout | None:
    """Returns the layout of elements with these strides; None if it has gaps."""
    order = sorted(
        [axis for axis, size in enumerate(shape) if size > 1 and strides[axis]], key=lambda dim: -strides[dim]
    )
    step = 1
    for axis in reversed(order):
        if strides[axis] != step:
            return None
        step *= shape[axis]
    return _intern_layout(shape, dtype, tuple(order), step)


@lru_cache(4096)
def _intern_layout(*parts: Any) -> StridedLayout:
    """Returns a layout. Equal layouts are one object."""
    return StridedLayout(*parts)


def flat_tensor(tensor: Any, count: int, dtype: DType, device: str) -> Tensor:
    """Returns the `count` elements from the start of a dense tensor, in its memory. The result keeps the memory
    alive."""
    memory = Memory(tensor.data_ptr(), count * dtype.itemsize, tensor)
    return Tensor._wrap(LazyBuffer.from_buffer(Buffer(device, count, dtype, memory), (count,)))


def tensor_of(value: Any) -> Tensor:
    """Converts a PyTorch tensor to a Tensor: in its memory, or as a copy if the layout has gaps.

    Raises:
        TypeError: it is not on the CPU, is sparse or quantized, or its dtype does not exist in this package.
    """
    plain = value.detach().resolve_conj().resolve_neg()
    if not is_plain(plain):
        raise TypeError(
            f"a tensor of PyTorch on {value.device} with dtype {value.dtype} and layout {value.layout} cannot be a "
            "Tensor; bring it to the CPU, dense, in a dtype without complex numbers"
        )
    dtype = DTYPES[plain.dtype]
    if plain.numel() == 0:
        return Tensor.zeros(*plain.shape, dtype=dtype)
    layout = layout_of(plain)
    if layout is None:
        plain = plain.contiguous()
        layout = _intern_layout(tuple(plain.shape), dtype, tuple(range(plain.ndim)), prod(plain.shape))
    return layout.view_memory(flat_tensor(plain, layout.count, dtype, Device.DEFAULT))


def torch_of(value: Tensor) -> Any:
    """Converts a Tensor to a PyTorch tensor, in its memory if a stride for each axis can express the layout."""
    return torch.from_dlpack(value)

"""Convolutions, and operators that are computed by a convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.onnx.errors import OnnxError
from tinyexplore.frontends.onnx.node import OnnxNode, operator
from tinyexplore.frontends.onnx.values import check_shape
from tinyexplore.tensor import Tensor


class Window:
    """The attributes of a window that slides over the axes after the channels.

    Attributes:
        kernel, strides, dilations: one number per axis.
        before, after: the padding of each axis, from `pads` or `auto_pad`.
    """

    def __init__(self, node: OnnxNode, sizes: Sequence[int], kernel: Sequence[int]) -> None:
        rank = len(kernel)
        if len(sizes) != rank:
            raise OnnxError(
                f"{node.operator}: the kernel has {rank} axes, the input {len(sizes)} spatial axes; need equal numbers"
            )
        self.kernel = list(kernel)
        self.strides = list(node.attribute("strides", [1] * rank))
        self.dilations = list(node.attribute("dilations", [1] * rank))
        pads = list(node.attribute("pads", [0] * (2 * rank)))
        if len(self.strides) != rank or len(self.dilations) != rank or len(pads) != 2 * rank or min(self.strides) < 1:
            raise OnnxError(
                f"{node.operator}: strides {self.strides}, dilations {self.dilations}, pads {pads}: a window of {rank} "
                f"axes needs {rank} positive strides, {rank} dilations and {2 * rank} pads"
            )
        automatic = node.attribute("auto_pad", "NOTSET")
        if automatic == "VALID":
            pads = [0] * (2 * rank)
        elif automatic in ("SAME_UPPER", "SAME_LOWER"):
            for axis, (size, stride) in enumerate(zip(sizes, self.strides)):
                total = max((-(-size // stride) - 1) * stride + self.extent(axis) - size, 0)
                small = total // 2
                pads[axis] = small if automatic == "SAME_UPPER" else total - small
                pads[axis + rank] = total - pads[axis]
        self.before, self.after = pads[:rank], pads[rank:]

    def extent(self, axis: int) -> int:
        """Returns the number of elements of an axis that the window spans."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    @property
    def padding(self) -> list[int]:
        """Returns the padding in the order of Tensor: from the last axis to the first, before and after."""
        pairs = list(zip(self.before, self.after))[::-1]
        return [amount for pair in pairs for amount in pair]


def convolve(node: OnnxNode, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Returns `x` convolved with `weight`, with the node's attributes."""
    window = Window(node, x.shape[2:], weight.shape[2:])
    return x.conv2d(
        weight,
        bias,
        groups=node.attribute("group", 1),
        stride=tuple(window.strides),
        dilation=tuple(window.dilations),
        padding=window.padding,
    )


@operator("Conv")
def _conv(node: OnnxNode) -> Tensor:
    return convolve(node, node.tensor(0), node.tensor(1), node.tensor_or(2))


@operator("ConvInteger")
def _conv_integer(node: OnnxNode) -> Tensor:
    x, weight = node.tensor(0).cast(dtypes.int32), node.tensor(1).cast(dtypes.int32)
    if node.has(2):
        x = x - node.tensor(2).cast(dtypes.int32)
    if node.has(3):
        zero = node.tensor(3).cast(dtypes.int32)
        weight = weight - (zero.reshape((-1,) + (1,) * (weight.ndim - 1)) if zero.ndim else zero)
    return convolve(node, x, weight, None)


@operator("ConvTranspose")
def _conv_transpose(node: OnnxNode) -> Tensor:
    x, weight, bias = node.tensor(0), node.tensor(1), node.tensor_or(2)
    window = Window(node, x.shape[2:], weight.shape[2:])
    rank = len(window.kernel)
    extra = list(node.attribute("output_padding", [0] * rank))
    before, after = list(window.before), list(window.after)
    automatic = node.attribute("auto_pad", "NOTSET")
    output_sizes: list[int] = node.attribute("output_shape", [])
    if output_sizes or automatic.startswith("SAME"):
        sizes = list(output_sizes)[-rank:] if output_sizes else [n * s for n, s in zip(x.shape[2:], window.strides)]
        for axis in range(rank):
            full = window.strides[axis] * (x.shape[2 + axis] - 1) + extra[axis] + window.extent(axis)
            total = full - sizes[axis]
            half = int(total / 2)  # rounded towards zero: a negative total adds elements at the end
            before[axis] = total - half if automatic == "SAME_LOWER" else half
            after[axis] = total - before[axis]
    full_result = x.conv_transpose2d(
        weight,
        bias,
        groups=node.attribute("group", 1),
        stride=tuple(window.strides),
        dilation=tuple(window.dilations),
        padding=0,
        output_padding=tuple(min(n, max(s, d) - 1) for n, s, d in zip(extra, window.strides, window.dilations)),
    )
    cut = [(0, 0), (0, 0)] + [(-low, -high) for low, high in zip(before, after)]
    return full_result.pad(cut) if any(low or high for low, high in cut) else full_result


@operator("Col2Im")
def _col2im(node: OnnxNode) -> Tensor:
    """Adds the columns of sliding windows up to an image. Each element of a window is a strided slice of the image."""
    x, image, block = node.tensor(0), node.ints(1), node.ints(2)
    rank = len(image)
    window = Window(node, image, block)
    channels = x.shape[1] // math.prod(block)
    padded = [n + low + high for n, low, high in zip(image, window.before, window.after)]
    counts = [(padded[axis] - window.extent(axis)) // window.strides[axis] + 1 for axis in range(rank)]
    columns = x.reshape((x.shape[0], channels, *block, *counts))
    result: Tensor | None = None
    for offsets in itertools.product(*map(range, block)):
        part = columns[(slice(None), slice(None), *offsets)]
        for axis in range(rank):
            part = _spread(part, 2 + axis, window.strides[axis], offsets[axis] * window.dilations[axis], padded[axis])
        result = part if result is None else result + part
    assert result is not None
    cut = [(0, 0), (0, 0)] + [(-low, -high) for low, high in zip(window.before, window.after)]
    return result.pad(cut)


def _spread(x: Tensor, axis: int, stride: int, start: int, size: int) -> Tensor:
    """Puts the elements of an axis `stride` apart, from `start` on, into an axis of `size` zeros."""
    count = x.shape[axis]
    if stride > 1:
        shape = list(x.shape)
        wide = x.unsqueeze(axis + 1).pad([(0, stride - 1) if dim == axis + 1 else (0, 0) for dim in range(x.ndim + 1)])
        shape[axis] = count * stride
        x = wide.reshape(tuple(shape))
        x = x.shrink(tuple((0, (count - 1) * stride + 1) if dim == axis else (0, n) for dim, n in enumerate(x.shape)))
    check_shape((size,))
    return x.pad([(start, size - start - x.shape[axis]) if dim == axis else (0, 0) for dim in range(x.ndim)])

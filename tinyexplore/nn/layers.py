"""Layers with weights: linear maps, convolutions, embeddings, a recurrent cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

from tinyexplore.dtype import dtypes
from tinyexplore.tensor import Tensor
from tinyexplore.tensor.checks import need_int, need_tensor, shown
from tinyexplore.tensor.pooling import named_padding

Sizes = int | Sequence[int]


class Linear:
    """Linear layer: x · weightᵀ + bias, for x of shape (…, in_features)."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        need_int(in_features, "Linear: in_features", 0)
        need_int(out_features, "Linear: out_features", 0)
        bound = 1 / math.sqrt(max(in_features, 1))
        self.weight = Tensor.uniform(out_features, in_features, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_features, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        need_tensor(x, "Linear: x")
        return x.linear(self.weight.transpose(), self.bias)


class _Convolution:
    """Base of all convolutions: their geometry, and weights uniform in ±1 / √fan in.

    spatial_axes: the number of spatial axes if the kernel's size is one int.
    any_axis_count: whether a sequence of kernel sizes may have another number of axes.
    """

    spatial_axes = 2
    any_axis_count = True
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        layer_name = type(self).__name__
        need_int(in_channels, f"{layer_name}: in_channels", 0)
        need_int(out_channels, f"{layer_name}: out_channels", 0)
        need_int(groups, f"{layer_name}: groups", 1)
        for size in kernel_size if isinstance(kernel_size, (list, tuple)) else (kernel_size,):
            need_int(size, f"{layer_name}: kernel_size", 1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(f"{in_channels} → {out_channels} channels in {groups} groups: both must divide by groups")
        kernel = (kernel_size,) * self.spatial_axes if isinstance(kernel_size, int) else tuple(kernel_size)
        if len(kernel) != self.spatial_axes and not (self.any_axis_count and kernel):
            raise ValueError(f"kernel_size {kernel_size}: need one int or {self.spatial_axes}")
        if isinstance(padding, str):
            steps = (stride,) * len(kernel) if isinstance(stride, int) else tuple(stride)
            # checks the padding now instead of in the first call
            named_padding(padding, kernel, steps, (1,) * len(kernel))
        self.kernel_size, self.stride, self.padding = kernel, stride, padding
        self.dilation, self.groups = dilation, groups
        first_channels, second_channels = (
            (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        )
        fan_in = prod(kernel) * (second_channels // groups)
        bound = 1 / math.sqrt(max(fan_in, 1))
        self.weight = Tensor.uniform(first_channels, second_channels // groups, *kernel, low=-bound, high=bound)
        self.bias = Tensor.uniform(out_channels, low=-bound, high=bound) if bias else None


class Conv2d(_Convolution):
    """Cross-correlates (batch, in_channels, height, width) with a learned kernel.

    If `kernel_size` has one size per axis, the number of axes can differ from two.
    """

    def __call__(self, x: Tensor) -> Tensor:
        need_tensor(x, f"{type(self).__name__}: x")
        return x.conv2d(self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding)


class Conv1d(Conv2d):
    """Cross-correlates (batch, in_channels, length) with a learned kernel."""

    spatial_axes = 1
    any_axis_count = False


class ConvTranspose2d(_Convolution):
    """Transposed convolution of (batch, in_channels, height, width) with a learned kernel.

    If `kernel_size` has one size per axis, the number of axes can differ from two.
    """

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
    ) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.padding: Sizes = padding
        self.output_padding = output_padding

    def __call__(self, x: Tensor) -> Tensor:
        need_tensor(x, f"{type(self).__name__}: x")
        return x.conv_transpose2d(
            self.weight, self.bias, self.groups, self.stride, self.dilation, self.padding, self.output_padding
        )


class ConvTranspose1d(ConvTranspose2d):
    """Transposed convolution of (batch, in_channels, length) with a learned kernel."""

    spatial_axes = 1
    any_axis_count = False


class Embedding:
    """A learned vector of `embed_size` numbers for each of `vocab_size` ints.

    Floats must be whole numbers; others give zeros.
    """

    def __init__(self, vocab_size: int, embed_size: int) -> None:
        need_int(vocab_size, "Embedding: vocab_size", 0)
        need_int(embed_size, "Embedding: embed_size", 0)
        self.vocab_size, self.embed_size = vocab_size, embed_size
        self.weight = Tensor.glorot_uniform(vocab_size, embed_size)

    def __call__(self, idx: Tensor) -> Tensor:
        if not dtypes.is_float(idx.dtype):
            return self.weight[idx]
        indices = idx.cast(dtypes.default_int)
        return (indices == idx).unsqueeze(-1).where(self.weight[indices], 0)


class LSTMCell:
    """One step of a long short-term memory (Hochreiter and Schmidhuber, 1997). Order of the gates: in, forget, cell,
    out."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True) -> None:
        need_int(input_size, "LSTMCell: input_size", 0)
        need_int(hidden_size, "LSTMCell: hidden_size", 1)
        bound = 1 / math.sqrt(hidden_size)
        self.weight_ih = Tensor.uniform(hidden_size * 4, input_size, low=-bound, high=bound)
        self.weight_hh = Tensor.uniform(hidden_size * 4, hidden_size, low=-bound, high=bound)
        self.bias_ih = Tensor.uniform(hidden_size * 4, low=-bound, high=bound) if bias else None
        self.bias_hh = Tensor.uniform(hidden_size * 4, low=-bound, high=bound) if bias else None

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """Returns (hidden, cell) after the input `x`. `hc` is the state before it (default: zeros)."""
        need_tensor(x, "LSTMCell: x")
        if hc is not None and (not isinstance(hc, (list, tuple)) or len(hc) != 2):
            raise TypeError(f"LSTMCell: hc is {shown(hc)}: need (hidden, cell), two tensors")
        if hc is None:
            zeros = Tensor.zeros(x.shape[0], self.weight_hh.shape[1], dtype=self.weight_hh.dtype, device=x.device)
            hc = (zeros, zeros)
        hidden, cell = hc
        gates = x.linear(self.weight_ih.T, self.bias_ih) + hidden.linear(self.weight_hh.T, self.bias_hh)
        let_in, forget, candidate, let_out = gates.chunk(4, dim=1)
        cell = forget.sigmoid() * cell + let_in.sigmoid() * candidate.tanh()
        return let_out.sigmoid() * cell.tanh(), cell

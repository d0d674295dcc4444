"""Pooling and its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.operations.convolution import per_axis, sides
from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.tensor import Tensor


def _add_batch_axis(x: Tensor, count: int, pool: Callable[[Tensor], Any]) -> Any:
    """Calls `pool` on a tensor with a batch axis. If there is none, adds one and removes it again."""
    if x.ndim == count + 2:
        return pool(x)
    pooled = pool(x.reshape((1, *x.shape)))
    if isinstance(pooled, tuple):
        return tuple([result.reshape(result.shape[1:]) for result in pooled])
    return pooled.reshape(pooled.shape[1:])


def _add_max_pool(count: int, name: str) -> None:
    """Adds the translation of max_pool over `count` axes, and of its gradient."""

    def function(
        call: AtenCall,
        x: Tensor,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> tuple[Tensor, Tensor]:
        size = per_axis(kernel, count)
        step = per_axis(stride, count) if stride else size
        pad, spread = sides(per_axis(padding, count)), per_axis(dilation, count)

        def pool(batch: Tensor) -> Any:
            return batch.max_pool2d(size, step, spread, pad, ceil_mode=ceil_mode, return_indices=True)

        values, indices = _add_batch_axis(x, count, pool)
        return values, indices.cast(dtypes.int64)

    function.__doc__ = "The largest element of each window, and its place in the unpadded axes."
    aten(name)(function)

    def backward(
        call: AtenCall, gradient: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any,
        ceil_mode: bool, indices: Tensor,
    ) -> Tensor:  # fmt: skip
        lead, size = x.shape[: x.ndim - count], math.prod(x.shape[x.ndim - count :])
        empty = Tensor.zeros(*lead, size, dtype=gradient.dtype)
        flat = (*lead, math.prod(gradient.shape[x.ndim - count :]))
        scattered = empty.scatter_reduce(len(lead), indices.reshape(flat), gradient.reshape(flat), "sum")
        return scattered.reshape(x.shape)

    backward.__doc__ = "The gradient of the maxima, at the places where they were."
    aten(f"{name}_backward")(backward)


_add_max_pool(2, "max_pool2d_with_indices")
_add_max_pool(3, "max_pool3d_with_indices")


def _average_windows(
    x: Tensor,
    count: int,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Tensor:
    """Returns the mean of each window, by the divisor that PyTorch's options select."""
    size = per_axis(kernel, count)
    step = per_axis(stride, count) if stride else size
    pad = sides(per_axis(padding, count))
    if divisor is not None and ceil_mode:
        raise TranslationError("avg_pool with divisor_override and ceil_mode has no translation")

    def pool(batch: Tensor) -> Tensor:
        counted = count_include_pad or divisor is not None
        return batch.avg_pool2d(size, step, 1, pad, counted, ceil_mode)

    mean: Tensor = _add_batch_axis(x, count, pool)
    return mean if divisor is None else mean * (math.prod(size) / divisor)


def _add_avg_pool(count: int) -> None:
    """Adds the translation of avg_pool over `count` axes, and of its gradient."""

    def function(call: AtenCall, x: Tensor, *args: Any) -> Tensor:
        return _average_windows(x, count, *args)

    def backward(call: AtenCall, gradient: Tensor, x: Tensor, *args: Any) -> Tensor:
        operand = x.detach().requires_grad_()
        with Tensor.inference_mode(False):
            (input_gradient,) = _average_windows(operand, count, *args).gradient(operand, gradient=gradient)
        return input_gradient.detach()

    function.__doc__ = "The mean of each window."
    backward.__doc__ = "The gradient of the means, by the tape's rules."
    aten(f"avg_pool{count}d")(function)
    if count > 1:
        aten(f"avg_pool{count}d_backward")(backward)


for _count in (1, 2, 3):
    _add_avg_pool(_count)


@aten("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d")
def adaptive_avg_pool(call: AtenCall, x: Tensor, sizes: Sequence[int]) -> Tensor:
    """Returns the means of windows that divide each axis into the given number of parts."""
    for number, parts in enumerate(sizes):
        axis = x.ndim - len(sizes) + number
        x = _average_uneven_windows(x, axis, parts)
    return x


def _average_uneven_windows(x: Tensor, axis: int, parts: int) -> Tensor:
    """Returns the means of `parts` windows of an axis. Part i is from i·size/parts to (i + 1)·size/parts."""
    size = x.shape[axis]
    if parts == size:
        return x
    if parts == 0 or size == 0:
        raise TranslationError("adaptive pooling of zero elements has no translation")
    if size % parts == 0:
        return x.reshape((*x.shape[:axis], parts, size // parts, *x.shape[axis + 1 :])).mean(axis + 1)
    indices, part = Tensor.arange(size).reshape(size, 1), Tensor.arange(parts)
    start, end = part * size // parts, ((part + 1) * size + parts - 1) // parts
    share = ((indices >= start) & (indices < end)).cast(x.dtype) / (end - start).cast(x.dtype)
    return x.transpose(axis, x.ndim - 1).matmul(share).transpose(axis, x.ndim - 1)


@aten("_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(call: AtenCall, gradient: Tensor, x: Tensor) -> Tensor:
    """Returns the gradient of the means, by the tape's rules."""
    operand = x.detach().requires_grad_()
    count = 2 if gradient.ndim in (3, 4) and call.first.ndim in (3, 4) else 3
    sizes = gradient.shape[gradient.ndim - count :]
    if gradient.ndim == 4 and x.ndim == 4 and count == 3:
        raise TranslationError("the gradient of adaptive pooling over three axes without a batch has no translation")
    with Tensor.inference_mode(False):
        (input_gradient,) = adaptive_avg_pool(call, operand, sizes).gradient(operand, gradient=gradient)
    return input_gradient.detach()

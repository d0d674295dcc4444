"""Convolutions and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.tensor import Tensor


def per_axis(values: Sequence[int] | int, count: int) -> tuple[int, ...]:
    """Returns one number for each of `count` axes."""
    if isinstance(values, int):
        return (values,) * count
    return tuple(values) * count if len(values) == 1 else tuple(values)


def sides(padding: Sequence[int]) -> list[int]:
    """Returns padding before and after each axis, the last axis first."""
    return [amount for size in reversed(padding) for amount in (size, size)]


@aten("convolution")
def convolution(
    call: AtenCall,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    """Computes a convolution over the axes after the first two, or a transposed one."""
    count = weight.ndim - 2
    if count == 0 or x.ndim != weight.ndim or 0 in call.shape or 0 in x.shape:
        raise TranslationError("a convolution without axes, a batch or elements has no translation")
    step, pad, spread = per_axis(stride, count), per_axis(padding, count), per_axis(dilation, count)
    if transposed:
        extra = per_axis(output_padding, count)
        return x.conv_transpose2d(weight, bias, groups, step, spread, pad, extra)
    return x.conv2d(weight, bias, groups, step, spread, sides(pad))


@aten("convolution_backward")
def convolution_backward(
    call: AtenCall,
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    bias_sizes: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Returns the gradients of the input, the weight and the bias, by the tape's rule for the convolution."""
    operand, kernel = x.detach(), weight.detach()
    targets = [tensor.requires_grad_() for tensor, flag in zip((operand, kernel), output_mask) if flag]
    gradients: list[Tensor] = []
    if targets:
        shown = AtenCall(gradient, ())
        with Tensor.inference_mode(False):
            output = convolution(
                shown, operand, kernel, None, stride, padding, dilation, transposed, output_padding, groups
            )
            gradients = output.gradient(*targets, gradient=gradient)
    results = iter([result.detach() for result in gradients])
    of_x = next(results) if output_mask[0] else None
    of_weight = next(results) if output_mask[1] else None
    of_bias = gradient.sum((0, *range(2, gradient.ndim))) if output_mask[2] else None
    return of_x, of_weight, of_bias

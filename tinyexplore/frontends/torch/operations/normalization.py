"""Softmax and the normalizations that AOTAutograd does not decompose."""

from __future__ import annotations

from collections.abc import Sequence

from tinyexplore.dtype import dtypes
from tinyexplore.frontends.torch.table import AtenCall, TranslationError, aten
from tinyexplore.tensor import Tensor


def _widen(x: Tensor) -> Tensor:
    """Casts 16-bit floats to float32, in which PyTorch computes statistics."""
    return x.cast(dtypes.float32) if x.dtype in (dtypes.float16, dtypes.bfloat16) else x


@aten("_softmax")
def softmax(call: AtenCall, a: Tensor, axis: int, half_to_float: bool) -> Tensor:
    """Returns the exponentials divided by their sum."""
    if not a.ndim:
        return call.full(1)
    return _widen(a).softmax(axis).cast(call.dtype)


@aten("_log_softmax")
def log_softmax(call: AtenCall, a: Tensor, axis: int, half_to_float: bool) -> Tensor:
    """Returns the logarithm of softmax."""
    if not a.ndim:
        return call.full(0)
    return _widen(a).log_softmax(axis).cast(call.dtype)


def _normalize(x: Tensor, axes: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Returns normalized values, means and reciprocal standard deviations. The axes remain with size 1."""
    mean = x.mean(axes, True)
    center = x - mean
    scale = ((center * center).mean(axes, True) + eps).rsqrt()
    return center * scale, mean, scale


@aten("native_layer_norm")
def layer_norm(
    call: AtenCall, x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes over the last axes. Also returns the means and reciprocal standard deviations."""
    if 0 in x.shape:
        raise TranslationError("normalization of zero elements has no translation")
    result, mean, scale = _normalize(_widen(x), tuple(range(x.ndim - len(shape), x.ndim)), eps)
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.cast(call.dtype), mean.cast(call.dtype_of(1)), scale.cast(call.dtype_of(2))


@aten("native_group_norm")
def group_norm(
    call: AtenCall, x: Tensor, weight: Tensor | None, bias: Tensor | None, batch: int, channels: int, size: int,
    groups: int, eps: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Normalizes over groups of channels. Also returns the means and reciprocal standard deviations."""
    if 0 in x.shape:
        raise TranslationError("normalization of zero elements has no translation")
    result, mean, scale = _normalize(_widen(x).reshape((batch, groups, -1)), (2,), eps)
    result = result.reshape(x.shape)
    along = (1, channels, *[1] * (x.ndim - 2))
    if weight is not None:
        result = result * weight.reshape(along)
    if bias is not None:
        result = result + bias.reshape(along)
    means, scales = mean.reshape((batch, groups)), scale.reshape((batch, groups))
    return result.cast(call.dtype), means.cast(call.dtype_of(1)), scales.cast(call.dtype_of(2))


@aten("_native_batch_norm_legit_functional")
def batch_norm(
    call: AtenCall,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Normalizes over all axes but the channels. Also returns the updated running statistics."""
    if 0 in x.shape or not training:
        raise TranslationError("this batch normalization has a translation only for training and at least one element")
    wide, axes = _widen(x), (0, *range(2, x.ndim))
    along = (1, x.shape[1], *[1] * (x.ndim - 2))
    result, mean, scale = _normalize(wide, axes, eps)
    center = wide - mean
    count = x.numel() // x.shape[1]
    unbiased = (center * center).sum(axes) / max(count - 1, 1)
    if weight is not None:
        result = result * weight.reshape(along)
    if bias is not None:
        result = result + bias.reshape(along)
    flat = (x.shape[1],)
    means = mean.reshape(flat)
    new_mean = means * momentum + running_mean * (1 - momentum)
    new_var = unbiased * momentum + running_var * (1 - momentum)
    return (
        result.cast(call.dtype),
        means.cast(call.dtype_of(1)),
        scale.reshape(flat).cast(call.dtype_of(2)),
        new_mean.cast(call.dtype_of(3)),
        new_var.cast(call.dtype_of(4)),
    )

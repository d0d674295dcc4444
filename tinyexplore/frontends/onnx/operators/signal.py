"""Fourier transforms, computed as products with a matrix of sines and cosines."""

from __future__ import annotations

import numpy as np

from tinyexplore.dtype import DType, dtypes
from tinyexplore.frontends.onnx.node import OnnxNode, axis_in, operator
from tinyexplore.frontends.onnx.values import check_shape
from tinyexplore.tensor import Tensor


def transform(real: Tensor, imaginary: Tensor | None, length: int, count: int, inverse: bool, dtype: DType) -> Tensor:
    """Returns the first `count` Fourier coefficients along the last axis. A new last axis has real and imaginary
    part."""
    check_shape((length, count))
    phase = np.outer(np.arange(length), np.arange(count)) % max(length, 1) * (2 * np.pi / max(length, 1))
    cosine, sine = np.cos(phase), np.sin(phase)
    if inverse:
        cosine, sine = cosine / length, -sine / length
    wide, cosine, sine = dtypes.float64, Tensor(cosine), Tensor(sine)  # in double, terms that cancel in a sum are exact
    real = real.cast(wide)
    imaginary = None if imaginary is None else imaginary.cast(wide)
    first, second = real.matmul(cosine), -real.matmul(sine)
    if imaginary is not None:
        first, second = first + imaginary.matmul(sine), second + imaginary.matmul(cosine)
    return first.stack(second, dim=-1).cast(dtype)


@operator("DFT")
def _dft(node: OnnxNode) -> Tensor:
    x = node.tensor(0)
    if node.version >= 20:
        axis = int(node.scalar(2)) if node.has(2) else -2
    else:
        axis = node.attribute("axis", 1)
    axis = axis_in(axis, x.ndim)
    inverse, one_sided = bool(node.attribute("inverse", 0)), bool(node.attribute("onesided", 0))
    real = x[..., 0].transpose(axis, x.ndim - 2)
    imaginary = x[..., 1].transpose(axis, x.ndim - 2) if x.shape[-1] == 2 else None
    length = int(node.scalar(1)) if node.has(1) else real.shape[-1]
    if one_sided and inverse:
        half = real.shape[-1]
        full = length if node.has(1) else 2 * (half - 1)
        mirror = Tensor(np.array([(full - frequency) % full for frequency in range(half, full)], np.int64))
        real = real.cat(real[..., mirror], dim=-1)
        assert imaginary is not None
        imaginary = imaginary.cat(-imaginary[..., mirror], dim=-1)
        result = transform(real, imaginary, full, full, True, x.dtype)[..., :1]
    else:
        real = _fit_length(real, length)
        imaginary = None if imaginary is None else _fit_length(imaginary, length)
        count = length // 2 + 1 if one_sided else length
        result = transform(real, imaginary, length, count, inverse, x.dtype)
    return result.transpose(axis, x.ndim - 2)


def _fit_length(x: Tensor, length: int) -> Tensor:
    """Cuts the last axis to `length`, or pads it with zeros."""
    return x.pad([(0, 0)] * (x.ndim - 1) + [(0, length - x.shape[-1])]) if x.shape[-1] != length else x


@operator("STFT")
def _stft(node: OnnxNode) -> Tensor:
    signal, step = node.tensor(0), int(node.scalar(1))
    window = node.tensor_or(2)
    length = int(node.scalar(3)) if node.has(3) else node.shape(2)[0]
    real = signal[..., 0] if signal.ndim == 3 else signal
    imaginary = signal[..., 1] if signal.ndim == 3 and signal.shape[-1] == 2 else None
    starts = np.arange(0, real.shape[1] - length + 1, step)
    indices = Tensor((starts[:, None] + np.arange(length)).astype(np.int64))

    def frames(part: Tensor) -> Tensor:
        cut = part[:, indices]
        return cut if window is None else cut * window

    one_sided = bool(node.attribute("onesided", 1)) and imaginary is None
    count = length // 2 + 1 if one_sided else length
    dtype = signal.dtype if dtypes.is_float(signal.dtype) else dtypes.float32
    return transform(frames(real), None if imaginary is None else frames(imaginary), length, count, False, dtype)


@operator("MelWeightMatrix")
def _mel_weights(node: OnnxNode) -> Tensor:
    """Returns triangular filters on the mel scale, for a spectrum of `dft_length` points."""
    bins, length, rate = int(node.scalar(0)), int(node.scalar(1)), int(node.scalar(2))
    low, high = float(node.scalar(3)), float(node.scalar(4))
    count = length // 2 + 1
    check_shape((count, bins))
    mel = np.linspace(2595 * np.log10(1 + low / 700), 2595 * np.log10(1 + high / 700), bins + 2)
    low_mel, high_mel = 2595 * np.log10(1 + low / 700), 2595 * np.log10(1 + high / 700)
    mel = np.arange(bins + 2) * ((high_mel - low_mel) / (bins + 2)) + low_mel
    edges = ((length + 1) * (700 * (10 ** (mel / 2595) - 1)) // rate).astype(np.int64)
    weights = np.zeros((count, bins))
    for number in range(bins):
        start, center, end = edges[number : number + 3]
        if start == center:
            weights[center, number] = 1
        else:
            rise = np.arange(start, center + 1)
            weights[rise, number] = (rise - start) / (center - start)
        fall = np.arange(center, end)
        if end > center:
            weights[fall, number] = (end - fall) / (end - center)
    return Tensor(weights).cast(node.dtype_attribute("output_datatype", dtypes.float32))

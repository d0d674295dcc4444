"""The result of each family of the wide table in NumPy. Gradients are written out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bench.references import (
    GELU_SCALE,
    NORM_EPS,
    Arrays,
    Results,
    convolved,
    gelu,
    softmax_rows,
)
from bench.wide import LEVELS_PER_UNIT, NORM_GROUPS, TOP


def reference(family: str) -> Callable[[Arrays], Results]:
    """Return the function of this module with that name; `matmul` for the products of all dtypes."""
    function: Callable[[Arrays], Results] = globals()["matmul" if family.startswith("matmul_") else family]
    return function


def rounded_to_bfloat16(arrays: Arrays) -> Arrays:
    """Return the arrays with floats truncated to bfloat16."""

    def cut(value: np.ndarray) -> np.ndarray:
        return (value.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)

    return {name: cut(value) if value.dtype == np.float32 else value for name, value in arrays.items()}


# *** norms ***


def _standardized(x: np.ndarray, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return x with mean 0 and variance 1 over `axes`, and the factor."""
    centered = x - x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(np.square(centered).mean(axes, keepdims=True) + NORM_EPS)
    return centered * inverse, inverse


def _standardized_slope(
    slope: np.ndarray, normal: np.ndarray, inverse: np.ndarray, axes: tuple[int, ...]
) -> np.ndarray:
    """Return the gradient of x from the gradient of its standardized value."""
    along = (slope * normal).mean(axes, keepdims=True)
    return inverse * (slope - slope.mean(axes, keepdims=True) - normal * along)


def _per_channel(value: np.ndarray) -> np.ndarray:
    return value[:, None, None]


def _grouped(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), NORM_GROUPS, -1)


def group_norm(x: Arrays) -> Results:
    normal = _standardized(_grouped(x["x"]), (2,))[0].reshape(x["x"].shape)
    return (normal * _per_channel(x["w"]) + _per_channel(x["b"]),)


def group_norm_bwd(x: Arrays) -> Results:
    normal, inverse = _standardized(_grouped(x["x"]), (2,))
    slope = _grouped(x["g"] * _per_channel(x["w"]))
    gradient = _standardized_slope(slope, normal, inverse, (2,)).reshape(x["x"].shape)
    return gradient, (x["g"] * normal.reshape(x["x"].shape)).sum((0, 2, 3)), x["g"].sum((0, 2, 3))


def batch_norm_bwd(x: Arrays) -> Results:
    axes = (0, 2, 3)
    normal, inverse = _standardized(x["x"], axes)
    gradient = _standardized_slope(x["g"] * _per_channel(x["w"]), normal, inverse, axes)
    return gradient, (x["g"] * normal).sum(axes), x["g"].sum(axes)


def layer_norm_bwd(x: Arrays) -> Results:
    normal, inverse = _standardized(x["x"], (1,))
    gradient = _standardized_slope(x["g"] * x["w"], normal, inverse, (1,))
    return gradient, (x["g"] * normal).sum(0), x["g"].sum(0)


def layer_norm_f64(x: Arrays) -> Results:
    return (_standardized(x["x"], (1,))[0] * x["w"] + x["b"],)


def rms_norm_bf16(x: Arrays) -> Results:
    value = x["x"]
    return (value / np.sqrt(np.square(value).mean(1, keepdims=True) + 1e-6) * x["w"],)


# *** convolutions and pools ***


def _padded(x: np.ndarray, by: int, value: float = 0.0) -> np.ndarray:
    return np.pad(x, [(0, 0), (0, 0), (by, by), (by, by)], constant_values=value)


def conv5x5_stride2(x: Arrays) -> Results:
    return (convolved(_padded(x["x"], 2), x["w"])[:, :, ::2, ::2],)


def conv7x7_stride2(x: Arrays) -> Results:
    return (convolved(_padded(x["x"], 3), x["w"])[:, :, ::2, ::2],)


def conv1x1(x: Arrays) -> Results:
    return (convolved(x["x"], x["w"]),)


def conv_depthwise(x: Arrays) -> Results:
    windows = sliding_window_view(_padded(x["x"], 1), (3, 3), axis=(2, 3))
    return (np.einsum("nchwij,cij->nchw", windows, x["w"][:, 0]),)


def conv1d(x: Arrays) -> Results:
    windows = sliding_window_view(np.pad(x["x"], [(0, 0), (0, 0), (2, 2)]), 5, axis=2)
    return (np.tensordot(windows, x["w"], ([1, 3], [1, 2])).transpose(0, 2, 1),)


def _flip_filters(w: np.ndarray) -> np.ndarray:
    """Return the filters of the transposed convolution of `w`."""
    return np.ascontiguousarray(w[:, :, ::-1, ::-1].swapaxes(0, 1))


def conv_transpose(x: Arrays) -> Results:
    batch, channels, height, width = x["x"].shape
    spread = np.zeros((batch, channels, 2 * height - 1, 2 * width - 1), x["x"].dtype)
    spread[:, :, ::2, ::2] = x["x"]
    return (convolved(_padded(spread, 2), _flip_filters(x["w"])),)


def conv3x3_bwd(x: Arrays) -> Results:
    gradient = convolved(_padded(x["g"], 1), _flip_filters(x["w"]))
    weight = convolved(_padded(x["x"], 1).swapaxes(0, 1), x["g"].swapaxes(0, 1)).swapaxes(0, 1)
    return gradient, weight, x["g"].sum((0, 2, 3))


def max_pool_bwd(x: Arrays) -> Results:
    value = _padded(x["x"], 1, -np.inf)
    windows = sliding_window_view(value, (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    best = windows.reshape(*windows.shape[:4], 9).argmax(-1)
    gradient = np.zeros_like(value)
    n, c, i, j = np.indices(best.shape, sparse=True)
    np.add.at(gradient, (n, c, 2 * i + best // 3, 2 * j + best % 3), x["g"])
    return (gradient[:, :, 1:-1, 1:-1],)


def mean_pool(x: Arrays) -> Results:
    return (x["x"].mean((2, 3)),)


def upsample(x: Arrays) -> Results:
    return (x["x"].repeat(2, 2).repeat(2, 3),)


# *** linear, recurrent, attention, losses ***


def _gelu_slope(h: np.ndarray) -> np.ndarray:
    t = np.tanh(GELU_SCALE * (h + 0.044715 * h**3))
    return 0.5 * (1 + t) + 0.5 * h * (1 - t * t) * GELU_SCALE * (1 + 3 * 0.044715 * h * h)


def linear_gelu_bwd(x: Arrays) -> Results:
    slope = x["g"] * _gelu_slope(x["x"] @ x["w"].T + x["b"])
    return slope @ x["w"], slope.T @ x["x"], slope.sum(0)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_cell(x: Arrays) -> Results:
    gates = x["x"] @ x["wi"].T + x["bi"] + x["h"] @ x["wh"].T + x["bh"]
    let_in, forget, candidate, let_out = np.split(gates, 4, 1)
    cell = _sigmoid(forget) * x["c"] + _sigmoid(let_in) * np.tanh(candidate)
    return _sigmoid(let_out) * np.tanh(cell), cell


def _weights(x: Arrays) -> np.ndarray:
    return softmax_rows(x["q"] @ x["k"].swapaxes(-1, -2) * np.float32(x["q"].shape[-1] ** -0.5))


def attention_full(x: Arrays) -> Results:
    return (_weights(x) @ x["v"],)


attention_decode = attention_full


def attention_bwd(x: Arrays) -> Results:
    weights = _weights(x)
    slope = x["g"] @ x["v"].swapaxes(-1, -2)
    slope = weights * (slope - (slope * weights).sum(-1, keepdims=True)) * np.float32(x["q"].shape[-1] ** -0.5)
    return slope @ x["k"], slope.swapaxes(-1, -2) @ x["q"], weights.swapaxes(-1, -2) @ x["g"]


def cross_entropy(x: Arrays) -> Results:
    scores = x["x"].astype(np.float64)
    top = scores.max(1)
    logs = np.log(np.exp(scores - top[:, None]).sum(1)) + top
    return (np.asarray((logs - scores[np.arange(len(scores)), x["y"]]).mean()),)


def cross_entropy_bwd(x: Arrays) -> Results:
    gradient = softmax_rows(x["x"])
    gradient[np.arange(len(gradient)), x["y"]] -= 1
    return (gradient / np.float32(len(gradient)),)


def embedding_bwd(x: Arrays) -> Results:
    gradient = np.zeros_like(x["table"])
    np.add.at(gradient, x["index"], x["g"])
    return (gradient,)


# *** rows and columns ***


def softmax_short(x: Arrays) -> Results:
    return (softmax_rows(x["x"]),)


def var_columns(x: Arrays) -> Results:
    return (x["x"].var(0, dtype=np.float64, ddof=1),)


def cummax(x: Arrays) -> Results:
    return (np.maximum.accumulate(x["x"], 1),)


def topk(x: Arrays) -> Results:
    indices = np.argsort(-x["x"], 1)[:, :TOP]
    return np.take_along_axis(x["x"], indices, 1), indices


def sort_rows(x: Arrays) -> Results:
    return (np.sort(x["x"], 1),)


def gather_rows(x: Arrays) -> Results:
    return (np.take_along_axis(x["x"], x["index"], 1),)


def pairwise(x: Arrays) -> Results:
    return (np.stack([np.sqrt(np.square(row - x["b"]).sum(1)) for row in x["a"]]),)


def stencil(x: Arrays) -> Results:
    v = x["x"]
    return (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1],)


def concatenate(x: Arrays) -> Results:
    return (np.concatenate([x["a"], x["b"], x["c"]], 1),)


def broadcast_relu(x: Arrays) -> Results:
    return (np.maximum(x["x"] + x["row"] + x["column"], 0),)


def transpose_odd(x: Arrays) -> Results:
    return (np.ascontiguousarray(x["x"].swapaxes(1, 2)),)


# *** products and other dtypes ***


def matmul(x: Arrays) -> Results:
    a, b = x["a"], x["b"]
    if a.dtype == np.int8:  # exact in float64
        return ((a.astype(np.float64) @ b.astype(np.float64)).astype(np.int32),)
    return (a.astype(np.float32) @ b.astype(np.float32),) if a.dtype == np.float16 else (a @ b,)


def gelu_f16(x: Arrays) -> Results:
    return (gelu(x["x"].astype(np.float32)),)


def exp_f64(x: Arrays) -> Results:
    return (np.exp(x["x"]),)


def add_i8(x: Arrays) -> Results:
    return (x["a"] + x["b"],)


def quantize_i8(x: Arrays) -> Results:
    return (np.clip(np.round(x["x"] * np.float32(LEVELS_PER_UNIT)), -128, 127).astype(np.int8),)

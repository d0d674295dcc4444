"""The result of each family of cases in NumPy, against which every peer is compared.

Gradients are written out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Arrays = dict[str, np.ndarray]
Results = tuple[np.ndarray, ...]
Gradients = Callable[[Arrays], tuple[np.ndarray, Arrays]]

HEADS = 8
SGD_RATE = 0.1
# an epsilon this large keeps a first step well conditioned at gradients near zero; it costs the same
ADAM_RATE, ADAM_B1, ADAM_B2, ADAM_EPS = 1e-3, 0.9, 0.999, 1e-3
NORM_EPS = 1e-5
GELU_SCALE = 0.7978845608028654  # √(2/π)
CONVNET_LAYERS = ((1, 32, 5), (32, 32, 5), (32, 64, 3), (64, 64, 3))  # channels in, channels out, window


# *** elementwise, reductions, rows ***


def ew_chain(x: Arrays) -> Results:
    return (np.exp(np.maximum(x["a"] * x["b"] + x["c"], 0) * x["d"] - x["a"]),)


def ew_add(x: Arrays) -> Results:
    return (x["a"] + x["b"],)


def gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(GELU_SCALE * (x + 0.044715 * x**3)))


def ew_gelu(x: Arrays) -> Results:
    return (gelu(x["x"]),)


def full_sum(x: Arrays) -> Results:
    return (np.asarray(np.sum(x["x"], dtype=np.float64)),)


def colsum(x: Arrays) -> Results:
    return (x["x"].sum(0, dtype=np.float64),)


def rowmax(x: Arrays) -> Results:
    return (x["x"].max(1),)


def softmax_rows(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax(x: Arrays) -> Results:
    return (softmax_rows(x["x"]),)


def layernorm(x: Arrays) -> Results:
    return (_normalized(x["x"])[0] * x["w"] + x["b"],)


def cumsum(x: Arrays) -> Results:
    return (np.cumsum(x["x"], axis=-1, dtype=np.float64),)


def argmax(x: Arrays) -> Results:
    return (x["x"].argmax(1),)


def sort(x: Arrays) -> Results:
    return (np.sort(x["x"]),)


# *** matrices ***


def matmul(x: Arrays) -> Results:
    return (x["a"] @ x["b"],)


def matmul_nt(x: Arrays) -> Results:
    return (x["a"] @ x["b"].T,)


def matmul_tn(x: Arrays) -> Results:
    return (x["a"].T @ x["b"],)


def matmul_bias_relu(x: Arrays) -> Results:
    return (np.maximum(x["a"] @ x["b"] + x["bias"], 0),)


def conv3x3(x: Arrays) -> Results:
    padded = np.pad(x["x"], ((0, 0), (0, 0), (1, 1), (1, 1)))
    return (convolved(padded, x["w"]),)


def maxpool2(x: Arrays) -> Results:
    return (pooled(x["x"]),)


def transpose(x: Arrays) -> Results:
    return (np.ascontiguousarray(x["x"].T),)


def permute_nhwc(x: Arrays) -> Results:
    return (np.ascontiguousarray(x["x"].transpose(0, 2, 3, 1)),)


def embedding(x: Arrays) -> Results:
    return (x["table"][x["index"]],)


def _columns(x: np.ndarray, size: int) -> np.ndarray:
    """Return every window of every image as a row: (batch · height · width, channels · size · size)."""
    windows = sliding_window_view(x, (size, size), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, x.shape[1] * size * size)


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the convolution of x (batch, channels, height, width) with w (out, channels, size, size), no padding."""
    out, _, size, _ = w.shape
    batch, _, height, width = x.shape
    flat = _columns(x, size) @ w.reshape(out, -1).T
    return flat.reshape(batch, height - size + 1, width - size + 1, out).transpose(0, 3, 1, 2)


def pooled(x: np.ndarray) -> np.ndarray:
    batch, channels, height, width = x.shape
    return x.reshape(batch, channels, height // 2, 2, width // 2, 2).max((3, 5))


# *** attention ***


def _causal_weights(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    scores = q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5
    length = scores.shape[-1]
    return softmax_rows(np.where(np.tri(length, dtype=bool), scores, np.float32(-np.inf)))


def sdpa(x: Arrays) -> Results:
    return (_causal_weights(x["q"], x["k"]) @ x["v"],)


# *** the MLP ***


def _mlp_parameters(x: Arrays) -> list[str]:
    return [name for name in x if name not in ("x", "y")]


def mlp_gradients(x: Arrays) -> tuple[np.ndarray, Arrays]:
    """Return the loss and the gradient of every parameter."""
    layers = sum(name.startswith("w") for name in x)
    hidden = [x["x"]]
    for number in range(1, layers + 1):
        value = hidden[-1] @ x[f"w{number}"] + x[f"b{number}"]
        hidden.append(np.maximum(value, 0) if number < layers else value)
    loss, slope = _cross_entropy(hidden[-1], x["y"])
    gradients: Arrays = {}
    for number in range(layers, 0, -1):
        gradients[f"w{number}"] = hidden[number - 1].T @ slope
        gradients[f"b{number}"] = slope.sum(0)
        slope = (slope @ x[f"w{number}"].T) * (hidden[number - 1] > 0)
    return loss, gradients


def _cross_entropy(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights = softmax_rows(scores)
    rows = np.arange(len(labels))
    loss = -np.log(weights[rows, labels]).mean()
    slope = weights.copy()
    slope[rows, labels] -= 1
    return loss, slope / np.float32(len(labels))


STEPS = 6  # of a training case; all losses are compared, so that a replay must train as the first step does


def _train_steps(x: Arrays, names: list[str], gradients: Gradients, rule: str) -> Results:
    """Return the loss, every parameter after one step, and the losses of STEPS steps."""
    current = dict(x)
    m, v = ({name: np.zeros_like(x[name]) for name in names} for _ in range(2))
    losses: list[np.ndarray] = []
    after: list[np.ndarray] = []
    for step in range(1, STEPS + 1):
        loss, slopes = gradients(current)
        losses.append(loss)
        for name in names:
            change = SGD_RATE * slopes[name]
            if rule == "adam":
                m[name] = ADAM_B1 * m[name] + (1 - ADAM_B1) * slopes[name]
                v[name] = ADAM_B2 * v[name] + (1 - ADAM_B2) * slopes[name] ** 2
                root = np.sqrt(v[name] / (1 - ADAM_B2**step))
                change = ADAM_RATE * (m[name] / (1 - ADAM_B1**step)) / (root + ADAM_EPS)
            current[name] = current[name] - change
        after = after or [current[name] for name in names]
    return (losses[0], *after, np.array(losses))


def mlp_fwd(x: Arrays) -> Results:
    value, layers = x["x"], sum(name.startswith("w") for name in x)
    for number in range(1, layers + 1):
        value = value @ x[f"w{number}"] + x[f"b{number}"]
        value = np.maximum(value, 0) if number < layers else value
    return (value,)


def mlp_sgd(x: Arrays) -> Results:
    return _train_steps(x, _mlp_parameters(x), mlp_gradients, "sgd")


def mlp_adam(x: Arrays) -> Results:
    return _train_steps(x, _mlp_parameters(x), mlp_gradients, "adam")


# *** the transformer block ***


def _normalized(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows with mean 0 and variance 1, and the reciprocal of each row's divisor."""
    centered = x - x.mean(-1, keepdims=True)
    inverse = 1 / np.sqrt((centered * centered).mean(-1, keepdims=True) + NORM_EPS)
    return centered * inverse, inverse


def _heads(x: np.ndarray) -> np.ndarray:
    batch, length, width = x.shape
    return x.reshape(batch, length, HEADS, width // HEADS).transpose(0, 2, 1, 3)


def _join_heads(x: np.ndarray) -> np.ndarray:
    batch, heads, length, width = x.shape
    return x.transpose(0, 2, 1, 3).reshape(batch, length, heads * width)


def _block_forward(x: Arrays) -> Arrays:
    """Return every intermediate value that the gradients need."""
    values: Arrays = {}
    values["n1"], values["i1"] = _normalized(x["x"])
    values["h1"] = values["n1"] * x["ln1_w"] + x["ln1_b"]
    q, k, v = np.split(values["h1"] @ x["wqkv"] + x["bqkv"], 3, axis=-1)
    values["q"], values["k"], values["v"] = _heads(q), _heads(k), _heads(v)
    values["p"] = _causal_weights(values["q"], values["k"])
    values["a"] = _join_heads(values["p"] @ values["v"])
    values["r"] = x["x"] + values["a"] @ x["wo"] + x["bo"]
    values["n2"], values["i2"] = _normalized(values["r"])
    values["h2"] = values["n2"] * x["ln2_w"] + x["ln2_b"]
    values["u"] = values["h2"] @ x["w1"] + x["b1"]
    values["g"] = gelu(values["u"])
    values["out"] = values["r"] + values["g"] @ x["w2"] + x["b2"]
    return values


def block_fwd(x: Arrays) -> Results:
    return (_block_forward(x)["out"],)


def _linear_gradient(gradients: Arrays, key: str, source: np.ndarray, slope: np.ndarray, w: np.ndarray) -> np.ndarray:
    flat = slope.reshape(-1, slope.shape[-1])
    gradients[f"w{key}"] = source.reshape(-1, source.shape[-1]).T @ flat
    gradients[f"b{key}"] = flat.sum(0)
    return slope @ w.T


def _norm_gradient(
    gradients: Arrays, key: str, n: np.ndarray, slope: np.ndarray, x: Arrays, i: np.ndarray
) -> np.ndarray:
    gradients[f"{key}_w"] = (slope * n).sum((0, 1))
    gradients[f"{key}_b"] = slope.sum((0, 1))
    inner = slope * x[f"{key}_w"]
    return i * (inner - inner.mean(-1, keepdims=True) - n * (inner * n).mean(-1, keepdims=True))


def _gelu_slope(x: np.ndarray) -> np.ndarray:
    t = np.tanh(GELU_SCALE * (x + 0.044715 * x**3))
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GELU_SCALE * (1 + 3 * 0.044715 * x * x)


def block_fwdbwd(x: Arrays) -> Results:
    """Return the mean square of the output, and its gradients in the order of the inputs."""
    values = _block_forward(x)
    out = values["out"]
    gradients: Arrays = {}
    slope = 2 * out / np.float32(out.size)
    inner = _linear_gradient(gradients, "2", values["g"], slope, x["w2"]) * _gelu_slope(values["u"])
    inner = _linear_gradient(gradients, "1", values["h2"], inner, x["w1"])
    slope = slope + _norm_gradient(gradients, "ln2", values["n2"], inner, x, values["i2"])
    inner = _heads(_linear_gradient(gradients, "o", values["a"], slope, x["wo"]))
    weights = values["p"]
    dv = weights.swapaxes(-1, -2) @ inner
    dp = inner @ values["v"].swapaxes(-1, -2)
    ds = weights * (dp - (dp * weights).sum(-1, keepdims=True)) * values["q"].shape[-1] ** -0.5
    dq, dk = ds @ values["k"], ds.swapaxes(-1, -2) @ values["q"]
    inner = np.concatenate([_join_heads(dq), _join_heads(dk), _join_heads(dv)], axis=-1)
    inner = _linear_gradient(gradients, "qkv", values["h1"], inner, x["wqkv"])
    _norm_gradient(gradients, "ln1", values["n1"], inner, x, values["i1"])
    return ((out * out).mean(), *(gradients[name] for name in x if name != "x"))


# *** the convnet ***

CONVNET_TRAINED = ("c1", "d1", "c2", "d2", "g1", "h1", "c3", "d3", "c4", "d4", "g2", "h2", "w", "b")


def convnet_fwd(x: Arrays) -> Results:
    value = x["x"]
    for stage in (1, 2):
        for number in (2 * stage - 1, 2 * stage):
            value = np.maximum(convolved(value, x[f"c{number}"]) + x[f"d{number}"][:, None, None], 0)
        scale = x[f"g{stage}"] / np.sqrt(x[f"var{stage}"] + NORM_EPS)
        shift = x[f"h{stage}"] - x[f"mean{stage}"] * scale
        value = pooled(value * scale[:, None, None] + shift[:, None, None])
    return (value.reshape(len(value), -1) @ x["w"] + x["b"],)


def convnet_clearance(x: Arrays) -> np.ndarray:
    """Return for each image the distance to the nearest jump of a gradient of `convnet_adam`, over the layer's spread.

    A gradient jumps where the input of a ReLU is 0, or where a pool window has two equal largest values.
    """
    value = x["x"].astype(np.float64)
    batch = len(value)
    closest = np.full(batch, np.inf)
    for stage in (1, 2):
        for number in (2 * stage - 1, 2 * stage):
            before = convolved(value, x[f"c{number}"]) + x[f"d{number}"][:, None, None]
            spread = before.std()
            closest = np.minimum(closest, np.abs(before).reshape(batch, -1).min(1) / spread)
            value = np.maximum(before, 0)
        second, first = np.moveaxis(np.partition(_windows(value), (2, 3), axis=-1)[..., 2:], -1, 0)
        # where the second value is a ReLU's 0, the distance of the first from 0 was included above
        gap = np.where(second > 0, first - second, np.inf)
        closest = np.minimum(closest, gap.reshape(batch, -1).min(1) / spread)
        centered = value - value.mean((0, 2, 3), keepdims=True)
        normal = centered / np.sqrt((centered * centered).mean((0, 2, 3), keepdims=True) + NORM_EPS)
        value = pooled(normal * x[f"g{stage}"][:, None, None] + x[f"h{stage}"][:, None, None])
    return closest


def _windows(x: np.ndarray) -> np.ndarray:
    """Return the four values of each pool window: (batch, channels, height / 2, width / 2, 4)."""
    batch, channels, height, width = x.shape
    split = x.reshape(batch, channels, height // 2, 2, width // 2, 2).transpose(0, 1, 2, 4, 3, 5)
    return split.reshape(*split.shape[:4], 4)


def _pool_gradient(x: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Return the gradient of a pool's input. The first of equal values receives it.

    Equal values are zeros of the ReLU below here, which discards their gradients, so the choice does not matter.
    """
    batch, channels, height, width = x.shape
    windows = _windows(x)
    gradient = np.zeros_like(windows)
    np.put_along_axis(gradient, windows.argmax(-1)[..., None], slope[..., None], axis=-1)
    split = gradient.reshape(batch, channels, height // 2, width // 2, 2, 2)
    return split.transpose(0, 1, 2, 4, 3, 5).reshape(x.shape)


def convnet_adam(x: Arrays) -> Results:
    return _train_steps(x, list(CONVNET_TRAINED), convnet_gradients, "adam")


def _mean_over_images(x: np.ndarray) -> np.ndarray:
    """Return the mean of each channel, summed in float64.

    NumPy's float32 sum over these axes errs in the fifth digit.
    """
    return x.mean((0, 2, 3), keepdims=True, dtype=np.float64).astype(x.dtype)


def convnet_gradients(x: Arrays) -> tuple[np.ndarray, Arrays]:
    """Return the loss and the gradient of every trained parameter."""
    axes, count = (0, 2, 3), 0
    kept: dict[str, np.ndarray] = {"v1": x["x"]}
    value = x["x"]
    for stage in (1, 2):
        for number in (2 * stage - 1, 2 * stage):
            kept[f"v{number}"] = value
            value = np.maximum(convolved(value, x[f"c{number}"]) + x[f"d{number}"][:, None, None], 0)
            kept[f"o{number}"] = value
        mean, variance = _mean_over_images(value), _mean_over_images(np.square(value - _mean_over_images(value)))
        kept[f"i{stage}"] = 1 / np.sqrt(variance + NORM_EPS)
        kept[f"n{stage}"] = (value - mean) * kept[f"i{stage}"]
        value = kept[f"n{stage}"] * x[f"g{stage}"][:, None, None] + x[f"h{stage}"][:, None, None]
        kept[f"p{stage}"] = value
        value = pooled(value)
    flat = value.reshape(len(value), -1)
    loss, slope = _cross_entropy(flat @ x["w"] + x["b"], x["y"])
    found: Arrays = {"w": flat.T @ slope, "b": slope.sum(0)}
    slope = (slope @ x["w"].T).reshape(value.shape)
    for stage in (2, 1):
        slope = _pool_gradient(kept[f"p{stage}"], slope)
        n = kept[f"n{stage}"]
        found[f"g{stage}"], found[f"h{stage}"] = (slope * n).sum(axes), slope.sum(axes)
        count = n.size // n.shape[1]
        inner = slope * x[f"g{stage}"][:, None, None]
        sums = inner.sum(axes, keepdims=True), (inner * n).sum(axes, keepdims=True)
        slope = kept[f"i{stage}"] * (inner - sums[0] / count - n * sums[1] / count)
        for number in (2 * stage, 2 * stage - 1):
            slope = slope * (kept[f"o{number}"] > 0)
            w = x[f"c{number}"]
            out, _, size, _ = w.shape
            rows = slope.transpose(0, 2, 3, 1).reshape(-1, out)
            found[f"c{number}"] = (rows.T @ _columns(kept[f"v{number}"], size)).reshape(w.shape)
            found[f"d{number}"] = slope.sum(axes)
            edge = size - 1
            spread = np.pad(slope, ((0, 0), (0, 0), (edge, edge), (edge, edge)))
            slope = convolved(spread, w[:, :, ::-1, ::-1].swapaxes(0, 1))
    return loss, found

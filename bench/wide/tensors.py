"""The wide table on a lazy Tensor, with the engine's layers.

A program is a function of its `nn` and the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.references import NORM_EPS
from bench.wide import LEVELS_PER_UNIT, NORM_GROUPS, TOP

Inputs = dict[str, Any]
Program = Callable[[Any, Inputs], Any]


def set_weights(new_layer: Any, x: Inputs) -> Any:
    """Return a layer with the weights of a case."""
    new_layer.weight = x["w"]
    if "b" in x:
        new_layer.bias = x["b"]
    return new_layer


def group_norm(nn: Any, x: Inputs) -> Any:
    return set_weights(nn.GroupNorm(NORM_GROUPS, x["x"].shape[1]), x)(x["x"])


def batch_norm(nn: Any, x: Inputs) -> Any:
    """Return a batch norm as in training: with the statistics of the batch, and without a running average."""
    return set_weights(nn.BatchNorm(x["x"].shape[1], eps=NORM_EPS, track_running_stats=False), x)(x["x"])


def layer_norm(nn: Any, x: Inputs) -> Any:
    return set_weights(nn.LayerNorm(x["x"].shape[-1], eps=NORM_EPS), x)(x["x"])


def conv_transpose(nn: Any, x: Inputs) -> Any:
    return x["x"].conv_transpose2d(x["w"], stride=2, padding=1)


def conv3x3(nn: Any, x: Inputs) -> Any:
    return x["x"].conv2d(x["w"], x["b"], padding=1)


def lstm_cell(nn: Any, x: Inputs) -> Any:
    cell = nn.LSTMCell(x["x"].shape[1], x["h"].shape[1])
    cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh = x["wi"], x["wh"], x["bi"], x["bh"]
    return cell(x["x"], (x["h"], x["c"]))


def attention(nn: Any, x: Inputs) -> Any:
    return x["q"].scaled_dot_product_attention(x["k"], x["v"])


def embedding(nn: Any, x: Inputs) -> Any:
    return x["table"][x["index"]]


def cross_entropy(nn: Any, x: Inputs) -> Any:
    return x["x"].sparse_categorical_crossentropy(x["y"])


def upsample(nn: Any, x: Inputs) -> Any:
    height, width = x["x"].shape[2:]
    return x["x"].interpolate((2 * height, 2 * width), mode="nearest").contiguous()


def pairwise(nn: Any, x: Inputs) -> Any:
    return (x["a"].unsqueeze(1) - x["b"].unsqueeze(0)).square().sum(2).sqrt()


def stencil(nn: Any, x: Inputs) -> Any:
    v = x["x"]
    return v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1]


def matmul(nn: Any, x: Inputs) -> Any:
    return x["a"] @ x["b"]


PROGRAMS: dict[str, Program] = {
    "group_norm": group_norm,
    "rms_norm_bf16": lambda nn, x: set_weights(nn.RMSNorm(x["x"].shape[-1]), x)(x["x"]),
    "conv_transpose": conv_transpose,
    "conv5x5_stride2": lambda nn, x: x["x"].conv2d(x["w"], stride=2, padding=2),
    "conv7x7_stride2": lambda nn, x: x["x"].conv2d(x["w"], stride=2, padding=3),
    "conv1x1": lambda nn, x: x["x"].conv2d(x["w"]),
    "conv_depthwise": lambda nn, x: x["x"].conv2d(x["w"], groups=x["x"].shape[1], padding=1),
    "conv1d": lambda nn, x: x["x"].conv2d(x["w"], padding=2),
    "lstm_cell": lstm_cell,
    "attention_full": attention,
    "attention_decode": attention,
    "mean_pool": lambda nn, x: x["x"].mean(axis=(2, 3)),
    "upsample": upsample,
    "cross_entropy": cross_entropy,
    "group_norm_bwd": group_norm,
    "batch_norm_bwd": batch_norm,
    "layer_norm_bwd": layer_norm,
    "linear_gelu_bwd": lambda nn, x: (x["x"] @ x["w"].transpose(0, 1) + x["b"]).gelu(),
    "conv3x3_bwd": conv3x3,
    "max_pool_bwd": lambda nn, x: x["x"].max_pool2d((3, 3), stride=2, padding=1),
    "embedding_bwd": embedding,
    "attention_bwd": attention,
    "cross_entropy_bwd": cross_entropy,
    "softmax_short": lambda nn, x: x["x"].softmax(axis=1),
    "var_columns": lambda nn, x: x["x"].var(axis=0),
    "cummax": lambda nn, x: x["x"].cummax(axis=1)[0],
    "topk": lambda nn, x: x["x"].topk(TOP),
    "sort_rows": lambda nn, x: x["x"].sort()[0],
    "gather_rows": lambda nn, x: x["x"].gather(1, x["index"]),
    "pairwise": pairwise,
    "stencil": stencil,
    "concatenate": lambda nn, x: x["a"].cat(x["b"], x["c"], dim=1),
    "broadcast_relu": lambda nn, x: (x["x"] + x["row"] + x["column"]).relu(),
    "transpose_odd": lambda nn, x: x["x"].transpose(1, 2).contiguous(),
    "matmul_odd": matmul,
    "matmul_tall": matmul,
    "matmul_16_rows": matmul,
    "matmul_small": matmul,
    "matmul_f16": matmul,
    "matmul_bf16": matmul,
    "matmul_f64": matmul,
    "matmul_i8": lambda nn, x: x["a"].matmul(x["b"], acc_dtype="int32"),
    "gelu_f16": lambda nn, x: x["x"].gelu(),
    "exp_f64": lambda nn, x: x["x"].exp(),
    "layer_norm_f64": layer_norm,
    "add_i8": lambda nn, x: x["a"] + x["b"],
    "quantize_i8": lambda nn, x: (x["x"] * LEVELS_PER_UNIT).round().clip(-128, 127).cast("int8"),
}

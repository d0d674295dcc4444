"""The wide table in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.peers import Arrays, Call
from bench.references import NORM_EPS
from bench.wide import DIFFERENTIATED, LEVELS_PER_UNIT, NORM_GROUPS, TOP, is_bfloat16

Inputs = dict[str, Tensor]


def prepare(engine: Any, family: str, arrays: Arrays) -> Call:
    """Return a call of a family's program, or of its gradients."""
    program = PROGRAMS[family]
    x = {name: torch.from_numpy(value) for name, value in arrays.items()}
    for name in ("index", "y"):
        if name in x:
            x[name] = x[name].long()
    if is_bfloat16(family):
        x = {name: value.bfloat16() if value.is_floating_point() else value for name, value in x.items()}
    if family not in DIFFERENTIATED:
        call: Call = engine.forward(program, x)
        return call
    leaves = [x[name].requires_grad_() for name in DIFFERENTIATED[family]]
    compiled = engine.compiled(program)
    slope = x.get("g")
    return lambda: torch.autograd.grad(compiled(x), leaves, slope)


def lstm_cell(x: Inputs) -> Any:
    return torch.lstm_cell(x["x"], (x["h"], x["c"]), x["wi"], x["wh"], x["bi"], x["bh"])


def attention(x: Inputs) -> Tensor:
    return F.scaled_dot_product_attention(x["q"], x["k"], x["v"])


def layer_norm(x: Inputs) -> Tensor:
    return F.layer_norm(x["x"], x["w"].shape, x["w"], x["b"], NORM_EPS)


def stencil(x: Inputs) -> Tensor:
    v = x["x"]
    return v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1]


def group_norm(x: Inputs) -> Tensor:
    return F.group_norm(x["x"], NORM_GROUPS, x["w"], x["b"], NORM_EPS)


def matmul(x: Inputs) -> Tensor:
    return x["a"] @ x["b"]


def cross_entropy(x: Inputs) -> Tensor:
    return F.cross_entropy(x["x"], x["y"])


PROGRAMS: dict[str, Callable[[Inputs], Any]] = {
    "group_norm": group_norm,
    "rms_norm_bf16": lambda x: F.rms_norm(x["x"], x["w"].shape, x["w"], 1e-6),
    "conv_transpose": lambda x: F.conv_transpose2d(x["x"], x["w"], stride=2, padding=1),
    "conv5x5_stride2": lambda x: F.conv2d(x["x"], x["w"], stride=2, padding=2),
    "conv7x7_stride2": lambda x: F.conv2d(x["x"], x["w"], stride=2, padding=3),
    "conv1x1": lambda x: F.conv2d(x["x"], x["w"]),
    "conv_depthwise": lambda x: F.conv2d(x["x"], x["w"], groups=x["x"].shape[1], padding=1),
    "conv1d": lambda x: F.conv1d(x["x"], x["w"], padding=2),
    "lstm_cell": lstm_cell,
    "attention_full": attention,
    "attention_decode": attention,
    "mean_pool": lambda x: x["x"].mean((2, 3)),
    "upsample": lambda x: F.interpolate(x["x"], scale_factor=2, mode="nearest"),
    "cross_entropy": cross_entropy,
    "group_norm_bwd": group_norm,
    "batch_norm_bwd": lambda x: F.batch_norm(x["x"], None, None, x["w"], x["b"], training=True, eps=NORM_EPS),
    "layer_norm_bwd": layer_norm,
    "linear_gelu_bwd": lambda x: F.gelu(F.linear(x["x"], x["w"], x["b"]), approximate="tanh"),
    "conv3x3_bwd": lambda x: F.conv2d(x["x"], x["w"], x["b"], padding=1),
    "max_pool_bwd": lambda x: F.max_pool2d(x["x"], 3, stride=2, padding=1),
    "embedding_bwd": lambda x: F.embedding(x["index"], x["table"]),
    "attention_bwd": attention,
    "cross_entropy_bwd": cross_entropy,
    "softmax_short": lambda x: x["x"].softmax(1),
    "var_columns": lambda x: x["x"].var(0),
    "cummax": lambda x: x["x"].cummax(1).values,
    "topk": lambda x: tuple(x["x"].topk(TOP)),
    "sort_rows": lambda x: x["x"].sort(1).values,
    "gather_rows": lambda x: x["x"].gather(1, x["index"]),
    "pairwise": lambda x: torch.cdist(x["a"], x["b"]),
    "stencil": stencil,
    "concatenate": lambda x: torch.cat([x["a"], x["b"], x["c"]], 1),
    "broadcast_relu": lambda x: (x["x"] + x["row"] + x["column"]).relu(),
    "transpose_odd": lambda x: x["x"].transpose(1, 2).contiguous(),
    "matmul_odd": matmul,
    "matmul_tall": matmul,
    "matmul_16_rows": matmul,
    "matmul_small": matmul,
    "matmul_f16": matmul,
    "matmul_bf16": matmul,
    "matmul_f64": matmul,
    "matmul_i8": lambda x: torch._int_mm(x["a"], x["b"]),
    "gelu_f16": lambda x: F.gelu(x["x"], approximate="tanh"),
    "exp_f64": lambda x: x["x"].exp(),
    "layer_norm_f64": layer_norm,
    "add_i8": lambda x: x["a"] + x["b"],
    "quantize_i8": lambda x: (x["x"] * LEVELS_PER_UNIT).round().clamp(-128, 127).to(torch.int8),
}

"""The wide table in JAX; every program is jitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bench.peers import Arrays, Call
from bench.references import NORM_EPS
from bench.wide import DIFFERENTIATED, LEVELS_PER_UNIT, NORM_GROUPS, TOP, is_bfloat16

Inputs = dict[str, Any]
Program = Callable[[Inputs], Any]


def prepare(engine: Any, family: str, arrays: Arrays) -> Call:
    """Return a call of a family's program, or of its gradients. 64-bit types are on only for float64, since they are
    slower.
    """
    wide = any(value.dtype == np.float64 for value in arrays.values())
    jax.config.update("jax_enable_x64", wide)
    x = {name: jnp.array(value) for name, value in arrays.items()}
    if is_bfloat16(family):
        x = {name: value.astype(jnp.bfloat16) if value.dtype == jnp.float32 else value for name, value in x.items()}
    program = PROGRAMS[family]
    if family in DIFFERENTIATED:
        program = gradients(program, DIFFERENTIATED[family])
    compiled = jax.jit(program)
    return lambda: jax.block_until_ready(compiled(x))


def gradients(program: Program, names: tuple[str, ...]) -> Program:
    def found(x: Inputs) -> Any:
        output, back = jax.vjp(lambda leaves: program({**x, **leaves}), {name: x[name] for name in names})
        (slopes,) = back(x.get("g", jnp.ones_like(output)))
        return [slopes[name] for name in names]

    return found


def standardized(x: Any, axes: tuple[int, ...]) -> Any:
    centered = x - x.mean(axes, keepdims=True)
    return centered * lax.rsqrt(jnp.square(centered).mean(axes, keepdims=True) + NORM_EPS)


def per_channel(value: Any) -> Any:
    return value[:, None, None]


def group_norm(x: Inputs) -> Any:
    grouped = x["x"].reshape(len(x["x"]), NORM_GROUPS, -1)
    return standardized(grouped, (2,)).reshape(x["x"].shape) * per_channel(x["w"]) + per_channel(x["b"])


def batch_norm(x: Inputs) -> Any:
    return standardized(x["x"], (0, 2, 3)) * per_channel(x["w"]) + per_channel(x["b"])


def layer_norm(x: Inputs) -> Any:
    return standardized(x["x"], (1,)) * x["w"] + x["b"]


def rms_norm(x: Inputs) -> Any:
    value = x["x"].astype(jnp.float32)
    normal = value * lax.rsqrt(jnp.square(value).mean(1, keepdims=True) + 1e-6)
    return normal.astype(x["x"].dtype) * x["w"]


def conv(stride: int, padding: int) -> Program:
    return lambda x: lax.conv_general_dilated(x["x"], x["w"], (stride, stride), [(padding, padding)] * 2)


def conv_depthwise(x: Inputs) -> Any:
    return lax.conv_general_dilated(x["x"], x["w"], (1, 1), [(1, 1)] * 2, feature_group_count=x["x"].shape[1])


def conv_transpose(x: Inputs) -> Any:
    turned = jnp.flip(x["w"], (2, 3)).swapaxes(0, 1)
    return lax.conv_general_dilated(x["x"], turned, (1, 1), [(2, 2)] * 2, lhs_dilation=(2, 2))


def lstm_cell(x: Inputs) -> Any:
    gates = x["x"] @ x["wi"].T + x["bi"] + x["h"] @ x["wh"].T + x["bh"]
    let_in, forget, candidate, let_out = jnp.split(gates, 4, 1)
    cell = jax.nn.sigmoid(forget) * x["c"] + jax.nn.sigmoid(let_in) * jnp.tanh(candidate)
    return jax.nn.sigmoid(let_out) * jnp.tanh(cell), cell


def attention(x: Inputs) -> Any:
    scores = jnp.einsum("bhik,bhjk->bhij", x["q"], x["k"]) * x["q"].shape[-1] ** -0.5
    return jnp.einsum("bhij,bhjk->bhik", jax.nn.softmax(scores), x["v"])


def max_pool(x: Inputs) -> Any:
    return lax.reduce_window(x["x"], -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))


def cross_entropy(x: Inputs) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(x["x"]), x["y"][:, None], 1).mean()


def stencil(x: Inputs) -> Any:
    v = x["x"]
    return v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1]


def pairwise(x: Inputs) -> Any:
    return jnp.sqrt(jnp.square(x["a"][:, None] - x["b"][None]).sum(2))


def matmul(x: Inputs) -> Any:
    return x["a"] @ x["b"]


def matmul_i8(x: Inputs) -> Any:
    return lax.dot(x["a"], x["b"], preferred_element_type=jnp.int32)


def quantize(x: Inputs) -> Any:
    return jnp.clip(jnp.round(x["x"] * LEVELS_PER_UNIT), -128, 127).astype(jnp.int8)


def conv1d(x: Inputs) -> Any:
    return lax.conv_general_dilated(x["x"], x["w"], (1,), [(2, 2)])


PROGRAMS: dict[str, Program] = {
    "group_norm": group_norm,
    "rms_norm_bf16": rms_norm,
    "conv_transpose": conv_transpose,
    "conv5x5_stride2": conv(2, 2),
    "conv7x7_stride2": conv(2, 3),
    "conv1x1": conv(1, 0),
    "conv_depthwise": conv_depthwise,
    "conv1d": conv1d,
    "lstm_cell": lstm_cell,
    "attention_full": attention,
    "attention_decode": attention,
    "mean_pool": lambda x: x["x"].mean((2, 3)),
    "upsample": lambda x: x["x"].repeat(2, 2).repeat(2, 3),
    "cross_entropy": cross_entropy,
    "group_norm_bwd": group_norm,
    "batch_norm_bwd": batch_norm,
    "layer_norm_bwd": layer_norm,
    "linear_gelu_bwd": lambda x: jax.nn.gelu(x["x"] @ x["w"].T + x["b"], approximate=True),
    "conv3x3_bwd": lambda x: conv(1, 1)(x) + per_channel(x["b"]),
    "max_pool_bwd": max_pool,
    "embedding_bwd": lambda x: x["table"][x["index"]],
    "attention_bwd": attention,
    "cross_entropy_bwd": cross_entropy,
    "softmax_short": lambda x: jax.nn.softmax(x["x"], 1),
    "var_columns": lambda x: x["x"].var(0, ddof=1),
    "cummax": lambda x: lax.cummax(x["x"], 1),
    "topk": lambda x: lax.top_k(x["x"], TOP),
    "sort_rows": lambda x: jnp.sort(x["x"], 1),
    "gather_rows": lambda x: jnp.take_along_axis(x["x"], x["index"], 1),
    "pairwise": pairwise,
    "stencil": stencil,
    "concatenate": lambda x: jnp.concatenate([x["a"], x["b"], x["c"]], 1),
    "broadcast_relu": lambda x: jax.nn.relu(x["x"] + x["row"] + x["column"]),
    "transpose_odd": lambda x: x["x"].swapaxes(1, 2),
    "matmul_odd": matmul,
    "matmul_tall": matmul,
    "matmul_16_rows": matmul,
    "matmul_small": matmul,
    "matmul_f16": matmul,
    "matmul_bf16": matmul,
    "matmul_f64": matmul,
    "matmul_i8": matmul_i8,
    "gelu_f16": lambda x: jax.nn.gelu(x["x"], approximate=True),
    "exp_f64": lambda x: jnp.exp(x["x"]),
    "layer_norm_f64": layer_norm,
    "add_i8": lambda x: x["a"] + x["b"],
    "quantize_i8": quantize,
}

"""JAX on the CPU; every case is one jitted function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from bench.peers import Arrays, Call, Families
from bench.peers import Engine as Base
from bench.references import (
    ADAM_B1,
    ADAM_B2,
    ADAM_EPS,
    ADAM_RATE,
    CONVNET_TRAINED,
    HEADS,
    NORM_EPS,
    SGD_RATE,
)

families: Families[Engine] = Families("jax")
Parameters = dict[str, Any]


class Engine(Base):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        self.version = jax.__version__

    def prepare(self, family: str, arrays: Arrays) -> Call:
        return families.prepare(self, family, arrays)

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        return tuple(np.array(value) for value in jax.tree.leaves(result))

    def drop(self) -> None:
        jax.clear_caches()


def simple(f: Callable[..., Any], *names: str) -> Callable[[Engine, Arrays], Call]:
    def make(engine: Engine, x: Arrays) -> Call:
        arguments = [jnp.array(x[name]) for name in names]
        compiled = jax.jit(f)
        return lambda: compiled(*arguments).block_until_ready()

    return make


def norm(x: Any, w: Any, b: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered * centered).mean(-1, keepdims=True) + NORM_EPS) * w + b


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bhik,bhjk->bhij", q, k) * q.shape[-1] ** -0.5
    length = q.shape[2]
    scores = jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf)
    return jnp.einsum("bhij,bhjk->bhik", jax.nn.softmax(scores), v)


def conv(x: Any, w: Any, padding: int = 0) -> Any:
    return lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2)


def pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


families("ew_chain")(simple(lambda a, b, c, d: jnp.exp(jax.nn.relu(a * b + c) * d - a), "a", "b", "c", "d"))
families("ew_add")(simple(lambda a, b: a + b, "a", "b"))
families("ew_gelu")(simple(lambda x: jax.nn.gelu(x, approximate=True), "x"))
families("sum")(simple(lambda x: x.sum(), "x"))
families("colsum")(simple(lambda x: x.sum(0), "x"))
families("rowmax")(simple(lambda x: x.max(1), "x"))
families("softmax")(simple(lambda x: jax.nn.softmax(x, 1), "x"))
families("layernorm")(simple(norm, "x", "w", "b"))
families("matmul")(simple(lambda a, b: a @ b, "a", "b"))
families("matmul_nt")(simple(lambda a, b: a @ b.T, "a", "b"))
families("matmul_tn")(simple(lambda a, b: a.T @ b, "a", "b"))
families("matmul_bias_relu")(simple(lambda a, b, bias: jax.nn.relu(a @ b + bias), "a", "b", "bias"))
families("conv3x3")(simple(lambda x, w: conv(x, w, 1), "x", "w"))
families("maxpool2")(simple(pool, "x"))
families("transpose")(simple(lambda x: x.T, "x"))
families("permute_nhwc")(simple(lambda x: x.transpose(0, 2, 3, 1), "x"))
families("embedding")(simple(lambda table, index: table[index], "table", "index"))
families("cumsum")(simple(lambda x: jnp.cumsum(x, -1), "x"))
families("argmax")(simple(lambda x: x.argmax(1), "x"))
families("sort")(simple(jnp.sort, "x"))
families("sdpa")(simple(attention, "q", "k", "v"))


# *** the costs of Python: eager operations, and a call of a jitted function ***


@families("py_lazy_add")
def lazy_add(engine: Engine, x: Arrays) -> Call:
    a, b = jnp.array(x["a"]), jnp.array(x["b"])
    return lambda: a + b


@families("py_mixed")
def mixed(engine: Engine, x: Arrays) -> Call:
    a, b = jnp.array(x["a"]), jnp.array(x["b"])

    def call() -> Any:
        t = jax.nn.relu((a * 2 + b).reshape(2, 2).transpose(1, 0))
        return jnp.broadcast_to(jnp.exp(t).sum(1, keepdims=True), (2, 3))

    return call


@families("py_jit")
def jit_call(engine: Engine, x: Arrays) -> Call:
    a, b = jnp.array(x["a"]), jnp.array(x["b"])
    compiled = jax.jit(lambda a, b: a + b)
    return lambda: compiled(a, b)


# *** nets ***


def mlp(p: Parameters, x: Any) -> Any:
    layers = sum(name.startswith("w") for name in p)
    for number in range(1, layers + 1):
        x = x @ p[f"w{number}"] + p[f"b{number}"]
        x = jax.nn.relu(x) if number < layers else x
    return x


def block(p: Parameters, x: Any) -> Any:
    batch, length, width = x.shape
    h = norm(x, p["ln1_w"], p["ln1_b"])
    qkv = (h @ p["wqkv"] + p["bqkv"]).reshape(batch, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
    a = attention(qkv[0], qkv[1], qkv[2]).transpose(0, 2, 1, 3).reshape(batch, length, width)
    x = x + a @ p["wo"] + p["bo"]
    h = norm(x, p["ln2_w"], p["ln2_b"])
    return x + jax.nn.gelu(h @ p["w1"] + p["b1"], approximate=True) @ p["w2"] + p["b2"]


def convnet(p: Parameters, x: Any, training: bool) -> Any:
    for stage in (1, 2):
        for number in (2 * stage - 1, 2 * stage):
            x = jax.nn.relu(conv(x, p[f"c{number}"]) + p[f"d{number}"][:, None, None])
        if training:
            mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
        else:
            mean, var = p[f"mean{stage}"], p[f"var{stage}"]
        scale = p[f"g{stage}"] * lax.rsqrt(var + NORM_EPS)
        x = pool(x * scale[:, None, None] + (p[f"h{stage}"] - mean * scale)[:, None, None])
    return x.reshape(len(x), -1) @ p["w"] + p["b"]


def cross_entropy(scores: Any, y: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), y[:, None], 1).mean()


def split(arrays: Arrays) -> tuple[Any, Any, Parameters]:
    """Return the input, the labels (None without labels) and the parameters."""
    p = {name: jnp.array(value) for name, value in arrays.items()}
    return p.pop("x"), p.pop("y", None), p


def forward(f: Callable[..., Any]) -> Callable[[Engine, Arrays], Call]:
    def make(engine: Engine, arrays: Arrays) -> Call:
        x, _, p = split(arrays)
        compiled = jax.jit(f)
        return lambda: compiled(p, x).block_until_ready()

    return make


families("mlp_fwd")(forward(mlp))
families("block_fwd")(forward(block))
families("convnet_fwd")(forward(lambda p, x: convnet(p, x, training=False)))


@families("block_fwdbwd")
def block_fwdbwd(engine: Engine, arrays: Arrays) -> Call:
    x, _, p = split(arrays)
    compiled = jax.jit(jax.value_and_grad(lambda p: jnp.square(block(p, x)).mean()))

    def call() -> Any:
        loss, gradients = jax.block_until_ready(compiled(p))
        return (loss, [gradients[name] for name in p])

    return call


def training(names: list[str], state: Any, step: Callable[..., Any]) -> Call:
    """Return a call of one training step.

    `step(state)` returns the loss and the next state. The first part of a state is the parameters.
    """
    compiled = jax.jit(step, donate_argnums=0)
    state_box = [state]

    def call() -> Any:
        loss, state_box[0] = jax.block_until_ready(compiled(state_box[0]))
        return (loss, [state_box[0][0][name] for name in names])

    return call


@families("mlp_sgd")
def mlp_sgd(engine: Engine, arrays: Arrays) -> Call:
    x, y, p = split(arrays)

    def step(state: Any) -> Any:
        loss, gradients = jax.value_and_grad(lambda p: cross_entropy(mlp(p, x), y))(state[0])
        return loss, (jax.tree.map(lambda value, g: value - SGD_RATE * g, state[0], gradients),)

    return training(list(p), (p,), step)


def adam(names: list[str], p: Parameters, loss_of: Callable[[Parameters], Any]) -> Call:
    def step(state: Any) -> Any:
        p, m, v, t = state
        loss, gradients = jax.value_and_grad(loss_of)(p)
        t = t + 1
        m = jax.tree.map(lambda m, g: ADAM_B1 * m + (1 - ADAM_B1) * g, m, gradients)
        v = jax.tree.map(lambda v, g: ADAM_B2 * v + (1 - ADAM_B2) * g * g, v, gradients)
        first_correction, second_correction = 1 - ADAM_B1**t, 1 - ADAM_B2**t
        p = jax.tree.map(
            lambda p, m, v: p - ADAM_RATE * (m / first_correction) / (jnp.sqrt(v / second_correction) + ADAM_EPS),
            p,
            m,
            v,
        )
        return loss, (p, m, v, t)

    zeros = [jax.tree.map(jnp.zeros_like, p) for _ in range(2)]
    return training(names, (p, *zeros, jnp.float32(0)), step)


@families("mlp_adam")
def mlp_adam(engine: Engine, arrays: Arrays) -> Call:
    x, y, p = split(arrays)
    return adam(list(p), p, lambda p: cross_entropy(mlp(p, x), y))


@families("convnet_adam")
def convnet_adam(engine: Engine, arrays: Arrays) -> Call:
    x, y, p = split(arrays)
    trained = {name: p[name] for name in CONVNET_TRAINED}
    return adam(list(CONVNET_TRAINED), trained, lambda p: cross_entropy(convnet(p, x, training=True), y))

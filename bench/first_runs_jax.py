"""The networks of `bench.first_runs` in JAX, with the weights of the PyTorch modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

EPS = 1e-5
Weights = dict[str, Any]


def weights_of(w: Weights, name: str) -> Weights:
    """Return the weights of the submodule `name`."""
    return {key[len(name) + 1 :]: value for key, value in w.items() if key.startswith(name + ".")}


def linear(w: Weights, x: Any) -> Any:
    y = x @ w["weight"].T
    return y + w["bias"] if "bias" in w else y


def norm(w: Weights, x: Any) -> Any:
    centered = x - x.mean(-1, keepdims=True)
    return centered * lax.rsqrt((centered * centered).mean(-1, keepdims=True) + EPS) * w["weight"] + w["bias"]


def batch_norm(w: Weights, x: Any) -> Any:
    mean, variance, scale, shift = (
        w[name][:, None, None] for name in ("running_mean", "running_var", "weight", "bias")
    )
    return (x - mean) * lax.rsqrt(variance + EPS) * scale + shift


def conv(w: Weights, x: Any, stride: int, padding: int) -> Any:
    return lax.conv_general_dilated(x, w["weight"], (stride, stride), [(padding, padding)] * 2)


def attention(w: Weights, x: Any, heads: int) -> Any:
    count, length, width = x.shape
    parts = linear(weights_of(w, "inner"), x).reshape(count, length, 3, heads, width // heads)
    q, k, v = (parts[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    scores = jnp.einsum("bhik,bhjk->bhij", q, k) * (width // heads) ** -0.5
    scores = jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf)
    h = jnp.einsum("bhij,bhjk->bhik", jax.nn.softmax(scores), v)
    return linear(weights_of(w, "outer"), h.transpose(0, 2, 1, 3).reshape(count, length, width))


def block(w: Weights, x: Any, heads: int) -> Any:
    x = x + attention(weights_of(w, "attention"), norm(weights_of(w, "norm1"), x), heads)
    h = jax.nn.gelu(linear(weights_of(w, "mlp.0"), norm(weights_of(w, "norm2"), x)), approximate=False)
    return x + linear(weights_of(w, "mlp.2"), h)


def gpt2(w: Weights, words: Any) -> Any:
    x = w["words.weight"][words] + w["places.weight"][: words.shape[1]]
    for number in range(4):
        x = block(weights_of(w, f"blocks.{number}"), x, 4)
    return linear(weights_of(w, "last"), norm(weights_of(w, "norm"), x))


def residual(w: Weights, x: Any, stride: int) -> Any:
    h = jax.nn.relu(batch_norm(weights_of(w, "norm1"), conv(weights_of(w, "conv1"), x, stride, 1)))
    h = batch_norm(weights_of(w, "norm2"), conv(weights_of(w, "conv2"), h, 1, 1))
    beside = weights_of(w, "beside")
    return jax.nn.relu(
        h + (batch_norm(weights_of(beside, "1"), conv(weights_of(beside, "0"), x, stride, 0)) if beside else x)
    )


def resnet18(w: Weights, x: Any) -> Any:
    x = jax.nn.relu(batch_norm(weights_of(w, "1"), conv(weights_of(w, "0"), x, 2, 3)))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 3, 3), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for number in range(8):
        x = residual(weights_of(w, str(4 + number)), x, 2 if number in (2, 4, 6) else 1)
    return linear(weights_of(w, "14"), x.mean((2, 3)))


def mlp(w: Weights, x: Any) -> Any:
    for number in (0, 2):
        x = jax.nn.relu(linear(weights_of(w, str(number)), x))
    return linear(weights_of(w, "4"), x)


def jax_call(program: str, module: Any, args: tuple[Any, ...]) -> Callable[[], list[Any]]:
    """Return a function that runs a program: the output, or the gradients of all weights in the order of the module."""
    weights = {name: jnp.array(value.detach().numpy()) for name, value in module.state_dict().items()}
    (x,) = (jnp.array(argument.numpy()) for argument in args)
    if program.startswith("transformer"):
        gradient = jax.jit(jax.grad(lambda w, x: jnp.square(block(w, x, 8)).mean()))

        def learn() -> list[Any]:
            found = jax.block_until_ready(gradient(weights, x))
            return [found[name] for name, _ in module.named_parameters()]

        return learn
    forward = jax.jit({"ResNet-18": resnet18, "GPT-2-tiny": gpt2, "MLP": mlp}[program.partition(",")[0]])
    return lambda: [jax.block_until_ready(forward(weights, x))]

"""The programs of the recorded dumps of JAX."""

import jax
import jax.numpy as jnp


def softmax_of_product(x, w, b):
    h = x @ w + b
    e = jnp.exp(h - h.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x):
    d = x - x.mean(axis=1, keepdims=True)
    return d / jnp.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5)


def gradient(x, w):
    def loss(w):
        return jnp.tanh(x @ w).sum()

    return jax.grad(loss)(w)


def loop(x):
    return jax.lax.fori_loop(0, 10, lambda i, y: y * 2 + i, x)


def convolution(image, kernel):
    y = jax.lax.conv(image, kernel, (1, 1), "SAME")
    return jax.nn.relu(y)

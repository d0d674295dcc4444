"""Tensor methods on axes of symbolic size: results of NumPy for every value, from kernels compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ops.support import HAS_COMPILER, random_array
from tinyexplore import Context, Tensor, Variable
from tinyexplore.compile.runner_cache import runners

DEVICES = ["LLVM", "CLANG", "PYTHON"] if HAS_COMPILER else ["LLVM", "PYTHON"]
MAX_LENGTH = 19
V, W = Variable("v", 1, MAX_LENGTH), Variable("w", 2, 9)
X, Y = random_array((MAX_LENGTH, 9), seed=1), random_array((MAX_LENGTH, 9), seed=2)
IMAGE, FILTER = random_array((2, 3, MAX_LENGTH), seed=3), random_array((4, 3, 3), seed=4)
TABLE, WORDS = random_array((11, 5), seed=5), np.random.default_rng(6).integers(0, 11, (3, MAX_LENGTH))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalized(x: np.ndarray) -> np.ndarray:
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def convolved(x: np.ndarray, padding: int, stride: int) -> np.ndarray:
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=2)[:, :, ::stride]
    return np.einsum("nclk,ock->nol", windows, FILTER)


# x is (v, w), y is (v, w); image is (2, 3, v), words (3, v); n and m are the sizes, or the numbers that they stand for
Case = tuple[Callable[..., Any], Callable[..., Any]]
CASES: dict[str, Case] = {
    "arithmetic": (lambda x, y, n, m: (x * y + n) / (y.abs() + m), lambda x, y, n, m: (x * y + n) / (abs(y) + m)),
    "functions": (
        lambda x, y, n, m: (x.exp() + 1).log().sqrt(),
        lambda x, y, n, m: np.sqrt(np.log1p(np.exp(x))),
    ),
    "comparison": (lambda x, y, n, m: (x < y).where(x, y * m), lambda x, y, n, m: np.where(x < y, x, y * m)),
    "broadcast of a row": (lambda x, y, n, m: x + y[:1], lambda x, y, n, m: x + y[:1]),
    "broadcast of a column": (lambda x, y, n, m: x * y[:, 1:2], lambda x, y, n, m: x * y[:, 1:2]),
    "sum of rows": (lambda x, y, n, m: x.sum(0), lambda x, y, n, m: x.sum(0)),
    "sum of columns": (lambda x, y, n, m: x.sum(1), lambda x, y, n, m: x.sum(1)),
    "sum of all": (lambda x, y, n, m: x.sum(), lambda x, y, n, m: x.sum()),
    "mean and deviation": (
        lambda x, y, n, m: x.std(0, correction=0) + x.mean(0),
        lambda x, y, n, m: x.std(0) + x.mean(0),
    ),
    "extremes": (lambda x, y, n, m: x.max(1) - x.min(1), lambda x, y, n, m: x.max(1) - x.min(1)),
    "product": (lambda x, y, n, m: x.prod(1), lambda x, y, n, m: x.prod(1)),
    "place of the largest": (lambda x, y, n, m: x.argmax(0), lambda x, y, n, m: x.argmax(0)),
    "place of the least": (lambda x, y, n, m: x.argmin(1), lambda x, y, n, m: x.argmin(1)),
    "any and all": (
        lambda x, y, n, m: (x > 1).any(0) * 2 + (x > -1).all(0),
        lambda x, y, n, m: (x > 1).any(0) * 2 + (x > -1).all(0),
    ),
    "matmul, symbolic rows": (lambda x, y, n, m: x @ Tensor(X[:9, :9])[:m], lambda x, y, n, m: x @ X[:9, :9][:m]),
    "matmul, symbolic length": (lambda x, y, n, m: x.T @ y, lambda x, y, n, m: x.T @ y),
    "matmul, symbolic rows and columns": (lambda x, y, n, m: x @ y.T, lambda x, y, n, m: x @ y.T),
    "matmul, batched": (
        lambda x, y, n, m: x.reshape(n, 1, m) @ y.reshape(n, m, 1),
        lambda x, y, n, m: x[:, None] @ y[..., None],
    ),
    "einsum": (lambda x, y, n, m: Tensor.einsum("ij,ik->jk", x, y), lambda x, y, n, m: np.einsum("ij,ik->jk", x, y)),
    "cat": (lambda x, y, n, m: x.cat(y * 2, dim=1), lambda x, y, n, m: np.concatenate([x, y * 2], 1)),
    "cat of other lengths": (
        lambda x, y, n, m: x.cat(Tensor(X)[:, :m]),
        lambda x, y, n, m: np.concatenate([x, X[:, :m]]),
    ),
    "stack": (lambda x, y, n, m: x.stack(y, dim=1), lambda x, y, n, m: np.stack([x, y], 1)),
    "pad": (
        lambda x, y, n, m: x.pad(((1, 2), (0, 1)), value=3.0),
        lambda x, y, n, m: np.pad(x, ((1, 2), (0, 1)), constant_values=3),
    ),
    "pad to the greatest": (
        lambda x, y, n, m: x.pad(((0, MAX_LENGTH - n), (0, 9 - m))),
        lambda x, y, n, m: np.pad(x, ((0, MAX_LENGTH - n), (0, 9 - m))),
    ),
    "shrink": (lambda x, y, n, m: x.pad(((3, 3), None))[2:-1], lambda x, y, n, m: np.pad(x, ((3, 3), (0, 0)))[2:-1]),
    "expand": (
        lambda x, y, n, m: x.unsqueeze(1).expand(n, 4, m),
        lambda x, y, n, m: np.broadcast_to(x[:, None], (n, 4, m)),
    ),
    "expand to a symbolic size": (
        lambda x, y, n, m: x[:1].expand(n, m) + 0,
        lambda x, y, n, m: np.broadcast_to(x[:1], (n, m)),
    ),
    "flip": (lambda x, y, n, m: x.flip((0, 1)), lambda x, y, n, m: x[::-1, ::-1]),
    "every third": (lambda x, y, n, m: x[::3], lambda x, y, n, m: x[::3]),
    "every second, backwards": (lambda x, y, n, m: x.flip(0)[::2], lambda x, y, n, m: x[::-1][::2]),
    "transposed and flat": (lambda x, y, n, m: x.T.reshape(-1), lambda x, y, n, m: x.T.reshape(-1)),
    "split axis": (
        lambda x, y, n, m: x.reshape(n, 1, m).permute(2, 0, 1) + 0,
        lambda x, y, n, m: x.reshape(n, 1, m).transpose(2, 0, 1),
    ),
    "repeated": (lambda x, y, n, m: x.repeat(2, 3), lambda x, y, n, m: np.tile(x, (2, 3))),
    "triangle": (lambda x, y, n, m: (x @ y.T).tril(), lambda x, y, n, m: np.tril(x @ y.T)),
    "arange": (
        lambda x, y, n, m: Tensor.arange(n).unsqueeze(1) * Tensor.arange(m),
        lambda x, y, n, m: np.outer(np.arange(n), np.arange(m)),
    ),
    "one-hot": (lambda x, y, n, m: Tensor.arange(n).one_hot(MAX_LENGTH), lambda x, y, n, m: np.eye(MAX_LENGTH)[:n]),
    "gather": (lambda x, y, n, m: x.gather(0, x.argmax(0).unsqueeze(0)), lambda x, y, n, m: x.max(0)[None]),
    "rows by number": (lambda x, y, n, m: Tensor(X)[Tensor.arange(n) // 2], lambda x, y, n, m: X[np.arange(n) // 2]),
    "running sum": (lambda x, y, n, m: x.cumsum(0), lambda x, y, n, m: x.cumsum(0)),
    "running sum of a row": (lambda x, y, n, m: x.cumsum(1), lambda x, y, n, m: x.cumsum(1)),
    "running maximum": (lambda x, y, n, m: x.cummax(0)[0], lambda x, y, n, m: np.maximum.accumulate(x)),
    "sort": (lambda x, y, n, m: x.sort(0)[0], lambda x, y, n, m: np.sort(x, 0)),
    "order": (lambda x, y, n, m: x.argsort(0), lambda x, y, n, m: np.argsort(x, 0)),
    "softmax": (lambda x, y, n, m: x.softmax(1), lambda x, y, n, m: softmax(x)),
    "softmax of columns": (lambda x, y, n, m: x.softmax(0), lambda x, y, n, m: softmax(x, 0)),
    "log-softmax": (lambda x, y, n, m: x.log_softmax(1), lambda x, y, n, m: np.log(softmax(x))),
    "layernorm": (lambda x, y, n, m: x.layernorm(), lambda x, y, n, m: normalized(x)),
    "attention": (
        lambda x, y, n, m: x.scaled_dot_product_attention(y, y) * 1,
        lambda x, y, n, m: softmax(x @ y.T / np.sqrt(m)) @ y,
    ),
    "attention with a mask": (
        lambda x, y, n, m: x.scaled_dot_product_attention(
            y, y, attn_mask=Tensor.arange(n).reshape(-1, 1) >= Tensor.arange(n)
        ),
        lambda x, y, n, m: softmax(np.where(np.tri(n, dtype=bool), x @ y.T / np.sqrt(m), -np.inf)) @ y,
    ),
    "causal attention": (
        lambda x, y, n, m: x.scaled_dot_product_attention(y, y, is_causal=True),
        lambda x, y, n, m: softmax(np.where(np.tri(n, dtype=bool), x @ y.T / np.sqrt(m), -np.inf)) @ y,
    ),
    "convolution": (
        lambda x, y, n, m: Tensor(IMAGE)[:, :, :n].conv2d(Tensor(FILTER), padding=1),
        lambda x, y, n, m: convolved(IMAGE[:, :, :n], 1, 1),
    ),
    "convolution in steps": (
        lambda x, y, n, m: Tensor(IMAGE)[:, :, :n].conv2d(Tensor(FILTER), padding=2, stride=2),
        lambda x, y, n, m: convolved(IMAGE[:, :, :n], 2, 2),
    ),
    "pooling": (lambda x, y, n, m: Tensor(IMAGE)[:, :, :n].avg_pool2d((1,)), lambda x, y, n, m: IMAGE[:, :, :n]),
    "embedding": (lambda x, y, n, m: Tensor(TABLE)[Tensor(WORDS)[:, :n]], lambda x, y, n, m: TABLE[WORDS[:, :n]]),
    "cast": (lambda x, y, n, m: (x * 10).cast("int32").cast("float32"), lambda x, y, n, m: np.trunc(x * 10)),
    "norm of all": (lambda x, y, n, m: x / x.square().sum().sqrt(), lambda x, y, n, m: x / np.sqrt((x**2).sum())),
}


CLANG_CASES = (
    "arithmetic",
    "matmul, symbolic length",
    "causal attention",
    "convolution",
    "sort",
)  # CLANG compiles slowly
PAIRS = [(name, device) for device in DEVICES for name in (CLANG_CASES if device == "CLANG" else CASES)]


@pytest.mark.parametrize(("name", "device"), PAIRS)
def test_symbolic_axes_agree_with_numpy(name: str, device: str) -> None:
    on_tensors, on_arrays = CASES[name]
    with Context(DEVICE=device):
        compiled = set()
        for n, m in ((5, 4), (1, 2), (MAX_LENGTH, 9), (16, 9), (17, 3), (2, 8)):
            x, y = (Tensor(array)[: V.bind(n), : W.bind(m)] for array in (X, Y))
            with np.errstate(all="ignore"):
                expected = on_arrays(X[:n, :m], Y[:n, :m], n, m)
            found = on_tensors(x, y, V.bind(n), W.bind(m)).numpy()
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4, err_msg=f"v={n}, w={m}")
            compiled.add(len(runners))
        assert len(compiled) == 1

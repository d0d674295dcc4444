"""Rows of symbolic length use row buffers: softmax and attention are one kernel for every length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.support import HAS_COMPILER, random_array
from tinyexplore import Context, Tensor, TinyJit, Variable
from tinyexplore.compile.runner_cache import runners

DEVICES = ["LLVM", "CLANG", "PYTHON"] if HAS_COMPILER else ["LLVM", "PYTHON"]
MAX_LENGTH = 600
N, M = Variable("n", 1, MAX_LENGTH), Variable("m", 1, MAX_LENGTH)
QUERY, KEY, VALUE = (random_array((2, MAX_LENGTH, 16), seed=seed) for seed in range(3))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    return softmax(np.where(hidden, -np.inf, query @ key.transpose(0, 2, 1) / 4)) @ value


@pytest.mark.parametrize("device", DEVICES)
def test_attention_over_a_symbolic_length_is_one_kernel(device: str) -> None:
    lengths = (5, 1, 2, 8, 9) if device == "PYTHON" else (5, 1, 2, 3, 15, 16, 17, 33, 257, 599, 600)
    with Context(DEVICE=device):
        query, key, value = (Tensor(x).realize() for x in (QUERY, KEY, VALUE))

        @TinyJit
        def attend(n: Variable, m: Variable) -> tuple[Tensor, Tensor]:
            crossed = query[:, :n].scaled_dot_product_attention(key[:, :m], value[:, :m])
            causal = query[:, :n].scaled_dot_product_attention(key[:, :n], value[:, :n], is_causal=True)
            return crossed.realize(), causal.realize()

        compiled = set()
        for number, n in enumerate(lengths):
            m = lengths[::-1][number]
            crossed, causal = attend(N.bind(n), M.bind(m))
            whole, ahead = np.zeros((n, m), bool), ~np.tri(n, dtype=bool)
            q, k, v = QUERY[:, :n], KEY, VALUE
            np.testing.assert_allclose(crossed.numpy(), attention(q, k[:, :m], v[:, :m], whole), rtol=1e-3, atol=1e-4)
            np.testing.assert_allclose(causal.numpy(), attention(q, k[:, :n], v[:, :n], ahead), rtol=1e-3, atol=1e-4)
            compiled.add(len(runners))
        assert len(attend.jit_cache) == 2 and len(list(compiled)) <= 2  # the first call; and all others


@pytest.mark.parametrize("device", DEVICES)
def test_softmax_and_layernorm_of_symbolic_rows_are_one_kernel(device: str) -> None:
    lengths = (5, 1, 16) if device == "PYTHON" else (5, 1, 2, 15, 16, 17, 100, 600)
    with Context(DEVICE=device):
        x = Tensor(QUERY[0].T.copy()).realize()
        for n in lengths:
            part = QUERY[0].T[:, :n]
            found = (x[:, : N.bind(n)] * 2).softmax(1)
            assert len(found.schedule()) == 1
            np.testing.assert_allclose(found.numpy(), softmax(part * 2), rtol=1e-4, atol=1e-6)
            found = (x[:, : N.bind(n)] * 2).layernorm()
            centered = 2 * (part - part.mean(1, keepdims=True))
            expected = centered / np.sqrt((centered**2).mean(1, keepdims=True) + 1e-5)
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-4)

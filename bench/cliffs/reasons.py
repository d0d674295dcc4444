"""The known reasons why rows miss the target, by program."""

from __future__ import annotations

CALL = "Python builds and matches the graph in each lazy call; the kernels alone take less (see `--short`)"
PRODUCT = "one core reaches 0.8 to 1 of the rate of PyTorch's product (MKL)"

REASONS: dict[str, str] = {
    "(x - mean) @ w": PRODUCT,
    "(x @ w).T @ v": PRODUCT,
    "cat of two products": PRODUCT,
    "conv 3×3": "loads of a window cross cache lines: 0.8 to 0.9 of the rate of PyTorch's convolution (oneDNN)",
    "dilated conv": "loads of a window cross cache lines: 0.8 to 0.9 of the rate of PyTorch's convolution (oneDNN)",
    "exp of 64 Ki": "AVX2 has neither SCALE nor TABLE: exp takes a longer polynomial and two factors",
    "few rows @ w": "8 rows wait for 4 MB of the matrix, which PyTorch's product reads further ahead",
    "flipped x @ w": PRODUCT,
    "four exps of 64 Ki": "AVX2 has neither SCALE nor TABLE: exp takes a longer polynomial and two factors",
    "grad of a maximum": PRODUCT,
    "grad of a norm": PRODUCT,
    "grad of gru cell": CALL,
    "grad of linear cross entropy": PRODUCT,
    "grad of lstm": CALL,
    "grad of rnn": CALL,
    "gru cell": CALL,
    "lstm, 4 steps": CALL,
    "rnn, 8 steps": CALL,
    "sums by class": "16 classes are one vector of results: each row of 128 is read for them in strides",
    "top 8 of rows": CALL,
    "x @ eye": PRODUCT,
    "x @ w": PRODUCT,
    "x @ w @ v": PRODUCT,
    "x @ w[:, ::2]": PRODUCT,
    "x @ x.T": PRODUCT,
    "x.T @ w": PRODUCT,
    "x.T @ x": PRODUCT,
    "x.triu() @ w": PRODUCT,
    "x[:, ::2] @ w": PRODUCT,
    "x[::2] @ w": PRODUCT,
}

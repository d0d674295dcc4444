"""The programs of the golden files: every benchmark case, and small programs of every kind of kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from bench import cases
from bench.peers.tinyexplore import Engine
from tinyexplore import Context, Tensor, TinyJit, nn

Program = Callable[[], object]


class Zeros:
    """In place of a generator: arrays of unwritten memory. No kernel depends on what is in them."""

    def standard_normal(self, shape: Any, dtype: Any = np.float64) -> np.ndarray:
        return np.zeros(shape, dtype)

    def random(self, size: Any = None, dtype: Any = np.float64) -> np.ndarray:
        return np.zeros(size, dtype)

    def integers(self, low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> np.ndarray:
        return np.zeros(size, dtype)


def case_program(case: cases.Case) -> Program:
    """A call of the case, as the benchmark makes it without a replay."""

    def run() -> object:
        with patch.object(cases, "redraw_images_near_kinks", lambda arrays, rng: None):
            arrays = case.inputs(Zeros())  # type: ignore[arg-type]
        return Engine("", 1).prepare(case.family, arrays)()

    return run


def x(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(np.zeros(shape, dtype))


def realized(make: Callable[[], Tensor | tuple[Tensor, ...]]) -> Program:
    def run() -> object:
        found = make()
        several = found if isinstance(found, tuple) else (found,)
        return several[0].realize(*several[1:])

    return run


def convolution_and_normalization(*shape: int) -> Tensor:
    convolution, norm = nn.Conv2d(shape[1], 16, 3, padding=1), nn.BatchNorm2d(16)
    for part in (convolution.weight, convolution.bias, norm.weight, norm.bias, norm.running_mean, norm.running_var):
        part.assign(x(*part.shape)).realize()
    return norm(convolution(x(*shape))).relu()


def winograd() -> Tensor:
    with Context(WINO=1):
        return x(1, 64, 24, 24).conv2d(x(64, 64, 3, 3), padding=1)


def step() -> object:
    w = Tensor(np.zeros((32, 10), np.float32), requires_grad=True)
    optimizer = nn.optim.Adam([w])
    with Tensor.train():
        optimizer.zero_grad()
        (x(16, 32) @ w).log_softmax().mean().backward()
        return optimizer.step()


def replayed() -> object:
    @TinyJit
    def call(a: Tensor) -> Tensor:
        return (a.softmax() @ x(24, 24)).realize()

    return [call(x(24, 24).realize()) for _ in range(3)]


def attention() -> Tensor:
    return x(1, 2, 40, 16).scaled_dot_product_attention(x(1, 2, 40, 16), x(1, 2, 40, 16), is_causal=True)


MADE: dict[str, Callable[[], Tensor | tuple[Tensor, ...]]] = {
    "add": lambda: x(1000) + x(1000),
    "add bytes": lambda: x(1000, dtype="uint8") + x(1000, dtype="uint8"),
    "add doubles": lambda: x(999, dtype="float64") * 2 + 1,
    "half floats": lambda: x(64, 64, dtype="float16").sum(1),
    "bfloat16 product": lambda: x(64, 64).bfloat16() @ x(64, 64).bfloat16(),
    "int8 product": lambda: x(64, 64, dtype="int8").dot(x(64, 64, dtype="int8"), acc_dtype="int32"),
    "int8 product of two tiles": lambda: x(64, 128, dtype="int8").dot(x(128, 64, dtype="int8"), acc_dtype="int32"),
    "fp8": lambda: x(256).cast("fp8e4m3").cast("float32").contiguous(),
    "int division": lambda: x(100, dtype="int32") // x(100, dtype="int32"),
    "remainder": lambda: x(100) % x(100),
    "shifts": lambda: (x(100, dtype="int32") << 3) ^ (x(100, dtype="int32") >> 1),
    "transcendental": lambda: (x(500).sin() + x(500).exp() * x(500).tanh()).log2(),
    "power": lambda: x(500) ** x(500),
    "erf": lambda: x(500).erf(),
    "comparison": lambda: (x(50, 50) < 0).any(1),
    "clip": lambda: x(300).clip(-1, 1),
    "sum of rows": lambda: x(30, 70).sum(1),
    "sum of columns": lambda: x(70, 30).sum(0),
    "sum of all": lambda: x(1 << 19).sum(),
    "product": lambda: x(100).prod(),
    "maximum": lambda: x(30, 70).max(1),
    "argmax": lambda: x(30, 70).argmax(1),
    "variance": lambda: x(30, 70).var(1),
    "softmax": lambda: x(30, 70).softmax(),
    "layernorm": lambda: x(30, 128).layernorm(),
    "matmul": lambda: x(64, 48) @ x(48, 80),
    "matmul of odd sizes": lambda: x(33, 17) @ x(17, 9),
    "matmul transposed": lambda: x(48, 64).T @ x(80, 48).T,
    "batches of matmuls": lambda: x(3, 20, 24) @ x(3, 24, 28),
    "vector by matrix": lambda: x(256) @ x(256, 256),
    "convolution": lambda: x(2, 8, 12, 12).conv2d(x(8, 8, 3, 3), padding=1),
    "strided convolution": lambda: x(1, 8, 16, 16).conv2d(x(16, 8, 3, 3), stride=2, padding=1),
    "grouped convolution": lambda: x(1, 8, 10, 10).conv2d(x(8, 1, 3, 3), groups=8),
    "transposed convolution": lambda: x(1, 4, 8, 8).conv_transpose2d(x(4, 4, 3, 3), stride=2),
    "convolution and normalization": lambda: convolution_and_normalization(1, 8, 12, 12),
    "large convolution and normalization": lambda: convolution_and_normalization(1, 16, 64, 64),
    "winograd": winograd,
    "pooling": lambda: (x(1, 4, 12, 12).max_pool2d(), x(1, 4, 12, 12).avg_pool2d(3)),
    "attention": attention,
    "transposition": lambda: x(40, 56).T.contiguous(),
    "permutation": lambda: x(4, 6, 8).permute(2, 0, 1).contiguous(),
    "flipped": lambda: x(100).flip(0) + x(100),
    "padded": lambda: x(10, 10).pad((1, 1, 2, 2)) * 2,
    "concatenated": lambda: Tensor.cat(x(20), x(30)),
    "gathered": lambda: x(50, 16)[x(20, dtype="int32")],
    "scattered": lambda: x(50).scatter(0, x(20, dtype="int32"), x(20)),
    "summed into places": lambda: x(50).scatter_reduce(0, x(20, dtype="int32"), x(20), "sum"),
    "running sum": lambda: x(20, 64).cumsum(1),
    "running product": lambda: x(64, 20).cumprod(0),
    "running maximum": lambda: x(1000).cummax(0)[0],
    "sorted": lambda: x(500).sort()[0],
    "largest": lambda: x(20, 30).topk(3)[0],
    "random": lambda: Tensor.rand(64, 3),
    "normal": lambda: Tensor.randn(100),
    "counting": lambda: Tensor.arange(100).float().sqrt(),
    "interpolated": lambda: x(1, 2, 6, 6).interpolate((9, 9)),
    "loss": lambda: x(16, 10).cross_entropy(x(16, dtype="int32")),
}

SMALL: dict[str, Program] = {
    **{name: realized(make) for name, make in MADE.items()},
    "training step": step,
    "replay": replayed,
}
BENCH: dict[str, Program] = {case.name: case_program(case) for case in (*cases.CASES, *cases.TINY)}
PROGRAMS: dict[str, Program] = {**SMALL, **BENCH}
TRACED = (
    *("add", "add doubles", "half floats", "int8 product", "int division", "transcendental", "sum of rows", "argmax"),
    *("softmax", "matmul", "matmul of odd sizes", "convolution", "attention", "transposition", "padded", "gathered"),
    *("scattered", "running sum", "sorted", "training step"),
)

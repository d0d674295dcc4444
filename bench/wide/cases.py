"""The cases of the wide table.

Each has the sizes at which it is measured, and tiny sizes for tests of every engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.cases import Arrays, Case
from bench.wide import DIFFERENTIATED, TOP, is_bfloat16, references

MEBI = 1 << 20
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """One array of random values.

    shape, dtype: of the array.
    below: if positive, values are integers from 0 to below - 1.
    distinct: no two values are equal.
    scale, shift: standard deviation and mean of normal values.
    """

    shape: Sizes
    dtype: Any = np.float32
    below: int = 0
    distinct: bool = False
    scale: float = 1.0
    shift: float = 0.0

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        if self.below:
            return rng.integers(0, self.below, self.shape, dtype=self.dtype)
        if self.dtype == np.int8:
            return rng.integers(-128, 128, self.shape, dtype=np.int8)
        if self.distinct:
            size = math.prod(self.shape)
            return (rng.permutation(size).reshape(self.shape) / size - 0.5).astype(self.dtype)
        values = rng.standard_normal(self.shape, dtype=np.float32)
        if (self.scale, self.shift) != (1.0, 0.0):
            values = values * np.float32(self.scale) + np.float32(self.shift)
        return values.astype(self.dtype)


def floats(*shape: int) -> Input:
    return Input(shape)


def halves(*shape: int) -> Input:
    return Input(shape, np.float16)


def doubles(*shape: int) -> Input:
    return Input(shape, np.float64)


def bytes_(*shape: int) -> Input:
    return Input(shape, np.int8)


def places(below: int, *shape: int) -> Input:
    return Input(shape, np.int32, below)


@dataclass(frozen=True)
class Wide:
    """A family of operations at `sizes` and at `tiny` sizes.

    family: the name under which the peers implement it.
    what: description, with `sizes`.
    sizes: of the measured case.
    tiny: sizes for tests.
    inputs: the input arrays as a function of the sizes.
    written: the number of elements of the results as a function of the sizes.
    flops: operations of matrix products only, as a function of the sizes.
    itemsize: bytes of an element of the results.
    rtol: permitted difference, as a share of each value.
    atol: permitted difference in addition, as a share of the array's root mean square.
    """

    family: str
    what: str
    sizes: Sizes
    tiny: Sizes
    inputs: Callable[..., dict[str, Input]]
    written: Callable[..., int]
    flops: Callable[..., int] = lambda *sizes: 0
    itemsize: int = 4
    rtol: float = 1e-4
    atol: float = 1e-4

    def case(self, is_tiny: bool = False) -> Case:
        sizes = self.tiny if is_tiny else self.sizes
        inputs = self.inputs(*sizes)

        def draw(rng: np.random.Generator) -> Arrays:
            arrays = {name: each.draw(rng) for name, each in inputs.items()}
            return references.rounded_to_bfloat16(arrays) if is_bfloat16(self.family) else arrays

        name = f"tiny_wide_{self.family}" if is_tiny else f"wide_{self.family}"
        share = 2 if is_bfloat16(self.family) else 1  # the arrays of a case hold its bfloat16 as float32
        return Case(
            name,
            f"wide_{self.family}",
            self.what.format(*sizes),
            draw,
            references.reference(self.family),
            self.flops(*sizes),
            sum(each.nbytes for each in inputs.values()) // share,
            self.written(*sizes) * self.itemsize,
            self.rtol,
            self.atol,
            group="tiny" if is_tiny else "wide",
        )


def _exact(family: str, *rest: Any, **more: Any) -> Wide:
    return Wide(family, *rest, **more, rtol=0, atol=0)


def _gradients(family: str, *rest: Any, **more: Any) -> Wide:
    assert family in DIFFERENTIATED
    return Wide(family, *rest, **more, atol=1e-3)


def _norm(n: int, c: int, h: int) -> dict[str, Input]:
    return {"x": floats(n, c, h, h), "w": floats(c), "b": floats(c)}


def _norm_bwd(n: int, c: int, h: int) -> dict[str, Input]:
    return {**_norm(n, c, h), "g": floats(n, c, h, h)}


def _qkv(b: int, h: int, t: int, d: int) -> dict[str, Input]:
    return {name: floats(b, h, t, d) for name in "qkv"}


def _matmul(of: Callable[..., Input]) -> Callable[..., dict[str, Input]]:
    return lambda m, n, k: {"a": of(m, k), "b": of(k, n)}


def _product(m: int, n: int, k: int) -> int:
    return 2 * m * n * k


ROWS: tuple[Wide, ...] = (
    # layers, forward
    Wide("group_norm", "nn.GroupNorm, 8 groups, {0} × {1} × {2} × {2}", (16, 64, 48), (2, 16, 6), _norm,
         lambda n, c, h: n * c * h * h),
    Wide("rms_norm_bf16", "nn.RMSNorm in bfloat16, {0} × {1}", (4096, 1024), (6, 40),
         lambda n, c: {"x": floats(n, c), "w": floats(c)}, lambda n, c: n * c, itemsize=2, rtol=0.02, atol=0.02),
    Wide("conv_transpose", "nn.ConvTranspose2d, 4×4, stride 2, padding 1, {0} × {1} × {2} × {2} → {3} channels",
         (8, 64, 32, 32), (2, 4, 5, 3),
         lambda n, c, h, o: {"x": floats(n, c, h, h), "w": floats(c, o, 4, 4)},
         lambda n, c, h, o: n * o * 4 * h * h, lambda n, c, h, o: 2 * n * h * h * c * o * 16),
    Wide("conv5x5_stride2", "5×5 convolution, stride 2, padding 2, {0} × {1} × {2} × {2} → {3} channels",
         (8, 32, 64, 64), (2, 3, 8, 4),
         lambda n, c, h, o: {"x": floats(n, c, h, h), "w": floats(o, c, 5, 5)},
         lambda n, c, h, o: n * o * h * h // 4, lambda n, c, h, o: 2 * n * h * h // 4 * c * o * 25),
    Wide("conv7x7_stride2", "7×7 convolution, stride 2, padding 3, {0} × {1} × {2} × {2} → {3} channels",
         (4, 3, 225, 64), (2, 3, 9, 4),
         lambda n, c, h, o: {"x": floats(n, c, h, h), "w": floats(o, c, 7, 7)},
         lambda n, c, h, o: n * o * ((h + 1) // 2) ** 2, lambda n, c, h, o: 2 * n * ((h + 1) // 2) ** 2 * c * o * 49),
    Wide("conv1x1", "1×1 convolution, {0} × {1} × {2} × {2} → {3} channels", (16, 256, 14, 512), (2, 5, 6, 7),
         lambda n, c, h, o: {"x": floats(n, c, h, h), "w": floats(o, c, 1, 1)},
         lambda n, c, h, o: n * o * h * h, lambda n, c, h, o: 2 * n * h * h * c * o),
    Wide("conv_depthwise", "3×3 depthwise convolution, padding 1, {0} × {1} × {2} × {2}", (16, 96, 56), (2, 5, 7),
         lambda n, c, h: {"x": floats(n, c, h, h), "w": floats(c, 1, 3, 3)},
         lambda n, c, h: n * c * h * h, lambda n, c, h: 18 * n * c * h * h),
    Wide("conv1d", "nn.Conv1d, 5 wide, padding 2, {0} × {1} × {2} → {3} channels", (16, 64, 1000, 128), (2, 3, 20, 4),
         lambda n, c, t, o: {"x": floats(n, c, t), "w": floats(o, c, 5)},
         lambda n, c, t, o: n * o * t, lambda n, c, t, o: 10 * n * t * c * o),
    Wide("lstm_cell", "nn.LSTMCell, batch {0}, {1} → {2}", (128, 256, 512), (3, 5, 6),
         lambda n, i, h: {"x": floats(n, i), "h": floats(n, h), "c": floats(n, h), "wi": floats(4 * h, i),
                          "wh": floats(4 * h, h), "bi": floats(4 * h), "bh": floats(4 * h)},
         lambda n, i, h: 2 * n * h, lambda n, i, h: 8 * n * h * (i + h), atol=1e-3),
    Wide("attention_full", "attention without a mask, {0} × {1} heads × {2} × {3}", (1, 4, 2048, 128), (1, 2, 12, 8),
         _qkv, lambda b, h, t, d: b * h * t * d, lambda b, h, t, d: 4 * b * h * t * t * d),
    Wide("attention_decode", "attention of one query to {2} keys, {0} × {1} heads, width {3}",
         (8, 16, 1024, 64), (2, 2, 12, 8),
         lambda b, h, t, d: {"q": floats(b, h, 1, d), "k": floats(b, h, t, d), "v": floats(b, h, t, d)},
         lambda b, h, t, d: b * h * d, lambda b, h, t, d: 4 * b * h * t * d),
    Wide("mean_pool", "mean of each channel, {0} × {1} × {2} × {2}", (64, 512, 7), (2, 3, 5),
         lambda n, c, h: {"x": floats(n, c, h, h)}, lambda n, c, h: n * c),
    Wide("upsample", "nearest upsampling to twice the size, {0} × {1} × {2} × {2}", (8, 64, 48), (1, 2, 5),
         lambda n, c, h: {"x": floats(n, c, h, h)}, lambda n, c, h: 4 * n * c * h * h, rtol=0, atol=0),
    Wide("cross_entropy", "cross entropy of {0} rows over {1} classes", (512, 32000), (5, 40),
         lambda n, c: {"x": floats(n, c), "y": places(c, n)}, lambda n, c: 1),
    # layers, forward and backward
    _gradients("group_norm_bwd", "nn.GroupNorm, 8 groups, forward and backward, {0} × {1} × {2} × {2}",
               (8, 64, 32), (2, 16, 6), _norm_bwd, lambda n, c, h: n * c * h * h + 2 * c),
    _gradients("batch_norm_bwd", "nn.BatchNorm in training, forward and backward, {0} × {1} × {2} × {2}",
               (32, 64, 28), (2, 3, 6), _norm_bwd, lambda n, c, h: n * c * h * h + 2 * c),
    _gradients("layer_norm_bwd", "nn.LayerNorm, forward and backward, {0} × {1}", (4096, 1024), (6, 40),
               lambda n, c: {"x": floats(n, c), "w": floats(c), "b": floats(c), "g": floats(n, c)},
               lambda n, c: n * c + 2 * c),
    _gradients("linear_gelu_bwd", "nn.Linear and gelu, forward and backward, {0} × {1} → {2}",
               (512, 1024, 1024), (6, 10, 7),
               lambda n, i, o: {"x": floats(n, i), "w": floats(o, i), "b": floats(o), "g": floats(n, o)},
               lambda n, i, o: n * i + o * i + o, lambda n, i, o: 6 * n * i * o),
    _gradients("conv3x3_bwd", "nn.Conv2d, 3×3, padding 1, forward and backward, {0} × {1} × {2} × {2} → {3} channels",
               (16, 64, 28, 64), (2, 3, 6, 4),
               lambda n, c, h, o: {"x": floats(n, c, h, h), "w": floats(o, c, 3, 3), "b": floats(o),
                                   "g": floats(n, o, h, h)},
               lambda n, c, h, o: n * c * h * h + 9 * c * o + o, lambda n, c, h, o: 36 * n * h * h * c * o),
    _gradients("max_pool_bwd", "3×3 max pool, stride 2, padding 1, forward and backward, {0} × {1} × {2} × {2}",
               (16, 64, 56), (2, 3, 8),
               lambda n, c, h: {"x": Input((n, c, h, h), distinct=True), "g": floats(n, c, h // 2, h // 2)},
               lambda n, c, h: n * c * h * h),
    _gradients("embedding_bwd", "gradient of nn.Embedding, {2} rows of {0} × {1}", (10_000, 256, 8192), (20, 8, 12),
               lambda rows, width, n: {"table": floats(rows, width), "index": places(rows, n), "g": floats(n, width)},
               lambda rows, width, n: rows * width),
    _gradients("attention_bwd", "attention, forward and backward, {0} × {1} heads × {2} × {3}",
               (1, 8, 512, 64), (1, 2, 12, 8),
               lambda b, h, t, d: {**_qkv(b, h, t, d), "g": floats(b, h, t, d)},
               lambda b, h, t, d: 3 * b * h * t * d, lambda b, h, t, d: 12 * b * h * t * t * d),
    _gradients("cross_entropy_bwd", "cross entropy, forward and backward, {0} rows over {1} classes",
               (512, 10_000), (5, 40),
               lambda n, c: {"x": floats(n, c), "y": places(c, n)}, lambda n, c: n * c),
    # rows and columns
    Wide("softmax_short", "softmax of {0} rows of {1}", (65_536, 32), (7, 5),
         lambda n, c: {"x": floats(n, c)}, lambda n, c: n * c),
    Wide("var_columns", "variance of the columns of {0} × {1}", (4096, 1024), (9, 20),
         lambda n, c: {"x": floats(n, c)}, lambda n, c: c),
    Wide("cummax", "running maximum of the rows of {0} × {1}", (1024, 4096), (5, 40),
         lambda n, c: {"x": floats(n, c)}, lambda n, c: n * c, rtol=0, atol=0),
    _exact("topk", f"topk({TOP}) of the rows of {{0}} × {{1}}", (1024, 10_000), (4, 400),
           lambda n, c: {"x": Input((n, c), distinct=True)}, lambda n, c: 2 * TOP * n),
    _exact("sort_rows", "sort the rows of {0} × {1}", (1024, 1000), (4, 100),
           lambda n, c: {"x": floats(n, c)}, lambda n, c: n * c),
    _exact("gather_rows", "gather {2} of each row of {0} × {1}", (1024, 4096, 1024), (4, 20, 7),
           lambda n, c, k: {"x": floats(n, c), "index": places(c, n, k)}, lambda n, c, k: n * k),
    Wide("pairwise", "distances of {0} points to {1}, in {2} dimensions", (1024, 1024, 64), (7, 9, 5),
         lambda n, m, d: {"a": floats(n, d), "b": floats(m, d)}, lambda n, m, d: n * m, lambda n, m, d: 3 * n * m * d,
         atol=1e-3),
    Wide("stencil", "five-point stencil of {0} × {0}", (2048,), (20,),
         lambda n: {"x": floats(n, n)}, lambda n: (n - 2) ** 2),
    _exact("concatenate", "three arrays side by side, {0} × ({1} + {2} + {3})", (2000, 777, 333, 222), (5, 3, 4, 2),
           lambda n, a, b, c: {"a": floats(n, a), "b": floats(n, b), "c": floats(n, c)},
           lambda n, a, b, c: n * (a + b + c)),
    Wide("broadcast_relu", "a row and a column added to {0} × {1}, relu", (2047, 2049), (5, 7),
         lambda n, m: {"x": floats(n, m), "row": floats(m), "column": floats(n, 1)}, lambda n, m: n * m),
    _exact("transpose_odd", "last axes of {0} × {1} × {2} exchanged", (63, 257, 513), (3, 5, 7),
           lambda b, n, m: {"x": floats(b, n, m)}, lambda b, n, m: b * n * m),
    # products
    Wide("matmul_odd", "{0} × {2} times {2} × {1}", (511, 513, 509), (5, 7, 6), _matmul(floats),
         lambda m, n, k: m * n, _product),
    Wide("matmul_tall", "{0} × {2} times {2} × {1}", (20_000, 65, 63), (9, 5, 6), _matmul(floats),
         lambda m, n, k: m * n, _product),
    Wide("matmul_16_rows", "{0} × {2} times {2} × {1}", (16, 4096, 4096), (4, 9, 10), _matmul(floats),
         lambda m, n, k: m * n, _product),
    Wide("matmul_small", "{0} products of {1} × {1}", (2048, 24), (3, 5),
         lambda b, n: {"a": floats(b, n, n), "b": floats(b, n, n)}, lambda b, n: b * n * n, lambda b, n: 2 * b * n**3),
    Wide("matmul_f16", "{0} × {2} times {2} × {1} in float16", (512, 512, 512), (5, 7, 6), _matmul(halves),
         lambda m, n, k: m * n, _product, itemsize=2, rtol=0.01, atol=0.01),
    Wide("matmul_bf16", "{0} × {2} times {2} × {1} in bfloat16", (512, 512, 512), (5, 7, 6), _matmul(floats),
         lambda m, n, k: m * n, _product, itemsize=2, rtol=0.02, atol=0.02),
    Wide("matmul_f64", "{0} × {2} times {2} × {1} in float64", (512, 512, 512), (5, 7, 6), _matmul(doubles),
         lambda m, n, k: m * n, _product, itemsize=8, rtol=1e-10, atol=1e-10),
    _exact("matmul_i8", "{0} × {2} times {2} × {1}, int8 summed in int32", (512, 512, 512), (5, 7, 6), _matmul(bytes_),
           lambda m, n, k: m * n, _product),
    # other dtypes
    Wide("gelu_f16", "gelu (tanh form) of {0:,} float16", (4 * MEBI,), (100,), lambda n: {"x": halves(n)},
         lambda n: n, itemsize=2, rtol=0.01, atol=0.01),
    Wide("exp_f64", "exp of {0:,} float64", (2 * MEBI,), (100,), lambda n: {"x": doubles(n)},
         lambda n: n, itemsize=8, rtol=1e-12, atol=1e-12),
    Wide("layer_norm_f64", "layernorm of the rows of {0} × {1} in float64", (2048, 768), (6, 40),
         lambda n, c: {"x": doubles(n, c), "w": doubles(c), "b": doubles(c)}, lambda n, c: n * c, itemsize=8,
         rtol=1e-10, atol=1e-10),
    _exact("add_i8", "a + b of {0:,} int8", (16 * MEBI,), (100,), lambda n: {"a": bytes_(n), "b": bytes_(n)},
           lambda n: n, itemsize=1),
    _exact("quantize_i8", "{0:,} float32 to int8, rounded and clipped", (4 * MEBI,), (100,),
           lambda n: {"x": floats(n)}, lambda n: n, itemsize=1),
)  # fmt: skip

WIDE: tuple[Case, ...] = tuple(row.case() for row in ROWS)
TINY_WIDE: tuple[Case, ...] = tuple(row.case(is_tiny=True) for row in ROWS)

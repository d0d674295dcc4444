"""Numba: loops compiled in parallel, for the cases that are loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import njit, prange

from bench.peers import Arrays, Call, Families, empty, spoil_array
from bench.peers import Engine as Base
from bench.references import GELU_SCALE, NORM_EPS

families: Families[Engine] = Families("numba")
loops = njit(parallel=True, fastmath={"reassoc", "nsz", "arcp", "contract", "afn"})


class Engine(Base):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
        self.version = numba.__version__

    def prepare(self, family: str, arrays: Arrays) -> Call:
        return families.prepare(self, family, arrays)

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        return (np.array(result),)

    def spoil(self, result: Any) -> None:
        spoil_array(result)


def into(f: Any, out_of: Callable[[Arrays], np.ndarray], *names: str) -> Callable[[Engine, Arrays], Call]:
    """Return a maker of calls of a loop. The loop writes its result into an array that all calls share."""

    def make(engine: Engine, x: Arrays) -> Call:
        arguments = [x[name] for name in names]
        out = out_of(x)

        def call() -> np.ndarray:
            f(*arguments, out)
            return out

        return call

    return make


def like(name: str) -> Callable[[Arrays], np.ndarray]:
    return lambda x: empty(x[name].shape, x[name].dtype)


@loops
def chain_loop(a, b, c, d, out):
    for i in prange(len(a)):
        out[i] = math.exp(max(a[i] * b[i] + c[i], np.float32(0)) * d[i] - a[i])


@loops
def add_loop(a, b, out):
    for i in prange(len(a)):
        out[i] = a[i] + b[i]


@loops
def gelu_loop(x, out):
    half, one, cube, scale = np.float32(0.5), np.float32(1), np.float32(0.044715), np.float32(GELU_SCALE)
    for i in prange(len(x)):
        v = x[i]
        out[i] = half * v * (one + math.tanh(scale * (v + cube * v * v * v)))


@loops
def sum_loop(x):
    total = np.float32(0)
    for i in prange(len(x)):
        total += x[i]
    return total


@loops
def colsum_loop(x, out):
    rows, columns = x.shape
    strip = 512
    for part in prange((columns + strip - 1) // strip):
        first = part * strip
        last = min(first + strip, columns)
        out[first:last] = 0
        for i in range(rows):
            for j in range(first, last):
                out[j] += x[i, j]


@loops
def rowmax_loop(x, out):
    for i in prange(x.shape[0]):
        best = x[i, 0]
        for j in range(x.shape[1]):
            best = max(best, x[i, j])
        out[i] = best


@loops
def argmax_loop(x, out):
    for i in prange(x.shape[0]):
        best, place = x[i, 0], 0
        for j in range(1, x.shape[1]):
            if x[i, j] > best:
                best, place = x[i, j], j
        out[i] = place


@loops
def softmax_loop(x, out):
    for i in prange(x.shape[0]):
        top = x[i, 0]
        for j in range(x.shape[1]):
            top = max(top, x[i, j])
        total = np.float32(0)
        for j in range(x.shape[1]):
            e = math.exp(x[i, j] - top)
            out[i, j] = e
            total += e
        inverse = np.float32(1) / total
        for j in range(x.shape[1]):
            out[i, j] *= inverse


@loops
def layernorm_loop(x, w, b, out):
    columns = np.float32(x.shape[1])
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
        mean = total / columns
        square = np.float32(0)
        for j in range(x.shape[1]):
            square += (x[i, j] - mean) * (x[i, j] - mean)
        inverse = np.float32(1) / np.float32(math.sqrt(square / columns + np.float32(NORM_EPS)))
        for j in range(x.shape[1]):
            out[i, j] = (x[i, j] - mean) * inverse * w[j] + b[j]


@loops
def maxpool_loop(x, out):
    images, height, width = out.shape
    for n in prange(images):
        for i in range(height):
            for j in range(width):
                top = max(x[n, 2 * i, 2 * j], x[n, 2 * i, 2 * j + 1])
                low = max(x[n, 2 * i + 1, 2 * j], x[n, 2 * i + 1, 2 * j + 1])
                out[n, i, j] = max(top, low)


@loops
def transpose_loop(x, out):
    rows, columns = x.shape
    tile = 32
    for part in prange((columns + tile - 1) // tile):
        for top in range(0, rows, tile):
            for j in range(part * tile, min((part + 1) * tile, columns)):
                for i in range(top, min(top + tile, rows)):
                    out[j, i] = x[i, j]


@loops
def embedding_loop(table, index, out):
    for i in prange(len(index)):
        out[i] = table[index[i]]


@loops
def cumsum_loop(x, out):
    for i in prange(x.shape[0]):
        total = np.float32(0)
        for j in range(x.shape[1]):
            total += x[i, j]
            out[i, j] = total


families("ew_chain")(into(chain_loop, like("a"), "a", "b", "c", "d"))
families("ew_add")(into(add_loop, like("a"), "a", "b"))
families("ew_gelu")(into(gelu_loop, like("x"), "x"))
families("colsum")(into(colsum_loop, lambda x: empty(x["x"].shape[1], np.float32), "x"))
families("rowmax")(into(rowmax_loop, lambda x: empty(x["x"].shape[0], np.float32), "x"))
families("argmax")(into(argmax_loop, lambda x: empty(x["x"].shape[0], np.int64), "x"))
families("softmax")(into(softmax_loop, like("x"), "x"))
families("layernorm")(into(layernorm_loop, like("x"), "x", "w", "b"))
families("transpose")(into(transpose_loop, lambda x: empty(x["x"].shape[::-1], np.float32), "x"))


@families("sum")
def full_sum(engine: Engine, x: Arrays) -> Call:
    return lambda: sum_loop(x["x"])


@families("maxpool2")
def maxpool2(engine: Engine, x: Arrays) -> Call:
    batch, channels, height, width = x["x"].shape
    images = x["x"].reshape(-1, height, width)
    out = empty((batch, channels, height // 2, width // 2), np.float32)
    flat = out.reshape(-1, height // 2, width // 2)

    def call() -> np.ndarray:
        maxpool_loop(images, flat)
        return out

    return call


@families("embedding")
def embedding(engine: Engine, x: Arrays) -> Call:
    out = empty((len(x["index"]), x["table"].shape[1]), np.float32)

    def call() -> np.ndarray:
        embedding_loop(x["table"], x["index"], out)
        return out

    return call


@families("cumsum")
def cumsum(engine: Engine, x: Arrays) -> Call:
    value = x["x"]
    out = empty(value.shape, value.dtype)
    rows, result = np.atleast_2d(value), np.atleast_2d(out)

    def call() -> np.ndarray:
        cumsum_loop(rows, result)
        return out

    return call

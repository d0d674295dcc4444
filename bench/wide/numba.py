"""The families of the wide table that are loops, compiled in parallel by Numba."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import prange

from bench.peers import Arrays, Call, Unsupported, empty
from bench.peers.numba import loops


def prepare(engine: Any, family: str, arrays: Arrays) -> Call:
    if family not in PROGRAMS:
        raise Unsupported(f"numba has nothing for {family}")
    loop, shape, names = PROGRAMS[family]
    arguments = [arrays[name] for name in names]
    out = empty(shape(arrays), np.float32)

    def call() -> np.ndarray:
        loop(*arguments, out)
        return out

    return call


@loops
def cummax_loop(x, out):
    for i in prange(x.shape[0]):
        best = x[i, 0]
        for j in range(x.shape[1]):
            best = max(best, x[i, j])
            out[i, j] = best


@loops
def gather_loop(x, index, out):
    for i in prange(x.shape[0]):
        for j in range(index.shape[1]):
            out[i, j] = x[i, index[i, j]]


@loops
def stencil_loop(x, out):
    for i in prange(out.shape[0]):
        for j in range(out.shape[1]):
            around = x[i, j + 1] + x[i + 2, j + 1] + x[i + 1, j] + x[i + 1, j + 2]
            out[i, j] = around - np.float32(4) * x[i + 1, j + 1]


@loops
def broadcast_loop(x, row, column, out):
    for i in prange(x.shape[0]):
        for j in range(x.shape[1]):
            out[i, j] = max(x[i, j] + row[j] + column[i, 0], np.float32(0))


@loops
def pairwise_loop(a, b, out):
    for i in prange(a.shape[0]):
        for j in range(b.shape[0]):
            total = np.float32(0)
            for k in range(a.shape[1]):
                total += (a[i, k] - b[j, k]) * (a[i, k] - b[j, k])
            out[i, j] = math.sqrt(total)


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
def upsample_loop(x, out):
    for n in prange(x.shape[0]):
        for c in range(x.shape[1]):
            for i in range(out.shape[2]):
                for j in range(x.shape[3]):
                    out[n, c, i, 2 * j] = x[n, c, i // 2, j]
                    out[n, c, i, 2 * j + 1] = x[n, c, i // 2, j]


def like_x(x: Arrays) -> tuple[int, ...]:
    return x["x"].shape


PROGRAMS: dict[str, tuple[Any, Callable[[Arrays], tuple[int, ...]], tuple[str, ...]]] = {
    "cummax": (cummax_loop, like_x, ("x",)),
    "gather_rows": (gather_loop, lambda x: x["index"].shape, ("x", "index")),
    "stencil": (stencil_loop, lambda x: (len(x["x"]) - 2, len(x["x"]) - 2), ("x",)),
    "broadcast_relu": (broadcast_loop, like_x, ("x", "row", "column")),
    "pairwise": (pairwise_loop, lambda x: (len(x["a"]), len(x["b"])), ("a", "b")),
    "softmax_short": (softmax_loop, like_x, ("x",)),
    "upsample": (upsample_loop, lambda x: (*x["x"].shape[:2], 2 * x["x"].shape[2], 2 * x["x"].shape[3]), ("x",)),
}

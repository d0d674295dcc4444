"""The families of the wide table that NumPy computes fast, into shared result arrays where the function allows that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.peers import Arrays, Call, Unsupported, empty
from bench.wide import LEVELS_PER_UNIT, TOP


def prepare(engine: Any, family: str, arrays: Arrays) -> Call:
    if family not in PROGRAMS:
        raise Unsupported(f"numpy has nothing for {family}")
    return PROGRAMS[family](arrays)


def matmul(x: Arrays) -> Call:
    a, b = x["a"], x["b"]
    out = a @ b
    return lambda: np.matmul(a, b, out=out)


def concatenate(x: Arrays) -> Call:
    parts = [x["a"], x["b"], x["c"]]
    out = empty((len(x["a"]), sum(part.shape[1] for part in parts)))
    return lambda: np.concatenate(parts, 1, out=out)


def add_i8(x: Arrays) -> Call:
    a, b = x["a"], x["b"]
    out = empty(a.shape, a.dtype)
    return lambda: np.add(a, b, out)


def exp_f64(x: Arrays) -> Call:
    value = x["x"]
    out = empty(value.shape, value.dtype)
    return lambda: np.exp(value, out=out)


def transpose_odd(x: Arrays) -> Call:
    value = x["x"].swapaxes(1, 2)
    out = empty(value.shape)

    def call() -> np.ndarray:
        np.copyto(out, value)
        return out

    return call


def stencil(x: Arrays) -> Call:
    v = x["x"]

    def call() -> np.ndarray:
        out = v[:-2, 1:-1] + v[2:, 1:-1]
        out += v[1:-1, :-2]
        out += v[1:-1, 2:]
        out -= 4 * v[1:-1, 1:-1]
        return out

    return call


def broadcast_relu(x: Arrays) -> Call:
    out = empty(x["x"].shape)

    def call() -> np.ndarray:
        np.add(x["x"], x["row"], out=out)
        np.add(out, x["column"], out=out)
        return np.maximum(out, 0, out=out)

    return call


def topk(x: Arrays) -> Call:
    value = x["x"]

    def call() -> Any:
        indices = np.argpartition(-value, TOP, axis=1)[:, :TOP]
        order = np.argsort(-np.take_along_axis(value, indices, 1), 1)
        indices = np.take_along_axis(indices, order, 1)
        return np.take_along_axis(value, indices, 1), indices

    return call


def gather_rows(x: Arrays) -> Call:
    index = x["index"].astype(np.intp)
    return lambda: np.take_along_axis(x["x"], index, 1)


def quantize_i8(x: Arrays) -> Call:
    value, out = x["x"], empty(x["x"].shape, np.int8)
    room = empty(value.shape)

    def call() -> np.ndarray:
        np.multiply(value, np.float32(LEVELS_PER_UNIT), out=room)
        np.clip(np.rint(room, out=room), -128, 127, out=room)
        np.copyto(out, room, casting="unsafe")
        return out

    return call


PROGRAMS: dict[str, Callable[[Arrays], Call]] = {
    "mean_pool": lambda x: lambda: x["x"].mean((2, 3)),
    "upsample": lambda x: lambda: x["x"].repeat(2, 2).repeat(2, 3),
    "var_columns": lambda x: lambda: x["x"].var(0, ddof=1),
    "cummax": lambda x: lambda: np.maximum.accumulate(x["x"], 1),
    "topk": topk,
    "sort_rows": lambda x: lambda: np.sort(x["x"], 1),
    "gather_rows": gather_rows,
    "stencil": stencil,
    "concatenate": concatenate,
    "broadcast_relu": broadcast_relu,
    "transpose_odd": transpose_odd,
    "matmul_odd": matmul,
    "matmul_tall": matmul,
    "matmul_16_rows": matmul,
    "matmul_small": matmul,
    "matmul_f64": matmul,
    "exp_f64": exp_f64,
    "add_i8": add_i8,
    "quantize_i8": quantize_i8,
}

"""NumPy, written for speed: into arrays that all calls share, where the function allows that."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.peers import Arrays, Call, Families, empty, spoil_array
from bench.peers import Engine as Base

families: Families[Engine] = Families("numpy")


class Engine(Base):
    def __init__(self, variant: str, threads: int) -> None:
        super().__init__(variant, threads)
        blas = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        self.version = f"{np.__version__}, {blas.get('name', 'unknown BLAS')} {blas.get('version', '')}".strip()

    def prepare(self, family: str, arrays: Arrays) -> Call:
        return families.prepare(self, family, arrays)

    def to_numpy(self, result: Any) -> tuple[np.ndarray, ...]:
        return tuple(np.array(part) for part in (result if isinstance(result, tuple) else (result,)))

    def spoil(self, result: Any) -> None:
        for part in result if isinstance(result, tuple) else (result,):
            spoil_array(part)


@families("ew_chain")
def ew_chain(engine: Engine, x: Arrays) -> Call:
    a, b, c, d = x["a"], x["b"], x["c"], x["d"]

    def call() -> np.ndarray:
        t = a * b
        t += c
        np.maximum(t, 0, out=t)
        t *= d
        t -= a
        return np.exp(t, out=t)

    return call


@families("py_lazy_add")
def lazy_add(engine: Engine, x: Arrays) -> Call:
    a, b = x["a"], x["b"]
    return lambda: a + b


@families("py_mixed")
def mixed(engine: Engine, x: Arrays) -> Call:
    a, b = x["a"], x["b"]

    def call() -> np.ndarray:
        t = np.maximum((a * 2 + b).reshape(2, 2).transpose(1, 0), 0)
        return np.broadcast_to(np.exp(t).sum(1, keepdims=True), (2, 3))

    return call


@families("ew_add")
def ew_add(engine: Engine, x: Arrays) -> Call:
    a, b = x["a"], x["b"]
    out = empty(a.shape, a.dtype)
    return lambda: np.add(a, b, out)


@families("sum")
def full_sum(engine: Engine, x: Arrays) -> Call:
    return x["x"].sum


@families("colsum")
def colsum(engine: Engine, x: Arrays) -> Call:
    return lambda: x["x"].sum(0)


@families("rowmax")
def rowmax(engine: Engine, x: Arrays) -> Call:
    return lambda: x["x"].max(1)


@families("softmax")
def softmax(engine: Engine, x: Arrays) -> Call:
    value = x["x"]
    out = empty(value.shape, value.dtype)

    def call() -> np.ndarray:
        np.subtract(value, value.max(1, keepdims=True), out=out)
        np.exp(out, out=out)
        return np.divide(out, out.sum(1, keepdims=True), out=out)

    return call


@families("layernorm")
def layernorm(engine: Engine, x: Arrays) -> Call:
    value, w, b = x["x"], x["w"], x["b"]
    out = empty(value.shape, value.dtype)

    def call() -> np.ndarray:
        np.subtract(value, value.mean(1, keepdims=True), out=out)
        inverse = 1 / np.sqrt(np.einsum("ij,ij->i", out, out) / np.float32(out.shape[1]) + np.float32(1e-5))
        np.multiply(out, inverse[:, None], out=out)
        np.multiply(out, w, out=out)
        return np.add(out, b, out=out)

    return call


@families("matmul")
def matmul(engine: Engine, x: Arrays) -> Call:
    a, b = x["a"], x["b"]
    out = a @ b
    return lambda: np.matmul(a, b, out=out)


@families("matmul_nt")
def matmul_nt(engine: Engine, x: Arrays) -> Call:
    return matmul(engine, {"a": x["a"], "b": x["b"].T})


@families("matmul_tn")
def matmul_tn(engine: Engine, x: Arrays) -> Call:
    return matmul(engine, {"a": x["a"].T, "b": x["b"]})


@families("matmul_bias_relu")
def matmul_bias_relu(engine: Engine, x: Arrays) -> Call:
    a, b, bias = x["a"], x["b"], x["bias"]
    out = a @ b

    def call() -> np.ndarray:
        np.matmul(a, b, out=out)
        np.add(out, bias, out=out)
        return np.maximum(out, 0, out=out)

    return call


@families("maxpool2")
def maxpool2(engine: Engine, x: Arrays) -> Call:
    v = x["x"]

    def call() -> np.ndarray:
        top = np.maximum(v[:, :, ::2, ::2], v[:, :, ::2, 1::2])
        return np.maximum(top, np.maximum(v[:, :, 1::2, ::2], v[:, :, 1::2, 1::2]), out=top)

    return call


@families("transpose")
def transpose(engine: Engine, x: Arrays) -> Call:
    value = x["x"]
    out = empty((value.shape[1], value.shape[0]), value.dtype)

    def call() -> np.ndarray:
        np.copyto(out, value.T)
        return out

    return call


@families("permute_nhwc")
def permute_nhwc(engine: Engine, x: Arrays) -> Call:
    value = x["x"].transpose(0, 2, 3, 1)
    out = empty(value.shape, value.dtype)

    def call() -> np.ndarray:
        np.copyto(out, value)
        return out

    return call


@families("embedding")
def embedding(engine: Engine, x: Arrays) -> Call:
    table, index = x["table"], x["index"].astype(np.intp)
    out = empty((len(index), table.shape[1]), table.dtype)
    return lambda: np.take(table, index, axis=0, out=out, mode="clip")


@families("cumsum")
def cumsum(engine: Engine, x: Arrays) -> Call:
    value = x["x"]
    out = empty(value.shape, value.dtype)
    return lambda: np.cumsum(value, axis=-1, out=out)


@families("argmax")
def argmax(engine: Engine, x: Arrays) -> Call:
    return lambda: x["x"].argmax(1)


@families("sort")
def sort(engine: Engine, x: Arrays) -> Call:
    return lambda: np.sort(x["x"])

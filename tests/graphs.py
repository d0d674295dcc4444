"""Hypothesis strategies for graphs of LazyBuffers, and helpers that build and read small graphs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st

import tinyexplore.devices  # noqa: F401  (makes the devices known)
from tests.support.limits import has
from tinyexplore.device import Buffer
from tinyexplore.dtype import dtypes
from tinyexplore.engine import read
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops


def from_numpy(array: np.ndarray, device: str = "LLVM") -> LazyBuffer:
    """A LazyBuffer of a copy of `array`."""
    array = np.array(array, order="C")
    buffer = Buffer(device, array.size, getattr(dtypes, str(array.dtype))).allocate()
    buffer.copyin(array.tobytes())
    return LazyBuffer.from_buffer(buffer, array.shape)


def to_numpy(node: LazyBuffer) -> np.ndarray:
    """The values of `node`, realized by the engine."""
    return np.frombuffer(read(node).copyout(), node.dtype.name).reshape(node.shape)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def matmul(a: LazyBuffer, b: LazyBuffer) -> LazyBuffer:
    (m, k), n = a.shape, b.shape[1]
    left = a.reshape((m, 1, k)).expand((m, n, k))
    right = b.permute((1, 0)).reshape((1, n, k)).expand((m, n, k))
    return left.alu(Ops.MUL, right).reduce(Ops.ADD, (2,)).reshape((m, n))


def softmax(x: LazyBuffer) -> LazyBuffer:
    last = len(x.shape) - 1
    shifted = x.alu(Ops.ADD, x.reduce(Ops.MAX, (last,)).expand(x.shape).alu(Ops.NEG))
    weights = shifted.alu(Ops.EXP)
    return weights.alu(Ops.FDIV, weights.reduce(Ops.ADD, (last,)).expand(x.shape))


def attention(q: LazyBuffer, k: LazyBuffer, v: LazyBuffer, causal: bool = False) -> LazyBuffer:
    scores = matmul(q, k.permute((1, 0)))
    if causal:
        rows, columns = (LazyBuffer.iota(size, dtypes.int32, scores.device) for size in scores.shape)
        row = rows.reshape((scores.shape[0], 1)).expand(scores.shape)
        column = columns.reshape((1, scores.shape[1])).expand(scores.shape)
        hidden = LazyBuffer.const(-math.inf, scores.dtype, scores.device, scores.shape)
        scores = row.alu(Ops.CMPLT, column).alu(Ops.WHERE, hidden, scores)
    return matmul(softmax(scores), v)


def _factors(draw: Callable, size: int, count: int) -> tuple[int, ...]:
    result = []
    for _ in range(count - 1):
        divisor = draw(st.sampled_from([d for d in range(1, size + 1) if size % d == 0] or [1]))
        result.append(divisor)
        size //= divisor
    return tuple(draw(st.permutations([*result, size])))


@st.composite
def graphs(draw: Callable, device: str = "LLVM", max_ops: int = 9) -> LazyBuffer:
    """Random programs: elementwise, reductions used twice, every movement, masks, windows, forced stores."""
    doubles = [np.float64] if has(device, dtypes.float64) else []
    dtype = draw(st.sampled_from([np.float32, np.float32, np.int32, *doubles]))
    sizes = st.lists(st.sampled_from([0, 1, 2, 3, 4, 5, 8, 17, 20]), max_size=3)
    seeds = st.integers(0, 1 << 16)

    def leaf(shape: tuple[int, ...]) -> LazyBuffer:
        values = np.random.default_rng(draw(seeds)).integers(-4, 5, shape)
        return from_numpy((values if dtype is np.int32 else values / 2).astype(dtype), device)

    pool = [leaf(tuple(draw(sizes)))]
    for _ in range(draw(st.integers(1, max_ops))):
        x = draw(st.sampled_from(pool[-3:]))
        pool.append(_grown(draw, x, pool, leaf))
    return pool[-1]


def _grown(draw: Callable, x: LazyBuffer, pool: list[LazyBuffer], leaf: Callable) -> LazyBuffer:
    rank = len(x.shape)
    kinds = ["binary", "binary", "unary", "reshape", "permute", "flip", "shrink", "contiguous"]
    if x.size < 3000:
        kinds += ["pad", "window", "expand", "diagonal"]
    if rank:
        kinds += ["reduce", "normalize"]
    kind = draw(st.sampled_from(kinds))
    axes = [axis for axis in range(rank) if draw(st.booleans())]
    match kind:
        case "binary":
            y = draw(st.sampled_from([node for node in pool if node.shape == x.shape] or [leaf(x.shape)]))
            return x.alu(draw(st.sampled_from([Ops.ADD, Ops.MUL, Ops.MAX, Ops.MIN])), y)
        case "unary":
            return x.alu(Ops.NEG)
        case "reshape":
            return x.reshape(_factors(draw, x.size, draw(st.integers(1, 4)))) if x.size else x
        case "permute":
            return x.permute(draw(st.permutations(range(rank))))
        case "flip":
            return x.flip(axes)
        case "shrink":
            bounds = []
            for size in x.shape:
                start = draw(st.integers(0, size))
                bounds.append((start, draw(st.integers(start, size))) if draw(st.booleans()) else (0, size))
            return x.shrink(bounds)
        case "contiguous":
            return x.contiguous()
        case "pad":
            return x.pad([(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in x.shape])
        case "expand":
            return x.reshape((1, *x.shape)).expand((draw(st.integers(0, 4)), *x.shape))
        case "window":
            long = [axis for axis, size in enumerate(x.shape) if size >= 3]
            if not long:
                return x
            return x.window(draw(st.sampled_from(long)), *(draw(st.integers(1, 2)) for _ in range(3)))
        case "diagonal":
            equal = [(a, b) for b in range(rank) for a in range(b) if x.shape[a] == x.shape[b]]
            return x.diagonal(*draw(st.sampled_from(equal))) if equal else x
    if any(x.shape[axis] == 0 for axis in axes):
        axes = []
    reduced = x.reduce(draw(st.sampled_from([Ops.ADD, Ops.MAX, Ops.MIN])), axes)
    return reduced if kind == "reduce" else x.alu(Ops.ADD, reduced.expand(x.shape))

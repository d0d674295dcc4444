"""The oracle: the value of a graph of LazyBuffers, computed node by node with NumPy.

Slow, direct and independent of scheduler, codegen and runtimes. bfloat16 and the fp8s are kept as float32 values that
they hold; ml_dtypes knows which.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tinyexplore.device import Buffer
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops
from tinyexplore.uop.symbolic import concrete
from tinyexplore.util import toposort

SMALL = {
    dtypes.bfloat16: ml_dtypes.bfloat16,
    dtypes.fp8e4m3: ml_dtypes.float8_e4m3fn,
    dtypes.fp8e5m2: ml_dtypes.float8_e5m2,
}


def numpy_dtype(dtype: DType) -> np.dtype:
    """The NumPy type that holds the values of `dtype` here."""
    return np.dtype("float32" if dtype in SMALL else dtype.name)


def to_small(x: np.ndarray, dtype: DType) -> np.ndarray:
    """float32 values rounded to the nearest that `dtype` has; numbers too large for fp8e4m3 become its largest."""
    small = SMALL[dtype]
    if dtype is dtypes.fp8e4m3:
        largest = np.float32(ml_dtypes.finfo(small).max)
        x = np.where(np.isfinite(x), np.clip(x, -largest, largest), x)
    return x.astype(small).astype(np.float32)


def converted(x: np.ndarray, dtype: DType) -> np.ndarray:
    """`x` as values of `dtype`."""
    if dtype in SMALL:
        return to_small(x.astype(np.float32), dtype)
    with np.errstate(all="ignore"):
        if x.dtype.kind == "f" and dtypes.is_int(dtype):
            return _as_ints(np.trunc(x.astype(np.float64)), dtype)
        return x.astype(numpy_dtype(dtype))


def _as_ints(whole: np.ndarray, dtype: DType) -> np.ndarray:
    """Whole numbers as ints, as x86 converts them: `tinyexplore.uop.semantics.cast`."""
    if dtype is dtypes.uint64:
        is_large = whole >= 2.0**63
        low = _as_ints(np.where(is_large, whole - 2.0**63, whole), dtypes.int64).astype(np.uint64)
        return low ^ (is_large.astype(np.uint64) << np.uint64(63))
    through = np.int64 if dtype in (dtypes.int64, dtypes.uint32) else np.int32
    least = np.iinfo(through).min
    inside = (whole >= least) & (whole < -float(least))
    return (
        np.where(inside, np.where(inside, whole, 0).astype(through), least).astype(through).astype(numpy_dtype(dtype))
    )


def buffer_array(buffer: Buffer, shape: tuple[int, ...]) -> np.ndarray:
    """The content of a buffer (of symbolic shapes, what lies at its beginning)."""
    if buffer.size == 0:
        return np.empty(shape, numpy_dtype(buffer.dtype))
    raw = buffer.memoryview()[: math.prod(shape) * buffer.dtype.itemsize]
    if buffer.dtype in SMALL:
        return np.frombuffer(raw, SMALL[buffer.dtype]).astype(np.float32).reshape(shape)
    return np.frombuffer(raw, numpy_dtype(buffer.dtype)).reshape(shape).copy()


def to_buffer(x: np.ndarray, dtype: DType, device: str) -> Buffer:
    """A buffer with the elements of `x`, row-major."""
    if dtype in SMALL:
        return Buffer(device, x.size, dtype).copyin(x.astype(SMALL[dtype]).tobytes())
    return Buffer(device, x.size, dtype).copyin(np.ascontiguousarray(x).tobytes())


def evaluate(lazydata: LazyBuffer) -> np.ndarray:
    """The value of a LazyBuffer."""
    values: dict[LazyBuffer, np.ndarray] = {}
    for node in toposort([lazydata], lambda one: () if one.buffer is not None else one.src):
        if node.buffer is not None:
            values[node] = buffer_array(node.buffer, concrete(node.shape))
            continue
        with np.errstate(all="ignore"):
            found = np.asarray(_value(node, [values[source] for source in node.src]))
        if found.dtype != numpy_dtype(node.dtype):
            found = converted(found, node.dtype)
        elif node.dtype in SMALL:
            found = to_small(found, node.dtype)
        assert found.shape == concrete(node.shape), f"{node!r}: NumPy gives shape {found.shape}"
        values[node] = found
    return values[lazydata]


def _value(node: LazyBuffer, src: list[np.ndarray]) -> Any:
    op, arg, shape = node.op, concrete(node.arg), concrete(node.shape)
    if op in _MOVEMENTS:
        return _MOVEMENTS[op](src[0], arg)
    if op in _UNARY:
        return _UNARY[op](src[0])
    if op in _BINARY:
        return _BINARY[op](src[0], src[1])
    if op is Ops.SCAN_AXIS and arg[0] is Ops.MULACC:
        x, factor = (np.moveaxis(part, arg[1], 0) for part in src)
        found, y = np.empty_like(x), np.zeros_like(x[:1].sum(0))
        for step in range(len(x)):
            y = found[step] = y * factor[step] + x[step]
        return np.moveaxis(found, 0, arg[1])
    if op is Ops.SCAN_AXIS:
        running = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum}[arg[0]]
        return running.accumulate(src[0], arg[1], src[0].dtype) if src[0].size else src[0]
    if op is Ops.GATHER:
        table, index = src[0], src[1].astype(np.int64)
        inside = (index >= 0) & (index < table.shape[-1])
        if not table.shape[-1]:
            return np.zeros(shape, numpy_dtype(node.dtype))
        return np.where(inside, np.take_along_axis(table, np.where(inside, index, 0)[..., None], -1)[..., 0], 0)
    if op is Ops.SCATTER:
        return _scattered(arg[0], arg[1], *src)
    if op is Ops.FETCH_ADD:
        return _fetched(*src)
    if op is Ops.CONST:
        return np.full(shape, arg, numpy_dtype(node.dtype))
    if op is Ops.IOTA:
        return np.arange(shape[0]).astype(numpy_dtype(node.dtype))
    if op is Ops.CAST:
        return converted(src[0], node.dtype)
    if op is Ops.BITCAST:
        return _bits_as(src[0], node.src[0].dtype, node.dtype)
    if op is Ops.WHERE:
        return np.where(src[0], src[1], src[2])
    if op is Ops.MULACC:
        return src[0] * src[1] + src[2]
    if op is Ops.REDUCE_AXIS:
        return _reduced(src[0], *arg)
    if op in (Ops.CONTIGUOUS, Ops.COPY):
        return src[0]
    if op is Ops.WRITE:
        whole = src[0].copy()
        whole.reshape(-1)[src[1]] = src[2]
        return whole
    raise NotImplementedError(f"no reference for {op}")


def _fetched(counters: np.ndarray, index: np.ndarray) -> np.ndarray:
    """The number that each of `index` names, before it is one more."""
    counters, found = counters.copy(), np.zeros(index.shape, counters.dtype)
    for place, name in np.ndenumerate(index):
        if 0 <= name < counters.shape[-1]:
            found[place] = counters[(*place[:-1], name)]
            counters[(*place[:-1], name)] += 1
    return found


def _scattered(op: Ops | None, axis: int, x: np.ndarray, index: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Into a copy of `x`, one after the other."""
    inside = (index >= 0) & (index < x.shape[axis])
    places = list(np.nonzero(inside))
    places[axis] = index[inside]
    found = x.copy()
    if op is None:
        found[tuple(places)] = values[inside]
        return found
    combine = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum}[op]
    combine.at(found, tuple(places), values[inside])
    return found


def _bits_as(x: np.ndarray, source: DType, target: DType) -> np.ndarray:
    stored = x.astype(SMALL[source]) if source in SMALL else x.copy(order="C")
    found = stored.view(SMALL.get(target, target.name))
    return found.astype(np.float32) if target in SMALL else found


def _reduced(x: np.ndarray, op: Ops, axes: tuple[int, ...]) -> np.ndarray:
    kinds = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.MAX: np.maximum, Ops.MIN: np.minimum}
    if x.dtype == bool:
        kinds = {Ops.ADD: np.logical_or, Ops.MUL: np.logical_and, Ops.MAX: np.logical_or, Ops.MIN: np.logical_and}
        return kinds[op].reduce(x, axis=axes, keepdims=True)
    return kinds[op].reduce(x, axis=axes, keepdims=True, dtype=x.dtype if op in (Ops.ADD, Ops.MUL) else None)


def _truncated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    safe = np.where(y == 0, 1, y).astype(x.dtype)
    quotient = np.floor_divide(x, safe)
    remainder = x - quotient * safe
    return quotient + ((remainder != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.fmod(x, y) if x.dtype.kind == "f" else x - _truncated(x, y) * y


def _flip(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return np.flip(x, axes)


def _pad(x: np.ndarray, amounts: tuple[tuple[int, int], ...]) -> np.ndarray:
    return np.pad(x, amounts) if amounts else x


def _shrink(x: np.ndarray, bounds: tuple[tuple[int, int], ...]) -> np.ndarray:
    return x[tuple(slice(start, stop) for start, stop in bounds)]


def _window(x: np.ndarray, arg: tuple[int, int, int, int]) -> np.ndarray:
    axis, size, stride, dilation = arg
    count = (x.shape[axis] - dilation * (size - 1) - 1) // stride + 1
    places = np.arange(count)[:, None] * stride + np.arange(size)[None, :] * dilation
    taken = np.take(x, places, axis=axis)
    return np.moveaxis(taken, axis + 1, -1)


def _diagonal(x: np.ndarray, arg: tuple[int, int]) -> np.ndarray:
    first, second = arg
    return np.moveaxis(np.diagonal(x, 0, first, second), -1, first)


_MOVEMENTS: dict[Ops, Any] = {
    Ops.RESHAPE: np.reshape,
    Ops.EXPAND: np.broadcast_to,
    Ops.PERMUTE: np.transpose,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.WINDOW: _window,
    Ops.DIAGONAL: _diagonal,
}

_UNARY: dict[Ops, Any] = {
    Ops.NEG: np.negative,
    Ops.SQRT: np.sqrt,
    Ops.EXP: np.exp,
    Ops.EXP2: np.exp2,
    Ops.LOG: np.log,
    Ops.LOG2: np.log2,
    Ops.SIN: np.sin,
    Ops.COS: np.cos,
    Ops.TANH: np.tanh,
    Ops.ERF: np.vectorize(math.erf, otypes=[float]),
    Ops.FLOOR: np.floor,
}

_BINARY: dict[Ops, Any] = {
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.FDIV: np.divide,
    Ops.IDIV: _truncated,
    Ops.MOD: _remainder,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
    Ops.POW: np.power,
    Ops.CMPLT: np.less,
    Ops.CMPLE: np.less_equal,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
    Ops.AND: np.bitwise_and,
    Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor,
    Ops.SHL: np.left_shift,
    Ops.SHR: np.right_shift,
}

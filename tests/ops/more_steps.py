"""Further steps of random programs: the remaining operations, gradients, replays, symbolic sizes, several devices,
writes into views."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.ops.program import (
    MAX_INEXACT_STEPS,
    STEPS,
    Array,
    Mismatch,
    Program,
    Value,
    _rough,
    _unary,
    step,
)
from tinyexplore import Tensor, TinyJit, Variable

erf = np.vectorize(math.erf, otypes=[np.float64])

# *** functions ***

_unary("square", lambda t: t.clip(-9, 9).square(), lambda x: np.clip(x, -9, 9) ** 2, "fi")
_unary("cube", lambda t: t.clip(-4, 4) ** 3, lambda x: np.clip(x, -4, 4) ** 3, "fi")
_unary("hardtanh", lambda t: t.hardtanh(-2, 3), lambda x: np.clip(x, -2, 3), "fi")
_unary("leakyrelu", lambda t: t.leakyrelu(0.5), lambda x: np.where(x < 0, x * 0.5, x), "f")
_unary("clone", lambda t: t.clone(), lambda x: x, "fiub")
_rough("exp2", lambda t: t.clip(-3, 2).exp2(), lambda x: np.exp2(np.clip(x, -3, 2)))
_rough("log2", lambda t: (t.abs() + 1).log2(), lambda x: np.log2(np.abs(x) + 1))
_rough("rsqrt", lambda t: (t.square() + 1).rsqrt(), lambda x: 1 / np.sqrt(x * x + 1))
_rough("cos", lambda t: t.cos(), np.cos)
_rough("atan", lambda t: t.atan(), np.arctan)
_rough("asinh", lambda t: t.asinh(), np.arcsinh)
_rough("erf", lambda t: t.erf(), erf)
_rough("softplus", lambda t: t.softplus(), lambda x: np.logaddexp(x, 0))
_rough("silu", lambda t: t.silu(), lambda x: x / (1 + np.exp(-x)))
_rough("elu", lambda t: t.elu(), lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))))
_rough("mish", lambda t: t.mish(), lambda x: x * np.tanh(np.logaddexp(x, 0)))
_rough("softsign", lambda t: t.softsign(), lambda x: x / (1 + np.abs(x)))
_rough("reciprocal", lambda t: (t.square() + 1).reciprocal(), lambda x: 1 / (x * x + 1))
_rough("lerp", lambda t: t.lerp(t.sin(), 0.25), lambda x: x + (np.sin(x) - x) * 0.25)


NUMBERS: tuple[float, ...] = (
    0.1,
    1 / 3,
    -0.5,
    2.5,
    1e-3,
    1e6,
    3,
    -1,
    127,
    256,
    -129,
    300,
    70_000,
    2**31,
    -(2**31),
    2**40,
)


@step
def number(p: Program, x: Value) -> Value | None:
    """Arithmetic with a number of Python's, one that the tensor's type does not hold as well.

    Floats round it to their type; ints that cannot hold it are compared and divided only; a fraction turns ints into
    float32.
    """
    number = p.random.choice(NUMBERS)
    if x.kind == "bool" or not x.is_exact:
        return None
    name = p.random.choice(("add", "sub", "mul", "div", "less", "equal", "copysign", "where"))
    becomes_float = not x.is_float and (isinstance(number, float) or name in ("div", "copysign"))
    kind: Any = np.dtype("float32") if becomes_float else x.x.dtype
    if not becomes_float and not x.is_float and name not in ("less", "equal"):
        if not np.iinfo(kind).min <= number <= np.iinfo(kind).max:
            return None  # an error
    if becomes_float and x.x.size and np.abs(x.x.astype(np.float64)).max() > 2048:
        return None  # ints that float32 would have to round
    a = x.x.astype(kind)
    b: Any = kind.type(number) if kind.kind == "f" else np.array(int(number) % (1 << 64), np.uint64).astype(kind)
    if name in ("less", "equal"):
        if kind.kind == "f":
            return Value(x.t < number, a < b) if name == "less" else Value(x.t == number, a == b)
        wide = [int(value) for value in x.x.flat]
        said = [value < number if name == "less" else value == number for value in wide]
        return Value(x.t < number if name == "less" else x.t == number, np.array(said, bool).reshape(x.x.shape))
    ways: dict[str, Callable[[], tuple[Tensor, Any]]] = {
        "add": lambda: (number + x.t, a + b),
        "sub": lambda: (number - x.t, b - a),
        "mul": lambda: (x.t * number, a * b),
        "div": lambda: (x.t / number, a / b),
        "copysign": lambda: (x.t.copysign(number), np.copysign(a, b)),
        "where": lambda: ((x.t > 0).where(x.t, number), np.where(a > 0, a, b)),
    }
    t, found = ways[name]()
    return Value(t, np.asarray(found).astype(kind), int(kind.kind == "f"))


@step
def sign(p: Program, x: Value) -> Value | None:
    if not x.is_exact or x.kind == "bool":
        return None
    return Value(x.t.sign(), np.sign(x.x))


@step
def kinds_of_numbers(p: Program, x: Value) -> Value | None:
    if not x.is_float or not x.is_exact:
        return None
    t, y = x.t / (x.t * (x.t != 1)), x.x / (x.x * (x.x != 1))  # NaN of 0, infinity of 1
    choices = ((t.isnan(), np.isnan(y)), (t.isinf(), np.isinf(y)), (t.isfinite(), np.isfinite(y)))
    found, expected = p.random.choice(choices)
    return Value(found, np.asarray(expected))


@step
def remainder(p: Program, x: Value) -> Value | None:
    """By a tensor of either sign, without zeros."""
    if x.kind == "bool" or not x.is_exact:
        return None
    y = p.numbers(x.x.shape, x.kind)
    y = np.where(y == 0, np.ones_like(y), y)
    t = p.made(y).t
    name = p.random.choice(("//", "%", "fmod"))
    if name == "fmod":
        return Value(x.t.fmod(t), np.fmod(x.x, y))
    return Value(x.t // t, x.x // y) if name == "//" else Value(x.t % t, x.x % y)


@step
def shift(p: Program, x: Value) -> Value | None:
    if x.x.dtype.kind not in "iu":
        return None
    by = p.numbers(x.x.shape, "uint8").astype(x.kind)
    t = p.made(by).t
    return Value(x.t << t, x.x << by) if p.random.random() < 0.5 else Value(x.t >> t, x.x >> by)


@step
def power(p: Program, x: Value) -> Value | None:
    if x.x.dtype.kind not in "iu":
        return None
    by = p.numbers(x.x.shape, "uint8").astype(x.kind)
    return Value(x.t ** p.made(by).t, x.x**by)


@step
def copysign(p: Program, x: Value) -> Value | None:
    if not x.is_float:
        return None
    y = p.made(p.numbers(x.x.shape, x.kind))
    return Value(x.t.copysign(y.t), np.copysign(x.x, y.x), x.rough)


@step
def bitcast(p: Program, x: Value) -> Value | None:
    pairs = {
        "float32": "int32",
        "int32": "uint32",
        "float64": "int64",
        "float16": "int16",
        "int8": "uint8",
        "uint8": "int8",
    }
    if x.kind not in pairs or not x.is_exact or 0 in x.x.shape:
        return None
    kind = pairs[x.kind]
    if x.is_float:  # -0 and 0 are one number, and have other bits
        return Value((x.t + 0.5).bitcast(kind) >> 3, (x.x + np.asarray(0.5, x.kind)).view(kind) >> 3)
    return Value(x.t.bitcast(kind), x.x.view(kind))


@step
def small_float(p: Program, x: Value) -> Value | None:
    """There and back, through a type that has fewer bits."""
    if not x.is_exact or x.kind == "bool" or np.abs(x.x.astype(np.float64)).max(initial=0) > 256:
        return None
    name, kind = p.random.choice(
        (("bfloat16", ml_dtypes.bfloat16), ("fp8e4m3", ml_dtypes.float8_e4m3fn), ("fp8e5m2", ml_dtypes.float8_e5m2))
    )
    return Value(x.t.cast(name).cast("float32"), x.x.astype(np.float32).astype(kind).astype(np.float32))


# *** movement ***


@step
def axes_of_one(p: Program, x: Value) -> Value | None:
    if x.x.ndim and p.random.random() < 0.5:
        return Value(x.t.squeeze(), x.x.squeeze(), x.rough)
    axis = p.random.randint(-x.x.ndim - 1, x.x.ndim)
    return Value(x.t.unsqueeze(axis), np.expand_dims(x.x, axis), x.rough)


@step
def shrink(p: Program, x: Value) -> Value | None:
    bounds = [tuple(sorted((p.random.randint(0, size), p.random.randint(0, size)))) for size in x.x.shape]
    return Value(x.t.shrink(bounds), x.x[tuple(slice(*one) for one in bounds)], x.rough)


@step
def split(p: Program, x: Value) -> Value | None:
    """Parts, put together in another order: several readers of one tensor."""
    if not x.x.ndim or not x.x.size:
        return None
    axis, size = p.axis(x), p.random.randint(1, 3)
    tensors = x.t.split(size, axis)
    arrays = [
        np.take(x.x, range(start, min(start + size, x.x.shape[axis])), axis)
        for start in range(0, x.x.shape[axis], size)
    ]
    order = list(range(len(arrays)))
    p.random.shuffle(order)
    first, *rest = [tensors[i] for i in order]
    return Value(first.cat(*rest, dim=axis), np.concatenate([arrays[i] for i in order], axis), x.rough)


@step
def rearrange(p: Program, x: Value) -> Value | None:
    if x.x.ndim != 3:
        return None
    formula, order = p.random.choice(
        (("a b c -> (c a) b", (2, 0, 1)), ("a b c -> b (a c)", (1, 0, 2)), ("a b c -> (b c a)", (1, 2, 0)))
    )
    moved = x.x.transpose(order)
    groups = [
        part for part in formula.partition("->")[2].replace("(", "|").replace(")", "|").split("|") if part.strip()
    ]
    sizes = dict(zip("abc", x.x.shape))
    shape: list[int] = []
    for part in groups:
        names = part.split()
        shape.extend(
            [int(np.prod([sizes[name] for name in names]))]
            if f"({part})" in formula
            else [sizes[name] for name in names]
        )
    return Value(x.t.rearrange(formula), moved.reshape(shape), x.rough)


@step
def grid(p: Program, x: Value) -> Value | None:
    if x.x.ndim != 1 or not x.x.size:
        return None
    y = p.made(p.numbers((p.random.randint(1, 3),), x.kind))
    how = p.random.choice(("ij", "xy"))
    found, expected = x.t.meshgrid(y.t, indexing=how), np.meshgrid(x.x, y.x, indexing=how)
    which = p.random.randint(0, 1)
    return Value(found[which], expected[which], x.rough if which == 0 else 0)


@step
def diagonal_matrix(p: Program, x: Value) -> Value | None:
    return Value(x.t.diag(), np.diag(x.x), x.rough) if x.x.ndim == 1 and x.x.size else None


@step
def counted(p: Program, x: Value) -> Value | None:
    """With numbers that no memory holds."""
    if not x.x.ndim or x.kind not in ("float32", "int32"):
        return None
    size = x.x.shape[-1]
    line, numbers = Tensor.arange(size, device=p.device), np.arange(size, dtype=np.int32)
    with np.errstate(all="ignore"):
        return Value(x.t + line.cast(x.kind), x.x + numbers.astype(x.kind), x.rough)


# *** reductions, order, running results ***


@step
def moments(p: Program, x: Value) -> Value | None:
    if not x.is_float or x.rough >= MAX_INEXACT_STEPS or x.x.size < 2:
        return None
    wide = x.x.astype(np.float64)
    axes, keep = p.axes(x) or None, p.random.random() < 0.5
    name = p.random.choice(("mean", "var", "std", "logsumexp"))
    if name == "mean":
        found, expected = x.t.mean(axes, keepdim=keep), wide.mean(axes, keepdims=keep)
    elif name == "logsumexp":
        found, expected = x.t.logsumexp(axes, keepdim=keep), np.logaddexp.reduce(wide, axes, keepdims=keep)
    else:
        found = getattr(x.t, name)(axes, keepdim=keep, correction=0)
        expected = getattr(wide, name)(axes, keepdims=keep)
    # √ near 0 makes much of little
    if name == "std" and (np.asarray(expected) < 0.1).any():
        return None
    return Value(found, np.asarray(expected).astype(x.kind), x.rough + 1)


@step
def layernorm(p: Program, x: Value) -> Value | None:
    if not x.is_float or x.rough >= MAX_INEXACT_STEPS or not x.x.ndim or not x.x.size:
        return None
    axis = p.axis(x)
    wide = x.x.astype(np.float64)
    centered = wide - wide.mean(axis, keepdims=True)
    scale = np.sqrt((centered**2).mean(axis, keepdims=True) + 0.5)
    return Value(x.t.layernorm(axis, 0.5), (centered / scale).astype(x.kind), x.rough + 1)


@step
def product(p: Program, x: Value) -> Value | None:
    if x.kind not in ("float32", "float64", "int32", "int64") or not x.x.ndim or not x.is_exact:
        return None
    axis = p.axis(x)
    if x.x.shape[axis] > 100:  # 2¹²⁸ is none of float32
        return None
    t, small = x.t.clip(-2, 2), np.clip(x.x, -2, 2)
    if p.random.random() < 0.5:
        return Value(t.cumprod(axis), np.cumprod(small, axis, dtype=x.kind))
    return Value(t.prod(axis), np.prod(small, axis, dtype=x.kind))


@step
def extremes(p: Program, x: Value) -> Value | None:
    """The k largest or smallest, and where they stand; running ones."""
    if not x.is_exact or not x.x.ndim or not x.x.size:
        return None
    axis = p.axis(x)
    kind = p.random.choice(("topk", "topk", "cummin", "cummax places"))
    if kind == "cummin":
        return Value(x.t.cummin(axis)[0], np.minimum.accumulate(x.x, axis))
    if kind == "cummax places":
        running = np.maximum.accumulate(x.x, axis)
        places = np.arange(x.x.shape[axis]).reshape([-1 if i == axis % x.x.ndim else 1 for i in range(x.x.ndim)])
        last = np.maximum.accumulate(np.where(x.x == running, places, -1), axis)
        return Value(x.t.cummax(axis)[1], last.astype(np.int32))
    k, largest = p.random.randint(1, x.x.shape[axis]), p.random.random() < 0.5
    key = x.x.astype(np.float64)
    order = np.argsort(-key if largest else key, axis, kind="stable").take(range(k), axis)
    values, places = x.t.topk(k, axis, largest)
    if p.random.random() < 0.5:
        return Value(values, np.take_along_axis(x.x, order, axis))
    return Value(places, order.astype(np.int32))


@step
def selected(p: Program, x: Value) -> Value | None:
    """What a mask chooses: a shape that depends on values."""
    if not x.x.size:
        return None
    kind = p.random.choice(("masked_select", "nonzero", "mask"))
    if kind == "nonzero":
        if not x.is_exact or not x.x.ndim:
            return None
        return Value(x.t.nonzero(), np.argwhere(x.x).astype(np.int32))
    mask = p.numbers(x.x.shape, "bool")
    if kind == "mask":
        return Value(x.t[p.made(mask).t], x.x[mask], x.rough) if x.x.ndim else None
    return Value(x.t.masked_select(p.made(mask).t), x.x[mask], x.rough)


# *** writing ***


@step
def write_slices(p: Program, x: Value) -> Value | None:
    """Slices with steps of either sign, masks, or coordinates."""
    if not x.x.size or not x.x.ndim:
        return None
    t, changed = x.t.detach(), x.x.copy()
    kind = p.random.choice(("slices", "slices", "mask", "coordinates"))
    if kind == "mask":
        mask = p.numbers(x.x.shape, "bool")
        number: Any = True if x.kind == "bool" else 2
        t[p.made(mask).t] = number
        changed[mask] = number
        return Value(t, changed, x.rough)
    key: tuple[Any, ...]
    if kind == "slices":
        key = tuple(slice(None, None, p.random.choice((1, 2, -1, -2))) for _ in x.x.shape)
        value = p.made(p.numbers(x.x[key].shape, x.kind))
        t[key] = value.t
    else:
        order = list(range(x.x.shape[0]))
        p.random.shuffle(order)
        key = (order[: p.random.randint(1, len(order))],)
        value = p.made(p.numbers(x.x[key].shape, x.kind))
        t[p.made(np.array(key[0], np.int32)).t] = value.t
    changed[key] = value.x
    return Value(t, changed, x.rough)


@step
def assign_part(p: Program, x: Value) -> Value | None:
    """Into a view of memory; another view, taken before, sees it."""
    if not x.x.size or not x.x.ndim:
        return None
    t, changed = x.t.detach().clone().realize(), x.x.copy()
    if t.lazydata is x.t.lazydata:
        return None
    start = p.random.randint(0, x.x.shape[0] - 1)
    value = p.made(p.numbers(x.x[start:].shape, x.kind))
    t[start:].assign(value.t)
    changed[start:] = value.x
    if p.random.random() < 0.5:
        t.assign(t.flip(0))
        changed = changed[::-1].copy()
    return Value(t, changed, x.rough)


@step
def scatter(p: Program, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size or x.kind in ("bool", "float16") or not x.is_exact:
        return None
    axis = p.axis(x)
    reduce, combine = p.random.choice((("sum", np.add), ("amax", np.maximum), ("amin", np.minimum)))
    generator = np.random.default_rng(p.random.getrandbits(32))
    places = generator.integers(0, x.x.shape[axis], x.x.shape).astype(np.int32)
    source, found = p.made(p.numbers(x.x.shape, x.kind)), x.x.copy()
    coordinates = list(np.indices(x.x.shape))
    coordinates[axis] = places
    with np.errstate(all="ignore"):
        combine.at(found, tuple(coordinates), source.x)
    return Value(x.t.scatter_reduce(axis, p.made(places).t, source.t, reduce), found)


# *** networks ***


@step
def convolution_2d(p: Program, x: Value) -> Value | None:
    """Groups, strides, dilation, padding; or the transposed one."""
    if x.x.ndim != 3 or not x.x.size or x.kind not in ("float32", "float64", "int32"):
        return None
    groups = p.random.choice([n for n in (1, 2) if x.x.shape[0] % n == 0])
    channels = x.x.shape[0] // groups
    stride, gap, around = p.random.randint(1, 2), p.random.randint(1, 2), p.random.randint(0, 2)
    if p.random.random() < 0.3:
        w = p.made(p.numbers((x.x.shape[0], 2, 2, 2), x.kind))
        expected = _spread_windows(x.x, w.x, groups, stride, gap)
        return Value(x.t.unsqueeze(0).conv_transpose2d(w.t, None, groups, stride, gap).squeeze(0), expected, x.rough)
    kernel = (p.random.randint(1, 3), p.random.randint(1, 3))
    padded = np.pad(x.x, ((0, 0), (around, around), (around, around)))
    if any(have < gap * (size - 1) + 1 for have, size in zip(padded.shape[1:], kernel)):
        return None
    w = p.made(p.numbers((2 * groups, channels, *kernel), x.kind))
    reach = [gap * (size - 1) + 1 for size in kernel]
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2))[:, ::stride, ::stride, ::gap, ::gap]
    parts = [
        np.einsum("chwij,ocij->ohw", windows[g * channels : (g + 1) * channels], w.x[2 * g : 2 * g + 2])
        for g in range(groups)
    ]
    found = x.t.unsqueeze(0).conv2d(w.t, None, groups, stride, gap, around).squeeze(0)
    return Value(found, np.concatenate(parts).astype(x.kind), x.rough)


def _spread_windows(x: Array, w: Array, groups: int, stride: int, gap: int) -> Array:
    """Each element adds its kernel to the result, by the definition."""
    (channels, height, width), out = x.shape, w.shape[1]
    found = np.zeros((groups * out, (height - 1) * stride + gap + 1, (width - 1) * stride + gap + 1), x.dtype)
    for c, i, j in np.ndindex(*x.shape):
        first = c // (channels // groups) * out
        rows, columns = slice(i * stride, i * stride + gap + 1, gap), slice(j * stride, j * stride + gap + 1, gap)
        found[first : first + out, rows, columns] += x[c, i, j] * w[c]
    return found


@step
def average(p: Program, x: Value) -> Value | None:
    if x.x.ndim < 2 or min(x.x.shape[-2:]) < 2 or x.kind not in ("float32", "float64") or not x.x.size:
        return None
    stride = p.random.randint(1, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x.x, (2, 2), (-2, -1))[..., ::stride, ::stride, :, :]
    return Value(x.t.avg_pool2d(2, stride), windows.mean((-2, -1)).astype(x.kind), x.rough)  # quarters are exact


@step
def nearest(p: Program, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size or x.kind == "bool":
        return None
    count = p.random.randint(1, 6)
    places = np.arange(count) * x.x.shape[-1] // count
    return Value(x.t.interpolate((count,), "nearest"), x.x[..., places], x.rough)


@step
def attention(p: Program, x: Value) -> Value | None:
    if x.x.ndim < 2 or not x.x.size or x.kind not in ("float32", "float64") or x.rough >= MAX_INEXACT_STEPS:
        return None
    wide = np.clip(x.x, -2, 2).astype(np.float64)
    causal = p.random.random() < 0.5
    scores = wide @ np.swapaxes(wide, -1, -2) / np.sqrt(wide.shape[-1])
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    expected = grown / grown.sum(-1, keepdims=True) @ wide
    t = x.t.clip(-2, 2)
    return Value(t.scaled_dot_product_attention(t, t, is_causal=causal), expected.astype(x.kind), x.rough + 1)


@step
def cross_entropy(p: Program, x: Value) -> Value | None:
    if x.x.ndim != 2 or not x.x.size or x.kind not in ("float32", "float64") or x.rough >= MAX_INEXACT_STEPS:
        return None
    rows, classes = x.x.shape
    labels = np.random.default_rng(p.random.getrandbits(32)).integers(0, classes, rows).astype(np.int32)
    wide = x.x.astype(np.float64)
    logs = wide - np.logaddexp.reduce(wide, 1, keepdims=True)
    expected = -logs[np.arange(rows), labels]
    return Value(x.t.cross_entropy(p.made(labels).t, "none"), expected.astype(x.kind), x.rough + 1)


# *** what is done with several steps ***

SMOOTH = (
    *("sin", "cos", "tanh", "sigmoid", "exp", "log", "sqrt", "div", "atan", "asinh", "erf", "softplus", "silu", "mish"),
    *("softmax", "mean", "moments", "layernorm", "gelu", "rsqrt", "reciprocal", "lerp"),
)
LINEAR = (
    *("reshape", "permute", "flip", "expand", "pad", "index", "cat", "repeat", "unfold", "triangle", "shrink", "split"),
    *("matmul", "einsum", "convolution", "convolution_2d", "average", "neg", "plus a number", "masked_fill", "nearest"),
    *("axes_of_one", "rearrange", "diagonal_matrix"),
)
PLAIN = (*LINEAR, "relu", "abs", "clip", "reduce", "scan", "square", "sign", "contiguous", "counted", "product", "pool")


def adds_up_exactly(value: Value) -> bool:
    """True where a sum or a running sum of the values is exact in any order."""
    return not value.is_float or float(np.abs(value.x, dtype=np.float64).sum()) < 1 << 23


def _chain(p: Program, names: Sequence[str], least: int = 1, most: int = 4) -> Callable[[Tensor, Array], list[Value]]:
    """Some steps that can be done again, with the same arguments, on another value of that shape and type."""
    chosen = [p.random.choice(names) for _ in range(p.random.randint(least, most))]
    seed = p.random.getrandbits(32)

    def apply(t: Tensor, x: Array) -> list[Value]:
        other = Program(seed, p.device, p.wide)
        found = [Value(t, x)]
        for name in chosen:
            value = STEPS[name](other, found[-1])
            if value is not None and 0 < value.x.size <= p.most // 2:
                found.append(Value(value.t, np.asarray(value.x), 0))
        return found

    return apply


@step
def gradient(p: Program, x: Value) -> Value | None:
    """Of a chain of smooth steps and movements, in float64, against central differences."""
    if not 0 < x.x.size <= 16 or x.x.dtype.kind not in "fi":
        return None
    shape = x.x.shape
    numbers = np.asarray(p.numbers(shape, "float64") * 0.25 + 0.1)
    apply = _chain(p, SMOOTH + LINEAR, 1, 4)
    t = Tensor(numbers, device=p.device, requires_grad=True)
    last = apply(t, numbers)[-1]
    if last.kind != "float64" or last.t is t or not last.t.requires_grad:
        return None
    weights = p.numbers(last.x.shape, "float64") + 0.5
    (last.t * Tensor(weights, device=p.device)).sum().backward()
    if t.grad is None:
        return None
    dummy = Tensor(numbers, device=p.device)
    expected = np.zeros(shape)
    middle = float((last.x * weights).sum())
    for place in np.ndindex(shape):
        ends = []
        for change in (1e-5, -1e-5):
            moved = numbers.copy()
            moved[place] += change
            ends.append(float((apply(dummy, moved)[-1].x * weights).sum()))
        expected[place] = (ends[0] - ends[1]) / 2e-5
        if abs(ends[0] + ends[1] - 2 * middle) > 1e-8 * max(1.0, abs(expected[place])):
            return None  # a corner: sqrt(|x| + 1) at a mean, which is 0 but for rounding
    found = t.grad.numpy()
    p.steps.append(f"(gradient at {shape} of a chain to {last.x.shape})")
    if not np.allclose(found, expected, rtol=1e-5, atol=1e-5 * (1 + np.abs(expected).max(initial=0))):
        raise Mismatch(f"gradient {found.tolist()}, not {expected.tolist()}\n" + p.text())
    return Value(t.grad, found, 1)


@step
def replay(p: Program, x: Value) -> Value | None:
    """A chain as a TinyJit with several results, called with other numbers each time."""
    if not x.x.size or x.kind == "float16":
        return None
    apply = _chain(p, PLAIN, 2, 4)

    def function(t: Tensor) -> list[Tensor]:
        found = [*(value.t.contiguous() for value in apply(t, x.x)[1:]), (t != 0).contiguous()]
        found[0].realize(*found[1:])
        return found

    jitted = TinyJit(function)
    for _ in range(4):
        numbers = p.made(p.numbers(x.x.shape, x.kind))
        expected = [*apply(numbers.t, numbers.x)[1:], Value(numbers.t, numbers.x != 0)]
        results = jitted(numbers.t.realize())
        rough = 0 if all(map(adds_up_exactly, expected)) else 1
        for found, wanted in zip(results, expected):
            p.compare(Value(found, wanted.x, rough if wanted.is_float else wanted.rough))
    return Value(results[0].clone().realize(), expected[0].x)


@step
def symbolic(p: Program, x: Value) -> Value | None:
    """A part whose length is a Variable, put to some use that ends in a plain shape."""
    if x.x.ndim < 1 or x.x.shape[0] < 2 or not x.x.size or x.kind not in ("float32", "int32", "float64"):
        return None
    size = x.x.shape[0]
    length = p.random.randint(1, size)
    n = Variable(f"n{len(p.steps)}", 1, size).bind(length)  # a name of its own in every step
    t, part = x.t[:n], x.x[:length]
    for name in p.random.choices(("double", "flip", "relu", "less", "scan", "rows"), k=p.random.randint(0, 2)):
        if name == "double":
            t, part = t + t, part + part
        elif name == "flip":
            t, part = t.flip(0), part[::-1]
        elif name == "relu":
            t, part = t.relu(), np.maximum(part, 0)
        elif name == "less":
            t, part = t - t[0], part - part[0]
        elif name == "scan":
            t, part = t.cumsum(0), np.cumsum(part, 0, dtype=x.kind)
        else:
            t, part = t.contiguous(), part
    use = p.random.choice(("sum", "max", "last", "read"))
    if use == "sum":
        return Value(t.sum(0), np.asarray(part.sum(0, dtype=x.kind)), x.rough)
    if use == "max":
        return Value(t.max(0), np.asarray(part.max(0)), x.rough)
    if use == "last":
        return Value(
            t[n - 1] if part.ndim > 1 else t.sum(),
            np.asarray(part[-1] if part.ndim > 1 else part.sum(dtype=x.kind)),
            x.rough,
        )
    return Value(Tensor(t.numpy().copy(), device=p.device), part, x.rough)


@step
def sharded(p: Program, x: Value) -> Value | None:
    """A chain on a tensor that lies on two devices, divided or whole."""
    if not x.x.size or x.kind == "float16" or p.device == "CLANG":
        return None
    even = [axis for axis, size in enumerate(x.x.shape) if size % 2 == 0]
    axis = p.random.choice([None, *even])
    t = x.t.detach().shard((f"{p.device}:1", f"{p.device}:2"), axis)
    found = Value(t, x.x, x.rough)
    for _ in range(p.random.randint(1, 3)):
        name = p.random.choice(
            ("neg", "relu", "plus a number", "permute", "reduce", "flip", "reshape", "expand", "shrink", "abs")
        )
        new = STEPS[name](p, found)
        if new is not None and 0 < new.x.size <= p.most // 2:
            found = new
    return Value(found.t.to(p.device), found.x, found.rough)


@step
def reuse(p: Program, x: Value) -> Value | None:
    """One value, read by several others that meet again."""
    if x.kind == "bool" or x.kind == "float16" or not x.x.size:
        return None
    apply = _chain(p, ("neg", "relu", "abs", "flip", "clip", "contiguous"), 1, 3)
    values = apply(x.t, x.x)
    total, array = values[0].t, values[0].x
    for value in values[1:]:
        if value.x.shape == array.shape and value.kind == array.dtype.name:
            with np.errstate(all="ignore"):
                total, array = total + value.t, array + value.x
    return Value(total, array, x.rough)

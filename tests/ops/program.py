"""Random programs of 5 to 30 tensor operations, each step on a Tensor and in NumPy: their values and first steps.

A value is *exact* while every step so far gives the
same bits in any order of summation (whole numbers, bounded); only then may a step follow that has jumps (floor,
comparison, sorting). Other values are compared with a tolerance; their steps are few, and flat enough to keep it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from tests.support.limits import has
from tinyexplore import Tensor, dtypes
from tinyexplore.dtype import least_upper_dtype

Array = np.ndarray
KINDS = ("float32", "float32", "float32", "int32", "int32", "bool", "int64", "uint8", "int8", "float64", "float16")
SIDES = (1, 2, 3, 3, 4, 5)
WIDE_SIDES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 100)
LARGEST = 64  # what whole numbers are clipped to, so that sums and products stay exact in float32
MAX_ELEMENTS = 400
MAX_WIDE_ELEMENTS = 20_000
MAX_INEXACT_STEPS = 5
TOLERANCE = {"float16": 0.05, "float32": 2e-4, "float64": 1e-9}


@dataclass
class Value:
    """A tensor and what NumPy says it is. `rough`: how many inexact steps led here."""

    t: Tensor
    x: Array
    rough: int = 0

    @property
    def kind(self) -> str:
        return self.x.dtype.name

    @property
    def is_exact(self) -> bool:
        return self.rough == 0

    @property
    def is_float(self) -> bool:
        return self.x.dtype.kind == "f"


class Mismatch(AssertionError):
    """A step after which the two differ."""


class Program:
    """Steps chosen by a seed; `wide`: with axes so long that loops become vectors, tiles and threads."""

    def __init__(self, seed: int, device: str, wide: bool = False) -> None:
        self.random = Random(seed)
        self.device = device
        self.kinds = tuple(kind for kind in KINDS if has(device, dtypes.fields()[kind]))
        self.wide = wide
        self.most = MAX_WIDE_ELEMENTS if wide else MAX_ELEMENTS
        self.values: list[Value] = []
        self.steps: list[str] = []

    def run(self) -> None:
        """Makes the program and compares the results of its last values (and some on the way)."""
        for _ in range(self.random.randint(1, 2)):
            self.leaf()
        wanted = self.random.randint(5, 30)
        while len(self.steps) < wanted:
            x = self.random.choice(self.values[-3:])
            name = self.random.choice(sorted(STEPS))
            found = STEPS[name](self, x)
            if found is None or found.x.size > self.most:
                continue
            self.steps.append(f"{name}{x.x.shape} -> {found.x.shape} {found.kind}")
            self.values.append(self.bounded(found))
        results = self.values[-self.random.randint(2, 4) :]
        if self.random.random() < 0.5:
            results[0].t.realize(*(value.t for value in results[1:]))
        for value in results:
            self.compare(value)

    def compare(self, value: Value) -> None:
        found = value.t.numpy()
        if found.dtype != value.x.dtype or found.shape != value.x.shape:
            raise Mismatch(f"{found.dtype} {found.shape}, not {value.x.dtype} {value.x.shape}\n" + self.text())
        limit = (
            0.0
            if value.is_exact
            else TOLERANCE[value.kind] * (1 + float(np.abs(value.x).max(initial=0, where=np.isfinite(value.x))))
        )
        equal = np.isclose(found, value.x, rtol=0, atol=limit, equal_nan=value.is_float)
        if not equal.all():
            at = tuple(int(place) for place in np.argwhere(~equal)[0])
            count = int((~equal).sum())
            raise Mismatch(
                f"{count} of {equal.size} differ, first at {at}: {found[at]!r}, not {value.x[at]!r}\n" + self.text()
            )

    def text(self) -> str:
        return "\n".join(self.steps)

    # *** material ***

    def numbers(self, shape: tuple[int, ...], kind: str) -> Array:
        generator = np.random.default_rng(self.random.getrandbits(32))
        low = 0 if kind.startswith(("u", "b")) else -4
        return generator.integers(low, 2 if kind == "bool" else 5, shape).astype(kind)

    def shape(self) -> tuple[int, ...]:
        rank = self.random.choice((1, 1, 2, 2, 2, 3) if self.wide else (0, 1, 1, 2, 2, 2, 3, 3, 4))
        shape = [self.random.choice(WIDE_SIDES if self.wide else SIDES) for _ in range(rank)]
        while math.prod(shape) > MAX_WIDE_ELEMENTS:
            shape[shape.index(max(shape))] //= 2
        if rank and self.random.random() < 0.02:
            shape[self.random.randrange(rank)] = 0
        return tuple(shape)

    def made(self, x: Array) -> Value:
        return Value(Tensor(x.copy(), device=self.device), x)

    def leaf(self, shape: tuple[int, ...] | None = None, kind: str | None = None) -> Value:
        shape = self.shape() if shape is None else shape
        value = self.made(self.numbers(shape, kind or self.random.choice(self.kinds)))
        self.values.append(value)
        return value

    def partner(self, x: Value) -> Value:
        """A value that broadcasts against `x`, of any type."""
        fitting = [value for value in self.values if _broadcasts(value.x.shape, x.x.shape)]
        if fitting and self.random.random() < 0.6:
            return self.random.choice(fitting)
        shape = tuple(self.random.choice((1, size)) for size in x.x.shape[self.random.randint(0, x.x.ndim) :])
        return self.made(self.numbers(shape, self.random.choice((x.kind, self.random.choice(self.kinds)))))

    def axis(self, x: Value) -> int:
        return self.random.randint(-x.x.ndim, x.x.ndim - 1)

    def axes(self, x: Value) -> tuple[int, ...]:
        return tuple(axis for axis in range(x.x.ndim) if self.random.random() < 0.5)

    def bounded(self, value: Value) -> Value:
        """Numbers kept small; a NaN or an infinity would be the same story in every further step."""
        if value.kind == "bool":
            return value
        if value.x.dtype.kind in "iu" or np.abs(value.x).max(initial=0) <= LARGEST:
            return value
        return Value(value.t.clip(-LARGEST, LARGEST), np.clip(value.x, -LARGEST, LARGEST), value.rough)


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b)))


Step = Callable[[Program, Value], "Value | None"]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__.strip("_")] = function
    return function


def _common(x: Value, y: Value) -> str:
    return least_upper_dtype(x.t.dtype, y.t.dtype).name


def _is_wider(kind: str, *values: Value) -> bool:
    """True where rough values would be judged by a finer tolerance than they were computed with."""
    return any(not value.is_exact and value.kind != kind for value in values)


def _binary(name: str, tensors: Callable[[Tensor, Tensor], Tensor], arrays: Callable[[Array, Array], Any]) -> None:
    def do(p: Program, x: Value) -> Value | None:
        y = p.partner(x)
        kind = _common(x, y)
        if (name == "sub" and kind == "bool") or _is_wider(kind, x, y):
            return None
        with np.errstate(all="ignore"):
            found = np.asarray(arrays(x.x.astype(kind), y.x.astype(kind)))
        return Value(tensors(x.t, y.t), found.astype(kind), max(x.rough, y.rough))

    STEPS[name] = do


_binary("add", lambda a, b: a + b, lambda a, b: a + b)
_binary("sub", lambda a, b: a - b, lambda a, b: a - b)
_binary("mul", lambda a, b: a * b, lambda a, b: a * b)
_binary("maximum", lambda a, b: a.maximum(b), np.maximum)
_binary("minimum", lambda a, b: a.minimum(b), np.minimum)


def _unary(name: str, tensors: Callable[[Tensor], Tensor], arrays: Callable[[Array], Array], kinds: str) -> None:
    def do(p: Program, x: Value) -> Value | None:
        if x.x.dtype.kind not in kinds:
            return None
        with np.errstate(all="ignore"):
            return Value(tensors(x.t), np.asarray(arrays(x.x)).astype(x.x.dtype), x.rough)

    STEPS[name] = do


_unary("neg", lambda t: -t, np.negative, "fiu")
_unary("abs", lambda t: t.abs(), np.abs, "fiu")
_unary("relu", lambda t: t.relu(), lambda x: np.maximum(x, 0), "fiu")
_unary("invert", lambda t: ~t, np.invert, "iub")
_unary("clip", lambda t: t.clip(-3, 2), lambda x: np.clip(x, -3, 2), "fi")
_unary("plus a number", lambda t: 3 + t * 2, lambda x: 3 + x * 2, "fiu")
_unary("contiguous", lambda t: t.contiguous(), lambda x: x, "fiub")
_unary("realize", lambda t: t.realize(), lambda x: x, "fiub")
_unary("detach", lambda t: t.detach(), lambda x: x, "fiub")


def _rough(name: str, tensors: Callable[[Tensor], Tensor], arrays: Callable[[Array], Array]) -> None:
    def do(p: Program, x: Value) -> Value | None:
        if not x.is_float or x.rough >= MAX_INEXACT_STEPS or x.x.size == 0:
            return None
        return Value(tensors(x.t), arrays(x.x.astype(np.float64)).astype(x.kind), x.rough + 1)

    STEPS[name] = do


_rough("sin", lambda t: t.sin(), np.sin)
_rough("tanh", lambda t: t.tanh(), np.tanh)
_rough("sigmoid", lambda t: t.sigmoid(), lambda x: 1 / (1 + np.exp(-x)))
_rough("exp", lambda t: (t.clip(-3, 2)).exp(), lambda x: np.exp(np.clip(x, -3, 2)))
_rough("log", lambda t: (t.abs() + 1).log(), lambda x: np.log(np.abs(x) + 1))
_rough("sqrt", lambda t: (t.abs() + 1).sqrt(), lambda x: np.sqrt(np.abs(x) + 1))
_rough("div", lambda t: t / (t.abs() + 2), lambda x: x / (np.abs(x) + 2))
_rough("gelu", lambda t: t.quick_gelu(), lambda x: x / (1 + np.exp(-1.702 * x)))
_rough("mean", lambda t: t - t.mean(), lambda x: x - x.mean())


@step
def softmax(p: Program, x: Value) -> Value | None:
    if not x.is_float or x.rough >= MAX_INEXACT_STEPS or not x.x.ndim or not x.x.size:
        return None
    axis = p.axis(x)
    wide = x.x.astype(np.float64)
    grown = np.exp(wide - wide.max(axis, keepdims=True))
    return Value(x.t.softmax(axis), (grown / grown.sum(axis, keepdims=True)).astype(x.kind), x.rough + 1)


@step
def compare(p: Program, x: Value) -> Value | None:
    y = p.partner(x)
    if not (x.is_exact and y.is_exact):
        return None
    kind = _common(x, y)
    a, b = x.x.astype(kind), y.x.astype(kind)
    found = p.random.choice(((x.t < y.t, a < b), (x.t <= y.t, a <= b), (x.t == y.t, a == b), (x.t != y.t, a != b)))
    return Value(found[0], np.asarray(found[1]))


@step
def where(p: Program, x: Value) -> Value | None:
    y = p.partner(x)
    condition = p.numbers(x.x.shape, "bool")
    kind = _common(x, y)
    if _is_wider(kind, x, y):
        return None
    found = np.where(condition, x.x.astype(kind), y.x.astype(kind))
    return Value(p.made(condition).t.where(x.t, y.t), found, max(x.rough, y.rough))


@step
def masked_fill(p: Program, x: Value) -> Value | None:
    mask = p.numbers(x.x.shape, "bool")
    number: Any = True if x.kind == "bool" else 3
    return Value(x.t.masked_fill(p.made(mask).t, number), np.where(mask, number, x.x).astype(x.kind), x.rough)


@step
def bits(p: Program, x: Value) -> Value | None:
    y = p.partner(x)
    kind = _common(x, y)
    if np.dtype(kind).kind == "f":
        return None
    a, b = x.x.astype(kind), y.x.astype(kind)
    found = p.random.choice(((x.t & y.t, a & b), (x.t | y.t, a | b), (x.t ^ y.t, a ^ b)))
    return Value(found[0], np.asarray(found[1]))


@step
def divide(p: Program, x: Value) -> Value | None:
    if x.x.dtype.kind not in "iu":
        return None
    by = p.random.choice((1, 2, 3, 5, 7))
    found = p.random.choice(((x.t // by, x.x // by), (x.t % by, x.x % by), (x.t << 1, x.x << 1), (x.t >> 1, x.x >> 1)))
    return Value(found[0], np.asarray(found[1]).astype(x.kind))


@step
def floor(p: Program, x: Value) -> Value | None:
    if not x.is_float or not x.is_exact:
        return None
    half = x.x * 0.5
    found = p.random.choice((("floor", np.floor), ("ceil", np.ceil), ("trunc", np.trunc), ("round", np.round)))
    return Value(getattr(x.t * 0.5, found[0])(), np.asarray(found[1](half)).astype(x.kind))


@step
def cast(p: Program, x: Value) -> Value | None:
    kind = p.random.choice(p.kinds)
    target = np.dtype(kind)
    if x.is_float and target.kind == "u":
        return None  # of negative numbers: undefined
    if x.x.dtype.kind in "iu" and target.kind == "f":
        if np.abs(x.x.astype(np.float64)).max(initial=0) > 2048:
            return None
    if x.is_float and target.kind == "i" and np.abs(x.x).max(initial=0) > 100:
        return None
    if _is_wider(kind, x):
        return None
    return Value(x.t.cast(kind), x.x.astype(kind), x.rough)


# *** movement ***


@step
def reshape(p: Program, x: Value) -> Value | None:
    sizes, left = [], x.x.size
    if not left:
        return None
    for _ in range(p.random.randint(0, 3)):
        size = p.random.choice([n for n in range(1, left + 1) if left % n == 0])
        sizes.append(size)
        left //= size
    sizes.append(left)
    p.random.shuffle(sizes)
    return Value(x.t.reshape(*sizes), x.x.reshape(sizes), x.rough)


@step
def permute(p: Program, x: Value) -> Value | None:
    order = list(range(x.x.ndim))
    p.random.shuffle(order)
    return Value(x.t.permute(tuple(order)), x.x.transpose(order), x.rough) if order else None


@step
def flip(p: Program, x: Value) -> Value | None:
    axes = p.axes(x)
    return Value(x.t.flip(axes), np.flip(x.x, axes), x.rough) if axes else None


@step
def expand(p: Program, x: Value) -> Value | None:
    shape = (p.random.randint(1, 3), *(p.random.choice((1, 3)) if size == 1 else size for size in x.x.shape))
    return Value(x.t.expand(shape), np.broadcast_to(x.x, shape), x.rough)


@step
def pad(p: Program, x: Value) -> Value | None:
    if not x.x.size or not x.x.ndim:
        return None
    mode = p.random.choice(("constant", "constant", "reflect", "replicate", "circular"))
    most = min(2, min(x.x.shape) - 1)
    amounts = [(p.random.randint(0, most), p.random.randint(0, most)) for _ in x.x.shape]
    numpy_mode: Any = {"replicate": "edge", "circular": "wrap"}.get(mode, mode)
    return Value(x.t.pad(amounts, mode=mode), np.pad(x.x, amounts, mode=numpy_mode), x.rough)


@step
def index(p: Program, x: Value) -> Value | None:
    items: list[Any] = []
    for size in x.x.shape:
        edges = [p.random.choice((None, p.random.randint(-size - 1, size + 1))) for _ in range(2)]
        choices: list[Any] = [slice(*edges, p.random.choice((None, 1, -1, 2, -2))), slice(None)]
        if size:
            choices += [p.random.randint(-size, size - 1)]
        if size and not any(isinstance(item, list) for item in items):
            choices += [[p.random.randint(-size, size - 1) for _ in range(p.random.randint(1, 3))]]
        items.append(p.random.choice(choices))
        if p.random.random() < 0.1:
            items.append(None)
    return Value(x.t[tuple(items)], _indexed(x.x, items), x.rough)


def _indexed(x: Array, items: list[Any]) -> Array:
    """x[items] by PyTorch's rule: an int takes its axis away first. NumPy counts an int beside a list as a list, and
    moves the axis of both to the front where something stands between them."""
    numbers = tuple([item if isinstance(item, int) else slice(None) for item in items if item is not None])
    others = tuple([item for item in items if not isinstance(item, int)])
    found: Array = x[numbers][others]
    return found


@step
def write(p: Program, x: Value) -> Value | None:
    if not x.x.size or not x.x.ndim:
        return None
    size = x.x.shape[0]
    choices: list[Any] = [
        slice(p.random.randint(0, size - 1), None, p.random.randint(1, 2)),
        p.random.randint(0, size - 1),
    ]
    choices += [[p.random.randint(-size, size - 1) for _ in range(2)]]
    key = p.random.choice(choices)
    value = p.made(p.numbers(x.x[key].shape, x.kind))
    t, changed = x.t.detach(), x.x.copy()
    t[key] = value.t
    changed[key] = value.x
    return Value(t, changed, x.rough)


@step
def cat(p: Program, x: Value) -> Value | None:
    if not x.x.ndim:
        return None
    axis = p.axis(x)
    y = p.made(p.numbers(x.x.shape, x.kind))
    if p.random.random() < 0.3:
        return Value(x.t.stack(y.t, dim=axis), np.stack([x.x, y.x], axis if axis >= 0 else axis), x.rough)
    return Value(x.t.cat(y.t, x.t, dim=axis), np.concatenate([x.x, y.x, x.x], axis), x.rough)


@step
def repeat(p: Program, x: Value) -> Value | None:
    if not x.x.ndim:
        return None
    axis, times = p.axis(x), p.random.randint(1, 3)
    kind = p.random.choice(("repeat", "interleave", "roll"))
    if kind == "roll":
        return Value(x.t.roll(times, axis), np.roll(x.x, times, axis), x.rough)
    if kind == "interleave":
        return Value(x.t.repeat_interleave(times, axis), np.repeat(x.x, times, axis), x.rough)
    sizes = [p.random.randint(1, 2) for _ in x.x.shape]
    return Value(x.t.repeat(*sizes), np.tile(x.x, sizes), x.rough)


@step
def unfold(p: Program, x: Value) -> Value | None:
    if not x.x.ndim:
        return None
    axis = p.random.randint(0, x.x.ndim - 1)
    if x.x.shape[axis] < 2:
        return None
    gap = p.random.randint(1, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x.x, 2, axis)
    return Value(x.t.unfold(axis, 2, gap), windows[(slice(None),) * axis + (slice(None, None, gap),)], x.rough)


@step
def triangle(p: Program, x: Value) -> Value | None:
    if x.x.ndim < 2:
        return None
    offset = p.random.randint(-1, 1)
    if p.random.random() < 0.3:
        return Value(x.t.diagonal(offset), np.diagonal(x.x, offset), x.rough)
    upper = p.random.random() < 0.5
    return Value((x.t.triu if upper else x.t.tril)(offset), (np.triu if upper else np.tril)(x.x, offset), x.rough)


# *** reductions and what is made of them ***


@step
def reduce(p: Program, x: Value) -> Value | None:
    axes, keep = p.axes(x), p.random.random() < 0.5
    if not x.x.size or x.kind == "float16":
        return None
    name = p.random.choice(("sum", "sum", "max", "min", "any", "all"))
    if name in ("any", "all"):
        if not x.is_exact:
            return None
        return Value(getattr(x.t, name)(axes, keepdim=keep), np.asarray(getattr(np, name)(x.x, axes, keepdims=keep)))
    found = np.asarray(getattr(np, name)(x.x.astype(_sum_kind(x)) if name == "sum" else x.x, axes, keepdims=keep))
    return Value(
        getattr(x.t, name)(axes, keepdim=keep), found.astype(_sum_kind(x) if name == "sum" else x.kind), x.rough
    )


def _sum_kind(x: Value) -> str:
    if x.is_float:
        return x.kind
    return x.kind if x.x.dtype.itemsize == 8 else "uint32" if x.x.dtype.kind == "u" else "int32"


@step
def place(p: Program, x: Value) -> Value | None:
    if not x.is_exact or not x.x.ndim or not x.x.size:
        return None
    axis = p.axis(x)
    largest = p.random.random() < 0.5
    found = (np.argmax if largest else np.argmin)(x.x, axis)
    return Value((x.t.argmax if largest else x.t.argmin)(axis), np.asarray(found).astype(np.int32))


@step
def sort(p: Program, x: Value) -> Value | None:
    if not x.is_exact or not x.x.ndim or not x.x.size:
        return None
    axis = p.axis(x)
    values, places = x.t.sort(axis)
    if p.random.random() < 0.5:
        return Value(values, np.sort(x.x, axis, kind="stable"))
    return Value(places, np.argsort(x.x, axis, kind="stable").astype(np.int32))


@step
def scan(p: Program, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size or x.kind in ("float16", "bool"):
        return None
    axis = p.axis(x)
    if p.random.random() < 0.4 and x.is_exact:
        return Value(x.t.cummax(axis)[0], np.maximum.accumulate(x.x, axis), x.rough)
    return Value(x.t.cumsum(axis), np.cumsum(x.x, axis, dtype=_sum_kind(x)), x.rough)


@step
def matmul(p: Program, x: Value) -> Value | None:
    if x.x.ndim < 2 or not x.x.size or x.kind in ("bool", "float16"):
        return None
    y = p.made(p.numbers((x.x.shape[-1], p.random.randint(1, 4)), x.kind))
    with np.errstate(all="ignore"):
        return Value(x.t @ y.t, (x.x @ y.x).astype(x.kind), x.rough)


@step
def convolution(p: Program, x: Value) -> Value | None:
    if x.x.ndim < 2 or not x.x.size or x.kind not in ("float32", "float64"):
        return None
    flat = x.x.reshape(1, 1, -1)
    width = min(3, flat.shape[-1])
    w = p.made(p.numbers((2, 1, width), x.kind))
    found = np.stack([np.correlate(flat[0, 0], filters[0], "valid") for filters in w.x])[None]
    return Value(x.t.reshape(1, 1, -1).conv2d(w.t), found.astype(x.kind), x.rough)


@step
def pool(p: Program, x: Value) -> Value | None:
    if x.x.ndim < 2 or min(x.x.shape[-2:]) < 2 or not x.x.size or x.kind == "bool":
        return None
    windows = np.lib.stride_tricks.sliding_window_view(x.x, (2, 2), (-2, -1))[..., ::2, ::2, :, :]
    return Value(x.t.max_pool2d(2), windows.max((-2, -1)), x.rough)


@step
def gather(p: Program, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size:
        return None
    axis = p.random.randint(0, x.x.ndim - 1)
    places = np.random.default_rng(p.random.getrandbits(32)).integers(0, x.x.shape[axis], x.x.shape).astype(np.int32)
    if p.random.random() < 0.5 or x.kind in ("bool", "float16"):
        return Value(x.t.gather(axis, p.made(places).t), np.take_along_axis(x.x, places, axis), x.rough)
    source, found = p.made(p.numbers(x.x.shape, x.kind)), x.x.copy()
    for at in np.ndindex(places.shape):
        spot = (*at[:axis], places[at], *at[axis + 1 :])
        found[spot] = np.add(found[spot], source.x[at], dtype=x.kind, casting="unsafe")
    return Value(x.t.scatter(axis, p.made(places).t, source.t, reduce="add"), found, x.rough)


@step
def one_hot(p: Program, x: Value) -> Value | None:
    if x.x.dtype.kind not in "iu":
        return None
    return Value(x.t.one_hot(4), (x.x[..., None] == np.arange(4)).astype(np.int32))


@step
def einsum(p: Program, x: Value) -> Value | None:
    if x.x.ndim != 2 or not x.x.size or x.kind in ("bool", "float16"):
        return None
    y = p.made(p.numbers(x.x.shape, x.kind))
    formula = p.random.choice(("ij,ij->i", "ij,ij->j", "ij,kj->ik", "ij,ij->ji"))
    with np.errstate(all="ignore"):
        return Value(Tensor.einsum(formula, x.t, y.t), np.einsum(formula, x.x, y.x).astype(x.kind), x.rough)


@step
def in_place(p: Program, x: Value) -> Value | None:
    if x.kind == "bool":
        return None
    t = x.t.detach()
    t += 1
    if p.random.random() < 0.5:
        t.realize()
    t *= 2
    with np.errstate(all="ignore"):
        return Value(t, (x.x + 1) * 2, x.rough)

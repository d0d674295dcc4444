"""The fuzz of the rewrites of the tensor graph: common subexpressions, and reductions hoisted out of loops.

    python -m tests.fuzz.rewrites --count 2000             cases 0 to 1999 on LLVM
    python -m tests.fuzz.rewrites --only 1234 --device PYTHON

A case is known by its number. It is a program of what these passes rewrite: operands that are expanded, repeated,
constant, padded, sliced, flipped or one-hot; sums, extremes and products over them; values that are written twice, in
two spellings; writes, random numbers and memory between them. NumPy computes the same. All numbers are so small that
every order of summation gives the same bits, in narrow floats too; integers wrap. So all results must be equal.

MIN_SAVED_STEPS is what `schedule/hoisting.py` has to spare before it rewrites: 1 here, because the tensors are small.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from unittest import mock

import numpy as np

from tinyexplore import Tensor, TinyJit, Variable
from tinyexplore.schedule import hoisting

Array = np.ndarray
MIN_SAVED_STEPS = 1
KINDS = ("float32", "float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "int16", "bool")
EXACT = {"bfloat16": 256, "float16": 2048, "float32": 1 << 24, "float64": 1 << 50}  # whole numbers up to this
SIDES = (1, 2, 3, 4, 5, 6, 8)
LONG_SIDES = (16, 33, 64)
MAX_ELEMENTS = 3000
CALLS = 4  # of a TinyJit, or with other values of a Variable


class Mismatch(AssertionError):
    """A result differs from NumPy's."""


@dataclass
class Value:
    """A tensor and NumPy's array of it. `kind`: its dtype; NumPy holds bfloat16 as float32."""

    t: Tensor
    x: Array
    kind: str


@dataclass
class Tried:
    """What the cases so far had in them."""

    cases: int = 0
    steps: Counter[str] = field(default_factory=Counter)


def stored(kind: str) -> str:
    return "float32" if kind == "bfloat16" else kind


class Case:
    """A program by its number, on one device."""

    def __init__(self, number: int, device: str, tried: Tried) -> None:
        self.random = Random(number)
        self.device = device
        self.tried = tried
        self.kind = self.random.choice(KINDS)
        self.lines: list[str] = []
        self.values: list[Value] = []
        self.sides: tuple[int, ...] = SIDES if self.random.random() < 0.7 else SIDES + LONG_SIDES

    # *** material ***

    def numbers(self, shape: tuple[int, ...]) -> Array:
        generator = np.random.default_rng(self.random.getrandbits(32))
        low, high = (0, 2) if self.kind == "bool" else (0, 4) if self.kind[0] == "u" else (-2, 3)
        return generator.integers(low, high, shape).astype(stored(self.kind))

    def tensor(self, x: Array) -> Tensor:
        made = Tensor(x.copy(), device=self.device)
        return made.cast("bfloat16").contiguous().realize() if self.kind == "bfloat16" else made

    def shape(self, rank: int | None = None) -> tuple[int, ...]:
        rank = self.random.randint(1, 3) if rank is None else rank
        while True:
            found = tuple(self.random.choice(self.sides) for _ in range(rank))
            if np.prod(found) <= MAX_ELEMENTS // 4:
                break
        if self.random.random() < 0.03:
            at = self.random.randrange(rank)
            found = (*found[:at], 0, *found[at + 1 :])
        return found

    def leaf(self, shape: tuple[int, ...] | None = None) -> Value:
        """Numbers in memory, or a tensor that is made of few numbers or of none."""
        shape = self.shape() if shape is None else shape
        rank = len(shape)
        what = self.random.choice(("memory", "memory", "expanded", "expanded", "constant", "count", "one-hot", "tiled"))
        if what == "expanded":
            thin = tuple(self.random.choice((1, size)) for size in shape)
            x = self.numbers(thin)
            return Value(self.tensor(x).expand(shape), np.broadcast_to(x, shape), self.kind)
        if what == "constant":
            number = 1 if self.kind == "bool" else self.random.choice((0, 1, 2, 3))
            x = np.full(shape, number, stored(self.kind))
            return Value(Tensor.full(shape, number, dtype=self.kind, device=self.device), x, self.kind)
        if what in ("count", "one-hot") and rank and shape[-1]:
            size = shape[-1]
            row = np.arange(size)
            t = Tensor.arange(size, device=self.device)
            if what == "one-hot":
                chosen = self.random.randrange(size)
                t, row = t == chosen, row == chosen
            else:
                t, row = t % 3, row % 3
            x = row.astype(stored(self.kind))
            return Value(t.cast(self.kind).expand(shape), np.broadcast_to(x, shape), self.kind)
        if what == "tiled" and rank and shape[0] % 2 == 0:
            x = self.numbers((shape[0] // 2, *shape[1:]))
            t = self.tensor(x)
            if self.random.random() < 0.5:
                return Value(t.repeat(2, *[1] * (rank - 1)), np.tile(x, (2, *[1] * (rank - 1))), self.kind)
            return Value(t.repeat_interleave(2, 0), x.repeat(2, 0), self.kind)
        x = self.numbers(shape)
        return Value(self.tensor(x), x, self.kind)

    def partner(self, x: Value) -> Value:
        """A value of the same dtype that broadcasts to the shape of `x`."""
        same = [one for one in self.values if one.x.shape == x.x.shape and one.kind == x.kind]
        if same and self.random.random() < 0.5:
            return self.random.choice(same)
        kept, self.kind = self.kind, x.kind
        found = self.leaf(tuple(self.random.choice((1, size)) if size else 0 for size in x.x.shape))
        self.kind = kept
        return found

    # *** what the program does ***

    def run(self) -> None:
        for _ in range(self.random.randint(1, 2)):
            self.values.append(self.leaf())
        for _ in range(self.random.randint(3, 9)):
            name = self.random.choice(NAMES)
            x = self.random.choice(self.values[-3:])
            state = self.random.getstate()
            found = STEPS[name](self, x)
            if found is not None and self.random.random() < 0.6:
                is_same = self.random.random() < 0.7  # one value in two expressions, or two that are much alike
                after = self.random.getstate()
                if is_same:
                    self.random.setstate(state)
                again = STEPS[name](self, respelled(self, x))
                if is_same:
                    self.random.setstate(after)
                if again is not None and again.x.shape == found.x.shape and again.kind == found.kind:
                    self.lines.append(f"  and {'the same' if is_same else 'another one'}")
                    self.values.append(self.bounded(again))
                    found = self.both(found, again)
            if found is None or found.x.size > MAX_ELEMENTS:
                continue
            self.tried.steps[name] += 1
            self.lines.append(f"{name} {x.x.shape} {x.kind} -> {found.x.shape} {found.kind}")
            self.values.append(self.bounded(found))
        results = self.values[-self.random.randint(1, 4) :]
        if self.random.random() < 0.7:
            results[0].t.realize(*[value.t for value in results[1:]])
        for value in results:
            self.compare(value.t, value.x)

    def both(self, a: Value, b: Value) -> Value:
        """One of two values, or something of both."""
        if a.kind == "bool" or not fits_in(a.kind, np.abs(a.x.astype(np.float64)) * 2):
            return self.random.choice((a, b))
        what = self.random.choice(("first", "sum", "extreme"))
        if what == "sum":
            return Value(a.t + b.t, a.x + b.x, a.kind)
        return Value(a.t.maximum(b.t), np.maximum(a.x, b.x), a.kind) if what == "extreme" else a

    def bounded(self, value: Value) -> Value:
        if value.kind == "bool" or not np.abs(value.x.astype(np.float64)).max(initial=0) > 4:
            return value
        if value.kind[0] == "u":
            return Value(value.t & 3, value.x & np.asarray(3, value.x.dtype), value.kind)
        return Value(value.t.clip(-3, 3), np.clip(value.x, -3, 3), value.kind)

    def compare(self, t: Tensor, x: Array) -> None:
        found = (t.cast("float32") if t.dtype.name == "bfloat16" else t).numpy()
        if found.shape != x.shape or found.dtype != x.dtype:
            raise Mismatch(f"{found.dtype} {found.shape}, not {x.dtype} {x.shape}\n{self.text()}")
        differ = found != x
        if differ.any():
            at = tuple(map(int, np.argwhere(differ)[0]))
            count = int(differ.sum())
            raise Mismatch(f"{count} of {x.size} differ, first at {at}: {found[at]}, not {x[at]}\n{self.text()}")

    def text(self) -> str:
        return "\n".join(self.lines)


def fits_in(kind: str, magnitudes: Array) -> bool:
    """Whether a float of `kind` holds all whole numbers up to `magnitudes`. Integers wrap, which is exact too."""
    return kind not in EXACT or bool(magnitudes.max(initial=0) <= EXACT[kind])


def sum_kind(kind: str) -> str:
    if kind in EXACT:
        return kind
    dtype = np.dtype(kind)
    return kind if dtype.itemsize == 8 else "uint32" if dtype.kind == "u" else "int32"


def respelled(case: Case, x: Value) -> Value:
    """The same elements by another way."""
    t, rank = x.t, x.x.ndim
    match case.random.choice(("same", "turned", "flipped", "flat", "padded", "sum of one", "added nothing")):
        case "turned" if rank > 1:
            t = t.transpose(0, -1).transpose(-1, 0)
        case "flipped" if rank:
            t = t.flip(0).flip(0)
        case "flat":
            t = t.reshape(-1).reshape(x.x.shape) if x.x.size else t
        case "padded" if rank:
            amounts = [(1, 2), *[(0, 0)] * (rank - 1)]
            t = t.pad(amounts)[1:-2]
        case "sum of one" if x.kind in EXACT:
            t = t.unsqueeze(0).sum(0)
        case "added nothing" if x.kind != "bool":
            t = t + 0
    return Value(t, x.x, x.kind)


Step = Callable[[Case, Value], "Value | None"]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    STEPS[function.__name__] = function
    return function


# *** views ***


@step
def expand(case: Case, x: Value) -> Value:
    at, count = case.random.randint(0, x.x.ndim), case.random.choice(case.sides)
    shape = (*x.x.shape[:at], count, *x.x.shape[at:])
    t, found = x.t.unsqueeze(at).expand(shape), np.broadcast_to(np.expand_dims(x.x, at), shape)
    if case.random.random() < 0.3:
        t, found = t.reshape(-1), found.reshape(-1)
    return Value(t, found, x.kind)


@step
def repeat(case: Case, x: Value) -> Value | None:
    if not x.x.ndim:
        return None
    counts = [case.random.choice((1, 2, 3)) for _ in x.x.shape]
    return Value(x.t.repeat(*counts), np.tile(x.x, counts), x.kind)


@step
def repeat_interleave(case: Case, x: Value) -> Value | None:
    if not x.x.ndim:
        return None
    axis = case.random.randrange(x.x.ndim)
    return Value(x.t.repeat_interleave(3, axis), x.x.repeat(3, axis), x.kind)


@step
def cut(case: Case, x: Value) -> Value:
    key = []
    for size in x.x.shape:
        start = case.random.randint(0, size // 2)
        key.append(slice(start, case.random.randint(start, size) if case.random.random() < 0.5 else None))
        if case.random.random() < 0.3:
            key[-1] = slice(None, None, case.random.choice((-1, 2, -2)))
    return Value(x.t[tuple(key)], x.x[tuple(key)], x.kind)


@step
def pad(case: Case, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size:
        return None
    amounts = [(case.random.randint(0, 2), case.random.randint(0, 2)) for _ in x.x.shape]
    if case.random.random() < 0.3:  # whole copies of a repeated axis
        amounts[0] = (x.x.shape[0], x.x.shape[0])
    number = 0 if x.kind == "bool" else case.random.choice((0, 0, 1))
    return Value(x.t.pad(amounts, value=number), np.pad(x.x, amounts, constant_values=number), x.kind)


@step
def permute(case: Case, x: Value) -> Value:
    order = case.random.sample(range(x.x.ndim), x.x.ndim)
    return Value(x.t.permute(*order) if order else x.t, x.x.transpose(order), x.kind)


@step
def reshape(case: Case, x: Value) -> Value | None:
    if not x.x.size:
        return None
    left = x.x.size
    shape: list[int] = []
    while left > 1 and len(shape) < 3:
        factor = case.random.choice([one for one in range(2, left + 1) if left % one == 0])
        shape.append(factor)
        left //= factor
    shape = [*shape, left] if left > 1 else shape
    return Value(x.t.reshape(tuple(shape)), x.x.reshape(shape), x.kind)


@step
def unfold(case: Case, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size:
        return None
    axis = case.random.randrange(x.x.ndim)
    size = case.random.randint(1, min(3, x.x.shape[axis]))
    gap = case.random.randint(1, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x.x, size, axis)
    return Value(x.t.unfold(axis, size, gap), windows[(slice(None),) * axis + (slice(None, None, gap),)], x.kind)


# *** arithmetic ***


@step
def arithmetic(case: Case, x: Value) -> Value | None:
    y = case.partner(x)
    a, b = (x, y) if case.random.random() < 0.5 else (y, x)
    if x.kind == "bool":
        return (
            Value(a.t & b.t, a.x & b.x, "bool") if case.random.random() < 0.5 else Value(a.t | b.t, a.x | b.x, "bool")
        )
    name = case.random.choice(("add", "mul", "mul", "mul", "maximum", "minimum", "sub", "where"))
    if name == "where":
        return Value((a.t > b.t).where(a.t, 1), np.where(a.x > b.x, a.x, np.ones((), a.x.dtype)), x.kind)
    if name in ("maximum", "minimum"):
        return Value(getattr(a.t, name)(b.t), getattr(np, name)(a.x, b.x), x.kind)
    tensors: dict[str, Callable[[Any, Any], Any]] = {
        "add": lambda one, other: one + other,
        "mul": lambda one, other: one * other,
        "sub": lambda one, other: one - other,
    }
    return Value(tensors[name](a.t, b.t), tensors[name](a.x, b.x), x.kind)


@step
def halved(case: Case, x: Value) -> Value | None:
    """A quotient by what may be the same along an axis."""
    if x.kind not in EXACT:
        return None
    by = np.asarray(2, x.x.dtype) ** case.random.randint(0, 1)
    shape = tuple(case.random.choice((1, size)) for size in x.x.shape)
    divisor = Tensor.full(shape, float(by), dtype=x.kind, device=case.device)
    return Value((x.t * 2) / divisor, ((x.x * 2) / by).astype(x.x.dtype), x.kind)


# *** reductions ***


def _axes(case: Case, x: Value) -> tuple[int, ...]:
    return tuple(axis for axis in range(x.x.ndim) if case.random.random() < 0.6)


def reduced(case: Case, x: Value, name: str, axes: tuple[int, ...], keep: bool) -> Value | None:
    if name in ("max", "min") and not x.x.size:
        return None
    if name == "any":
        return Value(x.t.any(axes, keepdim=keep), np.asarray(x.x.any(axes, keepdims=keep)), "bool")
    if name != "sum":
        return Value(getattr(x.t, name)(axes, keepdim=keep), getattr(x.x, name)(axes, keepdims=keep), x.kind)
    if not fits_in(x.kind, np.abs(x.x.astype(np.float64)).sum(axes)):
        return None
    kind = sum_kind(x.kind)
    found = np.asarray(x.x.astype(stored(kind)).sum(axes, keepdims=keep, dtype=stored(kind)))
    return Value(x.t.sum(axes, keepdim=keep), found, kind)


@step
def reduction(case: Case, x: Value) -> Value | None:
    name = case.random.choice(("sum", "sum", "sum", "max", "min", "any"))
    return reduced(case, x, name, _axes(case, x), case.random.random() < 0.3)


@step
def weighted(case: Case, x: Value) -> Value | None:
    """The sum, or the extreme of the sum, of several factors that change along some of the axes."""
    if x.kind == "bool":
        return None
    shape = (*x.x.shape, case.random.choice(case.sides))
    if np.prod(shape) > MAX_ELEMENTS:
        return None
    t, found = x.t.unsqueeze(-1).expand(shape), np.broadcast_to(x.x[..., None], shape)
    name = case.random.choice(("sum", "sum", "max", "min"))
    for _ in range(case.random.randint(1, 3)):
        y = case.partner(Value(t, found, x.kind))
        if name == "sum":
            t, found = t * y.t, found * y.x
        else:
            t, found = t + y.t, found + y.x
        if not fits_in(x.kind, np.abs(found.astype(np.float64))):
            return None
    return reduced(case, Value(t, found, x.kind), name, _axes(case, Value(t, found, x.kind)), False)


@step
def product(case: Case, x: Value) -> Value | None:
    if x.x.ndim < 2 or x.kind == "bool":
        return None
    kept, case.kind = case.kind, x.kind
    y = case.leaf((x.x.shape[-1], case.random.choice(case.sides)))
    case.kind = kept
    magnitudes = np.abs(x.x.astype(np.float64)) @ np.abs(y.x.astype(np.float64))
    if not fits_in(x.kind, magnitudes):
        return None
    return Value(x.t @ y.t, (x.x @ y.x).astype(stored(x.kind)), x.kind)


@step
def einsum(case: Case, x: Value) -> Value | None:
    if x.x.ndim != 2 or x.kind == "bool":
        return None
    formula = case.random.choice(("ij,k->ij", "ij,kj->ik", "ij,jk->k", "ij,ik->j", "ij,kl->il", "ij,ij->"))
    sizes = {"i": x.x.shape[0], "j": x.x.shape[1], "k": case.random.choice(case.sides), "l": 3}
    kept, case.kind = case.kind, x.kind
    y = case.leaf(tuple(sizes[name] for name in formula.partition("->")[0].partition(",")[2]))
    case.kind = kept
    wide = np.einsum(formula, np.abs(x.x.astype(np.float64)), np.abs(y.x.astype(np.float64)))
    partial = np.abs(x.x.astype(np.float64)).sum() * max(1.0, float(np.abs(y.x.astype(np.float64)).sum()))
    if not fits_in(x.kind, np.asarray(max(float(wide.max(initial=0)), partial))):
        return None
    found = np.asarray(np.einsum(formula, x.x, y.x)).astype(stored(x.kind))
    return Value(Tensor.einsum(formula, x.t, y.t), found, x.kind)


@step
def convolution(case: Case, x: Value) -> Value | None:
    if x.x.ndim != 2 or x.kind not in ("float32", "float64", "bfloat16", "float16") or min(x.x.shape) < 2:
        return None
    kept, case.kind = case.kind, x.kind
    y = case.leaf((2, 1, 2, 2))
    case.kind = kept
    windows = np.lib.stride_tricks.sliding_window_view(x.x, (2, 2))
    found = np.einsum("ijkl,okl->oij", windows, y.x[:, 0])[None]
    return Value(x.t.reshape(1, 1, *x.x.shape).conv2d(y.t), found.astype(stored(x.kind)), x.kind)


@step
def scan(case: Case, x: Value) -> Value | None:
    if not x.x.ndim or x.kind == "bool" or not fits_in(x.kind, np.abs(x.x.astype(np.float64)).sum(keepdims=True)):
        return None
    axis, kind = case.random.randrange(x.x.ndim), sum_kind(x.kind)
    return Value(x.t.cumsum(axis), np.cumsum(x.x, axis, dtype=stored(kind)), kind)


@step
def order(case: Case, x: Value) -> Value | None:
    if not x.x.ndim or not x.x.size or x.kind in ("float16", "bfloat16"):
        return None
    axis = case.random.randrange(x.x.ndim)
    if case.random.random() < 0.5:
        return Value(x.t.argmax(axis), np.asarray(x.x.argmax(axis)).astype(np.int32), "int32")
    return Value(x.t.argsort(axis), x.x.argsort(axis, kind="stable").astype(np.int32), "int32")


# *** memory and state ***


@step
def memory(case: Case, x: Value) -> Value:
    name = case.random.choice(("contiguous", "realize", "detach", "clone"))
    return Value(getattr(x.t, name)(), x.x, x.kind)


@step
def random_numbers(case: Case, x: Value) -> Value | None:
    """Two draws are two values, however alike they are written; one draw is one."""
    if x.x.size < 8:
        return None
    a, b = (Tensor.rand(*x.x.shape, device=case.device) for _ in range(2))
    if case.random.random() < 0.5:
        a.realize()
    otherwise = True if x.kind == "bool" else 1
    differ = (a != b).any().expand(x.x.shape)
    return Value((differ & (a == respelled(case, Value(a, x.x, "float32")).t)).where(x.t, otherwise), x.x, x.kind)


@step
def write(case: Case, x: Value) -> Value | None:
    """Sums before and after a part is stored."""
    if not x.x.ndim or not x.x.size:
        return None
    t, changed = x.t.detach(), x.x.copy()
    if case.random.random() < 0.5:
        t = t.clone()
    before = reduced(case, Value(t, x.x, x.kind), "sum", (0,), False)
    if before is not None:
        case.values.append(case.bounded(before))
        if case.random.random() < 0.5:
            case.values[-1].t.realize()
    kept, case.kind = case.kind, x.kind
    if case.random.random() < 0.3:
        value = case.leaf(x.x.shape)
        t.assign(value.t)
        changed[...] = value.x
    else:
        key = (slice(None, None, case.random.choice((1, 2, -1))),)
        value = case.leaf(changed[key].shape)
        t[key] = value.t
        changed[key] = value.x
    case.kind = kept
    return Value(t, changed, x.kind)


# *** chains that are done again: for gradients, replays, and sizes that are Variables ***


def chain(case: Case, x: Value, names: tuple[str, ...]) -> Callable[[Tensor, Array], Value]:
    """Some steps as a function: each call does them, with the same arguments, on another tensor like `x`."""
    chosen = [case.random.choice(names) for _ in range(case.random.randint(2, 4))]
    seed = case.random.getrandbits(32)

    def apply(t: Tensor, numbers: Array) -> Value:
        inner = Case(seed, case.device, case.tried)
        inner.kind, inner.sides = x.kind, SIDES[:4]
        found = Value(t, numbers, x.kind)
        for name in chosen:
            after = STEPS[name](inner, found)
            if after is not None and after.x.size <= MAX_ELEMENTS and after.kind == found.kind:
                found = after
        return found

    apply.__doc__ = ", ".join(chosen)
    return apply


LINEAR = ("expand", "repeat", "repeat_interleave", "cut", "pad", "permute", "reshape", "unfold")


@step
def gradient(case: Case, x: Value) -> Value | None:
    """Of a quadratic function, for which central differences are exact."""
    if not 0 < x.x.size <= 24 or not x.x.ndim:
        return None
    numbers = np.random.default_rng(case.random.getrandbits(32)).integers(-2, 3, x.x.shape).astype("float64")
    kept, case.kind = case.kind, "float64"
    first = chain(case, Value(x.t, numbers, "float64"), LINEAR)
    weights = case.leaf(first(Tensor(numbers, device=case.device), numbers).x.shape)
    case.kind = kept
    squared, axes = case.random.random() < 0.5, case.random.choice(((), (0,), None))

    def loss(t: Any, value: Any) -> Any:
        """Of tensors and of arrays."""
        y = value * t
        if axes is not None and y.ndim:
            y = y - y.sum(axes)
        return (y * value if squared else y).sum()

    t = Tensor(numbers, device=case.device, requires_grad=True)
    made = first(t, numbers)
    if made.t is t or not made.t.requires_grad:
        return None
    loss(weights.t, made.t).backward()
    dummy = Tensor(numbers, device=case.device)
    expected = np.zeros(x.x.shape)
    for place in np.ndindex(x.x.shape):
        ends = []
        for change in (1, -1):
            moved = numbers.copy()
            moved[place] += change
            ends.append(float(loss(weights.x, first(dummy, moved).x)))
        expected[place] = (ends[0] - ends[1]) / 2
    case.lines.append(f"(gradient of {first.__doc__})")
    if t.grad is None:
        if expected.any():
            raise Mismatch(f"no gradient, not {expected.tolist()}\n{case.text()}")
        return None
    case.compare(t.grad, expected)
    return Value(t.grad, expected, "float64")


REPLAYED = (*LINEAR, "reduction", "weighted", "arithmetic", "product", "memory")


@step
def replay(case: Case, x: Value) -> Value | None:
    """A TinyJit that computes a chain twice, called with other numbers each time."""
    if not x.x.size or x.kind in EXACT and not fits_in(x.kind, np.asarray(x.x.size * 64)):
        return None
    if x.kind not in ("float32", "float64", "int32", "int64"):
        return None
    apply = chain(case, x, REPLAYED)
    if not apply(x.t, x.x).x.size:
        return None  # no kernel would run
    case.lines.append(f"(replay of {apply.__doc__})")
    template = x.x

    def function(t: Tensor) -> list[Tensor]:
        found, again = (apply(one, template).t.contiguous() for one in (t, t.flip(0).flip(0) if t.ndim else t))
        total = (found + again).contiguous()
        found.realize(again, total)
        return [found, again, total]

    case.tried.steps["replay"] += 1
    jitted = TinyJit(function)
    for _ in range(CALLS):
        kept, case.kind = case.kind, x.kind
        numbers = case.numbers(x.x.shape)
        t = case.tensor(numbers).realize()
        case.kind = kept
        expected = apply(t, numbers).x
        with np.errstate(all="ignore"):
            wanted = (expected, expected, expected + expected)
        for result, one in zip(jitted(t), wanted):
            case.compare(result, np.asarray(one))
    return None


@step
def symbolic(case: Case, x: Value) -> Value | None:
    """Parts whose length is a Variable, expanded, multiplied by constants and summed, in two spellings."""
    if not x.x.ndim or x.x.shape[0] < 2 or not x.x.size or x.kind in ("bool", "bfloat16", "float16"):
        return None
    size = x.x.shape[0]
    shift, factor = case.random.randint(0, 1), case.random.choice((1, 2))
    rows = case.random.choice((2, 3, 5))
    case.tried.steps["symbolic"] += 1
    case.lines.append(f"(symbolic {x.x.shape} {x.kind})")
    for length in case.random.sample(range(1, size + 1), min(CALLS, size)):
        n = Variable(f"n{case.random.randrange(3)}", 1, size).bind(length)
        part, numbers = x.t[:n], x.x[:length]
        if shift:
            part, numbers = part.unsqueeze(0), numbers[None]
            part, numbers = part.expand(rows, *part.shape[1:]), np.broadcast_to(numbers, (rows, *numbers.shape[1:]))
        kind = sum_kind(x.kind)
        for axis in range(2):
            if axis >= numbers.ndim or not fits_in(x.kind, np.abs(numbers.astype(np.float64)).sum(keepdims=True) * 2):
                continue
            expected = (numbers * np.asarray(factor, x.x.dtype)).sum(axis, dtype=stored(kind))
            found = (part * factor).sum(axis)
            again = (factor * part.flip(axis)).sum(axis)
            if axis != shift:  # the other axis is as long as the Variable says
                found, again, expected = found.sum(0), again.sum(0), expected.sum(0, dtype=stored(kind))
            found.realize(again)
            case.compare(found, np.asarray(expected))
            case.compare(again, np.asarray(expected))
        shape: Any = (n,)
        ones = Tensor.full(shape, 3, dtype=kind, device=case.device)
        case.compare(ones.sum(), np.asarray(np.full(length, 3, stored(kind)).sum(dtype=stored(kind))))
    return None


NAMES = tuple(
    name for name in STEPS for _ in range(3 if name in ("reduction", "weighted", "expand", "arithmetic") else 1)
)


def run_case(number: int, device: str, tried: Tried) -> None:
    """One case; raises Mismatch where a result differs from NumPy's."""
    case = Case(number, device, tried)
    try:
        with np.errstate(all="ignore"), mock.patch.object(hoisting, "MIN_SAVED_STEPS", MIN_SAVED_STEPS):
            case.run()
    except Mismatch as error:
        raise Mismatch(f"case {number} on {device}: {error}") from None
    except Exception as error:
        raise Mismatch(f"case {number} on {device}: {type(error).__name__}: {error}\n{case.text()}") from error
    tried.cases += 1


def run_cases(numbers: Iterable[int], device: str) -> Tried:
    tried = Tried()
    for number in numbers:
        run_case(number, device, tried)
    return tried


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="one case")
    parser.add_argument("--device", default="LLVM")
    args = parser.parse_args()
    numbers = range(args.first, args.first + args.count) if args.only is None else (args.only,)
    tried, failures = Tried(), 0
    for number in numbers:
        try:
            run_case(number, args.device, tried)
        except Mismatch as error:
            failures += 1
            print(f"--- {str(error)[:1500]}", flush=True)
        if (number + 1) % 100 == 0:
            print(f"{number + 1 - args.first} cases, {failures} differ", flush=True)
    print(f"{args.device}: {tried.cases} cases agree, {failures} differ; steps: {dict(tried.steps)}")
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()

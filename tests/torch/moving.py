"""Rows for movements, indexing, scattering, selecting, and creation functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from hypothesis import strategies as st

from tests.torch.drawing import Draw, Input
from tests.torch.rows import row
from tinyexplore import Tensor

# *** movements ***


def _one(d: Draw, least: int = 0, **kwargs: Any) -> Input:
    return d.any(d.shape(least, **kwargs))


def _factors(d: Draw, size: int) -> tuple[int, ...]:
    if size == 0:
        return (0,)
    sizes = []
    for _ in range(d.int(0, 2)):
        sizes.append(d.choice(*(n for n in range(1, size + 1) if size % n == 0)))
        size //= sizes[-1]
    return (*sizes, size)


def _reshaped(d: Draw) -> Any:
    x = _one(d)
    sizes = list(_factors(d, math.prod(x.shape)))
    if d.flag() and 0 not in sizes:
        sizes[d.int(0, len(sizes) - 1)] = -1
    return x, tuple(sizes)


row("reshape view", _reshaped, lambda x, s: (x.reshape(s), x.view(*s)))
row("permute", lambda d: (x := _one(d), d.order(len(x.shape))), lambda x, o: x.permute(o))
row("transpose", lambda d: (x := _one(d, 1), d.axis(x), d.axis(x)), lambda x, a, b: x.transpose(a, b))
row("T", lambda d: _one(d, 2, most=2), lambda x: x.T)
row(
    "flatten",
    lambda d: (x := _one(d, 1, most=4), a := d.int(0, len(x.shape) - 1), d.int(a, len(x.shape) - 1)),
    lambda x, a, b: x.flatten(a, b),
)
row(
    "unflatten",
    lambda d: (x := _one(d, 1, empty=False), a := d.axis(x), _factors(d, x.shape[a])),
    lambda x, a, s: x.unflatten(a, s),
)
row("squeeze", lambda d: (x := _one(d, 1, side=2), d.axis(x)), lambda x, a: (x.squeeze(a), x.squeeze()))
row("unsqueeze", lambda d: (x := _one(d), d.int(-len(x.shape) - 1, len(x.shape))), lambda x, a: x.unsqueeze(a))
row("expand", lambda d: (d.any(d.broadcast(s := d.shape())), s), lambda x, s: x.expand(s))
row("expand", lambda d: (x := _one(d), (d.int(1, 3), *(-1 for _ in x.shape))), lambda x, s: x.expand(*s))
row(
    "repeat",
    lambda d: (x := _one(d), tuple(d.int(0, 2) for _ in range(len(x.shape) + d.int(0, 1)))),
    lambda x, n: x.repeat(n),
)
row(
    "repeat_interleave",
    lambda d: (x := _one(d, 1), d.int(1, 3), d.choice(None, d.axis(x))),
    lambda x, n, a: x.repeat_interleave(n, a),
)
row(
    "flip",
    lambda d: (x := _one(d, 1), d.axes(x)),
    lambda x, a: x.flip(tuple(range(x.ndim)) if a is None else a),
    lambda x, a: torch.flip(x, tuple(range(x.ndim)) if a is None else (a,) if isinstance(a, int) else a),
)
row("roll", lambda d: (x := _one(d, 1), d.int(-5, 5), d.choice(None, d.axis(x))), lambda x, n, a: x.roll(n, a))
row("roll", lambda d: (_one(d, 2), (d.int(-5, 5), d.int(-5, 5)), (0, -1)), lambda x, n, a: x.roll(n, a))
row(
    "shrink",
    lambda d: (x := _one(d), tuple(tuple(sorted((d.int(0, n), d.int(0, n)))) for n in x.shape)),
    lambda x, b: x.shrink(b),
    lambda x, b: x[tuple(slice(*one) for one in b)],
)


def _padded(d: Draw) -> Any:
    """Channels and one to three axes; what is mirrored or goes round must be there."""
    mode = d.choice("constant", "reflect", "replicate", "circular")
    places = d.int(1, 3)
    shape = (d.int(1, 2), d.int(1, 2), *(d.int(3, 4) for _ in range(places)))
    low = -1 if mode == "constant" else 0
    return (
        d.floats(shape),
        tuple(d.int(low, 2) for _ in range(2 * places)),
        mode,
        d.choice(0.0, -1.5) if mode == "constant" else None,
    )


row("pad", _padded, lambda x, a, m, v: x.pad(a, mode=m, **({} if v is None else {"value": v})), F.pad)
row(
    "pad pad2d",
    lambda d: (d.any((d.int(1, 2), d.int(1, 3), d.int(1, 3))), tuple(d.int(0, 2) for _ in range(4)), d.choice(0, 1)),
    lambda x, a, v: (x.pad2d(a, v), x.pad((None, (a[2], a[3]), (a[0], a[1])), value=v)),
    lambda x, a, v: (F.pad(x, a, value=v),) * 2,
)
row(
    "unfold",
    lambda d: (x := d.any(d.shape(1, empty=False, side=6)), a := d.axis(x), d.int(1, x.shape[a]), d.int(1, 3)),
    lambda x, a, n, s: x.unfold(a, n, s),
)
row("tril triu", lambda d: (_one(d, 2), d.int(-3, 3)), lambda x, k: (x.tril(k), x.triu(k)))
row(
    "diagonal",
    lambda d: (
        x := d.any(d.shape(2, 3, empty=False)),
        d.order(len(x.shape)),
        d.int(-1, 1) if min(x.shape) > 1 else 0,
    ),
    lambda x, o, k: x.diagonal(k, o[0], o[1]),
    lambda x, o, k: torch.diagonal(x, k, o[0], o[1]),
)
row("diag", lambda d: _one(d, 1, most=1), lambda x: x.diag())
row(
    "cat",
    lambda d: (x := d.any(d.shape(1)), d.any(x.shape), d.axis(x)),
    lambda x, y, a: x.cat(y, x, dim=a),
    lambda x, y, a: torch.cat((x, y, x), a),
    signs=True,
)
row(
    "stack",
    lambda d: (x := _one(d), d.any(x.shape), d.int(-len(x.shape) - 1, len(x.shape))),
    lambda x, y, a: x.stack(y, dim=a),
    lambda x, y, a: torch.stack((x, y), a),
    signs=True,
)
row(
    "split chunk",
    lambda d: (x := d.any(d.shape(1, side=6, empty=False)), d.axis(x), d.int(1, 4)),
    lambda x, a, n: (*x.split(n, a), *x.chunk(n, a)),
)
row("split", lambda d: (d.floats((n := d.int(0, 3)) and (n + 2, 2) or (2, 2)), [n, 2]), lambda x, s: x.split(s))
row(
    "meshgrid",
    lambda d: (*(d.floats((d.int(1, 3),), dtype="float32") for _ in range(d.int(1, 3))), d.choice("ij", "xy")),
    lambda x, *more: x.meshgrid(*more[:-1], indexing=more[-1]),
    lambda *xs: torch.meshgrid(*xs[:-1], indexing=xs[-1]),
)
row("__len__", lambda d: _one(d, 1), lambda x: len(x), lambda x: len(x))
row(
    "shape ndim numel size dtype element_size nbytes is_floating_point device",
    lambda d: _one(d, 1),
    lambda x: (
        x.shape,
        x.ndim,
        x.numel(),
        tuple(x.size()),
        x.size(0),
        x.element_size(),
        x.nbytes(),
        x.is_floating_point(),
    ),
    lambda x: (x.shape, x.ndim, x.numel(), x.size(), x.size(0), x.element_size(), x.nbytes, x.is_floating_point()),
)
row("item __bool__", lambda d: d.ints((), dtype="int32"), lambda x: (x.item(), bool(x)))


# *** indexing ***


def _places(d: Draw, size: int, shape: Any, negative: bool = True) -> Input:
    return d.ints(shape, -size if negative else 0, size - 1, ("int64", "int32"))


def _key(d: Draw, shape: Any, tensors: bool = True) -> tuple[Any, ...]:
    """An index as PyTorch has them: steps are positive, lists broadcast; tensors stand for themselves."""
    items: list[Any] = []
    common = d.shape(0, 2, 3, empty=False)
    is_masked = False
    for size in shape:
        kind = d.int(0, 6)
        if kind <= 2 or size == 0:
            start, stop = (d.choice(None, d.int(-size - 1, size + 1)) for _ in range(2))  # noqa: B023
            items.append(slice(start, stop, d.choice(None, 1, 2)))
        elif kind == 3:
            items.append(d.int(-size, size - 1))
        elif kind == 4 and tensors:
            items.append(_places(d, size, d.broadcast(common)))
        elif kind == 5 and not is_masked and tensors:
            is_masked = True
            items.append(d.bools((size,))) if not any(isinstance(one, Input) for one in items) else items.append(
                slice(None)
            )
        else:
            items.append(slice(None))
        if d.int(0, 7) == 0:
            items.append(None)
    if sum(isinstance(one, Input) for one in items) > 1:  # a mask and places broadcast only by chance
        items = [slice(None) if isinstance(one, Input) and one.dtype == "bool" else one for one in items]
    if items and d.int(0, 4) == 0:
        cut = d.int(0, len(items))
        items = (
            [*items[:cut], ...]
            if all(one == slice(None) for one in items[cut:] if not isinstance(one, Input))
            and not any(isinstance(one, Input) or one is None for one in items[cut:])
            else items
        )
    return tuple(items)


def _indexed(d: Draw) -> Any:
    x = d.any(d.shape(1, 4, empty=False))
    return x, *_key(d, x.shape)


row("__getitem__", _indexed, lambda x, *key: x[key])
row(
    "__getitem__", lambda d: (d.floats(s := d.shape(1, empty=False)), d.bools(s[: d.int(1, len(s))])), lambda x, m: x[m]
)
row(
    "__setitem__",
    lambda d: (x := d.any(d.shape(1, 3, empty=False)), *_key(d, x.shape, tensors=False)),
    lambda x, *key: _written(x, key, 3 if x.dtype is not torch.bool else True),
    gradient=False,
)


def _written(x: Any, key: Any, value: Any) -> Any:
    z = x.detach().clone()
    z[key] = value
    return z


def _write_one_axis(d: Draw) -> Any:
    """Rows at places that all differ: where one is named twice, PyTorch leaves open which stays."""
    x = d.floats(d.shape(1, 3, empty=False), taped=False)
    order = d.draw(st.permutations(range(x.shape[0])))
    places = np.asarray(order[: d.int(1, x.shape[0])])
    values = d.floats((len(places), *x.shape[1:]), dtype=x.dtype, taped=False)
    return x, Input(places, "int64"), values


row("__setitem__", _write_one_axis, _written, gradient=False)
row(
    "__setitem__",
    lambda d: (x := d.floats(d.shape(1, 3, empty=False), taped=False), d.bools(x.shape), 2.5),
    _written,
    gradient=False,
)


def _gathered(d: Draw) -> Any:
    x = d.any(d.shape(1, 3, empty=False))
    axis = d.axis(x)
    shape = [d.int(1, n) for n in x.shape]
    shape[axis] = d.int(1, 4)
    return x, axis, _places(d, x.shape[axis], tuple(shape), negative=False)


row("gather", _gathered, lambda x, a, i: x.gather(a, i), lambda x, a, i: torch.gather(x, a, i.long()))


def _scattered(d: Draw, exact: bool = True) -> Any:
    """`exact`: without a part of the source that no index names (PyTorch has no gradient then)."""
    kind = d.choice("float32", "float64", "int32")
    x = (
        d.floats(d.shape(1, 3, empty=False), 0.5, 2, kind)
        if kind != "int32"
        else d.ints(d.shape(1, 3, empty=False), dtype=kind)
    )
    axis = d.axis(x)
    shape = [d.int(1, n) for n in x.shape]
    source = shape if exact else [d.int(n, n + 1) for n in shape]
    make: Any = d.floats if kind != "int32" else d.ints
    src = d.floats(tuple(source), 0.6, 2.1, kind) if make == d.floats else d.ints(tuple(source), dtype=kind)
    return x, axis, _places(d, x.shape[axis], tuple(shape), negative=False), src


row(
    "scatter",
    _scattered,
    lambda x, a, i, s: x.scatter(a, i, s, reduce="add"),
    lambda x, a, i, s: torch.scatter_add(x, a, i.long(), s),
    loose=2,
)
row(
    "scatter",
    lambda d: _scattered(d, exact=False),
    lambda x, a, i, s: x.scatter(a, i, s, reduce="multiply"),
    lambda x, a, i, s: torch.scatter(x, a, i.long(), s, reduce="multiply"),
    gradient=False,
    loose=2,
)
row(
    "scatter",
    lambda d: (d.floats(d.shape(1, 2, empty=False)), 2.0),
    lambda x, v: x.scatter(0, _line(x), v),
    lambda x, v: torch.scatter(x, 0, _line(x), v),
)


def _line(x: Any) -> Any:
    """Different places for every column: 0, 1, … along the first axis."""
    size = x.shape[0]
    if isinstance(x, torch.Tensor):
        return torch.arange(size).reshape(-1, *(1,) * (x.ndim - 1)).expand(x.shape).flip(0)
    return Tensor.arange(size, device=x.device).reshape(-1, *(1,) * (x.ndim - 1)).expand(x.shape).flip(0)


row(
    "scatter",
    lambda d: (x := d.floats(d.shape(1, 2, empty=False), dtype="float32"), d.floats(x.shape, dtype="float32")),
    lambda x, s: x.scatter(0, _line(x), s),
    lambda x, s: torch.scatter(x, 0, _line(x), s),
    signs=True,
)
for _name in ("sum", "prod", "mean", "amax", "amin"):
    row(
        "scatter_reduce",
        lambda d, n=_name: (*_scattered(d), n, d.flag()),
        lambda x, a, i, s, r, k: x.scatter_reduce(a, i, s, r, include_self=k),
        lambda x, a, i, s, r, k: torch.scatter_reduce(
            x, a, i.long(), s[tuple(slice(n) for n in i.shape)], r, include_self=k
        ),
        loose=4,
    )
row(
    "masked_select",
    lambda d: (d.floats(s := d.shape()), d.bools(d.broadcast(s))),
    lambda x, m: x.masked_select(m),
    torch.masked_select,
)
row("nonzero", lambda d: d.ints(d.shape(1), -1, 1), lambda x: x.nonzero(), counts=True)
row(
    "one_hot",
    lambda d: (d.ints(d.shape(), 0, 3, "int64"), d.int(4, 6)),
    lambda x, n: x.one_hot(n),
    F.one_hot,
    counts=True,
)


# *** made from nothing ***


row(
    "arange",
    lambda d: (d.int(-5, 5), d.int(-5, 9), d.choice(1, 2, 3)),
    lambda a, b, s: Tensor.arange(a, b, s) if a <= b else (),
    lambda a, b, s: torch.arange(a, b, s) if a <= b else (),
    counts=True,
)
row(
    "arange",
    lambda d: (d.choice(-2.5, 0.0), d.choice(1.0, 3.25), d.choice(0.5, 0.75)),
    lambda a, b, s: Tensor.arange(a, b, s),
    torch.arange,
)
row(
    "linspace",
    lambda d: (d.choice(-2.5, 0, 3), d.choice(1.0, 9), d.int(0, 7)),
    lambda a, b, n: Tensor.linspace(a, b, n),
    torch.linspace,
)
row("eye", lambda d: (d.int(0, 4), d.int(0, 4)), lambda n, m: Tensor.eye(n, m), torch.eye)
row(
    "full zeros ones",
    lambda d: (d.shape(), d.choice(2.5, 1, True)),
    lambda s, v: (Tensor.full(s, v), Tensor.zeros(s), Tensor.ones(s)),
    lambda s, v: (torch.full(s, v), torch.zeros(s), torch.ones(s)),
    counts=True,
)
row(
    "full_like zeros_like ones_like",
    lambda d: _one(d),
    lambda x: (x.full_like(1), x.zeros_like(), x.ones_like()),
    lambda x: (torch.full_like(x, 1), torch.zeros_like(x), torch.ones_like(x)),
)
row(
    "empty rand_like randn_like rand randn",
    lambda d: _one(d),
    lambda x: _shapes_of(x, Tensor),
    lambda x: _shapes_of(x, torch),
)


def _shapes_of(x: Any, library: Any) -> Any:
    """What only the shape and dtype of can be compared."""
    shape = tuple(x.shape)
    made = [library.empty(shape), library.rand(shape), library.randn(shape)]
    return [(tuple(one.shape), str(one.dtype).rpartition(".")[2].replace("float32", "float")) for one in made]

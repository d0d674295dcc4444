"""Rows for arguments and dtypes that the other rows leave out, and for sizes at which loops are vectorized."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.torch.compare import TORCH_DTYPES
from tests.torch.drawing import FLOATS, INTS, WIDE, Draw, Input, einsum_of
from tests.torch.rows import row
from tinyexplore import Tensor

EACH = {"scaled": False}
UNSIGNED = ("uint16", "uint32", "uint64")

# *** element by element ***

row(
    "add sub mul div maximum minimum pow",
    lambda d: d.pair(d.floats, mixed=False, low=0.5, dtype=WIDE),
    lambda x, y: (
        *(x.add(y, reverse=True), x.sub(y, reverse=True), x.mul(y, reverse=True)),
        *(x.div(y, reverse=True), x.pow(y, reverse=True)),
    ),
    lambda x, y: (y + x, y - x, y * x, y / x, y**x),
    loose=4,
    **EACH,
)
row(
    "bitwise_and bitwise_or xor mod lshift rshift",
    lambda d: (d.ints(s := d.shape(), 1, 6, k := d.choice(*INTS)), d.ints(s, 1, 6, k)),
    lambda x, y: (
        *(x.bitwise_and(y, reverse=True), x.bitwise_or(y, reverse=True), x.xor(y, reverse=True)),
        *(x.mod(y, reverse=True), x.lshift(y, reverse=True), x.rshift(y, reverse=True), x.idiv(y, reverse=True)),
    ),
    lambda x, y: (y & x, y | x, y ^ x, y % x, y << x, y >> x, y // x),
)
row(
    "add mul sub maximum minimum __eq__ __lt__ __floordiv__ __mod__",
    lambda d: (
        d.ints(s := d.shape(1), extreme=True, low=0, dtype=(k := d.choice(*UNSIGNED))),
        d.ints(d.broadcast(s, 1), extreme=True, low=1, dtype=k),
    ),
    lambda x, y: (*_wrapped(x, y), *(x // y.maximum(1), x % y.maximum(1))),
    lambda x, y: _in_numpy(x, y, lambda a, b: (*_wrapped(a, b), a // np.maximum(b, 1), a % np.maximum(b, 1))),
)


def _wrapped(x: Any, y: Any) -> Any:
    larger = x.maximum(y) if isinstance(x, Tensor) else np.maximum(x, y)
    return x + y, x * y, x - y, x == y, x < y, larger


def _in_numpy(x: Any, y: Any, function: Any) -> Any:
    with np.errstate(all="ignore"):
        return tuple(torch.from_numpy(np.array(one)) for one in function(x.numpy(), y.numpy()))


row(
    "cast",
    lambda d: (d.ints(extreme=True, low=0, dtype=(*UNSIGNED, *INTS)), d.choice(*UNSIGNED, *INTS, *FLOATS, "bool")),
    lambda x, to: x.cast(to),
    lambda x, to: x.to(TORCH_DTYPES[to]),
    **EACH,
)
row(
    "where",
    lambda d: (d.bools(), d.choice(2, 0.5, True), d.choice(3, -1.5, False)),
    lambda c, x, y: c.where(x, y),
    torch.where,
    counts=True,
)
row(
    "where",
    lambda d: (d.bools(s := d.shape(1)), d.any(d.broadcast(s, 1)), d.choice(3, 0)),
    lambda c, x, y: c.where(x, y) if x.dtype.name != "bool" else c.where(x, y).bool(),
    lambda c, x, y: torch.where(c, x, y) if x.dtype is not torch.bool else torch.where(c, x, y).bool(),
)
row(
    "masked_fill",
    lambda d: (x := d.floats(dtype=WIDE), d.bools(d.broadcast(x.shape)), d.floats((), dtype=x.dtype)),
    lambda x, m, v: x.masked_fill(m, v),
)
row("masked_fill", lambda d: (x := d.ints(), d.bools(d.broadcast(x.shape)), 5), lambda x, m, v: x.masked_fill(m, v))
row(
    "clip",
    lambda d: (d.any(special=True), d.choice((1, None), (None, 1), (2, -2), (0, 0))),
    lambda x, b: x.clip(*b) if x.dtype.name != "bool" else x,
    lambda x, b: torch.clamp(x, *b) if x.dtype is not torch.bool else x,
    **EACH,
)
row(
    "clip",
    lambda d: (
        d.floats(s := d.shape(), dtype=(k := d.choice(*WIDE))),
        d.floats(d.broadcast(s), -2, 0, k),
        d.floats(d.broadcast(s), 0, 2, k),
    ),
    lambda x, a, b: x.clip(a, b),
)
row(
    "lerp",
    lambda d: (
        d.floats(s := d.shape(), dtype=(k := d.choice(*WIDE))),
        d.floats(s, dtype=k),
        d.floats(d.broadcast(s), 0, 1, k),
    ),
    lambda x, y, w: x.lerp(y, w),
    loose=2,
)
row(
    "isinf",
    lambda d: d.floats(special=True),
    lambda x: (x.isinf(True, False), x.isinf(False, True)),
    lambda x: (torch.isposinf(x), torch.isneginf(x)),
)
row(
    "copysign",
    lambda d: (d.floats(special=True, dtype=WIDE), d.choice(-1.0, 0.0, -0.0, 3)),
    lambda x, y: x.copysign(y),
    signs=True,
    **EACH,
)
row(
    "gelu quick_gelu mish softplus softsign",
    lambda d: d.floats(low=-90, high=90, dtype=WIDE),
    lambda x: (x.gelu(), x.quick_gelu(), x.mish(), x.softplus(), x.softsign()),
    lambda x: (
        F.gelu(x, approximate="tanh"),
        x * torch.sigmoid(1.702 * x),
        F.mish(x),
        F.softplus(x, threshold=99),
        F.softsign(x),
    ),
    loose=3,
)
row(
    "exp log sin cos tanh sigmoid erf sqrt",
    lambda d: d.bools(),
    lambda x: (x.exp(), x.log(), x.sin(), x.cos(), x.tanh(), x.sigmoid(), x.erf(), x.sqrt()),
    lambda x: (x.exp(), x.log(), x.sin(), x.cos(), x.tanh(), x.sigmoid(), x.erf(), x.sqrt()),
)
row(
    "sin cos tan",
    lambda d: d.floats(low=-1e6, high=1e6, dtype=WIDE),
    lambda x: (x.sin(), x.cos()),
    lambda x: (x.sin(), x.cos()),
)
row(
    "pow",
    lambda d: (d.ints(low=0, high=4), d.choice(0.5, 2.0, -1.0, 1.5)),
    lambda x, y: x**y,
    loose=3,
    **EACH,
)
row(
    "pow",
    lambda d: (d.floats(low=-3, dtype=WIDE), d.choice(0, 1, 2, 3, 4, -1, -2, -3)),
    lambda x, y: x**y,
    loose=4,
    **EACH,
)

# *** reductions ***

row(
    "max min any all",
    lambda d: (x := d.any(d.shape(1, empty=False)), d.axes(x), d.flag()),
    lambda x, a, k: (x.max(a, k), x.min(a, k), x.any(a, k), x.all(a, k)),
    lambda x, a, k: (
        *(torch.amax(x, _dims(x, a), k), torch.amin(x, _dims(x, a), k)),
        *(torch.any(x.bool(), _dims(x, a), k), torch.all(x.bool(), _dims(x, a), k)),
    ),
)


def _dims(x: Any, axes: Any) -> Any:
    return tuple(range(x.ndim)) if axes is None else axes


row(
    "mean var std",
    lambda d: (x := d.ints(d.shape(1, empty=False), dtype=("int32", "uint8", "int8", "int64")), d.axes(x), d.flag()),
    lambda x, a, k: (x.mean(a, k), x.var(a, k, 0), x.std(a, k, 0)),
    lambda x, a, k: (
        torch.mean(x.float(), _dims(x, a), k),
        torch.var(x.float(), _dims(x, a), correction=0, keepdim=k),
        torch.std(x.float(), _dims(x, a), correction=0, keepdim=k),
    ),
    loose=4,
)
row(
    "mean max min",
    lambda d: d.any(),
    lambda x: x.float().mean(),
    lambda x: x.float().mean(),
)
row(
    "var std",
    lambda d: (d.floats(d.shape(1, empty=False), dtype=WIDE, taped=False), d.choice(2, 3)),
    lambda x, c: (x.var(-1, correction=c), x.std(-1, correction=c)),
    lambda x, c: (torch.var(x, -1, correction=c), torch.std(x, -1, correction=c)),
    loose=2,
)
row(
    "prod",
    lambda d: (d.floats(dtype=("float16", "float32")), d.choice("float64", "float32")),
    lambda x, t: x.prod(acc_dtype=t),
    lambda x, t: x.prod(dtype=TORCH_DTYPES[t]),
    loose=3,
)
row(
    "prod",
    lambda d: d.any(d.shape(2, 3)),
    lambda x: x.prod((0, -1), keepdim=True),
    lambda x: x.prod(0, True).prod(-1, True),
    counts=True,
    loose=3,
)
row(
    "sum prod",
    lambda d: (d.ints(extreme=True), d.choice("int64", "float32", "int32")),
    lambda x, t: (x.sum(-1, dtype=t), x.sum(dtype=t)) if x.ndim else x.sum(dtype=t),
    lambda x, t: (
        (x.sum(-1, dtype=TORCH_DTYPES[t]), x.sum(dtype=TORCH_DTYPES[t])) if x.ndim else x.sum(dtype=TORCH_DTYPES[t])
    ),
)
row(
    "log_softmax",
    lambda d: (d.floats(d.shape(1), dtype="bfloat16"), "float32"),
    lambda x, t: x.log_softmax(-1, t),
    lambda x, t: F.log_softmax(x, -1, dtype=TORCH_DTYPES[t]),
)


def _tied(d: Draw, side: int = 7, least: int = 1) -> Input:
    """Few different floats, with NaNs, infinities and zeros of both signs, or bools."""
    if d.int(0, 5) == 0:
        return d.bools(d.shape(least, side=side))
    shape = d.shape(least, side=side)
    pool = np.array(d.choice((1.0, 2.0, 0.0, -0.0), (0.5, np.nan, np.inf, -np.inf), (-1.0, np.nan, 2.0)), np.float32)
    found = np.random.default_rng(d.int(0, 2**32 - 1)).choice(pool, shape)
    return Input(np.asarray(found, np.float32), d.choice(*FLOATS))


row(
    "sort argsort",
    lambda d: (x := _tied(d), d.axis(x), d.flag()),
    lambda x, a, b: (*x.sort(a, b), x.argsort(a, b)),
    lambda x, a, b: (
        *torch.sort(x, dim=a, descending=b, stable=True),
        torch.argsort(x, dim=a, descending=b, stable=True),
    ),
    counts=True,
)
row(
    "sort topk",
    lambda d: (
        x := d.ints(d.shape(1, side=7, empty=False), extreme=True),
        a := d.axis(x),
        d.int(1, x.shape[a]),
        d.flag(),
    ),
    lambda x, a, k, b: (x.topk(k, a, b)[0], *x.sort(a, b)),
    lambda x, a, k, b: (torch.topk(x, k, a, b)[0], *torch.sort(x, dim=a, descending=b, stable=True)),
    counts=True,
)
row(
    "topk",
    lambda d: (x := _tied(d), a := d.axis(x), d.int(0, x.shape[a]), d.flag()),
    lambda x, a, k, b: x.topk(k, a, b)[0],
    lambda x, a, k, b: (
        torch.topk(x, k, a, b)[0] if x.dtype is not torch.bool else torch.sort(x, a, b)[0].narrow(a, 0, k)
    ),
)
row(
    "argmax argmin",
    lambda d: (x := _tied(d), d.choice(None, d.axis(x)), d.flag()),
    lambda x, a, k: (x.argmax(a, k), x.argmin(a, k)) if x.numel() else (),
    lambda x, a, k: (_places(np.argmax, x, a, k), _places(np.argmin, x, a, k)) if x.numel() else (),
    counts=True,
)


def _places(function: Any, x: torch.Tensor, axis: Any, keep: bool) -> torch.Tensor:
    """NumPy's: the first of those that are equal, the first NaN before all."""
    shape = (1,) * x.ndim if keep and axis is None else None
    found = np.asarray(function(x.double().numpy(), axis, **({"keepdims": keep} if axis is not None else {})))
    return torch.from_numpy(found.reshape(shape) if shape is not None else found)


row(
    "cummax cummin",
    lambda d: (x := _tied(d), d.axis(x)),
    lambda x, a: (*x.cummax(a), *x.cummin(a)),
    lambda x, a: (*torch.cummax(x, a), *torch.cummin(x, a)),
    counts=True,
)
row(
    "cumsum cumprod cummax cummin logcumsumexp",
    lambda d: (d.floats((), dtype=WIDE), d.choice(0, -1)),
    lambda x, a: (x.cumsum(a), x.cumprod(a), x.cummax(a)[0], x.cummin(a)[0], x.logcumsumexp(a)),
    lambda x, a: (x.cumsum(a), x.cumprod(a), x.cummax(a)[0], x.cummin(a)[0], x.logcumsumexp(a)),
)
row(
    "cumsum cumprod cummax logcumsumexp sort",
    lambda d: (x := d.floats(d.choice((0, 3), (3, 0), (0,), (2, 0, 2)), dtype=WIDE), d.axis(x)),
    lambda x, a: (x.cumsum(a), x.cumprod(a), x.cummax(a)[0], x.logcumsumexp(a), x.sort(a)[0]),
    lambda x, a: (x.cumsum(a), x.cumprod(a), x.cummax(a)[0], x.logcumsumexp(a), x.sort(a)[0]),
)
row(
    "cumsum cumprod",
    lambda d: (x := d.floats(d.shape(1, side=6), dtype=WIDE, special=True), d.axis(x)),
    lambda x, a: x.cumsum(a),
    torch.cumsum,
    gradient=False,
    **EACH,
)

# *** matrices ***

EINSUMS = (
    *(
        "ij,jk",
        "ij",
        "ji",
        "ii",
        "i,i,i->i",
        "ij,ij->ji",
        "Ab,bC->AC",
        " i j , j k -> i k ",
        "...i,...i->...",
        "...ij->...ji",
    ),
    *(
        "...ii->...i",
        "i...,i...->...",
        "...,...->...",
        "ij...,jk...->ik...",
        "a...b,b->a...",
        "iij,jk->ik",
        "ijk,jil->kl",
        ",i->i",
    ),
    *("bqhd,bkhd->bhqk", "bi,bj,bk->ijk", "abc,cb->a", "...ij,jk"),
)
row(
    "einsum",
    einsum_of(EINSUMS),
    lambda formula, *xs: Tensor.einsum(formula, *xs),
    lambda formula, *xs: torch.einsum(formula, *xs),
    loose=4,
)
row(
    "svd",
    lambda d: d.floats((*d.shape(0, 2, 2, empty=False), d.int(1, 6), d.int(1, 6)), dtype=WIDE),
    lambda x: _svd_holds(x, *x.svd()),
    lambda x: (torch.linalg.svdvals(x), x, *_eyes(x)),
    loose=100,
    gradient=False,
)
row(
    "qr",
    lambda d: d.floats((*d.shape(0, 2, 2, empty=False), d.int(1, 7), d.int(1, 7)), dtype=WIDE),
    lambda x: _qr_holds(*x.qr()),
    lambda x: (x, _eyes(x)[0]),
    loose=60,
    gradient=False,
)
row(
    "svd qr",
    lambda d: (_low_rank(d),),
    lambda x: (*_svd_holds(x, *x.svd()), *_qr_holds(*x.qr())),
    lambda x: (torch.linalg.svdvals(x), x, *_eyes(x), x, _eyes(x)[0]),
    loose=200,
    gradient=False,
)


def _low_rank(d: Draw) -> Input:
    """A matrix of zeros, of equal rows, or of a smaller rank than it has room for."""
    m, n, rank = d.int(1, 5), d.int(1, 5), d.int(0, 2)
    left, right = d.ints((m, rank), -2, 2, "int32").values, d.ints((rank, n), -2, 2, "int32").values
    return Input((left @ right).astype("float32"), d.choice(*WIDE))


def _svd_holds(x: Tensor, u: Tensor, s: Tensor, v: Tensor) -> Any:
    k = s.shape[-1]
    return s, (u[..., :k] * s.unsqueeze(-2)) @ v[..., :k, :], u.transpose(-1, -2) @ u, v @ v.transpose(-1, -2)


def _qr_holds(q: Tensor, r: Tensor) -> Any:
    return q @ r, q.transpose(-1, -2) @ q


def _eyes(x: torch.Tensor) -> Any:
    return tuple(torch.eye(n, dtype=x.dtype).expand(*x.shape[:-2], n, n) for n in x.shape[-2:])


# *** movements ***

row(
    "cat",
    lambda d: (x := d.floats(d.shape(1)), *_alike(d, x)),
    lambda x, y, z, a: x.cat(y, z, dim=a),
    lambda x, y, z, a: torch.cat((x, y, z), a),
)


def _alike(d: Draw, x: Input) -> Any:
    """Two more that differ from `x` along one axis, and the axis."""
    axis = d.axis(x)
    shapes = [tuple(d.int(0, 3) if i == axis % len(x.shape) else n for i, n in enumerate(x.shape)) for _ in range(2)]
    return *(d.floats(shape) for shape in shapes), axis


row(
    "split",
    lambda d: (x := d.any(d.shape(1, side=6, empty=False)), a := d.axis(x), _sizes(d, x.shape[a])),
    lambda x, a, s: x.split(s, a),
    lambda x, a, s: torch.split(x, s, a),
)


def _sizes(d: Draw, whole: int) -> list[int]:
    sizes: list[int] = []
    while sum(sizes) < whole:
        sizes.append(d.int(0, whole - sum(sizes)))
    return sizes


row(
    "roll",
    lambda d: (d.any(d.shape(2)), (d.int(-9, 9), d.int(-9, 9)), d.choice((0, 1), (1, -1), (0, 0), (-1, -2))),
    lambda x, n, a: x.roll(n, a),
)
row(
    "diagonal",
    lambda d: (d.any(d.shape(2, 3, empty=False)), d.int(-5, 5)),
    lambda x, k: x.diagonal(k) if -x.shape[0] < k < x.shape[1] else (),
    lambda x, k: x.diagonal(k) if -x.shape[0] < k < x.shape[1] else (),
)
row("tril triu", lambda d: (d.any(d.shape(2, 4)), d.choice(-99, -4, 0, 4, 99)), lambda x, k: (x.tril(k), x.triu(k)))
row(
    "unfold",
    lambda d: (x := d.any(d.shape(1, side=9, empty=False)), a := d.axis(x), d.int(1, x.shape[a]), d.int(1, 9)),
    lambda x, a, n, s: x.unfold(a, n, s),
)
row(
    "squeeze unsqueeze flatten",
    lambda d: d.any(()),
    lambda x: (x.squeeze(), x.squeeze(0), x.squeeze(-1), x.unsqueeze(-1), x.flatten()),
)
row("repeat_interleave", lambda d: d.any(), lambda x: x.repeat_interleave(0))
row(
    "masked_select nonzero",
    lambda d: (x := d.any(d.shape(), special=True), d.bools(d.broadcast(x.shape)), d.bools(x.shape)),
    lambda x, m, n: (x.masked_select(m), x.masked_select(n), x.nonzero(), m.nonzero()),
    lambda x, m, n: (torch.masked_select(x, m), torch.masked_select(x, n), x.nonzero(), m.nonzero()),
    counts=True,
)

# *** gathering and scattering ***

KINDS = (*FLOATS, *INTS)


def _scattered(d: Draw, kinds: Any = KINDS, low: float = -3) -> Any:
    kind = d.choice(*kinds)
    make: Any = d.ints if kind in INTS else d.floats
    bounds = {"low": int(low) if kind in INTS else low, "high": 3, "dtype": kind}
    x = make(d.shape(1, 3, empty=False), **bounds)
    axis = d.axis(x)
    shape = [d.int(1, n) for n in x.shape]
    shape[axis] = d.int(0, 6)
    source = [d.int(n, n + 1) for n in shape]
    places = d.ints(tuple(shape), 0, x.shape[axis] - 1, ("int64", "int32"))
    return x, axis, places, make(tuple(source), **bounds)


for _name in ("sum", "prod", "mean", "amax", "amin"):
    row(
        "scatter_reduce",
        lambda d, n=_name: (*_scattered(d, KINDS if n != "mean" else FLOATS), n, d.flag()),
        lambda x, a, i, s, r, k: x.scatter_reduce(a, i, s, r, include_self=k),
        lambda x, a, i, s, r, k: torch.scatter_reduce(
            x, a, i.long(), s[tuple(slice(n) for n in i.shape)], r, include_self=k
        ),
        loose=4,
        gradient=False,
    )
row(
    "scatter",
    lambda d: (*_scattered(d)[:3], d.choice(2, -1), d.choice("add", "multiply")),
    lambda x, a, i, v, r: x.scatter(a, i, v, reduce=r),
    lambda x, a, i, v, r: torch.scatter(x, a, i.long(), v, reduce=r),
    gradient=False,
    loose=2,
)
row(
    "gather",
    lambda d: (
        x := d.any(d.shape(1, 2, empty=False)),
        a := d.axis(x),
        d.ints(tuple(0 if i == a % len(x.shape) else n for i, n in enumerate(x.shape)), 0, 0, "int32"),
    ),
    lambda x, a, i: x.gather(a, i),
    lambda x, a, i: torch.gather(x, a, i.long()),
)


def _keyed(d: Draw) -> Any:
    """Several tensors of places (they broadcast), before, between and after slices."""
    x = d.floats(d.shape(2, 4, empty=False), dtype=WIDE)
    common = d.shape(0, 2, 3)
    items: list[Any] = []
    for size in x.shape:
        kind = d.int(0, 3)
        if kind < 2:
            items.append(d.ints(d.broadcast(common), -size, size - 1, ("int64", "int32")))
        else:
            items.append(slice(None) if kind == 2 else slice(0, d.int(0, size)))
    if not any(isinstance(one, Input) for one in items):
        items[0] = d.ints(common, 0, x.shape[0] - 1, "int64")
    return x, *items


row("__getitem__", _keyed, lambda x, *key: x[key])
row(
    "__getitem__ __setitem__",
    lambda d: (
        d.floats(d.shape(2, 4, empty=False), dtype=WIDE, taped=False),
        d.choice(
            *((0, None), (None, -1), (..., 0), (slice(None), 0, ...), (slice(1, None), None), (..., slice(0, 1))),
            *((), (...,), (0, 0), (slice(0, 0),), (slice(None, None, 2), slice(None, None, 3))),
        ),
    ),
    lambda x, k: (x[k], _written(x, k, 7), _written(x, k, -x[k]), _written(x, k, x.sum())),
    gradient=False,
    loose=2,
)


def _written(x: Any, key: Any, value: Any) -> Any:
    z = x.detach().clone()
    z[key] = value
    return z


# *** networks ***


def _lopsided(d: Draw) -> Any:
    """Windows with other amounts of padding before and after: (left, right, top, bottom, …), the last axis first."""
    places = d.int(1, 3)
    kernel = tuple(d.int(2, 3) for _ in range(places))
    x = d.floats((1, 2, *(d.int(5, 6) for _ in kernel)), dtype=WIDE)
    padding = tuple(d.int(0, 1) for _ in range(2 * places))
    return x, kernel, tuple(d.int(1, 3) for _ in kernel), padding, tuple(d.int(1, 2) for _ in kernel)


row(
    "max_pool2d avg_pool2d",
    _lopsided,
    lambda x, k, s, p, g: (x.max_pool2d(k, s, g, p), x.avg_pool2d(k, s, 1, p)),
    lambda x, k, s, p, g: (
        _MAX[len(k) - 1](F.pad(x, p, value=-torch.inf), k, s, 0, g),
        _AVG[len(k) - 1](F.pad(x, p), k, s),
    ),
    loose=2,
)
_MAX = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
_AVG = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
row(
    "max_pool2d",
    lambda d: (d.ints((1, 2, 5, 6), dtype=("int32", "uint8", "int8", "int64"), extreme=True), d.int(1, 3), d.flag()),
    lambda x, k, c: x.max_pool2d(k, padding=k // 2, ceil_mode=c),
    lambda x, k, c: F.max_pool2d(x, k, padding=k // 2, ceil_mode=c),
)


row(
    "max_pool2d",
    lambda d: (d.floats((d.int(1, 2), 2, 6, 7), dtype=WIDE), d.int(1, 3), d.int(1, 3), d.int(1, 2), d.flag()),
    lambda x, k, s, g, c: x.max_pool2d(k, s, g, k // 2, c, return_indices=True),
    lambda x, k, s, g, c: F.max_pool2d(x, k, s, k // 2, g, c, return_indices=True),
    counts=True,
)
row(
    "max_pool2d",
    lambda d: (_tied_image(d), d.int(1, 3), d.flag()),
    lambda x, k, c: x.max_pool2d(k, 1, ceil_mode=c, return_indices=True),
    lambda x, k, c: F.max_pool2d(x, k, 1, ceil_mode=c, return_indices=True),
    counts=True,
    gradient=False,  # equal numbers share it here, PyTorch gives it to the first
)


def _tied_image(d: Draw) -> Input:
    return Input(d.ints((1, 1, 5, 5), -2, 2, "int32").values.astype("float32"), "float32", True)


def _pooled_whole(d: Draw) -> Any:
    """An image that its windows cover exactly."""
    kernel = d.int(1, 3)
    stride, padding = d.int(kernel, 3), d.int(0, kernel // 2)
    sides = ((d.int(2, 3) - 1) * stride - 2 * padding + kernel for _ in range(2))
    return d.floats((d.int(1, 2), 2, *sides), dtype=WIDE), kernel, stride, padding


row(
    "max_unpool2d",
    _pooled_whole,
    lambda x, k, s, p: _unpool(x, k, s, p),
    lambda x, k, s, p: F.max_unpool2d(*F.max_pool2d(x, k, s, p, return_indices=True), k, s, p),
)


def _unpool(x: Tensor, k: int, s: int, p: int) -> Tensor:
    found, places = x.max_pool2d(k, s, 1, p, return_indices=True)
    return found.max_unpool2d(places, k, s, 1, p)


row(
    "conv2d",
    lambda d: (
        d.floats((d.int(1, 2), 2, 7, 6), dtype=(t := d.choice(*WIDE))),
        d.floats((2, 2, d.int(1, 3), d.int(1, 3)), dtype=t),
        tuple(d.int(0, 2) for _ in range(4)),
        (d.int(1, 3), d.int(1, 3)),
        (d.int(1, 2), d.int(1, 2)),
    ),
    lambda x, w, p, s, g: x.conv2d(w, None, 1, s, g, p),
    lambda x, w, p, s, g: F.conv2d(F.pad(x, p), w, None, s, 0, g),
    loose=3,
)
row(
    "conv_transpose2d",
    lambda d: (
        d.floats((1, 2, 4, 3), dtype=(t := d.choice(*WIDE))),
        d.floats((2, 2, d.int(1, 3), d.int(2, 3)), dtype=t),
        (d.int(1, 3), d.int(1, 3)),
        (d.int(0, 2), d.int(0, 1)),
        (d.int(1, 2), d.int(1, 2)),
    ),
    lambda x, w, s, p, g: x.conv_transpose2d(w, None, 1, s, g, p) if _has_room(w, p) else (),
    lambda x, w, s, p, g: F.conv_transpose2d(x, w, None, s, p, 0, 1, g) if _has_room(w, p) else (),
    loose=3,
)


def _has_room(w: Any, padding: Any) -> bool:
    return all(k > p for k, p in zip(w.shape[2:], padding))


row(
    "interpolate",
    lambda d: (
        d.floats((1, 2, d.int(1, 9), d.int(1, 9)), dtype=WIDE),
        (d.int(1, 20), d.int(1, 20)),
        d.choice("linear", "nearest", "nearest-exact", "area", "bicubic"),
        d.flag(),
    ),
    lambda x, s, m, a: x.interpolate(s, m, a and m in ("linear", "bicubic")),
    lambda x, s, m, a: F.interpolate(
        x, s, mode="bilinear" if m == "linear" else m, align_corners=a if m in ("linear", "bicubic") else None
    ),
    loose=20,
)
row(
    "interpolate",
    lambda d: (
        d.floats((1, 2, d.int(1, 5), d.int(1, 5)), dtype=("float16", "bfloat16")),
        (d.int(1, 7), d.int(1, 7)),
        d.flag(),
    ),
    lambda x, s, a: x.interpolate(s, "linear", a),
    lambda x, s, a: F.interpolate(x.float(), s, mode="bilinear", align_corners=a).to(x.dtype),
    gradient=False,
    loose=2,
)
row(
    "interpolate",
    lambda d: (d.ints((1, 2, d.int(1, 5), d.int(1, 5)), 0, 255, "uint8"), (d.int(1, 7), d.int(1, 7))),
    lambda x, s: (x.interpolate(s, "nearest"), x.interpolate(s, "nearest-exact")),
    lambda x, s: (F.interpolate(x, s, mode="nearest"), F.interpolate(x, s, mode="nearest-exact")),
)
row(
    "cross_entropy nll_loss",
    lambda d: (
        d.floats((n := d.int(1, 3), c := d.int(1, 4), *(rest := d.shape(0, 2, 3, empty=False))), dtype=WIDE),
        d.floats((n, c, *rest), 0, 1, "float32", taped=False),
        d.choice("mean", "sum", "none"),
        d.choice(0.0, 0.2),
    ),
    lambda x, y, r, s: x.cross_entropy(y.cast(x.dtype), r, s),
    lambda x, y, r, s: F.cross_entropy(x, y.to(x.dtype), reduction=r, label_smoothing=s),
    loose=3,
)
row(
    "sparse_categorical_crossentropy",
    lambda d: (
        d.floats((n := d.int(1, 5), c := d.int(2, 4)), dtype=(*WIDE, "float16")),
        d.ints((n,), 0, c - 1, d.choice("int64", "int32", "uint8")),
        d.choice(-1, 0, 1),
        d.choice(0.0, 0.3, 1.0),
        d.choice("sum", "none"),
    ),
    lambda x, y, i, s, r: x.sparse_categorical_crossentropy(y, i, s, r),
    lambda x, y, i, s, r: F.cross_entropy(x, y.long(), ignore_index=i, label_smoothing=s, reduction=r),
    loose=3,
)
row(
    "binary_crossentropy_logits",
    lambda d: (d.floats(s := d.shape(empty=False), -200, 200, "float32"), d.floats(s, 0, 1, "float32")),
    lambda x, y: x.binary_crossentropy_logits(y, "none"),
    lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"),
    loose=2,
)
row(
    "layernorm",
    lambda d: (d.floats((3, 4, 5), dtype=WIDE), d.choice(0, 1, -1, (0, 1), (0, 2), (0, 1, 2))),
    lambda x, a: x.layernorm(a, 0.01),
    lambda x, a: (x - x.mean(a, True)) * torch.rsqrt(x.var(a, correction=0, keepdim=True) + 0.01),
    loose=20,
)
row(
    "scaled_dot_product_attention",
    lambda d: (
        d.floats((2, d.choice(1, 2), 5, 4), dtype="float32"),
        d.floats((2, 1, 6, 4), dtype="float32"),
        d.floats(d.choice((5, 6), (1, 1, 5, 6), (2, 1, 5, 6), (1, 6)), dtype="float32"),
    ),
    lambda q, k, m: q.scaled_dot_product_attention(*_heads(k, q), m),
    lambda q, k, m: F.scaled_dot_product_attention(q, *_heads(k, q), m),  # type: ignore[call-arg]
    loose=6,
)


def _heads(k: Any, q: Any) -> Any:
    """Keys and values: one head for all."""
    keys = k.expand(2, q.shape[1], 6, 4)
    return keys, keys * 2


# *** sizes at which loops become vectors, tiles and threads ***

SIDES = (15, 16, 17, 31, 33, 64, 65, 100, 129, 256, 1000, 1023, 1025, 4097)


def _long(d: Draw, dtype: Any = KINDS) -> Any:
    """One long axis and perhaps others, and an axis."""
    kind = d.choice(*dtype)
    size = d.choice(*SIDES)
    shape = list(d.choice((size,), (size, d.int(1, 5)), (d.int(1, 5), size), (2, size, 3), (min(size, 129), 33)))
    make: Any = d.bools if kind == "bool" else d.ints if kind in INTS else d.floats
    x = make(tuple(shape), **({} if kind == "bool" else {"dtype": kind}))
    return x, d.axis(x)


row(
    "sum max min mean",
    lambda d: (*_long(d, (*KINDS, "bool")), d.flag()),
    lambda x, a, k: (x.sum(a, k), x.max(a, k), x.min(a, k), x.float().mean(a, k), x.any(a, k), x.all(a, k)),
    lambda x, a, k: (
        *(x.sum(a, k), torch.amax(x, a, k), torch.amin(x, a, k), x.float().mean(a, k)),
        *(x.bool().any(a, k), x.bool().all(a, k)),
    ),
    counts=True,
    loose=8,
)
row(
    "sum max min",
    lambda d: (*_long(d, (*KINDS, "bool")),),
    lambda x, a: (x.sum(), x.max(), x.min(), x.float().mean()),
    lambda x, a: (x.sum(), x.max(), x.min(), x.float().mean()),
    counts=True,
    loose=8,
)
row(
    "cumsum",
    lambda d: _long(d, (*KINDS, "bool")),
    lambda x, a: x.cumsum(a),
    torch.cumsum,
    counts=True,
    loose=30,
)
row(
    "cummax cummin sort argsort",
    lambda d: (*_long(d, (*KINDS, "bool")), d.flag()),
    lambda x, a, b: (*x.cummax(a), *x.cummin(a), *x.sort(a, b)),
    lambda x, a, b: (*torch.cummax(x, a), *torch.cummin(x, a), *torch.sort(x, dim=a, descending=b, stable=True)),
    counts=True,
    gradient=False,
)
row(
    "softmax log_softmax logsumexp logcumsumexp",
    lambda d: _long(d, WIDE),
    lambda x, a: (x.softmax(a), x.log_softmax(a), x.logsumexp(a), x.logcumsumexp(a)),
    lambda x, a: (x.softmax(a), x.log_softmax(a), x.logsumexp(a), x.logcumsumexp(a)),
    loose=30,
)
row(
    "exp sin sigmoid tanh gelu cast",
    lambda d: _long(d, FLOATS)[:1],
    lambda x: (x.exp(), x.sin(), x.sigmoid(), x.tanh(), x.gelu(), x.half(), x.bfloat16(), x.cast("int32"), x > 0),
    lambda x: (
        *(x.exp(), x.sin(), x.sigmoid(), x.tanh(), F.gelu(x, approximate="tanh"), x.half(), x.bfloat16()),
        *(x.int(), x > 0),
    ),
    loose=3,
)
row(
    "argmax argmin topk",
    lambda d: (*_long(d, KINDS), d.int(1, 9)),
    lambda x, a, k: (x.argmax(a), x.argmin(a), x.topk(min(k, x.shape[a]), a)[0]),
    lambda x, a, k: (
        *(_places(np.argmax, x.detach(), a, False), _places(np.argmin, x.detach(), a, False)),
        torch.topk(x, min(k, x.shape[a]), a)[0],
    ),
    counts=True,
    gradient=False,
)
row(
    "matmul",
    lambda d: (
        (make := d.ints if (t := d.choice(*FLOATS, "int8", "int32", "uint8")) in INTS else d.floats)(
            (d.choice(1, 5, 16, 33, 70), k := d.choice(1, 7, 32, 65, 130)), dtype=t
        ),
        make((k, d.choice(1, 3, 16, 48, 67)), dtype=t),
        d.int(0, 3),
    ),
    lambda x, w, t: _turned(x, t & 1) @ _turned(w, t & 2),
    lambda x, w, t: _turned(x, t & 1) @ _turned(w, t & 2),
    loose=8,
)


def _turned(x: Any, is_turned: int) -> Any:
    """The same numbers, lying in memory the other way."""
    return x.transpose(0, 1).contiguous().transpose(0, 1) if is_turned else x


row(
    "conv2d",
    lambda d: (
        d.floats((d.int(1, 2), c := d.choice(3, 8, 16), d.int(8, 20), d.int(8, 20)), dtype=(t := d.choice(*FLOATS))),
        d.floats((d.choice(4, 8, 17), c, k := d.int(1, 5), k), dtype=t),
        d.int(1, 2),
        d.int(0, 2),
    ),
    lambda x, w, s, p: x.conv2d(w, stride=s, padding=p),
    lambda x, w, s, p: F.conv2d(x, w, stride=s, padding=p),
    loose=20,
)
row(
    "max_pool2d avg_pool2d interpolate",
    lambda d: (d.floats((1, 3, d.int(17, 40), d.int(17, 40)), dtype=WIDE), d.int(2, 4)),
    lambda x, k: (x.max_pool2d(k), x.avg_pool2d(k), x.max_pool2d(k, 1), x.interpolate((33, 21))),
    lambda x, k: (
        *(F.max_pool2d(x, k), F.avg_pool2d(x, k), F.max_pool2d(x, k, 1)),
        F.interpolate(x, (33, 21), mode="bilinear"),
    ),
    loose=9,
)
row(
    "__getitem__ gather scatter",
    lambda d: (x := _long(d, (*KINDS, "bool"))[0], d.ints((70,), -x.shape[0], x.shape[0] - 1, ("int64", "int32"))),
    lambda x, i: (x[i], x[::3], x.flip(0)[5:]),
    lambda x, i: (x[i], x[::3], x.flip(0)[5:]),
)

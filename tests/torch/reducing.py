"""Rows for reductions, cumulative sums, sorting, matrix products and matrix decompositions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.torch.compare import TORCH_DTYPES
from tests.torch.drawing import FLOATS, WIDE, Draw, Input, einsum_of
from tests.torch.rows import row
from tinyexplore import Tensor

# *** reductions ***


def _dims(x: Any, axes: Any) -> Any:
    """PyTorch's way to say all axes."""
    return tuple(range(x.ndim)) if axes is None else axes


def _reduced(d: Draw, **kwargs: Any) -> Any:
    x = d.any(**kwargs)
    return x, d.axes(x), d.flag()


def _floats(d: Draw, **kwargs: Any) -> Any:
    x = d.floats(**kwargs)
    return x, d.axes(x), d.flag()


def _distinct(d: Draw, shape: Any = None) -> Input:
    """Floats or ints, no two alike, NaN now and then."""
    shape = d.shape(1, empty=False) if shape is None else shape
    count = int(np.prod(shape))
    order = np.random.default_rng(d.int(0, 2**32 - 1)).permutation(count) - count // 2
    if d.flag():
        return Input(order.reshape(shape).astype("int32"), "int32")
    values = order.reshape(shape).astype("float32")
    if d.int(0, 3) == 0 and count:
        return Input(np.where(values == values.min(), np.float32("nan"), values), "float32")
    return Input(values, "float32", True)


def _extremes(d: Draw) -> Any:
    x = d.any(d.shape(empty=False), special=True)
    return x, d.axes(x), d.flag()


row(
    "sum",
    _reduced,
    lambda x, a, k: x.sum(a, keepdim=k),
    lambda x, a, k: torch.sum(x, _dims(x, a), keepdim=k),
    counts=True,
)
row(
    "sum",
    lambda d: (d.floats(dtype=FLOATS), d.choice("float64", "float32")),
    lambda x, t: x.sum(acc_dtype=t),
    lambda x, t: x.sum(dtype=TORCH_DTYPES[t]),
)
row("mean", _floats, lambda x, a, k: x.mean(a, keepdim=k), lambda x, a, k: torch.mean(x, _dims(x, a), keepdim=k))
row(
    "prod",
    lambda d: (x := d.any(d.shape(1)), d.axis(x), d.flag()),
    lambda x, a, k: x.prod(a, keepdim=k),
    torch.prod,
    counts=True,
    loose=2,
)
row(
    "prod",
    lambda d: (
        Input(np.asarray(d.ints(s := d.shape(1, 2), -1, 2, "int32").values, "float32"), "float32", True),
        len(s) - 1,
    ),
    lambda x, a: x.prod(a),
    torch.prod,
)
row(
    "max min",
    _extremes,
    lambda x, a, k: (x.max(a, keepdim=k), x.min(a, keepdim=k)),
    lambda x, a, k: (torch.amax(x, _dims(x, a), keepdim=k), torch.amin(x, _dims(x, a), keepdim=k)),
    **{"scaled": False},
)
row(
    "any all",
    lambda d: (x := d.any(special=True), d.axes(x), d.flag()),
    lambda x, a, k: (x.any(a, keepdim=k), x.all(a, keepdim=k)),
    lambda x, a, k: (torch.any(x.bool(), _dims(x, a), keepdim=k), torch.all(x.bool(), _dims(x, a), keepdim=k)),
)
row(
    "var std",
    lambda d: (*_floats(d, shape=d.shape(1, side=5, empty=False), dtype=WIDE), d.choice(0, 1)),
    lambda x, a, k, c: (x.var(a, k, c), x.std(a, k, c)) if c == 0 else (x.var(a, k, c),),
    lambda x, a, k, c: (
        (torch.var(x, _dims(x, a), correction=c, keepdim=k), torch.std(x, _dims(x, a), correction=c, keepdim=k))
        if c == 0
        else (torch.var(x, _dims(x, a), correction=c, keepdim=k),)
    ),
    gradient=False,
)
row(
    "var std var_mean std_mean",
    lambda d: (
        d.floats((d.int(2, 5), d.int(2, 5)), dtype=WIDE),
        d.choice(None, 0, 1, (0, 1)),
        d.flag(),
        d.choice(0, 1),
    ),
    lambda x, a, k, c: (x.var(a, k, c), x.std(a, k, c), *x.var_mean(a, k, c), *x.std_mean(a, k, c)),
    lambda x, a, k, c: (
        torch.var(x, _dims(x, a), correction=c, keepdim=k),
        torch.std(x, _dims(x, a), correction=c, keepdim=k),
        *torch.var_mean(x, _dims(x, a), correction=c, keepdim=k),
        *torch.std_mean(x, _dims(x, a), correction=c, keepdim=k),
    ),
    loose=10,
)
row(
    "argmax argmin",
    lambda d: (x := _distinct(d), d.choice(None, d.axis(x)), d.flag()),
    lambda x, a, k: (x.argmax(a, k), x.argmin(a, k)),
    lambda x, a, k: (torch.argmax(x, a, k), torch.argmin(x, a, k)),
    counts=True,
)
row(
    "argmax argmin",
    lambda d: (x := d.ints(d.shape(1, empty=False), -2, 2, ("int32", "uint8", "int64")), d.axis(x)),
    lambda x, a: (x.argmax(a), x.argmin(a)),
    lambda x, a: (_first(x, x.amax(a, True), a), _first(x, x.amin(a, True), a)),
    counts=True,
)


def _first(x: torch.Tensor, extreme: torch.Tensor, axis: int) -> torch.Tensor:
    """The first place of several that are equal, which PyTorch leaves open."""
    shape = [1] * x.ndim
    shape[axis] = -1
    places = torch.arange(x.shape[axis]).reshape(shape)
    return torch.where(x == extreme, places, x.shape[axis]).amin(axis)


row(
    "softmax log_softmax",
    lambda d: (x := d.floats(d.shape(1), low=-20, high=20), d.axis(x)),
    lambda x, a: (x.softmax(a), x.log_softmax(a)),
    lambda x, a: (torch.softmax(x, a), torch.log_softmax(x, a)),
    loose=3,
)
row(
    "softmax",
    lambda d: (d.floats(d.shape(1), dtype="float16"), "float32"),
    lambda x, t: x.softmax(-1, t),
    lambda x, t: torch.softmax(x, -1, TORCH_DTYPES[t]),
)
row(
    "softmax logsumexp",
    lambda d: (d.floats(d.shape(1, empty=False), special=True, dtype=WIDE),),
    lambda x: (x.softmax(-1), x.logsumexp(-1)),
    lambda x: (torch.softmax(x, -1), torch.logsumexp(x, -1)),
    gradient=False,
    scaled=False,
)
row(
    "logsumexp",
    lambda d: _floats(d, shape=d.shape(empty=False), low=-20, high=20),
    lambda x, a, k: x.logsumexp(a, k),
    lambda x, a, k: torch.logsumexp(x, _dims(x, a), k),
    loose=2,
)


# *** running totals and order ***

row(
    "cumsum", lambda d: (x := d.any(d.shape(1, side=6)), d.axis(x)), lambda x, a: x.cumsum(a), torch.cumsum, counts=True
)
row(
    "cumprod",
    lambda d: (x := d.floats(d.shape(1, side=6), 0.5, 2), d.axis(x)),
    lambda x, a: x.cumprod(a),
    torch.cumprod,
    loose=3,
)
row(
    "cumprod",
    lambda d: (x := d.ints(d.shape(1, side=6), -2, 2), d.axis(x)),
    lambda x, a: x.cumprod(a),
    torch.cumprod,
    counts=True,
)
row(
    "cumprod",
    lambda d: (
        x := Input(np.asarray(d.ints(d.shape(1), -1, 2, "int32").values, "float32"), "float32", True),
        d.axis(x),
    ),
    lambda x, a: x.cumprod(a),
    torch.cumprod,
)
row(
    "logcumsumexp",
    lambda d: (x := d.floats(d.shape(1, side=6), -9, 9, WIDE), d.axis(x)),
    lambda x, a: x.logcumsumexp(a),
    torch.logcumsumexp,
    loose=3,
)
row(
    "logcumsumexp",
    lambda d: (x := d.floats(d.shape(1, side=6), dtype=WIDE, special=True), d.axis(x)),
    lambda x, a: x.logcumsumexp(a),
    torch.logcumsumexp,
    gradient=False,
    scaled=False,
)
row(
    "cummax cummin",
    lambda d: (x := _distinct(d), d.axis(x)),
    lambda x, a: (*x.cummax(a), *x.cummin(a)),
    lambda x, a: (*torch.cummax(x, a), *torch.cummin(x, a)),
    counts=True,
)
row(
    "cummax cummin",
    lambda d: (x := d.ints(d.shape(1, side=6), -2, 2), d.axis(x)),
    lambda x, a: (*x.cummax(a), *x.cummin(a)),
    lambda x, a: (*torch.cummax(x, a), *torch.cummin(x, a)),
    counts=True,
)
row(
    "sort argsort",
    lambda d: (x := _distinct(d, d.shape(1, side=7)), d.axis(x), d.flag()),
    lambda x, a, b: (*x.sort(a, b), x.argsort(a, b)),
    lambda x, a, b: (*torch.sort(x, a, b), torch.argsort(x, a, b)),
    counts=True,
)
row(
    "sort argsort",
    lambda d: (x := d.ints(d.shape(0, side=7), -2, 2), d.axis(x) if x.shape else -1, d.flag()),
    lambda x, a, b: (*x.sort(a, b), x.argsort(a, b)),
    lambda x, a, b: (
        *torch.sort(x, dim=a, descending=b, stable=True),
        torch.argsort(x, dim=a, descending=b, stable=True),
    ),
    counts=True,
)
row(
    "topk",
    lambda d: (x := _distinct(d, d.shape(1, side=7, empty=False)), a := d.axis(x), d.int(1, x.shape[a]), d.flag()),
    lambda x, a, k, b: x.topk(k, a, b),
    lambda x, a, k, b: torch.topk(x, k, a, b),
    counts=True,
)


# *** matrices ***


def _matrices(d: Draw) -> Any:
    dtype, batch = d.choice(*FLOATS, "int32", "int64"), d.shape(0, 2, 3)
    m, n, k = d.int(1, 5), d.int(1, 5), d.int(1, 5)
    left = (k,) if d.int(0, 4) == 0 else (*d.broadcast(batch), m, k)
    right = (k,) if d.int(0, 4) == 0 else (*d.broadcast(batch), k, n)
    make: Any = d.ints if dtype.startswith("int") else d.floats
    return make(left, dtype=dtype), make(right, dtype=dtype)


row(
    "matmul dot image_dot __matmul__",
    _matrices,
    lambda x, w: (x.matmul(w), x.dot(w), x.image_dot(w), x @ w),
    lambda x, w: (torch.matmul(x, w),) * 4,
    loose=2,
)
row(
    "__rmatmul__ matmul",
    lambda d: (d.floats((n := d.int(1, 4), n), dtype="float32"), d.floats((n, n), dtype="float32")),
    lambda x, w: (w.matmul(x, reverse=True), w.__rmatmul__(x)),
    lambda x, w: (x @ w, x @ w),
)
row(
    "__imatmul__",
    lambda d: (d.floats((n := d.int(1, 4), n), dtype="float32"), d.floats((n, n), dtype="float32")),
    lambda x, w: x.detach().clone().__imatmul__(w),
    lambda x, w: x @ w,
    gradient=False,
)
row(
    "matmul",
    lambda d: (d.floats((3, 40), dtype="float16"), d.floats((40, 2), dtype="float16"), "float32"),
    lambda x, w, t: x.matmul(w, acc_dtype=t),
    lambda x, w, t: x.float() @ w.float(),
)
row(
    "linear",
    lambda d: (
        d.floats((*d.shape(0, 2), k := d.int(1, 4)), dtype=(t := d.choice(*FLOATS))),
        d.floats((k, n := d.int(1, 4)), dtype=t),
        d.choice(None, d.floats((n,), dtype=t)),
    ),
    lambda x, w, b: x.linear(w, b),
    lambda x, w, b: torch.nn.functional.linear(x, w.T, b),
    loose=2,
)
EINSUMS = (
    "ij,jk->ik",
    "ij,kj->ik",
    "ij,ij->i",
    "ij,ij->",
    "ij->ji",
    "ii->i",
    "ii",
    "ij->j",
    "i,j->ij",
    "bij,bjk->bik",
    "...ij,...jk->...ik",
    "ij,jk,kl->il",
    "bhid,bhjd->bhij",
    "ijk->",
    "i,i",
    "...i->...",
    "aab->ab",
)
row(
    "einsum",
    einsum_of(EINSUMS),
    lambda formula, *xs: Tensor.einsum(formula, *xs),
    lambda formula, *xs: torch.einsum(formula, *xs),
    loose=2,
)
row(
    "qr",
    lambda d: d.floats((*d.shape(0, 1, 3, empty=False), d.int(1, 5), d.int(1, 5)), dtype=WIDE),
    lambda x: _upright(*x.qr()),
    lambda x: _upright(*torch.linalg.qr(x, mode="complete")),
    loose=60,
    gradient=False,
)
row(
    "qr",
    lambda d: d.floats((n := d.int(2, 4), n), dtype="float64"),
    lambda x: _upright(*x.qr()),
    lambda x: _upright(*torch.linalg.qr(x)),
    loose=1e4,
)
row(
    "svd",
    lambda d: d.floats((*d.shape(0, 1, 3, empty=False), d.int(1, 5), d.int(1, 5)), dtype=WIDE),
    lambda x: _put_together(*x.svd(full_matrices=False)),
    lambda x: (torch.linalg.svdvals(x), x),
    loose=60,
    gradient=False,
)
row(
    "svd",
    lambda d: d.floats((d.int(1, 4), d.int(1, 4)), dtype="float64"),
    lambda x: x.svd(full_matrices=False)[1],
    torch.linalg.svdvals,
    twice=False,
    loose=1e4,
)


def _upright(q: Any, r: Any) -> Any:
    """Q and R with the signs chosen so that the diagonal of R is positive; columns of Q beyond R's are left out."""
    count = min(r.shape[-2:])
    diagonal = r.diagonal(0, -2, -1) if isinstance(r, torch.Tensor) else r.diagonal(0, r.ndim - 2, r.ndim - 1)
    one = diagonal < 0
    signs = one.where(-1.0, 1.0) if isinstance(r, Tensor) else torch.where(one, -1.0, 1.0)
    signs = signs.cast(r.dtype) if isinstance(r, Tensor) else signs.to(r.dtype)
    return q[..., :count] * signs.unsqueeze(-2), r[..., :count, :] * signs.unsqueeze(-1)


def _put_together(u: Tensor, s: Tensor, v: Tensor) -> Any:
    return s, (u * s.unsqueeze(-2)) @ v

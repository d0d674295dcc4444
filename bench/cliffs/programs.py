"""The programs.

Each is a function of its inputs, with one text for both engines where the two APIs agree.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.wide.cases import Input, floats, places

Function = Callable[..., Any]


class Late:
    """A module that is imported when a name of it is first used, so that the table can be read without PyTorch."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


torch: Any = Late("torch")
F: Any = Late("torch.nn.functional")
te: Any = Late("tinyexplore")


@dataclass(frozen=True)
class Program:
    """One program of the table.

    name: unique name, which `--only` matches.
    group: kind of program.
    inputs: arrays by name, in the order of the parameters.
    ours: the program on tinyexplore's Tensors; one result or a sequence of results.
    theirs: the program on PyTorch's Tensors, or None if `ours` works for both.
    gradients: names of the inputs whose gradients are the results; then the program returns one Tensor.
    given: the last input is the gradient of that Tensor; otherwise the Tensor is a scalar.
    atol: allowed absolute error, as a multiple of each result's root mean square.
    counts: whether the row counts for the aims.
    replayed: whether TinyJit may replay the program.
    """

    name: str
    group: str
    inputs: dict[str, Input]
    ours: Function
    theirs: Function | None = None
    gradients: tuple[str, ...] = ()
    given: bool = False
    atol: float = 1e-4
    counts: bool = True
    replayed: bool = True

    def draw(self) -> dict[str, np.ndarray]:
        """Return the values of the inputs, the same in each run."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return {name: each.draw(rng) for name, each in self.inputs.items()}


def scaled(*shape: int) -> Input:
    """Return an input of weights: normal values over the square root of the first size."""
    return Input(shape, scale=shape[0] ** -0.5)


def positive(*shape: int) -> Input:
    """Return an input of values around 1, for products along an axis."""
    return Input(shape, scale=0.01, shift=1.0)


X = floats(512, 1024)
W = scaled(1024, 512)
XW = {"x": X, "w": W}
HEADS = 8
QKV = {name: floats(4, HEADS, 256, 64) for name in "qkv"}
IMAGES = floats(16, 32, 32, 32)
FILTERS = Input((32, 32, 3, 3), scale=0.06)
NORM = {"x": floats(2048, 768), "w": floats(768), "b": floats(768)}
TABLE = floats(10_000, 128)


# *** functions of more than one line ***


def two_layers(x: Any, w: Any, v: Any) -> Any:
    return (x @ w).relu() @ v


def fused_qkv(h: Any, w: Any) -> tuple[Any, ...]:
    """Return q, k and v as parts of one product, as most transformers compute them."""
    batch, length, width = h.shape
    return tuple((h @ w).reshape(batch, length, 3, HEADS, width // HEADS)[:, :, i] for i in range(3))


def fused_qkv_loss(h: Any, w: Any) -> Any:
    q, k, v = fused_qkv(h, w)
    return (q * k * v).sum()


def heads(h: Any, w: Any) -> Any:
    """Return q, k and v of all heads of `h @ w`, and the shape (batch, length, width)."""
    batch, length, width = h.shape
    q, k, v = (part.transpose(1, 2) for part in fused_qkv(h, w))
    return q, k, v, (batch, length, width)


def our_attention(q: Any, k: Any, v: Any) -> Any:
    return q.scaled_dot_product_attention(k, v)


def their_attention(q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v)


def plain_attention(q: Any, k: Any, v: Any) -> Any:
    return ((q @ k.transpose(2, 3)) * 0.125).softmax(-1) @ v


def our_self_attention(h: Any, w: Any) -> Any:
    q, k, v, shape = heads(h, w)
    return q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(*shape)


def their_self_attention(h: Any, w: Any) -> Any:
    q, k, v, shape = heads(h, w)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(*shape)


def our_block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    x = x + our_self_attention(x.layernorm(), wqkv) @ wo
    return x + (x.layernorm() @ w1).gelu() @ w2


def their_block(x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    x = x + their_self_attention(F.layer_norm(x, x.shape[-1:]), wqkv) @ wo
    return x + F.gelu(F.layer_norm(x, x.shape[-1:]) @ w1, approximate="tanh") @ w2


BLOCK = {
    "x": floats(4, 256, 512),
    "wqkv": scaled(512, 1536),
    "wo": scaled(512, 512),
    "w1": scaled(512, 2048),
    "w2": scaled(2048, 512),
}
BLOCK_WEIGHTS = ("wqkv", "wo", "w1", "w2")


def rnn(x: Any, h: Any, wx: Any, wh: Any) -> Any:
    """Run a tanh cell over the first axis of `x`."""
    for step in range(x.shape[0]):
        h = (x[step] @ wx + h @ wh).tanh()
    return h


RNN = {"x": floats(8, 64, 128), "h": floats(64, 256), "wx": scaled(128, 256), "wh": scaled(256, 256)}


def gru(x: Any, h: Any, wx: Any, wh: Any) -> Any:
    """Run one step of a GRU cell. The weights of reset, update and candidate are concatenated."""
    rx, zx, nx = (x @ wx).chunk(3, 1)
    rh, zh, nh = (h @ wh).chunk(3, 1)
    z = (zx + zh).sigmoid()
    return (1 - z) * (nx + (rx + rh).sigmoid() * nh).tanh() + z * h


GRU = {"x": floats(128, 256), "h": floats(128, 256), "wx": scaled(256, 768), "wh": scaled(256, 768)}


def lstm(x: Any, h: Any, c: Any, wx: Any, wh: Any) -> Any:
    """Run an LSTM cell over the first axis of `x`."""
    for step in range(x.shape[0]):
        i, f, g, o = (x[step] @ wx + h @ wh).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
    return h


LSTM = {
    "x": floats(4, 64, 128),
    "h": floats(64, 128),
    "c": floats(64, 128),
    "wx": scaled(128, 512),
    "wh": scaled(128, 512),
}


def standardized(x: Any) -> Any:
    return (x - x.mean(0)) / (x.std(0) + 1e-5)


def covariance(x: Any) -> Any:
    centered = x - x.mean(0)
    return centered.T @ centered / (x.shape[0] - 1)


def cosine(a: Any, b: Any) -> Any:
    return (a * b).sum(1) / ((a * a).sum(1).sqrt() * (b * b).sum(1).sqrt() + 1e-8)


def rms_norm(x: Any, w: Any) -> Any:
    return x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def our_group_norm(x: Any) -> Any:
    return x.reshape(x.shape[0], 8, -1).layernorm().reshape(x.shape)


def batch_norm(x: Any) -> Any:
    mean = x.mean((0, 2, 3), keepdim=True)
    centered = x - mean
    return centered * ((centered * centered).mean((0, 2, 3), keepdim=True) + 1e-5).rsqrt()


def their_batch_norm(x: Any) -> Any:
    return F.batch_norm(x, None, None, training=True)


def stencil(x: Any) -> Any:
    return x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]


def our_convnet(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    x = x.conv2d(w1, padding=1).relu().max_pool2d((2, 2))
    return x.conv2d(w2, padding=1).relu().mean((2, 3)) @ w3


def their_convnet(x: Any, w1: Any, w2: Any, w3: Any) -> Any:
    x = F.max_pool2d(F.conv2d(x, w1, padding=1).relu(), 2)
    return F.conv2d(x, w2, padding=1).relu().mean((2, 3)) @ w3


def our_huber(x: Any, y: Any) -> Any:
    error = (x - y).abs()
    return (error < 1).where(0.5 * error * error, error - 0.5).mean()


def pairwise(a: Any, b: Any) -> Any:
    """Return the squared distances of each row of `a` to each row of `b`, from the differences of all pairs."""
    return ((a.unsqueeze(1) - b.unsqueeze(0)) ** 2).sum(2)


def contrastive(a: Any, b: Any) -> Any:
    """Return the mean negative log-probability that each row of `a` selects its partner in `b`."""
    scores = a @ b.T * 0.05
    return (scores.logsumexp(1) - (a * b).sum(1) * 0.05).mean()


def scaled_batch_norm(x: Any, w: Any, b: Any) -> Any:
    return batch_norm(x) * w.reshape(1, -1, 1, 1) + b.reshape(1, -1, 1, 1)


def cosine_matrix(a: Any) -> Any:
    a = a / (a * a).sum(1, keepdim=True).sqrt()
    return a @ a.T


def distances(a: Any, b: Any) -> Any:
    """Return the distances of each row of `a` to each row of `b`, from a matrix product."""
    return ((a * a).sum(1, keepdim=True) + (b * b).sum(1) - 2 * a @ b.T).sqrt()


def divergence(x: Any, y: Any) -> Any:
    return (y.softmax(1) * (y.log_softmax(1) - x.log_softmax(1))).sum(1).mean()


def triplet(a: Any, b: Any, c: Any) -> Any:
    return (((a - b) ** 2).sum(1).sqrt() - ((a - c) ** 2).sum(1).sqrt() + 1).relu().mean()


def our_shared_heads(q: Any, k: Any, v: Any) -> Any:
    """Return attention in which four query heads share one head of keys and values."""
    return our_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))


def their_shared_heads(q: Any, k: Any, v: Any) -> Any:
    return their_attention(q, k.repeat_interleave(4, 1), v.repeat_interleave(4, 1))


def rotated(x: Any, c: Any, s: Any) -> tuple[Any, ...]:
    """Return both halves of a rotary embedding."""
    a, b = x[..., :32], x[..., 32:]
    return a * c - b * s, a * s + b * c


def _gradient(name: str, of: str, inputs: dict[str, Input], ours: Function, theirs: Function | None = None) -> Program:
    """Return a program whose results are gradients of a scalar with respect to `of` (names separated by spaces)."""
    return Program(name, "gradient", inputs, ours, theirs, tuple(of.split()), atol=1e-3)


def _given(name: str, of: str, inputs: dict[str, Input], ours: Function, theirs: Function | None = None) -> Program:
    """Return a program whose results are gradients with respect to `of`.

    Its last input is the gradient of the result.
    """
    return Program(name, "gradient", inputs, ours, theirs, tuple(of.split()), given=True, atol=1e-3)


# fmt: off
PROGRAMS: tuple[Program, ...] = (
    # products of operands that are computed expressions
    Program("x @ w", "product", XW, lambda x, w: x @ w),
    Program("expanded row @ w", "product", {"x": floats(1, 1024), "w": W}, lambda x, w: x.expand(512, 1024) @ w),
    Program("x @ expanded column", "product", {"x": X, "v": floats(1024, 1)}, lambda x, v: x @ v.expand(1024, 512)),
    Program("x @ eye", "product", {"x": floats(512, 512)},
            lambda x: x @ te.Tensor.eye(512), lambda x: x @ torch.eye(512)),
    Program("x @ ones", "product", {"x": floats(512, 512)},
            lambda x: x @ te.Tensor.ones(512, 512), lambda x: x @ torch.ones(512, 512)),
    Program("repeated rows @ w", "product", {"x": floats(128, 1024), "w": W}, lambda x, w: x.repeat(4, 1) @ w),
    Program("x @ repeated columns", "product", {"x": X, "w": scaled(1024, 128)}, lambda x, w: x @ w.repeat(1, 4)),
    Program("x[:, ::2] @ w", "product", {"x": floats(512, 2048), "w": W}, lambda x, w: x[:, ::2] @ w),
    Program("x[::2] @ w", "product", {"x": floats(1024, 1024), "w": W}, lambda x, w: x[::2] @ w),
    Program("x @ w[:, ::2]", "product", {"x": X, "w": scaled(1024, 1024)}, lambda x, w: x @ w[:, ::2]),
    Program("x.T @ w", "product", {"x": floats(1024, 512), "w": W}, lambda x, w: x.T @ w),
    Program("x @ w.T", "product", {"x": X, "w": Input((512, 1024), scale=0.03)}, lambda x, w: x @ w.T),
    Program("x @ x.T", "product", {"x": X}, lambda x: x @ x.T),
    Program("x.tril() @ w", "product", {"x": floats(512, 512), "w": scaled(512, 512)}, lambda x, w: x.tril() @ w),
    Program("masked x @ w", "product", {"x": X, "m": floats(512, 1024), "w": W},
            lambda x, m, w: (m > 0).where(x, 0) @ w, lambda x, m, w: torch.where(m > 0, x, 0) @ w),
    Program("gathered rows @ w", "product", {"x": TABLE, "i": places(10_000, 1024), "w": scaled(128, 256)},
            lambda x, i, w: x[i] @ w),
    Program("flipped x @ w", "product", XW, lambda x, w: x.flip((0,)) @ w),
    Program("(x - mean) @ w", "product", XW, lambda x, w: (x - x.mean(1, keepdim=True)) @ w),
    Program("softmax(x) @ w", "product", XW, lambda x, w: x.softmax(1) @ w),
    Program("exp(x) @ w", "product", XW, lambda x, w: x.exp() @ w),
    Program("x @ w @ v", "product", {**XW, "v": scaled(512, 512)}, lambda x, w, v: x @ w @ v),
    Program("relu(x @ w) @ v", "product", {**XW, "v": scaled(512, 512)}, two_layers),
    Program("x @ (w + w2)", "product", {**XW, "w2": W}, lambda x, w, w2: x @ (w + w2)),
    Program("x @ w + x @ v", "product", {**XW, "v": W}, lambda x, w, v: x @ w + x @ v),
    Program("halves of x @ w", "product", XW, lambda x, w: ((x @ w)[:, :256], (x @ w)[:, 256:])),
    Program("fused qkv", "product", {"h": floats(4, 128, 512), "w": scaled(512, 1536)}, fused_qkv),
    Program("x @ w, rows summed", "product", XW, lambda x, w: (x @ w).sum(1)),
    Program("x @ w, rows' maxima", "product", XW, lambda x, w: (x @ w).max(1), lambda x, w: (x @ w).amax(1)),
    Program("cat of two products", "product", {**XW, "v": W}, lambda x, w, v: (x @ w).cat(x @ v, dim=1),
            lambda x, w, v: torch.cat((x @ w, x @ v), 1)),
    Program("batch of one @ batch", "product", {"x": floats(1, 256, 256), "w": floats(8, 256, 256)},
            lambda x, w: x.expand(8, 256, 256) @ w),
    Program("few rows @ w", "product", {"x": floats(8, 1024), "w": scaled(1024, 1024)}, lambda x, w: x @ w),
    # einsum
    Program("einsum bij,bjk->ik", "einsum", {"x": floats(8, 128, 256), "w": floats(8, 256, 128)},
            lambda x, w: te.Tensor.einsum("bij,bjk->ik", x, w), lambda x, w: torch.einsum("bij,bjk->ik", x, w)),
    Program("einsum bij,bkj->bik", "einsum", {"x": floats(8, 128, 256), "w": floats(8, 128, 256)},
            lambda x, w: te.Tensor.einsum("bij,bkj->bik", x, w), lambda x, w: torch.einsum("bij,bkj->bik", x, w)),
    Program("einsum ijk,kl->ijl", "einsum", {"x": floats(16, 64, 256), "w": scaled(256, 256)},
            lambda x, w: te.Tensor.einsum("ijk,kl->ijl", x, w), lambda x, w: torch.einsum("ijk,kl->ijl", x, w)),
    Program("einsum bthd,bshd->bhts", "einsum", {"x": floats(4, 128, 8, 64), "w": floats(4, 128, 8, 64)},
            lambda x, w: te.Tensor.einsum("bthd,bshd->bhts", x, w),
            lambda x, w: torch.einsum("bthd,bshd->bhts", x, w)),
    Program("outer product", "einsum", {"a": floats(1024), "b": floats(1024)},
            lambda a, b: te.Tensor.einsum("i,j->ij", a, b), lambda a, b: torch.einsum("i,j->ij", a, b)),
    # gradients of losses
    _gradient("grad of (x @ w).sum()", "x w", XW, lambda x, w: (x @ w).sum()),
    _gradient("grad of (x @ w).mean()", "x w", XW, lambda x, w: (x @ w).mean()),
    _gradient("grad of (x @ w).mean(1)²", "x w", XW, lambda x, w: (x @ w).mean(1).square().sum()),
    _gradient("grad of (x @ w).mean(0)²", "x w", XW, lambda x, w: (x @ w).mean(0).square().sum()),
    _gradient("grad of (x @ w)²", "x w", XW, lambda x, w: (x @ w).square().mean()),
    _gradient("grad of a norm", "x w", XW, lambda x, w: (x @ w).square().sum().sqrt()),
    _gradient("grad of logsumexp", "x w", XW, lambda x, w: (x @ w).logsumexp(1).sum()),
    _gradient("grad of a maximum", "x w", XW, lambda x, w: (x @ w).max(1).sum(), lambda x, w: (x @ w).amax(1).sum()),
    _gradient("grad of two layers' sum", "w v", {**XW, "v": scaled(512, 512)},
              lambda x, w, v: two_layers(x, w, v).sum()),
    _gradient("grad of two layers' mse", "w v", {**XW, "v": scaled(512, 512), "y": floats(512, 512)},
              lambda x, w, v, y: (two_layers(x, w, v) - y).square().mean()),
    _gradient("grad of gelu(x @ w + b)", "w b", {**XW, "b": floats(512)}, lambda x, w, b: (x @ w + b).gelu().sum(),
              lambda x, w, b: F.gelu(x @ w + b, approximate="tanh").sum()),
    _given("grad of x @ w, given", "x w", {**XW, "g": floats(512, 512)}, lambda x, w: x @ w),
    _given("grad of relu(x @ w + b), given", "x w b", {**XW, "b": floats(512), "g": floats(512, 512)},
           lambda x, w, b: (x @ w + b).relu()),
    _gradient("grad of einsum bij,bjk->ik", "x w", {"x": floats(8, 128, 256), "w": floats(8, 256, 128)},
              lambda x, w: te.Tensor.einsum("bij,bjk->ik", x, w).sum(),
              lambda x, w: torch.einsum("bij,bjk->ik", x, w).sum()),
    _gradient("grad of mse", "x", {"x": X, "y": X}, lambda x, y: (x - y).square().mean()),
    _gradient("grad of l1", "x", {"x": X, "y": X}, lambda x, y: (x - y).abs().mean()),
    _gradient("grad of huber", "x", {"x": X, "y": X}, our_huber, lambda x, y: F.huber_loss(x, y)),
    _gradient("grad of binary cross entropy", "x", {"x": X, "y": Input((512, 1024), np.int32, below=2)},
              lambda x, y: x.binary_crossentropy_logits(y.float()),
              lambda x, y: F.binary_cross_entropy_with_logits(x, y.float())),
    _gradient("grad of cross entropy", "x", {"x": X, "y": places(1024, 512)},
              lambda x, y: x.sparse_categorical_crossentropy(y), lambda x, y: F.cross_entropy(x, y)),
    _gradient("grad of linear cross entropy", "w", {**XW, "y": places(512, 512)},
              lambda x, w, y: (x @ w).sparse_categorical_crossentropy(y), lambda x, w, y: F.cross_entropy(x @ w, y)),
    _gradient("grad of contrastive loss", "a b", {"a": floats(256, 256), "b": floats(256, 256)}, contrastive),
    _gradient("grad of cosine", "a b", {"a": X, "b": X}, lambda a, b: cosine(a, b).mean()),
    _gradient("grad of variance", "x", {"x": X}, lambda x: x.var(0).sum()),
    _gradient("grad of embedding", "t", {"t": TABLE, "i": places(10_000, 2048)}, lambda t, i: t[i].square().sum()),
    _gradient("grad of picked values", "x", {"x": X, "i": places(1024, 512, 1)}, lambda x, i: x.gather(1, i).sum()),
    _gradient("grad of softmax", "x", {"x": X, "y": X}, lambda x, y: (x.softmax(1) * y).sum()),
    _gradient("grad of cumsum", "x", {"x": X, "y": X}, lambda x, y: (x.cumsum(1) * y).sum()),
    _gradient("grad of layernorm", "x w b", NORM, lambda x, w, b: (x.layernorm() * w + b).square().sum(),
              lambda x, w, b: F.layer_norm(x, (768,), w, b).square().sum()),
    _gradient("grad of layernorm's sum", "x w b", NORM, lambda x, w, b: (x.layernorm() * w + b).sum(),
              lambda x, w, b: F.layer_norm(x, (768,), w, b).sum()),
    _gradient("grad of rms norm", "x w", {"x": floats(2048, 768), "w": floats(768)},
              lambda x, w: rms_norm(x, w).square().sum()),
    _gradient("grad of batch norm", "x", {"x": IMAGES}, lambda x: (batch_norm(x) ** 3).sum(),
              lambda x: (their_batch_norm(x) ** 3).sum()),
    _gradient("grad of conv", "x w", {"x": IMAGES, "w": FILTERS}, lambda x, w: x.conv2d(w, padding=1).sum(),
              lambda x, w: F.conv2d(x, w, padding=1).sum()),
    _gradient("grad of relu(conv)", "x w", {"x": IMAGES, "w": FILTERS},
              lambda x, w: x.conv2d(w, padding=1).relu().mean(), lambda x, w: F.conv2d(x, w, padding=1).relu().mean()),
    _given("grad of conv, given", "x w", {"x": IMAGES, "w": FILTERS, "g": IMAGES},
           lambda x, w: x.conv2d(w, padding=1), lambda x, w: F.conv2d(x, w, padding=1)),
    _gradient("grad of a convnet", "w1 w2 w3", {"x": floats(16, 3, 32, 32), "w1": Input((32, 3, 3, 3), scale=0.2),
              "w2": FILTERS, "w3": scaled(32, 10)}, lambda *x: our_convnet(*x).square().mean(),
              lambda *x: their_convnet(*x).square().mean()),
    _gradient("grad of max pool", "x", {"x": Input((16, 32, 32, 32), distinct=True)},
              lambda x: x.max_pool2d((2, 2)).sum(), lambda x: F.max_pool2d(x, 2).sum()),
    _gradient("grad of average pool", "x", {"x": IMAGES}, lambda x: x.avg_pool2d((2, 2)).square().sum(),
              lambda x: F.avg_pool2d(x, 2).square().sum()),
    _gradient("grad of attention's sum", "q k v", QKV, lambda q, k, v: our_attention(q, k, v).sum(),
              lambda q, k, v: their_attention(q, k, v).sum()),
    _gradient("grad of plain attention's mean", "q k v", QKV, lambda q, k, v: plain_attention(q, k, v).mean()),
    _given("grad of attention, given", "q k v", {**QKV, "g": QKV["q"]}, our_attention, their_attention),
    _gradient("grad of fused qkv", "w", {"h": floats(4, 128, 512), "w": scaled(512, 1536)}, fused_qkv_loss),
    _gradient("grad of rnn", "wx wh", RNN, lambda *x: rnn(*x).sum()),
    _gradient("grad of lstm", "wx wh", LSTM, lambda *x: lstm(*x).square().sum()),
    # statistics
    Program("mean of columns", "statistics", {"x": floats(2048, 1024)}, lambda x: x.mean(0)),
    Program("variance of columns", "statistics", {"x": floats(2048, 1024)}, lambda x: x.var(0)),
    Program("variance of rows", "statistics", {"x": floats(2048, 1024)}, lambda x: x.var(1)),
    Program("standardized columns", "statistics", {"x": floats(2048, 256)}, standardized),
    Program("covariance", "statistics", {"x": floats(2048, 256)}, covariance),
    Program("cosine similarity", "statistics", {"a": floats(2048, 512), "b": floats(2048, 512)}, cosine),
    Program("pairwise distances", "statistics", {"a": floats(512, 64), "b": floats(512, 64)}, pairwise),
    Program("histogram", "statistics", {"i": places(64, 16_384)},
            lambda i: i.one_hot(64).float().sum(0), lambda i: F.one_hot(i, 64).float().sum(0)),
    Program("sums by class", "statistics", {"x": floats(4096, 128), "i": places(16, 4096)},
            lambda x, i: i.one_hot(16).float().T @ x, lambda x, i: F.one_hot(i, 16).float().T @ x),
    Program("argmax of columns", "statistics", {"x": floats(1024, 1024)}, lambda x: x.argmax(0)),
    Program("logsumexp of columns", "statistics", {"x": floats(1024, 1024)}, lambda x: x.logsumexp(0)),
    Program("rows scaled to 0…1", "statistics", {"x": floats(1024, 1024)},
            lambda x: (x - x.min(1, keepdim=True)) / (x.max(1, keepdim=True) - x.min(1, keepdim=True)),
            lambda x: (x - x.amin(1, keepdim=True)) / (x.amax(1, keepdim=True) - x.amin(1, keepdim=True))),
    Program("share above the mean", "statistics", {"x": floats(1024, 1024)},
            lambda x: (x > x.mean(1, keepdim=True)).float().mean(1)),
    Program("top 8 of rows", "statistics", {"x": floats(512, 1024)}, lambda x: x.topk(8, 1)[0]),
    Program("top 100 of rows", "statistics", {"x": floats(512, 1024)}, lambda x: x.topk(100, 1)[0]),
    # scans
    Program("cumsum of rows", "scan", {"x": floats(512, 1024)}, lambda x: x.cumsum(1), atol=1e-3),
    Program("cumsum of columns", "scan", {"x": floats(512, 1024)}, lambda x: x.cumsum(0), atol=1e-3),
    Program("cumprod", "scan", {"x": positive(512, 1024)}, lambda x: x.cumprod(1)),
    Program("cummax", "scan", {"x": floats(512, 1024)}, lambda x: x.cummax(1)[0]),
    Program("logcumsumexp", "scan", {"x": floats(512, 1024)}, lambda x: x.logcumsumexp(1)),
    Program("cumsum backwards", "scan", {"x": floats(512, 1024)}, lambda x: x.flip((1,)).cumsum(1).flip((1,)),
            atol=1e-3),
    # windows
    Program("conv 3×3", "window", {"x": IMAGES, "w": FILTERS}, lambda x, w: x.conv2d(w, padding=1),
            lambda x, w: F.conv2d(x, w, padding=1)),
    Program("conv 3×3, stride 2", "window", {"x": IMAGES, "w": FILTERS},
            lambda x, w: x.conv2d(w, stride=2, padding=1), lambda x, w: F.conv2d(x, w, stride=2, padding=1)),
    Program("conv 1×1", "window", {"x": IMAGES, "w": Input((64, 32, 1, 1), scale=0.2)},
            lambda x, w: x.conv2d(w), lambda x, w: F.conv2d(x, w)),
    Program("depthwise conv", "window", {"x": IMAGES, "w": floats(32, 1, 3, 3)},
            lambda x, w: x.conv2d(w, groups=32, padding=1), lambda x, w: F.conv2d(x, w, groups=32, padding=1)),
    Program("dilated conv", "window", {"x": IMAGES, "w": FILTERS},
            lambda x, w: x.conv2d(w, dilation=2, padding=2), lambda x, w: F.conv2d(x, w, dilation=2, padding=2)),
    Program("transposed conv", "window", {"x": floats(8, 32, 16, 16), "w": FILTERS},
            lambda x, w: x.conv_transpose2d(w, stride=2), lambda x, w: F.conv_transpose2d(x, w, stride=2)),
    Program("conv 1-d", "window", {"x": floats(16, 32, 512), "w": Input((64, 32, 5), scale=0.1)},
            lambda x, w: x.conv2d(w, padding=2), lambda x, w: F.conv1d(x, w, padding=2)),
    Program("conv, bias, relu", "window", {"x": IMAGES, "w": FILTERS, "b": floats(32)},
            lambda x, w, b: x.conv2d(w, b, padding=1).relu(), lambda x, w, b: F.conv2d(x, w, b, padding=1).relu()),
    Program("max pool 2×2", "window", {"x": IMAGES}, lambda x: x.max_pool2d((2, 2)), lambda x: F.max_pool2d(x, 2)),
    Program("max pool 3×3, stride 2", "window", {"x": IMAGES},
            lambda x: x.max_pool2d((3, 3), stride=2, padding=1), lambda x: F.max_pool2d(x, 3, stride=2, padding=1)),
    Program("average pool 3×3, stride 1", "window", {"x": IMAGES},
            lambda x: x.avg_pool2d((3, 3), stride=1, padding=1), lambda x: F.avg_pool2d(x, 3, stride=1, padding=1)),
    Program("reflected edges", "window", {"x": floats(8, 16, 64, 64)}, lambda x: x.pad((3, 3, 3, 3), mode="reflect"),
            lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect")),
    Program("roll along two axes", "window", {"x": floats(1024, 1024)}, lambda x: x.roll((3, 5), (0, 1))),
    Program("unfold", "window", {"x": floats(256, 1024)}, lambda x: x.unfold(1, 16, 8).contiguous()),
    Program("sums of windows", "window", {"x": floats(256, 1024)}, lambda x: x.unfold(1, 16, 1).sum(2)),
    Program("stencil", "window", {"x": floats(1024, 1024)}, stencil),
    # recurrent cells
    Program("rnn, 8 steps", "recurrent", RNN, rnn),
    Program("gru cell", "recurrent", GRU, gru),
    Program("lstm, 4 steps", "recurrent", LSTM, lstm),
    # attention and the transformer block
    Program("attention", "attention", QKV, our_attention, their_attention),
    Program("plain attention", "attention", QKV, plain_attention),
    Program("causal attention", "attention", QKV, lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True),
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
    Program("masked attention", "attention", {**QKV, "m": floats(256, 256)},
            lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m > -1),
            lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > -1)),
    Program("attention, channels first", "attention", {name: floats(8, 64, 256) for name in "qkv"},
            lambda q, k, v: ((q.transpose(1, 2) @ k) * 0.125).softmax(-1) @ v.transpose(1, 2)),
    Program("MLP of Linear layers", "attention",
            {"x": floats(512, 128), "w": scaled(512, 128), "b": floats(512), "v": scaled(128, 512), "c": floats(128)},
            lambda x, w, b, v, c: x.linear(w.T, b).relu().linear(v.T, c),
            lambda x, w, b, v, c: F.linear(F.linear(x, w, b).relu(), v, c)),
    Program("self-attention of fused qkv", "attention", {"h": floats(4, 128, 512), "w": scaled(512, 1536)},
            our_self_attention, their_self_attention),
    Program("block", "attention", BLOCK, our_block, their_block, atol=1e-3),
    _gradient("grad of block's sum", "wqkv wo w1 w2", BLOCK, lambda *x: our_block(*x).sum(),
              lambda *x: their_block(*x).sum()),
    _given("grad of block, given", "wqkv wo w1 w2", {**BLOCK, "g": BLOCK["x"]}, our_block, their_block),
    # norms
    Program("layernorm", "norm", NORM, lambda x, w, b: x.layernorm() * w + b,
            lambda x, w, b: F.layer_norm(x, (768,), w, b)),
    Program("rms norm", "norm", {"x": floats(2048, 768), "w": floats(768)}, rms_norm),
    Program("group norm", "norm", {"x": IMAGES}, our_group_norm, lambda x: F.group_norm(x, 8)),
    Program("batch norm", "norm", {"x": IMAGES}, batch_norm, their_batch_norm),
    Program("softmax of rows", "norm", {"x": floats(1024, 1024)}, lambda x: x.softmax(1)),
    Program("softmax of columns", "norm", {"x": floats(1024, 1024)}, lambda x: x.softmax(0)),
    # movement
    Program("transpose", "movement", {"x": floats(1024, 1024)}, lambda x: x.T.contiguous()),
    Program("transpose 2048", "movement", {"x": floats(2048, 2048)}, lambda x: x.T.contiguous()),
    Program("x + x.T", "movement", {"x": floats(1024, 1024)}, lambda x: x + x.T),
    Program("rolled rows", "movement", {"x": floats(1024, 1024)}, lambda x: x.roll(3, 1)),
    Program("every other column", "movement", {"x": floats(1024, 1024)}, lambda x: x[:, ::2].contiguous()),
    Program("NCHW to NHWC", "movement", {"x": IMAGES}, lambda x: x.permute(0, 2, 3, 1).contiguous()),
    Program("picked rows", "movement", {"x": TABLE, "i": places(10_000, 4096)}, lambda x, i: x[i]),
    Program("masked fill and sum", "movement", {"x": floats(1024, 1024)}, lambda x: (x * (x > 0)).sum(1)),
    # elementwise
    Program("exp of 64 Ki", "elementwise", {"x": floats(65_536)}, lambda x: x.exp()),
    Program("four exps of 64 Ki", "elementwise", {"x": Input((65_536,), scale=0.1)},
            lambda x: (((x.exp() * 0.1).exp() * 0.1).exp() * 0.1).exp()),
    Program("sin of 1 Mi", "elementwise", {"x": floats(1 << 20)}, lambda x: x.sin()),
    Program("gelu", "elementwise", {"x": floats(2048, 512)}, lambda x: x.gelu(),
            lambda x: F.gelu(x, approximate="tanh")),
    Program("row plus column", "elementwise", {"a": floats(1024), "b": floats(1024, 1)}, lambda a, b: (a + b).relu()),
    Program("float16 a * b + a", "elementwise", {name: Input((1 << 19,), np.float16) for name in "ab"},
            lambda a, b: a * b + a, atol=2e-3),
    # variants of the rows above
    Program("x.mean(0) @ w", "product", XW, lambda x, w: x.mean(0) @ w),
    Program("x.triu() @ w", "product", {"x": floats(512, 512), "w": scaled(512, 512)}, lambda x, w: x.triu() @ w),
    Program("x.T @ x", "product", {"x": floats(1024, 256)}, lambda x: x.T @ x),
    Program("(x @ w).T @ v", "product", {**XW, "v": floats(512, 256)}, lambda x, w, v: (x @ w).T @ v),
    Program("x @ expanded matrix", "product", {"x": floats(8, 128, 256), "w": floats(1, 256, 128)},
            lambda x, w: x @ w.expand(8, 256, 128)),
    Program("x @ whole numbers", "product", {"x": X, "w": Input((1024, 512), np.int32, below=100)},
            lambda x, w: x @ (w.float() * 0.01)),
    Program("cosine matrix", "product", {"a": floats(512, 256)}, cosine_matrix),
    Program("distances by a product", "product", {"a": floats(512, 128), "b": floats(512, 128)}, distances),
    Program("kron", "einsum", {"a": floats(32, 32), "b": floats(32, 32)},
            lambda a, b: te.Tensor.einsum("ij,kl->ikjl", a, b).reshape(1024, 1024), lambda a, b: torch.kron(a, b)),
    Program("einsum bij,bj->bi", "einsum", {"x": floats(64, 128, 256), "w": floats(64, 256)},
            lambda x, w: te.Tensor.einsum("bij,bj->bi", x, w), lambda x, w: torch.einsum("bij,bj->bi", x, w)),
    Program("einsum bij->ji", "einsum", {"x": floats(16, 256, 256)},
            lambda x: te.Tensor.einsum("bij->ji", x), lambda x: torch.einsum("bij->ji", x)),
    _gradient("grad of prod of columns", "x", {"x": positive(1024, 1024)}, lambda x: x.prod(0).sum()),
    _gradient("grad of prod of rows", "x", {"x": positive(1024, 1024)}, lambda x: x.prod(1).sum()),
    _gradient("grad of prod of all", "x", {"x": Input((1 << 18,), scale=1e-4, shift=1.0)}, lambda x: x.prod()),
    _gradient("grad of cumprod", "x", {"x": positive(256, 1024)}, lambda x: x.cumprod(1).sum()),
    _gradient("grad of cumsum of columns", "x", {"x": X}, lambda x: x.cumsum(0).square().sum()),
    _gradient("grad of sort", "x", {"x": Input((256, 1024), distinct=True)}, lambda x: (x.sort(1)[0] * x).sum()),
    _gradient("grad of var of columns", "x", {"x": floats(2048, 512)}, lambda x: x.var(0).square().sum()),
    _gradient("grad of max of columns", "x", {"x": Input((1024, 1024), distinct=True)}, lambda x: x.max(0).sum(),
              lambda x: x.amax(0).sum()),
    _gradient("grad of logsumexp of columns", "x", {"x": floats(1024, 1024)}, lambda x: x.logsumexp(0).sum()),
    _gradient("grad of kl divergence", "x", {"x": floats(512, 1000), "y": floats(512, 1000)}, divergence),
    _gradient("grad of triplet loss", "a", {name: floats(1024, 128) for name in "abc"}, triplet),
    _gradient("grad of hinge loss", "w", {"x": X, "w": Input((1024,), scale=0.03), "y": floats(512)},
              lambda x, w, y: (1 - (x @ w) * y).relu().mean()),
    _gradient("grad of pairwise distances", "a b", {"a": floats(256, 64), "b": floats(256, 64)},
              lambda a, b: (pairwise(a, b) + 1).sqrt().mean()),
    _gradient("grad of cosine matrix", "a", {"a": floats(512, 256)}, lambda a: cosine_matrix(a).square().mean()),
    _gradient("grad of an outer product", "a b", {"a": floats(1024), "b": floats(1024)},
              lambda a, b: (a.reshape(-1, 1) * b).square().sum()),
    _gradient("grad of covariance", "x", {"x": floats(2048, 256)}, lambda x: covariance(x).square().sum()),
    _gradient("grad of expanded row @ w", "x w", {"x": floats(1, 1024), "w": W},
              lambda x, w: (x.expand(512, 1024) @ w).square().sum()),
    _gradient("grad of x[:, ::2] @ w", "x w", {"x": floats(512, 2048), "w": W},
              lambda x, w: (x[:, ::2] @ w).square().mean()),
    _gradient("grad of gathered rows @ w", "t w", {"t": TABLE, "i": places(10_000, 1024), "w": scaled(128, 256)},
              lambda t, i, w: (t[i] @ w).square().mean()),
    _gradient("grad of one-hot @ w", "w", {"i": places(1000, 4096), "w": floats(1000, 64)},
              lambda i, w: (i.one_hot(1000).float() @ w).square().sum(),
              lambda i, w: (F.one_hot(i, 1000).float() @ w).square().sum()),
    _gradient("grad of swiglu", "w v", {**XW, "v": W}, lambda x, w, v: ((x @ w).silu() * (x @ v)).square().sum(),
              lambda x, w, v: (F.silu(x @ w) * (x @ v)).square().sum()),
    _gradient("grad of gru cell", "wx wh", GRU, lambda *x: gru(*x).square().sum()),
    _gradient("grad of conv, stride 2", "x w", {"x": IMAGES, "w": FILTERS},
              lambda x, w: x.conv2d(w, stride=2, padding=1).square().sum(),
              lambda x, w: F.conv2d(x, w, stride=2, padding=1).square().sum()),
    _gradient("grad of dilated conv", "x w", {"x": IMAGES, "w": FILTERS},
              lambda x, w: x.conv2d(w, dilation=2, padding=2).square().sum(),
              lambda x, w: F.conv2d(x, w, dilation=2, padding=2).square().sum()),
    _gradient("grad of depthwise conv", "x w", {"x": IMAGES, "w": floats(32, 1, 3, 3)},
              lambda x, w: x.conv2d(w, groups=32, padding=1).square().sum(),
              lambda x, w: F.conv2d(x, w, groups=32, padding=1).square().sum()),
    _gradient("grad of grouped conv", "x w", {"x": IMAGES, "w": Input((32, 8, 3, 3), scale=0.1)},
              lambda x, w: x.conv2d(w, groups=4, padding=1).square().sum(),
              lambda x, w: F.conv2d(x, w, groups=4, padding=1).square().sum()),
    _gradient("grad of conv 1-d", "x w", {"x": floats(16, 32, 512), "w": Input((64, 32, 5), scale=0.1)},
              lambda x, w: x.conv2d(w, padding=2).square().sum(),
              lambda x, w: F.conv1d(x, w, padding=2).square().sum()),
    _gradient("grad of transposed conv", "x w", {"x": floats(8, 32, 16, 16), "w": FILTERS},
              lambda x, w: x.conv_transpose2d(w, stride=2).square().sum(),
              lambda x, w: F.conv_transpose2d(x, w, stride=2).square().sum()),
    _gradient("grad of max pool 3×3, stride 2", "x", {"x": Input((16, 32, 32, 32), distinct=True)},
              lambda x: x.max_pool2d((3, 3), stride=2, padding=1).square().sum(),
              lambda x: F.max_pool2d(x, 3, stride=2, padding=1).square().sum()),
    _gradient("grad of sums of windows", "x", {"x": floats(256, 1024)},
              lambda x: x.unfold(1, 16, 1).sum(2).square().sum()),
    _gradient("grad of bilinear upsampling", "x", {"x": floats(8, 16, 32, 32)},
              lambda x: x.interpolate((64, 64), mode="linear").square().sum(),
              lambda x: F.interpolate(x, (64, 64), mode="bilinear").square().sum()),
    _gradient("grad of scaled batch norm", "x w b", {"x": IMAGES, "w": floats(32), "b": floats(32)},
              lambda *x: (scaled_batch_norm(*x) ** 3).sum(),
              lambda x, w, b: (F.batch_norm(x, None, None, w, b, training=True) ** 3).sum()),
    _gradient("grad of group norm", "x", {"x": IMAGES}, lambda x: (our_group_norm(x) ** 3).sum(),
              lambda x: (F.group_norm(x, 8) ** 3).sum()),
    _gradient("grad of causal attention", "q k v", QKV,
              lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True).square().sum(),
              lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum()),
    _gradient("grad of masked attention", "q k v", {**QKV, "m": floats(256, 256)},
              lambda q, k, v, m: q.scaled_dot_product_attention(k, v, attn_mask=m > -1).square().sum(),
              lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m > -1).square().sum()),
    Program("attention, heads share keys", "attention",
            {"q": floats(2, 8, 256, 64), "k": floats(2, 2, 256, 64), "v": floats(2, 2, 256, 64)},
            our_shared_heads, their_shared_heads),
    Program("attention of one query", "attention",
            {"q": floats(8, 8, 1, 64), "k": floats(8, 8, 512, 64), "v": floats(8, 8, 512, 64)},
            our_attention, their_attention),
    Program("attention, 1024 positions", "attention", {name: floats(1, 4, 1024, 64) for name in "qkv"},
            our_attention, their_attention),
    Program("rotary embedding", "attention",
            {"x": floats(4, 8, 256, 64), "c": floats(256, 32), "s": floats(256, 32)}, rotated),
    Program("softmax of masked rows", "norm", {"x": floats(1024, 1024)},
            lambda x: (x > 0).where(x, -float("inf")).softmax(1),
            lambda x: torch.where(x > 0, x, -float("inf")).softmax(1)),
    Program("softmax, mask added", "norm", {"x": X, "m": X}, lambda x, m: (x + (m > 0).where(0.0, -1e9)).softmax(1),
            lambda x, m: (x + torch.where(m > 0, 0.0, -1e9)).softmax(1)),
    Program("sort of rows", "statistics", {"x": floats(256, 1024)}, lambda x: x.sort(1)[0]),
    Program("argsort of rows", "statistics", {"x": Input((256, 1024), distinct=True)}, lambda x: x.argsort(1)),
    Program("product of rows", "statistics", {"x": positive(1024, 1024)}, lambda x: x.prod(1)),
    Program("sums by segment", "statistics", {"x": floats(4096, 128), "i": places(256, 4096)},
            lambda x, i: te.Tensor.zeros(256, 128).scatter_reduce(0, i.reshape(-1, 1).expand(4096, 128), x, "sum"),
            lambda x, i: torch.zeros(256, 128).index_add(0, i, x)),
    Program("means of few rows by scatter", "statistics",
            {"x": floats(50_000, 64), "i": places(50_000, 256), "s": floats(256, 64)},
            lambda x, i, s: x.scatter_reduce(0, i.reshape(-1, 1).expand(256, 64), s, "mean")),
    Program("counts by scatter", "statistics", {"i": places(1000, 65_536)},
            lambda i: te.Tensor.zeros(1000).scatter_reduce(0, i, te.Tensor.ones(65_536), "sum"),
            lambda i: torch.zeros(1000).scatter_reduce(0, i, torch.ones(65_536), "sum")),
    Program("gather along rows", "movement", {"x": floats(1024, 1024), "i": places(1024, 1024, 256)},
            lambda x, i: x.gather(1, i)),
    Program("grouped conv", "window", {"x": IMAGES, "w": Input((32, 8, 3, 3), scale=0.1)},
            lambda x, w: x.conv2d(w, groups=4, padding=1), lambda x, w: F.conv2d(x, w, groups=4, padding=1)),
    Program("conv 7×7, stride 2", "window", {"x": floats(8, 3, 64, 64), "w": Input((32, 3, 7, 7), scale=0.1)},
            lambda x, w: x.conv2d(w, stride=2, padding=3), lambda x, w: F.conv2d(x, w, stride=2, padding=3)),
    Program("conv 3-d", "window", {"x": floats(2, 16, 16, 16, 16), "w": Input((16, 16, 3, 3, 3), scale=0.1)},
            lambda x, w: x.conv2d(w, padding=1), lambda x, w: F.conv3d(x, w, padding=1)),
    Program("bilinear upsampling", "window", {"x": floats(8, 16, 32, 32)},
            lambda x: x.interpolate((64, 64), mode="linear"), lambda x: F.interpolate(x, (64, 64), mode="bilinear")),
    # the cost of a lazy call
    Program("lazy call: x + 1", "lazy call", {"x": floats(16)}, lambda x: x + 1, counts=False, replayed=False),
    Program("lazy call: gradient", "lazy call", {"x": floats(16, 16), "w": floats(16, 16)},
            lambda x, w: (x @ w).relu().sum(), gradients=("w",), counts=False, replayed=False),
)
# fmt: on

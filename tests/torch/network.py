"""Rows for networks: convolutions, pools, interpolation, losses, norms, attention, layers, optimizers, files."""

from __future__ import annotations

import io
import tempfile
from typing import Any

import torch
import torch.nn.functional as F

from tests.torch.compare import TORCH_DTYPES, tensor_of
from tests.torch.drawing import FLOATS, WIDE, Draw
from tests.torch.rows import row
from tinyexplore import Tensor, dtypes, nn

# *** convolutions, in one to three axes ***

CONV = (F.conv1d, F.conv2d, F.conv3d)
TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


def _each(d: Draw, places: int, low: int, high: int) -> Any:
    return d.int(low, high) if d.flag() else tuple(d.int(low, high) for _ in range(places))


def _convolved(d: Draw) -> Any:
    places = d.int(1, 3)
    dtype = d.choice(*FLOATS)
    groups = d.int(1, 2)
    side = 6 if places < 3 else 4
    kernel = tuple(d.int(1, 3) for _ in range(places))
    per_group = d.int(1, 2)
    x = d.floats((d.int(1, 2), groups * per_group, *(d.int(side - 1, side) for _ in kernel)), dtype=dtype)
    w = d.floats((groups * d.int(1, 2), per_group, *kernel), dtype=dtype)
    bias = d.choice(None, d.floats((w.shape[0],), dtype=dtype))
    dilation = _each(d, places, 1, 2) if places < 3 else 1
    return x, w, bias, _each(d, places, 1, 3), _each(d, places, 0, 2), dilation, groups


row(
    "conv2d image_conv2d",
    _convolved,
    lambda x, w, b, s, p, g, n: (x.conv2d(w, b, n, s, g, p), x.image_conv2d(w, b, n, s, g, p)),
    lambda x, w, b, s, p, g, n: (CONV[w.ndim - 3](x, w, b, s, p, g, n),) * 2,
    loose=3,
)
row(
    "conv2d",
    lambda d: (
        d.floats((1, 2, 5, 6), dtype="float32"),
        d.floats((2, 2, 2, 3), dtype="float32"),
        tuple(d.int(0, 2) for _ in range(4)),
    ),
    lambda x, w, p: x.conv2d(w, padding=p),
    lambda x, w, p: F.conv2d(F.pad(x, p), w),
    loose=3,
)
row(
    "conv2d",
    lambda d: (
        d.floats((1, 2, 5, 6), dtype="float32"),
        d.floats((2, 2, d.int(1, 4), d.int(1, 3)), dtype="float32"),
        d.choice("same", "valid"),
        d.int(1, 1),
    ),
    lambda x, w, p, g: x.conv2d(w, padding=p, dilation=g),
    lambda x, w, p, g: F.conv2d(x, w, padding=p, dilation=g),
    loose=3,
)


def _transposed(d: Draw) -> Any:
    places = d.int(1, 3)
    dtype = d.choice(*WIDE)
    groups = d.int(1, 2)
    stride = d.int(1, 3)
    dilation = d.int(1, 2)
    kernel = tuple(d.int(2, 3) for _ in range(places))
    x = d.floats((d.int(1, 2), groups * d.int(1, 2), *(d.int(2, 4) for _ in kernel)), dtype=dtype)
    w = d.floats((x.shape[1], d.int(1, 2), *kernel), dtype=dtype)
    bias = d.choice(None, d.floats((w.shape[1] * groups,), dtype=dtype))
    extra = d.int(0, max(stride, dilation) - 1)
    return x, w, bias, stride, d.int(0, 1), extra, groups, dilation


row(
    "conv_transpose2d",
    _transposed,
    lambda x, w, b, s, p, o, n, g: x.conv_transpose2d(w, b, n, s, g, p, o),
    lambda x, w, b, s, p, o, n, g: TRANSPOSED[w.ndim - 3](x, w, b, s, p, o, n, g),
    loose=3,
)


# *** pools ***


def _pooled(d: Draw, kinds: Any = FLOATS) -> Any:
    places = d.int(1, 3)
    kernel = tuple(d.int(1, 3) for _ in range(places))
    x = d.floats((d.int(1, 2), d.int(1, 2), *(d.int(3, 6 if places < 3 else 4) for _ in kernel)), dtype=kinds)
    padding = tuple(d.int(0, size // 2) for size in kernel)
    stride = d.choice(None, tuple(d.int(1, 3) for _ in kernel))
    return x, kernel, stride, padding, d.flag()


MAX_POOL = (F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVG_POOL = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)
row(
    "max_pool2d",
    lambda d: (*_pooled(d), d.choice(1, 1, 2)),
    lambda x, k, s, p, c, g: x.max_pool2d(k, s, g if _fits(x, k, p, g) else 1, p, c),
    lambda x, k, s, p, c, g: MAX_POOL[len(k) - 1](x, k, s, p, g if _fits(x, k, p, g) else 1, c),
)
row(
    "max_pool2d",
    lambda d: _pooled(d),
    lambda x, k, s, p, c: x.max_pool2d(k, s, 1, p, c, return_indices=True),
    lambda x, k, s, p, c: MAX_POOL[len(k) - 1](x, k, s, p, 1, c, True),
    counts=True,
)
row(
    "avg_pool2d",
    lambda d: (*_pooled(d, WIDE), d.flag()),
    lambda x, k, s, p, c, n: x.avg_pool2d(k, s, 1, p, n, c),
    lambda x, k, s, p, c, n: AVG_POOL[len(k) - 1](x, k, s, p, c, n),
    loose=2,
)


def _fits(x: Any, kernel: Any, padding: Any, gap: int) -> bool:
    return all(have + 2 * p >= gap * (k - 1) + 1 for have, k, p in zip(x.shape[2:], kernel, padding))


def _sides(d: Draw, places: int) -> Any:
    return tuple(d.int(2, 5) for _ in range(places))


UNPOOL = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)


def _unpooled(x: Any, places: int, size: Any) -> Any:
    kernel = (2,) * places
    if isinstance(x, Tensor):
        found, spots = x.max_pool2d(kernel, return_indices=True)
        return found.max_unpool2d(spots, kernel, output_size=size)
    found, spots = MAX_POOL[places - 1](x, kernel, return_indices=True)
    return UNPOOL[places - 1](found, spots, kernel, output_size=size)


row(
    "max_unpool2d",
    lambda d: (d.floats((d.int(1, 2), 2, *_sides(d, n := d.int(1, 3))), dtype=WIDE), n),
    lambda x, n: _unpooled(x, n, x.shape[2:]),
    lambda x, n: _unpooled(x, n, x.shape[2:]),
)


# *** interpolation ***


def _resampled(d: Draw) -> Any:
    places = d.int(1, 3)
    mode = d.choice("linear", "linear", "nearest", "nearest-exact", "area", "bicubic")
    if mode == "bicubic":
        places = 2
    x = d.floats((d.int(1, 2), d.int(1, 2), *(d.int(1, 4) for _ in range(places))), dtype=WIDE)
    return x, tuple(d.int(1, 7) for _ in range(places)), mode, d.flag() if mode in ("linear", "bicubic") else None


def _torch_mode(mode: str, places: int) -> str:
    return ("linear", "bilinear", "trilinear")[places - 1] if mode == "linear" else mode


row(
    "interpolate",
    _resampled,
    lambda x, s, m, a: x.interpolate(s, m, bool(a)),
    lambda x, s, m, a: F.interpolate(x, s, mode=_torch_mode(m, len(s)), align_corners=a),
    loose=5,
)


# *** losses ***

REDUCTIONS = ("mean", "sum", "none")
row(
    "binary_crossentropy",
    lambda d: (
        d.floats(s := d.shape(empty=False), 0.05, 0.95, t := d.choice(*WIDE)),
        d.floats(s, 0, 1, t, taped=False),
        d.choice(*REDUCTIONS),
    ),
    lambda x, y, r: x.binary_crossentropy(y, r),
    lambda x, y, r: F.binary_cross_entropy(x, y, reduction=r),
    loose=2,
)
row(
    "binary_crossentropy_logits",
    lambda d: (
        d.floats(s := d.shape(empty=False), -9, 9, t := d.choice(*WIDE)),
        d.floats(s, 0, 1, t, taped=False),
        d.choice(*REDUCTIONS),
        d.choice(None, d.floats(s[-1:], 0.5, 4, t, taped=False)),
    ),
    lambda x, y, r, w: x.binary_crossentropy_logits(y, r, w),
    lambda x, y, r, w: F.binary_cross_entropy_with_logits(x, y, reduction=r, pos_weight=w),
    loose=2,
)


def _labeled(d: Draw, dtype: Any = WIDE) -> Any:
    """Scores (batch, classes, …), and a class for each."""
    classes = d.int(1, 5)
    batch, rest = d.int(1, 4), d.shape(0, 2, 3, empty=False)
    return d.floats((batch, classes, *rest), dtype=dtype), d.ints((batch, *rest), 0, classes - 1, "int64")


row(
    "cross_entropy",
    lambda d: (*_labeled(d, FLOATS), d.choice(*REDUCTIONS), d.choice(0.0, 0.1, 1.0)),
    lambda x, y, r, s: x.cross_entropy(y, r, s),
    lambda x, y, r, s: F.cross_entropy(x, y, reduction=r, label_smoothing=s),
    loose=2,
)
row(
    "cross_entropy",
    lambda d: (
        d.floats(s := (d.int(1, 3), d.int(1, 4)), dtype="float32"),
        d.floats(s, 0, 1, "float32", taped=False),
        d.choice(*REDUCTIONS),
        d.choice(0.0, 0.2),
    ),
    lambda x, y, r, s: x.cross_entropy(y, r, s),
    lambda x, y, r, s: F.cross_entropy(x, y, reduction=r, label_smoothing=s),
    loose=2,
)
row(
    "cross_entropy",
    lambda d: (d.floats((d.int(1, 4),), dtype="float32"), d.ints((), 0, 0, "int64")),
    lambda x, y: x.cross_entropy(y),
    F.cross_entropy,
)
row(
    "nll_loss",
    lambda d: (
        *(found := _labeled(d)),
        d.choice(None, d.floats((found[0].shape[1],), 0.5, 2, found[0].dtype, taped=False)),
        d.choice(None, 0),
        d.choice(*REDUCTIONS),
    ),
    lambda x, y, w, i, r: x.nll_loss(y, w, i, r),
    lambda x, y, w, i, r: F.nll_loss(x, y, w, ignore_index=-100 if i is None else i, reduction=r),
    loose=2,
)
row(
    "sparse_categorical_crossentropy",
    lambda d: (
        d.floats((n := d.int(2, 5), c := d.int(1, 4)), dtype=WIDE),
        d.ints((n,), 0, c - 1, "int64"),
        d.choice(-1, 0),
        d.choice(0.0, 0.3),
        d.choice(*REDUCTIONS),
    ),
    lambda x, y, i, s, r: x.sparse_categorical_crossentropy(y, i, s, r),
    lambda x, y, i, s, r: F.cross_entropy(x, y, ignore_index=i, label_smoothing=s, reduction=r),
    loose=2,
)


# *** attention ***


def _attention(d: Draw) -> Any:
    dtype = d.choice(*WIDE, "float16", "bfloat16")
    batch = d.shape(0, 1, 2, empty=False)
    heads, shared = d.choice((1, 1), (2, 2), (4, 2), (3, 1))
    grouped = heads != shared
    queries, keys, width, out = d.int(1, 5), d.int(1, 5), d.int(1, 4), d.int(1, 4)
    kind = d.choice("none", "bool", "float", "causal")
    shape = d.choice((queries, keys), (1, keys))
    mask = None
    if kind == "bool":
        mask = d.bools(shape)
        mask.values[..., 0] = True  # where nothing is kept PyTorch has 0, and the definition NaN
    elif kind == "float":
        mask = d.floats(shape, dtype=dtype, taped=False)
    q = d.floats((*batch, heads, queries, width), dtype=dtype)
    k, v = d.floats((*batch, shared, keys, width), dtype=dtype), d.floats((*batch, shared, keys, out), dtype=dtype)
    return q, k, v, mask, kind == "causal", grouped


row(
    "scaled_dot_product_attention",
    _attention,
    lambda q, k, v, m, c, g: q.scaled_dot_product_attention(k, v, m, is_causal=c, enable_gqa=g),
    lambda q, k, v, m, c, g: F.scaled_dot_product_attention(q, k, v, m, is_causal=c, enable_gqa=g),
    loose=4,
)


# *** norms ***

row(
    "layernorm",
    lambda d: (
        d.floats((*d.shape(1, 2, empty=False), d.int(2, 5)), dtype=WIDE),
        d.choice(1, 2),
        d.choice(1e-5, 0.1),
    ),
    lambda x, n, e: x.layernorm(tuple(range(x.ndim - n, x.ndim)), e),
    lambda x, n, e: F.layer_norm(x, x.shape[x.ndim - n :], eps=e),
    loose=40,
)
row(
    "batchnorm",
    lambda d: (
        d.floats((d.int(2, 3), c := d.int(1, 3), *d.shape(0, 2, 3, empty=False)), dtype=(t := d.choice(*WIDE))),
        *(d.floats((c,), 0.5, 2, t) for _ in range(4)),
    ),
    lambda x, w, b, m, v: x.batchnorm(w, b, m, (v + 1e-5).rsqrt()),
    lambda x, w, b, m, v: (x - _spread(m, x)) * _spread((v + 1e-5).rsqrt() * w, x) + _spread(b, x),
    loose=4,
)


def _spread(line: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return line.reshape(1, -1, *(1,) * (x.ndim - 2))


# *** layers: with PyTorch's weights ***


def _layer(names: str, inputs: Any, ours: Any, theirs: Any, training: bool = True, **how: Any) -> None:
    """What is drawn first is the input, the rest makes the layer; both get the same weights, and the running
    statistics are compared as well."""

    def made(x: Any, *arguments: Any) -> torch.nn.Module:
        layer = theirs(*arguments)
        generator = torch.Generator().manual_seed(0)
        for tensor in (*layer.parameters(), *(one for one in layer.buffers() if one.dtype is torch.float32)):
            tensor.data.uniform_(0.2, 1.2, generator=generator)
        return layer.train(training)

    def there(x: Any, *arguments: Any) -> Any:
        layer = made(x, *arguments)
        result = layer(x)
        return *_listed(result), *(
            one.detach() for name, one in sorted(layer.state_dict().items()) if "running" in name
        )

    def here(x: Any, *arguments: Any) -> Any:
        wanted = made(x, *arguments).state_dict()
        layer = ours(*arguments)
        state = nn.state.get_state_dict(layer)
        for name, tensor in state.items():
            tensor.replace(tensor_of(wanted[name], tensor.device))
        with Tensor.train(training):
            result = layer(x)
        return *_listed(result), *(one for name, one in sorted(state.items()) if "running" in name)

    row(names, inputs, here, there, **how)


def _listed(found: Any) -> Any:
    return found if isinstance(found, tuple) else (found,)


def _image(d: Draw, channels: int, places: int = 2) -> Any:
    return d.floats((d.int(2, 3), channels, *(d.int(3, 5) for _ in range(places))), dtype="float32")


def _geometry(d: Draw, places: int) -> Any:
    """Input, channels, kernel, stride, padding, dilation, groups, bias."""
    groups = d.int(1, 2)
    return (
        _image(d, 2 * groups, places),
        *(2 * groups, groups * d.int(1, 2), d.int(1, 3), d.int(1, 2), d.int(0, 1)),
        *(1, groups, d.flag()),
    )


def _transposing(layer: Any) -> Any:
    """With the arguments in PyTorch's order made from those of a convolution."""
    return lambda i, o, k, s, p, g, n, b: layer(i, o, k, s, p, s - 1, **{"groups": n, "bias": b, "dilation": g})


_layer(
    "Linear",
    lambda d: (d.floats((*d.shape(0, 2), n := d.int(1, 4)), dtype="float32"), n, d.int(1, 4), d.flag()),
    nn.Linear,
    torch.nn.Linear,
)
_layer("Conv1d", lambda d: _geometry(d, 1), nn.Conv1d, torch.nn.Conv1d, loose=3)
_layer("Conv2d", lambda d: _geometry(d, 2), nn.Conv2d, torch.nn.Conv2d, loose=3)
_layer(
    "ConvTranspose1d",
    lambda d: _geometry(d, 1),
    _transposing(nn.ConvTranspose1d),
    _transposing(torch.nn.ConvTranspose1d),
    loose=3,
)
_layer(
    "ConvTranspose2d",
    lambda d: _geometry(d, 2),
    _transposing(nn.ConvTranspose2d),
    _transposing(torch.nn.ConvTranspose2d),
    loose=3,
)
_BATCH_NORMS = {1: torch.nn.BatchNorm1d, 2: torch.nn.BatchNorm2d, 3: torch.nn.BatchNorm3d}
for _training in (True, False):
    for _places in (1, 2, 3):
        _layer(
            "BatchNorm BatchNorm2d BatchNorm3d",
            lambda d, n=_places: (
                _image(d, c := d.int(1, 3), n),
                c,
                d.choice(1e-5, 0.1),
                d.choice(0.1, 0.4),
                d.flag(),
                d.flag(),
            ),
            lambda c, e, m, a, t: nn.BatchNorm(c, e, a, t, m),
            lambda c, e, m, a, t, n=_places: _BATCH_NORMS[n](c, e, m, a, t),
            training=_training,
            loose=20,
        )
_layer(
    "LayerNorm",
    lambda d: (
        d.floats((2, *(s := d.shape(1, 2, empty=False)), 3), dtype="float32"),
        (*s, 3),
        d.choice(1e-5, 0.1),
        d.flag(),
    ),
    nn.LayerNorm,
    torch.nn.LayerNorm,
    loose=20,
)
_layer(
    "GroupNorm",
    lambda d: (_image(d, 4), d.choice(1, 2, 4), 4, d.choice(1e-5, 0.1), d.flag()),
    nn.GroupNorm,
    torch.nn.GroupNorm,
    loose=20,
)
_layer(
    "InstanceNorm",
    lambda d: (_image(d, 3), 3, d.choice(1e-5, 0.1)),
    nn.InstanceNorm,
    lambda c, e: torch.nn.InstanceNorm2d(c, e, affine=True),
    loose=20,
)
_layer(
    "RMSNorm",
    lambda d: (
        d.floats((*d.shape(0, 2), n := d.int(1, 5)), dtype="float32"),
        n,
        d.choice(1e-6, 0.1),
        d.choice(True, False),
    ),
    nn.RMSNorm,
    torch.nn.RMSNorm,
    loose=4,
)
_layer(
    "Embedding",
    lambda d: (d.ints(d.shape(), 0, n - 1 if (n := d.int(1, 5)) else 0, "int64"), n, d.int(1, 4)),
    nn.Embedding,
    torch.nn.Embedding,
)
_layer(
    "LSTMCell",
    lambda d: (d.floats((d.int(1, 3), n := d.int(1, 4)), dtype="float32"), n, d.int(1, 4), d.flag()),
    nn.LSTMCell,
    torch.nn.LSTMCell,
    loose=3,
)
row(
    "LayerNorm2d",
    lambda d: (d.floats((2, 3, 2, 4), dtype="float32"), d.choice(1e-5, 0.1)),
    lambda x, e: nn.LayerNorm2d(3, e)(x),
    lambda x, e: F.layer_norm(x.permute(0, 2, 3, 1), (3,), eps=e).permute(0, 3, 1, 2),
    loose=20,
)
row(
    "sequential",
    lambda d: d.floats(),
    lambda x: x.sequential([Tensor.exp, Tensor.sin]),
    lambda x: x.exp().sin(),
    loose=9,
)
row(
    "dropout",
    lambda d: (d.floats(special=True), d.choice(0.0, 0.5, 1.0)),
    lambda x, p: x.dropout(p),
    lambda x, p: F.dropout(x, p, training=False),
)


# *** optimizers: three steps on the same weights and gradients ***


def _steps(names: str, ours: Any, theirs: Any, options: Any) -> None:
    def there(x: Any, slope: Any, how: Any) -> Any:
        x = x.detach().clone().requires_grad_()
        optimizer = theirs([x], how)
        for number in range(3):
            optimizer.zero_grad()
            ((x * slope).sum() + (x**2).sum() * number).backward()
            optimizer.step()
        return x.detach()

    def here(x: Any, slope: Any, how: Any) -> Any:
        x = x.detach().clone().realize()
        x.requires_grad = True
        optimizer = ours([x], how)
        with Tensor.train():
            for number in range(3):
                optimizer.zero_grad()
                ((x * slope).sum() + (x**2).sum() * number).backward()
                optimizer.step()
        return x.detach()

    def inputs(d: Draw) -> Any:
        return d.floats(s := d.shape(empty=False), dtype="float32"), d.floats(s, dtype="float32"), options(d)

    row(names, inputs, here, there, gradient=False, loose=10)


_steps(
    "SGD Optimizer backward",
    lambda ps, o: nn.optim.SGD(ps, 0.1, **o),
    lambda ps, o: torch.optim.SGD(ps, 0.1, **o),
    lambda d: (
        {"momentum": 0.9, "nesterov": d.flag(), "weight_decay": d.choice(0.0, 0.1)}
        if d.flag()
        else {"weight_decay": 0.2}
    ),
)
_steps(
    "Adam",
    lambda ps, o: nn.optim.Adam(ps, 0.1, *o),
    lambda ps, o: torch.optim.Adam(ps, 0.1, o[:2], o[2]),
    lambda d: (d.choice(0.9, 0.5), d.choice(0.999, 0.9), d.choice(1e-8, 1e-3)),
)
_steps(
    "AdamW",
    lambda ps, o: nn.optim.AdamW(ps, 0.1, *o),
    lambda ps, o: torch.optim.AdamW(ps, 0.1, o[:2], o[2], o[3]),
    lambda d: (d.choice(0.9, 0.5), d.choice(0.999, 0.9), d.choice(1e-8, 1e-3), d.choice(0.01, 0.3)),
)


# *** files, and what a dtype says of itself ***


def _stored(x: torch.Tensor, y: torch.Tensor) -> bytes:
    file = io.BytesIO()
    torch.save({"x": x.detach(), "y": y.detach(), "part": x.detach().T[1:]}, file)
    return file.getvalue()


def _load(x: Tensor, y: Tensor, data: bytes) -> Any:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = nn.state.torch_load(file.name)
        return [found[name].to(x.device).contiguous().realize() for name in ("x", "y", "part")]


row(
    "torch_load",
    lambda d: (d.floats(d.shape(2, 2, empty=False), dtype=WIDE + ("float16", "bfloat16")), d.ints()),
    lambda x, y: _load(x, y, _stored(_as_torch(x), _as_torch(y))),
    lambda x, y: (x.detach(), y, x.detach().T[1:]),
    gradient=False,
    signs=True,
)


def _as_torch(x: Tensor) -> torch.Tensor:
    if x.dtype is dtypes.bfloat16:
        return torch.tensor(x.detach().bitcast(dtypes.int16).numpy()).view(torch.bfloat16)
    return torch.tensor(x.detach().numpy())


def _limits(name: str, ours: bool) -> Any:
    if ours:
        kind = getattr(dtypes, name)
        least = dtypes.min(kind)
        if dtypes.is_float(kind):
            return kind.itemsize, True, dtypes.is_unsigned(kind)
        return kind.itemsize, False, dtypes.is_unsigned(kind), least, dtypes.max(kind)
    kind = TORCH_DTYPES[name]
    if kind.is_floating_point:
        return kind.itemsize, True, False
    if kind is torch.bool:
        return 1, False, False, False, True
    limits = torch.iinfo(kind)
    return kind.itemsize, False, not kind.is_signed, limits.min, limits.max


_ALL = " ".join(name for name in TORCH_DTYPES if not name.startswith("fp8"))
row(
    f"{_ALL} dtypes.min dtypes.max is_float is_int is_unsigned",
    lambda d: d.choice(*_ALL.split()),
    lambda n: _limits(n, True),
    lambda n: _limits(n, False),
)

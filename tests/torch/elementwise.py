"""Rows for elementwise operations: functions, arithmetic, comparisons, bits, casts."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from tests.torch.compare import TORCH_DTYPES
from tests.torch.drawing import FLOATS, FP8S, INTS, WIDE, Draw, Input
from tests.torch.rows import row
from tinyexplore import Tensor

# *** functions of one number ***

EACH = {"scaled": False}


def _function(name: str, theirs: Any = None, low: float = -3, high: float = 3, **how: Any) -> None:
    """`x.name()` for all floats between two bounds, special values, and ints (which become floats)."""

    def inputs(d: Draw) -> Any:
        return d.floats(low=low, high=high, special=True) if d.int(0, 4) else d.ints(low=int(low), high=int(high))

    row(name, inputs, lambda x: getattr(x, name)(), theirs or getattr(torch, name), **{**EACH, **how})


_function("exp", loose=2)
_function("exp2", loose=2)
_function("log", low=0.01, high=9)
_function("log2", low=0.01, high=9)
_function("log10", low=0.01, high=9)
_function("sqrt", low=0, high=9, signs=True)
_function("rsqrt", low=0.1, high=9)
_function("sin", signs=True)
_function("cos")
_function("tan", low=-1, high=1, loose=2)
_function("tanh", signs=True)
_function("sinh", loose=2)
_function("cosh", loose=2)
_function("asinh", signs=True)
_function("acosh", low=1.1, high=9, loose=2)
_function("atanh", low=-0.9, high=0.9, loose=4)
_function("asin", low=-0.9, high=0.9, loose=3)
_function("acos", low=-0.9, high=0.9, loose=3)
_function("atan", signs=True)
_function("erf", signs=True)
_function("sigmoid")
_function("reciprocal", low=0.5)


def _activation(name: str, theirs: Any, low: float = -5, high: float = 5, special: bool = True, **how: Any) -> None:
    """`x.name(…)` for floats; `theirs` takes what is drawn beside the numbers, too."""
    row(
        name,
        lambda d: d.floats(low=low, high=high, special=special),
        lambda x: getattr(x, name)(),
        theirs,
        **EACH,
        **how,
    )


_activation("relu", F.relu)
_activation("relu6", F.relu6)
_activation("logsigmoid", F.logsigmoid, loose=2)
row(
    "hardsigmoid",
    lambda d: d.floats(special=True, dtype=("float32", "float16")),  # PyTorch has 1/6 as a float32
    lambda x: x.hardsigmoid(),
    F.hardsigmoid,
    twice=False,
    **EACH,
)
_activation("silu", F.silu, loose=2)
_activation("swish", F.silu, loose=2)
_activation("gelu", lambda x: F.gelu(x, approximate="tanh"), loose=3, special=False)
_activation("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x), loose=3, special=False)
_activation("mish", F.mish, loose=3)
_activation("softsign", F.softsign, special=False)
row(
    "hardswish",
    lambda d: d.floats(low=-5, high=5, dtype=WIDE),  # x + 3 of fewer bits meets the corners
    lambda x: x.hardswish(),
    F.hardswish,
    loose=2,
    **EACH,
)
row(
    "selu",
    lambda d: d.floats(special=True),
    lambda x: x.selu(1.6732632423543772848170429916717, 1.0507009873554804934193349852946),
    F.selu,
    loose=2,
    **EACH,
)
row("softplus", lambda d: (d.floats(low=-9, high=9), d.choice(1, 0.5, 2.0)), lambda x, b: x.softplus(b), F.softplus)
row("elu", lambda d: (d.floats(special=True), d.choice(1.0, 0.5, 2.0)), lambda x, a: x.elu(a), F.elu, **EACH, loose=2)
row(
    "celu", lambda d: (d.floats(special=True), d.choice(1.0, 0.5, 2.0)), lambda x, a: x.celu(a), F.celu, **EACH, loose=2
)
row(
    "leakyrelu leaky_relu",
    lambda d: (d.floats(special=True), d.choice(0.01, 0.5, 0.0)),
    lambda x, a: (x.leakyrelu(a), x.leaky_relu(a)),
    lambda x, a: (F.leaky_relu(x, a), F.leaky_relu(x, a)),
    **EACH,
)
row(
    "hardtanh",
    lambda d: (d.floats(special=True), d.choice(-1, -0.5), d.choice(1, 2.5)),
    lambda x, a, b: x.hardtanh(a, b),
    F.hardtanh,
    **EACH,
)


# *** rounding, signs, kinds of numbers ***

for _name in ("floor", "ceil", "trunc", "round"):
    _function(_name, signs=True)
row(
    "abs",
    lambda d: d.any(special=True) if d.flag() else d.ints(extreme=True),
    lambda x: x.abs(),
    lambda x: x if x.dtype is torch.bool else torch.abs(x),
    signs=True,
    **EACH,
)
row("sign", lambda d: d.floats() if d.flag() else d.ints(), lambda x: x.sign(), signs=True)
row(
    "neg __neg__",
    lambda d: d.floats(special=True) if d.flag() else d.ints(extreme=True),
    lambda x: (x.neg(), -x),
    signs=True,
    **EACH,
)
row("square", lambda d: d.floats(special=True) if d.flag() else d.ints(extreme=True), lambda x: x.square(), **EACH)
row("isnan isinf isfinite", lambda d: d.any(special=True), lambda x: (x.isnan(), x.isinf(), x.isfinite()))
row("logical_not", lambda d: d.any(special=True), lambda x: x.logical_not())
row(
    "copysign",
    lambda d: d.pair(d.floats, special=True, dtype=("float32", "float64", "float16")),
    lambda x, y: x.copysign(y),
    signs=True,
    **EACH,
)


# *** two numbers ***


def _numbers(d: Draw, special: bool = True) -> tuple[Input, Input]:
    """Any two types that broadcast."""
    full = d.shape(1)
    return d.any(d.broadcast(full, 1), special=special), d.any(d.broadcast(full, 1), special=special)


def _scalar(d: Draw) -> Any:
    """A tensor and a Python number, which is weak."""
    x = d.any(special=True)
    return x, d.choice(2, -3, 0.5, -1.25) if x.dtype != "uint8" else d.choice(2, 3, 0.5, 1.25)


def _both(d: Draw) -> Any:
    return _numbers(d) if d.flag() else _scalar(d)


def _is_bool(*xs: Any) -> bool:
    return all(isinstance(x, torch.Tensor) and x.dtype is torch.bool for x in xs)


row("add __add__ __radd__", _both, lambda x, y: (x + y, y + x), counts=True, **EACH)
row("mul __mul__ __rmul__", _both, lambda x, y: (x * y, y * x), counts=True, **EACH)


def _no_bools(d: Draw) -> Any:
    """Two numbers; PyTorch and this library both refuse the difference of bools."""
    x, y = _both(d)
    return (x, d.floats(dtype="float32") if isinstance(y, Input) else y) if x.dtype == "bool" else (x, y)


def _subtracted(d: Draw) -> Any:
    x, y = _numbers(d)
    if "bool" in (x.dtype, y.dtype):
        return d.pair(d.ints, extreme=True)
    return x, y


row("sub __sub__", _subtracted, lambda x, y: (x - y, x.sub(y)), **EACH)
row("__rsub__", lambda d: (d.floats(), 2), lambda x, y: y - x, **EACH)
row("div __truediv__", _both, lambda x, y: (x / y, x.div(y)), **EACH)
row("__rtruediv__", lambda d: (d.floats(low=0.5), 2), lambda x, y: y / x, **EACH)
row(
    "div",
    lambda d: (d.ints(low=-50, high=50, dtype="int32"), d.choice(-7, -2, 3, 5)),
    lambda x, y: x.div(y, upcast=False),
    lambda x, y: torch.div(x, y, rounding_mode="trunc"),
)


def _nonzero(d: Draw) -> tuple[Input, Input]:
    """Ints and divisors of either sign, none 0."""
    full = d.shape(1)
    dtype = d.choice(*INTS)
    y = d.ints(d.broadcast(full, 1), dtype=dtype)
    x = d.ints(d.broadcast(full, 1), dtype=dtype, extreme=True)
    return x, Input(y.values + (y.values == 0).astype(y.values.dtype), dtype)


def _quotients(d: Draw) -> tuple[Input, Input]:
    dtype = d.choice(*FLOATS)
    full = d.shape()
    special = d.flag()
    x, y = (d.floats(d.broadcast(full), low, high, dtype, special, not special) for low, high in ((-9, 9), (0.5, 3)))
    # of a quotient beyond 2²⁹ no remainder is kept
    x = Input(
        np.where(np.isfinite(x.values) & (np.abs(x.values) > 1e5), x.values.dtype.type(7), x.values), dtype, x.taped
    )
    y = Input(np.where(np.abs(y.values) < 1e-20, y.values.dtype.type(0), y.values), dtype, y.taped)
    return x, (Input(-y.values, dtype, y.taped) if d.flag() else y)


row(
    "div",
    lambda d: (*d.choice(_quotients, _nonzero)(d), d.choice(None, "trunc", "floor")),
    lambda x, y, mode: x.div(y, rounding_mode=mode),
    lambda x, y, mode: torch.div(x, y, rounding_mode=mode),
)
row(
    "__floordiv__ __mod__ mod fmod",
    _nonzero,
    lambda x, y: (x // y, x % y, x.mod(y), x.fmod(y)),
    lambda x, y: (x // y, x % y, x % y, torch.fmod(x, y)),
)
row("mod", _quotients, lambda x, y: x.mod(y), torch.remainder, loose=4)
row("fmod", _quotients, lambda x, y: x.fmod(y), torch.fmod, loose=4)
row("__floordiv__", _quotients, lambda x, y: x // y, gradient=False)
row(
    "pow __pow__",
    lambda d: (d.floats(low=0.1), d.choice(2, 3, 0.5, -1, -2, 0, 1, 2.5, -0.5)),
    lambda x, y: (x**y, x.pow(y)),
    loose=3,
    **EACH,
)
row("pow", lambda d: d.pair(d.floats, low=0.2, high=2.5, dtype=WIDE), lambda x, y: x.pow(y), loose=4, **EACH)
row(
    "pow",
    lambda d: d.pair(d.floats, special=True, dtype=("float32", "float64")),
    lambda x, y: x**y,
    gradient=False,
    loose=3,
    **EACH,
)
row("pow", lambda d: (d.ints(), d.choice(0, 1, 2, 3, 5)), lambda x, y: x**y)
row("pow", lambda d: d.pair(d.ints, low=0, high=9, mixed=False), lambda x, y: x**y)
row("__rpow__", lambda d: (d.floats(), d.choice(2, 0.5, 3.0)), lambda x, y: y**x, loose=3, **EACH)
row("maximum minimum", _numbers, lambda x, y: (x.maximum(y), x.minimum(y)), **EACH)
row(
    "maximum minimum",
    lambda d: (d.ints(dtype="int32", low=-2, high=2), d.ints((), dtype="int32", low=-2, high=2)),
    lambda x, y: (x.maximum(y), x.minimum(y)),
)
row("maximum minimum", lambda d: d.pair(_few_floats(d)), lambda x, y: (x.maximum(y), x.minimum(y)))


def _few_floats(d: Draw) -> Any:
    """A maker of whole numbers as floats: many are equal, and share their gradient."""

    def make(shape: Any, dtype: Any = None) -> Input:
        found = d.ints(shape, -2, 2, "int32")
        return Input(found.values.astype("float32"), "float32", True)

    return make


row("__lt__ __le__ __gt__ __ge__ __eq__ __ne__", _both, lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y))
row(
    "isclose",
    lambda d: (*d.pair(d.floats, special=True, mixed=False), d.choice(1e-5, 0.5), d.choice(1e-8, 0.3), d.flag()),
    lambda x, y, r, a, n: x.isclose(y, r, a, n),
    lambda x, y, r, a, n: torch.isclose(x, y, r, a, n),
)
row(
    "allclose",
    lambda d: (*d.pair(d.ints, mixed=False, low=0, high=1), d.choice(0.0, 1.0)),
    lambda x, y, a: x.allclose(y, atol=a),
    lambda x, y, a: torch.allclose(*torch.broadcast_tensors(x, y), atol=a),
)
row(
    "logaddexp",
    lambda d: d.pair(d.floats, special=True, mixed=False, dtype=("float32", "float64")),
    lambda x, y: x.logaddexp(y),
    torch.logaddexp,
    loose=2,
    **EACH,
)
row(
    "lerp",
    lambda d: (
        (*d.pair(d.floats, mixed=False, dtype="float32"), 0.25)
        if d.flag()
        else (*d.pair(d.floats, mixed=False, dtype="float64"), d.floats((), 0, 1, "float64"))
    ),
    lambda x, y, w: x.lerp(y, w),
)
row(
    "clip clamp",
    lambda d: (d.floats(special=True) if d.flag() else d.ints(), d.choice(-2, None, -1), d.choice(1, 2)),
    lambda x, a, b: (x.clip(a, b), x.clamp(a, b)),
    **EACH,
)
row(
    "clip",
    lambda d: (d.floats(low=0, high=5, dtype="float32"), d.floats((), -2, 1, "float32"), d.floats((), 1, 3, "float32")),
    lambda x, a, b: x.clip(a, b),
)


# *** choice ***

row(
    "where",
    lambda d: (d.bools(s := d.shape(1)), d.any(d.broadcast(s, 1)), d.any(d.broadcast(s, 1), special=True)),
    lambda c, x, y: c.where(x, y),
    torch.where,
    signs=True,
    **EACH,
)
row("where", lambda d: (d.bools(s := d.shape()), d.floats(s), 2.0), lambda c, x, y: c.where(x, y), torch.where)
row(
    "masked_fill",
    lambda d: (d.floats(s := d.shape()), d.bools(s if d.flag() else d.broadcast(s)), d.choice(0.0, -float("inf"), 3.0)),
    lambda x, m, v: x.masked_fill(m, v),
    signs=True,
)


# *** bits ***


def _bits(d: Draw) -> Any:
    return (d.bools(s := d.shape(1)), d.bools(d.broadcast(s, 1))) if not d.int(0, 3) else d.pair(d.ints, extreme=True)


row("bitwise_and __and__", _bits, lambda x, y: (x & y, x.bitwise_and(y)))
row("bitwise_or __or__", _bits, lambda x, y: (x | y, x.bitwise_or(y)))
row(
    "xor bitwise_xor __xor__",
    _bits,
    lambda x, y: (x ^ y, x.xor(y), x.bitwise_xor(y)),
    lambda x, y: (x ^ y, x ^ y, x ^ y),
)
row(
    "bitwise_not __invert__", lambda d: d.ints(extreme=True) if d.flag() else d.bools(), lambda x: (x.bitwise_not(), ~x)
)
row(
    "__rand__ __ror__ __rxor__",
    lambda d: (d.ints(extreme=True), d.choice(1, 6, 127)),
    lambda x, y: (y & x, y | x, y ^ x),
)
row(
    "lshift __lshift__ rshift __rshift__",
    lambda d: (d.ints(extreme=True), d.int(0, 7)),
    lambda x, n: (x.lshift(n), x << n, x.rshift(n), x >> n),
    lambda x, n: (x << n, x << n, x >> n, x >> n),
)
row(
    "lshift rshift",
    lambda d: (d.ints(s := d.shape(), dtype=(k := d.choice(*INTS)), extreme=True), d.ints(s, 0, 7, k)),
    lambda x, n: (x << n, x >> n),
)


# *** casts ***

CASTS = (*FLOATS, *INTS, "bool", *FP8S)


def _cast_inputs(d: Draw) -> Any:
    """Values that the other type has room for: out of range the result is undefined, except for ints, which wrap."""
    to, kind = d.choice(*CASTS), d.int(0, 3)
    if kind == 0:
        return d.ints(extreme=to in INTS or to == "bool", low=-100 if to != "uint8" else 0, high=100), to
    if kind == 1:
        return d.bools(), to
    if to in INTS:
        return d.floats(low=0 if to == "uint8" else -99, high=99, dtype=(*FLOATS, *FP8S)), to
    special = to in FLOATS or to == "bool"
    return d.floats(low=-400, high=400, dtype=(*FLOATS, "fp8e4m3"), special=special), to


row("cast", _cast_inputs, lambda x, to: x.cast(to), lambda x, to: x.to(TORCH_DTYPES[to]), signs=True)
NAMED = {
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "bool": "bool",
}
for _name in NAMED:
    row(
        _name,
        lambda d, n=_name: (d.floats(low=-99, high=99) if d.flag() else d.ints(), n),
        lambda x, n: getattr(x, n)(),
        signs=True,
    )


def _bitcast_inputs(d: Draw) -> Any:
    """A type, and another; the last axis has room for it where the size of an element changes."""
    sizes = {
        1: ("int8", "uint8", "fp8e5m2"),
        2: ("int16", "float16", "bfloat16"),
        4: ("int32", "float32"),
        8: ("int64", "float64"),
    }
    have, want = d.choice(1, 2, 4, 8), d.choice(1, 2, 4, 8)
    shape = (*d.shape(0, 2, empty=False), 8 * d.int(1, 2))
    kind = d.choice(*sizes[have])
    if kind in INTS:
        x = d.ints(shape, dtype=kind, low=-100, high=100)
    else:
        x = d.floats(shape, dtype=kind, taped=False)
    return x, d.choice(*sizes[want])


row("bitcast", _bitcast_inputs, lambda x, to: x.bitcast(to), lambda x, to: x.view(TORCH_DTYPES[to]), loose=0)


# *** in place ***


def _in_place(change: Any) -> Any:
    def do(x: Any, y: Any) -> Any:
        z = x.detach().clone() if isinstance(x, torch.Tensor) else x.detach().contiguous()
        return change(z, y)

    return do


for _name in ("add", "sub", "mul", "truediv", "pow"):
    row(
        f"__i{_name}__",
        lambda d: (d.floats(s := d.shape(), 0.5, 3, "float32"), d.floats(d.broadcast(s), 0.5, 3, "float32")),
        _in_place(getattr(operator, f"i{_name}")),
        gradient=False,
        loose=3,
    )
for _name in ("and", "or", "xor", "lshift", "rshift"):
    row(
        f"__i{_name}__",
        lambda d: (d.ints(s := d.shape(), 0, 7, "int32"), d.ints(d.broadcast(s), 0, 7, "int32")),
        _in_place(getattr(operator, f"i{_name}")),
    )
row(
    "__rlshift__ __rrshift__",
    lambda d: (d.ints(low=0, high=7, dtype="int32"), 5),
    lambda x, y: (y << x, y >> x),
    lambda x, y: (torch.tensor(y, dtype=x.dtype) << x, torch.tensor(y, dtype=x.dtype) >> x),
)
row(
    "assign replace clone contiguous detach realize to numpy data tolist",
    lambda d: (d.floats(s := d.shape(), dtype="float32"), d.floats(s, dtype="float32")),
    lambda x, y: _moved_about(x.detach().contiguous(), y),
    lambda x, y: _moved_about(x.detach().clone(), y),
    gradient=False,
)


def _moved_about(x: Any, y: Any) -> Any:
    """The same number, in all ways to ask for it."""
    if isinstance(x, Tensor):
        other = x.clone()
        x.assign(y.detach())
        other.replace(x + 1)
        return x, other.to(None), x.numpy().tolist(), x.tolist(), x.realize().contiguous()
    x.copy_(y.detach())
    return x, x + 1, x.tolist(), x.tolist(), x

"""Numerically hard cases: narrow floats inside composed functions, infinities, limits of types, long axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ops.support import HOW, Array, computed, tensor_on
from tinyexplore import Context, Tensor, dtypes, nn
from tinyexplore.dtype import to_dtype
from tinyexplore.uop.semantics import cast

INF, NAN = math.inf, math.nan
HALF = np.float16
INTS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
every_way = pytest.mark.parametrize("how", HOW)


def gradients(f: Callable[..., Tensor], how: str, *values: float, dtype: str = "float32") -> list[float]:
    """The gradient of f at one point with respect to each argument."""
    given = [tensor_on(how, np.array([value], dtype), requires_grad=True) for value in values]
    f(*given).sum().backward()
    return [float(computed(one.grad, how)[0]) for one in given]  # type: ignore[arg-type]


# *** narrow floats inside composed functions ***

WIDE = np.array([[0, 1000, 2000, -1000], [3, -5, 60000, 1], [1e-4, 2e-4, -1e-4, 0]])


def _normal(x: Array, eps: float = 1e-5) -> Array:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def _softmax(x: Array) -> Array:
    grown = np.exp(x - x.max(-1, keepdims=True))
    return grown / grown.sum(-1, keepdims=True)


def _logsumexp(x: Array) -> Array:
    largest = x.max(-1)
    return largest + np.log(np.exp(x - largest[:, None]).sum(-1))


COMPOSED: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Array], Array]]] = {
    "layernorm": (lambda x: x.layernorm(), _normal),
    "layernorm, small eps": (lambda x: x.layernorm(eps=1e-12), lambda x: _normal(x, 1e-12)),
    "LayerNorm": (lambda x: nn.LayerNorm(4)(x), _normal),
    "GroupNorm": (lambda x: nn.GroupNorm(1, 4)(x), _normal),
    "RMSNorm": (lambda x: nn.RMSNorm(4)(x), lambda x: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)),
    "std": (lambda x: x.std(-1), lambda x: x.std(-1, ddof=1)),
    "softmax": (lambda x: (x / 100).softmax(), lambda x: _softmax(x / 100)),
    "log_softmax": (lambda x: x.log_softmax(), lambda x: x - _logsumexp(x)[:, None]),
    "logsumexp": (lambda x: x.logsumexp(-1), lambda x: _logsumexp(x)),
    "mean": (lambda x: x.mean(-1), lambda x: x.mean(-1)),
    "einsum": (lambda x: Tensor.einsum("ij,ij->i", x / 16, x / 16), lambda x: ((x / 16) ** 2).sum(-1)),
    "pow -2": (lambda x: (x.abs() + 300) ** -2, lambda x: (np.abs(x) + 300) ** -2.0),
    "lerp": (lambda x: x.lerp(-x, 0.25), lambda x: x / 2),
    "linear": (lambda x: (x / 1000).linear(Tensor.eye(4, dtype=x.dtype), x[0] * 0 + 1), lambda x: x / 1000 + 1),
}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", COMPOSED)
@every_way
def test_composed_functions_round_once(name: str, dtype: str, how: str) -> None:
    ours, truth = COMPOSED[name]
    x = tensor_on(how, WIDE.astype(np.float32)).cast(dtype)
    exact = computed(x.float(), how).astype(np.float64)
    with np.errstate(all="ignore"):
        expected = truth(exact)
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    with Context(DEVICE="LLVM" if how == "reference" else how):  # for the parameters
        found = ours(x)
    assert found.dtype.name == dtype or "Norm" in name  # whose parameters are float32
    values = computed(found.float(), how)
    expected = (
        np.where(np.abs(expected) > 65519, np.copysign(INF, expected), expected) if dtype == "float16" else expected
    )
    np.testing.assert_allclose(values, expected, rtol=2 * step, atol=1e-6 if "softmax" not in name else 2e-3)


@every_way
def test_long_axes_of_narrow_floats(how: str) -> None:
    zeros = Tensor.zeros(70000, dtype=dtypes.half, device="LLVM" if how == "reference" else how)
    if how == "PYTHON":
        zeros = zeros[:66000]
    n = zeros.shape[0]
    np.testing.assert_allclose(computed(zeros.softmax(0)[:3], how), HALF(1 / n))
    np.testing.assert_allclose(computed(zeros.log_softmax(0)[:3], how), HALF(-math.log(n)), rtol=1e-3)
    assert computed((zeros + 10).mean(), how) == 10
    ones = Tensor.ones(n, dtype=dtypes.half, device=zeros.device).contiguous().requires_grad_()
    for extreme in (ones.max(), ones.min()):
        (found,) = extreme.gradient(ones)
        np.testing.assert_array_equal(computed(found[:3], how), HALF(1 / n))


def test_softmax_in_a_requested_dtype() -> None:
    x = Tensor([1.0, 2.0], dtype=dtypes.half)
    for f in (Tensor.softmax, Tensor.log_softmax):
        assert f(x, dtype=dtypes.float32).dtype is dtypes.float32
        assert f(x.float(), dtype="half").dtype is dtypes.half


def test_large_windows_of_ties() -> None:
    x = Tensor.ones(1, 1, 300, 300, dtype=dtypes.half).contiguous().requires_grad_()
    (found,) = x.max_pool2d((300, 300)).sum().gradient(x)
    np.testing.assert_allclose(found[0, 0, 0, :3].numpy(), HALF(1 / 90000))
    assert (x * 7).avg_pool2d((300, 300)).item() == 7


@every_way
def test_mean_losses_of_narrow_floats(how: str) -> None:
    rows = 1000 if how == "PYTHON" else 9000
    x = tensor_on(how, np.tile(np.array([0, 100, 0, 0], HALF), (rows, 1)))
    y = Tensor.zeros(rows, dtype=dtypes.int32, device=x.device)
    for loss in (x.sparse_categorical_crossentropy(y), x.cross_entropy(y), x.log_softmax().nll_loss(y)):
        assert loss.dtype is dtypes.half
        assert computed(loss, how) == 100
    logits = x[:, 1]
    assert computed(logits.binary_crossentropy_logits(y.half()), how) == 100


# *** ranges and positions ***


@every_way
def test_ranges_are_computed_in_more_than_their_type(how: str) -> None:
    device = "LLVM" if how == "reference" else how
    n = 70000
    for dtype in ("float16", "bfloat16", "float32"):
        line = Tensor.linspace(0, 1, n, dtype=dtype, device=device)
        expected = np.linspace(0, 1, n)[[0, 1, 1000, n // 2, n - 2, n - 1]]
        found = computed(line[[0, 1, 1000, n // 2, n - 2, n - 1]].float(), how)
        np.testing.assert_allclose(
            found, expected, rtol={"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 1e-6), atol=6e-8
        )
        assert found[-1] == 1
    assert computed(Tensor.linspace(0.1, 0.7, 11, device=device), how)[-1] == np.float32(0.7)
    np.testing.assert_array_equal(
        computed(Tensor.linspace(0, 2**31 - 1, 3, dtype=dtypes.int32, device=device), how), [0, 2**30 - 1, 2**31 - 1]
    )
    steps = Tensor.arange(0, 1, 1 / 70000, dtype=dtypes.half, device=device)
    np.testing.assert_allclose(computed(steps[-3:], how), HALF(1), rtol=1e-3)
    np.testing.assert_array_equal(
        computed(Tensor.arange(5, 9005, 3, dtype=dtypes.half, device=device), how), np.arange(5, 9005, 3).astype(HALF)
    )


@every_way
def test_positions_of_long_axes(how: str) -> None:
    count = 101 if how == "PYTHON" else 100001
    have = 70 if how == "PYTHON" else 70000
    device = "LLVM" if how == "reference" else how
    x = Tensor.arange(have, device=device).cast(dtypes.float64).reshape(1, 1, -1)
    places = np.array([0, 1, count // 3, count // 2, count - 2, count - 1])
    middle = (places + 0.5) * have / count - 0.5
    wanted = {
        "nearest": places * have // count,
        "nearest-exact": np.floor((places + 0.5) * have / count),
        "linear": middle.clip(0, have - 1),
    }
    for mode, expected in wanted.items():
        found = computed(x.interpolate((count,), mode)[0, 0], how)[places]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    inner = computed(x.interpolate((count,), "bicubic")[0, 0], how)[places[2:4]]
    np.testing.assert_allclose(inner, middle[2:4], atol=0.05)  # its kernel bends a straight line a little
    corners = computed(x.interpolate((count,), "linear", align_corners=True)[0, 0], how)[places]
    np.testing.assert_allclose(corners, places * (have - 1) / (count - 1), rtol=1e-12)


@every_way
def test_interpolation_next_to_infinities(how: str) -> None:
    x = tensor_on(how, np.array([[[1, 2, 3, INF]]], np.float32))
    found = computed(x.interpolate((8,)), how)[0, 0]
    np.testing.assert_allclose(found, [1, 1.25, 1.75, 2.25, 2.75, INF, INF, INF])
    corners = computed(x.interpolate((7,), align_corners=True), how)[0, 0]
    np.testing.assert_allclose(corners, [1, 1.5, 2, 2.5, 3, INF, INF])
    a, b = (tensor_on(how, np.array(values, np.float32)) for values in ([1, INF, 1, -INF], [INF, 1, -INF, 2]))
    np.testing.assert_array_equal(computed(a.lerp(b, 0.75), how), [NAN, INF, NAN, -INF])
    np.testing.assert_array_equal(computed(a.lerp(b, 0.25), how), [INF, NAN, -INF, NAN])


@pytest.mark.parametrize("dtype", INTS)
@every_way
def test_interpolated_ints_stay_in_their_range(dtype: str, how: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = tensor_on(how, np.array([[[least, most, most, least]]], dtype))
    found = computed(x.interpolate((16,), "bicubic"), how)[0, 0]
    assert found.dtype == dtype and found[0] == least and found[15] == least
    assert found[6] == found[7] == found[8] == most
    assert [int(v) for v in computed(x.interpolate((4,), "linear"), how)[0, 0]] == [least, most, most, least]


# *** infinite terms of losses ***


@every_way
def test_terms_of_weight_zero_may_be_infinite(how: str) -> None:
    x = tensor_on(how, np.array([[0, -INF, 1]], np.float32), requires_grad=True)
    expected = math.log(1 + math.e)
    first, spread = Tensor([0], device=x.device), tensor_on(how, np.array([[1, 0, 0]], np.float32))
    p = 1 / (1 + math.e)
    for loss in (
        x.cross_entropy(first),
        x.cross_entropy(spread),
        x.sparse_categorical_crossentropy(first),
        x.log_softmax().nll_loss(first),
        x.log_softmax().nll_loss(first, weight=tensor_on(how, np.array([2, 0, 1], np.float32))),
    ):
        np.testing.assert_allclose(computed(loss, how), expected, rtol=1e-6)
        (found,) = loss.gradient(x)
        np.testing.assert_allclose(computed(found, how), [[p - 1, 0, 1 - p]], rtol=1e-5)
    assert computed(x.cross_entropy(first, label_smoothing=0.1), how) == INF
    ignored = x.cat(x).sparse_categorical_crossentropy(Tensor([-1, 0], device=x.device))
    np.testing.assert_allclose(computed(ignored, how), expected, rtol=1e-6)


@every_way
def test_binary_cross_entropy_at_its_ends(how: str) -> None:
    p, y = (tensor_on(how, np.array(values, np.float32)) for values in ([0, 1, 0, 1, 0.25], [0, 1, 1, 0, 1]))
    found = computed(p.binary_crossentropy(y, reduction="none"), how)
    np.testing.assert_allclose(found, [0, 0, 100, 100, math.log(4)], rtol=1e-6)  # PyTorch's limit of a logarithm
    x = tensor_on(how, np.array([INF, -INF, INF, -INF, 0, 90, -90], np.float32), requires_grad=True)
    y = tensor_on(how, np.array([1, 0, 0, 1, 1, 0, 0.5], np.float32))
    for weight in (None, 1.0, Tensor([1.0], device=x.device)):
        found = computed(x.binary_crossentropy_logits(y, reduction="none", pos_weight=weight), how)
        np.testing.assert_allclose(found, [0, 0, INF, INF, math.log(2), 90, 45], rtol=1e-6)
        (slope,) = x.binary_crossentropy_logits(y, reduction="sum", pos_weight=weight).gradient(x)
        np.testing.assert_allclose(computed(slope, how), [0, 0, 1, -1, -0.5, 1, -0.5], atol=1e-7)


# *** gradients and early overflow ***


@every_way
def test_gradients_are_nan_only_where_values_are(how: str) -> None:
    for f in (Tensor.softplus, Tensor.logsigmoid, Tensor.silu, Tensor.mish, Tensor.gelu):
        assert math.isnan(gradients(f, how, NAN)[0])
    for f in (Tensor.relu, Tensor.elu, Tensor.celu):  # as in PyTorch: they compare with 0
        assert gradients(f, how, NAN) == [1]
    assert gradients(Tensor.logaddexp, how, INF, 0.0) == [1, 0]
    assert gradients(Tensor.logaddexp, how, -INF, 0.0) == [0, 1]
    assert gradients(Tensor.softplus, how, INF) == [1] and gradients(Tensor.softplus, how, -INF) == [0]
    assert gradients(Tensor.softplus, how, 0.0) == [0.5]
    assert gradients(Tensor.maximum, how, NAN, 1.0) == [1, 1]  # as in PyTorch


OVERFLOWING: list[tuple[Callable[[Tensor], Tensor], Callable[[float], float], float]] = [
    (Tensor.sinh, math.sinh, 89.0),
    (Tensor.sinh, math.sinh, -89.0),
    (Tensor.cosh, math.cosh, 89.0),
    (lambda x: x.softplus(1e30), lambda x: x, 1e10),
    (Tensor.asinh, math.asinh, 3e38),
    (Tensor.acosh, math.acosh, 3e38),
    (lambda x: x.logsumexp(-1, keepdim=True), lambda x: x, 3e38),
    (Tensor.elu, math.expm1, -1e-6),
    (Tensor.celu, math.expm1, -1e-6),
    (lambda x: x**-2, lambda x: x**-2.0, 1e19),
]


@pytest.mark.parametrize("case", range(len(OVERFLOWING)))
@every_way
def test_results_that_fit_do_not_overflow(case: int, how: str) -> None:
    f, truth, at = OVERFLOWING[case]
    found = computed(f(tensor_on(how, np.array([at], np.float32))), how)[0]
    np.testing.assert_allclose(found, truth(float(np.float32(at))), rtol=3e-6)


@every_way
def test_activations_at_their_corners(how: str) -> None:
    """As PyTorch has them: what is cut off has no gradient at the limit either."""
    assert gradients(Tensor.relu6, how, 6.0) == gradients(Tensor.relu6, how, 0.0) == [0]
    assert gradients(Tensor.hardtanh, how, 1.0) == gradients(Tensor.hardtanh, how, -1.0) == [0]
    assert gradients(Tensor.hardswish, how, 3.0) == [1] and gradients(Tensor.hardswish, how, -3.0) == [0]
    assert gradients(Tensor.hardsigmoid, how, 3.0) == gradients(Tensor.hardsigmoid, how, -3.0) == [0]
    for at in (0.0, -0.0, -2.0):
        np.testing.assert_allclose(gradients(Tensor.leaky_relu, how, at), [0.01])
    assert math.isnan(gradients(Tensor.copysign, how, NAN, 1.0)[0])


@every_way
def test_hyperbolic_functions_reach_the_ends_of_their_types(how: str) -> None:
    for dtype, at, rtol in (("float16", 11.75, 2e-3), ("float64", 710.0, 1e-12)):
        x = tensor_on(how, np.array([at, -at], dtype), requires_grad=True)
        exact = np.array([at, -at])
        np.testing.assert_allclose(computed(x.sinh(), how), np.sinh(exact), rtol=rtol)
        np.testing.assert_allclose(computed(x.cosh(), how), np.cosh(exact), rtol=rtol)
        np.testing.assert_allclose(computed(x.sinh().sum().gradient(x)[0], how), np.cosh(exact), rtol=rtol)
        np.testing.assert_allclose(computed(x.cosh().sum().gradient(x)[0], how), np.sinh(exact), rtol=rtol)


# *** ints ***


@pytest.mark.parametrize("dtype", INTS)
@every_way
def test_ints_become_floats_before_arithmetic(dtype: str, how: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    values = np.array([least, most, 1], dtype)
    x, exact = tensor_on(how, values), values.astype(np.float64)
    np.testing.assert_allclose(computed(x.softsign(), how), exact / (1 + np.abs(exact)), rtol=1e-6)
    y = tensor_on(how, values[::-1].copy())
    np.testing.assert_allclose(computed(x.lerp(y, 0.25), how), exact + (exact[::-1] - exact) * 0.25, rtol=1e-6)


TOO_LARGE: list[Callable[[], Any]] = [
    lambda: Tensor.full((2,), 2**40),
    lambda: Tensor.full((2,), 300, dtype=dtypes.uint8),
    lambda: Tensor.full((2,), 300.0, dtype=dtypes.uint8),
    lambda: Tensor.ones(2, dtype=dtypes.int8).full_like(128),
    lambda: Tensor([1]) + 2**31,
    lambda: 2**31 - Tensor([1]),
    lambda: Tensor([1]) * 2**31,
    lambda: Tensor([1], dtype=dtypes.uint8) - 256,
    lambda: Tensor([1], dtype=dtypes.uint8) & 0x1FF,
    lambda: Tensor([1], dtype=dtypes.uint8) * -1,
    lambda: Tensor([1], dtype=dtypes.int8) // 200,
    lambda: Tensor([True]) + 2**31,
    lambda: Tensor([True, False]).where(2**31, 0),
    lambda: Tensor([True, False]).where(Tensor([1, 2], dtype=dtypes.int8), 200),
    lambda: Tensor([1], dtype=dtypes.int8).masked_fill(Tensor([True]), 200),
    lambda: Tensor([1], dtype=dtypes.uint8).pad(((1, 1),), value=300),
    lambda: Tensor([1], dtype=dtypes.uint8).maximum(300),
    lambda: Tensor([1], dtype=dtypes.uint8).minimum(-1),
    lambda: Tensor([1], dtype=dtypes.uint8).clip(300, 400),
    lambda: Tensor([1, 2], dtype=dtypes.uint8).__setitem__(0, 300),
    lambda: Tensor([1, 2]).__setitem__(0, 3e9),
    lambda: Tensor([1, 2], dtype=dtypes.uint8).scatter(0, Tensor([0]), 300),
    lambda: Tensor.arange(0.0, 300.0, dtype=dtypes.uint8),
    lambda: Tensor.arange(2**31, 2**31 + 2),
    lambda: Tensor.linspace(0, 300, 3, dtype=dtypes.uint8),
    lambda: Tensor.randint(3, low=0, high=300, dtype=dtypes.uint8),
    lambda: Tensor.uniform(3, low=0, high=300, dtype=dtypes.uint8),
    lambda: Tensor.randperm(300, dtype=dtypes.uint8),
]


@pytest.mark.parametrize("case", range(len(TOO_LARGE)))
def test_a_number_that_the_type_cannot_hold_is_an_error(case: int) -> None:
    with pytest.raises(OverflowError, match="does not fit in"):
        TOO_LARGE[case]()


@pytest.mark.parametrize("dtype", INTS)
@every_way
def test_ints_compare_with_every_number(dtype: str, how: str) -> None:
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = tensor_on(how, np.array([least, most], dtype))
    for number in (most + 1, least - 1, 2**70, -(2**70)):
        values = [int(least), int(most)]
        assert computed(x < number, how).tolist() == [one < number for one in values]
        assert computed(x >= number, how).tolist() == [one >= number for one in values]
        assert computed(number < x, how).tolist() == [number < one for one in values]
        assert computed(x == number, how).tolist() == [False, False]
        assert computed(x != number, how).tolist() == [True, True]
    kept = computed(x.clip(least - 1, most + 1), how)
    assert kept.dtype == dtype and [int(one) for one in kept] == [least, most]
    assert computed(x << 256, how).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", INTS)
@every_way
def test_indices_of_every_int_type(dtype: str, how: str) -> None:
    x = tensor_on(how, np.arange(12, dtype=np.float32).reshape(3, 4))
    places = tensor_on(how, np.array([1, 2], dtype))
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(computed(x[places], how), rows[[1, 2]])
    np.testing.assert_array_equal(computed(x[places, places], how), rows[[1, 2], [1, 2]])
    np.testing.assert_array_equal(computed(x.gather(1, places.reshape(2, 1)), how), rows[[0, 1], [1, 2]].reshape(2, 1))
    np.testing.assert_array_equal(computed(places.one_hot(3), how), np.eye(3)[[1, 2]])
    spread = x.scatter(0, places.reshape(2, 1), Tensor([[7.0], [8.0]], device=x.device))
    np.testing.assert_array_equal(computed(spread, how)[:, 0], [0, 7, 8])
    added = x.scatter_reduce(0, places.reshape(2, 1), Tensor([[7.0], [8.0]], device=x.device), "sum")
    np.testing.assert_array_equal(computed(added, how)[:, 0], [0, 11, 16])
    written = x.clone() if hasattr(x, "clone") else x + 0
    written[places] = 5
    np.testing.assert_array_equal(computed(written, how)[:, 0], [0, 5, 5])
    losses = x[:2].nll_loss(places, reduction="none"), x[:2].cross_entropy(places, reduction="none")
    np.testing.assert_array_equal(computed(losses[0], how), [-1, -6])
    np.testing.assert_allclose(computed(losses[1], how), np.log(np.exp([0, 1, 2, 3]).sum()) - [1, 2], rtol=1e-5)


def test_an_index_beyond_int64_is_out_of_range() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    places = Tensor([2**64 - 1, 2**63, 2], dtype=dtypes.uint64)
    assert x[places].tolist() == x.gather(0, places).tolist() == [0, 0, 3]


# *** powers ***

POWERS = (-0.5, 0.5, -1.5, 1.5, 2.5, -2.5, -1, -2, -3, -7, 0, 1, 2, 3, 8, 11, -11)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@every_way
def test_constant_powers_of_special_numbers(dtype: str, how: str) -> None:
    values = np.array([0.0, -0.0, INF, -INF, NAN, 1, -1, 4, -4, 1e-4, 200], dtype)
    x = tensor_on(how, values)
    for exponent in POWERS:
        with np.errstate(all="ignore"):
            expected = values**exponent
        found = computed(x**exponent, how)
        np.testing.assert_allclose(found, expected, rtol={"float16": 2e-3, "float32": 2e-6}.get(dtype, 1e-13))
        same = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[same], np.signbit(expected)[same], str(exponent))
    assert gradients(lambda x: x**-0.5, how, 4.0) == [-1 / 16]
    assert gradients(lambda x: x**-0.5, how, INF) == [0]


# *** conversions ***

BEYOND = (-300.0, -1.5, 300.0, 70000.0, 3e9, -3e9, 1e19, 2e19, -1e19, 1e30, -1e30, INF, -INF, NAN, 2.0**63, -(2.0**63))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("device", [how for how in (*HOW, "WASM") if how != "reference"])
def test_floats_out_of_int_range_convert_equally_on_all_devices(dtype: str, device: str) -> None:
    target = to_dtype(dtype)
    for source in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            values = np.array(BEYOND).astype(source)
        expected = [cast(float(value), target, dtypes.float64) for value in values]
        assert Tensor(values, device=device).cast(target).tolist() == expected
        assert computed(Tensor(values).cast(target), "reference").tolist() == expected
        assert Tensor(values[3:4], device=device).cast(target).tolist() == expected[3:4]
        assert Tensor(values, dtype=target, device=device).tolist() == expected

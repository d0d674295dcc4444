"""Reductions and functions composed of them, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, Array, check_gradient, computed, quick, random_array, shapes, tensor_on
from tinyexplore import Tensor, dtypes

REDUCTIONS: dict[str, Callable] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", [*REDUCTIONS, "var", "std", "any", "all"])
def test_reductions_agree_with_numpy(name: str, how: str) -> None:
    @quick
    @given(shapes(0, 3, 5), st.data(), st.booleans())
    def check(shape: tuple[int, ...], data: st.DataObject, keepdim: bool) -> None:
        x = random_array(shape)
        axes = data.draw(st.sets(st.integers(0, len(shape) - 1))) if shape else set()
        axis = tuple(axes) or None
        t = tensor_on(how, x)
        if name in ("any", "all"):
            found = computed(getattr(t > 0, name)(axis, keepdim=keepdim), how)
            np.testing.assert_array_equal(found, getattr(np, name)(x > 0, axis=axis, keepdims=keepdim))
            return
        if name in ("var", "std"):
            n = x.size // max(getattr(np, name)(x, axis=axis).size, 1)
            correction = data.draw(st.sampled_from((0, 1, 0.5))) if n > 1 else 0
            found = computed(getattr(t, name)(axis, keepdim=keepdim, correction=correction), how)
            expected = getattr(np, name)(x.astype(np.float64), axis=axis, keepdims=keepdim, ddof=correction)
        else:
            found = computed(getattr(t, name)(axis, keepdim=keepdim), how)
            expected = REDUCTIONS[name](x.astype(np.float64), axis=axis, keepdims=keepdim)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)

    check()


@pytest.mark.parametrize("name", [*REDUCTIONS, "var", "std", "logsumexp"])
def test_gradients_of_reductions(name: str) -> None:
    x = random_array((3, 4), 0.5, 2)
    check_gradient(lambda t: getattr(t, name)(1), x)
    check_gradient(lambda t: getattr(t, name)(), x)
    check_gradient(lambda t: getattr(t, name)((0, 1), keepdim=True), x)


def test_equal_extremes_share_the_gradient() -> None:
    x = Tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    x.max(1).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [[0, 0.5, 0.5], [1 / 3] * 3], rtol=1e-6)


def test_where_all_are_equal_the_deviation_has_gradient_zero() -> None:
    for shape, correction in (((1, 2, 3, 1), 0), ((4, 2, 3, 2), 1)):
        x = Tensor.full(shape, 1.5).contiguous()
        x[:, 1] = Tensor.arange(shape[0]).reshape(-1, 1, 1) * 2.0
        x.requires_grad = True
        x.std((0, 3), correction=correction).sum().backward()
        gradient = x.grad.numpy()
        np.testing.assert_array_equal(gradient[:, 0], 0)
        assert shape[0] == 1 or np.abs(gradient[:, 1]).min() > 0.05


def test_the_gradient_of_a_product_with_zeros() -> None:
    x = Tensor([[2.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0]], requires_grad=True)
    x.prod(1).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[12, 8, 6], [0, 8, 0], [0, 0, 0]]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("bool", "int32"),
        ("int8", "int32"),
        ("int16", "int32"),
        ("int64", "int64"),
        ("uint8", "uint32"),
        ("uint64", "uint64"),
        ("float16", "float16"),
        ("float64", "float64"),
    ],
)
def test_sums_accumulate_in_a_wide_enough_type(dtype: str, result: str, how: str) -> None:
    x = np.ones(3000, dtype) if dtype == "float16" else random_array((300,), 0, 100, dtype)
    found = tensor_on(how, x).sum()
    assert found.dtype.name == result
    expected = x.sum(dtype=np.float64 if "float" in dtype else np.int64)
    np.testing.assert_allclose(computed(found, how), expected.astype(result))


@pytest.mark.parametrize("how", HOW)
def test_argmax_and_argmin_find_the_first_place(how: str) -> None:
    @quick
    @given(shapes(1, 3, 5), st.data())
    def check(shape: tuple[int, ...], data: st.DataObject) -> None:
        x = random_array(shape, -2, 2, "int32")  # ties are likely
        axis = data.draw(st.sampled_from((None, *range(len(shape)))))
        t = tensor_on(how, x)
        np.testing.assert_array_equal(computed(t.argmax(axis), how), np.argmax(x, axis))
        np.testing.assert_array_equal(computed(t.argmin(axis), how), np.argmin(x, axis))

    check()
    x = np.array([[1.0, np.nan, 3.0, np.nan], [np.inf, 1.0, np.inf, 2.0]], np.float32)
    np.testing.assert_array_equal(computed(tensor_on(how, x).argmax(1), how), np.argmax(x, 1))


UNUSUAL = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -2.5)


TYPES = ("float32", "float16", "float64", "int8", "uint32", "bool")
TYPES_ON = {"CLANG": ("float32", "float16", "int8")}  # which compiles each of them for long


@pytest.mark.parametrize(("how", "dtype"), [(how, dtype) for how in HOW for dtype in TYPES_ON.get(how, TYPES)])
def test_places_of_extremes_of_any_type(how: str, dtype: str) -> None:
    """Of equal ones (zeros with either sign are) the first, of NaNs the first; in rows, columns and all, also padded,
    and beside the extreme itself."""

    sizes = ((70, 17),) if how in TYPES_ON else ((1, 1), (3, 67), (70, 17), (2, 3, 33))

    @quick
    @given(st.sampled_from(sizes), st.data())
    def check(shape: tuple[int, ...], data: st.DataObject) -> None:
        random = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
        values = UNUSUAL if dtype.startswith("float") else (0, 1) if dtype == "bool" else (0, 1, 5, 100)
        allowed = data.draw(st.lists(st.sampled_from(values), min_size=1, unique_by=repr))  # often all are equal
        x = random.choice(np.array(allowed, dtype), shape)
        axis, keepdim = data.draw(st.sampled_from((None, *range(len(shape))))), data.draw(st.booleans())
        pads = ((1, 2),) * len(shape)
        t = tensor_on(how, x)
        for name in ("argmax", "argmin"):
            place, extreme = getattr(np, name), getattr(np, name[3:])
            found = computed(getattr(t, name)(axis, keepdim=keepdim), how)
            np.testing.assert_array_equal(found, place(x, axis, keepdims=keepdim))
            padded = computed(getattr(t.pad(pads), name)(axis), how)
            np.testing.assert_array_equal(padded, place(np.pad(x, pads), axis))
            both = getattr(t, name)(axis).cast(dtypes.float64) + getattr(t, name[3:])(axis).cast(dtypes.float64)
            with np.errstate(invalid="ignore"):
                expected = place(x, axis) + extreme(x, axis).astype(np.float64)
            np.testing.assert_array_equal(computed(both, how), expected)

    check()


def softmax(x: Array, axis: int) -> Array:
    grown = np.exp(x - x.max(axis, keepdims=True))
    return grown / grown.sum(axis, keepdims=True)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_and_its_kin(axis: int, how: str) -> None:
    x = random_array((3, 5, 4), -80, 80)
    t = tensor_on(how, x)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(computed(t.softmax(axis), how), softmax(wide, axis), rtol=2e-5, atol=1e-7)
    logs = wide - wide.max(axis, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(axis, keepdims=True))
    np.testing.assert_allclose(computed(t.log_softmax(axis), how), logs, rtol=1e-5, atol=2e-5)
    np.testing.assert_allclose(computed(t.logsumexp(axis), how), np.logaddexp.reduce(wide, axis), rtol=1e-5, atol=1e-5)


def test_gradients_of_softmax_and_its_kin() -> None:
    x = random_array((3, 4))
    check_gradient(lambda t: t.softmax(), x)
    check_gradient(lambda t: t.log_softmax(0), x)
    check_gradient(lambda t: t.layernorm(), x)
    check_gradient(lambda t: t.cumsum(1), x)
    check_gradient(lambda t: t.logcumsumexp(1), x)


@pytest.mark.parametrize("how", HOW)
def test_cumsum_agrees_with_numpy(how: str) -> None:
    x = random_array((3, 4, 5))
    for axis in (0, 1, -1):
        np.testing.assert_allclose(computed(tensor_on(how, x).cumsum(axis), how), x.cumsum(axis), rtol=1e-5, atol=1e-6)
        found = computed(tensor_on(how, x).logcumsumexp(axis), how)
        np.testing.assert_allclose(found, np.logaddexp.accumulate(x, axis), rtol=1e-5, atol=1e-5)
    whole = random_array((7,), -9, 9, "int64")
    np.testing.assert_array_equal(computed(tensor_on(how, whole).cumsum(), how), whole.cumsum())


@pytest.mark.parametrize("how", HOW)
def test_running_logsumexp_of_any_size(how: str) -> None:
    """No intermediate is too large or too small, whichever way the numbers grow; infinities are numbers too."""
    inf = np.inf
    rows = np.array(
        [
            [1000, 0, -1000, -2000],
            [-2000, -1000, 0, 1000],
            [-inf, -inf, 1, 2],
            [1, -inf, 2, inf],
            [-inf, inf, -inf, 0],
            [1, np.nan, 2, inf],
            [-inf] * 4,
        ],
        np.float32,
    )
    with np.errstate(all="ignore"):
        expected = np.logaddexp.accumulate(rows, 1)
    np.testing.assert_allclose(computed(tensor_on(how, rows).logcumsumexp(1), how), expected, rtol=1e-6)
    long = np.linspace(-300, 300, 5000, dtype=np.float64)
    np.testing.assert_allclose(
        computed(tensor_on(how, long[::-1].copy()).logcumsumexp(), how), np.logaddexp.accumulate(long[::-1]), rtol=1e-12
    )


def test_gradients_of_running_results() -> None:
    x = Tensor([2.0, 0.0, 3.0, 0.0, 5.0], requires_grad=True)
    assert x.cumprod(0).sum().gradient(x)[0].tolist() == [1, 8, 0, 0, 0]
    x = Tensor([2.0, 4.0, 3.0, 4.0, 5.0], requires_grad=True)
    assert x.cummax(0)[0].sum().gradient(x)[0].tolist() == [1, 2, 0, 1, 1]
    x = Tensor([1000.0, 0.0, -1000.0], requires_grad=True)
    assert x.logcumsumexp(0).sum().gradient(x)[0].tolist() == [3, 0, 0]
    x = Tensor([1.0, -math.inf, 2.0], requires_grad=True)
    np.testing.assert_allclose(x.logcumsumexp(0).sum().gradient(x)[0].tolist(), [2.268941, 0, 0.731059], rtol=1e-5)
    for axis in (0, 1, 2):
        check_gradient(lambda t, axis=axis: t.cumprod(axis), random_array((3, 4, 2), -1, 1))
        check_gradient(lambda t, axis=axis: t.logcumsumexp(axis), random_array((3, 4, 2), -1, 1))


@pytest.mark.parametrize("how", HOW)
def test_layernorm(how: str) -> None:
    x = random_array((4, 6), -5, 5).astype(np.float64)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(computed(tensor_on(how, x.astype("float32")).layernorm(), how), expected, atol=1e-5)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)])
def test_reductions_of_nothing(shape: tuple[int, ...], how: str) -> None:
    x = np.zeros(shape, np.float32)
    t = tensor_on(how, x)
    for axis in (None, *range(len(shape))):
        np.testing.assert_array_equal(computed(t.sum(axis), how), x.sum(axis))
        np.testing.assert_array_equal(computed(t.prod(axis), how), x.prod(axis))
        np.testing.assert_array_equal(computed(t.any(axis), how), x.any(axis))
        np.testing.assert_array_equal(computed(t.all(axis), how), x.all(axis))
        np.testing.assert_array_equal(computed(t.max(axis), how), x.max(axis, initial=-np.inf))
        np.testing.assert_array_equal(computed(t.min(axis), how), x.min(axis, initial=np.inf))
    assert tensor_on(how, x.astype(np.int8)).max().item() == -128
    with pytest.raises(ValueError, match="argmax of zero elements"):
        t.argmax(shape.index(0))
    assert np.isnan(computed(t.mean(), how))


def test_scalars_reduce_to_themselves() -> None:
    t = Tensor(3.0)
    assert [float(one.item()) for one in (t.sum(), t.max(), t.mean(), t.prod(), t.sum(0), t.min(-1))] == [3.0] * 6
    assert t.argmax().item() == 0
    assert Tensor([1, 2, 3]).mean().dtype is dtypes.default_float

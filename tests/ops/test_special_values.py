"""Results and gradients at limits, ties, infinities and NaN. Expected values: PyTorch 2.14 and NumPy 2.4."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tinyexplore import Tensor, dtypes

NAN, INF = math.nan, math.inf


def gradient(function: object, values: list[float], dtype: str = "float32") -> list[float]:
    x = Tensor(np.array(values, dtype), requires_grad=True)
    function(x).sum().backward()  # type: ignore[operator]
    return x.grad.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda x: x.clip(-1, 1), [NAN, INF, -1.0, 1.0, 0.5, 2.0], [0, 0, 0, 0, 1, 0]),
        (lambda x: x.clip(0, None), [NAN, INF, 0.0, -0.0, 1.0], [0, 1, 0, 0, 1]),
        (lambda x: x.clip(Tensor([-1.0]).cast(x.dtype)), [NAN, -1.0, 0.5, -2.0], [1, 0.5, 1, 0]),
        (lambda x: x.elu(), [NAN, INF, -INF, 0.0, 2.0], [1, 1, 0, 1, 1]),
        (lambda x: x.celu(), [NAN, INF, -INF, 0.0, 2.0], [1, 1, 0, 1, 1]),
        (lambda x: x.hardswish(), [NAN, 3.0, -3.0, 0.0, 4.0, -4.0], [1, 1, 0, 0.5, 1, 0]),
        (lambda x: x.div(2.0, rounding_mode="trunc"), [NAN, INF, 1.0], [0, 0, 0]),
        (lambda x: x // 2.0, [NAN, INF, 1.0], [0, 0, 0]),
        (lambda x: Tensor([5.0]).cast(x.dtype).fmod(x), [INF, 2.0, 0.0], [0, -2, -INF]),
        (lambda x: x.prod(), [NAN, INF, 0.5], [INF, NAN, NAN]),
        (lambda x: x.prod(), [INF, 0.0, 2.0], [0, INF, NAN]),
        (lambda x: x.logsumexp(), [1000.0, -INF, 1000.0], [0.5, 0, 0.5]),
    ],
)
def test_gradients_at_special_values(function: object, values: list[float], expected: list[float], dtype: str) -> None:
    np.testing.assert_array_equal(gradient(function, values, dtype), expected)


def test_a_product_that_overflows_or_underflows_has_the_gradient_of_its_factors() -> None:
    np.testing.assert_allclose(gradient(lambda x: x.prod(), [3e38, 10.0]), [10.0, 3e38], rtol=1e-6)
    np.testing.assert_allclose(gradient(lambda x: x.prod(), [1e-30, 1e-30]), [1e-30, 1e-30], rtol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis"), [((1000,), None), ((4, 16, 21), None), ((300, 5), 0), ((3, 257), 1), ((2, 40, 3, 10), (1, 3))]
)
@pytest.mark.parametrize("special", [[], [0.0], [0.0, 0.0], [INF], [NAN], [-INF, 0.0]])
def test_the_gradient_of_a_long_product_is_the_product_of_the_other_factors(
    shape: tuple[int, ...], axis: int | tuple[int, ...] | None, special: list[float]
) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(1, 0.01, shape).astype(np.float32)
    values.flat[rng.choice(values.size, len(special), replace=False)] = special
    x = Tensor(values, requires_grad=True)
    x.prod(axis).sum().backward()
    axes = tuple(range(len(shape))) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    lines = np.moveaxis(values.astype(np.float64), axes, range(-len(axes), 0)).reshape(-1, *(shape[i] for i in axes))
    with np.errstate(invalid="ignore"):
        others = [[np.delete(line, at).prod() for at in range(line.size)] for line in lines]
    found = np.moveaxis(x.grad.numpy(), axes, range(-len(axes), 0))
    np.testing.assert_allclose(found.reshape(len(lines), -1), others, rtol=2e-5)


def test_an_infinity_gets_the_whole_gradient_of_logsumexp() -> None:
    assert gradient(lambda x: x.logsumexp(), [INF, 100.0])[1] == 0


def test_results_at_special_values() -> None:
    assert all(math.isnan(one) for one in Tensor([1.0, INF]).clip(NAN, 1.0).tolist())
    assert math.copysign(1, Tensor([-0.0]).sign().item()) == 1
    assert math.copysign(1, Tensor([INF]).logsigmoid().item()) == 1


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16])
def test_a_linear_map_with_a_bias_is_rounded_once(dtype: object) -> None:
    """1 + 2^-13 - 1 is 2^-13: rounded to 16 bits before the bias it would be 0."""
    x, w, bias = (Tensor(one).cast(dtype) for one in ([[1.0, 2.0**-7]], [[1.0], [2.0**-6]], [-1.0]))
    assert x.linear(w, bias).tolist() == [[2.0**-13]]
    assert x.linear(w, bias).dtype is dtype
    turned = x.reshape(1, 2, 1, 1).conv_transpose2d(w.reshape(2, 1, 1, 1), bias)
    assert turned.tolist() == [[[[2.0**-13]]]] and turned.dtype is dtype


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint64", "float32"])
@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
def test_a_sum_of_equal_values_counts_each(dtype: str, device: str) -> None:
    """The law that puts constants last makes (acc + x) + 1 of acc + (x + 1): the whole of it stays in the loop."""
    x = np.array([[5], [6]], dtype)
    for count in (2, 3, 7, 64):
        found = (Tensor(x, device=device) + 1).expand(2, count).sum(1)
        assert found.tolist() == [6 * count, 7 * count]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floor_division_by_zero_is_infinite(dtype: str) -> None:
    values = np.array([1, -1, 0, INF, -INF, NAN, 2.5], dtype)
    with np.errstate(all="ignore"):
        for zero in (0.0, -0.0):
            expected = np.floor_divide(values, np.full(7, zero, dtype))
            np.testing.assert_array_equal((Tensor(values) // zero).numpy(), expected)
            np.testing.assert_array_equal((Tensor(values) // Tensor(np.full(7, zero, dtype))).numpy(), expected)
            np.testing.assert_array_equal(Tensor(values).div(zero, rounding_mode="floor").numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_acosh_of_less_than_one_is_nan(dtype: str) -> None:
    found = Tensor([-INF, -60000.0, -10000.0, -4096.5, -1.0, 0.0, 0.99, NAN, 1.0]).cast(dtype).acosh()
    np.testing.assert_array_equal(found.float().numpy(), [NAN] * 8 + [0])


def test_a_class_of_weight_zero_counts_nothing_whatever_its_score() -> None:
    scores = Tensor(np.array([[NAN, -1.0], [-INF, -2.0]], np.float32), requires_grad=True)
    weights = Tensor([0.0, 1.0])
    assert scores.nll_loss(Tensor([0, 1]), weights).item() == 2
    assert scores.nll_loss(Tensor([0, 0]), weights, reduction="sum").item() == 0
    loss = scores.nll_loss(Tensor([0, 0]), weights)
    loss.backward()
    assert math.isnan(loss.item()) and scores.grad is not None
    np.testing.assert_array_equal(scores.grad.numpy(), np.zeros((2, 2)))


def test_a_python_number_has_the_type_of_the_tensor() -> None:
    assert (Tensor(np.array([1e-3, 0], np.float16)) * 1e6).numpy()[0] == INF  # as in NumPy
    assert (0.0 / Tensor(np.array([1e-40], np.float32))).item() == 0
    assert Tensor.arange(3, -2, -0.5, dtype=dtypes.int32).tolist() == [3, 2, 2, 1, 1, 0, 0, 0, -1, -1]

"""Every elementwise operation against NumPy (or Python's math), by the oracle and on a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import (
    HOW,
    Array,
    broadcastable,
    check_gradient,
    computed,
    quick,
    random_array,
    shapes,
    tensor_on,
)
from tinyexplore import Tensor, dtypes


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(function, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softplus(x: Array) -> Array:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


# name → (what NumPy says, lowest and highest argument)
UNARY: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "neg": (np.negative, -3, 3),
    "exp": (np.exp, -5, 5),
    "exp2": (np.exp2, -5, 5),
    "log": (np.log, 0.01, 9),
    "log2": (np.log2, 0.01, 9),
    "log10": (np.log10, 0.01, 9),
    "sqrt": (np.sqrt, 0.01, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 9),
    "reciprocal": (np.reciprocal, 0.1, 9),
    "square": (np.square, -3, 3),
    "sin": (np.sin, -9, 9),
    "cos": (np.cos, -9, 9),
    "tan": (np.tan, -1.4, 1.4),
    "sinh": (np.sinh, -4, 4),
    "cosh": (np.cosh, -4, 4),
    "tanh": (np.tanh, -4, 4),
    "asin": (np.arcsin, -0.99, 0.99),
    "acos": (np.arccos, -0.99, 0.99),
    "atan": (np.arctan, -20, 20),
    "asinh": (np.arcsinh, -20, 20),
    "acosh": (np.arccosh, 1.05, 20),
    "atanh": (np.arctanh, -0.97, 0.97),
    "erf": (each(math.erf), -3, 3),
    "sigmoid": (sigmoid, -6, 6),
    "relu": (lambda x: np.maximum(x, 0), -3, 3),
    "relu6": (lambda x: np.clip(x, 0, 6), -3, 9),
    "gelu": (lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), -4, 4),
    "quick_gelu": (lambda x: x * sigmoid(1.702 * x), -4, 4),
    "silu": (lambda x: x * sigmoid(x), -4, 4),
    "swish": (lambda x: x * sigmoid(x), -4, 4),
    "mish": (lambda x: x * np.tanh(softplus(x)), -4, 4),
    "softplus": (softplus, -9, 9),
    "softsign": (lambda x: x / (1 + np.abs(x)), -4, 4),
    "logsigmoid": (lambda x: -softplus(-x), -9, 9),
    "elu": (lambda x: np.where(x > 0, x, np.expm1(x)), -4, 4),
    "celu": (lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)), -4, 4),
    "selu": (lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x)), -4, 4),
    "leakyrelu": (lambda x: np.where(x > 0, x, 0.01 * x), -4, 4),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.01 * x), -4, 4),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, -6, 6),
    "hardtanh": (lambda x: np.clip(x, -1, 1), -3, 3),
    "hardsigmoid": (lambda x: np.clip(x / 6 + 0.5, 0, 1), -6, 6),
    "abs": (np.abs, -3, 3),
}
STEPS: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "sign": (np.sign, -3, 3),
    "floor": (np.floor, -9, 9),
    "ceil": (np.ceil, -9, 9),
    "trunc": (np.trunc, -9, 9),
    "round": (np.round, -9, 9),
}
BINARY: dict[str, tuple[Callable[[Array, Array], Array], float, float]] = {
    "add": (np.add, -3, 3),
    "sub": (np.subtract, -3, 3),
    "mul": (np.multiply, -3, 3),
    "div": (np.divide, 0.2, 3),
    "pow": (np.power, 0.2, 3),
    "maximum": (np.maximum, -3, 3),
    "minimum": (np.minimum, -3, 3),
    "logaddexp": (np.logaddexp, -30, 30),
    "copysign": (np.copysign, -3, 3),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", [*UNARY, *STEPS])
def test_functions_of_one_tensor_agree_with_numpy(name: str, how: str) -> None:
    expected, low, high = {**UNARY, **STEPS}[name]

    @quick
    @given(shapes())
    def check(shape: tuple[int, ...]) -> None:
        x = random_array(shape, low, high)
        found = computed(getattr(tensor_on(how, x), name)(), how)
        assert found.dtype == np.float32 and found.shape == shape
        np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=3e-6, atol=1e-6)

    check()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_tensors_agree_with_numpy_and_broadcast(name: str, how: str) -> None:
    expected, low, high = BINARY[name]

    @quick
    @given(broadcastable())
    def check(both: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
        x, y = random_array(both[0], low, high), random_array(both[1], low, high, seed=1)
        found = computed(getattr(tensor_on(how, x), name)(tensor_on(how, y)), how)
        wide = expected(x.astype(np.float64), y.astype(np.float64))
        np.testing.assert_allclose(found, wide, rtol=3e-6, atol=1e-6)
        assert found.shape == wide.shape

    check()


@pytest.mark.parametrize("name", UNARY)
def test_gradients_of_functions_of_one_tensor(name: str) -> None:
    _, low, high = UNARY[name]
    x = random_array((5,), low, high, "float64") + 1e-3  # off the kinks
    check_gradient(lambda t: getattr(t, name)(), x)


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_flat(name: str) -> None:
    check_gradient(lambda t: getattr(t, name)(), random_array((5,), 0.1, 0.4, "float64"))


@pytest.mark.parametrize("name", BINARY)
def test_gradients_of_functions_of_two_tensors(name: str) -> None:
    _, low, high = BINARY[name]
    x, y = random_array((2, 3), low, high, "float64"), random_array((3,), low, high, "float64", seed=1)
    check_gradient(lambda t, u: getattr(t, name)(u), x, y)


INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
INT_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << abs(b) % 9,
    ">>": lambda a, b: a >> abs(b) % 9,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("sign", INT_BINARY)
def test_integer_arithmetic_wraps_and_rounds_as_numpy_does(sign: str, dtype: str, how: str) -> None:
    limits = np.iinfo(dtype)
    edges = [limits.min, limits.min + 1, 0, 1, 2, 3, 7, limits.max - 1, limits.max]
    edges += [] if limits.min == 0 else [-1, -2, -7]
    x, y = (np.array(part, dtype) for part in zip(*[(a, b) for a in edges for b in edges]))
    operation = INT_BINARY[sign]
    with np.errstate(all="ignore"):
        expected = operation(x, y)
    found = computed(operation(tensor_on(how, x), tensor_on(how, y)), how)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("divisor", [1, 3, -1, -4, 0, 7])
def test_integer_division_by_a_number_rounds_down(divisor: int, how: str) -> None:
    x = np.array([-(2**31), -9, -8, -1, 0, 1, 8, 9, 2**31 - 1], np.int32)
    with np.errstate(all="ignore"):
        quotient, remainder = x // np.int32(divisor), x % np.int32(divisor)
    t = tensor_on(how, x)
    np.testing.assert_array_equal(computed(t // divisor, how), quotient)
    np.testing.assert_array_equal(computed(t % divisor, how), remainder)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed(t.fmod(divisor), how), np.fmod(x, np.int32(divisor)))
        towards_zero = np.trunc(x / np.float64(divisor)).astype(np.int64).astype(np.int32) if divisor else 0 * x
    np.testing.assert_array_equal(computed(t.div(divisor, rounding_mode="floor"), how), quotient)
    np.testing.assert_array_equal(computed(t.div(divisor, rounding_mode="trunc"), how), towards_zero)


@pytest.mark.parametrize("how", HOW)
def test_float_division_and_remainder_round_down(how: str) -> None:
    x, y = random_array((40,), -9, 9), random_array((40,), 0.5, 3, seed=3)
    a, b = tensor_on(how, x), tensor_on(how, y)
    np.testing.assert_array_equal(computed(a // b, how), x // y)
    np.testing.assert_array_equal(computed(a.div(b, rounding_mode="floor"), how), x // y)
    np.testing.assert_array_equal(computed(a.div(b, rounding_mode="trunc"), how), np.trunc(x / y))
    np.testing.assert_array_equal(computed(a % b, how), x % y)
    np.testing.assert_array_equal(computed(a.fmod(b), how), np.fmod(x, y))


@pytest.mark.parametrize("how", HOW)
def test_integer_powers_are_exact(how: str) -> None:
    x = np.array([-3, -2, -1, 0, 1, 2, 3, 7], np.int32)
    t = tensor_on(how, x)
    for exponent in (0, 1, 2, 3, 5, 10):
        np.testing.assert_array_equal(computed(t**exponent, how), x**exponent)
    y = np.array([3, 0, 5, 4, 9, 20, 2, 11], np.int32)
    np.testing.assert_array_equal(computed(t ** tensor_on(how, y), how), x**y)


@pytest.mark.parametrize("how", HOW)
def test_powers_of_ints_that_may_be_fractions_are_floats(how: str) -> None:
    y = np.array([-1, 2, 0, -3, 11], np.int32)
    for base in (2, -2, 10):
        found = 2 ** tensor_on(how, y) if base == 2 else tensor_on(how, y).pow(base, reverse=True)
        assert found.dtype is dtypes.float32
        np.testing.assert_allclose(computed(found, how), np.float64(base) ** y, rtol=3e-7)
    assert computed(2 ** tensor_on(how, np.array([-1, 2], np.int64)), how).tolist() == [0.5, 4.0]
    assert computed(tensor_on(how, np.array([1, 2, -4])) ** -1, how).tolist() == [1.0, 0.5, -0.25]
    assert computed(tensor_on(how, np.array([0, 1, 2], np.uint8)) ** -2, how).tolist() == [math.inf, 1.0, 0.25]
    both = tensor_on(how, np.array([2, -1, 1])) ** tensor_on(how, np.array([-1, -1, -5]))
    assert computed(both, how).tolist() == [0, -1, 1]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, -0.5, 1.5, 2.7, 11])
def test_powers_by_a_number(exponent: float, how: str) -> None:
    x = random_array((9,), 0.2, 3)
    np.testing.assert_allclose(computed(tensor_on(how, x) ** exponent, how), x**exponent, rtol=5e-6)
    check_gradient(lambda t: t**exponent, x) if exponent else None


SPECIAL = np.array([0.0, -0.0, 1.5, -1.5, 2.5, np.inf, -np.inf, np.nan], np.float32)


@pytest.mark.parametrize("how", HOW)
def test_special_values(how: str) -> None:
    t = tensor_on(how, SPECIAL)
    for name in ("isnan", "isinf", "isfinite"):
        np.testing.assert_array_equal(computed(getattr(t, name)(), how), getattr(np, name)(SPECIAL))
    np.testing.assert_array_equal(computed(t.abs(), how), np.abs(SPECIAL))
    np.testing.assert_array_equal(computed(t.sign(), how), np.sign(SPECIAL))
    np.testing.assert_array_equal(computed(t.round(), how), np.round(SPECIAL))
    np.testing.assert_array_equal(computed(t.relu(), how), np.maximum(SPECIAL, 0))
    np.testing.assert_array_equal(computed(t.maximum(0.0), how), np.maximum(SPECIAL, 0))
    np.testing.assert_array_equal(computed(t.minimum(0.0), how), np.minimum(SPECIAL, 0))
    np.testing.assert_array_equal(computed(t.clip(-1, 1), how), np.clip(SPECIAL, -1, 1))
    np.testing.assert_array_equal(computed(t < 1, how), SPECIAL < 1)
    np.testing.assert_array_equal(computed(t <= 1.5, how), SPECIAL <= 1.5)
    np.testing.assert_array_equal(computed(t != t, how), SPECIAL != SPECIAL)
    np.testing.assert_array_equal(computed(t.atan(), how)[[5, 6]], np.float32([np.pi / 2, -np.pi / 2]))
    np.testing.assert_allclose(computed(t.tanh(), how), np.tanh(SPECIAL), rtol=1e-6)
    np.testing.assert_array_equal(computed(t.logical_not(), how), np.logical_not(SPECIAL))


@pytest.mark.parametrize("how", HOW)
def test_small_arguments_are_precise(how: str) -> None:
    x = np.array([1e-6, -1e-6, 1e-4, 1e-3, 0.0, 0.3], np.float32)
    for name, expected in (("sinh", np.sinh), ("asinh", np.arcsinh), ("atanh", np.arctanh), ("atan", np.arctan)):
        found = computed(getattr(tensor_on(how, x), name)(), how)
        np.testing.assert_allclose(found, expected(x.astype(np.float64)), rtol=2e-6)


def test_the_gradient_of_sigmoid_and_softplus_stays_finite() -> None:
    x = Tensor([-200.0, 0.0, 200.0], requires_grad=True)
    x.sigmoid().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.25, 0.0]
    y = Tensor([-200.0, 0.0, 200.0], requires_grad=True)
    y.softplus().sum().backward()
    assert y.grad is not None and y.grad.tolist() == [0.0, 0.5, 1.0]


def test_ties_share_the_gradient() -> None:
    x, y = Tensor([1.0, 2.0, 3.0], requires_grad=True), Tensor([1.0, 3.0, 2.0], requires_grad=True)
    x.maximum(y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.5, 0.0, 1.0]
    assert y.grad is not None and y.grad.tolist() == [0.5, 1.0, 0.0]
    z = Tensor([0.0, -1.0, 1.0], requires_grad=True)
    (z.relu() + z.abs()).sum().backward()
    assert z.grad is not None and z.grad.tolist() == [0.0, -1.0, 2.0]


@pytest.mark.parametrize("how", HOW)
def test_where_chooses_and_broadcasts(how: str) -> None:
    c, x, y = random_array((3, 1), dtype="bool"), random_array((4,)), random_array((3, 4), seed=2)
    condition = tensor_on(how, c)
    np.testing.assert_array_equal(
        computed(condition.where(tensor_on(how, x), tensor_on(how, y)), how), np.where(c, x, y)
    )
    np.testing.assert_array_equal(
        computed(condition.where(1.5, tensor_on(how, y)), how), np.where(c, np.float32(1.5), y)
    )
    np.testing.assert_array_equal(computed(condition.where(1, 0), how), np.where(c, 1, 0))
    found = computed(tensor_on(how, y).masked_fill(condition, -math.inf), how)
    np.testing.assert_array_equal(found, np.where(c, -np.inf, y))
    check_gradient(lambda a, b: Tensor(c).where(a, b), x, y)


def test_lerp_and_clip_have_gradients() -> None:
    x, y = random_array((5,)), random_array((5,), seed=1)
    check_gradient(lambda a, b: a.lerp(b, 0.3), x, y)
    check_gradient(lambda a: a.clip(-1, 1), x)


@pytest.mark.parametrize("how", HOW)
def test_closeness(how: str) -> None:
    a = np.array([1.0, 1.0, np.nan, np.inf, np.inf, 0.0], np.float32)
    b = np.array([1.0, 1.1, np.nan, np.inf, -np.inf, 1e-9], np.float32)
    for equal_nan in (False, True):
        found = computed(tensor_on(how, a).isclose(tensor_on(how, b), equal_nan=equal_nan), how)
        np.testing.assert_array_equal(found, np.isclose(a, b, equal_nan=equal_nan))


LADDER = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("first", LADDER)
@pytest.mark.parametrize("second", LADDER)
def test_two_tensors_promote_to_the_least_common_type(first: str, second: str) -> None:
    a, b = Tensor(random_array((3,), 0, 1, first)), Tensor(random_array((3,), 0, 1, second))
    expected = np.promote_types(first, second)
    if "float" in first + second and not ("float" in first and "float" in second):
        expected = np.dtype(first if "float" in first else second)  # ints promote to any float
    assert (a + b).dtype.name == expected.name


@given(st.sampled_from(LADDER))
def test_numbers_are_weak(dtype: str) -> None:
    t = Tensor(np.zeros(2, dtype))
    assert (t + True).dtype is t.dtype
    assert (t * 2).dtype is (dtypes.default_int if dtype == "bool" else t.dtype)
    assert (2.5 + t).dtype is (t.dtype if "float" in dtype else dtypes.default_float)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("source", LADDER)
@pytest.mark.parametrize("target", LADDER)
def test_casts_agree_with_numpy(source: str, target: str, how: str) -> None:
    low, high = (0, 100) if "uint" in source + target else (-100, 100)
    x = random_array((9,), low, high, source)
    np.testing.assert_array_equal(computed(tensor_on(how, x).cast(target), how), x.astype(target))


def test_bitcast_preserves_the_bits() -> None:
    x = random_array((5,))
    assert Tensor(x).bitcast("uint32").tolist() == x.view(np.uint32).tolist()


ZEROS = np.array([0.0, -0.0, -0.25, 0.25, -0.5, 0.5, -1.5], np.float32)


@pytest.mark.parametrize("how", HOW)
def test_zeros_keep_their_sign(how: str) -> None:
    t = tensor_on(how, ZEROS)
    for name, expected in (("round", np.round), ("trunc", np.trunc), ("ceil", np.ceil), ("abs", np.abs)):
        found = computed(getattr(t, name)(), how)
        np.testing.assert_array_equal(found, expected(ZEROS))
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected(ZEROS)), name)
    for name in ("atan", "asinh", "tanh", "erf", "sin"):
        found = computed(getattr(t, name)(), how)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(ZEROS), name)


@pytest.mark.parametrize("how", HOW)
def test_inverse_functions_are_as_exact_as_their_type(how: str) -> None:
    x = random_array((40,), -0.99, 0.99, "float64")
    for name, expected in (("asin", np.arcsin), ("acos", np.arccos), ("atan", np.arctan)):
        np.testing.assert_allclose(
            computed(getattr(tensor_on(how, x), name)(), how), expected(x), rtol=1e-13, atol=1e-14
        )
    wide = np.array([0.2, 3.0, 1e30, -3e38, 3e38, np.inf], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(computed(tensor_on(how, wide).acosh(), how), np.arccosh(wide), rtol=1e-6)
        np.testing.assert_allclose(computed(tensor_on(how, wide).asinh(), how), np.arcsinh(wide), rtol=1e-6)
    small = np.array([3.0, 300.0, 60000.0], np.float16)
    np.testing.assert_allclose(computed(tensor_on(how, small).acosh(), how), np.arccosh(small), rtol=2e-3)
    np.testing.assert_allclose(computed(tensor_on(how, small).asinh(), how), np.arcsinh(small), rtol=2e-3)


@pytest.mark.parametrize("how", HOW)
def test_remainders_of_floats_are_numpys(how: str) -> None:
    """Also where the quotient is nearly whole, or huge, and of an infinite divisor."""
    x = np.array([1.0, 1e30, 3e38, -2.5e9, 1.0, -1.0, 5.0, -5.0, 5.0, -5.0, 0.6, 1e6, -0.3, 7.0], np.float32)
    y = np.array([1e-38, 0.7, 1e-45, 0.3, 0.1, 0.1, np.inf, np.inf, -np.inf, -np.inf, -0.2, 0.1, 0.1, 0.7], np.float32)
    a, b = tensor_on(how, x), tensor_on(how, y)
    np.testing.assert_array_equal(computed(a % b, how), np.mod(x, y))
    np.testing.assert_array_equal(computed(a.fmod(b), how), np.fmod(x, y))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(computed(a // b, how), np.floor_divide(x, y))
    assert np.isnan(computed(tensor_on(how, np.array([np.inf, -np.inf])) // 2, how)).all()
    check_gradient(lambda s, t: s % t, np.array([5.3, -4.1]), np.array([2.0, 1.7]))


def test_independent_results_have_gradient_zero() -> None:
    x = Tensor([1.0, 2.0], requires_grad=True)
    (x**0).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]
    empty = Tensor.zeros(2, 0, requires_grad=True)
    (
        empty.sum() + empty.mean(1).sum() + empty.prod() + empty.softmax(-1).sum() + empty.logsumexp(1).exp().sum()
    ).backward()
    assert empty.grad is not None and empty.grad.shape == (2, 0)
    assert empty.logsumexp(1).tolist() == [-math.inf, -math.inf]


def test_gelu_has_an_exact_form() -> None:
    x = random_array((50,), -6, 6)
    expected = x.astype(np.float64) * (1 + each(math.erf)(x.astype(np.float64) / math.sqrt(2))) / 2
    np.testing.assert_allclose(Tensor(x).gelu(approximate="none").numpy(), expected, rtol=3e-6, atol=1e-6)
    assert np.abs(Tensor(x).gelu().numpy() - expected).max() > 1e-5

"""Python's operators, also in place, and aliases, against NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.ops.support import HAS_COMPILER, HOW, Array, all_computed, computed, random_array, tensor_on
from tinyexplore import Device, Tensor, dtypes
from tinyexplore.device.registry import UnknownDevice

ON_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "mod": operator.mod,
    "floordiv": operator.floordiv,
}
ON_INTS: dict[str, Callable[[Any, Any], Any]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
}
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
}


def operands(name: str) -> tuple[Array, Array, Any]:
    if name in ON_INTS:
        return random_array((2, 3), 0, 9, "int32"), random_array((2, 3), 0, 5, "int32", seed=1), 3
    return random_array((2, 3), 0.5, 3), random_array((2, 3), 0.5, 3, seed=1), 1.5


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", [*ON_FLOATS, *ON_INTS, *COMPARISONS])
def test_operators_take_tensors_numbers_and_arrays_on_both_sides(name: str, how: str) -> None:
    do = {**ON_FLOATS, **ON_INTS, **COMPARISONS}[name]
    x, y, number = operands(name)
    t = tensor_on(how, x)
    results = [do(t, tensor_on(how, y)), do(t, number), do(number, t), do(t, y)]
    kind: Any = x.dtype.type
    expected = [do(x, y), do(x, kind(number)), do(kind(number), x), do(x, y)]
    for found, wanted in zip(all_computed(results, how), expected):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", [*ON_FLOATS, *ON_INTS])
def test_operators_in_place_keep_the_tensor(name: str, how: str) -> None:
    do = getattr(operator, f"i{name}")
    x, y, _ = operands(name)
    t = before = tensor_on(how, x)
    t = do(t, tensor_on(how, y))
    assert t is before
    expected = {**ON_FLOATS, **ON_INTS}[name](x, y)
    np.testing.assert_allclose(computed(t, how), expected, rtol=1e-5)


@pytest.mark.parametrize("how", HOW)
def test_matrix_products(how: str) -> None:
    x, y = random_array((2, 2)), random_array((2, 2), seed=1)
    a, b = tensor_on(how, x), tensor_on(how, y)
    same = a
    same @= b
    results = [a @ b, tensor_on(how, x).matmul(b), b.matmul(tensor_on(how, x), reverse=True), tensor_on(how, x).dot(b)]
    assert same is a
    np.testing.assert_allclose(computed(same, how), x @ y, rtol=1e-5)
    for found in all_computed(results[1:], how):
        np.testing.assert_allclose(found, x @ y, rtol=1e-5)
    assert a.__rmatmul__(b).shape == (2, 2)


@pytest.mark.parametrize("how", HOW)
def test_a_number_is_not_narrowed_to_the_int_type_in_float_operations(how: str) -> None:
    small = np.array([1, 0, 100], np.uint8)
    x, floats = tensor_on(how, small), small.astype(np.float64)
    bools = tensor_on(how, small.astype(bool))
    found = (x / 256, x / -1, 300 / (x + 1), bools / 256, x.copysign(-1), x.logaddexp(300), x.isclose(356))
    wanted = (floats / 256, -floats, 300 / (floats + 1), floats.astype(bool) / 256, -floats, [300] * 3, [False] * 3)
    for one, other in zip(all_computed(found, how), wanted):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    powers = [pow(int(n), 70_000, 256) for n in (2, 3, 255)]
    assert computed(tensor_on(how, np.array([2, 3, 255], np.uint8)) ** 70_000, how).tolist() == powers


@pytest.mark.parametrize("how", HOW)
def test_a_number_is_rounded_to_the_dtype_that_it_is_used_in(how: str) -> None:
    for dtype in ("float16", "float32", "float64"):
        tenth = np.full(3, 0.1, dtype)
        x, full = tensor_on(how, tenth), tensor_on(how, tenth)._const(0.1)
        assert all(computed((x == 0.1) & (full == x), how))
        np.testing.assert_array_equal(computed(full.cast("float64"), how), tenth.astype(np.float64))
    with np.errstate(over="ignore", divide="ignore"):
        bases = np.array([-2.0, -0.5, -0.0, 3.0], np.float32)
        for power in (1e30, -1e30, 16_777_217.0, math.inf, -math.inf):
            found = computed(tensor_on(how, bases) ** power, how)
            np.testing.assert_array_equal(found, bases ** np.float32(power))


@pytest.mark.parametrize("how", HOW)
def test_names_of_operations_on_bits(how: str) -> None:
    x, y = random_array((6,), -9, 9, "int32"), random_array((6,), 0, 5, "int32", seed=1)
    a, b = tensor_on(how, x), tensor_on(how, y)
    pairs = [
        (a.bitwise_and(b), x & y),
        (a.bitwise_or(b), x | y),
        (a.xor(b), x ^ y),
        (a.bitwise_xor(b), x ^ y),
        (a.bitwise_not(), ~x),
        (~a, ~x),
        (a.lshift(2), x << 2),
        (a.rshift(b), x >> y),
        (-a, -x),
        (+a, +x),
        (abs(a), abs(x)),
    ]
    for found, (_, expected) in zip(all_computed([tensor for tensor, _ in pairs], how), pairs):
        np.testing.assert_array_equal(found, expected)
    truths = tensor_on(how, np.array([True, False]))
    np.testing.assert_array_equal(computed(~truths, how), [False, True])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("how", HOW)
def test_a_shift_past_the_width_or_by_a_negative_count_gives_zero_or_the_sign(how: str, dtype: str) -> None:
    width, signed = 8 * np.dtype(dtype).itemsize, np.dtype(dtype).kind == "i"
    values = [5, 1, -8, -1, np.iinfo(dtype).min] if signed else [5, 1, np.iinfo(dtype).max]
    counts = [0, 1, width - 1, width, width + 1, 100] + ([-1, -width, np.iinfo(dtype).min] if signed else [])
    x, y = (part.astype(dtype).ravel() for part in np.meshgrid(values, counts))
    up, down = all_computed([tensor_on(how, x) << tensor_on(how, y), tensor_on(how, x) >> tensor_on(how, y)], how)
    np.testing.assert_array_equal(up, x << y)
    np.testing.assert_array_equal(down, x >> y)


@pytest.mark.parametrize("how", HOW)
def test_limits_and_closeness(how: str) -> None:
    x = random_array((5,))
    t = tensor_on(how, x)
    np.testing.assert_array_equal(computed(t.clamp(-0.5, 0.5), how), np.clip(x, -0.5, 0.5))
    np.testing.assert_array_equal(computed(t.isclose(t + 1e-7), how), np.isclose(x, x + np.float32(1e-7)))
    if how != "reference":
        assert t.allclose(t + 1e-7) and not t.allclose(t + 1) and not t.allclose(math.nan)
    for found, expected in ((t.var_mean(), (x.var(ddof=1), x.mean())), (t.std_mean(), (x.std(ddof=1), x.mean()))):
        np.testing.assert_allclose([computed(part, how) for part in found], expected, rtol=1e-5)


def test_steps_in_a_row() -> None:
    assert Tensor([-1.0, 2.0]).sequential([Tensor.relu, lambda t: t * 3]).tolist() == [0, 6]
    assert Tensor([1.0]).sequential([]).tolist() == [1]


def test_sizes_and_names() -> None:
    t = Tensor.ones(2, 3, dtype="int16")
    assert (t.size(), t.size(1), t.numel(), t.nbytes(), t.ndim, t.dim()) == ((2, 3), 3, 6, 12, 2, 2)
    assert repr(t).startswith("<Tensor (2, 3) int16 on ") and "requires_grad" in repr(Tensor([1.0], requires_grad=True))
    assert {t: 1}[t] == 1 and hash(t) != hash(Tensor.ones(2, 3))
    assert len(t) == 2 and [row.shape for row in t] == [(3,), (3,)]
    with pytest.raises(TypeError, match="has no length"):
        len(Tensor(1))


def test_like_functions_preserve_shape_dtype_and_device() -> None:
    t = Tensor.ones(50, 40, dtype="float64", device="PYTHON")
    for found in (t.rand_like(), t.randn_like(), t.zeros_like(), t.full_like(2)):
        assert (found.shape, found.dtype, found.device) == ((50, 40), dtypes.float64, "PYTHON")
    assert t.rand_like(dtype="float32", device="LLVM").dtype is dtypes.float32
    even, normal = t.llvm().rand_like().numpy(), t.llvm().randn_like().numpy()
    assert 0 <= even.min() and even.max() < 1 and abs(even.mean() - 0.5) < 0.03
    assert abs(normal.mean()) < 0.1 and abs(normal.std() - 1) < 0.1


def test_copies_and_replacements() -> None:
    t = Tensor([1.0, 2.0])
    copy = t.clone()
    t += 1
    assert copy.tolist() == [1, 2] and t.tolist() == [2, 3]
    assert t.replace(Tensor([7.0, 8.0])) is t and t.tolist() == [7, 8]
    with pytest.raises(ValueError, match=r"shape \(2,\) by .*\(3,\)"):
        t.replace(Tensor([1.0, 2.0, 3.0]))


def test_tensors_move_between_devices() -> None:
    t = Tensor([1.5, -2.0], device="LLVM")
    for name in ("PYTHON", "LLVM"):
        moved = getattr(t, name.lower())()
        assert moved.device == name and moved.tolist() == [1.5, -2.0]
    assert t.to("PYTHON").to(None).device == Device.DEFAULT
    assert t.to_("PYTHON") is t and t.device == "PYTHON" and t.tolist() == [1.5, -2.0]
    assert t.cuda().device == "CUDA"
    with pytest.raises(UnknownDevice, match="METAL.*LLVM"):
        t.to("METAL")


@pytest.mark.skipif(not HAS_COMPILER, reason="CLANG: there is no C compiler on this machine")
def test_tensors_move_to_the_device_of_a_c_compiler() -> None:
    assert Tensor([1.5]).clang().device == "CLANG"

"""Constant folding: a value known at compile time needs no kernel, and equals the computed one."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tinyexplore import Tensor, Variable, dtypes
from tinyexplore.dtype import DType
from tinyexplore.jit import TinyJit
from tinyexplore.util import GlobalCounters

FLOATS = np.array([1.5, -0.0, 0.0, math.nan, math.inf, -math.inf], np.float32)
INTS = np.array([1, -2, 3, 0, 2**31 - 1, -(2**31)], np.int32)
MATRIX = np.arange(12, dtype=np.float32).reshape(3, 4)
INFINITY = math.inf

SAME: dict[str, tuple[np.ndarray, Callable[[Tensor], Tensor]]] = {
    "x * 1": (FLOATS, lambda x: x * 1),
    "1 * x": (FLOATS, lambda x: 1 * x),
    "x * ones": (FLOATS, lambda x: x * Tensor.ones(1, device=x.device)),
    "x / 1": (FLOATS, lambda x: x / 1),
    "x - 0": (FLOATS, lambda x: x - 0),
    "x + -0.0": (FLOATS, lambda x: x + -0.0),
    "x ** 1": (FLOATS, lambda x: x**1),
    "x ** ones": (FLOATS, lambda x: x ** Tensor.ones(6, device=x.device)),
    "--x": (FLOATS, lambda x: x.neg().neg()),
    "maximum of the least": (FLOATS, lambda x: x.maximum(-INFINITY)),
    "minimum of the greatest": (FLOATS, lambda x: x.minimum(INFINITY)),
    "clip within infinity": (FLOATS, lambda x: x.clip(-INFINITY, INFINITY)),
    "where true": (FLOATS, lambda x: Tensor.ones(6, dtype="bool", device=x.device).where(x, 0.0)),
    "where false": (FLOATS, lambda x: Tensor.zeros(6, dtype="bool", device=x.device).where(0.0, x)),
    "where the same": (FLOATS, lambda x: (x > 0).where(x, x)),
    "maximum with itself": (FLOATS, lambda x: x.maximum(x)),
    "cast to its type": (FLOATS, lambda x: x.cast("float32")),
    "sum over an axis of one": (FLOATS, lambda x: x.reshape(6, 1).sum(1)),
    "i + 0": (INTS, lambda x: x + 0),
    "i - 0": (INTS, lambda x: x - 0),
    "i + 3 - 3": (INTS, lambda x: x + 3 - 3),
    "i * 1": (INTS, lambda x: x * 1),
    "i ** 1": (INTS, lambda x: x**1),
    "i // 1": (INTS, lambda x: x // 1),
    "i & -1": (INTS, lambda x: x & -1),
    "i & i": (INTS, lambda x: x & x),
    "i | 0": (INTS, lambda x: x | 0),
    "i ^ 0": (INTS, lambda x: x ^ 0),
    "~~i": (INTS, lambda x: ~~x),
    "i << 0": (INTS, lambda x: x << 0),
    "i >> 0": (INTS, lambda x: x >> 0),
    "maximum of the least int": (INTS, lambda x: x.maximum(dtypes.min(dtypes.int32))),
    "minimum of the greatest int": (INTS, lambda x: x.minimum(dtypes.max(dtypes.int32))),
    "not not": (INTS > 0, lambda x: x.logical_not().logical_not()),
    "b == True": (INTS > 0, lambda x: x == True),  # noqa: E712
    "b * True": (INTS > 0, lambda x: x * True),
    "b + False": (INTS > 0, lambda x: x + False),
    "there and back": (MATRIX, lambda x: x.permute(1, 0).reshape(4, 3).permute(1, 0).contiguous()),
    "another shape and back": (MATRIX, lambda x: x.reshape(12).reshape(3, 4).contiguous()),
    "flipped twice": (MATRIX, lambda x: x.flip(0).flip(0).contiguous()),
    "contiguous twice": (MATRIX, lambda x: x.contiguous().contiguous()),
    "cat of one": (MATRIX, lambda x: Tensor.cat(x)),
    "padded by nothing": (MATRIX, lambda x: x.pad(((0, 0), (0, 0)))),
    "repeated once": (MATRIX, lambda x: x.repeat(1, 1)),
    "dropout of nothing": (MATRIX, lambda x: x.dropout(0.0)),
}

CONSTANT: dict[str, tuple[Callable[[], Tensor], np.ndarray]] = {
    "sum": (lambda: Tensor.ones(4).sum(), np.float32(4)),
    "sum over an axis": (lambda: Tensor.full((3, 2), 0.1).sum(0), np.full(2, np.float32(3 * np.float32(0.1)))),
    "sum of ints that wraps": (lambda: Tensor.full((2,), 2**31 - 1, dtype="int32").sum(), np.int32(-2)),
    "sum that overflows": (lambda: Tensor.full((4,), 3e38).sum(), np.float32(INFINITY)),
    "sum of negative zeros": (lambda: Tensor.full((4,), -0.0).sum(), np.float32(-0.0)),
    "sum of NaN": (lambda: Tensor.full((4,), math.nan).sum(), np.float32(math.nan)),
    "sum of half floats": (lambda: Tensor.ones(70000, dtype="float16").sum(acc_dtype="float16"), np.float16(INFINITY)),
    "prod": (lambda: Tensor.full((3,), -2.0).prod(), np.float32(-8)),
    "prod that overflows": (lambda: Tensor.full((3001,), -2.0).prod(), np.float32(-INFINITY)),
    "prod of ints that wraps": (lambda: Tensor.full((33,), 2, dtype="int32").prod(), np.int32(0)),
    "max": (lambda: Tensor.full((4,), 2.5).max(), np.float32(2.5)),
    "min": (lambda: Tensor.full((4, 2), -1).min(1), np.full(4, -1, np.int32)),
    "mean": (lambda: Tensor.ones(4, 4).mean(), np.float32(1)),
    "all": (lambda: Tensor.ones(4, dtype="bool").all(), np.bool_(True)),
    "cast": (lambda: Tensor.full((2,), 2.7).cast("int32"), np.full(2, 2, np.int32)),
    "bits": (lambda: Tensor.ones(2).bitcast("int32"), np.full(2, 0x3F800000, np.int32)),
    "root": (lambda: Tensor.full((2,), 2.0).sqrt(), np.full(2, np.sqrt(np.float32(2)))),
    "sum of constants": (lambda: Tensor.ones(2, 1) + Tensor.full((1, 3), 0.5), np.full((2, 3), 1.5, np.float32)),
    "zeros with zeros around": (lambda: Tensor.zeros(2).pad(((1, 1),)) * 3, np.zeros(4, np.float32)),
    "x ** 0": (lambda: Tensor(FLOATS) ** 0, np.ones(6, np.float32)),
    "i * 0": (lambda: Tensor(INTS) * 0, np.zeros(6, np.int32)),
    "i & 0": (lambda: Tensor(INTS) & 0, np.zeros(6, np.int32)),
    "i | -1": (lambda: Tensor(INTS) | -1, np.full(6, -1, np.int32)),
    "i ^ i": (lambda: (x := Tensor(INTS)) ^ x, np.zeros(6, np.int32)),
    "i % 1": (lambda: Tensor(INTS) % 1, np.zeros(6, np.int32)),
    "less than the least": (lambda: Tensor(FLOATS) < -INFINITY, np.zeros(6, np.bool_)),
    "above the greatest uint8": (lambda: Tensor([3, 255], dtype="uint8") <= 255, np.ones(2, np.bool_)),
}


def kernels(f: Callable[[], object]) -> int:
    GlobalCounters.reset()
    f()
    return GlobalCounters.kernel_count


def assert_same_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    if np.issubdtype(expected.dtype, np.floating):
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
@pytest.mark.parametrize("name", SAME)
def test_identities_need_no_kernel(name: str, device: str) -> None:
    values, f = SAME[name]
    x = Tensor(values, device=device).realize()
    y = f(x)
    assert y.schedule() == []
    assert kernels(y.realize) == 0
    assert_same_bits(y.numpy(), values)


@pytest.mark.parametrize("name", CONSTANT)
def test_constants_need_no_kernel(name: str) -> None:
    f, expected = CONSTANT[name]
    y = f()
    assert y.schedule() == []
    assert kernels(y.realize) == 0
    assert_same_bits(y.numpy(), np.asarray(expected))


@pytest.mark.parametrize("dtype", [kind for kind in dtypes.fields().values() if kind.count == 1])
@pytest.mark.parametrize("size", [1, 3, 10000])
def test_a_constant_fills_memory_in_every_type(dtype: DType, size: int) -> None:
    number = 1 if dtypes.is_bool(dtype) else 3
    x = Tensor.full((size,), number, dtype=dtype)
    assert kernels(x.realize) == 0
    assert set(x.cast("float32").tolist()) == {float(number)}


@pytest.mark.parametrize("f", [lambda x: x + 0, lambda x: x + 0.0, lambda x: x * 0, lambda x: x - x, lambda x: x / x])
def test_expressions_that_special_floats_distinguish_are_computed(f: Callable[[Tensor], Tensor]) -> None:
    found = f(Tensor(FLOATS))
    assert len(found.schedule()) == 1
    with np.errstate(invalid="ignore"):
        expected = f(FLOATS)
    assert_same_bits(found.numpy(), expected)


def test_folded_results_have_the_promoted_dtype() -> None:
    ints = Tensor([1, 2])
    assert (ints * 1.0).dtype is dtypes.float32 and (ints / 1).dtype is dtypes.float32
    assert (ints * 1).dtype is dtypes.int32 and (Tensor([True]) * 1).dtype is dtypes.int32
    assert (ints * 1.0).tolist() == [1.0, 2.0]


def test_negative_zero_minus_zero_is_negative_zero() -> None:
    assert math.copysign(1.0, (Tensor([-0.0]) - 0).item()) == -1.0


def test_folded_results_share_no_memory_for_writes() -> None:
    x = Tensor([1.0, 2.0]).realize()
    y = x * 1
    x[0] = 5.0
    assert (x.tolist(), y.tolist()) == ([5.0, 2.0], [1.0, 2.0])
    z = x * 1
    z.assign(Tensor([7.0, 8.0]))
    z.realize()
    assert (x.tolist(), z.tolist()) == ([5.0, 2.0], [7.0, 8.0])


@pytest.mark.parametrize("is_marked", [True, False])
def test_gradients_pass_through_folded_operations(is_marked: bool) -> None:
    x = Tensor([1.0, 2.0], requires_grad=is_marked)
    y = x * 1
    z = (x * 3 + y * 5 + y.neg().neg()).sum()
    assert [one.tolist() for one in z.gradient(x, y)] == [[9.0, 9.0], [6.0, 6.0]]


def test_gradients_of_constants_are_found() -> None:
    w, x = Tensor.ones(3), Tensor([1.0, 2.0, 3.0])
    assert (w * x).sum().gradient(w)[0].tolist() == [1.0, 2.0, 3.0]
    v = Tensor.full((3,), 2.0)
    assert ((v + 1).relu() * 3).sum().gradient(v)[0].tolist() == [3.0] * 3
    u = Tensor.full((2,), 0.0)
    assert (-u).sigmoid().sum().gradient(u)[0].tolist() == [-0.25, -0.25]
    assert u.cat(v).square().sum().gradient(v)[0].tolist() == [4.0] * 3


def test_a_sigmoid_of_the_negative_twice_has_the_gradient_of_the_sigmoid() -> None:
    x = Tensor([0.5])
    np.testing.assert_allclose((-x).sigmoid().sum().gradient(x)[0].numpy(), -0.2350037, rtol=1e-6)


def test_a_captured_call_returns_a_new_constant_each_time() -> None:
    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x * 0 + 7).realize(), (x * 1).realize()

    for number in range(5):
        seven, same = step(Tensor([number, 2]).realize())
        assert (seven.tolist(), same.tolist()) == ([7, 7], [number, 2])
        seven[0] = 1
        seven.realize()


def test_realized_tensors_have_an_empty_schedule() -> None:
    for x in (Tensor.rand(4, 4), Tensor.randn(3, 5), Tensor.uniform(2, 2), Tensor.ones(3), Tensor.rand(4, 4).T):
        assert x.realize().schedule() == []


def test_a_symbolic_number_is_no_constant() -> None:
    n = Variable("n", 0, 9).bind(1)
    x = Tensor([1, 2])
    assert [(x * n).tolist(), (n + x).tolist(), (x + n - n).tolist()] == [[1, 2], [2, 3], [1, 2]]  # type: ignore[attr-defined]
    assert len((x * n).schedule()) == 1

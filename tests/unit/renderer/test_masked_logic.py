"""A choice between a value and bitwise logic on it. LLVM 22 compiles it wrongly for AVX-512 (llvm-project 157929)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.kernels import rendered, unread
from tinyexplore import Tensor, dtypes

INTS = ("int32", "uint32", "int64", "uint64")


def bit_select(a: Any, b: Any, low: Any, high: Any) -> Any:
    return (b & low) | (a & high)


def by_xor(a: Any, b: Any, low: Any, high: Any) -> Any:
    return ((a ^ b) & low) ^ a


@pytest.mark.parametrize("kept_bits", [31, 16])
@pytest.mark.parametrize("form", [bit_select, by_xor])
@pytest.mark.parametrize("name", INTS)
@pytest.mark.parametrize("size", [3, 5, 16, 33, 1000, 4096])
def test_either_arm_may_be_logic_on_the_other(size: int, name: str, form: Any, kept_bits: int) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(name)
    a, b = (rng.integers(info.min, info.max, size, name, endpoint=True) for _ in range(2))
    every = 2**info.bits - 1
    bits = (1 << (kept_bits if kept_bits == 16 else info.bits - 1)) - 1
    low, high = (np.array([value], f"uint{info.bits}").astype(name) for value in (bits, every - bits))
    choice = rng.integers(0, 2, size).astype(bool)
    x, y, c = Tensor(a), Tensor(b), Tensor(choice)
    logic, expected = form(x, y, Tensor(low), Tensor(high)), form(a, b, low, high)
    constant = form(x, y, int(low[0]), int(high[0]))
    for given in (logic, constant):
        np.testing.assert_array_equal(c.where(x, given).numpy(), np.where(choice, a, expected))
        np.testing.assert_array_equal(c.where(given, x).numpy(), np.where(choice, expected, a))
        np.testing.assert_array_equal(c.where(given, y).numpy(), np.where(choice, expected, b))


@pytest.mark.parametrize("name", ["float32", "float64"])
@pytest.mark.parametrize("size", [3, 5, 16, 33, 1000])
def test_signs_and_remainders_of_floats(size: int, name: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=size).astype(name) for _ in range(2))
    x, y = Tensor(a), Tensor(b)
    np.testing.assert_array_equal((x < y).where(x, y.copysign(x)).numpy(), np.where(a < b, a, np.copysign(b, a)))
    np.testing.assert_array_equal((x < y).where(y.copysign(x), y).numpy(), np.where(a < b, np.copysign(b, a), b))
    np.testing.assert_allclose((x % y).numpy(), np.mod(a, b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [3, 5, 6, 7, 33, 1000])
@pytest.mark.parametrize("dtype", [dtypes.bfloat16, dtypes.float16])
def test_remainders_of_short_floats(dtype: Any, size: int) -> None:
    """The remainder is exact, and the divisor is added in the short dtype, as in PyTorch."""
    rng = np.random.default_rng(2)
    a, b = (Tensor(rng.normal(size=size).astype(np.float32) * 8).cast(dtype).realize() for _ in range(2))
    x, y = a.float().numpy(), b.float().numpy()
    rest = np.fmod(x, y)
    divisor = np.where((rest != 0) & ((rest < 0) != (y < 0)), y, np.float32(0))
    expected = (Tensor(rest).cast(dtype) + Tensor(divisor).cast(dtype)).float()
    np.testing.assert_array_equal((a % b).float().numpy(), expected.numpy())


@pytest.mark.parametrize(("target", "fences"), [("cooperlake", 1), ("haswell", 0)])
def test_only_targets_with_masked_logic_have_a_fence(target: str, fences: int) -> None:
    x, y = unread(64), unread(64)
    bits = Tensor(x).bitcast(dtypes.int32)
    choice = (Tensor(x) < Tensor(y)).where(bits, (Tensor(y).bitcast(dtypes.int32) & 0x7FFFFFFF) | (bits & -0x80000000))
    plain = (Tensor(x) < Tensor(y)).where(bits, bits + 1)
    for value, expected in ((choice, fences), (plain, 0)):
        assert rendered(value.lazydata, target).source.count("= call <16 x float> @llvm.arithmetic.fence") == expected

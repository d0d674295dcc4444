"""Division of bytes by a constant, and of any integer by a power of two, as products."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore.codegen.rewrites.division import DIVISIONS
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp, graph_rewrite

ODD = np.random.default_rng(0).uniform(-300, 300, 300).astype(np.float32).tolist()
DIVISORS = [*map(float, range(1, 260)), -255.0, 0.1, 1e-5, 3e15, *ODD]


def quotient(dtype: DType, divisor: float) -> tuple[UOp, UOp]:
    x = UOp(Ops.DEFINE_VAR, dtype, (), ("x", dtypes.min(dtype), dtypes.max(dtype)))
    return x, x.cast(dtypes.float32).alu(Ops.FDIV, UOp.const(dtypes.float32, divisor))


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int8], ids=lambda dtype: dtype.name)
def test_a_byte_divided_by_a_constant_is_an_exact_product(dtype: DType) -> None:
    values = np.arange(256, dtype=np.uint8).view(dtype.name)
    changed = 0
    for divisor in DIVISORS:
        x, before = quotient(dtype, divisor)
        after = graph_rewrite(before, DIVISIONS)
        changed += after is not before
        expected = values.astype(np.float32) / np.float32(divisor)
        for fused in (False, True):
            found = evaluate_in_numpy(after, {x: values}, fused=fused)
            np.testing.assert_array_equal(found.view(np.int32), expected.view(np.int32))
    assert changed > len(DIVISORS) * 0.9


@pytest.mark.parametrize("divisor", [0.0, -0.0, math.inf, math.nan, 1e-40, 1e30])
def test_a_divisor_without_a_normal_reciprocal_is_divided(divisor: float) -> None:
    _, before = quotient(dtypes.uint8, divisor)
    assert graph_rewrite(before, DIVISIONS) is before


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
def test_division_by_a_power_of_two_is_an_exact_product(dtype: DType) -> None:
    bits = np.random.default_rng(0).integers(0, 256, 8000, dtype=np.uint8)  # of every size, subnormals, inf and NaN
    values = bits.view(dtype.name)
    most = int(-np.log2(np.finfo(values.dtype).smallest_normal))
    for exponent in (*range(-9, 10), most, -most, most - 1, most + 1, -most - 1):
        for divisor in (math.ldexp(1, exponent), -math.ldexp(1, exponent)):
            x = UOp(Ops.DEFINE_VAR, dtype, (), ("x", dtypes.min(dtype), dtypes.max(dtype)))
            before = x.alu(Ops.FDIV, UOp.const(dtype, divisor))
            after = graph_rewrite(before, DIVISIONS)
            assert (after.op is Ops.MUL) == (abs(exponent) <= most)
            with np.errstate(all="ignore"):
                expected = values / values.dtype.type(divisor)
                np.testing.assert_array_equal(evaluate_in_numpy(after, {x: values}), expected)


def test_wider_integers_are_divided() -> None:
    _, before = quotient(dtypes.int16, 255.0)
    assert graph_rewrite(before, DIVISIONS) is before

"""Arithmetic of small floats that is computed in wider types, against exact fractions and NumPy."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.laws.meaning import value_of
from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore.codegen.rewrites.small_floats import SMALL_FLOATS, compute_in_float32
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp
from tinyexplore.uop.semantics import from_bits

STORES_SMALL_FLOATS = SimpleNamespace(target=SimpleNamespace(storage_only=SMALL_FLOATS, unsupported_dtypes=()))
LACKS_FLOAT64 = SimpleNamespace(target=SimpleNamespace(storage_only=SMALL_FLOATS, unsupported_dtypes=(dtypes.float64,)))
# bits of the mantissa with the leading one, the exponent of the least normal number, the greatest number
FORMATS = {
    dtypes.float16: (11, -14, Fraction(65504)),
    dtypes.bfloat16: (8, -126, Fraction(255 << 120)),
    dtypes.fp8e4m3: (4, -6, Fraction(448)),
    dtypes.fp8e5m2: (3, -14, Fraction(57344)),
    dtypes.float32: (24, -126, Fraction((1 << 24) - 1) * 2**104),
}
EACH = pytest.mark.parametrize("dtype", SMALL_FLOATS, ids=lambda dtype: dtype.name)


def rounded(exact: Fraction, dtype: DType) -> Fraction | None:
    """The value of `dtype` nearest to `exact`, ties to even. None where that is beyond the greatest number."""
    bits, least, greatest = FORMATS[dtype]
    size = abs(exact)
    exponent = max(least, size.numerator.bit_length() - size.denominator.bit_length() - 1)
    if size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    step = Fraction(2) ** (exponent - bits + 1)
    found = round(exact / step) * step
    return found if abs(found) <= greatest else None


def mulacc(dtype: DType) -> tuple[UOp, tuple[UOp, UOp, UOp]]:
    x, y, z = (UOp(Ops.DEFINE_VAR, dtype, (), (name, 0, 0)) for name in "xyz")
    return UOp(Ops.MULACC, dtype, (x, y, z)), (x, y, z)


def finite(random: Random, dtype: DType) -> float:
    while True:
        value = from_bits(random.getrandbits(8 * dtype.itemsize), dtype)
        if abs(value) < float("inf"):
            return value


def awkward(random: Random, dtype: DType) -> tuple[float, float, float]:
    """x, y and z of which x y + z lies close to the middle of two values of `dtype`."""
    bits, least, _ = FORMATS[dtype]
    while True:
        shift = random.randint(max(least, -40) // 2, 6)
        x = random.randrange(1 << bits - 1, 1 << bits) * 2.0**shift
        y = random.randrange(1 << bits - 1, 1 << bits) * 2.0 ** random.choice((-bits, 1 - bits, -bits - 1))
        middle = rounded(Fraction(x * y), dtype)
        if middle is None or rounded(Fraction(x), dtype) != x:
            continue
        far = random.randint(0, bits + 4)
        z = random.choice((-1, 1)) * (float(middle) or 1.0) * random.choice((2.0**far, 2.0**-far))
        near = rounded(Fraction(z), dtype)
        if near is not None and rounded(Fraction(y), dtype) == y:
            return x, y, float(near)


def as_defined(exact: Fraction, dtype: DType) -> Fraction | None:
    """`exact` rounded once to float16. What becomes another small float is rounded to float32 first."""
    if dtype is dtypes.float16:
        return rounded(exact, dtype)
    single = rounded(exact, dtypes.float32)
    return None if single is None else rounded(single, dtype)


@EACH
def test_a_mulacc_of_small_floats_is_rounded_as_defined(dtype: DType) -> None:
    """The definition, and what the rule makes of it, are x y + z as a fraction, rounded."""
    node, leaves = mulacc(dtype)
    after = compute_in_float32(node, STORES_SMALL_FLOATS)
    assert after is not None
    random, tried = Random(dtype.name), 0
    for number in range(2000):
        given: Any = awkward(random, dtype) if number % 2 else [finite(random, dtype) for _ in leaves]
        x, y, z = map(Fraction, given)
        exact = as_defined(x * y + z, dtype)
        if exact is None:
            continue
        tried += 1
        values = dict(zip(leaves, given))
        assert value_of(node, values) == value_of(after, values) == (float(exact),), given
    assert tried > 1000


def test_a_sum_that_float32_cannot_represent() -> None:
    """x y + z is 2**-24 above the middle of two float16. A target without float64 rounds it twice."""
    node, leaves = mulacc(dtypes.float16)
    values = dict(zip(leaves, (683 * 2.0**-9, 3 * 2.0**-2, 2.0**-24)))  # x y = 1 + 2**-11
    found = [compute_in_float32(node, target) for target in (STORES_SMALL_FLOATS, LACKS_FLOAT64)]
    assert value_of(node, values) == value_of(found[0], values) == (1 + 2.0**-10,)
    assert value_of(found[1], values) == (1.0,)


EVERY_HALF = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
IN_FLOAT64 = {Ops.ADD: np.add, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MOD: np.fmod}


def in_numpy(op: Ops, *arrays: np.ndarray) -> np.ndarray:
    leaves = [UOp(Ops.DEFINE_VAR, dtypes.float16, (), (name, 0, 0)) for name in "xy"[: len(arrays)]]
    after = compute_in_float32(UOp(op, dtypes.float16, tuple(leaves)), STORES_SMALL_FLOATS)
    assert after is not None
    return evaluate_in_numpy(after, dict(zip(leaves, arrays)))


@pytest.mark.parametrize("op", IN_FLOAT64, ids=lambda op: op.name)
def test_one_operation_of_halves_is_rounded_as_if_once(op: Ops) -> None:
    """float64 holds a sum, a product and a remainder of two halves; a quotient to more than twice their bits."""
    shuffled = np.random.default_rng(0).permutation
    for _ in range(8):
        x, y = shuffled(EVERY_HALF), shuffled(EVERY_HALF)
        with np.errstate(all="ignore"):
            exact = IN_FLOAT64[op](x.astype(np.float64), y.astype(np.float64)).astype(np.float16)
        np.testing.assert_array_equal(in_numpy(op, x, y), exact)


def test_the_square_root_of_every_half_is_rounded_as_if_once() -> None:
    with np.errstate(all="ignore"):
        exact = np.sqrt(EVERY_HALF.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(in_numpy(Ops.SQRT, EVERY_HALF), exact)


@pytest.mark.parametrize("op", (Ops.SIN, Ops.COS), ids=lambda op: op.name)
def test_the_error_of_a_function_of_halves_is_within_the_rules_bound(op: Ops) -> None:
    x = EVERY_HALF[np.isfinite(EVERY_HALF)]
    exact = {Ops.SIN: np.sin, Ops.COS: np.cos}[op](x.astype(np.float64))
    ulp = np.spacing(np.abs(exact.astype(np.float16))).astype(np.float64)
    error = np.abs(in_numpy(op, x).astype(np.float64) - exact) / ulp
    assert error.max() <= 0.5 + 2.0**-13

"""DOUBLE: functions of float64 lowered to arithmetic are close to the mathematical value, everywhere."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from tests.support.high_precision import REFERENCE
from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore import Context, Tensor
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Ops, UOp, graph_rewrite
from tinyexplore.uop import transcendental64 as tables
from tinyexplore.uop.ops import RARELY
from tinyexplore.uop.transcendental64 import DOUBLE

X = UOp(Ops.DEFINE_VAR, dtypes.float64, (), ("x", 0, 0))
# the errors that the rules' docstrings state, in ulp
STATED = {Ops.EXP: 1.2, Ops.EXP2: 1.1, Ops.LOG: 1.0, Ops.LOG2: 1.5, Ops.SIN: 2.5, Ops.COS: 2.5, Ops.TANH: 2.7}
FUNCTIONS = sorted(STATED)
FUSED = pytest.mark.parametrize("fused", [False, True], ids=["rounded_twice", "rounded_once"])
EACH = pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.name)


def written_out(op):
    return graph_rewrite(UOp(op, dtypes.float64, (X,)), DOUBLE)


class _Scaling:
    fuses_multiply_add = has_scale = True

    @staticmethod
    def lanes(dtype):
        return 64 // dtype.itemsize


LANES = UOp(Ops.DEFINE_VAR, dtypes.float64.vec(8), (), ("x", 0, 0))


def arguments(op, count):
    """Where the function changes most, beside numbers of all sizes, and those next to multiples of π/2."""
    rng = np.random.default_rng(list(op.name.encode()))
    logarithmic = op in (Ops.LOG, Ops.LOG2)
    sizes = np.exp(rng.uniform(math.log(5e-324), math.log(1e308), count))
    if logarithmic:
        close = np.exp(rng.uniform(math.log(1e-16), math.log(0.4), count))
        return np.concatenate([sizes, rng.uniform(0.4, 2.5, count), 1 + close, 1 - close])
    far = {Ops.EXP: 745.2, Ops.EXP2: 1075.0, Ops.TANH: 22.0}.get(op, tables.FAR + 9)
    parts = [rng.uniform(-end, end, count) for end in (1.0, far, min(far, 20.0))]
    if op in (Ops.SIN, Ops.COS):
        quarters = rng.integers(1, 1 << 22, count) * (math.pi / 2)
        parts += [quarters, np.nextafter(quarters, 0)]
    return np.concatenate([*parts, sizes[sizes < 1], -sizes[sizes < 1]])


def worst_ulp(found, exact):
    """`exact` in more digits; what is not finite has to be the nearest float64."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float64)
        finite = np.isfinite(nearest) & np.isfinite(found)
        np.testing.assert_array_equal(found[~finite], nearest[~finite])
        distance = np.abs(found[finite].astype(exact.dtype) - exact[finite])
        return float((distance / np.spacing(np.abs(nearest[finite]))).max())


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no floats longer than float64: see the next test")
@FUSED
@EACH
def test_the_error_is_within_the_rules_bound(op, fused):
    x = arguments(op, 20_000)
    with np.errstate(all="ignore"):
        exact = REFERENCE[op][0](x.astype(np.longdouble))
    assert worst_ulp(evaluate_in_numpy(written_out(op), {X: x}, fused=fused), exact) <= STATED[op]


@pytest.mark.parametrize("op", [Ops.EXP, Ops.EXP2], ids=lambda op: op.name)
def test_the_error_by_scale_and_table_is_within_the_rules_bound(op):
    node = graph_rewrite(UOp(op, LANES.dtype, (LANES,)), DOUBLE, _Scaling())
    assert len(node.find(Ops.SCALE)) == len(node.find(Ops.TABLE)) == 1
    x = np.concatenate([arguments(op, 300), [1e300, -1e300]])
    found = evaluate_in_numpy(node, {LANES: x}, fused=True)
    with mpmath.workprec(120):
        exact = [REFERENCE[op][1](mpmath.mpf(value)) if abs(value) < 1e5 else mpmath.mpf(value) for value in x.tolist()]
        nearest = np.array([float(value) if value < 1e308 * 1.79769 else math.inf for value in exact])
        nearest[-1] = 0.0
        finite = np.isfinite(nearest)
        np.testing.assert_array_equal(found[~finite], nearest[~finite])
        for value, result, near in zip(exact[:-2], found, nearest):
            assert not math.isfinite(near) or abs(mpmath.mpf(float(result)) - value) <= STATED[op] * np.spacing(near)
    special = np.array([math.nan, math.inf, -math.inf, 0.0])
    np.testing.assert_array_equal(evaluate_in_numpy(node, {LANES: special}, fused=True), [math.nan, math.inf, 0.0, 1.0])


@EACH
def test_the_error_against_arbitrary_precision(op):
    x = arguments(op, 150)
    found = evaluate_in_numpy(written_out(op), {X: x}, fused=True)
    with mpmath.workprec(220):
        for value, result in zip(x, found):
            exact = REFERENCE[op][1](mpmath.mpf(float(value)))
            nearest = float(exact)
            if math.isfinite(nearest):
                assert abs(mpmath.mpf(float(result)) - exact) <= STATED[op] * np.spacing(abs(nearest)), value
            else:
                assert result == nearest


@EACH
def test_special_values_are_those_of_c(op):
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1.0, 2.0**-1022, 1e308, -1e308, 1e22])
    found = evaluate_in_numpy(written_out(op), {X: x})
    with np.errstate(all="ignore"):
        expected = REFERENCE[op][0](x)
    np.testing.assert_allclose(found, expected, rtol=4e-16)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


def test_whole_powers_of_two_are_exact():
    exponents = np.arange(-1074, 1024, dtype=np.float64)
    powers = evaluate_in_numpy(written_out(Ops.EXP2), {X: exponents})
    np.testing.assert_array_equal(powers, np.ldexp(1.0, exponents.astype(int)))
    np.testing.assert_array_equal(evaluate_in_numpy(written_out(Ops.LOG2), {X: powers}), exponents)


def test_huge_angles_use_the_devices_function_in_a_branch():
    for op in (Ops.SIN, Ops.COS):
        (choice,) = [node for node in written_out(op).toposort() if node.arg is RARELY]
        assert choice.src[1].op is op and choice.src[1].src == (X,)


def test_constants_have_the_stated_precision():
    with mpmath.workprec(300):
        for parts, value, digits in ((tables.HALF_PI_PARTS, mpmath.pi / 2, 144), (tables.LN2_PARTS, mpmath.log(2), 85)):
            assert abs(sum(mpmath.mpf(part) for part in parts) - value) < mpmath.mpf(2) ** -digits
        assert tables.TWO_OVER_PI == float(2 / mpmath.pi) and tables.LOG2E == float(1 / mpmath.log(2))
    for parts, bits in ((tables.HALF_PI_PARTS[:-1], 30), (tables.LN2_PARTS[:-1], 32)):
        assert all(math.ldexp(math.frexp(part)[0], bits).is_integer() for part in parts)


@EACH
def test_a_device_computes_it_so_in_every_lane(op):
    """Numbers of a vector on either side of what is rare, at a length that no vector divides."""
    x = arguments(op, 50)[:149]
    if op in (Ops.SIN, Ops.COS):
        x[::7] *= 1e9
    found = getattr(Tensor(x), op.name.lower())().numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, REFERENCE[op][0](x), rtol=1e-15)
    with Context(TRANSCENDENTAL=0):
        np.testing.assert_allclose(getattr(Tensor(x), op.name.lower())().numpy(), found, rtol=1e-15)

"""TRANSCENDENTAL: lowered functions are close to the mathematical value, everywhere in float32."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from tests.support.high_precision import REFERENCE
from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore.dtype import dtypes
from tinyexplore.uop import OpGroups, Ops, PatternMatcher, UOp, graph_rewrite, transcendental64
from tinyexplore.uop import transcendental as tables
from tinyexplore.uop.algebra import SIMPLIFY
from tinyexplore.uop.ops import RARELY
from tinyexplore.uop.semantics import evaluate
from tinyexplore.uop.transcendental import TRANSCENDENTAL

X = UOp(Ops.DEFINE_VAR, dtypes.float32, (), ("x", 0, 0))
Y = UOp(Ops.DEFINE_VAR, dtypes.float32, (), ("y", 0, 0))

# the errors that the rules' docstrings state, in ulp
STATED = {
    Ops.EXP: 1.2,
    Ops.EXP2: 1.1,
    Ops.LOG: 1.0,
    Ops.LOG2: 1.3,
    Ops.SIN: 1.5,
    Ops.COS: 1.5,
    Ops.TANH: 1.4,
    Ops.ERF: 1.9,
    Ops.POW: 0.51,
}
# where the function changes most, beside floats of all sizes
INTERESTING = {
    Ops.EXP: (-104.0, 89.0),
    Ops.EXP2: (-151.0, 129.0),
    Ops.LOG: (0.4, 2.5),
    Ops.LOG2: (0.4, 2.5),
    Ops.SIN: (-20.0, 20.0),
    Ops.COS: (-20.0, 20.0),
    Ops.TANH: (-10.0, 10.0),
    Ops.ERF: (-4.0, 4.0),
}
ONE_ARGUMENT = sorted(REFERENCE)


class _Fusing:
    """A target whose MULACC is rounded once."""

    fuses_multiply_add = True
    native_ops = frozenset()
    native_dtypes = ()


class _Scaling(_Fusing):
    """One that has SCALE and TABLE, too."""

    has_scale = True

    @staticmethod
    def lanes(dtype):
        return 64 // dtype.itemsize


def written_out(op, dtype=dtypes.float32, *, fused=False):
    sources = (X, Y) if op is Ops.POW else (X,)
    return graph_rewrite(UOp(op, dtype, sources), TRANSCENDENTAL, _Fusing() if fused else None)


def all_floats(step):
    """Every `step`-th float32, of either sign, subnormals, infinities and NaN among them."""
    return np.arange(step // 2, 1 << 32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)


def error_in_ulp(found, exact):
    """Of the finite results; those that are not finite (or should not be) must be the float32 nearest to `exact`."""
    with np.errstate(all="ignore"):
        nearest = exact.astype(np.float32)
        finite = np.isfinite(nearest) & np.isfinite(found)
        np.testing.assert_array_equal(found[~finite], nearest[~finite])
        distance = np.abs(found[finite].astype(np.float64) - exact[finite])
        return distance / np.spacing(np.abs(nearest[finite])).astype(np.float64)


@pytest.mark.parametrize("fused", [False, True], ids=["rounded_twice", "rounded_once"])
@pytest.mark.parametrize("op", ONE_ARGUMENT, ids=lambda op: op.name)
def test_the_error_is_within_the_rules_bound(op, fused):
    x = np.concatenate([all_floats(40_009), np.linspace(*INTERESTING[op], 100_000, dtype=np.float32)])
    with np.errstate(all="ignore"):
        exact = REFERENCE[op][0](x.astype(np.float64))
    nodes = {written_out(op), written_out(op, fused=fused)}
    for node in nodes:
        assert error_in_ulp(evaluate_in_numpy(node, {X: x}, fused=fused), exact).max() <= STATED[op]


@pytest.mark.parametrize("op", ONE_ARGUMENT, ids=lambda op: op.name)
def test_the_error_against_arbitrary_precision(op):
    """The same against mpmath, which shares no code with the libm that NumPy takes its values from."""
    x = np.concatenate([all_floats(6_000_011), np.linspace(*INTERESTING[op], 800, dtype=np.float32)])
    x = x[np.isfinite(x) & ((x > 0) if op in (Ops.LOG, Ops.LOG2) else True)]
    if op in (Ops.EXP, Ops.EXP2):
        x = x[(x > -104) & (x < 88)]
    with mpmath.workprec(250):
        exact = np.array([float(REFERENCE[op][1](mpmath.mpf(float(value)))) for value in x])
    assert error_in_ulp(evaluate_in_numpy(written_out(op), {X: x}), exact).max() <= STATED[op]


INF, NAN = math.inf, math.nan
SPECIAL = {
    Ops.EXP: [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (-104.0, 0.0), (88.8, INF), (1e30, INF)],
    Ops.EXP2: [(0.0, 1.0), (10.0, 1024.0), (-149.0, 2.0**-149), (-150.0, 0.0), (127.0, 2.0**127), (128.0, INF)],
    Ops.LOG: [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-1.0, NAN), (-INF, NAN)],
    Ops.LOG2: [(1.0, 0.0), (2.0**-149, -149.0), (2.0**127, 127.0), (0.0, -INF), (-1.0, NAN), (INF, INF)],
    Ops.SIN: [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1e-45), (-1e-45, -1e-45), (INF, NAN), (-INF, NAN)],
    Ops.COS: [(0.0, 1.0), (-0.0, 1.0), (1e-45, 1.0), (INF, NAN), (-INF, NAN)],
    Ops.TANH: [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1e-45), (-1e-45, -1e-45), (INF, 1.0), (-INF, -1.0), (9.5, 1.0)],
    Ops.ERF: [(0.0, 0.0), (-0.0, -0.0), (1e-45, 1e-45), (INF, 1.0), (-INF, -1.0), (5.0, 1.0), (-5.0, -1.0)],
}


SCALED = (Ops.EXP, Ops.EXP2, Ops.TANH)
LANES = UOp(Ops.DEFINE_VAR, dtypes.float32.vec(16), (), ("x", 0, 0))


def scaled(op):
    return graph_rewrite(UOp(op, LANES.dtype, (LANES,)), TRANSCENDENTAL, _Scaling())


@pytest.mark.parametrize("op", SCALED, ids=lambda op: op.name)
def test_the_error_by_scale_and_table_is_within_the_rules_bound(op):
    node = scaled(op)
    assert len(node.find(Ops.SCALE)) == len(node.find(Ops.TABLE)) == 1
    x = np.concatenate([all_floats(20_011), np.linspace(*INTERESTING[op], 400_000, dtype=np.float32)])
    with np.errstate(all="ignore"):
        exact = REFERENCE[op][0](x.astype(np.float64))
    assert error_in_ulp(evaluate_in_numpy(node, {LANES: x}, fused=True), exact).max() <= STATED[op]
    x, expected = zip(*SPECIAL[op], (NAN, NAN))
    same_floats(evaluate_in_numpy(node, {LANES: np.array(x, np.float32)}, fused=True), expected)


def test_whole_powers_by_scale_and_table_are_exact():
    exponents = np.arange(-149, 128, dtype=np.float32)
    same_floats(evaluate_in_numpy(scaled(Ops.EXP2), {LANES: exponents}), np.ldexp(1.0, exponents.astype(int)))


def test_vectors_wider_than_a_register_are_written_out_without_table():
    x = UOp(Ops.DEFINE_VAR, dtypes.float32.vec(32), (), ("x", 0, 0))
    for node in (x, X):
        assert not graph_rewrite(node.alu(Ops.EXP), TRANSCENDENTAL, _Scaling()).find(Ops.SCALE, Ops.TABLE)


def same_floats(found, expected):
    """Equal. Zeros of different sign differ, all NaNs are equal."""
    found, expected = np.float32(found), np.float32(expected)
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.parametrize("op", ONE_ARGUMENT, ids=lambda op: op.name)
def test_special_values(op):
    x, expected = zip(*SPECIAL[op], (NAN, NAN))
    same_floats(evaluate_in_numpy(written_out(op), {X: np.array(x, np.float32)}), expected)


def test_the_float32_closest_to_a_multiple_of_half_pi():
    """16367173 * 2**72 is 1.6e-9 from one: the reduction keeps all digits of the rest."""
    x = np.array([16367173.0 * 2.0**72, -16367173.0 * 2.0**72], np.float32)
    with mpmath.workprec(400):
        for op, function in ((Ops.SIN, mpmath.sin), (Ops.COS, mpmath.cos)):
            exact = np.array([float(function(mpmath.mpf(float(value)))) for value in x])
            assert error_in_ulp(evaluate_in_numpy(written_out(op), {X: x}), exact).max() <= 1.5
            assert op is Ops.SIN or abs(exact[0]) < 2e-9


@pytest.mark.parametrize("fused", [False, True], ids=["rounded_twice", "rounded_once"])
@pytest.mark.parametrize("op", [Ops.SIN, Ops.COS], ids=lambda op: op.name)
def test_sine_and_cosine_around_multiples_of_half_pi(op, fused):
    """Where the quarter turns leave least, and where the way to take them off changes."""
    quarters = np.unique(np.geomspace(1, 2.0**18, 20_000).astype(np.int64))
    x = (quarters * (math.pi / 2)).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.geomspace(2.0**17 - 99, 2.0**17 + 99, 999)])
    x = np.concatenate([x, -x]).astype(np.float32)
    found = evaluate_in_numpy(written_out(op, fused=fused), {X: x}, fused=fused)
    assert error_in_ulp(found, REFERENCE[op][0](x.astype(np.float64))).max() <= STATED[op]


def powers(rng, count):
    """Pairs (x, y): anything; results of every size; bases near 1; whole exponents."""
    anything = rng.integers(0, 1 << 32, (2, count), dtype=np.uint64).astype(np.uint32).view(np.float32)
    yield anything[0], anything[1]
    x = np.exp(rng.uniform(-80, 80, count)).astype(np.float32)
    yield x, (rng.uniform(-110, 100, count) / np.log(x.astype(np.float64))).astype(np.float32)
    yield (1 + rng.uniform(-0.01, 0.01, count)).astype(np.float32), rng.uniform(-8000, 8000, count).astype(np.float32)
    yield rng.uniform(-20, 20, count).astype(np.float32), rng.integers(-12, 13, count).astype(np.float32)


def test_pow_is_all_but_correctly_rounded():
    node = written_out(Ops.POW)
    for x, y in powers(np.random.default_rng(0), 50_000):
        with np.errstate(all="ignore"):
            exact = np.power(x.astype(np.float64), y.astype(np.float64))
        assert error_in_ulp(evaluate_in_numpy(node, {X: x, Y: y}), exact).max() <= STATED[Ops.POW]


def test_whole_powers_of_whole_numbers_are_exact():
    base, exponent = np.meshgrid(np.arange(-12, 13, dtype=np.float32), np.arange(0, 7, dtype=np.float32))
    found = evaluate_in_numpy(written_out(Ops.POW), {X: base, Y: exponent})
    np.testing.assert_array_equal(found, base**exponent)


def test_pow_of_special_values_is_that_of_c():
    values = [0.0, 1.0, 2.0, 0.5, 3.0, 1.5, math.inf, 1e-45, 3e38, 16777217.0, 2.0**-126]
    values = np.array([*values, *(-value for value in values), math.nan], np.float32)
    x, y = (grid.ravel() for grid in np.meshgrid(values, values))
    found = evaluate_in_numpy(written_out(Ops.POW), {X: x, Y: y})
    same_floats(found, [evaluate(Ops.POW, dtypes.float32, float(a), float(b)) for a, b in zip(x, y)])


@pytest.mark.parametrize("op", [*ONE_ARGUMENT, Ops.POW], ids=lambda op: op.name)
def test_simplifying_changes_no_bit(op):
    node = UOp(op, dtypes.float32, (X, Y) if op is Ops.POW else (X,))
    plain = graph_rewrite(node, TRANSCENDENTAL)
    simplified = graph_rewrite(node, TRANSCENDENTAL + SIMPLIFY)
    x, y = all_floats(700_001), all_floats(700_001)[::-1]
    values = {X: x, Y: y}
    same_floats(evaluate_in_numpy(simplified, values), evaluate_in_numpy(plain, values))


@pytest.mark.parametrize("op", [*ONE_ARGUMENT, Ops.POW], ids=lambda op: op.name)
def test_the_reference_semantics_give_the_same_bits(op):
    """Constants, folded step by step by the definition of each operation, come out as the arrays do (MULACC fused)."""
    fold = PatternMatcher([rule for rule in SIMPLIFY.rules if rule.name == "fold_constants"])
    x, y = all_floats(60_000_011), all_floats(60_000_011)[::-1]
    node = written_out(op)
    expected = evaluate_in_numpy(node, {X: x, Y: y}, fused=True)
    found = []
    for a, b in zip(x, y):
        constants = {X: UOp.const(dtypes.float32, float(a)), Y: UOp.const(dtypes.float32, float(b))}
        folded = graph_rewrite(node.substitute(constants), fold)
        assert folded.op is Ops.CONST
        found.append(folded.arg)
    same_floats(found, expected)


class _Target:
    native_ops = frozenset({Ops.EXP})
    native_dtypes = (dtypes.float32,)


def test_native_functions_are_not_rewritten():
    exp, log = UOp(Ops.EXP, dtypes.float32, (X,)), UOp(Ops.LOG, dtypes.float32, (X,))
    assert graph_rewrite(exp, TRANSCENDENTAL, _Target()) is exp
    assert graph_rewrite(log, TRANSCENDENTAL, _Target()) is not log


def test_float64_is_left_to_the_device():
    node = UOp(Ops.EXP, dtypes.float64, (UOp(Ops.DEFINE_VAR, dtypes.float64, (), ("x", 0, 0)),))
    assert graph_rewrite(node, TRANSCENDENTAL) is node


@pytest.mark.parametrize("op", [*ONE_ARGUMENT, Ops.POW], ids=lambda op: op.name)
def test_lanes_are_computed_as_scalars_are(op):
    vector = dtypes.float32.vec(8)
    x, y = (UOp(Ops.DEFINE_VAR, vector, (), (name, 0, 0)) for name in "xy")
    node = graph_rewrite(UOp(op, vector, (x, y) if op is Ops.POW else (x,)), TRANSCENDENTAL)
    assert all(part.dtype.count == 8 for part in node.toposort())
    values = all_floats(5_000_011)
    scalars = evaluate_in_numpy(written_out(op), {X: values, Y: values[::-1]})
    same_floats(evaluate_in_numpy(node, {x: values, y: values[::-1]}), scalars)


def usual(node):
    """`node` without its cold paths."""
    rare = {part: part.src[2] for part in node.find(Ops.WHERE) if part.arg is RARELY}
    return node.substitute(rare)


def test_the_number_of_operations_is_small():
    """Of the usual way, where MULACC is one operation; bitcasts cost nothing."""
    counts = {
        op: sum(
            part.op in OpGroups.ALU and part.op is not Ops.BITCAST
            for part in usual(written_out(op, fused=True)).toposort()
        )
        for op in (*ONE_ARGUMENT, Ops.POW)
    }
    assert [sum(part.op in OpGroups.ALU for part in scaled(op).toposort()) for op in SCALED] == [12, 12, 30]
    assert {op.name: count for op, count in counts.items()} == {
        "EXP": 20,
        "EXP2": 19,
        "LOG": 30,
        "LOG2": 31,
        "SIN": 24,
        "COS": 23,
        "TANH": 28,
        "ERF": 25,
        "POW": 65,
    }


def derivations():
    path = Path(__file__).parents[3] / "docs" / "numerics" / "derive_coefficients.py"
    spec = importlib.util.spec_from_file_location("derive_coefficients", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their annotations up
    spec.loader.exec_module(module)
    return module.POLYNOMIALS


# the exponents of the errors that the comments in the module state
POLYNOMIAL_ERROR = {
    "EXP2": -28.3,
    "EXP": -28.2,
    "EXP2_NEAR": -29.2,
    "EXP_NEAR": -29.2,
    "LOG": -27.3,
    "SIN": -31.4,
    "COS": -29.0,
    "TANH": -27.6,
    "ERF": -29.4,
    "ERFC_ROOT": -26.7,
    "LOG2_OF_RATIO": -45.0,
    "EXP2_LONG": -40.1,
    "EXP64": -57.8,
    "EXP2_64": -57.6,
    "EXP64_NEAR": -58.2,
    "EXP2_64_NEAR": -58.2,
    "ATANH64": -58.9,
    "SIN64": -55.6,
    "COS64": -55.5,
}


@pytest.mark.parametrize("wanted", derivations(), ids=lambda wanted: wanted.name)
def test_the_coefficients_have_the_stated_error(wanted):
    coefficients = getattr(transcendental64 if "64" in wanted.name else tables, wanted.name)
    assert len(coefficients) == wanted.degree + 1
    assert [float(wanted.dtype(c)) for c in coefficients] == list(coefficients)
    with mpmath.workdps(40):
        worst = 0
        for t in np.linspace(wanted.low, wanted.high, 401)[1:]:
            t = mpmath.mpf(float(t))
            value = sum(mpmath.mpf(c) * t**power for power, c in enumerate(coefficients))
            worst = max(worst, abs((wanted.function(t) - value) * wanted.weight(t)))
        assert math.log2(worst) <= POLYNOMIAL_ERROR[wanted.name]


def test_the_words_are_the_digits_of_two_over_pi():
    with mpmath.workprec(400):
        digits = int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** (32 * len(tables.TWO_OVER_PI) - 25)))
    assert sum(word << 32 * place for place, word in enumerate(reversed(tables.TWO_OVER_PI))) == digits

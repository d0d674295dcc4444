"""Logistic functions: quotients by 1 + exp(x) and 1 + tanh(x) keep their values and the precision of their parts."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore.codegen.transforms.logistic import fuse_one_plus_exp
from tinyexplore.dtype import dtypes
from tinyexplore.uop import Axis, AxisKind, OpGroups, Ops, UOp, graph_rewrite
from tinyexplore.uop.transcendental import TRANSCENDENTAL

MIN_EXACT_RESULT = 2.0**-119
X, Y = (UOp(Ops.DEFINE_VAR, dtypes.float32, (), (name, 0, 0)) for name in "xy")
EVERYWHERE = np.concatenate(
    [
        np.linspace(-87, 87, 40_001),
        np.linspace(-3, 3, 20_001),
        *(sign * np.geomspace(1e-40, 1e38, 4001) for sign in (1, -1)),
    ]
).astype(np.float32)


def sigmoid(x):
    return UOp.const(x.dtype, 1.0) / ((-x).alu(Ops.EXP) + 1.0)


def tanh(x):
    return x.alu(Ops.TANH)


def inner(x):
    return (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)


def gelu(x):
    return x * 0.5 * (tanh(inner(x)) + 1.0)


def slope(x):
    return -(tanh(x) * tanh(x)) + 1.0


def fused(sink, target=None):
    while (after := fuse_one_plus_exp(sink, target)) is not None:
        sink = after
    return sink


def rewritten(*roots):
    sink = fused(UOp(Ops.SINK, dtypes.void, roots))
    return sink.src if len(roots) > 1 else sink.src[0]


def values(root, x, y=None, *, fused=False):
    written_out = graph_rewrite(root, TRANSCENDENTAL)
    return evaluate_in_numpy(written_out, {X: x, Y: x if y is None else y}, fused=fused)


def worst_ulp(found, exact):
    """Of what is far from the least normal float32: a factor of it may have been below, and become 0."""
    nearest = exact.astype(np.float32)
    normal = np.abs(exact) >= MIN_EXACT_RESULT
    assert np.abs(found[~normal] - exact[~normal]).max(initial=0.0) <= MIN_EXACT_RESULT
    distance = np.abs(found[normal].astype(np.float64) - exact[normal])
    return (distance / np.spacing(np.abs(nearest[normal]))).max()


class _Scaling:
    fuses_multiply_add = has_scale = True

    @staticmethod
    def lanes(dtype):
        return 64 // dtype.itemsize


def exactly(function, x=EVERYWHERE):
    with np.errstate(all="ignore"):
        return function(x.astype(np.longdouble)).astype(np.float64)


BY_TABLE = {
    "sigmoid": (sigmoid, 2.9),
    "1 + tanh": (lambda x: tanh(x) + 1.0, 2.9),
    "1 - tanh²": (slope, 4.2),
    "x (1 + tanh)": (lambda x: x * (tanh(x) + 1.0), 2.9),
    "x / (1 + exp(-3x / 4))": (lambda x: x / ((x * -0.75).alu(Ops.EXP) + 1.0), 2.3),
}
FUNCTIONS = {
    "sigmoid": (sigmoid(X), lambda x: 1 / (1 + np.exp(-x)), 2.3),
    "1 + tanh": (tanh(X) + 1.0, lambda x: 2 / (1 + np.exp(-2 * x)), 2.4),
    "1 - tanh²": (slope(X), lambda x: 4 / (np.exp(x) + np.exp(-x)) ** 2, 4.0),
    "x (1 + tanh)": (X * (tanh(X) + 1.0), lambda x: 2 * x / (1 + np.exp(-2 * x)), 2.4),
    "x / (1 + exp(-3x / 4))": (X / ((X * -0.75).alu(Ops.EXP) + 1.0), lambda x: x / (1 + np.exp(-0.75 * x)), 2.1),
}


@pytest.mark.parametrize("fused", [False, True], ids=["rounded_twice", "rounded_once"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_error_is_small_everywhere(name, fused):
    before, function, bound = FUNCTIONS[name]
    after = rewritten(before)
    assert after is not before
    x = EVERYWHERE[np.abs(EVERYWHERE) < 1e4]  # products with the greatest are infinite
    assert worst_ulp(values(after, x, fused=fused), exactly(function, x)) <= bound


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_error_by_scale_and_table_is_small_everywhere(name):
    (build, bound), (_, function, _) = BY_TABLE[name], FUNCTIONS[name]
    lanes = UOp(Ops.DEFINE_VAR, dtypes.float32.vec(16), (), ("x", 0, 0))
    sink = UOp(Ops.SINK, dtypes.void, (build(lanes),))
    (after,) = fused(sink, _Scaling()).src
    assert len(after.find(Ops.SCALE)) == len(after.find(Ops.TABLE)) == 1
    x = EVERYWHERE[np.abs(EVERYWHERE) < 1e4]
    assert worst_ulp(evaluate_in_numpy(after, {lanes: x}, fused=True), exactly(function, x)) <= bound
    special = np.array([math.nan, math.inf, -math.inf, 0.0, 1e38, -1e38, 200.0, -200.0], np.float32)
    found = evaluate_in_numpy(after, {lanes: special}, fused=True)
    np.testing.assert_array_equal(found, values(FUNCTIONS[name][0], special))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_the_parts(name):
    before, _, _ = FUNCTIONS[name]
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e38, -1e38, 200.0, -200.0, 1e-45], np.float32)
    np.testing.assert_array_equal(values(rewritten(before), x), values(before, x))


def test_gelu_is_closer_to_its_formula_than_its_parts_are():
    """Where tanh is near -1 above all; the rounding of its argument alone is worth |u| ulp."""
    x = EVERYWHERE[np.abs(EVERYWHERE) < 12]
    with mpmath.workdps(40):
        u = [
            mpmath.sqrt(2 / mpmath.pi) * (v + mpmath.mpf("0.044715") * v**3)
            for v in (mpmath.mpf(float(value)) for value in x[::40])
        ]
        exact = np.array([float(float(value) / (1 + mpmath.exp(-2 * a))) for value, a in zip(x[::40], u)])
    x, u = x[::40], np.array([float(a) for a in u])
    distance = np.abs(values(rewritten(gelu(X)), x) - exact) / np.spacing(np.abs(exact.astype(np.float32)))
    assert (distance <= 2.0 + 6.0 * np.maximum(-u, 0.0))[np.abs(exact) > MIN_EXACT_RESULT].all()
    before = np.abs(values(gelu(X), x) - exact)
    after = np.abs(values(rewritten(gelu(X)), x) - exact)
    assert after[x < 0].max() < before[x < 0].max()


def test_gelu_is_one_exp_and_one_division():
    program = graph_rewrite(rewritten(gelu(X)), TRANSCENDENTAL).toposort()
    assert sum(node.op is Ops.FDIV for node in program) == 1
    assert sum(node.op in OpGroups.ALU and node.op is not Ops.BITCAST for node in program) <= 21


def test_a_power_of_two_where_the_constants_of_the_argument_take_the_factor():
    """gelu as Tensor has it: three multiplications less than by exp, and as close to its formula."""
    linear = math.sqrt(2 / math.pi)
    for sign in (1.0, -1.0):
        lanes = UOp(Ops.DEFINE_VAR, dtypes.float32.vec(16), (), ("x", 0, 0))
        u = lanes * (lanes * lanes * (sign * 0.044715 * linear) + sign * linear)
        sink = UOp(Ops.SINK, dtypes.void, (lanes * 0.5 * (tanh(u) + 1.0),))
        (after,) = fused(sink, _Scaling()).src
        program = after.toposort()
        assert sum(node.op in (Ops.MUL, Ops.MULACC) for node in program) == 7  # beside them only sums, and SCALE
        x = EVERYWHERE[np.abs(EVERYWHERE) < 12]
        exact = exactly(lambda v, by=-2 * sign * linear: v / (1 + np.exp(by * (v + 0.044715 * v**3))), x)
        found = evaluate_in_numpy(after, {lanes: x}, fused=True)
        distance = np.abs(found - exact) / np.spacing(np.abs(exact.astype(np.float32)))
        argument = -sign * linear * (x + 0.044715 * x.astype(np.float64) ** 3)
        assert (distance <= 2.0 + 6.0 * np.maximum(argument, 0.0))[np.abs(exact) > MIN_EXACT_RESULT].all()
        special = np.array([math.nan, math.inf, -math.inf, 0.0, 1e38, -1e38, 1e15, -1e15], np.float32)
        found = evaluate_in_numpy(after, {lanes: special}, fused=True)
        plain = values(X * 0.5 * (tanh(X * sign) + 1.0), special)
        np.testing.assert_array_equal(found, plain)


def test_a_sum_that_may_cancel_keeps_its_constants():
    """2x - 200 is exact near 100, and so is its sigmoid; times log2(e), its parts would be rounded."""
    x = np.linspace(95, 105, 4001).astype(np.float32)
    lanes = UOp(Ops.DEFINE_VAR, dtypes.float32.vec(16), (), ("x", 0, 0))
    for total in (lanes * 2.0 - 200.0, lanes * (lanes * lanes * -0.01 + 100.0)):
        sink = UOp(Ops.SINK, dtypes.void, (sigmoid(total),))
        (after,) = fused(sink, _Scaling()).src
        assert total in after.toposort()
    by_hand = 1 / (1 + np.exp(-(2 * x.astype(np.longdouble) - 200)))
    (after,) = fused(UOp(Ops.SINK, dtypes.void, (sigmoid(lanes * 2.0 - 200.0),)), _Scaling()).src
    assert worst_ulp(evaluate_in_numpy(after, {lanes: x}, fused=True), by_hand.astype(np.float64)) <= 2.9


def test_other_users_of_tanh_or_exp_keep_them():
    for roots in ((tanh(X) + 1.0, tanh(X)), (slope(X), tanh(X)), (sigmoid(X), (-X).alu(Ops.EXP))):
        assert rewritten(*roots) == roots
    assert rewritten(tanh(X) * tanh(X) * Y, slope(X)) == (tanh(X) * tanh(X) * Y, slope(X))


def test_a_sum_with_several_users_is_computed_once():
    total = tanh(X) + 1.0
    first, second = rewritten(total * Y, total * X)
    assert first.src[0] is second.src[0] and first.src[0].op is Ops.FDIV


def test_a_product_stays_in_its_own_loop():
    """x / h there would divide in every step."""
    loop = UOp.range(8, Axis(0, AxisKind.REDUCE))
    total = tanh(X) + 1.0
    product = total * loop.cast(dtypes.float32)
    assert rewritten(product).op is Ops.MUL


def test_functions_of_functions_are_all_found():
    nested = gelu(sigmoid(tanh(Y) + 1.0)) * (tanh(X) + 1.0)
    after = rewritten(nested)
    assert not [node for node in after.toposort() if node.op in (Ops.TANH, Ops.EXP)]
    x, y = np.meshgrid(np.linspace(-4, 4, 41, dtype=np.float32), np.linspace(-5, 5, 37, dtype=np.float32))
    np.testing.assert_allclose(values(after, x, y), values(nested, x, y), rtol=3e-6, atol=1e-7)


class _Native:
    native_ops = frozenset({Ops.EXP})
    native_dtypes = (dtypes.float32,)


def test_native_functions_are_not_rewritten():
    sink = UOp(Ops.SINK, dtypes.void, (gelu(X),))
    assert fused(sink, _Native()) is sink

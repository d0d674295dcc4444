"""A law for each function that is lowered to arithmetic: close to the mathematical value, or the exact remainder."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import mpmath
import numpy as np

from tests.support.high_precision import REFERENCE
from tests.support.numpy_uops import evaluate_in_numpy
from tests.unit.uop.test_transcendental import STATED
from tests.unit.uop.test_transcendental64 import STATED as STATED_LONG
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, Rule, UOp
from tinyexplore.uop.remainder import REMAINDER
from tinyexplore.uop.semantics import evaluate
from tinyexplore.uop.transcendental import TRANSCENDENTAL
from tinyexplore.uop.transcendental64 import DOUBLE

COUNT = 24  # arguments of a firing
SPECIAL = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, 1e-38, 3.0)
RULES = (*TRANSCENDENTAL.rules, *DOUBLE.rules, *REMAINDER.rules)
ERRORS = {dtypes.float32: STATED, dtypes.float64: STATED_LONG}


class _Target:
    """What a rule asks of a target: nothing is its own."""

    native_ops = frozenset[Ops]()
    native_dtypes = ()

    def __init__(self, *, fuses_multiply_add: bool, has_scale: bool) -> None:
        self.fuses_multiply_add, self.has_scale = fuses_multiply_add, has_scale

    @staticmethod
    def lanes(dtype: DType) -> int:
        return 64 // dtype.itemsize


def leaf(random: Random, name: str, dtype: DType) -> tuple[UOp, UOp]:
    """A variable, and an argument made of it."""
    x = UOp(Ops.DEFINE_VAR, dtype, (), (name, 0, 0))
    pick = random.random()
    if pick < 0.4:
        return x, x
    return x, (-x if pick < 0.6 else x * random.choice((0.5, 2.0, -4.0)) if pick < 0.8 else x.maximum(-x))


def arguments(random: Random, dtype: DType) -> np.ndarray:
    """Numbers of all sizes, of the sizes where functions change, and special ones."""
    found = [random.uniform(-6, 6) for _ in range(COUNT // 3)]
    found += [random.uniform(-100, 100) for _ in range(COUNT // 3)]
    found += [random.choice((-1, 1)) * 10 ** random.uniform(-37, 37) for _ in range(COUNT // 6)]
    found += random.sample(SPECIAL, COUNT // 6)
    return np.array(found, dtype.scalar.name)


def is_usual(op: Ops, values: tuple[float, ...]) -> bool:
    """Where mpmath says what the function is; elsewhere its definition does."""
    if not all(map(math.isfinite, values)):
        return False
    if op is Ops.POW:
        return values[0] > 0 and abs(values[1] * math.log(values[0])) < 2000
    if op in (Ops.LOG, Ops.LOG2):
        return values[0] > 0
    return abs(values[0]) < 2000 or op in (Ops.SIN, Ops.COS)


def exact_value(op: Ops, values: tuple[float, ...]) -> Any:
    numbers = [mpmath.mpf(value) for value in values]
    return mpmath.power(*numbers) if op is Ops.POW else REFERENCE[op][1](*numbers)


def judge(op: Ops, dtype: DType, values: tuple[float, ...], found: float) -> None:
    """AssertionError where `found` is farther from the value than the rule states."""
    kind = np.dtype(dtype.name).type
    if not is_usual(op, values):
        expected = evaluate(op, dtype, *values)
        if expected != expected or math.isinf(expected) or expected == 0:
            assert str(expected) == str(found), (op, values, found, expected)  # signs of zeros as well
            return
        exact = mpmath.mpf(expected)
    else:
        exact = exact_value(op, values)
    with np.errstate(all="ignore"):
        nearest = kind(float(exact))
    if not np.isfinite(nearest):
        assert found == nearest, (op, values, found)
        return
    error = abs(mpmath.mpf(found) - exact) / mpmath.mpf(float(np.spacing(abs(nearest))))
    assert error <= ERRORS[dtype][op], f"{op.name}{values} is off by {float(error)} ulp"


def function_law(rule: Rule, random: Random) -> bool:
    """Fires `rule` on one expression, and judges what comes of it at some arguments. Whether it has fired."""
    (scalar,) = rule.pattern.dtypes or ()
    op = random.choice(sorted(rule.pattern.ops or ()))
    lanes = random.choice((1, 1, 2, 4, 8, 16))
    target = _Target(fuses_multiply_add=random.random() < 0.6, has_scale=random.random() < 0.5)
    target.has_scale = target.has_scale and target.fuses_multiply_add
    dtype = scalar.vec(lanes)
    pairs = [leaf(random, name, dtype) for name in ("xy" if op in (Ops.POW, Ops.MOD) else "x")]
    after = rule(UOp(op, dtype, tuple([source for _, source in pairs])), target)
    if after is None:
        return False
    assert after.dtype is dtype and after.op is not op
    given = {variable: arguments(random, dtype) for variable, _ in pairs}
    sources = [evaluate_in_numpy(source, given) for _, source in pairs]
    for fused in {target.fuses_multiply_add, True}:  # a target that does not say so may fuse as well
        found = evaluate_in_numpy(after, given, fused=fused)
        assert found.dtype == scalar.name
        if op is Ops.MOD:
            with np.errstate(all="ignore"):
                expected = np.fmod(*sources)
            np.testing.assert_array_equal(found, expected)
            np.testing.assert_array_equal(np.signbit(found[found == found]), np.signbit(expected[found == found]))
            continue
        with mpmath.workprec(400):
            for number, result in enumerate(found):
                judge(op, scalar, tuple([float(source[number]) for source in sources]), float(result))
    return True

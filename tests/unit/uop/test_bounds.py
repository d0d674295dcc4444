"""Bounds of integer operations contain every value, and are tight if the operation allows it."""

from __future__ import annotations

from itertools import product

import pytest

from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import OpGroups, Ops, UOp
from tinyexplore.uop.bounds import _compute_interval, bounds
from tinyexplore.uop.semantics import evaluate

INTERVALS = [(low, high) for low in range(-5, 6) for high in (low, low + 1, low + 4)]
OF_TWO = sorted(
    OpGroups.BINARY - OpGroups.DOT - OpGroups.TRANSCENDENTAL - {Ops.FDIV, Ops.SCALE, Ops.POW, Ops.SHL, Ops.SHR}
)


def variable(name: str, low: int, high: int, dtype: DType = dtypes.index) -> UOp:
    return UOp(Ops.DEFINE_VAR, dtype, (), (name, low, high))


def result(op: Ops, first: UOp, second: UOp) -> UOp:
    return UOp(op, dtypes.bool if op in OpGroups.COMPARE else first.dtype, (first, second))


@pytest.mark.parametrize("op", OF_TWO, ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [dtypes.index, dtypes.int8, dtypes.bool], ids=str)
def test_bounds_hold_every_value(op: Ops, dtype: DType) -> None:
    of_bools = [(False, False), (False, True), (True, True)]
    intervals = of_bools if dtype is dtypes.bool else INTERVALS
    if dtype is dtypes.bool and op in (Ops.IDIV, Ops.MOD):
        return  # these have no bools
    for first, second in product(intervals, repeat=2):
        node = result(op, variable("a", *first, dtype), variable("b", *second, dtype))
        values = [
            evaluate(op, node.dtype, x, y, src_dtypes=(dtype, dtype))
            for x, y in product(range(first[0], first[1] + 1), range(second[0], second[1] + 1))
            if y != 0 or op not in (Ops.IDIV, Ops.MOD)
        ]
        low, high = bounds(node)
        assert all(low <= value <= high for value in values), (node, low, high, values)


def test_negation_mirrors_the_bounds() -> None:
    assert bounds(variable("v", 1, 10).alu(Ops.NEG)) == (-10, -1)
    assert bounds(variable("v", -3, 10).alu(Ops.NEG)) == (-10, 3)
    least = dtypes.min(dtypes.int8)
    assert bounds(variable("v", int(least), 3, dtypes.int8).alu(Ops.NEG)) == (-128, 127)  # -(-128) wraps


@pytest.mark.parametrize(
    ("op", "first", "second", "expected"),
    [
        (Ops.IDIV, (1, 10), (-2, -2), (-5, 0)),
        (Ops.IDIV, (-7, 9), (-3, 2), (-9, 9)),
        (Ops.MOD, (-7, 9), (-3, 2), (-2, 2)),
        (Ops.MOD, (1, 10), (-3, -3), (0, 2)),
        (Ops.AND, (-9, 9), (0, 7), (0, 7)),
        (Ops.OR, (1, 4), (2, 9), (2, 15)),
        (Ops.XOR, (0, 4), (0, 3), (0, 7)),
        (Ops.SHL, (-1, 3), (0, 4), (-16, 48)),
        (Ops.SHR, (-9, 9), (1, 2), (-5, 4)),
    ],
)
def test_bounds_are_narrow(op: Ops, first: tuple[int, int], second: tuple[int, int], expected: tuple[int, int]) -> None:
    assert bounds(result(op, variable("a", *first), variable("b", *second))) == expected


def test_mulacc_is_bounded_as_its_parts_are() -> None:
    a, b, c = variable("a", -2, 3), variable("b", 1, 4), variable("c", -5, 5)
    assert bounds(UOp(Ops.MULACC, dtypes.index, (a, b, c))) == (-13, 17)


def test_every_integer_operation_has_bounds_or_is_an_error() -> None:
    leaf = variable("a", -2, 3)
    for op in OpGroups.ALU:
        arity = 1 if op in OpGroups.UNARY else 3 if op in OpGroups.TERNARY else 2
        condition = variable("c", 0, 1, dtypes.bool)
        node = UOp(op, dtypes.index, ((condition, leaf, leaf) if op is Ops.WHERE else (leaf,) * arity))
        try:
            _compute_interval(node)
        except NotImplementedError as error:
            assert op.name in str(error)
            assert op in OpGroups.UNARY | {Ops.FDIV, Ops.SCALE} | OpGroups.TRANSCENDENTAL

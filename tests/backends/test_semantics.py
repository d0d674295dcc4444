"""The definitions of the operations (`uop/semantics.py`), the reference of every device, agree with NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.test_arithmetic import values_of
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops
from tinyexplore.uop.semantics import bfloat16, cast, evaluate

KNOWN = tuple(dtype for dtype in dtypes.all if dtype is not dtypes.bfloat16)  # NumPy has no bfloat16
BOTH: dict[Ops, Any] = {
    Ops.ADD: np.add,
    Ops.MUL: np.multiply,
    Ops.MAX: np.maximum,
    Ops.MIN: np.minimum,
    Ops.CMPLT: np.less,
    Ops.CMPLE: np.less_equal,
    Ops.CMPEQ: np.equal,
    Ops.CMPNE: np.not_equal,
}
FLOAT: dict[Ops, Any] = {Ops.FDIV: np.divide, Ops.SQRT: np.sqrt, Ops.FLOOR: np.floor, Ops.NEG: np.negative}
INT: dict[Ops, Any] = {Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor, Ops.NEG: np.negative}


def agree(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and math.isnan(found):
        return bool(np.isnan(expected))
    return type(found)(expected) == found


@pytest.mark.parametrize("dtype", KNOWN, ids=lambda dtype: dtype.name)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_exact_operations_are_numpys(dtype: DType, data: st.DataObject) -> None:
    x, y = data.draw(values_of(dtype)), data.draw(values_of(dtype))
    table = dict(BOTH)
    if not dtypes.is_bool(dtype):
        table |= FLOAT if dtypes.is_float(dtype) else INT
    a, b = (np.array(value, dtype.name) for value in (x, y))
    with np.errstate(all="ignore"):
        for op, function in table.items():
            arguments, arrays = ((x,), (a,)) if function.nin == 1 else ((x, y), (a, b))
            result = dtypes.bool if op.name.startswith("CMP") else dtype
            assert agree(evaluate(op, result, *arguments, src_dtypes=(dtype,) * len(arguments)), function(*arrays)), op


def fits(value: Any, source: DType, target: DType) -> bool:
    if not (dtypes.is_float(source) and dtypes.is_int(target)):
        return True
    return math.isfinite(value) and dtypes.min(target) <= int(value) <= dtypes.max(target)


@pytest.mark.parametrize("source", KNOWN, ids=lambda dtype: dtype.name)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_conversions_are_numpys(source: DType, data: st.DataObject) -> None:
    value = data.draw(values_of(source))
    for target in KNOWN:
        if fits(value, source, target):  # what does not is no matter of NumPy
            with np.errstate(all="ignore"):
                expected = np.array(value, source.name).astype(target.name)
            assert agree(cast(value, target, source), expected), target


@given(st.floats(width=32, allow_nan=False))
def test_bfloat16_is_the_nearest_with_ties_to_even(x: float) -> None:
    bits = int(np.array(x, np.float32).view(np.uint32))
    below, above = (np.array([b & 0xFFFF0000], np.uint32).view(np.float32)[0] for b in (bits, bits + 0x10000))
    rest = bits & 0xFFFF
    upwards = rest > 0x8000 or (rest == 0x8000 and bits >> 16 & 1)
    assert bfloat16(x) == float(above if upwards else below)

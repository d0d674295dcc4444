"""The instrumented interpreter equals the PYTHON device: the same bits for every operation, dtype and program."""

from __future__ import annotations

from random import Random

import pytest

from tests.backends.programs import elementwise
from tests.backends.test_arithmetic import SIZE, apply, operations
from tests.fuzz.stepping import check, contents_of, one_nan, plain, stepped
from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.analysis.models.stepping_program import SteppingProgram, element_view
from tinyexplore.uop import OpGroups, Ops, UOp


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("dtype", dtypes.all, ids=lambda dtype: dtype.name)
def test_every_operation_and_conversion_computes_the_same_bits(dtype: DType, lanes: int) -> None:
    fp8 = dtype in dtypes.fp8s  # it is computed in float32
    wide = dtypes.float32 if fp8 else dtype

    def build(x: list[UOp]) -> list[UOp]:
        x = [value.cast(wide.vec(lanes)) for value in x]
        found = [apply(op, *x) for op in operations(wide)]
        found += [x[0].cast(other.vec(lanes)) for other in dtypes.all]
        return found + [x[0].bitcast(other.vec(lanes)) for other in _as_wide(wide)]

    uops, _ = elementwise([dtype] * 3, build, SIZE, lanes)
    for seed in range(8):
        contents = contents_of(Random(seed), uops)
        expected = one_nan(plain(uops, contents, 0), uops)
        assert one_nan(stepped(uops, contents, 0), uops) == expected


def _as_wide(dtype: DType) -> list[DType]:
    return [other for other in dtypes.all if other.itemsize == dtype.itemsize and dtypes.bool not in (other, dtype)]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
def test_scale_table_and_horizontal_reductions_compute_the_same_bits(dtype: DType) -> None:
    bits = dtypes.int32 if dtype is dtypes.float32 else dtypes.int64

    def build(x: list[UOp]) -> list[UOp]:
        table = UOp(Ops.TABLE, dtype.vec(4), (x[1],), (0.5, 1.0, 2.0, 4.0))
        high = UOp(Ops.HREDUCE, dtype, (x[0],), Ops.MAX)
        return [x[0].alu(Ops.SCALE, table), UOp(Ops.VECTORIZE, dtype.vec(4), (high,) * 4)]

    uops, _ = elementwise([dtype, bits], build, 16, 4)
    contents = contents_of(Random(1), uops)
    expected = one_nan(plain(uops, contents, 0), uops)
    assert not isinstance(expected, str)
    assert one_nan(stepped(uops, contents, 0), uops) == expected


@pytest.mark.parametrize("start", range(0, 240, 40))
def test_random_programs_compute_the_same_bits(start: int) -> None:
    assert sum(check(number) for number in range(start, start + 40)) > 30


def test_most_random_programs_run_to_their_end() -> None:
    from tests.fuzz.stepping import drawn

    ended = 0
    for seed in range(100):
        random = Random(seed)
        uops = drawn(random)
        ended += not isinstance(plain(uops, contents_of(random, uops), 0), str)
    assert ended > 60


def test_every_executed_uop_is_reported_once_and_in_order() -> None:
    uops, _ = elementwise([dtypes.float32], lambda x: [x[0] * 2.0 + 1.0], 2)
    views = [element_view(bytearray(8), dtypes.float32) for _ in range(2)]
    views[1][0], views[1][1] = 3.0, 5.0
    told = [(uops[event[0]].op, *event[1:]) for event in SteppingProgram("double", uops).start(views)]
    counters = [0, 1]
    assert [entry for entry in told if entry[0] is Ops.RANGE] == [(Ops.RANGE, i) for i in counters]
    assert [entry for entry in told if entry[0] is Ops.LOAD] == [(Ops.LOAD, 3.0, 0, None), (Ops.LOAD, 5.0, 1, None)]
    stores = [(Ops.STORE, 7.0, 0, None, [0.0]), (Ops.STORE, 11.0, 1, None, [0.0])]
    assert [entry for entry in told if entry[0] is Ops.STORE] == stores
    assert sum(entry[0] in OpGroups.ALU for entry in told) == 2 * 3, "index, product and sum"

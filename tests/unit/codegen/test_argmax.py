"""Indices of extremes: the cases in which one loop finds both, and those in which it must not."""

from __future__ import annotations

import pytest

from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore.codegen import lower
from tinyexplore.dtype import DType, dtypes
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, apply_opt
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import PassApplied, Recorder, recording
from tinyexplore.uop import Ops


def place_of(x: LazyBuffer, axis: int, op: Ops = Ops.MAX, *, none: int | None = None, step: int = 1) -> LazyBuffer:
    """The least of the places (0, `step`, 2 · `step`, …) along `axis` at which the extreme stands, or a NaN."""
    size = x.shape[axis]
    holds = x.alu(Ops.CMPEQ, x.reduce(op, (axis,)).expand(x.shape)).alu(Ops.OR, x.alu(Ops.CMPNE, x))
    line = LazyBuffer.iota(size, dtypes.int32, x.device)
    line = line.alu(Ops.MUL, LazyBuffer.const(step, dtypes.int32, x.device, line.shape))
    places = line.reshape(tuple(size if i == axis else 1 for i in range(len(x.shape)))).expand(x.shape)
    other = LazyBuffer.const(size if none is None else none, dtypes.int32, x.device, x.shape)
    return holds.alu(Ops.WHERE, places, other).reduce(Ops.MIN, (axis,))


def looks(kernel: Kernel) -> int:
    """How many loops read memory in the program of `kernel`."""
    uops = lower(kernel)
    return len({axis for node in uops if node.op is Ops.LOAD for axis in node.ranges if axis.arg.id})


@pytest.mark.parametrize("op", [Ops.MAX, Ops.MIN])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.float64, dtypes.int8, dtypes.uint64])
def test_one_loop_finds_the_extreme_and_its_index(dtype: DType, op: Ops) -> None:
    rows = kernel_of(place_of(unread(64, 512).cast(dtype), 1, op))
    columns = kernel_of(place_of(unread(512, 64).cast(dtype), 0, op))
    for kernel in (rows, columns, apply_heuristics(rows)):
        assert looks(kernel) == 1
        assert len(kernel.plain_reduces) == 1


@pytest.mark.parametrize(("size", "loops"), [(512, 1), (517, 2), (7, 1)])  # of 7, four are no loop
def test_a_remainder_is_read_once_too(size: int, loops: int) -> None:
    kernel = kernel_of(place_of(unread(64, size), 1))
    for axis in (1, 2):
        kernel = apply_opt(kernel, Opt(OptOps.UNROLL, axis, 4))
    assert looks(kernel) == loops


def test_different_loops_are_not_merged() -> None:
    kernel = apply_opt(kernel_of(place_of(unread(64, 512), 1)), Opt(OptOps.UNROLL, 1, 4))
    assert len(kernel.plain_reduces) == 2
    assert looks(kernel) == 2


def test_an_index_must_be_less_than_the_value_for_none() -> None:
    assert looks(kernel_of(place_of(unread(64, 512), 1, none=511))) == 1
    assert looks(kernel_of(place_of(unread(64, 512), 1, none=100))) == 2


def test_indices_must_increase() -> None:
    assert looks(kernel_of(place_of(unread(64, 512), 1, none=1 << 20, step=3))) == 1
    assert looks(kernel_of(place_of(unread(64, 512), 1, step=-1))) == 2


def test_a_loop_invariant_extreme_is_not_merged() -> None:
    same = unread(2, 1).expand((2, 512))  # too few steps for the scheduler to hoist the extreme
    assert len(kernel_of(place_of(same, 1)).plain_reduces) == 2


def test_the_transform_is_recorded() -> None:
    recorder = Recorder()
    with recording(recorder):
        lower(apply_heuristics(kernel_of(place_of(unread(64, 512), 1), MACHINE)))
    told = [event for event in recorder.events if isinstance(event, PassApplied) and event.transform.name == "argmax"]
    assert [event.after is not event.before for event in told] == [True]


@pytest.mark.parametrize(
    ("shape", "axis", "opts"),
    [
        ((4096, 4096), 1, ["UNROLL(2, 4)", "UNROLL(1, 4)"]),  # nothing is read again
        ((4096, 4096), 0, ["UPCAST(0, 16)", "PREFETCH(2, 64)"]),  # as a sum of columns
        ((4096, 32), 0, ["UPCAST(0, 2)", "UNROLL(2, 4)", "UNROLL(1, 4)"]),
    ],
)
def test_a_merged_loop_gets_the_opts_of_one_loop(shape: tuple[int, int], axis: int, opts: list[str]) -> None:
    kernel = apply_heuristics(kernel_of(place_of(unread(*shape), axis)))
    found = [str(opt) for opt in kernel.applied]
    assert [opt for opt in found if opt.startswith(("UPCAST", "UNROLL", "PREFETCH"))] == opts
    assert looks(kernel) == 1

"""Combined horizontal reductions of neighboring rows equal separate ones, bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs import from_numpy
from tests.support.kernels import kernel_of, unread
from tinyexplore.codegen import PASSES, lower, pipeline
from tinyexplore.device import Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_opt, available_opts
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import AxisKind, Ops

Maker = Callable[[LazyBuffer], LazyBuffer]


def number(value: float, like: LazyBuffer) -> LazyBuffer:
    return LazyBuffer.const(value, like.dtype, like.device, like.shape)


def summed(x: LazyBuffer) -> LazyBuffer:
    return x.reduce(Ops.ADD, (1,))


def mean(x: LazyBuffer) -> LazyBuffer:
    return summed(x).alu(Ops.MUL, number(0.25, summed(x)))


def norm(x: LazyBuffer) -> LazyBuffer:
    return summed(x.alu(Ops.MUL, x)).alu(Ops.SQRT)


def spread(x: LazyBuffer) -> LazyBuffer:
    least = x.reduce(Ops.MIN, (1,))
    return x.reduce(Ops.MAX, (1,)).alu(Ops.ADD, least.alu(Ops.NEG))


def centered(x: LazyBuffer) -> LazyBuffer:
    """Its second sum depends on lanes that the first one has combined."""
    return summed(x.alu(Ops.ADD, mean(x).expand(x.shape).alu(Ops.NEG)))


def in_lanes(kernel: Kernel, rows: int, lanes: int = 8) -> Kernel:
    """Rows written out side by side, reduced in lanes."""
    if rows > 1:
        kernel = apply_opt(kernel, Opt(OptOps.UPCAST, 0, rows))
    for loop in kernel.axes:
        opt = Opt(OptOps.VECTOR, loop.arg.id, lanes)
        if loop.arg.kind is AxisKind.REDUCE and opt in available_opts(kernel):
            kernel = apply_opt(kernel, opt)
    return kernel


def ends_of(kernel: Kernel) -> list[int]:
    """The rows of each combination of lanes in the program."""
    return [len(node.src) for node in lower(kernel) if node.op is Ops.HREDUCE]


def stores_of(kernel: Kernel) -> list[int]:
    """The lanes of each store in the program."""
    return [node.src[1].dtype.count for node in lower(kernel) if node.op is Ops.STORE]


@pytest.mark.parametrize(("rows", "ends", "stores"), [(1, [1], [1]), (2, [2], [2]), (8, [8], [8]), (6, [4, 2], [4, 2])])
def test_adjacent_rows_share_a_horizontal_reduction(rows: int, ends: list[int], stores: list[int]) -> None:
    kernel = in_lanes(kernel_of(summed(unread(48, 64))), rows)
    assert (ends_of(kernel), stores_of(kernel)) == (ends, stores)


def test_a_horizontal_reduction_has_at_most_as_many_rows_as_lanes() -> None:
    kernel = in_lanes(kernel_of(summed(unread(48, 64))), 8, lanes=4)
    assert ends_of(kernel) == [1] * 8


@pytest.mark.parametrize("make", [mean, norm])
def test_operations_after_the_reductions_are_vectorized(make: Maker) -> None:
    kernel = in_lanes(kernel_of(make(unread(48, 64))), 4)
    assert (ends_of(kernel), stores_of(kernel)) == ([4], [4])


def test_operands_of_the_results_are_loaded_as_a_vector() -> None:
    kernel = in_lanes(kernel_of(summed(unread(48, 64)).alu(Ops.ADD, unread(48, 1))), 4)
    assert (ends_of(kernel), stores_of(kernel)) == ([4], [4])
    assert {node.dtype.count for node in lower(kernel) if node.op is Ops.LOAD} == {4, 8}


def test_rows_that_are_not_adjacent_are_reduced_separately() -> None:
    columns = unread(48, 3, 64).reduce(Ops.ADD, (2,))  # row 0, 3, 6, …
    assert ends_of(in_lanes(kernel_of(columns), 4)) == [1] * 4


def test_dependent_reductions_are_not_combined() -> None:
    assert sorted(ends_of(in_lanes(kernel_of(centered(unread(48, 64))), 4))) == [1] * 8


@pytest.mark.parametrize("device", ["LLVM", "CLANG", "PYTHON"])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int16, dtypes.uint64])
@pytest.mark.parametrize("rows", [2, 6, 8])
def test_no_bit_of_the_results_changes(device: str, dtype: DType, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(rows)
    values = from_numpy((9 * rng.standard_normal((24, 43))).astype(dtype.name), device)
    makers = [summed, spread] if dtypes.is_int(dtype) else [summed, mean, norm, spread, centered]
    for make in makers:
        result = make(values)
        (item,) = create_schedule([result])
        assert item.ast is not None
        kernel = in_lanes(Kernel.of(item.ast, Device[device].target), rows)
        found = []
        for passes in (PASSES, tuple(step for step in PASSES if step.name != "horizontal reductions")):
            monkeypatch.setattr(pipeline, "PASSES", passes)
            runner = compile_optimized(device, kernel)
            runner.run(runner.program.bind(item.buffers))
            found.append(item.buffers[0].copyout())
        monkeypatch.undo()
        assert found[0] == found[1], make.__name__

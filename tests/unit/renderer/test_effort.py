"""Programs that get a light optimization: LLVM would find nothing more to improve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul, numbers, softmax, to_numpy
from tests.support.kernels import WIDE, compile_all, kernel_of, rendered
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import OptOps
from tinyexplore.lazy import LazyBuffer
from tinyexplore.renderer import CompileOptions, Effort
from tinyexplore.renderer.llvm.effort import (
    BRIEF_STEPS,
    LONG_PROGRAM,
    MAX_SHUFFLED_VECTORS,
    MIN_OPERATIONS_PER_ASSEMBLED_VECTOR,
    WORK,
    find_shuffled_vectors,
    innermost_bodies,
    is_assembled_from_lanes,
    is_brief,
    is_in_full_vectors,
    lanes_of_alone,
    leaves_little,
)
from tinyexplore.runtime.llvm import compiler_for
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.util import Context


def graphs() -> dict[str, tuple[LazyBuffer, bool]]:
    wide = Device["LLVM"].target.lanes(from_numpy(numbers(1)).dtype)
    x = from_numpy(numbers(96, 16 * wide))
    return {
        "add": (x.alu(Ops.ADD, x), True),
        "row sums": (x.reduce(Ops.ADD, (1,)), True),
        "matmul": (matmul(from_numpy(numbers(96, 64)), from_numpy(numbers(64, 16 * wide))), True),
        "two lanes": (from_numpy(numbers(4096, 2)).flip((0,)).alu(Ops.EXP), wide <= 4),
        "padded": (x.pad(((1, 1), (1, 1))).alu(Ops.NEG), False),
        "with further rows": (x.pad(((1, 1), (0, 0))).alu(Ops.NEG), True),
        "sums with further columns": (x.pad(((0, 0), (wide, 0))).reduce(Ops.ADD, (1,)), False),
        "rows picked": (from_numpy(numbers(50, 3)).permute((1, 0)).gather(from_numpy(np.zeros(3, np.int32))), False),
    }


@pytest.mark.parametrize("name", graphs())
def test_programs_in_full_vectors_are_recognized(name: str) -> None:
    node, expected = graphs()[name]
    with Context(CACHELEVEL=0):
        (runner,) = compile_all(create_schedule([node]))
    uops, vector_bytes = runner.spec.uops, Device["LLVM"].target.vector_bytes
    assert is_in_full_vectors(uops, vector_bytes) is expected
    assert (runner.spec.options.effort is Effort.LIGHT) is leaves_little(uops, vector_bytes)


def test_long_programs_with_some_vectors_are_marked() -> None:
    """A softmax of rows that are no whole vectors long: what is left over of them is done in scalars."""
    spec = rendered(softmax(from_numpy(numbers(64, 107))))
    uops = spec.uops
    assert spec.options.effort is Effort.LIGHT
    assert not is_in_full_vectors(uops, spec.target.vector_bytes)
    assert leaves_little(uops, 64) and not leaves_little(uops[-LONG_PROGRAM:], 1 << 20)
    assert not leaves_little(tuple(node for node in uops if node.dtype.count == 1) * 2, 64)


def test_shuffles_are_not_built_from_scalars() -> None:
    """Maxima of threes are taken from the lanes of three vectors."""
    node = from_numpy(numbers(64, 192)).reshape((64, 64, 3)).reduce(Ops.MAX, (2,))
    spec = rendered(node)
    assert len(spec.uops) > LONG_PROGRAM and spec.options.effort is Effort.LIGHT


def test_few_built_vectors_are_permitted_among_many_others() -> None:
    uops = rendered(softmax(from_numpy(numbers(64, 107)))).uops
    loads = [UOp(Ops.LOAD, dtypes.float32.vec(8), (), number) for number in range(MAX_SHUFFLED_VECTORS + 1)]
    picked = [UOp(Ops.GEP, dtypes.float32, (vector,), vector.arg) for vector in loads]
    lanes = UOp(Ops.VECTORIZE, dtypes.float32.vec(8), (*picked, *picked)[:8])
    assert is_assembled_from_lanes(lanes)
    few = sum(node.op in WORK and node.dtype.count > 1 for node in uops) // MIN_OPERATIONS_PER_ASSEMBLED_VECTOR
    assert leaves_little((*uops, *[lanes] * few), 64)
    assert not leaves_little((*uops, *[lanes] * (few + 1)), 64)


def test_programs_without_opts_have_no_vectors() -> None:
    node, _ = graphs()["add"]
    with Context(NOOPT=1, CACHELEVEL=0):
        (runner,) = compile_all(create_schedule([node]))
    assert runner.spec.options.effort is not Effort.LIGHT
    assert [len(body) > 0 for body in innermost_bodies(runner.spec.uops)] == [True]


def test_the_second_step_of_a_sum_is_hardly_optimized_and_right() -> None:
    """It adds 256 numbers up: in vectors of 4, that takes longer than code takes to make."""
    x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    node = from_numpy(x).reduce(Ops.ADD, (0,))
    with Context(CACHELEVEL=0):
        runners = compile_all(create_schedule([node]))
    brief = Device["LLVM"].target.lanes(dtypes.float32) > 4
    assert [runner.spec.options.effort is Effort.LEAST for runner in runners] == [False, brief]
    assert [is_brief(runner.spec.uops) for runner in runners] == [False, brief]
    assert not any(opt.op is OptOps.UNROLL for opt in runners[1].kernel.applied), "no more than one accumulator"
    assert Device["LLVM"].listings(runners[1].spec)


def test_brief_counts_each_step_of_a_loop() -> None:
    """An empty loop of n steps is 1 constant and n times itself and its end."""
    n = (BRIEF_STEPS - 1) // 2
    for size, brief in ((n, True), (n + 1, False)):
        counter = UOp.range(size, Axis(0, AxisKind.GLOBAL))
        assert is_brief((counter.src[0], counter, UOp(Ops.ENDRANGE, dtypes.void, (counter,)))) is brief
    size = UOp(Ops.DEFINE_VAR, dtypes.index, (), ("n", 1, 2))
    assert not is_brief((size, UOp.range(size, Axis(0, AxisKind.GLOBAL))))


def test_lanes_of_two_vectors_are_one_shuffle() -> None:
    x = numbers(64, 32 * Device["LLVM"].target.lanes(dtypes.float32))
    odd = from_numpy(x).reshape((64, x.shape[1] // 2, 2)).shrink(((0, 64), (0, x.shape[1] // 2), (1, 2)))
    node = odd.reshape((64, x.shape[1] // 2)).alu(Ops.NEG)
    spec = rendered(node)
    with Context(CACHELEVEL=0):
        np.testing.assert_array_equal(to_numpy(node), -x[:, 1::2])
    source = spec.source
    assert "shufflevector" in source and "insertelement" not in source and "extractelement" not in source
    assert is_in_full_vectors(spec.uops, spec.target.vector_bytes) and spec.options.effort is Effort.LIGHT


def test_shuffles_take_lanes_of_two_vectors_of_a_type() -> None:
    three = [UOp(Ops.LOAD, dtypes.float32.vec(2), (), number) for number in range(3)]
    (a, b), (c, d), (e, f) = [[UOp(Ops.GEP, dtypes.float32, (vector,), lane) for lane in (0, 1)] for vector in three]

    def vector(*lanes: UOp) -> UOp:
        return UOp(Ops.VECTORIZE, dtypes.float32.vec(len(lanes)), lanes)

    assert find_shuffled_vectors(vector(d, a)) == (three[1], three[0])
    assert find_shuffled_vectors(vector(a, b, b)) == (three[0],)
    assert find_shuffled_vectors(vector(a, a)) is None, "a splat"
    assert find_shuffled_vectors(vector(a, c, e)) is None, "three vectors"
    assert find_shuffled_vectors(vector(f, UOp.const(dtypes.float32, 0.0))) is None, "a constant"
    assert lanes_of_alone({vector(a, d)}, (a, d, vector(a, d), d + 1.0)) == {a}


def test_compile_options_belong_to_the_program_and_not_to_its_text() -> None:
    """The same text may be compiled in another way, under another key."""
    spec = rendered(softmax(from_numpy(numbers(64, 107))))
    other = replace(spec, options=CompileOptions(Effort.FULL))
    assert spec.options.effort is Effort.LIGHT and other.source == spec.source
    assert other.key != spec.key
    compiler = compiler_for(WIDE)
    plain = spec.source.replace('"effort"="light"', "")
    assert compiler.object_code(plain, spec.options) == compiler.object_code(spec.source, spec.options)
    assert compiler.object_code(plain, other.options) != compiler.object_code(plain, spec.options)


def test_conditional_accesses_count_as_branches() -> None:
    x = from_numpy(numbers(50, 3))
    renderer = Device["LLVM"].renderer
    kernels = [kernel_of(node, renderer.target) for node in (x.alu(Ops.NEG), x.pad(((1, 1), (1, 1))).alu(Ops.NEG))]  # type: ignore[attr-defined]
    specs = [renderer.render("kernel", lower(kernel)) for kernel in kernels]
    assert [spec.options.branches for spec in specs] == [False, True]
    assert ["br i1" in spec.source.replace("br i1 %again", "") for spec in specs] == [False, True]

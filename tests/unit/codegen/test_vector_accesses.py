"""Adjacent loads and stores of a GPU work-item become one vector access, if the alignment is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from tests.backends.programs import GPUS, WORK_ITEMS, call, compiled, device, linear, load, pointer, store
from tinyexplore import Tensor
from tinyexplore.codegen import lower
from tinyexplore.device import Buffer
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.kernel import Kernel, Opt, OptOps, apply_heuristics, apply_opt
from tinyexplore.renderer.gpu import GPURenderer
from tinyexplore.runtime.emulator import RaceError
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.util import Context

GPU = "PYTHON for sm_80"
F32 = dtypes.float32


def kernel_of(make: Callable[[], Tensor]) -> Kernel:
    """The last kernel of a program, for a GPU."""
    with Context(TARGET="sm_80", DEVICE="PYTHON"):
        *_, item = create_schedule([make().lazydata])
        assert item.ast is not None
        return Kernel.of(item.ast, device(GPU).target)


def numbers(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor((np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype), device="PYTHON").realize()


def widths(kernel: Kernel) -> Counter[str]:
    """How wide each load and store of a program is: "LOAD 4", twice."""
    with Context(SPEC=1):
        program = lower(kernel)
    accesses = [node for node in program if node.op in (Ops.LOAD, Ops.STORE)]
    return Counter(f"{node.op.name} {(node if node.op is Ops.LOAD else node.src[1]).dtype.count}" for node in accesses)


UPCAST = Opt(OptOps.UPCAST, 0, 4)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        pytest.param(lambda: numbers(64) * 2, {"LOAD 4": 1, "STORE 4": 1}, id="neighbors"),
        pytest.param(lambda: numbers(65)[1:] * 2, {"LOAD 1": 2, "LOAD 2": 1, "STORE 4": 1}, id="a start amiss"),
        pytest.param(lambda: numbers(68)[4:] * 2, {"LOAD 4": 1, "STORE 4": 1}, id="one that is"),
        pytest.param(lambda: numbers(128)[::2] * 2, {"LOAD 1": 4, "STORE 4": 1}, id="every second"),
        pytest.param(lambda: numbers(64).flip(0) * 2, {"LOAD 4": 1, "STORE 4": 1}, id="backwards"),
        pytest.param(lambda: numbers(58).pad(((3, 3),)) * 2, {"LOAD 1": 4, "STORE 4": 1}, id="a mask for each lane"),
        pytest.param(lambda: numbers(62) * 2, {"LOAD 2": 2, "STORE 2": 2}, id="a rest, masked"),
        pytest.param(
            lambda: numbers(64) * numbers(1), {"LOAD 4": 1, "LOAD 1": 1, "STORE 4": 1}, id="one number for all"
        ),
        pytest.param(
            lambda: numbers(64, dtype="float64") * 2, {"LOAD 2": 2, "STORE 2": 2}, id="two doubles are 16 bytes"
        ),
        pytest.param(lambda: numbers(64, dtype="float16") * 2, {"LOAD 4": 1, "STORE 4": 1}, id="halves"),
        pytest.param(lambda: numbers(64) < 7, {"LOAD 4": 1, "STORE 4": 1}, id="bools are bytes"),
    ],
)
def test_aligned_neighbors_are_one_vector(make: Callable[[], Tensor], expected: dict[str, int]) -> None:
    kernel = apply_opt(kernel_of(make), UPCAST)
    assert widths(kernel) == expected
    with Context(TARGET="sm_80", DEVICE="PYTHON", SPEC=1):
        *_, item = create_schedule([make().lazydata])
        runner = compile_optimized("PYTHON", kernel)
        for buffer in item.buffers:
            buffer.allocate()
        runner.program.bind(item.buffers)(0, 1)
        found = item.buffers[0].copyout()
    with Context(DEVICE="LLVM"):
        assert found == make().to("LLVM").numpy().tobytes()


def test_a_mask_shared_by_all_lanes_is_a_scalar() -> None:
    kernel = apply_opt(kernel_of(lambda: numbers(6, 8).pad(((1, 1), (0, 0))) * 2), Opt(OptOps.UPCAST, 1, 4))
    assert widths(kernel) == {"LOAD 4": 1, "STORE 4": 1}
    assert any(node.op is Ops.LOAD and len(node.src[0].src) == 3 for node in lower(kernel))


def test_a_row_that_is_gathered_is_read_in_vectors() -> None:
    places = Tensor(np.array([3, 1, 2, 2], np.int32), device="PYTHON").realize()
    assert widths(apply_opt(kernel_of(lambda: numbers(8, 16)[places]), Opt(OptOps.UPCAST, 1, 4)))["LOAD 4"] == 1


def test_elementwise_results_are_computed_in_vectors_where_many_work_items_are_left() -> None:
    chosen = {
        "large": lambda: numbers(1 << 17) + 1,
        "small": lambda: numbers(1 << 16) + 1,
        "halves": lambda: numbers(1 << 18, dtype="float16") + 1,
        "transposed": lambda: numbers(512, 512).transpose(0, 1).contiguous(),
        "rows of odd length": lambda: numbers(1000, 257)[:, 1:] + 1,
    }
    opts = {name: [str(opt) for opt in apply_heuristics(kernel_of(make)).applied] for name, make in chosen.items()}
    assert opts == {
        "large": ["UPCAST(0, 4)", "LOCAL(0, 256)"],
        "small": ["LOCAL(0, 256)"],
        "halves": ["UPCAST(0, 8)", "LOCAL(0, 256)"],
        "transposed": ["LOCAL(1, 256)"],
        "rows of odd length": ["LOCAL(1, 256)"],
    }


def test_operands_of_a_large_product_are_copied_and_read_in_vectors() -> None:
    """Of a and b 4 elements at a time; in shared memory a's go to 4 rows, and each step reads a vector of each."""
    kernel = apply_heuristics(kernel_of(lambda: numbers(256, 256) @ numbers(256, 256)))
    assert widths(kernel) == {"LOAD 4": 4, "STORE 1": 4, "STORE 4": 5}


# *** hand-written programs ***


def special(name: str, size: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.index, (index_const(size),), name)


def copy(place: UOp, where: UOp | None = None) -> list[UOp]:
    return linear(store(pointer(0, F32, 64), place, load(pointer(1, F32, 64), place if where is None else where, 4)))


def test_the_emulator_refuses_a_vector_that_is_not_aligned() -> None:
    item, numbers = special("lidx0", 8), [float(n) for n in range(64)]
    (found,) = call(compiled(GPU, copy(item * 4)), [(F32, 64)], [(F32, numbers)])
    assert found[:32] == numbers[:32]
    with pytest.raises(IndexError, match="4 elements from 2 on: "):
        call(compiled(GPU, copy(item * 4, item * 4 + 2)), [(F32, 64)], [(F32, numbers)])


def test_each_lane_of_a_vector_can_race() -> None:
    """Two work-items store to one place of the vectors that they have in common."""
    out, item = pointer(0, F32, 64), special("lidx0", 2)
    single = store(out, item * 0 + 2, UOp.const(F32, 1.0), item.eq(1))
    vector = store(out, index_const(0), load(pointer(1, F32, 64), 0, 4), item.eq(0))
    with pytest.raises(RaceError, match=r"lidx0=1 stores to data0\[2\], .*gidx0=0, lidx0=0"):
        call(compiled(GPU, linear(vector, single)), [(F32, 64)], [(F32, [0.0] * 64)])


def test_a_program_for_memory_that_starts_anywhere_has_no_vectors() -> None:
    target = device(GPU).target
    shared = UOp(Ops.DEFINE_LOCAL, PtrDType(F32, 64, "shared"), (), "shared0")
    item = special("lidx0", 8)
    filled = UOp(Ops.BARRIER, dtypes.void, (store(shared, item * 4, load(pointer(1, F32, 64), item * 4, 4)),))
    read = UOp(Ops.LOAD, F32.vec(4), (shared.index((7 - item) * 4), filled))
    program = linear(store(pointer(0, F32, 64), item * 4, read, item < 7))
    spec = GPURenderer(target, "").render("k", program)
    assert spec.aligned == {0, 1} and "f32x4" in spec.source
    single = GPURenderer(target, "", aligned=False).render("k", program)
    assert not single.aligned and "f32x4" not in single.source and single.source.count("data1[") == 4
    (found,) = call(compiled(GPU, single.uops), [(F32, 64)], [(F32, [float(n) for n in range(64)])])
    assert found[:28] == [float(28 - 4 * (n // 4) + n % 4) for n in range(28)]


@pytest.mark.skipif(WORK_ITEMS not in GPUS, reason="GPU: no OpenCL driver on this machine")
def test_buffers_of_opencl_may_start_anywhere() -> None:
    with Context(TARGET="opencl"):
        runner = compile_optimized("GPU", apply_opt(kernel_of(lambda: numbers(64) * 2), UPCAST))
    given, out = np.arange(80, dtype=np.float32), np.zeros(80, np.float32)
    for first in (0, 1, 2, 4):
        pair = [Buffer.from_memory("GPU", F32, whole[first : first + 64]) for whole in (out, given)]
        runner.program.bind(pair)(0, 1)
        np.testing.assert_array_equal(out[first : first + 64], 2 * given[first : first + 64])
    assert "*(__global const float4*)(data1 + v0)" in runner.spec.source

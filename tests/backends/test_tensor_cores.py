"""Products on the tensor cores of GPUs, emulated lane by lane: exact on integers for all sizes, fragments and
opts; the legality of TC; and the choice of the heuristics."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.programs import call, compiled, linear, pointer, store
from tests.support import nvidia
from tinyexplore import Context, Device, Tensor, dtypes
from tinyexplore.codegen import lower
from tinyexplore.engine import compile_optimized
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.kernel import (
    Kernel,
    Opt,
    OptError,
    OptOps,
    apply_heuristics,
    apply_opt,
    apply_opts,
    available_opts,
    undo_opt,
)
from tinyexplore.renderer.gpu import GPURenderer
from tinyexplore.renderer.program import RenderError
from tinyexplore.runtime.emulator import DivergenceError
from tinyexplore.runtime.gpu_assembly import GPUAssembler
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import GPUS, TensorCore
from tinyexplore.uop import Axis, AxisKind, Ops, UOp, index_const

MACHINES = {core.name: name for name, gpu in reversed(GPUS.items()) for core in gpu.cores}
CORES = [next(core for core in GPUS[target].cores if core.name == name) for name, target in MACHINES.items()]


def factor(core: TensorCore, values: np.ndarray) -> Tensor:
    """Whole numbers as the core takes them, in memory."""
    return Tensor(values.astype(np.int8), device="PYTHON").cast(core.factor).realize()


def product(core: TensorCore, m: int, n: int, k: int) -> tuple[ScheduleItem, Kernel, np.ndarray]:
    """A product of small whole numbers: the kernel that sums it, as it is scheduled, and what it should be."""
    rng = np.random.default_rng(m * 1000003 + n * 1009 + k)
    a, b = rng.integers(-8, 8, (m, k)), rng.integers(-8, 8, (k, n))
    (item,) = factor(core, a).matmul(factor(core, b), acc_dtype=core.accumulator).schedule()
    assert item.ast is not None
    return item, Kernel.of(item.ast, Device["PYTHON"].target), a @ b


def result(item: ScheduleItem, kernel: Kernel) -> np.ndarray:
    """The result of the emulator."""
    with Context(SPEC=1):
        runner = compile_optimized("PYTHON", kernel)
        item.buffers[0].allocate().copyin(b"\xff" * item.buffers[0].nbytes)
        ExecItem(item, runner, None, item.buffers).run()
    kind = np.int32 if item.buffers[0].dtype is dtypes.int32 else np.float32
    return np.frombuffer(item.buffers[0].copyout(), kind)


def tc(core: TensorCore, axis: int = 2) -> Opt:
    return Opt(OptOps.TC, axis, core.dims[2])


@settings(max_examples=12, deadline=None, derandomize=True)
@given(st.data())
def test_any_sequence_of_legal_opts_gives_the_same_product(data: st.DataObject) -> None:
    core = data.draw(st.sampled_from(CORES))
    m, n, k = (data.draw(st.sampled_from([size, size + 3, 2 * size])) for size in core.dims)
    with Context(TARGET=MACHINES[core.name], ALLOW_TF32=1, TC_OPT=1):
        item, kernel, expected = product(core, max(m, 16), max(n, 16), max(k, 16))
        kernel = apply_opt(kernel, tc(core))
        for _ in range(data.draw(st.integers(0, 3))):
            legal = [opt for opt in available_opts(kernel) if opt.amount <= 4 or opt.op is OptOps.SWAP]
            if legal:
                kernel = apply_opt(kernel, data.draw(st.sampled_from(legal)))
                assert undo_opt(kernel).applied == kernel.applied[:-1]
        np.testing.assert_array_equal(result(item, kernel).reshape(expected.shape), expected)


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)
def test_every_core_in_tiles_with_remainders(core: TensorCore) -> None:
    m, n, k = core.dims
    with Context(TARGET=MACHINES[core.name], ALLOW_TF32=1, TC_OPT=1):
        item, kernel, expected = product(core, 2 * m + 5, max(2 * n, 32), 4 * k - 3)
        tiles = (Opt(OptOps.UPCAST, 1, 2), Opt(OptOps.UNROLL, 2, 2)) if core.c.registers < 16 else ()
        for opt in (tc(core), *tiles, Opt(OptOps.LOCAL, 0, 2)):
            kernel = apply_opt(kernel, opt)
        found = result(item, kernel).reshape(expected.shape)
    assert [node.arg for node in kernel.find(Ops.WMMA)] == [core.name]
    np.testing.assert_array_equal(found, expected)


def test_the_epilogue_of_a_product_runs_in_registers() -> None:
    """A bias, a maximum and a conversion, in the one kernel; the second factor transposed in memory."""
    rng = np.random.default_rng(3)
    a, b, bias = rng.integers(-8, 8, (32, 32)), rng.integers(-8, 8, (24, 32)), rng.integers(-8, 8, 24)
    with Context(TARGET="sm_80"):
        x, y = (Tensor(one.astype(np.float16), device="PYTHON") for one in (a, b))
        z = Tensor(bias.astype(np.float32), device="PYTHON")
        found = (x.matmul(y.T, acc_dtype=dtypes.float32) + z).relu()
        (item,) = found.schedule()
        assert item.ast is not None
        kernel = apply_heuristics(Kernel.of(item.ast, Device["PYTHON"].target))
        assert kernel.applied[0] == Opt(OptOps.TC, 2, 16)
        np.testing.assert_array_equal(found.numpy(), np.maximum(a @ b.T + bias, 0))


def test_a_convolution_and_a_batch_of_products() -> None:
    rng = np.random.default_rng(4)
    image, weight = rng.integers(-4, 4, (1, 16, 9, 10)), rng.integers(-4, 4, (16, 16, 2, 3))
    a, b = rng.integers(-4, 4, (2, 16, 32)), rng.integers(-4, 4, (2, 32, 8))

    def computed(device: str) -> list[np.ndarray]:
        x, w, y, z = (Tensor(one.astype(np.float16), device=device) for one in (image, weight, a, b))
        return [x.conv2d(w).numpy(), (y @ z).numpy()]

    with Context(TARGET="sm_80"):
        found = computed("PYTHON")
    for one, other in zip(found, computed("LLVM"), strict=True):
        np.testing.assert_array_equal(one, other)


# *** what is legal ***


def half_product() -> Kernel:
    """A product of halves, scheduled for a GPU that has cores for it, on whichever GPU is chosen."""
    target = Device["PYTHON"].target
    with Context(TARGET="sm_80", TC=1):
        return replace(product(GPUS["sm_80"].cores[0], 32, 32, 32)[1], target=target)


@pytest.mark.parametrize(
    "target, settings, tried, words",
    [
        ("opencl", {}, Opt(OptOps.TC, 2, 16), "opencl has no tensor cores"),
        ("sm_80", {"TC": 0}, Opt(OptOps.TC, 2, 16), "TC=0 does without tensor cores"),
        ("sm_80", {}, Opt(OptOps.TC, 0, 16), "the axis is global"),
        ("sm_80", {}, Opt(OptOps.TC, 2, 32), "8 or 16 steps"),
        ("sm_75", {}, Opt(OptOps.TC, 2, 16), " 8 steps"),
    ],
)
def test_an_illegal_tensor_core_opt_is_explained(target: str, settings: dict[str, int], tried: Opt, words: str) -> None:
    with Context(TARGET=target), Context(**settings), pytest.raises(OptError, match=words):
        apply_opt(half_product(), tried)


def test_a_product_of_float32_in_tf32_needs_permission() -> None:
    tf32 = next(core for core in GPUS["sm_80"].cores if core.mantissa)
    with Context(TARGET="sm_80"):
        _, kernel, _ = product(tf32, 32, 32, 32)
        with pytest.raises(OptError, match="10 bits .*ALLOW_TF32=1"):
            apply_opt(kernel, tc(tf32))
        assert OptOps.TC not in [opt.op for opt in apply_heuristics(kernel).applied]
        with Context(ALLOW_TF32=1):
            assert apply_heuristics(kernel).applied[0] == tc(tf32)
    with Context(TARGET="gfx1100"):
        with pytest.raises(OptError, match="no core of gfx1100 .*float32 → float32; .*float16 → float32, bf"):
            apply_opt(product(tf32, 32, 32, 32)[1], tc(tf32))


def test_axes_of_a_tensor_core_take_no_other_opts() -> None:
    with Context(TARGET="sm_80"):
        kernel = half_product()
        assert [opt for opt in available_opts(kernel) if opt.op is OptOps.TC] == [
            Opt(OptOps.TC, 2, 8),
            Opt(OptOps.TC, 2, 16),
        ]
        done = apply_opt(kernel, Opt(OptOps.TC, 2, 8))
        assert [(axis.arg.kind, axis.size) for axis in done.axes] == [
            (AxisKind.GLOBAL, 2),
            (AxisKind.GLOBAL, 4),
            (AxisKind.REDUCE, 4),
            (AxisKind.WARP, 32),
        ]
        for tried, words in (
            (Opt(OptOps.GROUP, 2, 2), "apply this opt before TC"),
            (Opt(OptOps.NOLOCALS, 0), "apply this opt before TC"),
            (Opt(OptOps.TC, 2, 8), "apply this opt before TC"),
            (Opt(OptOps.UNROLL, 2, 3), "choose a divisor of 4"),
            (Opt(OptOps.LOCAL, 3, 2), "the axis is warp"),
        ):
            with pytest.raises(OptError, match=words):
                apply_opt(done, tried)
        with pytest.raises(OptError, match="before GROUP and UNROLL"):
            apply_opts(kernel, Opt(OptOps.UNROLL, 2, 2), Opt(OptOps.TC, 2, 8))
        assert undo_opt(done).ast is kernel.ast


def test_heuristics_use_cores_that_are_filled() -> None:
    core = GPUS["sm_80"].cores[0]
    with Context(TARGET="sm_80"):
        _, even, _ = product(core, 32, 32, 32)
        _, odd, _ = product(core, 32, 32, 33)
        chosen = [opt.op for opt in apply_heuristics(even).applied]
        assert chosen == [OptOps.TC, OptOps.LOCAL, OptOps.LOCAL]
        assert OptOps.TC not in [opt.op for opt in apply_heuristics(odd).applied]
        with Context(TC_OPT=1):
            assert apply_heuristics(odd).applied[0] == Opt(OptOps.TC, 2, 8), "less is done for nothing than with 16"


def test_a_language_does_not_write_the_cores_of_another() -> None:
    with Context(TARGET="sm_80"):
        program = lower(apply_opt(half_product(), Opt(OptOps.TC, 2, 16)))
    with Context(TARGET="gfx90a"):
        target = Device["PYTHON"].target
    with pytest.raises(RenderError, match="mma_m16n8k16_f16 .* cuda, not hip"):
        GPURenderer(target, "none").render("kernel", program)


@pytest.mark.parametrize("core", [core for core in CORES if core.language != "metal"], ids=lambda core: core.name)
def test_llvm_writes_the_instruction(core: TensorCore, tmp_path: Path) -> None:
    """As PTX, which ptxas takes where it is there, and as AMDGCN, whose assembler is LLVM's own."""
    machine = MACHINES[core.name]
    with Context(TARGET=machine, ALLOW_TF32=1):
        _, kernel, _ = product(core, 64, 64, 2 * core.dims[2])
        kernel = apply_opt(kernel, tc(core))
        assert [node.arg for node in kernel.find(Ops.WMMA)] == [core.name]
        spec = GPUAssembler(kernel.target).render(kernel.name, lower(kernel))
    call = core.call if core.language == "cuda" else f"v_{core.name.replace('_w32', '')}"
    assert len([line for line in spec.lines if call in line.text]) == 1
    if core.language == "cuda":
        (tmp_path / "kernel.ptx").write_text(spec.source)
        command = [nvidia.tool("ptxas"), "-arch", machine, str(tmp_path / "kernel.ptx"), "-o", str(tmp_path / "out")]
        assert not nvidia.refusal(command)


# *** what the emulator finds ***


def multiplied_by(lanes: int, *, steps: UOp | None = None) -> list[UOp]:
    """A program in which each of `lanes` lanes passes ones to a core."""
    lane = UOp(Ops.SPECIAL, dtypes.index, (index_const(lanes),), "lidx0")
    one, zero = UOp.const(dtypes.float16, 1), UOp.const(dtypes.float32.vec(4), 0)
    held = [UOp(Ops.VECTORIZE, dtypes.float16.vec(count), (one,) * count) for count in (8, 4)]
    tile = UOp(Ops.WMMA, dtypes.float32.vec(4), (*held, zero), "mma_m16n8k16_f16")
    value = UOp(Ops.GEP, dtypes.float32, (tile,), 0)
    program = linear(pointer(0, dtypes.float32, lanes), store(pointer(0, dtypes.float32, lanes), lane, value))
    if steps is None:
        return program
    return [lane, steps, *(node for node in program if node is not lane), UOp(Ops.ENDRANGE, dtypes.void, (steps,))]


def test_a_core_reads_the_registers_of_a_whole_warp() -> None:
    (found,) = call(compiled("PYTHON for sm_80", multiplied_by(64)), [(dtypes.float32, 64)], [])
    assert found == [16.0] * 64
    with pytest.raises(DivergenceError, match="mma_m16n8k16_f16 in line .* warp has 16"):
        call(compiled("PYTHON for sm_80", multiplied_by(16)), [(dtypes.float32, 16)], [])


def test_a_divergent_lane_is_detected() -> None:
    lane = UOp(Ops.SPECIAL, dtypes.index, (index_const(32),), "lidx0")
    steps = UOp.range(lane, Axis(0, AxisKind.REDUCE))
    words = "lidx0=1 .*mma_m16n8k16_f16 in line .*, but lane .*lidx0=0 of its warp"
    with pytest.raises(DivergenceError, match=words):
        call(compiled("PYTHON for sm_80", multiplied_by(32, steps=steps)), [(dtypes.float32, 32)], [])

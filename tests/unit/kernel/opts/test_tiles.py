"""TC on the tile registers of a CPU (AMX): exact on integers for all sizes and opts, on a device that
interprets tiles, on one that has them, and as arithmetic; legality; the choice; and the CPU's tile configuration."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyexplore import Context, Device, Tensor, dtypes, nn
from tinyexplore.codegen import lower
from tinyexplore.compile.compiler import choose_opts
from tinyexplore.compile.lowering import compile_given
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
from tinyexplore.runtime import tile_registers
from tinyexplore.schedule import ScheduleItem
from tinyexplore.target import AMX, TensorCore
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.util import config

AS_STARTED = config().TARGET
RAPIDS = "sapphirerapids,threads=2,l1=48K,l2=2M"
HAVE_TILES = Device["LLVM"].target.cores != ()


def factors(core: TensorCore, m: int, n: int, k: int, device: str) -> tuple[Tensor, Tensor, np.ndarray]:
    """Whole numbers as the core takes them, and their product."""
    rng = np.random.default_rng(m * 1000003 + n * 1009 + k)
    a, b = rng.integers(-128, 128, (m, k)), rng.integers(-128, 128, (k, n))
    with Context(TARGET=AS_STARTED):  # this CPU cannot run what is compiled for another one
        x, y = (Tensor(one.astype(np.int8), device=device).cast(core.factor).realize() for one in (a, b))
    return x, y, a @ b


def product(
    core: TensorCore, m: int, n: int, k: int, device: str, *, turned: bool = False
) -> tuple[ScheduleItem, Kernel, np.ndarray]:
    """The kernel of a product, as it is scheduled, and what it should be; `turned`: the second factor is transposed in
    memory."""
    x, y, expected = factors(core, m, n, k, device)
    if turned:
        y = y.T.contiguous().realize().T
    with Context(TC=2, TC_OPT=1):  # one kernel, also where the device would convert both factors first
        (item,) = x.matmul(y, acc_dtype=core.accumulator).schedule()
    assert item.ast is not None
    return item, Kernel.of(item.ast, Device[device].target), expected


def result(item: ScheduleItem, kernel: Kernel, device: str) -> np.ndarray:
    with Context(SPEC=1, CACHELEVEL=0):
        runner = compile_optimized(device, kernel)
    item.buffers[0].allocate().copyin(b"\xff" * item.buffers[0].nbytes)
    ExecItem(item, runner, None, item.buffers).run()
    return np.frombuffer(item.buffers[0].copyout(), np.int32 if item.buffers[0].dtype is dtypes.int32 else np.float32)


def on_tiles(core: TensorCore, *more: tuple[OptOps, int, int]) -> list[Opt]:
    return [Opt(OptOps.TC, 2, core.dims[2]), *(Opt(*one) for one in more)]


TILED = (
    (),
    ((OptOps.UPCAST, 1, 2), (OptOps.UPCAST, 0, 2)),
    ((OptOps.UNROLL, 2, 2), (OptOps.STAGE, 0, 0)),
    ((OptOps.UPCAST, 1, 2), (OptOps.SWAP, 0, 1), (OptOps.STAGE, 0, 0), (OptOps.STAGE, 1, 0)),
    ((OptOps.STAGE, 1, 0), (OptOps.UPCAST, 7, 4)),
    ((OptOps.SWAP, 1, 7), (OptOps.UPCAST, 0, 2), (OptOps.UPCAST, 1, 2)),
)
# the last one, of 17 rows and columns: the sum of a tile of padding stands outside of the loops around the other tiles
SIZES = ((17, 33), (32, 48), (17, 33), (32, 48), (17, 33), (17, 17))


@pytest.mark.slow
@pytest.mark.parametrize("tc", [1, 2])
@pytest.mark.parametrize("device", ["PYTHON", "LLVM"])
@pytest.mark.parametrize("core", AMX, ids=lambda core: core.name)
def test_products_with_remainders_are_exact(core: TensorCore, device: str, tc: int) -> None:
    """TC=2 writes the same words out as dot products, on any machine; TC=1 is left to devices that have tiles."""
    if tc == 1 and not Device[device].target.cores:
        assert not HAVE_TILES and device == "LLVM"
        return
    k = core.dims[2]
    done = 0
    for number, more in enumerate(TILED):
        m, n = SIZES[number]
        steps = (k + 6, 2 * k)[number % 2]
        with Context(TC=tc):
            item, kernel, expected = product(core, m, n, steps, device, turned=number % 3 == 0)
            kernel = apply_opts(kernel, *on_tiles(core, *more))
            np.testing.assert_array_equal(result(item, kernel, device), expected.ravel(), f"{kernel.applied}")
            done += 1
    assert done == len(TILED)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_any_sequence_of_legal_opts_gives_the_same_product(data: st.DataObject) -> None:
    core = data.draw(st.sampled_from(AMX))
    k = core.dims[2]
    m, n = (data.draw(st.sampled_from([16, 17, 32])) for _ in range(2))
    device = data.draw(st.sampled_from(["PYTHON", "LLVM"]))
    tc = data.draw(st.sampled_from([1, 2] if Device[device].target.cores else [2]))
    with Context(TC=tc):
        steps = data.draw(st.sampled_from([k, 2 * k, 2 * k + 5]))
        item, kernel, expected = product(core, m, n, steps, device, turned=data.draw(st.booleans()))
        tiles = [opt for opt in available_opts(kernel) if opt.op is OptOps.TC and opt.amount == k]
        kernel = apply_opt(kernel, tiles[0])
        for _ in range(data.draw(st.integers(0, 4))):
            legal = [opt for opt in available_opts(kernel) if opt.amount <= 4 or opt.op is OptOps.SWAP]
            if not legal:
                break
            kernel = apply_opt(kernel, data.draw(st.sampled_from(legal)))
        np.testing.assert_array_equal(result(item, kernel, device), expected.ravel(), f"{kernel.applied}")


def test_legal_tile_opts_and_errors_of_illegal_ones() -> None:
    with Context(TARGET=RAPIDS):
        _, kernel, _ = product(AMX[0], 32, 48, 64, "LLVM")
        tiles = Opt(OptOps.TC, 2, 32)
        assert tiles in available_opts(kernel)
        tiled = apply_opt(kernel, tiles)
        assert undo_opt(tiled).ast is kernel.ast
        assert [axis.arg.kind for axis in tiled.axes].count(AxisKind.TILE) == 2
        with pytest.raises(OptError, match="32 steps"):
            apply_opt(kernel, Opt(OptOps.TC, 2, 64))
        with pytest.raises(OptError, match="a vector already"):
            apply_opts(kernel, Opt(OptOps.VECTOR, 1, 16), tiles)
        with pytest.raises(OptError, match="tensor cores do the sum"):
            apply_opt(tiled, Opt(OptOps.GROUP, 2, 2))
        with pytest.raises(OptError, match="the sum|a vector already"):
            apply_opt(tiled, Opt(OptOps.VECTOR, 0, 2))
        with Context(TC=0), pytest.raises(OptError, match="TC=0 does without"):
            apply_opt(kernel, tiles)
    with Context(TARGET="cooperlake"):
        _, kernel, _ = product(AMX[0], 32, 48, 64, "LLVM")
        with pytest.raises(OptError, match="cooperlake has no tensor cores"):
            apply_opt(kernel, tiles)


def chosen(core: TensorCore, m: int, n: int, k: int) -> Sequence[Opt]:
    _, kernel, _ = product(core, m, n, k, "LLVM")
    return apply_heuristics(kernel).applied


def test_large_products_are_tiled_and_both_factors_are_packed() -> None:
    with Context(TARGET=RAPIDS):
        for core in AMX:
            kinds = [opt.op for opt in chosen(core, 512, 512, 512)]
            assert kinds[0] is OptOps.TC and kinds.count(OptOps.UPCAST) == 2 and kinds.count(OptOps.STAGE) == 2
            assert kinds[-1] is OptOps.THREAD
            few = [opt.op for opt in chosen(core, 64, 512, 512)]
            assert OptOps.LOCAL not in few, "blocks of rows would each pack all columns"
        assert chosen(AMX[0], 9, 512, 512)[0] == Opt(OptOps.TC, 2, 2), "almost half of each tile would be empty"
        assert chosen(AMX[0], 1024, 512, 64)[0] == Opt(OptOps.TC, 2, 32)
    with Context(TARGET="cooperlake,threads=2,l1=32K,l2=1M"):
        assert chosen(AMX[0], 512, 512, 512)[0] == Opt(OptOps.TC, 2, 2), "dot instructions where there are no tiles"
    with Context(TARGET="x86-64-v3,threads=2,l1=32K,l2=1M"):
        x, y, _ = factors(AMX[0], 64, 64, 64, "LLVM")
        for item in x.matmul(y).schedule():
            if item.ast is not None:
                assert OptOps.TC not in [opt.op for opt in choose_opts(item.device, item.ast).applied]


@pytest.mark.parametrize("core", AMX, ids=lambda core: core.name)
def test_columns_are_packed_once_for_many_blocks_of_rows(core: TensorCore) -> None:
    """With a small L2 cache and one core there are blocks enough; the product stays the same."""
    with Context(TARGET="sapphirerapids,threads=1,l1=48K,l2=512K"):
        x, y, expected = factors(core, 1056, 96, 512 * core.dims[2] // 32, "LLVM")
        (item,) = x.matmul(y, acc_dtype=core.accumulator).schedule()
        assert item.ast is not None
        kernel = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
        staged = [opt.axis for opt in kernel.applied if opt.op is OptOps.STAGE]
        outermost = min(axis.arg.id for axis in kernel.output_axes)
        assert len(staged) == 2 and staged[0] == outermost and kernel.axis(outermost).size >= 4
        if HAVE_TILES:
            found = result(item, kernel, "LLVM")
            np.testing.assert_array_equal(found.reshape(expected.shape), expected)
    with Context(TARGET=RAPIDS):  # two blocks for two cores: each packs the columns in any case
        x, y, _ = factors(core, 1024, 64, 1024, "LLVM")
        (item,) = x.matmul(y, acc_dtype=core.accumulator).schedule()
        assert item.ast is not None
        kernel = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
        staged = [opt.axis for opt in kernel.applied if opt.op is OptOps.STAGE]
        assert len(staged) == 2 and staged[0] != min(axis.arg.id for axis in kernel.output_axes)


def test_a_step_multiplies_four_tiles_of_packed_panels() -> None:
    with Context(TARGET=RAPIDS):
        _, kernel, _ = product(AMX[0], 256, 256, 256, "LLVM")
        program = lower(apply_heuristics(kernel))
    products = [node for node in program if node.op is Ops.WMMA]
    loads = {source for node in products for source in node.src[:2]}
    assert len(products) == 2 * len(loads) or len(products) == len(loads)
    assert all(load.op is Ops.LOAD and load.src[0].src[0].arg.startswith("packed") for load in loads)
    assert len([node for node in program if node.op is Ops.DEFINE_ACC]) == 4


@pytest.mark.parametrize("core", AMX, ids=lambda core: core.name)
def test_machine_code_for_a_cpu_with_tiles_has_the_instructions(core: TensorCore) -> None:
    """Compiled on any machine, whether it can run it or not."""
    with Context(TARGET=RAPIDS):
        device = Device["LLVM"]
        _, kernel, _ = product(core, 64, 64, 256, "LLVM")
        spec = device.renderer.render("tiled", lower(apply_heuristics(kernel)))
        listings = dict(device.listings(spec))
    text = "\n".join(line.text for line in listings["asm"])
    words = text.split()
    for wanted in (core.call, "tilezero", "ldtilecfg", "tilerelease"):
        assert wanted in words, wanted
    assert words.count(core.call) == words.count("tilestored") == words.count("tileloadd") == 4, "no tile is spilled"


@pytest.mark.parametrize("shape", [(64, 64, 64), (96, 80, 260), (130, 70, 192)])
def test_tensors_and_gradients_are_those_of_float32(shape: tuple[int, int, int]) -> None:
    """A linear layer in bfloat16, its output and gradients, against NumPy; with tiles where this machine has them."""
    m, n, k = shape
    rng = np.random.default_rng(m)
    a, w, g = (rng.integers(-8, 8, one).astype(np.float32) for one in ((m, k), (n, k), (m, n)))
    x = Tensor(a).bfloat16().realize().requires_grad_()
    layer = nn.Linear(k, n, bias=False)
    layer.weight.assign(Tensor(w)).realize()
    weight = layer.weight.bfloat16().realize().requires_grad_()
    out = x.linear(weight.T)
    (out.float() * Tensor(g)).sum().backward()
    assert x.grad is not None and weight.grad is not None
    for found, expected in ((out, a @ w.T), (x.grad, g @ w), (weight.grad, g.T @ a)):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found.float().numpy() / scale, expected / scale, atol=2**-8)


def test_a_cpu_has_no_tiles_if_the_system_refuses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    have = "+avx512f,+amx-tile,+amx-bf16,+amx-int8,-xop"
    monkeypatch.setattr(tile_registers, "request_permission", lambda: False)
    assert tile_registers.usable_features(have) == "+avx512f,-amx-tile,-amx-bf16,-amx-int8,-xop"
    assert tile_registers.usable_features("+avx2,-amx-tile") == "+avx2,-amx-tile"
    monkeypatch.setattr(tile_registers, "request_permission", lambda: True)
    assert tile_registers.usable_features(have) == have


def test_tile_permission_is_requested_from_the_system() -> None:
    """After the request, Linux lists the tile registers among the permitted ones if and only if it granted them."""
    if not tile_registers.request_permission():
        assert not HAVE_TILES
        return
    may = ctypes.c_uint64()
    assert ctypes.CDLL(None).syscall(tile_registers.ARCH_PRCTL, 0x1022, ctypes.byref(may)) == 0
    assert may.value >> tile_registers.TILE_DATA & 1


@pytest.mark.parametrize("core", AMX, ids=lambda core: core.name)
def test_the_program_in_c_computes_the_same(core: TensorCore) -> None:
    """Plain C for the products of tiles: what the explorer shows, compiled and run on any machine."""
    if "CLANG" not in Device.available():
        pytest.skip("CLANG does not open here")
    item, kernel, expected = product(core, 33, 40, core.dims[2] + 6, "CLANG")
    with Context(TARGET=RAPIDS):
        tiled = apply_opts(Kernel.of(kernel.ast, Device["LLVM"].target), *on_tiles(core, (OptOps.UPCAST, 0, 2)))
        program = lower(tiled)
    assert any(node.op is Ops.WMMA for node in program)
    runner = compile_given("CLANG", kernel, program)
    item.buffers[0].allocate()
    ExecItem(item, runner, None, item.buffers).run()
    found = np.frombuffer(item.buffers[0].copyout(), np.int32 if core.accumulator is dtypes.int32 else np.float32)
    np.testing.assert_array_equal(found, expected.ravel())

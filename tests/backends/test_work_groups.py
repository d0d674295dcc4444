"""Kernels of GPUs: equal results for all work-group sizes, on the emulator, which checks memory, and on the GPU
device if there is a driver; and the errors that the emulator finds."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.programs import GPUS, call, compiled, device, linear, loop, pointer, store, under
from tests.graphs import from_numpy, matmul, numbers, softmax
from tests.support.limits import has
from tinyexplore import Context, Tensor, Variable
from tinyexplore.codegen import PASSES, lower
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.transforms.loop_barriers import end_steps_with_barriers
from tinyexplore.device import Buffer, DeviceUnavailable
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.execute.execitem import ExecItem
from tinyexplore.kernel import Kernel, Opt, OptError, OptOps, apply_heuristics, apply_opt, available_opts, undo_opt
from tinyexplore.kernel.opts.shared import padded_row
from tinyexplore.renderer.gpu import GPURenderer
from tinyexplore.renderer.program import RenderError, is_group_barrier
from tinyexplore.runtime import opencl
from tinyexplore.runtime.emulator import DivergenceError, RaceError
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import AxisKind, Ops, UOp, index_const

TARGET = "opencl"
TARGETS = {"WEBGPU": "webgpu"}  # of devices that run another language


PROGRAMS = {
    "elementwise": lambda: from_numpy(numbers(5, 37)).alu(Ops.MUL, from_numpy(numbers(5, 37, seed=1))),
    "transpose": lambda: from_numpy(numbers(19, 23)).permute((1, 0)).contiguous(),
    "matmul": lambda: matmul(from_numpy(numbers(12, 33)), from_numpy(numbers(33, 10))),
    "row sum": lambda: from_numpy(numbers(6, 70)).reduce(Ops.ADD, (1,)),
    "column max": lambda: from_numpy(numbers(29, 11)).reduce(Ops.MAX, (0,)),
    "sum of both": lambda: from_numpy(numbers(15, 20)).reduce(Ops.ADD, (0, 1)),
    "largest row sum": lambda: from_numpy(numbers(3, 7, 24)).reduce(Ops.ADD, (2,)).reduce(Ops.MAX, (1,)),
    "softmax": lambda: softmax(from_numpy(numbers(4, 41))),
    "running sum": lambda: from_numpy(numbers(5, 37)).scan(Ops.ADD, 1),
    "padded window": lambda: from_numpy(numbers(4, 40)).pad(((0, 0), (2, 3))).window(1, 3).reduce(Ops.ADD, (2,)),
}


def item_of(program: str) -> ScheduleItem:
    """The one kernel of a program, as it is scheduled for a GPU."""
    with Context(TARGET=TARGET):
        *_, item = create_schedule([PROGRAMS[program]()])
    assert item.ast is not None
    return item


def result(item: ScheduleItem, kernel: Kernel, on: str = "PYTHON") -> np.ndarray:
    """The result of the kernel on a device; PYTHON emulates a GPU."""
    with Context(SPEC=1, TARGET=TARGETS.get(on, TARGET)):
        runner = compile_optimized(under(on)[0], kernel)
        item.buffers[0].allocate().copyin(b"\xff" * item.buffers[0].nbytes)
        ExecItem(item, runner, None, item.buffers).run()
    return np.frombuffer(item.buffers[0].copyout(), np.float32)


def kernel_on(item: ScheduleItem, on: str = "PYTHON") -> Kernel:
    assert item.ast is not None
    with Context(TARGET=TARGETS.get(on, TARGET)):
        return Kernel.of(item.ast, device(on).target if on in GPUS else device("PYTHON for opencl").target)


def expected_of(item: ScheduleItem) -> np.ndarray:
    """The same by the LLVM device."""
    assert item.ast is not None
    runner = compile_optimized("LLVM", Kernel.of(item.ast, device("LLVM").target))
    item.buffers[0].allocate()
    ExecItem(item, runner, None, item.buffers).run()
    return np.frombuffer(item.buffers[0].copyout(), np.float32).copy()


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_any_sequence_of_legal_opts_gives_the_same_result_without_a_race(program: str) -> None:
    item = item_of(program)
    start, expected = kernel_on(item), expected_of(item)

    @settings(max_examples=6, deadline=None)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        kernel = start
        for _ in range(data.draw(st.integers(1, 4))):
            legal = few_copies(kernel)
            if not legal:
                break
            kernel = apply_opt(kernel, data.draw(st.sampled_from(legal)))
            assert undo_opt(kernel).applied == kernel.applied[:-1]
        np.testing.assert_allclose(result(item, kernel), expected, rtol=1e-4, atol=1e-5)

    run()


def few_copies(kernel: Kernel) -> list[Opt]:
    """The legal opts that write out no more than 32 steps."""
    done = [axis.size for axis in kernel.axes if axis.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL)]
    most = 32 // int(np.prod(done))
    legal = available_opts(kernel)
    return [opt for opt in legal if opt.op not in (OptOps.UPCAST, OptOps.UNROLL) or opt.amount <= most] or [*legal]


@pytest.mark.parametrize("on", ["PYTHON", *GPUS])
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_the_default_schedule_gives_the_same_result(program: str, on: str) -> None:
    item = item_of(program)
    kernel = apply_heuristics(kernel_on(item, on))
    np.testing.assert_allclose(result(item, kernel, on), expected_of(item), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("on", ["PYTHON", *GPUS])
def test_a_model_in_whole_kernels(on: str) -> None:
    """Convolution, pooling with its places, embedding, sorting, a loss and its gradients."""
    rng = np.random.default_rng(0)
    image, weight = rng.normal(size=(1, 2, 8, 8)).astype("f"), rng.normal(size=(3, 2, 3, 3)).astype("f")

    def program(device: str) -> list[np.ndarray]:
        x, w = (Tensor(array, device=device, requires_grad=True) for array in (image, weight))
        hidden = x.conv2d(w, padding=1).relu().max_pool2d((2, 2)).flatten(1)
        loss = hidden.log_softmax()[:, 3].neg().mean()
        loss.backward()
        table = Tensor(weight.reshape(-1, 3), device=device)
        picked = table[Tensor([3, 1, 3, 0], device=device)]
        ordered, places = hidden[0].sort()
        found = [loss, x.grad, w.grad, hidden.argmax(1), picked, ordered, places, hidden.cumsum(1)]
        if has(on, dtypes.float16):
            found.append(hidden.half().sum())
        return [one.numpy() for one in found]  # type: ignore[union-attr]

    with Context(TARGET=TARGETS.get(on, TARGET)):
        found = program(under(on)[0])
    for one, other in zip(found, program("LLVM"), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-3 if one.dtype == np.float16 else 2e-4, atol=1e-4)


# *** what is legal ***


def applied(kernel: Kernel, *opts: Opt) -> Kernel:
    for opt in opts:
        kernel = apply_opt(kernel, opt)
    return kernel


def test_work_items_that_reduced_a_rows_maximum_divide_the_row() -> None:
    """The reductions of softmax and the row that is stored are one dimension of the group."""
    kernel = apply_heuristics(kernel_on(item_of("softmax")))
    kernel = kernel.restart(kernel.start)
    rows = [axis.arg.id for axis in kernel.axes]
    kernel = applied(
        kernel, Opt(OptOps.GROUP, rows[2], 8), Opt(OptOps.GROUP, rows[3], 8), Opt(OptOps.LOCAL, rows[1], 8)
    )
    with Context(TARGET=TARGET):
        source = compile_optimized("PYTHON", kernel).spec.source
    assert "lidx0" in source and "lidx1" not in source
    assert source.count("yield") == 2


@pytest.mark.parametrize(
    "program, done, tried, words",
    [
        ("row sum", [], Opt(OptOps.THREAD, 0), "Opt is for CPUs"),
        ("row sum", [], Opt(OptOps.GROUP, 0, 2), "needs a reduction axis"),
        ("row sum", [Opt(OptOps.GROUP, 1, 8)], Opt(OptOps.GROUP, 1, 4), "share this reduction already"),
        ("softmax", [Opt(OptOps.GROUP, 2, 8)], Opt(OptOps.GROUP, 3, 4), "work-items of the group; choose"),
        ("row sum", [Opt(OptOps.NOLOCALS, 0)], Opt(OptOps.LOCAL, 0, 2), "NOLOCALS leaves it to the runtime"),
        ("row sum", [Opt(OptOps.LOCAL, 0, 2)], Opt(OptOps.NOLOCALS, 0), "set the work-group size"),
        ("elementwise", [Opt(OptOps.LOCAL, 0, 2)], Opt(OptOps.LOCAL, 2, 2), "a dimension of the work-group"),
        (
            "transpose",
            [Opt(OptOps.LOCAL, 0, 19), Opt(OptOps.NOLOCALS, 0)],
            Opt(OptOps.LOCAL, 1, 23),
            "set the work-group size",
        ),
        (
            "transpose",
            [Opt(OptOps.LOCAL, 0, 19)],
            Opt(OptOps.LOCAL, 1, 16),
            "304 work-items; PYTHON .* 256",
        ),
    ],
)
def test_an_illegal_opt_is_explained(program: str, done: list[Opt], tried: Opt, words: str) -> None:
    kernel = kernel_on(item_of(program))
    with pytest.raises(OptError, match=words):
        applied(kernel, *done, tried)


@pytest.mark.parametrize(
    "program, done, tried, words",
    [
        ("matmul", [], Opt(OptOps.STAGE, 2, 8), "apply LOCAL first"),
        ("matmul", [Opt(OptOps.LOCAL, 0, 4)], Opt(OptOps.STAGE, 0, 2), "needs a reduction axis"),
        ("matmul", [Opt(OptOps.LOCAL, 0, 4)], Opt(OptOps.STAGE, 2, 0), "choose an amount from 2 to 33"),
        ("matmul", [Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.STAGE, 2, 8)], Opt(OptOps.UPCAST, 1, 2), "before STAGE"),
        ("row sum", [Opt(OptOps.LOCAL, 0, 2)], Opt(OptOps.STAGE, 1, 8), "no two work-items"),
        ("matmul", [], Opt(OptOps.PADTO, 0, 4), "already a multiple of 4"),
        ("matmul", [], Opt(OptOps.PADTO, 1, 32), "more than half of 32"),
        ("matmul", [Opt(OptOps.LOCAL, 0, 4)], Opt(OptOps.PADTO, 3, 3), "that is a loop"),
        ("matmul", [Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.STAGE, 2, 8)], Opt(OptOps.PADTO, 2, 3), "before STAGE"),
        ("running sum", [], Opt(OptOps.PADTO, 0, 2), "from step to step"),
    ],
)
def test_illegal_staging_and_padding_are_explained(program: str, done: list[Opt], tried: Opt, words: str) -> None:
    kernel = applied(kernel_on(item_of(program)), *done)
    with pytest.raises(OptError, match=words):
        apply_opt(kernel, tried)


@pytest.mark.parametrize("on", ["PYTHON", *GPUS])
def test_operands_of_a_product_are_copied_once_for_a_group(on: str) -> None:
    """Tiles of awkward sizes: rows of 12 in groups of 5, 33 steps in blocks of 8, padded to 40 before."""
    item = item_of("matmul")
    opts = [Opt(OptOps.PADTO, 2, 8), Opt(OptOps.LOCAL, 0, 5), Opt(OptOps.LOCAL, 1, 4), Opt(OptOps.UPCAST, 1, 2)]
    kernel = applied(kernel_on(item, on), *opts, Opt(OptOps.STAGE, 2, 8))
    tiles = {str(node.arg): node.dtype.size for node in kernel.find(Ops.DEFINE_LOCAL)}
    assert tiles == {"tile0": 8 * 12, "tile1": 8 * 2 * 4}
    assert undo_opt(kernel).ast is applied(kernel_on(item, on), *opts).ast
    np.testing.assert_allclose(result(item, kernel, on), expected_of(item), rtol=1e-4)
    assert {Opt(OptOps.UNROLL, 6, 4), Opt(OptOps.GROUP, 6, 4)} <= set(available_opts(kernel))


def test_a_staged_tile_is_padded_where_a_warp_would_store_into_one_bank() -> None:
    """a[i,k] is read along k by a warp that copies it, four rows of 8 at a time: in the tile the steps of k lie four
    words apart, modulo 8, so that the warp stores into 32 banks."""
    item = item_of("matmul")
    for rows, words in ((1, (17, 33, 65)), (2, (18, 34, 66)), (4, (20, 36, 68))):
        assert tuple(padded_row(size, 4, 32 // rows) for size in (16, 33, 64)) == words
        assert all(
            len({(step * pitch + row) % 32 for step in range(32 // rows) for row in range(rows)}) == 32
            for pitch in words
        )
    assert [padded_row(64, 2, 32), padded_row(64, 8, 32), padded_row(3, 1, 32)] == [66, 65, 4]
    # four at a time, each of which goes into a row of its own: 2-way conflicts, since rows are read in vectors of 4
    assert (padded_row(64, 4, 4, 4), padded_row(64, 4, 4, 4, 4)) == (66, 68)
    kernel = applied(kernel_on(item), Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, 5), Opt(OptOps.STAGE, 2, 8))
    (rows, columns) = (node.dtype.size for node in kernel.find(Ops.DEFINE_LOCAL))
    assert (rows, columns) == (4 * 8, 5 * 8)  # b's lie as they are read


def test_a_large_product_is_staged_and_neighbors_store_neighbors() -> None:
    with Context(TARGET="sm_80", DEVICE="LLVM"):
        x = Tensor(np.zeros((512, 256), np.float32))
        *_, item = create_schedule([(x @ x.transpose(0, 1).contiguous()).lazydata])
        target = device("PYTHON for sm_80").target
        assert item.ast is not None
        opts = apply_heuristics(Kernel.of(item.ast, target)).applied
        assert [str(opt) for opt in opts] == [
            *("UPCAST(0, 4)", "UPCAST(1, 4)", "LOCAL(0, 16)", "LOCAL(1, 16)", "STAGE(2, 16)")
        ]
        one_by_one = apply_heuristics(Kernel.of(item.ast, replace(target, access_bytes=0))).applied
        assert [str(opt) for opt in one_by_one] == [
            *("LOCAL(0, 16)", "LOCAL(1, 16)", "UPCAST(0, 4)", "UPCAST(1, 4)", "STAGE(2, 16)")
        ]
        elsewhere = apply_heuristics(Kernel.of(item.ast, replace(target, shared_is_near=False))).applied
        assert OptOps.STAGE not in {opt.op for opt in elsewhere}


def test_a_cpu_has_no_work_groups() -> None:
    item = item_of("row sum")
    assert item.ast is not None
    with pytest.raises(OptError, match="GROUPTOP axis 1 by 4: LLVM .*GPUs"):
        apply_opt(Kernel.of(item.ast, device("LLVM").target), Opt(OptOps.GROUPTOP, 1, 4))


# *** what the emulator finds ***


def special(name: str, size: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.index, (index_const(size),), name)


SHARED = UOp(Ops.DEFINE_LOCAL, PtrDType(dtypes.int32, 8, "shared"), (), "shared0")


def run(*stores: UOp) -> list[int]:
    program = compiled("PYTHON for opencl", linear(pointer(0, dtypes.int32, 8), *stores))
    (found,) = call(program, [(dtypes.int32, 8)], [])
    return found


def neighbor(item: UOp, *after: UOp) -> UOp:
    """The value that the next work-item of the group stored in shared memory."""
    place = UOp(Ops.LOAD, dtypes.int32, (SHARED.index((item + 1) % 8), *after))
    return store(pointer(0, dtypes.int32, 8), item, place)


def test_a_barrier_orders_the_accesses_of_a_group_to_shared_memory() -> None:
    item = special("lidx0", 8)
    filled = UOp(Ops.BARRIER, dtypes.void, (store(SHARED, item, item.cast(dtypes.int32)),))
    assert run(neighbor(item, filled)) == [1, 2, 3, 4, 5, 6, 7, 0]


def test_shared_memory_without_a_barrier_is_a_race() -> None:
    item = special("lidx0", 8)
    fill = store(SHARED, item, item.cast(dtypes.int32))
    words = r"work-item gidx0=0, lidx0=1 stores to shared0\[1\], which work-item gidx0=0, lidx0=0 has read; no barrier"
    with pytest.raises(RaceError, match=words):
        run(fill, neighbor(item))


def test_two_groups_that_store_equal_values_to_one_address_race() -> None:
    group = special("gidx0", 4)
    with pytest.raises(RaceError, match=r"gidx0=2, lidx0=0 stores to data0\[1\], which work-item gidx0=1, lidx0=0 has"):
        run(store(pointer(0, dtypes.int32, 8), group.minimum(1), UOp.const(dtypes.int32, 7)))


def test_a_loop_that_fills_shared_memory_waits_at_the_end_of_each_step() -> None:
    """Without that barrier a work-item stores for the next step what another one still reads."""
    item = item_of("largest row sum")
    kernel = apply_opt(kernel_on(item), Opt(OptOps.GROUP, 2, 8))
    np.testing.assert_allclose(result(item, kernel), expected_of(item), rtol=1e-5)
    without = tuple(step for step in PASSES if step.name != "loop barriers")
    with Context(TARGET=TARGET):
        runner = compile_optimized("PYTHON", kernel, without)
    with pytest.raises(RaceError, match=r"lidx0=1 reads shared0\[0\], which work-item gidx0=0, lidx0=0 has stored"):
        ExecItem(item, runner, None, item.buffers).run()


def test_one_barrier_waits_for_two_tiles() -> None:
    """A step of a product's sum fills a tile of each operand: one barrier before they are read, one after."""
    kernel = applied(kernel_on(item_of("matmul")), Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, 5))
    program = lower(apply_opt(kernel, Opt(OptOps.STAGE, 2, 11)))
    barriers = [place for place, node in enumerate(program) if is_group_barrier(node)]
    shared = [place for place, node in enumerate(program) if node.op in (Ops.LOAD, Ops.STORE) and reaches_tile(node)]
    stores = [place for place in shared if program[place].op is Ops.STORE]
    loads = [place for place in shared if program[place].op is Ops.LOAD]
    assert len(barriers) == 2 and len(stores) == 2
    assert max(stores) < barriers[0] < min(loads) and max(loads) < barriers[1]


STAGED = (Opt(OptOps.LOCAL, 0, 4), Opt(OptOps.LOCAL, 1, 5), Opt(OptOps.UPCAST, 1, 2), Opt(OptOps.STAGE, 2, 8))


@pytest.mark.parametrize("on", ["PYTHON", *GPUS])
@pytest.mark.parametrize("block", [2, 8, 11, 16])
def test_double_buffering_changes_no_bit(block: int, on: str) -> None:
    """Steps are added in the same order; 16, 4, 3 and 2 blocks, with a step left over or none."""
    item = item_of("matmul")
    staged = applied(kernel_on(item, on), *STAGED[:3], Opt(OptOps.STAGE, 2, block))
    piped = apply_opt(staged, Opt(OptOps.PIPELINE, 2, 2))
    assert undo_opt(piped).ast is staged.ast
    before = result(item, staged, on).copy()
    np.testing.assert_array_equal(result(item, piped, on), before)
    np.testing.assert_allclose(before, expected_of(item), rtol=1e-4)


def test_a_double_buffered_step_waits_once_and_loads_the_next_block_before_it_computes() -> None:
    kernel = apply_opt(applied(kernel_on(item_of("matmul")), *STAGED), Opt(OptOps.PIPELINE, 2, 2))
    assert [node.dtype.size for node in kernel.find(Ops.DEFINE_LOCAL)] == [2 * 4 * 8, 2 * 5 * 2 * 8]
    program = lower(kernel)
    barriers = [place for place, node in enumerate(program) if is_group_barrier(node)]
    (start,) = (place for place, node in enumerate(program) if node.op is Ops.RANGE and node.arg.ahead)
    loads = [place for place, node in enumerate(program) if node.op is Ops.LOAD]
    tiles = [place for place in loads if reaches_tile(program[place])]
    assert len(barriers) == 1 and start < barriers[0] < min(tiles)
    inside = [place for place in loads if start < place < max(tiles) and place not in tiles]
    assert inside and all(barriers[0] < place < min(tiles) for place in inside)
    assert any(place < start for place in loads)  # the first block


def test_a_double_buffered_loop_inside_another_one_waits_at_its_end() -> None:
    """Three blocks: the last one lies in the half that the first one of the next round is stored to."""
    x = from_numpy(numbers(2, 6, 12)), from_numpy(numbers(2, 12, 7, seed=1))
    with Context(TARGET=TARGET):
        product = x[0].reshape((2, 6, 1, 12)).expand((2, 6, 7, 12))
        other = x[1].permute((0, 2, 1)).reshape((2, 1, 7, 12)).expand((2, 6, 7, 12))
        *_, item = create_schedule([product.alu(Ops.MUL, other).reduce(Ops.ADD, (0, 3))])
    kernel = kernel_on(item)
    rows, columns, _, steps = (axis.arg.id for axis in kernel.axes)
    opts = (Opt(OptOps.LOCAL, rows, 6), Opt(OptOps.LOCAL, columns, 7), Opt(OptOps.STAGE, steps, 4))
    piped = applied(kernel, *opts, Opt(OptOps.PIPELINE, steps, 2))
    np.testing.assert_allclose(result(item, piped), expected_of(item), rtol=1e-4)
    program = lower(piped)
    ends = [place for place, node in enumerate(program) if node.op is Ops.ENDRANGE and node.src[0].arg.ahead]
    assert [is_group_barrier(program[place + 1]) for place in ends] == [True]


@pytest.mark.parametrize(
    "done, tried, words",
    [
        ([], Opt(OptOps.PIPELINE, 2, 2), "fills no shared-memory tile"),
        ([*STAGED[:3], Opt(OptOps.STAGE, 2, 33)], Opt(OptOps.PIPELINE, 6, 2), "at least two blocks"),
        (STAGED, Opt(OptOps.PIPELINE, 0, 2), "needs a reduction axis"),
        (STAGED, Opt(OptOps.PIPELINE, 2, 3), "choose 2"),
        (
            [*STAGED[:1], Opt(OptOps.UPCAST, 1, 10), Opt(OptOps.STAGE, 2, 16)],
            Opt(OptOps.PIPELINE, 2, 2),
            "160 bytes of the next block",
        ),
        ([*STAGED, Opt(OptOps.PIPELINE, 2, 2)], Opt(OptOps.UPCAST, 0, 2), "PIPELINE comes last"),
    ],
)
def test_illegal_double_buffering_is_explained(done: list[Opt], tried: Opt, words: str) -> None:
    kernel = applied(kernel_on(item_of("matmul")), *done)
    with pytest.raises(OptError, match=words):
        apply_opt(kernel, tried)


def test_a_block_held_in_vectors_is_held_one_by_one_where_memory_starts_anywhere() -> None:
    with Context(TARGET=TARGET):
        *_, item = create_schedule([matmul(from_numpy(numbers(16, 32)), from_numpy(numbers(32, 16, seed=1)))])
    sides = [Opt(op, axis, 4) for op in (OptOps.UPCAST, OptOps.LOCAL) for axis in (0, 1)]
    kernel = applied(kernel_on(item), *sides, Opt(OptOps.STAGE, 2, 8), Opt(OptOps.PIPELINE, 2, 2))
    target = device("PYTHON for opencl").target
    single = GPURenderer(target, "", aligned=False).render("k", lower(kernel))
    held = [node.dtype.count for node in lower(kernel) if node.op is Ops.DEFINE_ACC]
    assert max(held) == 4 and {node.dtype.count for node in single.uops if node.op is Ops.DEFINE_ACC} == {1}
    program, f32 = compiled("PYTHON for opencl", single.uops), dtypes.float32
    inputs = [(f32, numbers(16, 32).ravel().tolist()), (f32, numbers(32, 16, seed=1).ravel().tolist())]
    (found,) = call(program, [(f32, 256)], inputs)
    np.testing.assert_allclose(np.array(found).reshape(16, 16), numbers(16, 32) @ numbers(32, 16, seed=1), rtol=1e-4)


def test_two_halves_must_fit_into_shared_memory() -> None:
    kernel = applied(kernel_on(item_of("matmul")), *STAGED)
    assert Opt(OptOps.PIPELINE, 2, 2) in available_opts(kernel)
    small = replace(kernel, target=replace(kernel.target, shared_bytes=600))
    assert Opt(OptOps.PIPELINE, 2, 2) not in available_opts(small)
    with pytest.raises(OptError, match="of shared memory"):
        apply_opt(small, Opt(OptOps.PIPELINE, 2, 2))


def reaches_tile(node: UOp) -> bool:
    return str(node.src[0].src[0].arg).startswith("tile")


def test_a_barrier_between_a_read_and_a_later_store_is_preserved() -> None:
    """Into the memory that the first barrier lets others read, the second part stores: without it, they would race."""
    item, out = special("lidx0", 8), pointer(0, dtypes.int32, 8)
    other = SHARED.replace(arg="shared1")
    first = UOp(Ops.BARRIER, dtypes.void, (store(SHARED, item, item.cast(dtypes.int32)),))
    value = UOp(Ops.LOAD, dtypes.int32, (SHARED.index((item + 1) % 8), first))
    second = UOp(Ops.BARRIER, dtypes.void, (store(other, item, value),))
    third = UOp(Ops.BARRIER, dtypes.void, (store(SHARED, item, value * 2),))
    found = UOp(Ops.LOAD, dtypes.int32, (other.index((item + 1) % 8), second))
    again = UOp(Ops.LOAD, dtypes.int32, (SHARED.index((item + 1) % 8), third))
    program = linear(out, SHARED, other, second, third, store(out, item, found + again))
    kept = end_steps_with_barriers(tuple(program), Lowering(device("PYTHON for opencl").target))
    assert sum(map(is_group_barrier, kept)) == 3  # shared0 was read since the first
    (result_of,) = call(compiled("PYTHON for opencl", list(kept)), [(dtypes.int32, 8)], [])
    assert result_of == [3 * ((n + 2) % 8) for n in range(8)]


def test_a_barrier_that_some_work_items_skip_is_detected() -> None:
    item = special("lidx0", 4)
    steps = UOp.range(item, loop(1).arg)
    filled = UOp(Ops.BARRIER, dtypes.void, (store(SHARED, item, steps.cast(dtypes.int32)),))
    program = [SHARED, item, steps, *linear(filled), UOp(Ops.ENDRANGE, dtypes.void, (steps,))]
    with pytest.raises(DivergenceError, match=r"lidx0=1 .*barrier of line \d+, and .* lidx0=0 .*ended"):
        run(*program)


def test_values_of_variables_make_the_grid() -> None:
    with Context(TARGET=TARGET):
        x = Tensor(numbers(9), device="PYTHON")
        size = Variable("size", 1, 9)
        for bound in (1, 5, 9):
            found = (x[: size.bind(bound)] * 2).sum().item()
            assert found == pytest.approx(float(numbers(9)[:bound].sum() * 2), rel=1e-5)


def test_buffers_of_a_gpu_program_are_checked() -> None:
    item = special("lidx0", 8)
    program = compiled(
        "PYTHON for opencl",
        linear(pointer(0, dtypes.int32, 8), store(pointer(0, dtypes.int32, 8), item, item.cast(dtypes.int32))),
    )
    with pytest.raises(ValueError, match="takes 1 buffers; 2 were given"):
        program.bind([Buffer("PYTHON", 8, dtypes.int32), Buffer("PYTHON", 8, dtypes.int32)])


# *** what a device lacks ***


def test_a_missing_package_or_driver_raises_an_error_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl, "_open_opencl", opencl.OpenCL)  # not the one that is open
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(DeviceUnavailable, match=r"pip install 'tinyexplore\[opencl\]'"):
        opencl.open_gpu()
    without_driver = SimpleNamespace(Error=RuntimeError, get_platforms=list)
    monkeypatch.setitem(sys.modules, "pyopencl", without_driver)
    with pytest.raises(DeviceUnavailable, match="Debian: apt-get install pocl-opencl-icd ocl-icd-libopencl1"):
        opencl.open_gpu()
    with Context(TARGET="sm_80"), pytest.raises(DeviceUnavailable, match="the GPU device runs OpenCL, not cuda"):
        opencl.open_gpu()


def test_a_type_that_a_gpu_lacks_is_an_error_at_the_call() -> None:
    with Context(TARGET="metal"), pytest.raises(RenderError, match="float64: metal .*cast"):
        (Tensor([1.0, 2.0], dtype=dtypes.float64, device="LLVM") * 2).realize()

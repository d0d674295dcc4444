"""Every legal opt preserves the result, and every illegal one gives the reason."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import attention, from_numpy, matmul, numbers, softmax, to_numpy
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import compile_optimized, create_schedule, read, realize
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
from tinyexplore.kernel.opts import OPT_KINDS, effect_of
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import ScheduleItem
from tinyexplore.uop import AxisKind, Ops
from tinyexplore.uop.bounds import bounds
from tinyexplore.util import Context


def result(item: ScheduleItem, kernel: Kernel) -> np.ndarray:
    with Context(SPEC=1):
        runner = compile_optimized("LLVM", kernel)
    item.buffers[0].allocate().copyin(b"\xff" * item.buffers[0].nbytes)
    ExecItem(item, runner, None, item.buffers).run()
    return np.frombuffer(item.buffers[0].copyout(), np.float32)


def tall_attention(length: int, causal: bool = False) -> LazyBuffer:
    """Enough rows of queries for one kernel, over few columns."""
    rows = max(length, -(-(512 << 10) // (4 * length)) + 1)
    sizes = ((rows, 12), (length, 12), (length, 12))
    return attention(*(from_numpy(numbers(*size, seed=seed)) for seed, size in enumerate(sizes)), causal=causal)


def applied(kernel: Kernel, *opts: Opt) -> Kernel:
    for opt in opts:
        kernel = apply_opt(kernel, opt)
    return kernel


PROGRAMS = {
    "elementwise": lambda: from_numpy(numbers(5, 37)).alu(Ops.MUL, from_numpy(numbers(5, 37, seed=1))),
    "transpose": lambda: from_numpy(numbers(19, 23)).permute((1, 0)).contiguous(),
    "matmul": lambda: matmul(from_numpy(numbers(20, 33)), from_numpy(numbers(33, 35))),
    "row sum": lambda: from_numpy(numbers(6, 70)).reduce(Ops.ADD, (1,)),
    "column max": lambda: from_numpy(numbers(45, 20)).reduce(Ops.MAX, (0,)),
    "softmax": lambda: softmax(from_numpy(numbers(9, 41))),
    "running sum": lambda: from_numpy(numbers(5, 37)).scan(Ops.ADD, 1),
    "attention": lambda: tall_attention(23),
    "causal attention": lambda: tall_attention(23, causal=True),
    "padded window": lambda: from_numpy(numbers(4, 40)).pad(((0, 0), (2, 3))).window(1, 3).reduce(Ops.ADD, (2,)),
}


@pytest.mark.pinned
@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_any_sequence_of_legal_opts_gives_the_same_result(program: str) -> None:
    (item,) = create_schedule([PROGRAMS[program]()])
    start = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, start)

    @settings(max_examples=25, deadline=None)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        kernel = start
        for _ in range(data.draw(st.integers(1, 4))):
            legal = available_opts(kernel)
            written_out = np.prod([a.size for a in kernel.axes if a.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL)])
            legal = tuple(opt for opt in legal if opt.amount * written_out <= 32)
            if not legal:
                break
            kernel = apply_opt(kernel, data.draw(st.sampled_from(legal)))
        np.testing.assert_allclose(result(item, kernel), expected, rtol=1e-4, atol=1e-5)

    run()


def test_the_default_schedule_of_a_matmul_is_a_register_tile_on_threads() -> None:
    kernel = apply_heuristics(kernel_of(matmul(from_numpy(numbers(256, 256)), from_numpy(numbers(256, 256)))))
    assert [str(opt) for opt in kernel.applied] == ["VECTOR(1, 16)", "UPCAST(1, 4)", "UPCAST(0, 6)", "THREAD(0)"]
    assert kernel.name == "r_43_4_256_16_4_6"


@pytest.mark.parametrize("rows", [50, 97])
def test_sums_of_a_factor_do_not_change_the_tile_of_a_product(rows: int) -> None:
    x, y = numbers(rows, 40), numbers(40, 200, seed=1)
    weights = from_numpy(x).alu(Ops.EXP)
    sums = weights.reduce(Ops.ADD, (1,)).expand((rows, 200))
    weighted = matmul(weights, from_numpy(y)).alu(Ops.FDIV, sums)
    *_, item = create_schedule([weighted])
    assert item.ast is not None and len(item.ast.find(Ops.REDUCE)) == 2
    plain = apply_heuristics(kernel_of(matmul(from_numpy(x), from_numpy(y)))).applied
    found = apply_heuristics(Kernel.of(item.ast, MACHINE)).applied
    assert [opt for opt in found if opt.op is not OptOps.UNROLL] == list(plain)
    expected = np.exp(x) @ y / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(to_numpy(weighted), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.pinned
def test_a_causal_mask_trims_the_loops_over_masked_elements() -> None:
    kernel = apply_heuristics(kernel_of(tall_attention(192, causal=True)))
    assert kernel.applied[-1].op is OptOps.TRIM
    early = [axis.arg.kind.value for axis in kernel.axes if axis.src[0].op is not Ops.CONST]
    assert sorted(early) == ["reduce"] * 3 + ["row"] * 3
    assert undo_opt(kernel).applied == kernel.applied[:-1]


@pytest.mark.pinned
@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 63, 64, 65, 100, 128, 130, 200])
def test_masked_elements_are_never_read(length: int) -> None:
    (item,) = create_schedule([tall_attention(length, causal=True)])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    np.testing.assert_allclose(result(item, apply_heuristics(kernel)), result(item, kernel), rtol=1e-4, atol=1e-6)


def test_explicit_zeros_are_multiplied() -> None:
    keep = np.tril(np.ones((8, 8), np.float32))
    row, column = (LazyBuffer.iota(8, dtypes.int32, "LLVM").reshape(shape).expand((8, 8)) for shape in ((8, 1), (1, 8)))
    zero = LazyBuffer.const(0.0, dtypes.float32, "LLVM", (8, 8))
    lower = row.alu(Ops.CMPLT, column).alu(Ops.WHERE, zero, from_numpy(keep))
    right = np.full((8, 8), np.inf, np.float32)
    (item,) = create_schedule([lower.alu(Ops.MUL, from_numpy(right)).reduce(Ops.ADD, (1,))])
    kernel = apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(result(item, kernel), (keep * right).sum(1))


def test_a_matrix_past_the_l2_cache_is_packed_in_panels() -> None:
    kernel = apply_heuristics(kernel_of(matmul(from_numpy(numbers(600, 1024)), from_numpy(numbers(1024, 640)))))
    assert [str(opt) for opt in kernel.applied[3:]] == ["SWAP(0, 1)", "STAGE(1)", "THREAD(0)"]


def test_staging_gives_the_same_result_with_lanes_tiles_and_remainders() -> None:
    (item,) = create_schedule([matmul(from_numpy(numbers(45, 33)), from_numpy(numbers(33, 50)).flip((0,)))])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, kernel)
    for opt in (
        Opt(OptOps.VECTOR, 1, kernel.lanes),
        Opt(OptOps.UPCAST, 1, 2),
        Opt(OptOps.UPCAST, 0, 14),
        Opt(OptOps.SWAP, 0, 1),
        Opt(OptOps.STAGE, 1),
    ):
        kernel = apply_opt(kernel, opt)
    np.testing.assert_allclose(result(item, kernel), expected, rtol=1e-4, atol=1e-5)


def test_staging_packs_the_operand_of_the_inner_loops() -> None:
    (item,) = create_schedule([PROGRAMS["matmul"]()])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, kernel)
    for opts in (
        [Opt(OptOps.STAGE, 0)],  # all columns, for every row
        [Opt(OptOps.VECTOR, 0, 4), Opt(OptOps.UPCAST, 1, 4), Opt(OptOps.STAGE, 1), Opt(OptOps.TRANSPOSE_STORE, 3)],
        [Opt(OptOps.VECTOR, 1, kernel.lanes), Opt(OptOps.LOCAL, 0, 7), Opt(OptOps.STAGE, 1), Opt(OptOps.STAGE, 4)],
    ):
        np.testing.assert_allclose(result(item, applied(kernel, *opts)), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(OptError, match="invariant along this axis"):
        apply_opt(kernel_of(PROGRAMS["row sum"]()), Opt(OptOps.STAGE, 0))


@pytest.mark.parametrize(
    ("sizes", "first_transposed", "second_transposed", "opts"),
    [
        ((96, 80, 160), False, True, "SWAP(0, 1) STAGE(1)"),  # the second is transposed in registers, and packed
        ((700, 1024, 640), True, False, "SWAP(0, 1) LOCAL(1, 70) SWAP(0, 1) STAGE(1) STAGE(6)"),  # both are too large
    ],
)
def test_strided_operands_are_packed(
    sizes: tuple[int, int, int], first_transposed: bool, second_transposed: bool, opts: str
) -> None:
    m, k, n = sizes
    a = from_numpy(numbers(k, m)).permute((1, 0)) if first_transposed else from_numpy(numbers(m, k))
    b = from_numpy(numbers(n, k)).permute((1, 0)) if second_transposed else from_numpy(numbers(k, n))
    (item,) = create_schedule([matmul(a, b)])
    target = replace(MACHINE, name="LLVM", arch=Device["LLVM"].target.arch)
    kernel = apply_heuristics(Kernel.of(item.ast, target))
    assert " ".join(str(opt) for opt in kernel.applied[3:-1]) == opts
    left = numbers(k, m).T if first_transposed else numbers(m, k)
    right = numbers(n, k).T if second_transposed else numbers(k, n)
    np.testing.assert_allclose(result(item, kernel).reshape(m, n), left @ right, rtol=1e-3, atol=1e-3)


def test_lanes_with_strided_results_are_collected() -> None:
    pictures = from_numpy(numbers(16, 64, 8, 8)).window(2, 3).window(3, 3).reshape((16, 1, 64, 6, 6, 3, 3))
    filters = from_numpy(numbers(64, 64, 3, 3)).reshape((1, 64, 64, 1, 1, 3, 3))
    shape = (16, 64, 64, 6, 6, 3, 3)
    node = pictures.expand(shape).alu(Ops.MUL, filters.expand(shape)).reduce(Ops.ADD, (2, 5, 6))
    kernel = apply_heuristics(kernel_of(node))  # rows of 6 places fill no vector; filters do, when they are packed
    assert {opt.op for opt in kernel.applied} >= {OptOps.STAGE, OptOps.TRANSPOSE_STORE}
    (item,) = create_schedule([node])
    target = Device["LLVM"].target
    plain = result(item, Kernel.of(item.ast, target))
    np.testing.assert_allclose(result(item, apply_heuristics(Kernel.of(item.ast, target))), plain, rtol=1e-3, atol=1e-3)


def test_nested_sums_are_collected_if_the_stored_value_reads_them() -> None:
    x, columns = from_numpy(numbers(13, 9)), from_numpy(numbers(1, 5, seed=1)).expand((13, 5))
    inner = x.reduce(Ops.ADD, (1,))
    outer = x.alu(Ops.MAX, inner.expand((13, 9))).reduce(Ops.ADD, (1,))
    (item,) = create_schedule([outer.alu(Ops.ADD, inner).expand((13, 5)).alu(Ops.MUL, columns)])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, kernel)
    assert sum(node.op is Ops.REDUCE for node in kernel.nodes) == 2
    (rows,) = (axis for axis in kernel.output_axes if axis.size == 13)
    kernel = apply_opt(kernel, Opt(OptOps.VECTOR, rows.arg.id, 4))
    (lanes,) = (axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR)
    kernel = apply_opt(kernel, Opt(OptOps.TRANSPOSE_STORE, lanes.arg.id))
    np.testing.assert_allclose(result(item, kernel), expected, rtol=1e-4, atol=1e-5)


def test_a_row_that_sums_and_stores_read_is_not_collected() -> None:
    x = from_numpy(numbers(64, 13, 2))
    row = x.alu(Ops.MUL, x).alu(Ops.SQRT)
    (item,) = create_schedule([row.alu(Ops.FDIV, row.reduce(Ops.ADD, (1, 2)).expand((64, 13, 2)))])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, kernel)
    assert any(axis.arg.kind is AxisKind.ROW for axis in kernel.axes)
    kernel = applied(kernel, Opt(OptOps.UPCAST, 0, 6), Opt(OptOps.VECTOR, 1, 4))
    np.testing.assert_allclose(result(item, kernel), expected, rtol=1e-5)
    (lanes,) = (axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR)
    with pytest.raises(OptError, match="would be filled twice"):
        apply_opt(kernel, Opt(OptOps.TRANSPOSE_STORE, lanes.arg.id))
    assert Opt(OptOps.TRANSPOSE_STORE, lanes.arg.id) not in available_opts(kernel)


def test_rows_of_an_elementwise_kernel_are_one_loop() -> None:
    x = from_numpy(numbers(8, 48))
    kernel = apply_heuristics(kernel_of(x.alu(Ops.ADD, x)))
    assert [axis.size for axis in kernel.axes if axis.arg.kind is AxisKind.GLOBAL] == [24]


def test_an_axis_of_heads_and_features_is_split_where_it_is_divided() -> None:
    heads = from_numpy(numbers(4, 16, 8)).permute((1, 0, 2)).reshape((16, 32))
    kernel = kernel_of(matmul(heads, from_numpy(numbers(32, 24))))
    found = apply_heuristics(kernel)
    assert not any(node.op in (Ops.IDIV, Ops.MOD) for node in found.nodes)
    (item,) = create_schedule([matmul(heads, from_numpy(numbers(32, 24)))])
    plain = result(item, Kernel.of(item.ast, Device["LLVM"].target))
    np.testing.assert_allclose(
        result(item, apply_heuristics(Kernel.of(item.ast, Device["LLVM"].target))), plain, rtol=1e-5
    )


def test_a_bias_does_not_change_the_lanes_of_a_transposed_matmul() -> None:
    product = matmul(from_numpy(numbers(32, 64)), from_numpy(numbers(48, 64)).permute((1, 0)))
    bias = from_numpy(numbers(48)).reshape((1, 48)).expand((32, 48))
    kernel = apply_heuristics(kernel_of(product.alu(Ops.ADD, bias)))
    (lanes,) = (axis for axis in kernel.axes if axis.arg.kind is AxisKind.VECTOR)
    assert lanes not in kernel.output_axes  # along the reduction, where both operands walk memory


def test_a_convolution_tiles_its_filters_and_not_its_pictures() -> None:
    pictures = from_numpy(numbers(64, 8, 20, 20)).window(2, 3).window(3, 3).reshape((64, 1, 8, 18, 18, 3, 3))
    filters = from_numpy(numbers(16, 8, 3, 3)).reshape((1, 16, 8, 1, 1, 3, 3))
    shape = (64, 16, 8, 18, 18, 3, 3)
    node = pictures.expand(shape).alu(Ops.MUL, filters.expand(shape)).reduce(Ops.ADD, (2, 5, 6))
    assert any(opt.op is OptOps.UPCAST and opt.axis == 1 for opt in apply_heuristics(kernel_of(node)).applied)


def windows_times_filters(channels: int, filters: int, step: int) -> LazyBuffer:
    """One picture times filters of 3 x 3: 56 x 56 results of each."""
    shape = (filters, channels, 56, 56, 3, 3)
    reach = step * 55 + 3
    picture = unread(channels, reach, reach).window(1, 3, step).window(2, 3, step).reshape((1, *shape[1:]))
    weights = unread(filters, channels, 3, 3).reshape((filters, channels, 1, 1, 3, 3))
    return picture.expand(shape).alu(Ops.MUL, weights.expand(shape)).reduce(Ops.ADD, (1, 4, 5))


@pytest.mark.parametrize(("channels", "filters", "step"), [(64, 64, 1), (3, 32, 2)])
def test_three_filters_share_the_loads_of_windows(channels: int, filters: int, step: int) -> None:
    """Loads of windows cross cache lines, and those of every other element take two vectors. A tile of two filters
    would leave none over, and load more."""
    kernel = apply_heuristics(kernel_of(windows_times_filters(channels, filters, step)))
    assert Opt(OptOps.UPCAST, 0, 3) in kernel.applied


def test_blocks_of_blocks_end_where_the_axis_ends() -> None:
    start = kernel_of(from_numpy(numbers(1023)).alu(Ops.NEG))
    kernel = apply_opts(start, Opt(OptOps.VECTOR, 0, 16), Opt(OptOps.UPCAST, 0, 4))
    assert kernel.name == "E_16_16_4"  # 16 blocks of 64, the last one from 959 on: no block starts past the end
    (store,) = kernel.ast.src
    assert bounds(store.src[0].src[1]) == (0, 1022)


def test_merged_axes_give_the_same_result_with_lanes_across_the_ends_of_rows() -> None:
    pictures = from_numpy(numbers(3, 11, 13)).window(1, 3).window(2, 3).reshape((1, 3, 9, 11, 3, 3))
    filters = from_numpy(numbers(4, 3, 3, 3)).reshape((4, 3, 1, 1, 3, 3))
    shape = (4, 3, 9, 11, 3, 3)
    node = pictures.expand(shape).alu(Ops.MUL, filters.expand(shape)).reduce(Ops.ADD, (1, 4, 5))
    (item,) = create_schedule([node])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, kernel)
    for opt in (
        Opt(OptOps.UPCAST, 1, 4),
        Opt(OptOps.COLLAPSE, 6, 2),
        Opt(OptOps.VECTOR, 2, 4),
        Opt(OptOps.UPCAST, 2, 6),
    ):
        kernel = apply_opt(kernel, opt)
    np.testing.assert_allclose(result(item, kernel), expected, rtol=1e-4, atol=1e-5)


def test_axes_that_are_not_contiguous_in_the_result_are_not_merged() -> None:
    kernel = kernel_of(from_numpy(numbers(6, 7, 5)).permute((0, 2, 1)).alu(Ops.NEG))
    with pytest.raises(OptError, match="COLLAPSE axis 0 by 2: "):
        apply_opt(kernel, Opt(OptOps.COLLAPSE, 0, 2))


def test_loops_are_not_merged_if_their_index_is_stored() -> None:
    """3 * i is also a part of the address 3 * i + j: that does not make it one."""
    three = LazyBuffer.const(3, dtypes.int64, "LLVM", (4,))
    starts = LazyBuffer.iota(4, dtypes.int64, "LLVM").alu(Ops.MUL, three)
    node = starts.reshape((4, 1)).expand((4, 3)).contiguous()
    realize([node])
    found = np.frombuffer(read(node).copyout(), np.int64).reshape(4, 3)
    np.testing.assert_array_equal(found, np.arange(0, 12, 3)[:, None].repeat(3, 1))


def test_a_pool_loads_whole_vectors() -> None:
    (item,) = create_schedule([from_numpy(numbers(40, 64)).window(1, 2, 2).reduce(Ops.MAX, (2,))])
    program = lower(apply_heuristics(Kernel.of(item.ast, MACHINE)))
    assert {node.dtype.count for node in program if node.op is Ops.LOAD} == {16}


def test_undo_removes_the_last_opt() -> None:
    start = kernel_of(from_numpy(numbers(64, 64)).alu(Ops.NEG))
    one = apply_opt(start, Opt(OptOps.UPCAST, 0, 4))
    two = apply_opt(one, Opt(OptOps.VECTOR, 1, 16))
    assert undo_opt(two).ast is one.ast
    assert undo_opt(undo_opt(two)).ast is start.ast
    chosen = apply_heuristics(start)  # its axes were merged before the first opt
    assert undo_opt(chosen).applied == chosen.applied[:-1]


@pytest.mark.parametrize(
    ("opt", "message"),
    [
        (Opt(OptOps.UPCAST, 0, 7), "UPCAST axis 0 by 7: .* size 6; .*2 to 6"),
        (Opt(OptOps.UNROLL, 0, 2), "UNROLL axis 0 by 2: .*global.*needs a reduction axis"),
        (
            Opt(OptOps.UPCAST, 1, 2),
            "UPCAST axis 1 by 2: .*reduce.*needs an output axis",
        ),
        (
            Opt(OptOps.VECTOR, 1, 3),
            "VECTOR axis 1 by 3: .*TEST has 16 lanes of float32; .*power of two",
        ),
        (Opt(OptOps.LOCAL, 0, 6), "LOCAL axis 0 by 6: .*6 steps .*changes nothing"),
        (Opt(OptOps.THREAD, 1), "THREAD axis 1: .*reduce.*needs a global axis"),
        (Opt(OptOps.THREAD, 9), "no axis 9 .*g0 of size 6, r1 of size 70"),
    ],
)
def test_an_illegal_opt_is_explained(opt: Opt, message: str) -> None:
    with pytest.raises(OptError) as caught:
        apply_opt(kernel_of(PROGRAMS["row sum"]()), opt)
    assert re.match(message, str(caught.value))


def test_a_value_has_lanes_along_one_axis_only() -> None:
    kernel = apply_opt(kernel_of(PROGRAMS["matmul"]()), Opt(OptOps.VECTOR, 1, 16))
    with pytest.raises(OptError, match="already a vector axis"):
        apply_opt(kernel, Opt(OptOps.VECTOR, 0, 16))


def test_every_kind_of_opt_documents_its_loop_nest() -> None:
    for op in OptOps:
        assert f"{op.name}: {effect_of(op)}" in (OptOps.__doc__ or "")
        for effect in OPT_KINDS[op].effects:
            assert effect.before and effect.after and effect.before != effect.after


def test_remainders_of_two_axes_cover_every_step() -> None:
    (item,) = create_schedule([from_numpy(numbers(5, 3, 15)).permute((1, 0, 2)).reduce(Ops.ADD, (0, 2))])
    kernel = Kernel.of(item.ast, Device["LLVM"].target)
    expected = result(item, kernel)
    first, second = (axis.arg.id for axis in kernel.axes if axis.arg.kind is AxisKind.REDUCE)
    for opts in ((Opt(OptOps.VECTOR, first, 2), Opt(OptOps.UNROLL, second, 2)), (Opt(OptOps.UNROLL, second, 4),)):
        np.testing.assert_allclose(result(item, applied(kernel, *opts)), expected, rtol=1e-5)

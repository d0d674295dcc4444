"""Fused values, realized values, and the recorded reasons."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs import attention, from_numpy, matmul, numbers, softmax, to_numpy
from tests.support.kernels import unread
from tinyexplore import Tensor, nn
from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import dtypes
from tinyexplore.engine import create_schedule, realize
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import Recorder, ScheduleDecided, recording
from tinyexplore.uop import Ops


def decisions(*outputs: LazyBuffer) -> list[tuple[str, str, str]]:
    """(op, decision, reason) in the order made."""
    recorder = Recorder()
    with recording(recorder):
        create_schedule(outputs)
    return [(e.lazybuffer.op.name, e.decision, e.reason) for e in recorder.events if isinstance(e, ScheduleDecided)]


def reasons(*outputs: LazyBuffer) -> dict[str, str]:
    return {op: reason for op, decision, reason in decisions(*outputs) if decision == "realize"}


def test_a_chain_is_one_kernel_that_stores_only_its_result() -> None:
    x = from_numpy(numbers(8, 8))
    y = x.alu(Ops.ADD, x).alu(Ops.MUL, x).alu(Ops.NEG)
    assert len(create_schedule([y])) == 1
    found = decisions(y)
    assert [(op, decision) for op, decision, _ in found] == [("NEG", "realize"), ("MUL", "fuse"), ("ADD", "fuse")]
    assert found[0][2].endswith("an output of the program")
    assert all("saves a store" in reason for _, _, reason in found[1:])


def test_softmax_is_one_kernel() -> None:
    (item,) = create_schedule([softmax(from_numpy(numbers(64, 100)))])
    assert sum(node.op is Ops.REDUCE for node in item.ast.toposort()) == 2


def test_layernorm_is_one_kernel() -> None:
    x = from_numpy(numbers(64, 100))

    def mean(node: LazyBuffer) -> LazyBuffer:
        scale = LazyBuffer.const(0.01, node.dtype, node.device, (64, 1))
        return node.reduce(Ops.ADD, (1,)).alu(Ops.MUL, scale).expand(x.shape)

    centered = x.alu(Ops.ADD, mean(x).alu(Ops.NEG))
    (item,) = create_schedule([centered.alu(Ops.FDIV, mean(centered.alu(Ops.MUL, centered)).alu(Ops.SQRT))])
    assert sum(node.op is Ops.REDUCE for node in item.ast.toposort()) == 2


@pytest.mark.parametrize(
    ("shape", "groups"), [((4, 32, 6, 6), 8), ((20, 6, 5, 7), 3), ((32, 8, 9), 8), ((3, 4, 40), 4)]
)
def test_a_group_norm_is_one_kernel_without_a_division(shape: tuple[int, ...], groups: int) -> None:
    """It is normalized as (batch, groups, all of a group) and stored as (batch, channels, …)."""
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    layer = nn.GroupNorm(groups, shape[1])
    layer.weight, layer.bias = Tensor(numbers(shape[1])).realize(), Tensor(numbers(shape[1]) + 1).realize()
    normal = layer(Tensor(x).realize())
    items = normal.schedule()
    if shape[0] * groups >= 16:  # rows enough for the cores
        (item,) = items
        nodes = item.ast.toposort()
        assert sum(node.op is Ops.REDUCE for node in nodes) == 2
        assert not any(node.op in (Ops.IDIV, Ops.MOD) for node in nodes)
    rows = x.reshape(shape[0], groups, -1).astype(np.float64)
    rows = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    per_channel = (-1, *(1,) * (len(shape) - 2))
    weight, bias = (numbers(shape[1]) + more for more in (0, 1))
    wanted = rows.reshape(shape) * weight.reshape(per_channel) + bias.reshape(per_channel)
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_a_row_that_is_read_twice_is_buffered() -> None:
    x = softmax(from_numpy(numbers(64, 100)))
    kept = [reason for name, decision, reason in decisions(x) if decision == "keep"]
    (reason,) = kept
    assert "reads it 2 times" in reason and "400 B" in reason
    (item,) = create_schedule([softmax(from_numpy(numbers(64, 100)))])
    assert sum(node.op is Ops.EXP for node in item.ast.toposort()) == 1


@pytest.mark.pinned
def test_attention_is_one_kernel_without_the_matrix_of_scores() -> None:
    q, k, v = (from_numpy(numbers(400, 16, seed=seed)) for seed in range(3))
    (item,) = create_schedule([attention(q, k, v)])
    assert [buffer.size for buffer in item.buffers] == [6400] * 4
    kept = [node.dtype.size for node in item.ast.toposort() if node.op is Ops.DEFINE_LOCAL]
    assert kept == [400, 400, 400]  # scores, their exponentials, their softmax: one row of each


@pytest.mark.pinned
def test_scores_that_fit_the_cache_are_realized() -> None:
    q, k, v = (from_numpy(numbers(40, 16, seed=seed)) for seed in range(3))
    assert len(create_schedule([attention(q, k, v)])) == 3


@pytest.mark.pinned
def test_rows_that_a_wide_product_reads_are_stored_where_its_other_factor_needs_panels() -> None:
    bound = Device["LLVM"].target.private_cache_bytes // 4  # floats
    rows = Tensor(numbers(bound // 512 + 16, 1024)).realize()
    for x in (rows.softmax(1), rows - rows.mean(1, keepdim=True)):
        wide = x @ Tensor(numbers(1024, bound // 1024 + 256)).realize()
        narrow = x @ Tensor(numbers(1024, 64)).realize()
        stored, kept = [create_schedule([product.lazydata.base]) for product in (wide, narrow)]
        assert [item.outputs[0].op is Ops.REDUCE_AXIS for item in stored] == [False, True]
        assert len(kept) == 1


@pytest.mark.pinned
@pytest.mark.parametrize("transposed", [False, True])
def test_rows_between_two_products_are_stored_while_the_shared_cache_holds_them(transposed: bool) -> None:
    def linear(x: LazyBuffer, width: int) -> LazyBuffer:
        shape = (width, x.shape[1]) if transposed else (x.shape[1], width)
        weight = unread(*shape)
        return matmul(x, weight.permute((1, 0)) if transposed else weight)

    held = Device["LLVM"].target.min_memory_bytes // 4 // 512  # rows of 512 floats
    few, many = [create_schedule([linear(linear(unread(rows, 128), 512), 128)]) for rows in (512, 2 * held)]
    assert (len(few), len(many)) == (2, 1)


@pytest.mark.pinned
def test_attention_over_more_than_the_cache_holds_is_three_kernels() -> None:
    q = from_numpy(numbers(32, 64))
    k, v = (from_numpy(numbers(20_000, 64, seed=seed)) for seed in range(2))
    assert len(create_schedule([attention(q, k, v)])) == 3


def test_a_row_too_long_for_one_kernel_is_realized_with_a_reason() -> None:
    x = from_numpy(numbers(2, 100_000))
    told = reasons(softmax(x))
    assert set(told) == {"FDIV", "EXP", "REDUCE_AXIS"}
    assert told["FDIV"].endswith("an output of the program")
    assert "2 kernels" in told["EXP"] and "22 operations" in told["EXP"]
    assert "only 2 rows" in told["REDUCE_AXIS"] and "threads" in told["REDUCE_AXIS"]


def test_bias_and_relu_are_the_epilogue_of_a_matmul() -> None:
    product = matmul(from_numpy(numbers(32, 16)), from_numpy(numbers(16, 24)))
    bias = from_numpy(numbers(24)).reshape((1, 24)).expand((32, 24))
    y = product.alu(Ops.ADD, bias).alu(Ops.MAX, LazyBuffer.const(0.0, product.dtype, product.device, (32, 24)))
    assert len(create_schedule([y])) == 1


def test_an_operand_of_a_matmul_is_not_computed_again_for_each_column() -> None:
    x = from_numpy(numbers(32, 16)).alu(Ops.EXP)
    y = matmul(x, from_numpy(numbers(16, 24)))
    assert len(create_schedule([y])) == 2
    assert "24 times" in reasons(y)["EXP"]


def test_padding_with_a_number_is_copied_once_and_with_it_the_choice() -> None:
    """The selected values are stored once, so that no window computes the padding mask again."""

    def pooled(size: int) -> LazyBuffer:
        image = Tensor(unread(16, size, size)).requires_grad_()
        (gradient,) = image.max_pool2d((3, 3), stride=2, padding=1).square().sum().gradient(image)
        return gradient.lazydata

    def copied(size: int) -> list[str]:
        return [op for op, reason in reasons(pooled(size)).items() if "would be bounds-checked" in reason]

    assert copied(128) == ["WHERE"]
    assert copied(16) == []  # masks in a small kernel cost less than another one


def test_padding_that_a_convolution_reads_again_and_again_is_copied_once() -> None:
    def convolution(size: int) -> LazyBuffer:
        image, weight = from_numpy(numbers(size, size)), from_numpy(numbers(8, 3, 3))
        windows = image.pad(((1, 1), (1, 1))).window(0, 3).window(1, 3)
        windows = windows.reshape((1, size, size, 3, 3)).expand((8, size, size, 3, 3))
        weights = weight.reshape((8, 1, 1, 3, 3)).expand((8, size, size, 3, 3))
        return windows.alu(Ops.MUL, weights).reduce(Ops.ADD, (3, 4))

    large = reasons(convolution(256))
    assert "71 times" in large["PAD"]
    assert "PAD" not in reasons(convolution(16))  # masks in a small kernel cost less than another one
    image = from_numpy(numbers(256, 256))
    once = image.pad(((1, 1), (1, 1))).window(0, 3).reduce(Ops.ADD, (2,))
    assert "PAD" not in reasons(once)


def test_a_reduction_that_two_kernels_read_is_realized() -> None:
    x = from_numpy(numbers(40, 50))
    total = x.reduce(Ops.ADD, (1,))
    a, b = total.alu(Ops.NEG), total.alu(Ops.EXP)
    assert reasons(a, b)["REDUCE_AXIS"] == "2 kernels read this reduction"


def test_a_cheap_chain_is_recomputed_if_storing_moves_more_bytes() -> None:
    x, scale = from_numpy(numbers(40, 50)), from_numpy(numbers(40, 1)).alu(Ops.EXP).expand((40, 50))
    chain = x
    for _ in range(4):
        chain = chain.alu(Ops.MUL, scale).alu(Ops.ADD, scale)  # the scale is made once a row, and hardly counts
    two = [chain.reduce(op, (0,)) for op in (Ops.ADD, Ops.MAX)]
    assert reasons(*two)["REDUCE_AXIS"].endswith("an output of the program")
    assert not any(reason.startswith("2 kernels read it") and "8 op" in reason for reason in reasons(*two).values())
    three = [*two, chain.alu(Ops.NEG).reduce(Ops.MIN, (0,))]
    assert any("3 kernels" in reason and "8 operations" in reason for reason in reasons(*three).values())


def test_values_that_several_kernels_read_permuted_are_stored_permuted() -> None:
    x = from_numpy(numbers(40, 50)).alu(Ops.EXP).permute((1, 0))
    readers = [x.reduce(Ops.ADD, (1,)), x.reduce(Ops.MAX, (1,))]
    assert "its source is in memory" in reasons(*readers)["PERMUTE"]
    assert len(create_schedule(readers)) == 3


def test_cheap_work_is_recomputed_and_expensive_work_is_not() -> None:
    x = from_numpy(numbers(40, 50))
    light, heavy = x.alu(Ops.NEG), x.alu(Ops.EXP)
    last = (1,)
    assert len(create_schedule([light.reduce(Ops.ADD, last), light.reduce(Ops.MAX, last)])) == 2
    assert len(create_schedule([heavy.reduce(Ops.ADD, last), heavy.reduce(Ops.MAX, last)])) == 3


def test_one_kernel_stores_several_outputs_if_it_computes_both() -> None:
    gradient, momentum = from_numpy(numbers(64)), from_numpy(numbers(64, seed=1))
    velocity = momentum.alu(Ops.ADD, gradient)
    weight = velocity.alu(Ops.MUL, velocity)
    (item,) = create_schedule([velocity, weight])
    assert item.outputs == (weight, velocity)
    realize([velocity, weight])
    expected = numbers(64, seed=1) + numbers(64)
    np.testing.assert_allclose(to_numpy(velocity), expected)
    np.testing.assert_allclose(to_numpy(weight), expected * expected)


def test_a_chain_of_100_000_operations_is_scheduled_in_linear_time() -> None:
    import time

    def seconds(length: int) -> float:
        x = from_numpy(numbers(4))
        for _ in range(length):
            x = x.alu(Ops.FLOOR)
        start = time.thread_time()
        assert len(create_schedule([x])) == -(-length // 512)
        return time.thread_time() - start

    short = min(seconds(10_000) for _ in range(2))
    assert seconds(100_000) < 30 * short


def test_nothing_is_scheduled_for_realized_values() -> None:
    x = from_numpy(numbers(4))
    assert create_schedule([x]) == ()


def test_an_empty_reduction_is_its_identity() -> None:
    empty = from_numpy(np.zeros((3, 0), np.float32))
    np.testing.assert_array_equal(to_numpy(empty.reduce(Ops.ADD, (1,))), np.zeros((3, 1)))
    np.testing.assert_array_equal(to_numpy(empty.reduce(Ops.MAX, (1,))), np.full((3, 1), -np.inf))


def test_a_kernel_does_not_store_the_source_of_a_copy_that_it_reads() -> None:
    x = from_numpy(numbers(4, 4))
    stored = x.alu(Ops.ADD, x).contiguous()
    there_and_back = stored.copy_to_device("CLANG").copy_to_device("LLVM")
    items = create_schedule([stored, there_and_back.alu(Ops.ADD, stored)])
    written = {buffer for item in items for buffer in item.buffers[: len(item.outputs)]}
    known: set[Buffer] = set()
    for item in items:
        assert written & set(item.buffers[len(item.outputs) :]) <= known
        known.update(item.buffers[: len(item.outputs)])


def ranges(size: int) -> tuple[Tensor, Tensor]:
    return Tensor.arange(size).reshape(size, 1), Tensor.arange(size)


# a square factor that is made of constants or of a vector: itself, and what it is in NumPy
FACTORS: dict[str, tuple[Callable[[int], Tensor], Callable[[int], np.ndarray]]] = {
    "eye": (Tensor.eye, np.eye),
    "scaled eye": (lambda n: Tensor.eye(n) * 3, lambda n: np.eye(n) * 3),
    "one hot": (
        lambda n: Tensor(np.arange(n, dtype=np.int32)[::-1].copy()).realize().one_hot(n).float(),
        lambda n: np.eye(n)[::-1],
    ),
    "permutation": (lambda n: (ranges(n)[0] == n - 1 - ranges(n)[1]).float(), lambda n: np.eye(n)[::-1]),
    "lower triangle": (lambda n: Tensor.ones(n, n).tril(), lambda n: np.tri(n)),
    "upper triangle": (lambda n: Tensor.ones(n, n).triu(1), lambda n: 1 - np.tri(n)),
    "band": (
        lambda n: ((ranges(n)[0] - ranges(n)[1]).abs() < 3).float(),
        lambda n: (np.abs(np.arange(n)[:, None] - np.arange(n)) < 3).astype(np.float64),
    ),
}


@pytest.mark.parametrize("name", FACTORS)
def test_a_cheap_factor_is_stored_for_a_large_product(name: str) -> None:
    ours, theirs = FACTORS[name]
    size = 256
    values = np.random.default_rng(0).standard_normal((size, size)).astype(np.float32)
    x = Tensor(values).realize()
    factor = theirs(size)
    cases = [
        (x @ ours(size), values @ factor),
        (ours(size) @ x, factor @ values),
        (x @ ours(size).T, values @ factor.T),
        (ours(size).T @ x, factor.T @ values),
    ]
    for product, expected in cases:
        stored = [item.outputs[0] for item in create_schedule([product.lazydata.base])]
        assert [node.op is Ops.REDUCE_AXIS for node in stored] == [False, True]
        np.testing.assert_allclose(product.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_a_product_with_an_identity_matrix_is_the_product_that_ieee_754_defines() -> None:
    values = np.ones((256, 256), np.float32)
    values[0, 0], values[1, 1], values[2, 2] = np.inf, np.nan, -np.inf
    x = Tensor(values).realize()
    eye = np.eye(256, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal((x @ Tensor.eye(256)).numpy(), values @ eye)  # infinity times 0 is NaN
        np.testing.assert_array_equal((Tensor.eye(256) @ x).numpy(), eye @ values)


def test_a_cheap_factor_is_recomputed_if_few_rows_or_columns_read_it() -> None:
    for product in (
        Tensor(numbers(4, 256)).realize() @ Tensor.eye(256),
        Tensor.eye(256) @ Tensor(numbers(256, 32)).realize(),
        Tensor(np.arange(512, dtype=np.int32) % 16).realize().one_hot(16).float().T
        @ Tensor(numbers(512, 64)).realize(),
    ):
        assert len(create_schedule([product.lazydata.base])) == 1


def test_a_product_that_other_loops_use_has_a_kernel_of_its_own() -> None:
    product = matmul(from_numpy(numbers(64, 32)), from_numpy(numbers(32, 48)))
    spread = product.reshape((64, 48, 1)).expand((64, 48, 4)).alu(Ops.MUL, from_numpy(numbers(64, 48, 4)))
    assert len(create_schedule([spread])) == 2
    assert "no register tile" in reasons(spread)["REDUCE_AXIS"]


def test_an_update_with_several_results_is_fused_with_its_product() -> None:
    gradient = matmul(from_numpy(numbers(64, 32)), from_numpy(numbers(32, 48)))
    mean = from_numpy(numbers(64, 48)).alu(Ops.ADD, gradient)
    weight = from_numpy(numbers(64, 48)).alu(Ops.ADD, mean.alu(Ops.NEG))
    items = create_schedule([mean, weight])
    assert [len(item.outputs) for item in items] == [2]


def test_a_sum_of_a_realized_conversion_is_not_a_product() -> None:
    x = numbers(4, 6)
    wide = from_numpy(x).cast(dtypes.float64)
    realize([wide])
    total = wide.reduce(Ops.ADD, (1,)).expand((4, 6))
    found = to_numpy(wide.alu(Ops.ADD, total))
    np.testing.assert_allclose(found, x.astype(np.float64) + x.astype(np.float64).sum(1, keepdims=True))


def test_a_product_is_fused_with_products_and_its_own_inputs_only() -> None:
    x, y = from_numpy(numbers(64, 32)), from_numpy(numbers(64, 48))
    product, other = matmul(x, from_numpy(numbers(32, 48))), matmul(x, from_numpy(numbers(32, 48)))
    means = y.reduce(Ops.ADD, (1,)).expand((64, 48))
    assert len(create_schedule([product.alu(Ops.MUL, other)])) == 1
    assert len(create_schedule([product.alu(Ops.ADD, means)])) == 2
    assert len(create_schedule([means.alu(Ops.ADD, product)])) == 2
    weights = x.alu(Ops.EXP)
    sums = weights.reduce(Ops.ADD, (1,)).expand((64, 48))
    items = create_schedule([matmul(weights, from_numpy(numbers(32, 48))).alu(Ops.FDIV, sums)])
    assert [len(item.ast.find(Ops.REDUCE)) for item in items if item.ast is not None] == [0, 2]
    found = reasons(product.alu(Ops.ADD, means)).values()
    assert any("cannot share a register tile" in reason for reason in found)


def test_large_products_have_kernels_of_their_own() -> None:
    """Two sums of products in one kernel reach a third of the speed: none of them has panels."""
    x, y = from_numpy(numbers(512, 128)), from_numpy(numbers(512, 96))
    both = matmul(x, from_numpy(numbers(128, 256))).alu(Ops.ADD, matmul(y, from_numpy(numbers(96, 256))))
    items = create_schedule([both])
    assert [len(item.ast.find(Ops.REDUCE)) for item in items if item.ast is not None] == [1, 1]


def column_sums_expanded(rows: int, columns: int, wide: int) -> LazyBuffer:
    """The sum of each column, written `wide` times side by side."""
    x = from_numpy(numbers(rows, columns))
    sums = x.permute((1, 0)).reduce(Ops.ADD, (1,))
    return sums.reshape((columns, 1)).expand((columns, wide)).alu(Ops.NEG)


def test_a_large_sum_that_reads_with_a_stride_has_a_kernel_of_its_own() -> None:
    large = column_sums_expanded(512, 512, 64)
    assert "large stride" in reasons(large)["REDUCE_AXIS"]
    assert len(create_schedule([large])) == 2
    assert len(create_schedule([column_sums_expanded(64, 64, 64)])) == 1


def test_a_large_contiguous_sum_is_fused() -> None:
    x = from_numpy(numbers(512, 512))
    scale = from_numpy(numbers(512))  # has unit stride along the sum as well
    sums = x.alu(Ops.MUL, scale.reshape((1, 512)).expand((512, 512))).reduce(Ops.ADD, (1,))
    assert len(create_schedule([sums.reshape((512, 1)).expand((512, 64)).alu(Ops.NEG)])) == 1


def test_a_strided_sum_with_a_weight_for_each_step_has_a_kernel_of_its_own() -> None:
    x = from_numpy(numbers(512, 512))
    weight = from_numpy(numbers(512)).reshape((1, 512)).expand((512, 512))
    sums = x.permute((1, 0)).alu(Ops.MUL, weight).reduce(Ops.ADD, (1,))
    assert len(create_schedule([sums.reshape((512, 1)).expand((512, 64)).alu(Ops.NEG)])) == 2


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular", "roll"])
def test_padding_and_rotation_of_two_axes_select_along_one_axis_at_a_time(mode: str) -> None:
    x = Tensor(numbers(8, 30, 40)).realize()
    y = x.roll((3, 5), (1, 2)) if mode == "roll" else x.pad((3, 3, 3, 3), mode=mode)
    loads = [sum(node.op is Ops.LOAD for node in item.ast.toposort()) for item in y.schedule() if item.ast is not None]
    assert len(loads) > 1 and max(loads) <= 3

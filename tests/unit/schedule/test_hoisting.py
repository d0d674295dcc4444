"""Hoisting: a reduction is computed once along axes on which its operand does not depend."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

from tests.ops import programs
from tinyexplore import Tensor, TinyJit, Variable, capture
from tinyexplore.dtype import DType, dtypes
from tinyexplore.engine import create_schedule
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES, hoisting
from tinyexplore.schedule.dependence import DependenceAnalysis, refine_digits, regroup_digits
from tinyexplore.uop import Ops

M, K, N = 64, 48, 32


def steps(*tensors: Tensor) -> int:
    """How often the innermost statements of the kernels run that compute `tensors`, before any Opt."""
    items = create_schedule([tensor.lazydata.base for tensor in tensors])
    nodes = [node for item in items if item.ast is not None for node in item.ast.toposort()]
    counted = [node.src[0].ranges for node in nodes if node.op in (Ops.REDUCE, Ops.STORE)]
    return sum([prod([loop.size for loop in loops]) for loops in counted])


def numbers(*shape: int, dtype: type = np.float32, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return random.integers(-4, 5, shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def memory(values: np.ndarray) -> Tensor:
    return Tensor(values).realize()


ROW, ROWS, W = numbers(1, K, seed=1), numbers(8, K, seed=2), numbers(K, N, seed=3)

# a product's left operand, in both libraries, and how many different rows it has
OPERANDS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[np.ndarray, np.ndarray], np.ndarray], int]] = {
    "expand": (lambda row, rows: row.expand(M, K), lambda row, rows: np.repeat(row, M, 0), 1),
    "repeat": (lambda row, rows: rows.repeat(8, 1), lambda row, rows: np.tile(rows, (8, 1)), 8),
    "repeat_interleave": (lambda row, rows: rows.repeat_interleave(8, 0), lambda row, rows: np.repeat(rows, 8, 0), 8),
    "repeated twice": (
        lambda row, rows: rows.repeat(2, 1).repeat_interleave(4, 0),
        lambda row, rows: np.repeat(np.tile(rows, (2, 1)), 4, 0),
        8,
    ),
    "computed": (
        lambda row, rows: (row.expand(M, K) * 2).exp() + 1,
        lambda row, rows: np.exp(2 * row.repeat(M, 0)) + 1,
        1,
    ),
    "flipped": (lambda row, rows: rows.repeat(8, 1).flip(0, 1), lambda row, rows: np.tile(rows, (8, 1))[::-1, ::-1], 8),
    "shrunk": (
        lambda row, rows: rows.repeat_interleave(16, 0)[32:96],
        lambda row, rows: np.repeat(rows, 16, 0)[32:96],
        4,
    ),
    "padded by whole repeats": (
        lambda row, rows: rows[:4].repeat_interleave(8, 0).pad(((16, 16), (0, 0))),
        lambda row, rows: np.pad(np.repeat(rows[:4], 8, 0), ((16, 16), (0, 0))),
        8,
    ),
    "transposed": (lambda row, rows: row.reshape(K, 1).expand(K, M).T, lambda row, rows: np.repeat(row, M, 0), 1),
    "constant": (lambda row, rows: Tensor.full((M, K), 3.0), lambda row, rows: np.full((M, K), 3.0), 1),
    "equal rows stacked": (
        lambda row, rows: Tensor.stack([row.reshape(K)] * M),
        lambda row, rows: np.repeat(row, M, 0),
        1,
    ),
    "joined with itself": (lambda row, rows: Tensor.cat(*[rows] * 8), lambda row, rows: np.tile(rows, (8, 1)), 8),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_a_product_of_equal_rows_is_computed_for_different_rows_only(name: str) -> None:
    ours, theirs, different = OPERANDS[name]
    row, rows, w = memory(ROW), memory(ROWS), memory(W)
    product = ours(row, rows) @ w
    assert steps(product) <= different * K * N + 2 * M * N + different * K
    right = theirs(ROW, ROWS) @ W
    np.testing.assert_allclose(product.numpy(), right, rtol=2e-4, atol=2e-4 * np.abs(right).max())
    turned = w.T @ ours(row, rows).T
    assert steps(turned) <= different * K * N + 2 * M * N + different * K
    np.testing.assert_allclose(turned.numpy(), right.T, rtol=2e-4, atol=2e-4 * np.abs(right).max())


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.int64, np.float16, np.float32, np.float64])
def test_values_of_every_kind_of_dtype_are_those_of_the_whole_sum(dtype: type) -> None:
    values = np.abs(numbers(16, K, dtype=dtype))
    x = memory(values)
    wide = np.float64 if np.issubdtype(dtype, np.floating) else dtype
    exact = {"rtol": 3e-3} if np.issubdtype(dtype, np.floating) else {"rtol": 0}
    spread = x.reshape(16, 1, K).expand(16, 300, K)
    expected = np.repeat(values[:, None], 300, 1)
    for axes in (1, (0, 1), (1, 2), (2, 1, 0), 2):
        summed = spread.sum(axes, dtype=x.dtype)
        np.testing.assert_allclose(summed.numpy(), expected.astype(wide).sum(axes, dtype=wide).astype(dtype), **exact)
        assert steps(spread.sum(axes, dtype=x.dtype)) <= 16 * K + 16 * 300
        np.testing.assert_array_equal(spread.max(axes).numpy(), expected.max(axes))
        np.testing.assert_array_equal(spread.min(axes).numpy(), expected.min(axes))


def test_a_count_that_its_dtype_does_not_hold_is_multiplied_in_another() -> None:
    zeros = memory(np.zeros((4, 1), np.float16)).expand(4, 70000)
    assert zeros.sum(1, dtype=dtypes.half).tolist() == [0.0] * 4
    small = memory(np.full((4, 1), 2**-10, np.float16)).expand(4, 70000)
    np.testing.assert_allclose(small.sum(1, dtype=dtypes.half).numpy(), 70000 / 1024, rtol=1e-3)
    assert memory(np.ones((4, 1), np.uint8)).expand(4, 5000).sum(1, dtype=dtypes.uint8).tolist() == [5000 % 256] * 4
    truths = memory(np.array([[True], [False]])).expand(2, 4096)
    assert truths.any(1).tolist() == [True, False] and truths.sum(1).tolist() == [4096, 0]


def test_special_values_are_preserved() -> None:
    row = memory(np.array([[np.inf, 1.0, np.nan, -np.inf, 0.0]], np.float32))
    with np.errstate(invalid="ignore"):
        expected = np.repeat(row.numpy(), 512, 0)
        np.testing.assert_array_equal(row.expand(512, 5).sum(0).numpy(), expected.sum(0))
        np.testing.assert_array_equal(row.expand(512, 5).max(0).numpy(), expected.max(0))
        identity = np.eye(5, 64, dtype=np.float32)
        np.testing.assert_array_equal((row.expand(512, 5) @ memory(identity)).numpy(), expected @ identity)


GRADIENTS: dict[
    str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]]
] = {
    "sum": (lambda x, w: (x @ w).sum(), lambda x, w: (np.ones((M, N)) @ w.T, x.T @ np.ones((M, N)))),
    "mean": (lambda x, w: (x @ w).mean(), lambda x, w: (np.ones((M, N)) @ w.T / M / N, x.T @ np.ones((M, N)) / M / N)),
    "squares of the rows' means": (
        lambda x, w: (x @ w).mean(1).square().sum(),
        lambda x, w: (
            2 * np.repeat((x @ w).mean(1, keepdims=True), N, 1) @ w.T / N,
            x.T @ (2 * np.repeat((x @ w).mean(1, keepdims=True), N, 1)) / N,
        ),
    ),
    "squares of the columns' means": (
        lambda x, w: (x @ w).mean(0).square().sum(),
        lambda x, w: (
            2 * np.repeat((x @ w).mean(0, keepdims=True), M, 0) @ w.T / M,
            x.T @ (2 * np.repeat((x @ w).mean(0, keepdims=True), M, 0)) / M,
        ),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_sums_and_means_of_a_product_take_no_product(name: str) -> None:
    loss, right = GRADIENTS[name]
    values = numbers(M, K, seed=4), numbers(K, N, seed=5)
    x, w = [memory(value) for value in values]
    x.requires_grad = w.requires_grad = True
    loss(x, w).backward()
    assert x.grad is not None and w.grad is not None
    forward = 0 if name in ("sum", "mean") else M * K * N
    assert steps(x.grad, w.grad) <= forward + 4 * (M * K + K * N + M * N)
    Tensor.realize(x.grad, w.grad)
    for found, expected in zip((x.grad, w.grad), right(*[value.astype(np.float64) for value in values])):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def test_factors_are_taken_out_of_sums_that_they_do_not_change() -> None:
    a, b, c = numbers(M, K, seed=6), numbers(K, N, seed=7), numbers(N, M, seed=8)
    x, y, z = memory(a), memory(b), memory(c)
    chain = Tensor.einsum("ij,jk,kl->il", x, y, z)
    assert steps(chain) <= M * K * N + M * M * N + M * N + 2 * M * M
    np.testing.assert_allclose(chain.numpy(), a @ b @ c, rtol=1e-3, atol=1e-3)
    apart = Tensor.einsum("ij,kl->ik", x, y)
    assert steps(apart) <= 2 * (M * K + K * N + M * K)
    np.testing.assert_allclose(apart.numpy(), np.outer(a.sum(1), b.sum(1)), rtol=1e-3, atol=1e-3)
    quotient = (x.reshape(M, K, 1) / y.reshape(1, K, N)[:, :1]).sum(0)
    np.testing.assert_allclose(quotient.numpy(), (a[:, :, None] / b[None, :1]).sum(0), rtol=1e-3, atol=1e-3)
    highest = (x.reshape(M, K, 1) + z.T.reshape(M, 1, N)).max(1)
    assert steps(highest) <= 2 * (M * K + M * N + M * N)
    np.testing.assert_allclose(highest.numpy(), (a[:, :, None] + c.T[:, None]).max(1), rtol=1e-6)


def test_sums_of_integers_wrap_equally() -> None:
    a, b = numbers(M, K, dtype=np.int8), numbers(K, N, dtype=np.int8, seed=1) * 30
    x, y = memory(a), memory(b)
    found = (x.reshape(M, K, 1, 1) * y.reshape(1, 1, K, N)).sum((1, 2), dtype=dtypes.int8)
    expected = np.multiply.outer(a.sum(1, dtype=np.int8), b.sum(0, dtype=np.int8), dtype=np.int8)
    np.testing.assert_array_equal(found.numpy(), expected)
    highest = (x.reshape(M, K, 1) + y.reshape(1, K, N)[:, :1]).max(1)  # a sum of ints may wrap: it is not taken apart
    np.testing.assert_array_equal(highest.numpy(), (a[:, :, None] + b[None, :1]).max(1))


def test_a_convolution_of_equal_pictures_and_the_gradient_of_its_sum() -> None:
    picture, filters = numbers(1, 4, 12, 12), numbers(8, 4, 3, 3, seed=1)
    x, w = memory(picture), memory(filters)
    alone = x.conv2d(w, padding=1).numpy()
    batch = x.expand(16, 4, 12, 12).conv2d(w, padding=1)
    assert steps(batch) <= 8 * 144 * 36 + 4 * 16 * 8 * 144
    np.testing.assert_allclose(batch.numpy(), np.repeat(alone, 16, 0), rtol=1e-4, atol=1e-4)
    w.requires_grad = True
    x.conv2d(w).sum().backward()
    assert w.grad is not None and steps(w.grad) <= 36 * 100 + 2 * 8 * 36
    windows = np.lib.stride_tricks.sliding_window_view(picture[0], (10, 10), (1, 2))
    expected = np.repeat(windows.sum((3, 4))[None], 8, 0)
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-4, atol=1e-4)


# parts that are built one by one, and how many different rows their join has
JOINS: dict[str, tuple[list[int], int]] = {
    "three equal": ([0, 0, 0], 1),
    "seven equal": ([0] * 7, 1),
    "many equal": ([0] * 64, 1),
    "in turn": ([0, 1] * 8, 2),
    "run after run": ([0, 0, 0, 0, 1, 1, 1, 1], 2),
    "runs in turn": ([0, 0, 1, 1, 0, 0, 1, 1], 2),
    "long runs": ([0] * 8 + [1] * 8, 2),
    "no regular order": ([0, 1, 1, 0, 1, 2, 2], 7),
}


@pytest.mark.parametrize("name", JOINS)
@pytest.mark.parametrize("build", ["computed", "views", "joined"])
def test_equal_rows_that_are_built_separately_are_multiplied_once(name: str, build: str) -> None:
    order, different = JOINS[name]
    rows, w = memory(ROWS), memory(W)
    make = {
        "computed": lambda one: (rows[one] * 2).exp(),
        "views": lambda one: rows[one],
        "joined": lambda one: (rows[one] * 2 + 1).reshape(1, K),
    }[build]
    right = {"computed": np.exp(2 * ROWS), "views": ROWS, "joined": 2 * ROWS + 1}[build][order]
    parts = [make(one) for one in order]
    stacked = Tensor.cat(*parts) if build == "joined" else Tensor.stack(*parts)
    product = stacked @ w
    assert steps(product) <= different * K * N + 2 * len(order) * (K + N) + 3 * K
    np.testing.assert_allclose(product.numpy(), right @ W, rtol=2e-4, atol=2e-4 * np.abs(right @ W).max())
    np.testing.assert_allclose(stacked.numpy(), right, rtol=1e-5)
    turned = w.T @ stacked.T
    np.testing.assert_allclose(turned.numpy(), (right @ W).T, rtol=2e-4, atol=2e-4 * np.abs(right @ W).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.bool_, np.float64])
def test_a_join_of_parts_in_any_order_keeps_every_value(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoisting, "MIN_SAVED_STEPS", 1)
    random = np.random.default_rng(5)
    with np.errstate(invalid="ignore"):
        values = np.array([[0.0, -0.0, 1.5], [np.inf, np.nan, -1.0], [-0.0, 2.0, 0.0]]).astype(dtype)
    source = memory(values)
    for _ in range(30):
        order = list(np.tile(np.repeat(random.integers(0, 3, random.integers(1, 4)), random.integers(1, 4)), 2))
        axis = int(random.integers(0, 2))
        joined = Tensor.cat(
            *[source[int(one)].reshape(1, 3) if axis == 0 else source[:, int(one)].reshape(3, 1) for one in order],
            dim=axis,
        )
        expected = values[order] if axis == 0 else values[:, order]
        highest = joined.float().max(1 - axis)
        Tensor.realize(joined, highest)
        found = joined.numpy()
        np.testing.assert_array_equal(found, expected)
        if dtype is not np.bool_:
            np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_gradients_of_equal_rows_that_are_built_separately() -> None:
    row, w = memory(ROW), memory(W)
    row.requires_grad = w.requires_grad = True
    (Tensor.cat(*[row * 2 for _ in range(16)]) @ w).square().sum().backward()
    assert row.grad is not None and w.grad is not None
    x = np.repeat(ROW * 2, 16, 0).astype(np.float64)
    given = 2 * (x @ W)
    np.testing.assert_allclose(w.grad.numpy(), x.T @ given, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(row.grad.numpy(), 2 * (given @ W.T).sum(0, keepdims=True), rtol=1e-4, atol=1e-2)


def test_a_join_is_one_of_ints_that_fill_an_axis() -> None:
    def is_rewritten(node: LazyBuffer) -> bool:
        total = node.reduce(Ops.ADD, (1,))
        return hoisting.hoist_invariants([total], NO_WRITES).outputs != [total]

    def padded(source: LazyBuffer, before: int, after: int) -> LazyBuffer:
        return source.pad([(before, after), (0, 0)])

    ints, floats = memory(np.ones((2, 3), np.int32)).lazydata, memory(np.ones((2, 3), np.float32)).lazydata
    assert is_rewritten(padded(ints, 0, 2).alu(Ops.ADD, padded(ints, 2, 0)))
    assert not is_rewritten(padded(floats, 0, 2).alu(Ops.ADD, padded(floats, 2, 0)))  # -0.0 + 0.0 is 0.0
    assert not is_rewritten(padded(ints, 0, 3).alu(Ops.ADD, padded(ints, 3, 0)))  # zeros between them
    assert not is_rewritten(padded(ints, 0, 1).alu(Ops.ADD, padded(ints, 1, 0)))  # they overlap
    assert not is_rewritten(padded(ints, 0, 2).alu(Ops.MUL, padded(ints, 2, 0)))


def test_the_first_of_equal_rows_is_read_from_requested_memory() -> None:
    row, w = memory(ROW), memory(W)
    stored = row.expand(M, K).contiguous()
    product = stored @ w
    assert steps(product) <= M * K + K * N + 2 * M * N
    np.testing.assert_allclose(product.numpy(), np.repeat(ROW, M, 0) @ W, rtol=1e-4, atol=1e-4)


def test_symbolic_sizes() -> None:
    row, w = memory(ROW), memory(W)
    jitted = TinyJit(lambda x: (x @ w).realize())
    for size in (3, 70, 5, 33):
        rows = Variable("rows", 1, 100).bind(size)
        found = jitted(row.expand(rows, K))
        np.testing.assert_allclose(found.reshape(rows, N).numpy(), np.repeat(ROW, size, 0) @ W, rtol=1e-4, atol=1e-4)
        total = row.expand(rows, K).sum(0)
        np.testing.assert_allclose(total.numpy(), ROW[0] * size, rtol=1e-5)


def test_requested_values_are_read_from_memory() -> None:
    row, w = memory(ROW), memory(W)
    doubled = row.expand(M, K) * 2
    product = doubled @ w
    assert steps(doubled, product) <= M * K + K * N + 2 * M * N
    Tensor.realize(doubled, product)
    np.testing.assert_allclose(doubled.numpy(), np.repeat(ROW * 2, M, 0))
    np.testing.assert_allclose(product.numpy(), np.repeat(ROW * 2, M, 0) @ W, rtol=1e-4, atol=1e-4)
    other = row.expand(M, K) @ w
    Tensor.realize(other, other.relu())
    np.testing.assert_allclose(other.numpy(), np.repeat(ROW, M, 0) @ W, rtol=1e-4, atol=1e-4)


def test_sums_that_are_equal_after_hoisting_are_computed_once() -> None:
    row, w = memory(ROW), memory(W)
    products = [row.expand(size, K) @ w for size in (M, 2 * M)]
    assert steps(*products) == K * N + N + 3 * M * N  # one sum and its store, then a store of each result
    Tensor.realize(*products)
    for product in products:
        np.testing.assert_allclose(product.numpy(), np.repeat(ROW, product.shape[0], 0) @ W, rtol=1e-4, atol=1e-4)


def test_requested_products_that_are_equal_after_hoisting_get_memory_of_their_own() -> None:
    row, w = memory(ROW), memory(W)
    products = [row.expand(M, K) @ w, row.repeat(M, 1) @ w, Tensor.stack([row.reshape(K)] * M) @ w]
    assert steps(*products) == K * N + N + 3 * M * N
    Tensor.realize(*products)
    for product in products:
        np.testing.assert_allclose(product.numpy(), np.repeat(ROW, M, 0) @ W, rtol=1e-4, atol=1e-4)
    first, *others = products
    first.assign(first * 0).realize()
    for other in others:
        np.testing.assert_allclose(other.numpy(), np.repeat(ROW, M, 0) @ W, rtol=1e-4, atol=1e-4)


def test_both_products_lead_to_the_sum_that_they_share() -> None:
    with capture() as session:
        one = memory(ROW).expand(M, K) @ memory(W)
        other = memory(ROW).expand(2 * M, K) @ memory(W)
        one.realize(other)
    assert len(session.trace.kernels) == 4  # nothing is shared: the rows and weights are different memory
    row, w = memory(ROW), memory(W)
    with capture() as session:
        one = row.expand(M, K) @ w
        other = row.expand(2 * M, K) @ w
        one.realize(other)
    trace = session.trace
    decisions = [one for stage in trace.stages for one in stage.decisions]
    products = [one.node for one in decisions if one.decision == "hoist"]
    (merged,) = [one.node for one in decisions if one.decision == "merge" and trace.nodes[one.node].op == "REDUCE_AXIS"]
    hoisted = {link.dst: link.src for link in trace.links if link.how == "hoist"}
    (shared,) = [one for one in trace.kernels if merged in one.nodes]
    sums = [node for node in shared.nodes if trace.nodes[node].op == "REDUCE_AXIS"]
    assert sorted(hoisted[node] for node in sums) == sorted(products)
    assert [kernel.roots for kernel in trace.kernels if kernel is not shared] == [(node,) for node in products]


def test_ordinary_products_and_little_work_stay_as_they_are() -> None:
    for x in (memory(ROWS), memory(ROWS).relu(), memory(ROWS) * 2):
        product = (x @ memory(W)).lazydata.base
        assert hoisting.hoist_invariants([product], NO_WRITES).outputs == [product]
    little = (memory(ROW[:, :4]).expand(4, 4) @ memory(W[:4, :4])).lazydata.base
    assert hoisting.hoist_invariants([little], NO_WRITES).outputs == [little]


def test_the_trace_shows_the_decision_and_the_users_graph() -> None:
    with capture() as session:
        (memory(ROW).expand(M, K) @ memory(W)).realize()
    trace = session.trace
    (hoisted,) = [one for stage in trace.stages for one in stage.decisions if one.decision == "hoist"]
    assert f"once instead of {M} times" in hoisted.reason
    assert f"{K * N} steps instead of {M * K * N}" in hoisted.reason
    assert trace.nodes[hoisted.node].op == "REDUCE_AXIS"
    made = {trace.nodes[link.dst].op for link in trace.links if link.src == hoisted.node and link.how == "hoist"}
    assert {"REDUCE_AXIS", "MUL"} <= made


def test_random_programs_with_all_that_can_be_hoisted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hoisting, "MIN_SAVED_STEPS", 1)
    wrong = [(seed, programs.check(seed, "LLVM")) for seed in range(3_000_000, 3_000_020)]
    assert [(seed, said) for seed, said in wrong if programs.is_wrong(said, "LLVM")] == []


def layout_of(tensor: Tensor) -> object:
    return DependenceAnalysis().of(tensor.lazydata)


def test_axes_are_split_where_a_value_changes_along_a_part() -> None:
    rows = memory(numbers(4, 6))
    assert layout_of(rows.repeat(3, 1)) == (((3, False), (4, True)), ((6, True),))
    assert layout_of(rows.repeat_interleave(3, 0)) == (((4, True), (3, False)), ((6, True),))
    assert layout_of(rows.repeat(3, 1).repeat_interleave(2, 1)) == (((3, False), (4, True)), ((6, True), (2, False)))
    assert layout_of(rows.repeat(3, 1).reshape(6, 12)) == (((3, False), (2, True)), ((12, True),))
    assert layout_of(rows.repeat(3, 1).reshape(2, 36)) == (((2, True),), ((36, True),))  # 3 and 2: no common digits
    assert layout_of(rows.repeat(3, 1)[:8]) == (((2, False), (4, True)), ((6, True),))
    constant = rows[:1].expand(4, 6)
    assert layout_of(constant.pad(((8, 4), (0, 0)))) == (((4, True), (4, False)), ((6, True),))
    assert layout_of(constant.pad(((6, 0), (0, 0)))) == (((5, True), (2, False)), ((6, True),))
    assert layout_of(rows.repeat(3, 1)[:7]) == (((7, True),), ((6, True),))
    assert layout_of(rows.repeat(3, 1) * rows.repeat_interleave(3, 0)) == (((12, True),), ((6, True),))
    assert refine_digits([((12, True),), ((3, False), (4, True))]) == (3, 4)
    assert refine_digits([((4, False), (3, True)), ((3, False), (4, True))]) is None
    assert regroup_digits([(12, True)], (3, 4)) == [[(3, True)], [(4, True)]]
    assert regroup_digits([(3, True), (4, False)], (4, 3)) is None


def test_constants_depend_on_nothing_and_counters_on_their_axis() -> None:
    constant = LazyBuffer.const(2.0, dtypes.float32, "LLVM", (4, 5))
    assert DependenceAnalysis().of(constant) == (((4, False),), ((5, False),))
    counter: DType = dtypes.int32
    assert DependenceAnalysis().of(LazyBuffer.iota(7, counter, "LLVM")) == (((7, True),),)

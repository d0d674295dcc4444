"""Common subexpression elimination: equal values are computed once, and results stay the same."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.graphs import graphs, to_numpy
from tests.reference import evaluate
from tinyexplore import Tensor, TinyJit, Variable, capture
from tinyexplore.engine import create_schedule, realize, schedule
from tinyexplore.explore.tracefile.queries import trace_lines, user_lines
from tinyexplore.lazy import LazyBuffer
from tinyexplore.schedule import NO_WRITES
from tinyexplore.schedule.common_subexpressions import ValueNumbers, merge_equal
from tinyexplore.schedule.writes import graph_order
from tinyexplore.uop import Ops

RNG = np.random.default_rng(0)
X = RNG.standard_normal((48, 48)).astype(np.float32)
W = RNG.standard_normal((48, 48)).astype(np.float32)


def made(values: np.ndarray = X) -> Tensor:
    return Tensor(values).realize()


def count(op: Ops, *outputs: Tensor) -> int:
    """How often the scheduled kernels compute `op`: each LazyBuffer that is not merged, once for each kernel."""
    items = schedule([output.lazydata for output in outputs])
    nodes = [node for item in items for node in item.ast.toposort()] if all(item.ast for item in items) else []
    return sum(node.op is op for node in nodes)


def kernels(*outputs: Tensor) -> int:
    return len(schedule([output.lazydata for output in outputs]))


x, w = made(), made(W)

# two spellings of one program: with repeated expressions, and with the value in a variable
Spelling = Callable[[], tuple[Tensor, ...]]


def parts_repeated() -> tuple[Tensor, ...]:
    return (x @ w)[:, :24] * 2, (x @ w)[:, 24:] + 1


def parts_shared() -> tuple[Tensor, ...]:
    h = x @ w
    return h[:, :24] * 2, h[:, 24:] + 1


def heads_repeated() -> tuple[Tensor, ...]:
    q, k, v = [(x @ w).reshape(48, 16, 3)[..., i] for i in range(3)]
    return ((q @ k.T).softmax() @ v,)


def heads_shared() -> tuple[Tensor, ...]:
    h = (x @ w).reshape(48, 16, 3)
    q, k, v = [h[..., i] for i in range(3)]
    return ((q @ k.T).softmax() @ v,)


def softmax_repeated() -> tuple[Tensor, ...]:
    return x.softmax() @ w, x.softmax().sum(0)


def softmax_shared() -> tuple[Tensor, ...]:
    s = x.softmax()
    return s @ w, s.sum(0)


def transposed_repeated() -> tuple[Tensor, ...]:
    return (x.T.exp() @ w).sum(0), x.permute(1, 0).exp().sum(1)


def transposed_shared() -> tuple[Tensor, ...]:
    t = x.T.exp()
    return (t @ w).sum(0), t.sum(1)


def views_repeated() -> tuple[Tensor, ...]:
    one = x.reshape(24, 96)[2:20][1:5].flip(0).flip(0)
    other = x.reshape(2304).reshape(24, 96).shrink(((3, 7), (0, 96)))
    return (one.exp() @ one.exp().T).sum(), (other.exp() @ other.exp().T).max()


def views_shared() -> tuple[Tensor, ...]:
    e = x.reshape(24, 96)[3:7].exp()
    p = e @ e.T
    return p.sum(), p.max()


def masks_repeated() -> tuple[Tensor, ...]:
    def mask() -> Tensor:
        return Tensor.arange(48).reshape(48, 1) >= Tensor.arange(48).reshape(1, 48)

    return mask().where(x, 0).sum(1), mask().where(x, 0).sum(1).max()


def masks_shared() -> tuple[Tensor, ...]:
    kept = (Tensor.arange(48).reshape(48, 1) >= Tensor.arange(48).reshape(1, 48)).where(x, 0).sum(1)
    return kept, kept.max()


def moments_repeated() -> tuple[Tensor, ...]:
    return x.mean(1, keepdim=True), (x - x.mean(1, keepdim=True)).square().sum(1)


def moments_shared() -> tuple[Tensor, ...]:
    mean = x.mean(1, keepdim=True)
    return mean, (x - mean).square().sum(1)


def gathers_repeated() -> tuple[Tensor, ...]:
    return x[places].exp().sum(), x[places].exp().sum(1).max()


def gathers_shared() -> tuple[Tensor, ...]:
    e = x[places].exp()
    return e.sum(), e.sum(1).max()


def swapped_repeated() -> tuple[Tensor, ...]:
    return ((x * w).sum(1) + 1), ((w * x).sum(1) * 2)


def swapped_shared() -> tuple[Tensor, ...]:
    s = (x * w).sum(1)
    return s + 1, s * 2


places = Tensor(np.array([3, 1, 40, 3], np.int32)).realize()
SPELLINGS = [
    (parts_repeated, parts_shared),
    (heads_repeated, heads_shared),
    (softmax_repeated, softmax_shared),
    (transposed_repeated, transposed_shared),
    (views_repeated, views_shared),
    (masks_repeated, masks_shared),
    (moments_repeated, moments_shared),
    (gathers_repeated, gathers_shared),
    (swapped_repeated, swapped_shared),
]


@pytest.mark.parametrize(("repeated", "shared"), SPELLINGS, ids=[one.__name__[:-9] for one, _ in SPELLINGS])
def test_repeated_expressions_are_scheduled_like_a_shared_variable(repeated: Spelling, shared: Spelling) -> None:
    mine, plain = repeated(), shared()
    assert kernels(*mine) == kernels(*plain)
    assert count(Ops.REDUCE, *mine) == count(Ops.REDUCE, *plain)
    mine[0].realize(*mine[1:])
    plain[0].realize(*plain[1:])
    for one, other in zip(mine, plain):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_values_agree_with_numpy() -> None:
    q, k, v = [(x @ w).reshape(48, 16, 3)[..., i] for i in range(3)]
    h = (X @ W).reshape(48, 16, 3)
    for i, found in enumerate((q, k, v)):
        np.testing.assert_allclose(found.numpy(), h[..., i], rtol=1e-4, atol=1e-4)
    first, second = (x @ w).sum(1), (x @ w).max(1)
    first.realize(second)
    np.testing.assert_allclose(first.numpy(), (X @ W).sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second.numpy(), (X @ W).max(1), rtol=1e-4, atol=1e-4)


# *** what is not equal ***


@pytest.mark.parametrize(
    "make",
    [
        lambda: (x + 0.5, x + 0.25),
        lambda: (x * 0.0 + x.exp(), x * -0.0 + x.exp()),
        lambda: (x.sum(0), x.sum(1)),
        lambda: (x - w, w - x),
        lambda: (x.cast("float64").exp(), x.exp()),
        lambda: (Tensor.full((4,), 1).sum() + places.sum(), Tensor.full((4,), True).sum() + places.sum() * 2),
        lambda: (x.pad((1, 1)).exp(), x.pad((2, 0)).exp()),
        lambda: (x.reshape(24, 96).exp(), x.reshape(96, 24).exp()),
        lambda: (made().exp(), x.exp()),  # other memory, though it has equal values
    ],
)
def test_different_constants_orders_dtypes_axes_and_memory_are_not_merged(
    make: Callable[[], tuple[Tensor, Tensor]],
) -> None:
    one, other = (tensor.lazydata for tensor in make())
    numbers = ValueNumbers(graph_order([one, other]), [one, other])
    assert numbers.number[one] is not numbers.number[other]


def test_signs_of_zero_and_nan_are_distinguished() -> None:
    zero = Tensor([0.0, 1.0]).realize()
    one, other = zero.maximum(0.0).reciprocal(), zero.where(zero, -0.0).reciprocal()
    one.realize(other)
    np.testing.assert_array_equal(one.numpy(), [np.inf, 1])
    np.testing.assert_array_equal(other.numpy(), [-np.inf, 1])
    nans = (zero + float("nan")).exp().lazydata, (zero + float("nan")).exp().lazydata
    assert len(set(map(ValueNumbers(graph_order(nans), nans).number.get, nans))) == 1


def test_random_numbers_are_not_merged() -> None:
    one, other = Tensor.rand(64), Tensor.rand(64)
    one.realize(other)
    assert (one.numpy() != other.numpy()).any()
    Tensor.training = True
    try:
        one, other = x.dropout(0.5), x.dropout(0.5)
        one.realize(other)
    finally:
        Tensor.training = False
    assert (one.numpy() != other.numpy()).any()


# *** requested twice ***


@pytest.mark.parametrize("make", [lambda: x + 1, lambda: x @ w, lambda: x.sum(), lambda: x.T.contiguous(), x.clone])
def test_equal_outputs_get_memory_of_their_own(make: Callable[[], Tensor]) -> None:
    one, other, third = make(), make(), make()
    expected = make().numpy()
    one.realize(other, third)
    buffers = [tensor.lazydata.base.buffer for tensor in (one, other, third)]
    assert len(set(buffers)) == 3
    for tensor in (one, other, third):
        np.testing.assert_array_equal(tensor.numpy(), expected)
    one.assign(one * 0).realize()
    np.testing.assert_array_equal(one.numpy(), expected * 0)
    np.testing.assert_array_equal(other.numpy(), expected)
    assert buffers[1] is not None
    buffers[1].memoryview()[:] = bytes(buffers[1].nbytes)  # a write to memory changes one tensor
    np.testing.assert_array_equal(third.numpy(), expected)


def test_an_output_that_is_also_an_intermediate_is_computed_once() -> None:
    out, other = x @ w, (x @ w).relu().sum(1)
    assert count(Ops.REDUCE, out, other) == 2
    other.realize(out)
    np.testing.assert_allclose(out.numpy(), X @ W, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.numpy(), np.maximum(X @ W, 0).sum(1), rtol=1e-4, atol=1e-4)


# *** assignments ***


def test_equal_initial_states_are_written_separately() -> None:
    one, other = Tensor.zeros(8).contiguous(), Tensor.zeros(8).contiguous()
    one[2:4] = 1
    other[5] = 2
    total = one + other * 10
    np.testing.assert_array_equal(total.numpy(), [0, 0, 1, 1, 0, 20, 0, 0])
    one, other = x.clone(), x.clone()
    one[0] = 1
    other[1] = 2
    before = (x + 0).exp()
    one.realize(other, before)
    np.testing.assert_array_equal(one.numpy(), np.concatenate([np.ones((1, 48)), X[1:]]))
    np.testing.assert_array_equal(other.numpy(), np.concatenate([X[:1], np.full((1, 48), 2), X[2:]]))
    np.testing.assert_allclose(before.numpy(), np.exp(X), rtol=1e-5)


def test_values_before_and_after_an_assignment_are_not_merged() -> None:
    state = made().clone().realize()
    before, sum_before = state.exp(), state.sum(1)
    state[3:5] = 7
    after, sum_after = state.exp(), state.sum(1)
    again = (x.exp(), x.sum(1))
    before.realize(sum_before, after, sum_after, *again)
    changed = X.copy()
    changed[3:5] = 7
    for found, expected in ((before, np.exp(X)), (after, np.exp(changed)), (again[0], np.exp(X))):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    for found, expected in ((sum_before, X.sum(1)), (sum_after, changed.sum(1)), (again[1], X.sum(1))):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_an_old_value_that_two_expressions_read_is_computed_before_it_is_overwritten() -> None:
    state = Tensor(np.arange(6, dtype=np.float32)).clone().realize()
    early = (state * 2).exp()
    state[1:3] = 9
    total = (state + (early.detach() * 0 + early)).sum()
    values = np.arange(6, dtype=np.float32)
    expected = np.exp(values * 2)
    values[1:3] = 9
    del early
    np.testing.assert_allclose(total.numpy(), (values + expected).sum(), rtol=1e-5)


def test_a_counter_is_increased_step_by_step() -> None:
    counter = Tensor([0]).realize()
    for _ in range(3):
        counter.assign(counter + 1)
    np.testing.assert_array_equal(counter.numpy(), [3])


# *** gradients, replays, symbolic sizes, devices ***


def test_gradients_of_repeated_expressions() -> None:
    def gradients(shared: bool) -> tuple[int, list[np.ndarray]]:
        a, b = Tensor(X, requires_grad=True), Tensor(W, requires_grad=True)
        a.realize(b)
        h = a @ b
        first, second = (h, h) if shared else (a @ b, a @ b)
        loss = first.relu().sum() + second.tanh().sum()
        loss.backward()
        assert a.grad is not None and b.grad is not None
        work = count(Ops.REDUCE, loss, a.grad, b.grad)
        loss.realize(a.grad, b.grad)
        return work, [a.grad.numpy(), b.grad.numpy()]

    mine, shared = gradients(False), gradients(True)
    h = X @ W
    slope = (h > 0) + 1 - np.tanh(h) ** 2
    for found, expected in zip(mine[1], (slope @ W.T, X.T @ slope)):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
    assert mine[0] <= shared[0] + 2  # the gradients of the two branches are summed as they were written


def test_a_plan_and_a_replay_equal_the_first_call() -> None:
    def step(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        return (x @ w) + 1, (x @ w) + 1, (x @ w).sum(), (w @ x).exp().clip(0, 1)

    def expected(x: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
        return x @ w + 1, x @ w + 1, (x @ w).sum(), np.exp(w @ x).clip(0, 1)

    replayed = TinyJit(lambda x, w: tuple(one.realize() for one in step(x, w)))
    together = TinyJit(step)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        values = [rng.standard_normal((8, 8)).astype(np.float32) for _ in range(2)]
        for call in (step, replayed, together):
            found = call(*(Tensor(value).realize() for value in values))
            found[0].realize(*found[1:])
            for one, right in zip(found, expected(*values)):
                np.testing.assert_allclose(one.numpy(), right, rtol=1e-4, atol=1e-4)
            assert found[0].lazydata.base.buffer is not found[1].lazydata.base.buffer


def test_a_captured_lazy_value_may_change() -> None:
    one, other = x.exp(), x.exp()  # lazy, and equal

    def call(y: Tensor) -> Tensor:
        return ((one + y) * (other + y)).realize()

    jit = TinyJit(call)
    for _ in range(3):
        np.testing.assert_allclose(jit(x.clone().realize()).numpy(), (np.exp(X) + X) ** 2, rtol=1e-4, atol=1e-5)
    other.assign(other * 0).realize()
    try:
        found = jit(x.clone().realize()).numpy()
    except RuntimeError:
        return  # a replay may refuse
    np.testing.assert_allclose(found, (np.exp(X) + X) * X, rtol=1e-4, atol=1e-5)


def test_symbolic_sizes() -> None:
    for size in (3, 5):
        n = Variable("n", 1, 8).bind(size)
        part = made(X[:8, 0])[:n]
        one, other = part.exp().sum(), part.exp().sum() * 2
        assert count(Ops.REDUCE, one, other) == 1
        one.realize(other)
        total = np.exp(X[:size, 0]).sum()
        np.testing.assert_allclose([one.numpy(), other.numpy()], [total, 2 * total], rtol=1e-5)


def test_values_on_several_devices() -> None:
    devices = ("LLVM:1", "LLVM:2")
    a, b = Tensor(X).shard(devices, axis=0).realize(), Tensor(W).shard(devices).realize()
    out = [(a @ b).relu(), (a @ b).relu(), (a @ b).sum(0)]
    reductions = count(Ops.REDUCE, *out) if kernels(*out) else 0
    out[0].realize(*out[1:])
    for found, expected in zip(out, (np.maximum(X @ W, 0), np.maximum(X @ W, 0), (X @ W).sum(0))):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
    moved = x.to("LLVM:1"), x.to("LLVM:1")
    total = (moved[0] * 2).to("LLVM").sum() + (moved[1] * 3).to("LLVM").sum()
    copies = [item for item in schedule([total.lazydata]) if item.is_copy and item.device == "LLVM:1"]
    assert len(copies) == 1 and reductions == 0  # copies between devices: see `count`
    np.testing.assert_allclose(total.numpy(), X.sum() * 5, rtol=1e-3)


# *** random graphs ***


def built_again(node: LazyBuffer) -> LazyBuffer:
    """The same expression over the same memory, of nodes of its own."""
    again: dict[LazyBuffer, LazyBuffer] = {}
    for one in graph_order([node]):
        src = tuple([again[source] for source in one.src])
        again[one] = LazyBuffer(one.op, one.dtype, one.shape, src, one.arg, one.device, one.buffer)
    return again[node]


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs("LLVM"))
def test_a_random_graph_built_twice_is_computed_once(node: LazyBuffer) -> None:
    if node.buffer is not None or not node.size:
        return
    with np.errstate(all="ignore"):
        expected = evaluate(node)
    again, third = built_again(node), built_again(node)
    both = [again, third.contiguous() if third.op is not Ops.CONTIGUOUS else third]
    numbers = ValueNumbers(graph_order([node, *both]), [node, *both])
    assert numbers.number[again] is numbers.number[node]
    realize([node, *both])
    for found in (node, *both):
        values = to_numpy(found)
        np.testing.assert_allclose(
            values.astype(float), expected.astype(float), rtol=1e-3, atol=1e-3 * _scale(expected)
        )
        np.testing.assert_array_equal(values, to_numpy(node))


def _scale(values: np.ndarray) -> float:
    numbers = values.astype(float)
    return max(1.0, float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)))


# *** recorded events ***


def test_a_merge_is_a_decision_and_both_lines_lead_to_the_kernel() -> None:
    with capture() as session:
        one = (x @ w).relu()
        other = (x @ w).tanh()
        one.realize(other)
    trace = session.trace
    merges = [one for stage in trace.stages for one in stage.decisions if one.decision == "merge"]
    (merged,) = [one for one in merges if trace.nodes[one.node].op == "REDUCE_AXIS"]
    assert "equal to another REDUCE_AXIS" in merged.reason
    (link,) = [link for link in trace.links if link.src == merged.node and link.how == "merge"]
    kept, node = trace.nodes[link.dst], trace.nodes[merged.node]
    assert kept.op == "REDUCE_AXIS" and merged.reason.endswith(f"node {kept.id}, line {_line(trace, kept.user)}")
    assert _line(trace, node.user) == _line(trace, kept.user) + 1
    both = {_line(trace, kept.user), _line(trace, node.user)}
    (product,) = [kernel for kernel in trace.kernels if kernel.roots == (kept.id,)]
    assert {kept.id, node.id} <= set(product.nodes)
    (uops,) = [one for one in trace.programs if one.kernel == product.id and one.language == "uops"]
    floats = {node.id for node in trace.nodes if node.op in ("MUL", "MULACC") and "float" in node.dtype}
    products = [line for line in uops.lines if not floats.isdisjoint(line.nodes)]
    assert products
    for line in products:
        lines = {frame.line for uop in line.nodes for frame in user_lines(trace, uop, kernel=product.id)}
        assert both <= lines
    for line_number in both:
        nodes = [one.id for one in trace.nodes if one.user is not None and _line(trace, one.user) == line_number]
        reached = {one.program.kernel for one in trace_lines(trace, nodes, language="uops")}
        assert product.id in reached


def _line(trace: object, frame: int | None) -> int:
    assert frame is not None
    line: int = trace.frames[frame].line  # type: ignore[attr-defined]
    return line


def test_recorded_or_not_the_schedule_is_the_same() -> None:
    def asts() -> list[object]:
        outputs = [(x @ w).relu(), (x @ w).tanh(), (x @ w).sum(), x.softmax() @ w]
        return [item.ast for item in schedule([output.lazydata for output in outputs])]

    plain = asts()
    with capture():
        told = asts()
    assert len(plain) == len(told) and all(one is other for one, other in zip(plain, told))


# *** cost ***


def test_time_is_linear_in_the_number_of_nodes() -> None:
    def seconds(length: int) -> float:
        node: LazyBuffer = x.lazydata
        other: LazyBuffer = x.lazydata
        for step in range(length):
            node, other = (one.alu(Ops.ADD, one.permute((1, 0))).reshape((48, 48)) for one in (node, other))
            if step % 2:
                node, other = (one.alu(Ops.EXP2) for one in (node, other))
        began = time.process_time()
        rewritten = merge_equal([node, other], NO_WRITES)
        assert len(graph_order(rewritten.outputs)) <= 4 * length
        return time.process_time() - began

    seconds(100)
    short, long = min(seconds(2000) for _ in range(3)), min(seconds(8000) for _ in range(3))
    assert long < 12 * short


def test_a_graph_without_equal_values_stays_as_it_is() -> None:
    outputs = [(x @ w).lazydata]
    assert merge_equal(outputs, NO_WRITES).outputs is outputs
    assert create_schedule(outputs)

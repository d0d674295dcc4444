"""Tensors with a Variable in their shape: results of NumPy for every value, from kernels compiled once."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ops.support import HAS_COMPILER, random_array
from tests.reference import evaluate
from tinyexplore import Context, Tensor, TinyJit, Variable, dtypes
from tinyexplore.compile.runner_cache import runners
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.uop import UOp
from tinyexplore.uop.symbolic import SymbolicError

DEVICES = ["LLVM", "CLANG", "PYTHON"] if HAS_COMPILER else ["LLVM", "PYTHON"]
MAX_LENGTH = 21
V = Variable("v", 1, MAX_LENGTH)
BIND = V.bind(5)
X = random_array((MAX_LENGTH, 6), seed=3)


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


# each step on two axes, of which any may be symbolic: what it does to a tensor, and to an array
STEPS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "negated": (lambda t: -t, lambda x: -x),
    "plus itself twice": (lambda t: t + t * 2, lambda x: x * 3),
    "transposed": (lambda t: t.T, lambda x: x.T),
    "flipped": (lambda t: t.flip(0), lambda x: x[::-1]),
    "padded": (lambda t: t.pad(((1, 0), (0, 2))), lambda x: np.pad(x, ((1, 0), (0, 2)))),
    "without its first row": (lambda t: t.pad(((2, 0), None))[1:], lambda x: np.pad(x, ((1, 0), (0, 0)))),
    "after itself": (lambda t: t.cat(t * 2), lambda x: np.concatenate([x, x * 2])),
    "in one row": (lambda t: t.reshape(1, -1), lambda x: x.reshape(1, -1)),
    "rows less their mean": (lambda t: t - t.mean(1, keepdim=True), lambda x: x - x.mean(1, keepdims=True)),
    "columns less their sum": (lambda t: t - t.sum(0), lambda x: x - x.sum(0)),
    "softmax of rows": (lambda t: t.softmax(1), lambda x: softmax(x, 1)),
    "softmax of columns": (lambda t: t.softmax(0), lambda x: softmax(x, 0)),
    "running sums": (lambda t: t.cumsum(0), lambda x: x.cumsum(0)),
    "times its transpose": (lambda t: t @ t.T * 0.1, lambda x: x @ x.T * 0.1),
    "transpose times it": (lambda t: t.T @ t * 0.1, lambda x: x.T @ x * 0.1),
    "repeated": (lambda t: t.unsqueeze(0).expand(2, *t.shape).reshape(-1, t.shape[1]), lambda x: np.tile(x, (2, 1))),
    "every second row": (lambda t: t[::2], lambda x: x[::2]),
    "where positive": (lambda t: (t > 0).where(t, t.shape[0]), lambda x: np.where(x > 0, x, x.shape[0])),
    "in memory": (lambda t: t.contiguous(), lambda x: x),
    "its triangle": (lambda t: t.tril(), lambda x: np.tril(x)),
    "its last row": (lambda t: t[-1:] + t[0], lambda x: x[-1:] + x[0]),
    "sums of all": (lambda t: t * 0 + t.sum(), lambda x: x * 0 + x.sum()),
}


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=4),
    st.lists(st.integers(1, MAX_LENGTH), min_size=3, max_size=3),
    st.sampled_from(DEVICES),
)
def test_programs_give_numpys_results_with_kernels_compiled_once(
    names: list[str], values: list[int], device: str
) -> None:
    compiled: set[int] = set()
    with Context(DEVICE=device):
        for value in values:
            found, expected = Tensor(X)[: V.bind(value)], X[:value]
            for name in names:
                on_tensor, on_array = STEPS[name]
                found, expected = on_tensor(found), on_array(expected)
                if expected.size > 5_000:
                    return  # quadratic steps on quadratic steps: no more is learned from them
            found = found + 0  # so that there is a kernel even where a view happens to be in order
            if device == "LLVM":
                np.testing.assert_allclose(evaluate(found.lazydata), expected, rtol=2e-3, atol=2e-3)
            array = found.numpy()
            assert array.shape == expected.shape
            np.testing.assert_allclose(array, expected, rtol=2e-3, atol=2e-3, err_msg=f"{names} at {value}")
            compiled.add(len(runners))
    assert len(compiled) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_a_part_of_every_length_at_every_offset(device: str) -> None:
    start, length = Variable("start", 0, 6), Variable("length", 1, 12)
    with Context(DEVICE=device):
        for a, n in ((0, 1), (6, 12), (2, 7)):
            at, size = start.bind(a), length.bind(n)
            part = Tensor(X)[at : at + size]
            assert part.shape == (size, 6)
            np.testing.assert_allclose((part * 2).numpy(), X[a : a + n] * 2)
            np.testing.assert_allclose(Tensor(X)[at].numpy(), X[a])
            np.testing.assert_allclose(part.T.matmul(part).numpy(), X[a : a + n].T @ X[a : a + n], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_a_reshape_to_the_current_size_needs_no_kernel(device: str) -> None:
    with Context(DEVICE=device):
        counts = set()
        for value in (2, 4, 9):
            whole = Tensor(X[:value]).realize()
            np.testing.assert_allclose(
                (whole.reshape(V.bind(value), 2, 3) + 1).numpy(), X[:value].reshape(-1, 2, 3) + 1
            )
            counts.add(len(runners))
        assert len(counts) == 1
        lazy = (Tensor(X[:4]) * 2).reshape(V.bind(4), 6)
        np.testing.assert_allclose((lazy.sum(1).reshape(4) + 1).numpy(), X[:4].sum(1) * 2 + 1, rtol=1e-4, atol=1e-5)


def test_shapes_and_numbers_of_a_symbolic_tensor() -> None:
    t = Tensor(X)[:BIND]
    assert t.shape == (BIND, 6) and repr(t.shape) == "(v=5, 6)"
    assert (
        t.numel().val == 30 and t.nbytes().val == 120 and t.cat(t).shape[0].val == 10 and t.flatten().shape[0].val == 30  # type: ignore[attr-defined]
    )
    assert t.tolist() == X[:5].tolist() and t.sum().item() == pytest.approx(X[:5].sum(), rel=1e-5)
    assert t.data().shape == (5, 6) and t[:, :0].numpy().shape == (5, 0)
    assert Tensor.from_node(BIND * 2).item() == 10 and Tensor(BIND).dtype is dtypes.int32
    assert (Tensor(X) * BIND).sum().item() == pytest.approx(X.sum() * 5, rel=1e-4)
    assert Tensor.arange(BIND).tolist() == [0, 1, 2, 3, 4] and Tensor.full((2,), BIND).tolist() == [5, 5]
    assert Tensor.zeros(BIND, 2).shape == (BIND, 2) and Tensor.empty(BIND).numpy().shape == (5,)
    assert t.argmax(0).tolist() == X[:5].argmax(0).tolist() and t.var(0).numpy() == pytest.approx(
        X[:5].var(0, ddof=1), rel=1e-4
    )


BOTH_SIDES = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]


@pytest.mark.parametrize("device", DEVICES)
def test_a_variable_is_a_number_on_either_side_of_a_tensor(device: str) -> None:
    whole, halves = np.array([1, 2, 7], np.int32), np.array([0.5, 2, 21], np.float32)
    with Context(DEVICE=device):
        counts = set()
        for value in (1, 4, 21):
            n, size = V.bind(value), np.int32(value)
            found, expected = [], []
            for op in BOTH_SIDES:
                for array in (whole, halves):
                    with np.errstate(all="ignore"):
                        expected += [op(array, size), op(size, array)]
                    found += [op(Tensor(array), n), op(n, Tensor(array))]
            assert [x.dtype.name for x in found] == [x.dtype.name.replace("float64", "float32") for x in expected]
            together = Tensor.stack(*[x.float() for x in found])  # few kernels: they are compiled one by one
            np.testing.assert_allclose(together.numpy(), np.stack(expected).astype(np.float32), rtol=1e-3)
            counts.add(len(runners))
        assert len(counts) == 1


@pytest.mark.parametrize("device", DEVICES)
def test_sequences_and_masks_of_a_variable(device: str) -> None:
    with Context(DEVICE=device):
        counts = set()
        for value in (1, 4, 21):
            n = V.bind(value)
            pairs = [
                (Tensor.arange(MAX_LENGTH) < n, np.arange(MAX_LENGTH) < value),
                (Tensor.arange(MAX_LENGTH).maximum(n), np.arange(MAX_LENGTH).clip(value)),
                (
                    (Tensor.arange(MAX_LENGTH) < n).where(n, Tensor.full((MAX_LENGTH,), n * 2)),
                    [value] * value + [2 * value] * (MAX_LENGTH - value),
                ),
                (Tensor.full((2, n), n + 1, dtype="float32"), np.full((2, value), value + 1.0)),
                (Tensor.arange(n, n * 2), np.arange(value, value * 2)),
                (Tensor.arange(n * 3, n, -2), np.arange(value * 3, value, -2)),
                (Tensor.arange(0, 50, n), np.arange(0, 50, value)),
                (Tensor.linspace(-1, 1, n), np.linspace(-1, 1, value)),
                (Tensor.eye(n), np.eye(value)),
                (Tensor.ones(n, 3).cat(Tensor.zeros(n, 2), dim=1), np.tile([1, 1, 1, 0, 0], (value, 1))),
                (Tensor(X).sum() * n - Tensor.from_node(n), X.sum() * value - value),
            ]
            for found, expected in pairs:
                np.testing.assert_allclose(found.numpy(), expected, rtol=1e-3, atol=1e-5)
            counts.add(len(runners))
        assert len(counts) == 1


def test_schedule_with_vars() -> None:
    items, values = (Tensor(X)[:BIND].sum(0) * 2).schedule_with_vars()
    assert values == {V: 5} and [item.variables for item in items] == [(V,)]
    assert not any(node.op.name == "BIND" for item in items for node in item.ast.toposort())


def test_gradients_through_symbolic_parts() -> None:
    x = Tensor(X, requires_grad=True)
    (x[:BIND].softmax(0) * Tensor(X)[:BIND]).sum().backward()
    y = softmax(X[:5], 0)
    expected = np.zeros_like(X)
    expected[:5] = y * (X[:5] - (y * X[:5]).sum(0))
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4, atol=1e-5)


def test_layers_and_losses_over_a_symbolic_length() -> None:
    rng = np.random.default_rng(0)
    words, pictures = rng.integers(0, 20, (2, 12)), random_array((2, 3, 12))
    filters, weight = Tensor(random_array((4, 3, 3))), Tensor(random_array((8, 20)), requires_grad=True)
    table, length = Tensor(random_array((20, 8), seed=1)), Variable("length", 3, 12)
    for value in (3, 7, 12):
        found = []
        for n, (said, seen) in {
            length.bind(value): (Tensor(words), Tensor(pictures)),
            value: (Tensor(words[:, :value].copy()), Tensor(pictures[:, :, :value].copy())),
        }.items():
            said, seen = said[:, :n], seen[:, :, :n]
            x = table[said]
            x = x + x.scaled_dot_product_attention(x, x, is_causal=True)
            loss = x.layernorm().dot(weight).reshape(-1, 20).sparse_categorical_crossentropy(said.reshape(-1))
            (gradient,) = loss.gradient(weight)
            pooled = seen.conv2d(filters, padding=1).max_pool2d((2,), stride=1)
            found.append([one.numpy() for one in (loss, gradient, pooled, x.sort(1)[0], x.cummax(1)[0])])
        for symbolic, plain in zip(*found):
            np.testing.assert_allclose(symbolic, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_a_cache_is_assigned_to_at_a_symbolic_position(device: str) -> None:
    with Context(DEVICE=device):
        cache, expected = (
            Tensor.zeros(2, MAX_LENGTH, 3).contiguous().realize(),
            np.zeros((2, MAX_LENGTH, 3), np.float32),
        )
        for place, way in enumerate(("shrink", "slice", "setitem", "int")):
            at, value = Variable("at", 0, MAX_LENGTH - 1).bind(place * 3), random_array((2, 1, 3), seed=place)
            if way == "shrink":
                cache.shrink((None, (at, at + 1), None)).assign(Tensor(value)).realize()
            elif way == "slice":
                cache[:, at : at + 1].assign(Tensor(value))
            elif way == "setitem":
                cache[:, at : at + 1] = Tensor(value)
            else:
                cache[:, at] = Tensor(value[:, 0])
            expected[:, place * 3] = value[:, 0]
            np.testing.assert_array_equal(cache.numpy(), expected)


def test_lists_index_symbolic_axes() -> None:
    take = TinyJit(lambda x: (x[[0, -1]] + x[[[1], [-2]], [2, -3]][:, :1]).realize())
    for n in (2, 5, MAX_LENGTH, 3):
        rows = Tensor(X).realize()[: V.bind(n)]
        expected = X[:n][[0, -1]] + X[:n][[[1], [-2]], [2, -3]][:, :1]
        np.testing.assert_array_equal(take(rows).numpy(), expected)
    with pytest.raises(IndexError, match=r"index 3 .*axis 0 of size v=3 \(shape \(v=3, 6\)\)"):
        rows[[0, 3]]


def test_assigning_to_a_view() -> None:
    x = Tensor(X)
    rows = x[2:4]
    assert rows.assign(Tensor.ones(2, 6)) is rows
    expected = X.copy()
    expected[2:4] = 1
    np.testing.assert_array_equal(x.numpy(), expected)
    x.T.flip(0)[1:3].reshape(2, MAX_LENGTH).assign(Tensor.zeros(2, MAX_LENGTH))
    expected[:, 3:5] = 0
    np.testing.assert_array_equal(x.numpy(), expected)
    with pytest.raises(RuntimeError, match="create the view again"):
        stale = x[2:4]
        x.assign(x + 1)
        stale.assign(Tensor.ones(2, 6))
    with pytest.raises(RuntimeError, match="cannot assign through expand"):
        x[2:3].expand(4, 6).assign(Tensor.ones(4, 6))


HUGE = Variable("huge", 1, 1 << 40).bind(3)
MISUSE: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "two Variables in one broadcast": (
        lambda: Tensor(X)[:BIND] + Tensor(X)[: Variable("w", 1, MAX_LENGTH).bind(5)],
        ShapeError,
        r"shapes \(v=5, 6\) and \(w=5, 6\) do not broadcast",
    ),
    "a Variable and an int in one broadcast": (
        lambda: Tensor(X)[:BIND] + Tensor(X)[:5],
        ShapeError,
        r"axis -2 has sizes v=5 and 5",
    ),
    "no value": (lambda: Tensor(X)[:V].sum().realize(), SymbolicError, r"Variable 'v' has no value: bind it"),
    "two values": (
        lambda: (Tensor(X)[:BIND].sum() + Tensor(X)[: V.bind(6)].sum()).realize(),
        SymbolicError,
        r"Variable 'v' is bound to . and to .",
    ),
    "two Variables of one name": (
        lambda: (Tensor(X)[:BIND].sum() + Tensor(X)[: Variable("v", 1, 9).bind(5)].sum()).realize(),
        SymbolicError,
        "two Variables are called 'v', with ranges",
    ),
    "past the end now": (
        lambda: Tensor(X)[: Variable("z", 1, 50).bind(22)],
        ShapeError,
        r"shrink \(21, 6\) to \(\(0, z=22\)",
    ),
    "another number of elements": (
        lambda: Tensor(X[:4]).reshape(BIND, 6),
        ShapeError,
        r"reshape \(4, 6\) to \(v=5, 6\): 24 elements are not 6\*v=30",
    ),
    "a length in Python": (lambda: len(Tensor(X)[:BIND]), TypeError, "is symbolic"),
    "so many parts of an axis": (lambda: Tensor(X)[:BIND].chunk(2), SymbolicError, "sizes depend on v=5"),
    "an axis in equal parts": (lambda: Tensor(X)[:BIND].split(2), SymbolicError, "how many depends on v=5"),
    "a Variable and text": (lambda: BIND * "x", TypeError, "need a number, a size or a Tensor"),
    "a step that may be 0": (
        lambda: Tensor.arange(0, 9, Variable("w", 0, 3).bind(2)),
        ValueError,
        "nor a size that may be 0",
    ),
    "a length below 0": (lambda: Tensor.ones(V.bind(3) - 5), ShapeError, "sizes must be 0 or more"),
    "more elements than 64 bits count": (lambda: Tensor.ones(1 << 40, 1 << 40), ShapeError, r"2\*\*63 - 1"),
    "a size beyond 64 bits": (
        lambda: Tensor.ones(HUGE, HUGE),
        OverflowError,
        r"huge\*huge \(huge in 1..1099511627776\) may exceed 64 bits",
    ),
    "a size beyond the dtype": (
        lambda: Tensor([1], dtype=dtypes.int32) + HUGE,
        OverflowError,
        "does not fit in int32",
    ),
    "a range beyond the dtype": (lambda: Tensor.arange(HUGE), OverflowError, "does not fit in int32"),
    "a divisor that may be 0": (lambda: BIND // (BIND - 3), ZeroDivisionError, "may be 0"),
    "a question without an answer": (
        lambda: bool(BIND.unbind()[0] < 5),
        SymbolicError,
        "depends on the value of a Variable",
    ),
}


@pytest.mark.parametrize("device", DEVICES)
def test_division_rounds_down_by_negative_divisors_too(device: str) -> None:
    v = V.bind(3)
    x = Tensor([10, 20, -7, 1], device=device)
    assert x[: -(v // -2)].sum().item() == 30
    assert (x + v % -2).tolist() == [9, 19, -8, 0]
    assert (x // -v).tolist() == [-4, -7, 2, -1]
    assert (x % -v).tolist() == [-2, -1, -1, -2]
    assert (x[:1] + -7 // v).tolist() == [7]
    assert (x[:1] + Tensor.full((1,), 1 << 40, dtype=dtypes.int64, device=device) * v).item() == 10 + 3 * (1 << 40)


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_raises_an_error_at_the_call(case: str) -> None:
    wrong, error, words = MISUSE[case]
    with pytest.raises(error, match=words):
        wrong()


def test_a_value_out_of_range_is_checked_in_every_call() -> None:
    far = Variable("far", 1, 50)
    for value in (3, MAX_LENGTH):
        assert Tensor(X)[: far.bind(value)].sum().item() == pytest.approx(X[:value].sum(), rel=1e-4)
    assert isinstance(far.bind(3) + 1, UOp)


@pytest.mark.parametrize("device", ["PYTHON", "LLVM"])
def test_a_symbolic_index_reads_the_part_that_contains_it(device: str) -> None:
    """No loop is in the condition: PYTHON refuses what lies outside, other devices read whatever is there."""
    parts = [Tensor([10.0 * part + place for place in range(3)], device=device).realize() for part in range(3)]
    n = Variable("n", 1, 9)
    for length in range(1, 10):
        bound = n.bind(length)
        assert parts[0].cat(*parts[1:])[:bound][bound - 1].item() == 10 * ((length - 1) // 3) + (length - 1) % 3

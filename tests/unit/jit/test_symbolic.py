"""A jitted function with a Variable is captured once and replayed for every value of it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from tinyexplore import Context, Tensor, TinyJit, Variable
from tinyexplore.compile.runner_cache import runners
from tinyexplore.jit import JitError

MAX_LENGTH = 12


@pytest.fixture(params=["LLVM", "CLANG", "PYTHON"], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEVICE=request.param):
        yield request.param


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """(heads, places, width), every query sees every key."""
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ value


def test_a_decode_loop_with_a_growing_cache_compiles_once() -> None:
    heads, width = 2, 4
    mixing = numbers(heads * width, 3 * heads * width, seed=99) / 3
    mix = Tensor(mixing)
    cache = Tensor.zeros(2, MAX_LENGTH, heads, width).contiguous().realize()

    @TinyJit
    def step(x: Tensor, position: Variable) -> Tensor:
        query, key, value = (x @ mix).reshape(3, 1, heads, width).split(1)
        cache[:, position : position + 1].assign(key.cat(value))
        seen = cache[:, : position + 1].permute(0, 2, 1, 3)
        return query[0].transpose(0, 1).scaled_dot_product_attention(seen[0], seen[1]).realize()

    position = Variable("position", 0, MAX_LENGTH - 1)
    said: list[np.ndarray] = []
    compiled = []
    for place in range(MAX_LENGTH):
        x = numbers(1, heads * width, seed=place)
        said.append((x @ mixing).reshape(3, heads, width))
        found = step(Tensor(x), position.bind(place)).numpy()
        query, key, value = (np.stack(part, 1) for part in zip(*said))  # (heads, places, width) each
        np.testing.assert_allclose(found, attention(query[:, -1:], key, value), rtol=1e-4, atol=1e-5)
        compiled.append(len(runners))
    assert compiled[1:] == compiled[1:2] * (MAX_LENGTH - 1)
    assert step.captured is not None and step.captured.states[0].tensor is cache
    np.testing.assert_allclose(cache.numpy(), np.stack([key, value]).transpose(0, 2, 1, 3), rtol=1e-5, atol=1e-6)


def test_tensors_bring_their_sizes_along() -> None:
    @TinyJit
    def mixed(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return (x @ y.T).softmax(0), y + 1

    n = Variable("n", 1, MAX_LENGTH)
    for value in (3, 2, 7, 1, 12):
        x, y = numbers(5, 4, seed=value), numbers(value, 4, seed=value + 1)
        weights, more = mixed(Tensor(x), Tensor(y).reshape(n.bind(value), 4))
        grown = np.exp(x @ y.T)
        assert weights.shape == (5, n.bind(value))
        np.testing.assert_allclose(weights.numpy(), grown / grown.sum(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(more.numpy(), y + 1, rtol=1e-6)


def test_sizes_among_arguments_and_results_have_todays_values() -> None:
    @TinyJit
    def part(x: Tensor, *, cut: dict[str, Variable]) -> tuple[Tensor, Variable]:
        return x[: cut["at"]] * 2, cut["at"] * 2 + 1

    at = Variable("at", 1, MAX_LENGTH)
    x = numbers(MAX_LENGTH, 3)
    for value in (4, 2, 9, 12, 1):
        found, size = part(Tensor(x), cut={"at": at.bind(value)})
        assert size.val == 2 * value + 1  # type: ignore[attr-defined]
        np.testing.assert_allclose(found.numpy(), x[:value] * 2)


def test_many_rows_are_divided_among_threads_by_the_length_of_the_call() -> None:
    rows = Variable("rows", 1, 4096)
    doubled = TinyJit(lambda x, n: (x[:n].exp().sum(1) * 2).realize())
    x = numbers(4096, 64)
    if Tensor(x).device == "PYTHON":
        pytest.skip("one thread")
    for value in (4096, 3, 100, 4095, 1):
        found = doubled(Tensor(x), rows.bind(value)).numpy()
        np.testing.assert_allclose(found, np.exp(x[:value]).sum(1) * 2, rtol=1e-4)
    assert doubled.jit_cache[0].runner is not None
    assert doubled.jit_cache[0].runner.spec.thread_end is not None


def test_misuse_raises_an_error_at_the_call() -> None:
    x = Tensor(numbers(MAX_LENGTH, 3))
    n, m = Variable("n", 1, MAX_LENGTH), Variable("m", 1, MAX_LENGTH)
    first = TinyJit(lambda t, size: t[:size].sum().realize())
    for value in (2, 3):
        first(x, n.bind(value))
    with pytest.raises(JitError, match="argument 1 was captured as"):
        first(x, m.bind(3))
    with pytest.raises(JitError, match="argument 1 .* now 3"):
        first(x, 3)
    with pytest.raises(JitError, match="bound to 2 and to 3"):
        TinyJit(lambda a, b: (a + b).realize())(n.bind(2), n.bind(3))

    hidden = TinyJit(lambda t: t[: n.bind(2)].sum().realize())
    hidden(x)
    with pytest.raises(JitError, match="Variable 'n', .*arguments"):
        hidden(x)

    fixed = TinyJit(lambda t, size: t[:size].sum(1).reshape(3).realize())
    for _ in range(3):
        fixed(x, n.bind(3))
    with pytest.raises(JitError, match=r"RESHAPE to \(3,\) .*n == 3,.*n=4"):
        fixed(x, n.bind(4))
    np.testing.assert_allclose(fixed(x, n.bind(3)).numpy(), x.numpy()[:3].sum(1), rtol=1e-5)

    far = Variable("far", 0, 50)
    beyond = TinyJit(lambda t, start: t[start : start + 2].sum().realize())
    for value in (0, 4, 10):
        beyond(x, far.bind(value))
    with pytest.raises(JitError, match="far.*, .*far=11"):
        beyond(x, far.bind(11))


def test_a_kept_buffer_is_checked_for_its_size() -> None:
    n = Variable("n", 1, MAX_LENGTH)
    kept = Tensor(numbers(4, 3)).realize()
    summed = TinyJit(lambda size: (kept.reshape(size, 3) * 1).sum().realize())
    for _ in range(3):
        assert summed(n.bind(4)).item() == pytest.approx(kept.numpy().sum(), rel=1e-5)
    with pytest.raises(JitError, match="cannot be replayed"):
        summed(n.bind(5))


def test_comparisons_of_a_value_during_capture_must_hold_in_replays() -> None:
    x = numbers(3, MAX_LENGTH)
    places = Variable("places", 0, MAX_LENGTH - 1)

    def seen(t: Tensor, place: Variable) -> Tensor:
        return (t[:, : place + 1].sum(1) if place > 2 else t[:, 0] * 100).realize()

    far, near = TinyJit(seen), TinyJit(seen)
    for value in (5, 3, 9, MAX_LENGTH - 1):
        np.testing.assert_allclose(far(Tensor(x), places.bind(value)).numpy(), x[:, : value + 1].sum(1), rtol=1e-4)
    for value in (0, 2, 1):
        np.testing.assert_allclose(near(Tensor(x), places.bind(value)).numpy(), x[:, 0] * 100, rtol=1e-5)
    with pytest.raises(JitError, match="places > 2, .*places=2.*reset()"):
        far(Tensor(x), places.bind(2))
    with pytest.raises(JitError, match="places <= 2, .*places=3"):
        near(Tensor(x), places.bind(3))
    np.testing.assert_allclose(far(Tensor(x), places.bind(4)).numpy(), x[:, :5].sum(1), rtol=1e-4)
    again = pickle.loads(pickle.dumps(far.captured))
    with pytest.raises(JitError, match="captured needs places > 2"):
        again((Tensor(x), places.bind(2)), {})


def test_a_value_that_was_read_when_captured_is_the_only_one() -> None:
    size = Variable("size", 1, MAX_LENGTH)
    for read in (lambda v: v.val, lambda v: v.unbind()[1]):
        times = TinyJit(lambda t, v, read=read: (t * read(v)).realize())
        for _ in range(3):
            assert times(Tensor([1.0, 2.0]), size.bind(3)).tolist() == [3.0, 6.0]
        with pytest.raises(JitError, match="size == 3, .*size=4"):
            times(Tensor([1.0, 2.0]), size.bind(4))


def test_replays_accept_any_value_with_the_same_comparison_result() -> None:
    place = Variable("place", 0, MAX_LENGTH - 1)
    x = numbers(3, MAX_LENGTH)

    def seen(t: Tensor, at: Variable) -> Tensor:
        if at.val == 0:  # type: ignore[attr-defined]
            return (t[:, 0] * 100).realize()
        return t[:, : at + 1].sum(1).realize()

    later = TinyJit(seen)
    for value in (5, 3, 9, 1, MAX_LENGTH - 1):
        np.testing.assert_allclose(later(Tensor(x), place.bind(value)).numpy(), x[:, : value + 1].sum(1), rtol=1e-4)
    with pytest.raises(JitError, match="place != 0, .*place=0"):
        later(Tensor(x), place.bind(0))


def test_a_comparison_that_holds_for_all_values_is_not_checked() -> None:
    size = Variable("size", 1, MAX_LENGTH)
    total = TinyJit(lambda t, v: (t[:v] if v > 0 else t * 2).sum().realize())
    x = numbers(MAX_LENGTH)
    for value in (3, 1, MAX_LENGTH, 7):
        np.testing.assert_allclose(total(Tensor(x), size.bind(value)).item(), x[:value].sum(), rtol=1e-4)
    assert total.captured is not None and total.captured.captured.requirements == []

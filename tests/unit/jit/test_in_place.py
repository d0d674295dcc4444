"""Arguments that a captured function assigns to: in their own memory, without effects on other tensors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from tinyexplore import Context, Tensor, TinyJit, Variable
from tinyexplore.jit import JitError

LENGTH, WIDTH = 8, 4
POSITION = Variable("position", 0, LENGTH - 1)


@pytest.fixture(params=["LLVM", "PYTHON"], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEVICE=request.param):
        yield request.param


def push(cache: Tensor, row: Tensor, position: Variable) -> Tensor:
    before = cache.sum().realize()
    cache[position : position + 1].assign(row)
    return (cache.sum(0) + before).realize()


def pushed(cache: np.ndarray, row: np.ndarray, position: int) -> np.ndarray:
    before = cache.sum()
    cache[position] = row
    return cache.sum(0) + before


def new_cache(seed: int) -> tuple[Tensor, np.ndarray]:
    array = np.random.default_rng(seed).integers(0, 9, (LENGTH, WIDTH)).astype(np.float32)
    return Tensor(array.copy()), array


def row_of(number: int) -> np.ndarray:
    return np.arange(WIDTH, dtype=np.float32) + number


def address_of(tensor: Tensor) -> int:
    assert tensor.lazydata.buffer is not None
    return tensor.lazydata.buffer.address


def test_parts_are_written_into_the_arguments_memory(device: str) -> None:
    jit = TinyJit(push)
    cache, expected = new_cache(0)
    addresses = []
    for call in range(2 * LENGTH):
        found = jit(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call % LENGTH))
        np.testing.assert_array_equal(found.numpy(), pushed(expected, row_of(call), call % LENGTH))
        np.testing.assert_array_equal(cache.numpy(), expected)
        addresses.append(address_of(cache))
    if device != "PYTHON":
        assert len(set(addresses[2:])) == 1, "nothing is copied"
    assert jit.captured is not None and jit.captured.in_place and not jit.captured.assigned


def test_alternating_arguments_keep_their_own_memory(device: str) -> None:
    jit = TinyJit(push)
    caches = [new_cache(seed) for seed in range(3)]
    kept: list[tuple[Tensor, np.ndarray]] = []
    for call in range(15):
        cache, expected = caches[call % 3]
        kept.append((cache.detach(), expected.copy()))
        kept.append((cache[1:3], expected[1:3].copy()))
        kept.append((cache.reshape(-1) + 1, expected.reshape(-1) + 1))
        if call % 4 == 0:
            del kept[:]
        if call == 7:
            kept[-1][0].realize()
        jit(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call % LENGTH))
        pushed(expected, row_of(call), call % LENGTH)
        for tensor, array in caches:
            np.testing.assert_array_equal(tensor.numpy(), array)
        for tensor, array in kept:
            np.testing.assert_array_equal(tensor.numpy(), array)


def test_memory_of_the_user_is_not_overwritten() -> None:
    jit = TinyJit(push)
    arrays = [np.full((LENGTH, WIDTH), float(number), np.float32) for number in range(5)]
    for number, array in enumerate(arrays):
        cache = Tensor(array)
        jit(cache, Tensor(row_of(0)).reshape(1, WIDTH), POSITION.bind(2))
        assert cache.numpy()[2].tolist() == row_of(0).tolist() and cache.numpy()[3, 0] == number
        assert array.tolist() == [[float(number)] * WIDTH] * LENGTH


def test_lazy_arguments_and_views_of_larger_ones() -> None:
    jit = TinyJit(push)
    whole, expected = new_cache(5)
    whole, expected = whole.cat(whole).realize(), np.concatenate([expected, expected])
    for call in range(6):
        cache = whole[4 : 4 + LENGTH].contiguous() if call % 2 else whole[:LENGTH] * 2
        array = expected[4 : 4 + LENGTH].copy() if call % 2 else expected[:LENGTH] * 2
        jit(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call))
        pushed(array, row_of(call), call)
        np.testing.assert_array_equal(cache.numpy(), array)
        np.testing.assert_array_equal(whole.numpy(), expected)


def move(cache: Tensor, other: Tensor) -> Tensor:
    """Writes one and reads the other before and after."""
    first = other.sum(1)
    cache[1:3] = other[2:4] + 1
    return (first + other.sum(1) + cache.sum(1)).realize()


def moved(cache: np.ndarray, other: np.ndarray) -> np.ndarray:
    first = other.sum(1)
    cache[1:3] = other[2:4] + 1
    return first + other.sum(1) + cache.sum(1)


def test_one_tensor_as_two_arguments() -> None:
    jit = TinyJit(move)
    cache, expected = new_cache(1)
    for _ in range(5):
        np.testing.assert_array_equal(jit(cache, cache).numpy(), moved(expected, expected))
        np.testing.assert_array_equal(cache.numpy(), expected)
    with pytest.raises(JitError, match="one tensor when captured"):
        jit(cache, new_cache(2)[0])
    np.testing.assert_array_equal(cache.numpy(), expected)


def test_two_tensors_that_become_one_are_refused_and_nothing_changes() -> None:
    def add(kept: Tensor, other: Tensor) -> Tensor:
        kept.assign(kept + other)
        return (kept * other).realize()

    for function in (move, add):
        jit = TinyJit(function)
        for seed in range(4):
            jit(new_cache(seed)[0], new_cache(seed + 1)[0])
        cache, expected = new_cache(7)
        with pytest.raises(JitError, match="same tensor as argument 1"):
            jit(cache, cache)
        np.testing.assert_array_equal(cache.numpy(), expected)


def test_two_tensors_that_share_their_memory() -> None:
    jit = TinyJit(move)
    for call in range(6):
        cache, expected = new_cache(call)
        other, array = (
            (cache.detach(), expected.copy()) if call % 2 else (cache.reshape(-1).reshape(8, 4), expected.copy())
        )
        np.testing.assert_array_equal(jit(cache, other).numpy(), moved(expected, array))
        np.testing.assert_array_equal(cache.numpy(), expected)
        np.testing.assert_array_equal(other.numpy(), array)


def test_calls_that_are_refused_change_nothing() -> None:
    jit = TinyJit(push)
    cache, expected = new_cache(3)
    for call in range(4):
        jit(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call))
        pushed(expected, row_of(call), call)
    for wrong in (Tensor.zeros(1, WIDTH + 1), Tensor.zeros(1, WIDTH, dtype="int32")):
        with pytest.raises(JitError):
            jit(cache, wrong, POSITION.bind(1))
        with pytest.raises(JitError):
            jit(wrong, Tensor.zeros(1, WIDTH), POSITION.bind(1))
    np.testing.assert_array_equal(cache.numpy(), expected)


def test_parts_and_then_all_of_one_argument() -> None:
    def both(cache: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        cache[2:3] = row
        total = cache.sum().realize()
        cache.assign(cache * 2 + total)
        return total, cache

    jit = TinyJit(both)
    cache, expected = new_cache(4)
    kept = cache.detach()
    first = expected.copy()
    for call in range(6):
        total, same = jit(cache, Tensor(row_of(call)).reshape(1, WIDTH))
        expected[2] = row_of(call)
        assert total.item() == expected.sum() and same is cache
        expected = expected * 2 + expected.sum()
        np.testing.assert_array_equal(cache.numpy(), expected)
        expected %= 8
        cache.assign(cache % 8)
    np.testing.assert_array_equal(kept.numpy(), first)


def test_another_jit_that_reads_the_cache_sees_it() -> None:
    jit = TinyJit(push)
    cache, expected = new_cache(6)
    total = TinyJit(lambda: cache.sum(1).realize())
    for call in range(8):
        jit(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call))
        pushed(expected, row_of(call), call)
        np.testing.assert_array_equal(total().numpy(), expected.sum(1))


def test_a_new_value_is_written_to_the_argument_without_a_copy(device: str) -> None:
    def step(state: Tensor, by: Tensor) -> Tensor:
        state.assign(state * 2 + by)
        return state.sum().realize()

    jit = TinyJit(step)
    state, expected, held = Tensor([1.0, 2.0]), np.array([1.0, 2.0]), []
    for call in range(8):
        held.append((state.detach(), expected))
        expected = expected * 2 + call
        assert jit(state, Tensor([float(call)])).item() == expected.sum()
        for tensor, array in [*held, (state, expected)]:
            np.testing.assert_array_equal(tensor.numpy(), array)


def test_it_is_pickled() -> None:
    jit = TinyJit(push)
    cache, expected = new_cache(8)
    for call in range(3):
        jit(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call))
        pushed(expected, row_of(call), call)
    again = pickle.loads(pickle.dumps(jit))
    for call in range(3, 6):
        kept = cache.detach()
        array = expected.copy()
        again(cache, Tensor(row_of(call)).reshape(1, WIDTH), POSITION.bind(call))
        pushed(expected, row_of(call), call)
        np.testing.assert_array_equal(cache.numpy(), expected)
        np.testing.assert_array_equal(kept.numpy(), array)


def test_pickles_and_copies_of_views_contain_the_view_only() -> None:
    whole = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    for copied in (pickle.loads(pickle.dumps(whole[1])), copy.deepcopy(whole[1])):
        copied.assign(copied * 2)
        assert copied.tolist() == [6.0, 8.0] and whole.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("is_given", [True, False])
def test_lazy_results_of_the_old_value_are_computed_first(is_given: bool) -> None:
    held, array = new_cache(9)

    def push_held(row: Tensor, position: Variable) -> Tensor:
        return push(held, row, position)

    jit = TinyJit(push if is_given else push_held)
    for call in range(5):
        later, expected = held * 2 + 1, array * 2 + 1
        row = Tensor(row_of(call)).reshape(1, WIDTH)
        found = jit(held, row, POSITION.bind(call)) if is_given else jit(row, POSITION.bind(call))
        np.testing.assert_array_equal(found.numpy(), pushed(array, row_of(call), call))
        np.testing.assert_array_equal(held.numpy(), array)
        if is_given or call < 2:  # a tensor that is no argument belongs to the TinyJit after the capture (decision 6)
            np.testing.assert_array_equal(later.numpy(), expected)
    assert jit.captured is not None and not jit.captured.alternates and not jit.captured.assigned

"""Writes of parts in place: every tensor has the value that it has without aliasing, at any time of reading."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ops.support import HAS_COMPILER, random_array
from tests.reference import evaluate
from tinyexplore import Context, GlobalCounters, Tensor, TinyJit, Variable, capture
from tinyexplore.engine import step_by_step
from tinyexplore.trace import Recorder, recording

DEVICES = ["LLVM", "CLANG", "PYTHON"] if HAS_COMPILER else ["LLVM", "PYTHON"]
SHAPE = (6, 8)

# the parts that one can write, as indices of an array
PARTS: list[Any] = [
    np.s_[2],
    np.s_[1:3],
    np.s_[:, 3:5],
    np.s_[::2],
    np.s_[4:1:-1, 1:],
    np.s_[-1, 2:6],
    np.s_[...],
    np.s_[0:0],
]
# what is written there, from the tensor that is written to and another one (both as tensors or as arrays)
VALUES: list[Callable[[Any, Any, Any], Any]] = [
    lambda x, other, part: 7.0,
    lambda x, other, part: other[part] * 2,
    lambda x, other, part: x[part] + 1,  # reads what it overwrites
    lambda x, other, part: x.sum(0).sum() * 0.1 - other[part],  # reads all of it
    lambda x, other, part: x[::-1][part],
]
ACTIONS = ("write", "write", "write", "assign a view", "alias", "compute", "read", "realize", "realize all", "twist")


def address(x: Tensor) -> int:
    assert x.lazydata.buffer is not None
    return x.lazydata.buffer.address


def moved(work: Callable[[], Any]) -> tuple[int, int]:
    """The kernels of `work` and the bytes that they move."""
    GlobalCounters.reset()
    work()
    return GlobalCounters.kernel_count, GlobalCounters.global_mem


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.tuples(st.sampled_from(ACTIONS), st.integers(0, 7), st.integers(0, 4), st.integers(0, 9)),
        min_size=3,
        max_size=12,
    ),
    st.sampled_from(DEVICES),
    st.sampled_from(["plain", "recorded"]),
)
def test_programs_of_writes_equal_programs_of_copies(actions: list[Any], device: str, how: str) -> None:
    def program() -> None:
        start = [random_array(SHAPE, seed=n) for n in range(2)]
        tensors = [Tensor(x.copy()).contiguous().realize() * 1 for x in start]
        tensors = [tensor.contiguous().realize() for tensor in tensors]
        arrays = [x.copy() for x in start]
        for action, part_number, value_number, which in actions:
            this, other = which % len(tensors), (which // 2 + 1) % len(tensors)
            x, part, value = tensors[this], PARTS[part_number], VALUES[value_number]
            if action == "write":
                there, here = value(arrays[this], arrays[other], part), value(x, tensors[other], part)
                arrays[this] = arrays[this].copy()
                arrays[this][part], x[part] = there, here
            elif action == "assign a view" and part_number < 3:
                there, here = value(arrays[this], arrays[other], part), value(x, tensors[other], part)
                view = x[part]
                arrays[this] = arrays[this].copy()
                arrays[this][part] = there
                view.assign(here if isinstance(here, Tensor) else Tensor.full(view.shape, here))
            elif action == "alias":
                tensors.append(x.detach())
                arrays.append(arrays[this])
            elif action == "compute":
                tensors.append(x * 2 + tensors[other])
                arrays.append(arrays[this] * 2 + arrays[other])
            elif action == "read":
                np.testing.assert_allclose(x.numpy(), arrays[this], rtol=1e-3, atol=1e-3)
            elif action == "realize":
                x.realize()
            elif action == "realize all":
                Tensor.realize(*tensors)
            elif action == "twist":  # two tensors whose parts are exchanged, each from the other's old value
                a, b = x[1:3] * 1, tensors[other][2:4] * 1
                first, second = arrays[this][1:3].copy(), arrays[other][2:4].copy()
                x[1:3] = b
                arrays[this] = arrays[this].copy()
                arrays[this][1:3] = second
                tensors[other][2:4] = a
                arrays[other] = arrays[other].copy()
                arrays[other][2:4] = first
        for tensor, array in zip(tensors, arrays):
            np.testing.assert_allclose(evaluate(tensor.lazydata), array, rtol=1e-3, atol=1e-3)
        for tensor, array in zip(tensors, arrays):
            np.testing.assert_allclose(tensor.numpy(), array, rtol=1e-3, atol=1e-3)

    with Context(DEVICE=device):
        if how == "recorded":
            with step_by_step(), recording(Recorder()):
                program()
        else:
            program()


def test_a_part_is_written_in_place_if_the_old_value_is_unreferenced() -> None:
    cache, row = Tensor.zeros(1000, 64).contiguous().realize(), Tensor.ones(64).contiguous().realize()
    place = address(cache)
    for at in (3, 4):
        cache[at] = row * 2
        assert moved(cache.realize) == (1, 2 * 64 * 4)
    cache[7:9].assign(row.expand(2, 64))
    cache[:, 5] = 1.0
    out = cache[:9].sum()
    assert moved(out.realize)[0] == 3 and address(cache) == place
    assert out.item() == 64 * 6 + 9 - 6
    cache[1:3] += 1.0
    cache[1:3] = cache[2:4]
    assert cache.realize() is cache and address(cache) == place


def test_references_to_the_old_value_keep_it() -> None:
    holders: list[Callable[[Tensor], Any]] = [
        Tensor.detach,
        lambda x: x + 1,
        lambda x: x[1],
        Tensor.data,
        lambda x: x.T,
    ]
    for hold in holders:
        x = Tensor.arange(12).reshape(3, 4).contiguous().realize()
        held, place = hold(x), address(x)
        x[1] = 0
        assert address(x.realize()) != place and x[1].tolist() == [0] * 4
        assert held.tolist() == hold(Tensor.arange(12).reshape(3, 4)).tolist()
    array = np.zeros((2, 2), np.float32)
    mine = Tensor(array)
    mine[0] = 1.0
    assert mine.tolist() == [[1, 1], [0, 0]] and not array.any()


def test_readers_of_the_old_value_run_first() -> None:
    x = Tensor.arange(12).reshape(3, 4).contiguous().realize()
    place, total, rows = address(x), x.sum(), x.max(1)
    x[0] = 50
    after = x.sum()
    Tensor.realize(after, total, rows)
    assert (total.item(), after.item(), rows.tolist(), address(x)) == (66, 260, [3, 7, 11], place)
    both = x + 0
    x[1] = 1
    both = (both * x).realize()  # the old and the new value in one kernel
    assert both.tolist() == [[2500] * 4, [4, 5, 6, 7], [64, 81, 100, 121]]


def test_a_recording_shows_where_a_part_is_stored() -> None:
    x = Tensor.zeros(20, 4).contiguous().realize()
    place = address(x)
    with capture() as session:
        for row in range(3):
            x[row] = x[row] + row + 1
            x.realize()
        alias = x.detach()
        x[3] = 9
        x.realize()
    assert address(alias) == place != address(x) and x.numpy()[:5, 0].tolist() == [1, 2, 3, 9, 0]
    reasons = [decision.reason for stage in session.trace.stages for decision in stage.decisions]
    assert sum("written in place" in one for one in reasons) == 3
    assert sum("a copy of its target" in one for one in reasons) == 1


def test_many_writes_before_one_realize_are_few_kernels() -> None:
    x = Tensor.zeros(300).contiguous()
    for place in range(300):
        x[place] = place
    assert moved(x.realize)[0] < 20 and x.tolist() == list(range(300))


@pytest.mark.parametrize("device", DEVICES)
def test_a_replay_writes_its_state_in_place(device: str) -> None:
    with Context(DEVICE=device):
        cache = Tensor.zeros(16, 3).contiguous().realize()
        position = Variable("position", 0, 15)

        @TinyJit
        def step(x: Tensor, at: Variable) -> Tensor:
            cache[at : at + 1].assign(x * 2)
            return cache[: at + 1].sum(0).realize()

        expected = np.zeros((16, 3), np.float32)
        for at in range(12):
            x = random_array((1, 3), seed=at)
            expected[at] = x * 2
            found = step(Tensor(x), position.bind(at))
            np.testing.assert_allclose(found.numpy(), expected[: at + 1].sum(0), rtol=1e-4, atol=1e-4)
            if at == 7:  # changed from elsewhere
                cache[2] = 1.0
                expected[2] = 1
        np.testing.assert_allclose(cache.numpy(), expected)
        assert step.captured is not None and step.captured.states[0].is_in_place and len(step.captured.turns) == 1
        reader = TinyJit(lambda: (cache + 1).realize())
        for at in (13, 14, 15):
            np.testing.assert_allclose(reader().numpy(), expected + 1)
            step(Tensor(np.ones((1, 3), np.float32)), position.bind(at))
            expected[at] = 2


STEPS: list[Callable[[Any, list[Any]], Any]] = [  # of a part, two states and an argument: what one step writes there
    lambda part, state: state[2][part] * 2,
    lambda part, state: state[0][part] + 1,
    lambda part, state: state[1][part] - state[0][part],
    lambda part, state: state[2][part] + state[1].sum(0).sum() * 0.1,
    lambda part, state: state[0][::-1][part] * 0.5,
]


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 7), st.integers(0, 4), st.booleans()), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from(["LLVM", "PYTHON"]),
)
def test_replays_of_writes_equal_programs_of_copies(steps: list[Any], assigns_all: bool, device: str) -> None:
    """Parts of two states written in a jitted function, in any order, with results read in between."""
    with Context(DEVICE=device):
        arrays = [random_array(SHAPE, seed=n) for n in range(2)]
        states = [Tensor(x.copy()).contiguous().realize() for x in arrays]

        @TinyJit
        def call(x: Tensor) -> list[Tensor]:
            results = []
            for which, part, value, realizes in steps:
                order = [states[which], states[1 - which], x]
                results.append((states[which] * 2 + x).sum(1))
                if realizes:
                    results[-1].realize()
                states[which][PARTS[part]] = STEPS[value](PARTS[part], order)
                if realizes:
                    states[which].realize()
            if assigns_all:
                states[1].assign(states[1] * 0.5 + states[0])
            return results

        for turn in range(5):
            x = random_array(SHAPE, seed=turn + 5)
            found = call(Tensor(x))
            expected = []
            for which, part, value, _ in steps:
                expected.append((arrays[which] * 2 + x).sum(1))
                arrays[which][PARTS[part]] = STEPS[value](PARTS[part], [arrays[which], arrays[1 - which], x]).copy()
            if assigns_all:
                arrays[1] = arrays[1] * 0.5 + arrays[0]
            for one, other in zip(found, expected):
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-3, atol=1e-3)
            if turn == 3:  # changed from elsewhere, between two replays
                states[0][1] = 2.0
                arrays[0][1] = 2
            for state, array in zip(states, arrays):
                np.testing.assert_allclose(state.numpy(), array, rtol=1e-3, atol=1e-3)


def test_memory_that_is_written_in_place_stays_with_its_tensor() -> None:
    state, other = (Tensor.zeros(4, 2).contiguous().realize() for _ in range(2))

    @TinyJit
    def call(x: Tensor) -> Tensor:
        state[1] = x
        snapshot = state.detach()  # its memory, before the state gets another one
        other.assign(state)
        state.assign(state + 1)
        return snapshot.realize()

    expected, copied = np.zeros((4, 2)), np.zeros((4, 2))
    for turn in range(7):
        found = call(Tensor([turn * 1.0, 2.0]))
        expected[1] = turn, 2
        copied = expected.copy()
        expected = expected + 1
        np.testing.assert_allclose(found.numpy(), copied)
        np.testing.assert_allclose(other.numpy(), copied)
        np.testing.assert_allclose(state.numpy(), expected)


def test_two_jitted_functions_write_one_cache() -> None:
    cache, at = Tensor.zeros(8, 4).contiguous().realize(), Variable("at", 0, 6)
    expected = np.zeros((8, 4), np.float32)

    def put(x: Tensor, place: Variable) -> Tensor:
        cache[place : place + x.shape[0]] = x
        return cache.sum().realize()

    one, two = TinyJit(put), TinyJit(put)
    for turn in range(10):
        x = random_array((1 + turn % 2, 4), seed=turn)
        place = turn * 3 % 7
        expected[place : place + len(x)] = x
        found = (one, two)[turn % 2](Tensor(x), at.bind(place))
        assert found.item() == pytest.approx(expected.sum(), rel=1e-3, abs=1e-3)
        np.testing.assert_allclose(cache.numpy(), expected)


def test_an_argument_that_is_written_to_stays_the_callers() -> None:
    @TinyJit
    def put(x: Tensor, value: Tensor) -> Tensor:
        x[1] = value
        return x.sum().realize()

    for turn in range(5):
        array = random_array((3, 2), seed=turn)
        x = Tensor(array.copy()).contiguous().realize()
        before = x.detach()
        found = put(x, Tensor([1.0, 2.0])).item()
        expected = array.copy()
        expected[1] = [1, 2]
        assert found == pytest.approx(expected.sum(), rel=1e-4, abs=1e-4)
        np.testing.assert_allclose(x.numpy(), expected)
        np.testing.assert_allclose(before.numpy(), array)


@pytest.mark.parametrize("device", DEVICES)
def test_the_copy_of_an_old_value_may_be_made_by_a_kernel_that_makes_another(device: str) -> None:
    a = Tensor([0, 3, 2, 5], device=device).realize().cummax(0)[0].contiguous()
    b = a.detach()
    b[0] = 7
    assert (b % 5).tolist() == [2, 3, 3, 0]
    assert a.tolist() == [0, 3, 3, 5]

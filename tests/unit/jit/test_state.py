"""State under TinyJit: assigned tensors, random numbers, and tensors from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.nn.state import get_parameters, get_state_dict
from tinyexplore.tensor.random import generator

STEPS = 20


class Mlp:
    def __init__(self) -> None:
        self.layers = [nn.Linear(6, 16), nn.Linear(16, 4)]

    def __call__(self, x: Tensor) -> Tensor:
        return self.layers[1](self.layers[0](x).relu())


class Convnet:
    def __init__(self) -> None:
        self.conv, self.norm, self.out = nn.Conv2d(1, 4, 3), nn.BatchNorm(4), nn.Linear(36, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.conv(x.reshape(-1, 1, 8, 8))).relu().max_pool2d().flatten(1))


def trained(
    make: Callable[[], Mlp | Convnet], optimizer: str, size: int, jitted: bool, dropout: float = 0.0
) -> tuple[list[float], dict[str, np.ndarray]]:
    """The losses of STEPS training steps and the state afterwards."""
    Tensor.manual_seed(3)
    model = make()
    parameters = get_parameters(model)
    if optimizer == "adam":
        optim: nn.optim.Optimizer = nn.optim.Adam(parameters, lr=0.01)
    else:
        optim = nn.optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=optimizer == "nesterov")

    def step(x: Tensor, y: Tensor) -> Tensor:
        optim.zero_grad()
        out = model(x)
        loss = (out.dropout(dropout) if dropout else out).sparse_categorical_crossentropy(y)
        loss.backward()
        optim.step()
        return loss.realize()

    run = TinyJit(step) if jitted else step
    rng = np.random.default_rng(1)
    losses = []
    with Tensor.train():
        for number in range(STEPS):
            x = Tensor(rng.standard_normal((8, size), dtype=np.float32))
            y = Tensor(rng.integers(0, 4, 8).astype(np.int32))
            if number == STEPS // 2:
                optim.lr.assign(Tensor([0.02]))
            losses.append(run(x, y).item())
    return losses, {name: tensor.numpy() for name, tensor in get_state_dict(model).items()}


@pytest.mark.parametrize(
    ("make", "optimizer", "size", "dropout"),
    [(Mlp, "momentum", 6, 0.0), (Mlp, "nesterov", 6, 0.3), (Mlp, "adam", 6, 0.0), (Convnet, "adam", 64, 0.0)],
)
def test_training_is_the_same(make: Callable[[], Mlp | Convnet], optimizer: str, size: int, dropout: float) -> None:
    losses, state = trained(make, optimizer, size, False, dropout)
    found_losses, found = trained(make, optimizer, size, True, dropout)
    np.testing.assert_allclose(found_losses, losses, atol=1e-6, rtol=1e-6)
    assert list(found) == list(state)
    for name, value in state.items():
        np.testing.assert_allclose(found[name], value, atol=1e-6, rtol=1e-6, err_msg=name)


def test_each_replay_draws_new_random_numbers_as_without_a_jit() -> None:
    def draw() -> Tensor:
        return (Tensor.rand(5) + Tensor.randn(5)).realize()

    Tensor.manual_seed(7)
    expected = [draw().numpy() for _ in range(5)]
    drawn = generator.drawn
    Tensor.manual_seed(7)
    jit = TinyJit(draw)
    for value in expected:
        np.testing.assert_array_equal(jit().numpy(), value)
    assert generator.drawn == drawn


def compare(make: Callable[[], tuple[Callable[[Tensor], Tensor], Callable[[], list[Tensor]]]], calls: int = 6) -> None:
    """The function that `make` gives, and the tensors that it changes, with a jit and without."""
    plain, seen = make()
    jitted, seen_jitted = make()
    jit = TinyJit(jitted)
    for number in range(calls):
        x = np.arange(3, dtype=np.float32) + number
        np.testing.assert_array_equal(jit(Tensor(x)).numpy(), plain(Tensor(x)).numpy(), err_msg=f"call {number}")
        for one, other in zip(seen_jitted(), seen()):
            np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=f"call {number}")


def test_a_running_total() -> None:
    def make():
        total = Tensor.zeros(3)

        def add(x: Tensor) -> Tensor:
            total.assign(total + x)
            return total

        return add, lambda: [total]

    compare(make)


def test_tensors_that_take_over_each_others_values() -> None:
    def make():
        a, b, c = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 5.0, 6.0]), Tensor([0.0, 0.0, 0.0])

        def shift(x: Tensor) -> Tensor:
            old = a.detach()
            c.assign(b)
            b.assign(old)
            a.assign(x)
            return (a + b * 10 + c * 100).realize()

        return shift, lambda: [a, b, c]

    compare(make)


def test_tensors_assigned_one_value() -> None:
    def make():
        a, b = Tensor([1.0, 2.0, 3.0]), Tensor([1.0, 2.0, 3.0])

        def both(x: Tensor) -> Tensor:
            a.assign(a * 2 + x)
            b.assign(a)
            return (a - b * 3).realize()

        return both, lambda: [a, b]

    compare(make)


def test_a_value_that_is_changed_returned_and_local() -> None:
    def make():
        state = Tensor([1.0, 1.0, 1.0])

        def step(x: Tensor) -> Tensor:
            local = state.detach()
            local += 5
            new = state * 2 + local
            state.assign(new)
            return new

        return step, lambda: [state]

    compare(make)


def test_parts_of_a_tensor_set() -> None:
    def make():
        table = Tensor.zeros(3, 3)

        def put(x: Tensor) -> Tensor:
            table[1:2] = table[0:1] + x.reshape(1, 3)
            table[0] = table[1] * 2
            return table.sum(0).realize()

        return put, lambda: [table]

    compare(make)


def test_gradients_that_add_up_over_calls() -> None:
    def make():
        w = Tensor([1.0, 2.0, 3.0], requires_grad=True)

        def backward(x: Tensor) -> Tensor:
            loss = (w * x).sum()
            loss.backward()
            return loss.realize()

        return backward, lambda: [w.grad] if w.grad is not None else []

    compare(make)


def test_arguments_may_be_assigned_to() -> None:
    def push(x: Tensor, kept: Tensor) -> Tensor:
        kept.assign(kept + x)
        return (kept * 2).realize()

    jit = TinyJit(push)
    kept, plain = [Tensor([0.0]), Tensor([10.0])], [Tensor([0.0]), Tensor([10.0])]
    for number in range(8):
        x = Tensor([float(number)])
        assert jit(x, kept[number % 2]).item() == push(x, plain[number % 2]).item()
        assert [t.item() for t in kept] == [t.item() for t in plain]


def test_state_assigned_outside_the_jit_is_read() -> None:
    total, scale, rate = Tensor([0.0]), Tensor([2.0]), Tensor(1.0)
    jit = TinyJit(lambda: total.assign(total + scale * rate).realize())
    found = []
    for number in range(8):
        if number == 3:
            total.assign(Tensor([100.0]))
        if number == 5:
            scale.assign(Tensor([10.0]))
        if number == 6:
            rate.assign(Tensor(3.0))
        found.append(jit().item())
    assert found == [2, 4, 6, 102, 104, 114, 144, 174]


def test_a_jit_reads_state_that_another_jit_writes() -> None:
    weight = Tensor([1.0])
    train = TinyJit(lambda: weight.assign(weight * 2).realize())
    evaluate = TinyJit(lambda x: (x * weight).realize())
    for number in range(6):
        train()
        assert evaluate(Tensor([3.0])).item() == 3 * 2 ** (number + 1)


def test_memory_of_the_user_is_not_overwritten() -> None:
    array = np.ones(4, dtype=np.float32)
    state = Tensor(array)
    kept = state.detach()
    jit = TinyJit(lambda: state.assign(state + kept).realize())
    for number in range(5):
        assert jit().tolist() == [number + 2] * 4
    assert array.tolist() == [1.0] * 4 and kept.tolist() == [1.0] * 4


def test_a_value_taken_over_from_an_argument_is_a_copy() -> None:
    @TinyJit
    def keep(state: Tensor, value: Tensor) -> None:
        state.assign(value).realize()

    state = Tensor([0])
    for i in range(1, 6):
        value = Tensor([i])
        keep(state, value)
        assert state.item() == i
    state.assign(state + 1).realize()
    assert (state.item(), value.item()) == (6, 5)


def test_gradients_accumulate_over_calls_of_other_jits() -> None:
    """A generator and a judge, trained by turns: each one's gradients reach the other's weights, too."""

    def trained(wrap: Callable[[Any], Any]) -> list[Any]:
        given, judge = (Tensor(numbers, requires_grad=True) for numbers in ([1.0, 2.0], [0.5, -1.0]))
        first, last = nn.optim.SGD([given], 0.1), nn.optim.SGD([judge], 0.1)

        def improve(x: Tensor) -> Tensor:
            first.zero_grad()
            loss = (given * x * judge).sum().backward()
            first.step()
            return loss.realize()

        def judged(x: Tensor) -> Tensor:
            last.zero_grad()
            loss = (given * x * judge).square().sum().backward()
            last.step()
            return loss.realize()

        calls, found = (wrap(judged), wrap(improve)), []
        with Tensor.train():
            for number in range(5):
                found += [call(Tensor([number, 1.0]).realize()).item() for call in calls]
        return [*found, given.tolist(), judge.tolist()]

    assert trained(TinyJit) == trained(lambda function: function)

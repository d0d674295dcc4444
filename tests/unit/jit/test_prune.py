"""A pruned TinyJit leaves out the kernels with the same results in every call, and no others."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest

from tinyexplore import Context, Tensor, TinyJit, Variable
from tinyexplore.jit import JitError


@pytest.fixture(params=["LLVM", "PYTHON"], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEVICE=request.param):
        yield request.param


def weighted(x: Tensor) -> Tensor:
    doubled = (WEIGHTS[0] * 2).contiguous()
    return (doubled.sum().contiguous() + doubled + x).contiguous() * 3


WEIGHTS: list[Tensor] = []


@pytest.fixture(autouse=True)
def weights(device: str) -> None:
    WEIGHTS[:] = [Tensor([1.0, 2.0, 3.0]).realize()]


def given(number: int) -> Tensor:
    return Tensor([number, 10.0 * number, 5.0]).realize()


def test_kernels_independent_of_the_arguments_run_once() -> None:
    whole, pruned = TinyJit(weighted), TinyJit(weighted, prune=True)
    for number in range(5):
        assert pruned(given(number)).tolist() == whole(given(number)).tolist() == weighted(given(number)).tolist()
    assert len(whole.jit_cache) == 3
    assert pruned.captured is not None
    assert len(pruned.jit_cache) == len(pruned.captured.jit_cache) == 1


def test_an_assigned_weight_is_used_by_the_pruned_jit() -> None:
    pruned = TinyJit(weighted, prune=True)
    for number in range(9):
        if number in (3, 6):
            WEIGHTS[0].assign(WEIGHTS[0] + number).realize()
        if number == 7:
            WEIGHTS[0][1] = -4
        assert pruned(given(number)).tolist() == weighted(given(number)).tolist()
        assert number == 0 or len(pruned.jit_cache) == 1


def test_state_and_random_numbers_stay() -> None:
    seen = Tensor([0.0]).realize()

    @lambda function: TinyJit(function, prune=True)
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        fixed = (WEIGHTS[0] * 2).contiguous()
        seen.assign(seen + fixed.sum())
        return x + fixed, Tensor.rand(3) + fixed

    drawn = set()
    for number in range(5):
        summed, noise = step(given(number))
        assert summed.tolist() == (given(number) + WEIGHTS[0] * 2).tolist()
        assert seen.tolist() == [12.0 * (number + 1)]
        drawn.add(tuple(noise.tolist()))
    assert len(drawn) == 5


def test_results_and_assigned_arguments_are_written_in_every_call() -> None:
    @lambda function: TinyJit(function, prune=True)
    def both(x: Tensor) -> Tensor:
        x.assign((WEIGHTS[0] * 5).contiguous())
        return (WEIGHTS[0] * 7).contiguous() + 1

    for number in range(4):
        x = given(number)
        assert both(x).tolist() == [8.0, 15.0, 22.0]
        assert x.tolist() == [5.0, 10.0, 15.0]


def test_copies_and_pickles_are_pruned_too() -> None:
    pruned = TinyJit(weighted, prune=True)
    for number in range(3):
        pruned(given(number))
    for other in (copy.copy(pruned), copy.deepcopy(pruned), pickle.loads(pickle.dumps(pruned))):
        for number in range(3):
            assert other(given(number)).tolist() == weighted(given(number)).tolist()
        assert len(other.jit_cache) == 1


def test_bound_variables_and_methods() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight = Tensor([[1.0, 2.0]] * 4).realize()

        @lambda function: TinyJit(function, prune=True)
        def __call__(self, x: Tensor) -> Tensor:
            return (x + (self.weight * 2).contiguous()[: x.shape[0]]).sum(0).contiguous()

    model = Model()
    for size in (2, 2, 3, 1, 4):
        count = Variable("count", 1, 4).bind(size)
        assert model(Tensor.ones(4, 2).contiguous().realize()[:count]).tolist() == [3.0 * size, 5.0 * size]


def test_a_call_without_arguments_is_not_pruned() -> None:
    pruned = TinyJit(lambda: (WEIGHTS[0] * 2).contiguous().realize(), prune=True)
    assert [pruned().tolist() for _ in range(4)] == [[2.0, 4.0, 6.0]] * 4
    with pytest.raises(JitError, match="realized nothing"):
        nothing = TinyJit(lambda: None, prune=True)
        nothing(), nothing()

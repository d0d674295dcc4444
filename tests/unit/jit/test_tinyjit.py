"""A jitted function gives the function's results, for any number of replays."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tinyexplore import Context, Tensor, TinyJit
from tinyexplore.engine import step_by_step
from tinyexplore.jit import JitError
from tinyexplore.tensor.live_tensors import live_tensors
from tinyexplore.trace import ExecItemRan, Recorder, recording


@pytest.fixture(params=["LLVM", "CLANG", "PYTHON", "WASM"], autouse=True)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    with Context(DEVICE=request.param):
        yield request.param


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def test_other_tensors_in_every_call() -> None:
    @TinyJit
    def scaled(x: Tensor, *, by: Tensor) -> Tensor:
        return (x * by + 1).realize()

    for seed in range(6):
        x, by = numbers(3, 5, seed=seed), numbers(3, 5, seed=seed + 50)
        np.testing.assert_allclose(scaled(Tensor(x), by=Tensor(by)).numpy(), x * by + 1, rtol=1e-5, atol=1e-6)


def test_tensors_in_nested_arguments_and_results() -> None:
    @TinyJit
    def both(batch: dict[str, list[Tensor]]) -> dict[str, tuple[Tensor, Tensor]]:
        x, y = batch["pair"]
        return {"out": (x + y, x - y)}

    for seed in range(5):
        x, y = numbers(4, seed=seed), numbers(4, seed=seed + 9)
        total, rest = both({"pair": [Tensor(x), Tensor(y)]})["out"]
        np.testing.assert_allclose(total.numpy(), x + y, rtol=1e-6)
        np.testing.assert_allclose(rest.numpy(), x - y, rtol=1e-6)


def test_the_first_call_runs_the_second_is_captured_the_rest_do_without_python() -> None:
    calls = []

    def double(x: Tensor) -> Tensor:
        calls.append(1)
        return (x * 2).realize()

    jit = TinyJit(double)
    sizes = []
    for _ in range(4):
        jit(Tensor([1.0, 2.0]))
        sizes.append(len(jit.jit_cache))
    assert (len(calls), sizes, jit.captured is not None) == (2, [0, 1, 1, 1], True)
    jit.reset()
    assert (jit.captured, jit.jit_cache) == (None, [])
    assert jit(Tensor([3.0])).tolist() == [6.0]


def test_lazy_and_moved_arguments() -> None:
    jit = TinyJit(lambda x: (x + 1).realize())
    for seed in range(5):
        x = numbers(3, 4, seed=seed)
        np.testing.assert_allclose(jit(Tensor(x).permute(1, 0)).numpy(), x.T + 1, rtol=1e-6)
        np.testing.assert_allclose(jit(Tensor(x).reshape(4, 3) * 2).numpy(), x.reshape(4, 3) * 2 + 1, rtol=1e-6)


def test_results_may_be_fed_back() -> None:
    jit = TinyJit(lambda x, y: (x + y).realize())
    x, y = numbers(7), numbers(7, seed=1)
    found = Tensor(x)
    for _ in range(6):
        found = jit(found, Tensor(y))
    np.testing.assert_allclose(found.numpy(), x + 6 * y, rtol=1e-5)


def test_one_tensor_twice() -> None:
    jit = TinyJit(lambda x, y: (x * 2 + y).realize())
    for value in (1.0, 2.0, 3.0, 4.0):
        x = Tensor([value])
        assert jit(x, x).tolist() == [3 * value]
    with pytest.raises(JitError, match="argument 0 are two tensors"):
        jit(Tensor([1.0]), Tensor([2.0]))


def test_tensors_that_shared_memory_when_captured_may_differ_later() -> None:
    jit = TinyJit(lambda x, y: (x * 2 + y).realize())
    x = Tensor([1.0]).realize()
    for _ in range(3):
        assert jit(x, x.detach()).tolist() == [3.0]
    assert jit(Tensor([5.0]), Tensor([7.0])).tolist() == [17.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f(Tensor([1.0, 2.0, 3.0]), 2), r"argument 0 .*\(2,\) float32 .*now \(3,\)"),
        (lambda f: f(Tensor([1, 2]), 2), "argument 0 .* is now .*int32"),
        (lambda f: f(Tensor([1.0, 2.0]), 3), "argument 1 .* 2, .*now 3"),
        (lambda f: f(Tensor([1.0, 2.0])), "argument 0, argument 1, called with argument 0"),
        (lambda f: f([Tensor([1.0, 2.0])], 2), "argument 0 .*<tensor 0>"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(call: Callable[[TinyJit], object], message: str) -> None:
    jit = TinyJit(lambda x, by=2: (x * by).realize() if isinstance(x, Tensor) else x)
    for _ in range(2):
        jit(Tensor([1.0, 2.0]), 2)
    with pytest.raises(JitError, match=message):
        call(jit)
    assert jit(Tensor([4.0, 5.0]), 2).tolist() == [8.0, 10.0]


def test_a_function_that_computes_nothing_is_refused() -> None:
    jit = TinyJit(lambda x: 5)
    jit(Tensor([1.0]))
    with pytest.raises(JitError, match="realized nothing"):
        jit(Tensor([1.0]))


def test_reading_values_inside_is_refused() -> None:
    jit = TinyJit(lambda x: (x * 2).sum().item())
    jit(Tensor([1.0]))
    with pytest.raises(RuntimeError, match="reads a tensor's values"):
        jit(Tensor([1.0]))


def test_another_mode_of_training_is_refused() -> None:
    jit = TinyJit(lambda x: (x + 1).realize())
    jit(Tensor([1.0]))
    jit(Tensor([1.0]))
    with Tensor.train(), pytest.raises(JitError, match="Tensor.training was False"):
        jit(Tensor([1.0]))


def test_jit_0_turns_it_off() -> None:
    calls = []
    jit = TinyJit(lambda x: (calls.append(1), (x + 1).realize())[1])
    with Context(JIT=0):
        for _ in range(4):
            assert jit(Tensor([1.0])).tolist() == [2.0]
    assert (len(calls), jit.captured) == (4, None)


def test_a_jit_inside_a_jit() -> None:
    inner = TinyJit(lambda x: (x * 3).realize())
    outer = TinyJit(lambda x: (inner(x) + 1).realize())
    for value in range(6):
        assert outer(Tensor([float(value)])).tolist() == [value * 3 + 1]


class Model:
    def __init__(self, weight: float) -> None:
        self.weight = Tensor([weight])

    @TinyJit
    def __call__(self, x: Tensor) -> Tensor:
        return (x * self.weight).realize()

    @TinyJit
    def forward(self, x: Tensor) -> Tensor:
        """x · weight"""
        return (x * self.weight).realize()


def test_methods_have_a_jit_for_each_object() -> None:
    models = [Model(2.0), Model(5.0)]
    for value in range(5):
        found = [model.forward(Tensor([float(value)])).item() for model in models]
        assert found == [2 * value, 5 * value]
    assert models[0].forward is not models[1].forward
    found = [models[1](Tensor([float(value)])).item() for value in range(5)]
    assert found == [0, 5, 10, 15, 20]
    assert vars(models[1])["__call__"].captured is not None, "Python looks for operators in the class alone"
    assert copy.deepcopy(models[0]).forward(Tensor([3.0])).item() == 6


def test_the_parameters_of_a_model_are_not_found_in_its_jits() -> None:
    from tinyexplore.nn.state import get_state_dict

    model = Model(2.0)
    for _ in range(3):
        model.forward(Tensor([1.0]))
    assert list(get_state_dict(model)) == ["weight"]


def test_kernels_of_a_replay_are_recorded() -> None:
    jit = TinyJit(lambda x: ((x + 1).realize() * 2).realize())
    jit(Tensor([1.0]))
    jit(Tensor([1.0]))
    recorder = Recorder()
    with step_by_step(), recording(recorder):
        assert jit(Tensor([4.0])).tolist() == [10.0]
    assert sum(isinstance(event, ExecItemRan) for event in recorder.events) == 2


def test_a_capture_collects_cycles_among_new_objects_only() -> None:
    class Held:
        pass

    def computed(x: Tensor) -> Tensor:
        y = (x + 1).realize()
        held = Held()
        held.itself, held.value = held, y  # type: ignore[attr-defined]
        z = (y * 2).realize()
        del y, held
        return ((z + 3).realize() * 2).realize()

    heard: list[int] = []

    def told(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            heard.append(info["generation"])

    jit = TinyJit(computed)
    jit(Tensor([1.0]))
    often = gc.get_threshold()
    gc.set_threshold(1 << 30)  # no other search is due meanwhile, also where tricks are off
    gc.callbacks.append(told)
    try:
        assert jit(Tensor([1.0])).tolist() == [14.0]
    finally:
        gc.callbacks.remove(told)
        gc.set_threshold(*often)
    assert heard == [0], "the old objects of a large program are not walked through"
    assert gc.isenabled()
    assert jit.captured is not None and [len(plan.live_ranges) for plan in jit.captured.memory] == [3]
    assert jit(Tensor([2.0])).tolist() == [18.0]


def test_all_living_tensors_are_registered() -> None:
    class Kind(Tensor):
        __slots__ = ()

    class Below(Kind):
        __slots__ = ("more",)

    here: list[Tensor] = [Tensor([1.0]), Kind([2.0]), Below([3.0]), Below.__new__(Below)]
    found = {id(tensor) for tensor in live_tensors()}
    assert [id(tensor) in found for tensor in here] == [True, True, True, False]
    gone = id(here.pop(0))
    assert gone not in {id(tensor) for tensor in live_tensors()}

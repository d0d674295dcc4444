"""Optimizers against their formulas in NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.ops.support import random_array
from tinyexplore import Tensor, nn
from tinyexplore import engine as engine_module
from tinyexplore.nn import optim

START = random_array((3, 4)).astype(np.float64)
SLOPES = [random_array((3, 4), seed=i).astype(np.float64) for i in range(1, 5)]


def walk(make: Callable[[list[Tensor]], optim.Optimizer]) -> np.ndarray:
    """Where four steps along SLOPES lead."""
    x = Tensor(START.astype(np.float32))
    optimizer = make([x])
    for slope in SLOPES:
        optimizer.zero_grad()
        (x * Tensor(slope.astype(np.float32))).sum().backward()
        optimizer.step()
    return x.numpy()


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("classic", [False, True])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_sgd(momentum: float, classic: bool, nesterov: bool) -> None:
    x, speed = START.copy(), np.zeros_like(START)
    for slope in SLOPES:
        g = slope + 0.01 * x
        g = g * 0.1 if classic else g
        if momentum:
            speed = momentum * speed + g
            g = g + momentum * speed if nesterov else speed
        x -= g if classic else 0.1 * g
    found = walk(lambda params: optim.SGD(params, 0.1, momentum, 0.01, nesterov, classic))
    np.testing.assert_allclose(found, x, rtol=1e-5, atol=1e-6)


def adam(weight_decay: float, lamb: bool, eps: float) -> np.ndarray:
    x, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for t, g in enumerate(SLOPES, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        change = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + eps) + weight_decay * x
        x = x - 0.05 * change * (np.linalg.norm(x) / np.linalg.norm(change) if lamb else 1)
    return x


def test_adam_and_its_kin() -> None:
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(walk(lambda params: optim.Adam(params, 0.05)), adam(0, False, 1e-8), **close)
    np.testing.assert_allclose(walk(lambda params: optim.AdamW(params, 0.05)), adam(0.01, False, 1e-8), **close)
    found = walk(lambda params: optim.LAMB(params, 0.05, weight_decay=0.02))
    np.testing.assert_allclose(found, adam(0.02, True, 1e-6), **close)


def test_lars() -> None:
    x, speed = START.copy(), np.zeros_like(START)
    for g in SLOPES:
        size, slope = np.linalg.norm(x), np.linalg.norm(g)
        rate = 0.1 * 0.001 * size / (slope + 1e-4 * size)
        speed = 0.9 * speed + (g + 1e-4 * x) * rate
        x -= speed
    np.testing.assert_allclose(walk(lambda params: optim.LARS(params, 0.1)), x, rtol=1e-5)


def test_muon() -> None:
    x, speed = START.copy(), np.zeros_like(START)
    for g in SLOPES:
        speed = 0.95 * speed + g
        step = g + 0.95 * speed
        step /= np.linalg.norm(step)
        for _ in range(5):
            square = step @ step.T
            step = 3.4445 * step - 4.775 * square @ step + 2.0315 * square @ square @ step
        x = x * (1 - 0.001 * 0.1) - 0.001 * step
    np.testing.assert_allclose(walk(lambda params: optim.Muon(params)), x, rtol=1e-4, atol=1e-5)
    tall = Tensor(START.T.astype(np.float32))
    optimizer = optim.Muon([tall], lr=1.0, weight_decay=0)
    (tall * Tensor(SLOPES[0].T.astype(np.float32))).sum().backward()
    optimizer.step()
    sizes = np.linalg.svd(START.T - tall.numpy(), compute_uv=False)
    assert ((0.6 < sizes) & (sizes < 1.3)).all(), "the step is nearly orthogonal"
    with pytest.raises(ValueError, match=r"parameters \[0\] are scalars"):
        optim.Muon([Tensor(1.0)])


def test_a_step_is_one_realization_of_parameters_and_state(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = Tensor([1.0, 2.0]), Tensor([3.0])
    running = Tensor([0.0], requires_grad=False)
    optimizer = optim.Adam([x, y, x, running], 0.1)
    assert len(optimizer.params) == 2 and optimizer.buffers == [running]
    running.assign(running + 1)
    calls: list[int] = []
    realize = engine_module.realize

    def counted(outputs: list) -> None:
        calls.append(len(outputs))
        realize(outputs)

    monkeypatch.setattr(engine_module, "realize", counted)
    ((x * x).sum() + y.sum()).backward()
    optimizer.step()
    assert calls == [9]
    assert all(tensor.lazydata.is_realized for tensor in (x, y, running, *optimizer.m, *optimizer.v))


def test_the_learning_rate_is_a_tensor_that_may_change() -> None:
    x = Tensor([1.0])
    optimizer = optim.SGD([x], lr=1.0)
    x.sum().backward()
    optimizer.lr.assign(optimizer.lr * 0.25)
    optimizer.step()
    assert x.tolist() == [0.75]


def test_groups_step_together() -> None:
    x, y = Tensor([1.0]), Tensor([1.0])
    group = optim.OptimizerGroup(optim.SGD([x], lr=1.0), optim.SGD([y], lr=0.5))
    (x + y).sum().backward()
    group.step()
    assert (x.tolist(), y.tolist()) == ([0.0], [0.5])
    group.zero_grad()
    assert x.grad is None and y.grad is None and group[0].params == [x]


def test_an_optimizer_without_parameters_or_gradients_raises_an_error() -> None:
    with pytest.raises(ValueError, match="one parameter at least"):
        optim.SGD([Tensor([1.0], requires_grad=False)])
    with pytest.raises(RuntimeError, match=r"without a gradient: 0 \(1,\)"):
        optim.SGD([Tensor([1.0])]).step()


def test_half_precision_parameters_keep_a_float32_state() -> None:
    x = Tensor([1.0, 2.0], dtype="float16")
    optimizer = optim.Adam([x], 0.5)
    (x * x).sum().backward()
    optimizer.step()
    assert x.dtype.name == "float16" and optimizer.m[0].dtype.name == "float32"
    np.testing.assert_allclose(x.numpy(), [0.5, 1.5], rtol=1e-3)


def test_a_small_network_learns_xor() -> None:
    Tensor.manual_seed(0)
    x, y = Tensor([[0.0, 0], [0, 1], [1, 0], [1, 1]]), Tensor([0, 1, 1, 0])
    first, second = nn.Linear(2, 8), nn.Linear(8, 2)
    optimizer = optim.Adam(nn.state.get_parameters([first, second]), lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        second(first(x).tanh()).sparse_categorical_crossentropy(y).backward()
        optimizer.step()
    assert second(first(x).tanh()).argmax(1).tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize("kind", [optim.SGD, optim.LARS, optim.Adam, optim.AdamW, optim.LAMB])
def test_a_parameter_may_be_a_scalar(kind: type[optim.SGD]) -> None:
    x = Tensor(3.0, requires_grad=True)
    optimizer = kind([x], 0.1)
    with Tensor.train():
        (x * 2).backward()
        optimizer.step()
    assert x.shape == () and x.item() < 3

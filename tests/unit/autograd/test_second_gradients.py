"""Gradients of gradients, against finite differences of the first ones."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.lazy import LazyBuffer
from tinyexplore.trace import LazyBufferBuilt, Recorder, recording

PLACES = Tensor([[2, 0, 2], [1, 3, 0]])
MASK = Tensor([[True, False, True, True], [False, True, True, False], [True, True, False, True]])
KERNEL = Tensor(np.random.default_rng(1).normal(size=(4, 2, 3)))

# of a (3, 4), with numbers between 0.3 and 1.7 that are all different
FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exp and its kin": lambda x: x.exp() + x.exp2() + x.sinh() + x.cosh(),
    "log and its kin": lambda x: x.log() + x.log2() + (x * x).sqrt() * x.rsqrt(),
    "log of one more": lambda x: x.asinh() + (x * 0.5).atanh(),
    "angles": lambda x: x.sin() + x.cos() + x.tan() * 0.1,
    "angles back": lambda x: (x * 0.5).asin() + (x * 0.5).acos() * x + x.atan(),
    "activations": lambda x: x.sigmoid() + x.tanh() * x.erf() + (x - 1).gelu() + (x - 1).softplus(),
    "with a corner": lambda x: ((x - 1).relu() + (x - 1.2).abs() + x.clip(0.5, 1.5) + (x - 1).elu()) * x * x,
    "quotients and powers": lambda x: (x[0] / x[1] + x[0] ** x[1] + x[2] ** 2.5 + 2.0 ** x[2]) * x[0],
    "choices": lambda x: x[0].maximum(x[1]) * x[2].minimum(x[1]) * MASK.where(x, x * x),
    "rounding and signs": lambda x: x.floor() * x * x + x.copysign(x - 1) * x + (x - 1).sign() * x**3,
    "casts": lambda x: x.float().double() * x,
    "sums and means": lambda x: x.sum(0) * x.mean(1, keepdim=True) * x,
    "extremes": lambda x: x.max(0) * x.min(1, keepdim=True) * x * x,
    "products": lambda x: x.prod(0) * x.prod(),
    "moments": lambda x: x.var(0) * x.std(1, keepdim=True) * x,
    "softmax and its kin": lambda x: x.softmax() * x.log_softmax(0) * x.logsumexp() * x,
    "layernorm": lambda x: x.layernorm() * x.layernorm(0) * x,
    "running results": lambda x: x.cumsum(0) * x.cumprod(1) * x.logcumsumexp(1) * x.cummax(0)[0],
    "movements": lambda x: x.T.reshape(3, 4).flip(1).pad(((1, 0), (0, 1)))[1:, :4] * x * x.roll(1, 0),
    "rows and columns": lambda x: x.cat(x * x, dim=1)[:, 2:6].repeat(1, 2)[:, ::2] * x,
    "a diagonal": lambda x: x[:, :3].diagonal(0, 0, 1).reshape(3, 1) * x.triu() * x.tril(1),
    "rows by index": lambda x: x[PLACES[0]] * x[[1, 2, 2], [0, 1, 1]].reshape(3, 1) * x,
    "gathered": lambda x: x.gather(1, PLACES) * x[:2, :3] * x[1:, 1:],
    "scattered": lambda x: x.scatter(1, PLACES, x[:2, :3] ** 2) * x,
    "scattered and combined": lambda x: (
        x.scatter_reduce(1, PLACES, x[:2, :3] * 1.7, "sum") * x.scatter_reduce(1, PLACES, x[:2, :3] * 1.7, "amax") * x
    ),
    "scattered and multiplied": lambda x: x.scatter_reduce(1, PLACES, x[:2, :3] * 1.7, "prod") * x,
    "sorted": lambda x: x.sort(1)[0] * x.topk(4, 0 + 1)[0] * x,
    "matrices": lambda x: x @ x.T @ x,
    "an einsum": lambda x: Tensor.einsum("ij,kj,kl->il", x, x, x),
    "convolution": lambda x: x.reshape(1, 2, 6).conv2d(KERNEL, stride=2, padding=1).tanh(),
    "convolution by itself": lambda x: x.reshape(1, 1, 3, 4).conv2d(x[:2, :2].reshape(1, 1, 2, 2), dilation=(1, 2)),
    "transposed convolution": lambda x: x.reshape(1, 2, 6).conv_transpose2d(KERNEL[:2], stride=2).square(),
    "pooling": lambda x: (
        (x.reshape(1, 1, 3, 4) ** 3).max_pool2d((2, 2), 1) * (x.reshape(1, 1, 3, 4) ** 2).avg_pool2d(2, 1)
    ),
    "attention": lambda x: x.scaled_dot_product_attention(x * x, x),
    "reflections": lambda x: x.qr()[1] * x[0] + x.T.qr()[0][:3] * x.qr()[0][0, 0],
    "singular values": lambda x: joined(x.svd(full_matrices=False)) * x[0, 0] + joined((x @ x.T).svd()),
    "losses": lambda x: x.cross_entropy(Tensor([0, 3, 1])) * x.sigmoid().binary_crossentropy(x * 0.5),
}


def joined(parts: tuple[Tensor, ...]) -> Tensor:
    """A scalar that depends on all of them."""
    first, *rest = [(part * (place + 1)).sin().sum() for place, part in enumerate(parts)]
    return sum(rest, first)


def hessian_product(function: Callable[[Tensor], Tensor], values: np.ndarray, along: np.ndarray) -> np.ndarray:
    x = Tensor(values, requires_grad=True)
    (slope,) = function(x).square().sum().gradient(x)
    return (slope * Tensor(along)).sum().gradient(x)[0].numpy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_second_derivatives_are_differences_of_the_first(name: str) -> None:
    function = FUNCTIONS[name]
    generator = np.random.default_rng(0)
    values = generator.permutation(np.linspace(0.3, 1.7, 12)).reshape(3, 4)
    along = generator.normal(size=(3, 4))
    found = hessian_product(function, values, along)

    def slope_at(step: float) -> np.ndarray:
        x = Tensor(values + step * along, requires_grad=True)
        return function(x).square().sum().gradient(x)[0].numpy()

    step = 1e-3 if name == "casts" else 1e-6
    wanted = (slope_at(step) - slope_at(-step)) / (2 * step)
    tolerance = 1e-2 if name == "casts" else 1e-6
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


def test_a_product_with_zeros() -> None:
    values = np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]])
    x = Tensor(values, requires_grad=True)
    (slope,) = x.prod(1).sum().gradient(x)
    (found,) = slope.sum().gradient(x)  # Σ over pairs: the product of the other elements
    assert slope.tolist() == [[0, 6, 0], [0, 0, 0], [12, 8, 6]]
    assert found.tolist() == [[3, 5, 2], [5, 5, 0], [7, 6, 5]]


def test_any_order() -> None:
    x = Tensor([0.5, 1.5], dtype="float64", requires_grad=True)
    value = x.sin()
    for _ in range(4):
        (value,) = value.sum().gradient(x)
    np.testing.assert_allclose(value.numpy(), np.sin([0.5, 1.5]), rtol=1e-12)


def test_the_tape_of_a_gradient_has_all_its_inputs() -> None:
    x, w = Tensor([3.0], requires_grad=True), Tensor([2.0], requires_grad=True)
    above = Tensor([5.0], requires_grad=True)
    (slope,) = (x * x * w).gradient(x, gradient=above)
    assert [one.item() for one in slope.sum().gradient(x, w, above)] == [20, 30, 12]


def test_a_penalty_on_the_slope_trains_with_the_loss() -> None:
    x, w = Tensor([[0.1, 0.2]], requires_grad=True), Tensor([[3.0], [4.0]], requires_grad=True)
    out = (x @ w).sum().tanh()
    (slope,) = out.gradient(x)
    slope.realize()
    (out + slope.square().sum()).backward()
    t = np.tanh(1.1)
    s = 1 - t * t
    w_, x_ = np.array([3.0, 4.0]), np.array([0.1, 0.2])
    wanted = s * x_ + 2 * s * s * w_ - 4 * s * s * t * (w_ @ w_) * x_
    assert w.grad is not None and x.grad is not None and slope.grad is not None
    np.testing.assert_allclose(slope.grad.numpy(), 2 * slope.numpy(), rtol=1e-5)
    np.testing.assert_allclose(w.grad.numpy()[:, 0], wanted, rtol=1e-4)


def test_a_shared_value_that_is_also_detached() -> None:
    x = Tensor([3.0], requires_grad=True)
    (slope,) = (x * x.detach() * x).sum().gradient(x)  # 2 x · (x, detached): the second derivative is 2 · 3
    assert slope.sum().gradient(x)[0].item() == 6


def test_second_gradients_use_the_values_before_an_assignment() -> None:
    x = Tensor([3.0], requires_grad=True)
    (slope,) = (x * x * x).sum().gradient(x)
    x.assign(Tensor([100.0]))
    assert slope.sum().gradient(x)[0].item() == 18


def test_targets_that_were_not_used() -> None:
    x, y = Tensor([1.0, 2.0], requires_grad=True), Tensor([[1.0]], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"targets \[1\] were not used"):
        x.sum().gradient(x, y)
    assert [one.tolist() for one in x.sum().gradient(x, y, materialize_grads=True)] == [[1, 1], [[0]]]
    (slope,) = (3 * x).sum().gradient(x)
    assert slope.sum().gradient(x, materialize_grads=True)[0].tolist() == [0, 0]


def test_an_untracked_target_raises_an_error_instead_of_zeros() -> None:
    x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0], requires_grad=True)
    used = x * 2 * w
    for target in (x, w.detach(), x * 2):
        with pytest.raises(RuntimeError, match=r"targets \[1\] .*gradient"):
            used.sum().gradient(w, target, materialize_grads=True)
    assert [one.tolist() for one in used.sum().gradient(w, used)] == [[2, 4], [1, 1]]


def test_without_a_tape_a_gradient_is_a_value() -> None:
    x = Tensor([3.0], requires_grad=True)
    out = (x * x).sum()
    with Tensor.inference_mode():
        (slope,) = out.gradient(x)
    assert slope.item() == 6 and not slope.requires_grad
    out.backward()
    assert x.grad is not None and x.grad._ctx is None and not x.grad.requires_grad


@pytest.mark.parametrize("marked", [True, None])
def test_invariant_functions_of_the_svd_have_gradients_at_equal_singular_values(
    marked: bool | None,
) -> None:
    x = Tensor([[0.0, 2, 0], [2, 0, 0], [0, 0, 1], [0, 0, 0]], dtype="float64", requires_grad=marked)
    along = Tensor(np.random.default_rng(0).normal(size=(4, 3)))
    u, s, v = x.svd(full_matrices=False)
    polar = u @ v  # x (xᵀx)^-½, and the slope of the sum of the singular values
    (found,) = (polar * along).sum().gradient(x)
    (slope,) = s.sum().gradient(x)
    (bent,) = (slope * along).sum().gradient(x)
    found.realize(slope, bent)
    np.testing.assert_allclose(slope.numpy(), polar.numpy(), atol=1e-14)
    np.testing.assert_allclose(bent.numpy(), found.numpy(), atol=1e-14)
    p, w = polar.numpy(), along.numpy()
    total = np.array([[4.0, 4, 3], [4, 4, 3], [3, 3, 2]])  # sums of two values each
    skew = p.T @ w - w.T @ p
    wanted = p @ (skew / total) + (w - p @ (p.T @ w)) / np.array([2, 2, 1])
    np.testing.assert_allclose(found.numpy(), wanted, atol=1e-14)


def test_gradients_of_singular_vectors_are_finite_wherever_values_are_equal_or_vanish() -> None:
    for values in (np.zeros((3, 2)), np.ones((3, 3)), np.eye(3) * 1e-30, np.diag([1, 1 + 1e-7, 0])):
        x = Tensor(values, dtype="float32", requires_grad=True)
        (slope,) = joined(x.svd()).square().sum().gradient(x)
        (bent,) = slope.sum().gradient(x)
        assert np.isfinite(slope.numpy()).all() and np.isfinite(bent.numpy()).all()


def test_an_unused_tape_builds_no_nodes_and_is_freed_with_its_gradients() -> None:
    x = Tensor([3.0], requires_grad=True)
    out = (x.exp() * x).sum()
    gc.collect()
    recorder = Recorder()
    with recording(recorder):
        out.backward()
    built = [event.lazybuffer.op for event in recorder.events if isinstance(event, LazyBufferBuilt)]
    recorder = Recorder()
    with recording(recorder):
        (slope,) = out.gradient(x)
    assert [event.lazybuffer.op for event in recorder.events if isinstance(event, LazyBufferBuilt)] == built
    before = sum(issubclass(type(one), LazyBuffer) for one in gc.get_objects())
    slope.sum().gradient(x)
    assert sum(issubclass(type(one), LazyBuffer) for one in gc.get_objects()) > before
    del slope, recorder
    assert sum(issubclass(type(one), LazyBuffer) for one in gc.get_objects()) < before


def test_the_first_gradient_is_not_recomputed() -> None:
    x = Tensor(np.ones((8, 8), np.float32), requires_grad=True)
    w = Tensor(np.ones((8, 8), np.float32) / 8)
    (slope,) = (x @ w).contiguous_backward().exp().sum().gradient(x)
    recorder = Recorder()
    with recording(recorder):
        slope.square().sum().gradient(x)
    products = [e for e in recorder.events if isinstance(e, LazyBufferBuilt) and e.lazybuffer.shape == (8, 8, 8)]
    assert products  # of the second walk
    assert not any(e.lazybuffer in slope.lazydata.src for e in products)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_on_several_devices(axis: int | None) -> None:
    generator = np.random.default_rng(2)
    values, weights, along = (generator.normal(size=(4, 4)) for _ in range(3))
    devices = ("LLVM:0", "LLVM:1")

    def product(place: Callable[[Tensor], Tensor]) -> list[np.ndarray]:
        x, w = Tensor(values, requires_grad=True), Tensor(weights, requires_grad=True)
        hidden = (
            (place(x) @ place(w))
            .softmax(1)
            .cumsum(0)[:, Tensor([0, 2, 2]).shard(devices) if place is not same else Tensor([0, 2, 2])]
        )
        (slope,) = (hidden * hidden).sum().gradient(x)
        return [one.numpy() for one in (slope * Tensor(along)).sum().gradient(x, w)]

    def same(x: Tensor) -> Tensor:
        return x

    for found, wanted in zip(product(lambda x: x.shard(devices, axis)), product(same)):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_a_captured_step_with_a_penalty() -> None:
    def train(wrapped: Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Tensor]]) -> list[float]:
        Tensor.manual_seed(3)
        first, second = nn.Linear(2, 8), nn.Linear(8, 1, bias=False)
        optimizer = nn.optim.SGD(nn.state.get_parameters([first, second]), lr=0.05)

        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            x = x.detach().requires_grad_()
            (slope,) = second(first(x).tanh()).sum().gradient(x)
            loss = (slope.square().sum(1).sqrt() - 1).square().mean()
            loss.backward()
            optimizer.step()
            return loss.realize()

        call = wrapped(step)
        data = np.random.default_rng(4).normal(size=(6, 5, 2)).astype(np.float32)
        with Tensor.train():
            return [call(Tensor(batch).realize()).item() for batch in data]

    found = train(TinyJit)
    np.testing.assert_allclose(found, train(lambda step: step), rtol=1e-4)
    assert found[-1] < found[0]


def test_every_operation_records_the_users_line() -> None:
    x = Tensor([3.0], requires_grad=True)
    (slope,) = (x.exp() * x).sum().gradient(x)
    recorder = Recorder()
    with recording(recorder):
        slope.sum().gradient(x)
    frames = [event.user_frame for event in recorder.events if isinstance(event, LazyBufferBuilt)]
    assert frames and {frame.function for frame in frames if frame} == {"test_every_operation_records_the_users_line"}


def test_the_examples_in_the_documentation() -> None:
    text = (Path(__file__).parents[3] / "docs" / "gradients.md").read_text()
    for part in text.split("```python\n")[1:]:
        exec(compile(part.split("```")[0], "gradients.md", "exec"), {})

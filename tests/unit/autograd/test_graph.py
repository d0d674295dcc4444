"""Gradients of unmarked targets: the same as by the tape, or an error that states the reason."""

from __future__ import annotations

import copy
import pickle
import random
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from tests.unit.autograd.test_second_gradients import FUNCTIONS, PLACES
from tinyexplore import Tensor, TinyJit, Variable, capture, nn
from tinyexplore.lazy import LazyBuffer

INF, NAN = float("inf"), float("nan")
MARK = r"make the targets with requires_grad=True, or call requires_grad_\(\) on them, before computing with them"

# of a (3, 4), where the derivative jumps, is chosen, or does not exist
CORNERS: dict[str, Callable[[Tensor], Tensor]] = {
    "activations": lambda x: x.relu() + x.sigmoid() + x.leakyrelu() + x.hardtanh() + x.relu6() + x.elu(),
    "signs": lambda x: x.abs() + x.sign() + x.copysign(x.flip(1)) + x.round() + x.floor() + x.trunc(),
    "limits": lambda x: x.clip(-1, 1) + x.maximum(0.0) + x.minimum(x.flip(0)) + (x > 0).where(x, x * x),
    "inverse functions": lambda x: x.asinh() + x.sinh() + x.atan() + x.asin() + x.acos() + x.atanh() + x.acosh(),
    "ties": lambda x: x.max(1, keepdim=True) + x.min(0) + x.max() + x.cummax(1)[0] + x.cummin(0)[0],
    "products of zeros": lambda x: x.prod(1, keepdim=True) + x.cumprod(0) + x.prod(),
    "logarithms of sums": lambda x: x.logsumexp(1, keepdim=True) + x.logcumsumexp(0) + x.logaddexp(x.flip(1)),
    "softmax": lambda x: x.softmax(0) + x.log_softmax(1),
    "deviations": lambda x: x.std(1, keepdim=True) + x.expand(3, 4).var(0) + x.layernorm(),
    "orders": lambda x: x.sort(1)[0] + x.sort(0, descending=True)[0] + x.topk(1, 1)[0],
    "rows and columns": lambda x: x.cat(x * 2, dim=1)[:, 2:6] + x[[0, 0, 2]] + x[:, PLACES[0, 0]].reshape(3, 1),
    "gathered": lambda x: x.gather(1, PLACES).sum() + x[[0, 2, 2], [1, 1, 1]].sum() + x,
    "scattered": lambda x: x.scatter(1, PLACES, x[:2, :3]) + x.scatter_reduce(1, PLACES, x[:2, :3], "amax"),
    "pooled": lambda x: x.reshape(1, 1, 3, 4).max_pool2d((2, 2), 1, padding=1).sum() + x,
    "convolved": lambda x: x.reshape(1, 1, 3, 4).conv2d(x[:2, :2].reshape(1, 1, 2, 2), padding=1),
    "powers": lambda x: x**2 + x**0.5 + x**0 + 2.0**x + (x + 0) ** x.flip(0),
    "casts": lambda x: x.half().float() + x.int() * x + x.double().float(),
    "detached": lambda x: x * x.detach() + x.detach() * 3 + (x * 2).detach() * x + Tensor(x) * x,
}
AT: dict[str, np.ndarray] = {
    "ties and zeros": np.array([[0.0, -0.0, 1.0, 1.0], [2.0, 2.0, 0.0, -3.0], [0.0, 0.0, 1.0, -1.0]]),
    "large": np.array([[100.0, -100.0, 40.0, -40.0], [0.5, -0.5, 6.0, -1.0], [1e30, -1e30, 1e-30, 3.0]]),
    "special": np.array([[INF, -INF, 1.0, 1.0], [NAN, 2.0, 0.0, -3.0], [-INF, 0.5, INF, -1.0]]),
}


def gradient(function: Callable[[Tensor], Tensor], values: np.ndarray, marked: bool) -> Tensor:
    x = Tensor(values, requires_grad=True if marked else None)
    found = function(x)
    return found.gradient(
        x, gradient=Tensor(np.linspace(0.5, 1.5, found.numel()).astype(values.dtype)).reshape(found.shape)
    )[0]


@pytest.mark.parametrize("place", AT)
@pytest.mark.parametrize("name", CORNERS)
def test_graph_gradients_equal_tape_gradients(name: str, place: str) -> None:
    values = AT[place].astype(np.float32)
    found, wanted = (gradient(CORNERS[name], values, marked) for marked in (False, True))
    size = np.abs(np.nan_to_num(wanted.numpy(), posinf=0, neginf=0)).max()
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6 * size)


@pytest.mark.parametrize(
    "name",
    [
        *("log of one more", "angles back", "activations", "with a corner", "quotients and powers", "extremes"),
        *("products", "moments", "running results", "rows and columns", "scattered and combined", "losses"),
        *("scattered and multiplied", "sorted", "convolution by itself", "pooling", "singular values"),
    ],
)
def test_second_graph_gradients_equal_tape_gradients(name: str) -> None:
    generator = np.random.default_rng(0)
    values = generator.permutation(np.linspace(0.3, 1.7, 12)).reshape(3, 4)
    along = Tensor(generator.normal(size=(3, 4)))

    def both(marked: bool) -> list[np.ndarray]:
        x = Tensor(values, requires_grad=True if marked else None)
        (slope,) = FUNCTIONS[name](x).square().sum().gradient(x)
        (bent,) = (slope * along).sum().gradient(x)
        slope.realize(bent)
        return [slope.numpy(), bent.numpy()]

    for found, wanted in zip(both(False), both(True)):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_a_product_with_zeros() -> None:
    x = Tensor([[2.0, 0.0, 3.0], [0.0, 0.0, 5.0], [2.0, 3.0, 4.0]])
    (slope,) = x.prod(1).sum().gradient(x)
    (found,) = slope.sum().gradient(x)  # Σ over pairs: the product of the other elements
    (third,) = found.sum().gradient(x)
    assert [one.tolist() for one in (slope, found, third)] == [
        [[0, 6, 0], [0, 0, 0], [12, 8, 6]],
        [[3, 5, 2], [5, 5, 0], [7, 6, 5]],
        [[2, 2, 2]] * 3,
    ]


def test_the_first_example_of_tinygrad_works() -> None:
    x, y = Tensor.eye(3), Tensor([[2.0, 0, -2.0]])
    dx, dy = y.matmul(x).sum().gradient(x, y)
    assert dx.tolist() == [[2, 2, 2], [0, 0, 0], [-2, -2, -2]] and dy.tolist() == [[1, 1, 1]]
    assert x.grad is None and not dx.requires_grad


def test_joins_with_empty_parts_have_gradients() -> None:
    x, nothing = Tensor([1.0, 2.0]), Tensor([], dtype="float16")
    joined = x.cat(nothing, x * x)
    assert (joined * joined).sum().gradient(x, nothing, materialize_grads=True)[0].tolist() == [6, 36]


def test_any_intermediate_tensor_can_be_a_target() -> None:
    x = Tensor([1.0, 2.0, 3.0])
    hidden = x.relu() * 2
    view = hidden.reshape(3, 1).expand(3, 4)
    loss = view[:, PLACES[0]].square().sum()
    assert [one.tolist() for one in loss.gradient(loss, x, hidden)] == [1, [24, 48, 72], [12, 24, 36]]
    assert loss.gradient(view)[0].tolist() == [[row, 0, 2 * row, 0] for row in (4, 8, 12)]


def test_the_penalty_of_decision_21_counts() -> None:
    x, w = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    loss = (w * x).square().sum()
    (slope,) = loss.gradient(x)
    assert (loss + slope.square().sum()).gradient(w)[0].tolist() == [438, 4128]


def test_many_equal_maxima_share_in_whatever_steps_they_are_found() -> None:
    x = Tensor.ones(512, 1024).contiguous()
    x = x * Tensor.arange(512).reshape(512, 1).clip(0, 1)
    assert x.max().gradient(x)[0].max().item() == pytest.approx(1 / (511 * 1024))


def test_written_parts() -> None:
    x, v = Tensor([1.0, 2.0, 3.0, 4.0]).contiguous(), Tensor([5.0, 6.0])
    y = (x * 1).contiguous()
    y[1:3] = v * v
    assert [one.tolist() for one in (y * y).sum().gradient(x, v)] == [[2, 0, 0, 8], [4 * 125, 4 * 216]]


def test_a_hundred_thousand_operations() -> None:
    x = Tensor(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1.0
    assert y.gradient(x)[0].lazydata.arg == 1.0


# *** what was realized ***


def test_reading_a_value_changes_no_gradient() -> None:
    x = Tensor([1.0])
    hidden = x * 2
    loss = (hidden + x).sum()
    assert loss.gradient(x)[0].item() == 3
    hidden.numpy()
    with pytest.raises(RuntimeError, match=r"shape \(1,\) .*after a target .*" + MARK + ", or call .* or detach"):
        loss.gradient(x)
    with pytest.raises(RuntimeError, match="after a target was created"):
        loss.gradient(x, materialize_grads=True)
    with pytest.raises(RuntimeError, match="after a target was created"):
        loss.gradient(hidden, x)
    assert loss.gradient(hidden)[0].item() == 1


def test_older_results_and_data_count_as_constants() -> None:
    normal = (Tensor([1.0, 3.0]) - 2).realize()
    x = Tensor([5.0, 7.0]).realize()
    noise, given, room = Tensor.rand(2).realize(), Tensor([2.0, 2.0]).realize(), Tensor.empty(2)
    steps = Tensor.arange(2.0).realize()
    (slope,) = (normal * x * given + noise + room + steps).sum().gradient(x)
    assert slope.tolist() == [-2, 2]
    moved = given.reshape(1, 2).to("LLVM:1").to(x.device).realize()  # a copy of data is data
    assert (x * moved).sum().gradient(x)[0].tolist() == [2, 2]
    shown = x.reshape(2, 1)
    copied = shown.to("LLVM:1").to(x.device).realize()
    assert (copied * given).sum().gradient(given)[0].tolist() == [12, 12]
    for target in (x, shown):  # what it is a copy of
        with pytest.raises(RuntimeError, match="computed"):
            (copied * target).sum().gradient(target)
    mask = (x > 0).realize()  # no gradient goes through a bool
    assert mask.where(x, 0).sum().gradient(x)[0].tolist() == [1, 1]


@pytest.mark.parametrize("told", [False, True])
def test_results_of_constants_count_as_constants(told: bool) -> None:
    w = Tensor([1.0, 2.0, 3.0])
    with capture() if told else nullcontext():
        scaled, room = (Tensor([2.0, 4.0, 6.0]) * 0.5).realize(), Tensor.zeros(3).contiguous().realize()
        places = (Tensor.arange(3).float() + scaled).realize()
        read = Tensor(np.ones(3, np.float32)) + places
        read.numpy()
        older = (w * scaled).realize()
    assert (w * scaled + room * w + w * read).sum().gradient(w)[0].tolist() == [3, 6, 9]
    assert (read * older.detach()).sum().gradient(read)[0].tolist() == [1, 4, 9]
    with pytest.raises(RuntimeError, match="computed"):
        (read * older).sum().gradient(w)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_unmarked_targets_get_the_gradients_of_marked_ones(first: int) -> None:
    answers = 0
    for seed in range(first, first + 20):
        (wanted, targets), (loss, unmarked) = (_partly_realized(seed, marked) for marked in (True, False))
        try:
            found = loss.gradient(*unmarked, materialize_grads=True)
        except RuntimeError as error:
            assert "after a target was created" in str(error)
            continue
        answers += 1
        for one, other in zip(found, wanted.gradient(*targets, materialize_grads=True)):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5)
    assert 3 <= answers <= 17


def _partly_realized(seed: int, marked: bool) -> tuple[Tensor, list[Tensor]]:
    """A random sum of what was computed of tensors of all kinds, some of which, made at some time, are targets."""
    chance = random.Random(seed)
    Tensor.manual_seed(seed)
    first = Tensor([1.0, 2.0, 3.0], requires_grad=marked or None)
    pool, targets = [first], [first]
    for _ in range(chance.randint(4, 10)):
        kind = chance.randrange(8)
        a, b = chance.choice(pool), chance.choice(pool)
        made = (
            lambda a, b: Tensor.rand(3),
            lambda a, b: Tensor.full((3,), 2.0).contiguous(),
            lambda a, b: Tensor.arange(3).float(),
            lambda a, b: Tensor.rand(3) + 1,
            lambda a, b: a * b,
            lambda a, b: a.relu() + b.sin(),
            lambda a, b: a.detach() * 1.5,
            lambda a, b: b.to("LLVM:1").to(a.device) * 2,
        )[kind](a, b)
        if kind < 4 and chance.random() < 0.3:
            targets.append(made.requires_grad_() if marked else made)
        pool.append(made)
        if chance.random() < 0.2:
            chance.choice(pool).realize(chance.choice(pool))
    chosen = [one for one in pool if chance.random() < 0.4]
    return sum([one.sum() for one in chosen], first.sum()), targets


def test_weights_from_a_file_are_data(tmp_path: Path) -> None:
    x = Tensor([1.0, 2.0])
    nn.state.safe_save({"w": Tensor([3.0, 4.0])}, str(tmp_path / "w.safetensors"))
    w = nn.state.safe_load(str(tmp_path / "w.safetensors"))["w"].to(x.device).realize()
    assert (x * w).sum().gradient(x)[0].tolist() == [3, 4]


def test_results_of_a_captured_function_are_not_constants() -> None:
    double = TinyJit(lambda x: (x * 2).realize())
    for _ in range(4):
        x = Tensor([3.0]).realize()
        with pytest.raises(RuntimeError, match="computed"):
            (double(x) * x).sum().gradient(x)


def test_a_captured_function_may_compute_gradients() -> None:
    w = Tensor([1.0, 2.0]).realize()

    @TinyJit
    def slope(x: Tensor) -> Tensor:
        return (x * w.relu()).square().sum().gradient(x)[0].realize()

    for value in range(4):
        assert slope(Tensor([value, 1.0]).realize()).tolist() == [2 * value, 8]


def test_symbolic_sizes() -> None:
    size = Variable("n", 1, 5).bind(3)
    x = Tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    (slope,) = x[:size].square().sum().gradient(x)
    assert slope.tolist() == [2, 4, 6, 0, 0]


# *** what is no target ***


def test_an_unused_target_raises_an_error_or_gets_zeros() -> None:
    x, y, loss = Tensor([1.0]), Tensor([[1.0]]), Tensor([1.0])
    loss = (x * 2 + y.detach()).sum()
    with pytest.raises(RuntimeError, match=r"^gradient: target 1 was not used.*; material"):
        loss.gradient(x, y)
    assert [one.tolist() for one in loss.gradient(x, y, materialize_grads=True)] == [[2], [[0]]]


def test_a_target_that_was_assigned_since_raises_an_error() -> None:
    x = Tensor([1.0])
    loss = (x * x).sum()
    x.assign(Tensor([2.0]))
    for materialize in (False, True):
        with pytest.raises(RuntimeError, match="^gradient: target 0 was assigned to, .*" + MARK):
            loss.gradient(x, materialize_grads=materialize)
    y = Tensor([1.0])
    y.assign(x * 5)
    assert y.sum().gradient(x)[0].item() == 5
    assert [one.item() for one in (y + x).sum().gradient(x, y)] == [1, 1]  # as a target, a tensor of its own


@pytest.mark.parametrize("update", ["assigned", "detached"])
def test_manual_parameter_updates_work(update: str) -> None:
    w, b = Tensor([1.0]), Tensor([2.0])
    for _ in range(3):
        dw, db = (w * 3 + b).square().sum().gradient(w, b)
        if update == "assigned":
            w.assign(w - 0.01 * dw).realize(b.assign(b - 0.01 * db))
        else:
            w = (w - 0.01 * dw).detach().realize()
            b = (b - 0.01 * db).detach().realize()
    error = 5 * 0.8**3
    np.testing.assert_allclose([w.item(), b.item()], [1 - 0.3 * (5 - error), 2 - 0.1 * (5 - error)], rtol=1e-5)


def test_only_floats_on_devices_that_compute() -> None:
    x = Tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="^gradient: target 1 .*int32: only floats"):
        x.sum().gradient(x, Tensor([1]))
    with pytest.raises(TypeError, match="^gradient: .*of bool"):
        (x.sum() > 0).gradient(x)
    with pytest.raises(RuntimeError, match="reduce it to a scalar"):
        (x * 2).gradient(x)
    with pytest.raises(RuntimeError, match="^gradient: target 0 lies on NPY; " + MARK):
        x.sum().gradient(x.to("NPY"))


def test_an_operation_without_a_gradient_raises_an_error() -> None:
    x = Tensor(np.eye(2) + 0.5)
    with pytest.raises(RuntimeError, match="^bitcast has no gradient"):
        (x + x.bitcast("int64").bitcast("float64")).sum().gradient(x)


def test_marked_and_unmarked_targets_cannot_be_mixed() -> None:
    x, w = Tensor([1.0]), Tensor([2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"targets \[0\] .*gradient"):
        (x * w).sum().gradient(x)
    with pytest.raises(RuntimeError, match=r"targets \[1\] .*gradient"):
        (x * 2).sum().gradient(w, x)


def test_gradients_are_computed_in_inference_mode() -> None:
    with Tensor.inference_mode():
        x = Tensor([-1.0, 0.0, 2.0])
        (slope,) = (x.relu() * x).sum().gradient(x)
    assert slope.tolist() == [0, 0, 4]


# *** what it costs ***


def test_a_realized_tensor_keeps_no_intermediate_alive() -> None:
    x = Tensor([1.0, 2.0])
    held = x.exp()
    known = held.sigmoid() + held.abs()
    known.realize()
    alive = weakref.ref(held.lazydata)
    del held
    assert alive() is None


def test_copies_are_differentiated_too() -> None:
    x = Tensor([0.0, 2.0])
    loss = (x.relu() * x.sigmoid()).sum()
    for again in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
        y, copied = again((x, loss))
        assert copied.gradient(y)[0].tolist() == loss.gradient(x)[0].tolist()
    hidden = (x * 2).realize()
    with pytest.raises(RuntimeError, match="computed"):
        (copy.deepcopy(hidden) * x).sum().gradient(x)


def test_nodes_are_numbered_in_creation_order() -> None:
    first, second = (LazyBuffer.const(0.0, Tensor([1.0]).dtype, "LLVM") for _ in range(2))
    assert first.number < second.number


def test_a_realized_detached_tensor_is_not_copied() -> None:
    x = Tensor([1.0, 2.0]).realize()
    detached = x.detach()
    assert detached.lazydata.buffer is x.lazydata.buffer
    assert (detached * x).sum().gradient(x)[0].tolist() == [1, 2]
    later = (x * 2).detach().realize()  # realized since: a constant all the same
    assert (later * x).sum().gradient(x)[0].tolist() == [2, 4]

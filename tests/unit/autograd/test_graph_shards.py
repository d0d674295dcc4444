"""Gradients of unmarked targets on several devices: the same as on one device."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.autograd import test_graph, test_second_gradients
from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.lazy import ShardedBuffer, collective

DEVICES = ("LLVM:0", "LLVM:1", "LLVM:2")
RANDOM = np.random.default_rng(0)
Place = Callable[[Tensor], Tensor]


def values_of(*shape: int) -> np.ndarray:
    return RANDOM.normal(size=shape)


def compare(
    model: Callable[..., Tensor], given: list[np.ndarray], places: list[Place], *, is_second_asked: bool = True
) -> None:
    """The gradients, and those of their squares, are the same wherever the tensors are put."""

    def both(places: list[Place]) -> list[np.ndarray]:
        there = [place(Tensor(array)) for place, array in zip(places, given)]
        first = model(*there).gradient(*there)
        if not is_second_asked:
            return [one.numpy() for one in first]
        total = sum([one.square().sum().to("LLVM") for one in first], Tensor(0.0, dtype="float64"))
        second = total.gradient(*there)
        first[0].realize(*first[1:], *second)
        return [one.numpy() for one in (*first, *second)]

    for found, wanted in zip(both(places), both([lambda x: x] * len(given))):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def along(axis: int | None) -> Place:
    return lambda x: x.shard(DEVICES, axis)


@pytest.mark.parametrize("axes", [(0, None), (1, 0), (None, 1), (0, 0), (None, None)])
def test_matmul(axes: tuple[int | None, int | None]) -> None:
    compare(
        lambda x, w: (x @ w).relu().square().mean(), [values_of(6, 4), values_of(4, 5)], [along(one) for one in axes]
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_convolution_and_batchnorm(axis: int) -> None:
    def loss(x: Tensor, w: Tensor, scale: Tensor) -> Tensor:
        y = x.conv2d(w, padding=1, stride=(1, 2))
        centered = y - y.mean((0, 2, 3), keepdim=True)
        y = y.batchnorm(scale, None, y.mean((0, 2, 3)), (centered.square().mean((0, 2, 3)) + 0.1).rsqrt())
        return y.tanh().sum()

    given, places = (
        [values_of(3, 3, 5, 6), values_of(3, 3, 3, 3), values_of(3)],
        [along(axis), along(None), along(None)],
    )
    compare(loss, given, places, is_second_asked=False)


def test_a_loss_over_shards() -> None:
    """Rows of an embedding that is divided by its rows, and a mean over all labels."""
    tokens, labels = np.array([[0, 3, 8], [7, 7, 1], [2, 5, 6]]), np.array([0, 2, 1])

    def loss(table: Tensor, w: Tensor) -> Tensor:
        here, names = (Tensor(one) for one in (tokens, labels))
        if isinstance(table.device, tuple):
            here, names = here.shard(DEVICES, 0), names.shard(DEVICES, 0)
        return (table[here].mean(1) @ w).sparse_categorical_crossentropy(names)

    compare(loss, [values_of(9, 4), values_of(4, 3)], [along(0), along(None)])


def test_ring_allreduce_has_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collective, "MIN_RING_ELEMENTS", 1)
    compare(
        lambda x, w: (x @ w).exp().sum(0).square().mean(), [values_of(6, 4), values_of(4, 5)], [along(0), along(None)]
    )


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("name", ["signs", "ties", "products of zeros", "orders", "rows and columns", "pooled"])
def test_where_a_derivative_jumps(name: str, axis: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    values = test_graph.AT["ties and zeros"]
    found = []
    for there in (True, False):
        x = Tensor(values)
        if there:
            monkeypatch.setattr(test_graph, "PLACES", test_second_gradients.PLACES.shard(DEVICES))
        out = test_graph.CORNERS[name](x.shard(DEVICES, axis) if there else x)
        monkeypatch.undo()
        weights = Tensor(np.linspace(0.5, 1.5, out.numel())).reshape(out.shape)
        (slope,) = out.gradient(x, gradient=weights.to(out.device))
        found.append(slope.numpy())
    np.testing.assert_allclose(*found, rtol=1e-12)


def test_targets_of_every_kind_at_once() -> None:
    x, w = Tensor([1.0, 2.0, 3.0]), Tensor([4.0])
    there, scale = x.shard(DEVICES, 0), w.shard(DEVICES)
    hidden = there * scale
    loss = (hidden * hidden).sum()
    found = loss.to("LLVM").gradient(x, there, hidden, scale, w, loss)
    found += there.relu().sum().gradient(x)
    found[0].realize(*found[1:])
    assert [one.tolist() for one in found] == [[32, 64, 96]] * 2 + [[8, 16, 24]] + [[8 * 14]] * 2 + [1, [1, 1, 1]]


def test_realized_intermediates_have_gradients() -> None:
    x, data = Tensor([1.0, 2.0, 3.0]), Tensor([2.0, 3.0, 4.0])
    there, given = x.shard(DEVICES, 0).realize(), data.shard(DEVICES, 0).realize()
    hidden = there * 2
    loss = (hidden * there * given).sum()
    assert loss.gradient(there)[0].tolist() == [8, 24, 48]
    with pytest.raises(RuntimeError, match="after a target was created"):
        loss.gradient(x)  # how it came there is forgotten
    hidden.realize()
    with pytest.raises(RuntimeError, match="after a target was created"):
        (hidden * there).sum().gradient(there)
    assert (there * hidden.detach() * given).sum().gradient(there, given)[0].tolist() == [4, 12, 24]
    with pytest.raises(RuntimeError, match="its graph is gone"):
        (there * given).sum().gradient(data)


def test_a_realized_tensor_frees_its_sources() -> None:
    x = Tensor.ones(6, 2).contiguous().realize().shard(DEVICES, 0).realize()
    held = (x * 3).contiguous()
    alive = weakref.ref(held.lazydata)
    y, flipped, one = held + 1, (held + 2).flip(0), (held.sum() * 2).to("LLVM")
    del held
    y.realize(flipped, one)
    gc.collect()
    assert alive() is None and one.item() == 72


def test_manual_training_equals_training_on_one_device() -> None:
    """Unmarked weights on each device, a batch in parts; eagerly and by TinyJit."""
    x, labels = values_of(4, 6, 4).astype(np.float32), RANDOM.integers(0, 3, (4, 6))

    def trained(
        place: Callable[[Tensor, int | None], Tensor], wrap: Callable[..., Callable[..., Tensor]]
    ) -> np.ndarray:
        Tensor.manual_seed(1)
        first, last = nn.Linear(4, 8), nn.Linear(8, 3)
        weights = [first.weight, first.bias, last.weight, last.bias]
        for weight in weights:
            weight.requires_grad = None
            weight.replace(place(weight, None)).realize()

        def step(batch: Tensor, names: Tensor) -> Tensor:
            loss = last(first(batch).relu()).sparse_categorical_crossentropy(names)
            for weight, slope in zip(weights, loss.gradient(*weights)):
                weight.assign(weight - 0.1 * slope)
            return loss.realize(*weights)

        run = wrap(step)
        return np.array(
            [run(place(Tensor(a), 0).realize(), place(Tensor(b), 0).realize()).item() for a, b in zip(x, labels)]
        )

    def one(x: Tensor, axis: int | None) -> Tensor:
        return x

    def several(x: Tensor, axis: int | None) -> Tensor:
        return x.shard(DEVICES, axis)

    wanted = trained(one, lambda step: step)
    for wrap in (lambda step: step, TinyJit):
        np.testing.assert_allclose(trained(several, wrap), wanted, rtol=1e-5)
    assert wanted[-1] != wanted[0]


def test_the_repr_of_a_lazy_value_names_its_operation() -> None:
    x = Tensor.ones(6, 2).shard(DEVICES, 0)
    assert repr(x + 1) == f"<Tensor (6, 2) float32 on {x.device}, lazy ADD>"
    same = x.contiguous()
    assert isinstance(same.lazydata, ShardedBuffer) and same.contiguous() is same

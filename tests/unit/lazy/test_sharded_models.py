"""Layers, optimizers and whole models on several instances: the same as on one, eagerly and replayed by TinyJit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.ops.support import random_array
from tinyexplore import Tensor, TinyJit, nn
from tinyexplore.jit import JitError
from tinyexplore.lazy import ShardedBuffer
from tinyexplore.nn import optim
from tinyexplore.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

INSTANCES = tuple(f"LLVM:{number}" for number in range(4))


class Small:
    """Embedding, attention, convolution, batch and layer norm, dropout, cross-entropy."""

    def __init__(self) -> None:
        self.table, self.norm = nn.Embedding(9, 8), nn.LayerNorm(8)
        self.query, self.key, self.value = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.conv, self.batch_norm = nn.Conv1d(8, 6, 3, padding=1, bias=False), nn.BatchNorm(6)
        self.last = nn.Linear(6, 5)

    def loss(self, tokens: Tensor, classes: Tensor) -> Tensor:
        x = self.norm(self.table(tokens))
        q, k, v = (one(x).reshape(x.shape[0], -1, 2, 4).transpose(1, 2) for one in (self.query, self.key, self.value))
        x = x + q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
        x = self.batch_norm(self.conv(x.transpose(1, 2))).relu().dropout(0.25)
        return self.last(x.max(2)).sparse_categorical_crossentropy(classes, label_smoothing=0.1)


class Tiny:
    """Two layers behind an embedding."""

    def __init__(self) -> None:
        self.table, self.first, self.last = nn.Embedding(9, 4), nn.Linear(4, 8), nn.Linear(8, 5)

    def loss(self, tokens: Tensor, classes: Tensor) -> Tensor:
        return self.last(self.first(self.table(tokens)).tanh().mean(1)).sparse_categorical_crossentropy(classes)


def layouts(model: Any) -> dict[str, Any]:
    return {
        name: tensor.lazydata.layout
        for name, tensor in get_state_dict(model).items()
        if isinstance(tensor.lazydata, ShardedBuffer)
    }


def trained(
    kind: type[Small] | type[Tiny],
    devices: tuple[str, ...] | None,
    make: Callable[[list[Tensor]], optim.Optimizer],
    micro: int,
    axis: int | None,
) -> tuple[list[float], dict[str, np.ndarray]]:
    """Losses and final state of three steps, each on several micro batches whose gradients are summed."""
    Tensor.manual_seed(4)
    model = kind()
    rng = np.random.default_rng(1)
    tokens, classes = rng.integers(0, 9, (3, micro, 8, 5)), rng.integers(0, 5, (3, micro, 8))
    if devices is not None:
        for tensor in get_parameters(model):
            tensor.shard_(devices, axis if tensor.ndim and tensor.shape[0] >= len(devices) else None)
    optimizer = make(get_parameters(model))
    before = layouts(model)

    def step(x: list[Tensor], y: list[Tensor]) -> Tensor:
        optimizer.zero_grad()
        losses = [model.loss(words, names).backward() for words, names in zip(x, y)]
        optimizer.step()
        return sum(losses[1:], losses[0]).realize()

    run, losses = (step if devices is None else TinyJit(step)), []
    with Tensor.train():
        for given in zip(tokens, classes):
            words, names = ([Tensor(one.astype(np.int32)) for one in part] for part in given)
            if devices is not None:
                words, names = ([one.shard(devices, 0) for one in part] for part in (words, names))
            losses.append(run(words, names).item())
    assert layouts(model) == before, "a step leaves the parts where they are"
    return losses, {name: tensor.numpy() for name, tensor in get_state_dict(model).items()}


@pytest.mark.parametrize(
    "kind, make, count, micro, axis",
    [
        (Small, lambda p: optim.SGD(p, 0.05, 0.9, nesterov=True), 2, 2, None),
        (Small, lambda p: optim.AdamW(p, 0.01), 3, 1, 0),
        (Tiny, lambda p: optim.LAMB(p, 0.01, weight_decay=0.01), 4, 1, 0),
        (Tiny, lambda p: optim.Muon(p, 0.01), 2, 1, 0),
    ],
    ids=["SGD", "AdamW", "LAMB", "Muon"],
)
def test_sharded_training_equals_training_on_one_device(
    kind: type[Small] | type[Tiny],
    make: Callable[[list[Tensor]], optim.Optimizer],
    count: int,
    micro: int,
    axis: int | None,
) -> None:
    """By TinyJit: the first step is an ordinary one, the second is captured, the third is a replay."""
    expected, values = trained(kind, None, make, micro, None)
    losses, found = trained(kind, INSTANCES[:count], make, micro, axis)
    np.testing.assert_allclose(losses, expected, rtol=2e-3)
    for key, value in values.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-2, atol=2e-3, err_msg=key)


def test_dropout_of_shards_equals_dropout_of_the_whole() -> None:
    x = random_array((12, 5))
    found = []
    for devices in (None, INSTANCES[:2], INSTANCES[:3]):
        Tensor.manual_seed(2)
        tensor = Tensor(x) if devices is None else Tensor(x).shard(devices, 0)
        with Tensor.train():
            found.append(tensor.dropout(0.5).numpy())
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_a_jit_replays_sharded_arguments_and_refuses_others() -> None:
    scale = Tensor(random_array((6, 4))).shard(INSTANCES[:3], 0).realize()

    @TinyJit
    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        return (x * scale).sum(0).realize(), x.flip(0).exp().realize()

    for number in range(5):
        array, factor = random_array((6, 4)), scale.numpy()
        total, turned = both(Tensor(array).shard(INSTANCES[:3], 0))
        np.testing.assert_allclose(total.numpy(), (array * factor).sum(0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(turned.numpy(), np.exp(array[::-1]), rtol=1e-5)
        if number == 2:
            scale.assign(scale * 2).realize()  # followed, part by part
    for other in (
        Tensor(array).shard(INSTANCES[:3], 0, (1, 2, 3)),
        Tensor(array).shard(INSTANCES[:3]),
        Tensor(array).shard(INSTANCES[:3], 1),
        Tensor(array).shard(INSTANCES[:2], 0),
        Tensor(array),
    ):
        with pytest.raises(JitError, match=r"argument 0 .*\(6, 4\) float32 on .*parts of 2, 2, 2"):
            both(other)
    total, _ = both(Tensor(array).shard(INSTANCES[:3], 0))
    np.testing.assert_allclose(total.numpy(), (array * scale.numpy()).sum(0), rtol=1e-4, atol=1e-5)


def test_a_jit_assigns_to_sharded_arguments_and_is_pickled() -> None:
    import pickle

    count = Tensor.zeros(4, 2).shard(INSTANCES[:2], 0).contiguous().realize()

    @TinyJit
    def count_up(x: Tensor) -> Tensor:
        count.assign(count + x).realize()
        return (count * 2).realize()

    one = Tensor.ones(4, 2).shard(INSTANCES[:2], 0).realize()
    for number in range(1, 6):
        assert (count_up(one).numpy() == 2 * number).all() and (count.numpy() == number).all()
    again = pickle.loads(pickle.dumps(count_up))
    assert (again(one).numpy() == 12).all() and (count.numpy() == 5).all()
    moved = TinyJit(lambda x: x.assign(x + 1).realize())
    for number in range(1, 5):
        assert (moved(one).numpy() == 1 + number).all() and (one.numpy() == 1 + number).all()


def test_divided_weights_are_saved_and_loaded(tmp_path: Path) -> None:
    Tensor.manual_seed(0)
    first, second = Small(), Small()
    for place, tensor in enumerate(get_parameters(first)):
        tensor.shard_(INSTANCES[:2], place % tensor.ndim if tensor.ndim else None)
    safe_save(get_state_dict(first), str(tmp_path / "model"))
    for tensor in get_parameters(second):
        tensor.shard_(INSTANCES[1:4], 0 if tensor.ndim else None)
    before = layouts(second)
    load_state_dict(second, safe_load(str(tmp_path / "model")), verbose=False)
    assert layouts(second) == before
    for (name, a), b in zip(get_state_dict(first).items(), get_parameters(second)):
        np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=name)

"""Tensors on several instances of a device: the same values, gradients and training as on one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import random_array, thorough
from tinyexplore import Context, Device, Tensor, capture, nn
from tinyexplore.engine import compile_item
from tinyexplore.lazy import ShapeError, ShardedBuffer
from tinyexplore.lazy import collective as module
from tinyexplore.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save

TWO, THREE, FOUR = ("LLVM:0", "LLVM:1"), ("LLVM", "CLANG", "LLVM:1"), ("PYTHON", "LLVM", "LLVM:1", "PYTHON:1")


def axis_of(tensor: Tensor) -> int | None:
    assert isinstance(tensor.lazydata, ShardedBuffer)
    return tensor.lazydata.axis


PROGRAMS: list[Callable[[Any], Any]] = [
    lambda x: x + 1,
    lambda x: (x * x).sum(),
    lambda x: x.sum(0),
    lambda x: x.max(1),
    lambda x: x.mean((0, 2)),
    lambda x: x.reshape(4, 12),
    lambda x: x.reshape(2, 2, 12),
    lambda x: x.reshape(-1),
    lambda x: x.reshape(2, 24),
    lambda x: x.permute(2, 0, 1),
    lambda x: x[1:3],
    lambda x: x[:, 1:],
    lambda x: x.flip(0),
    lambda x: x.flip(1),
    lambda x: x.pad(((1, 0), (0, 2), (0, 0))),
    lambda x: x.softmax(-1),
    lambda x: x.softmax(0),
    lambda x: x.cumsum(0),
    lambda x: x.cumsum(1),
    lambda x: x.cat(x, dim=0),
    lambda x: x[[0, 3]],
    lambda x: x.permute(1, 0, 2) @ x.permute(1, 2, 0),
    lambda x: (x > 0).where(x, -x).cast("int32"),
    lambda x: x.argmax(0),
    lambda x: x.diagonal(0, 1, 2) if x.shape[1] == x.shape[2] else x,
    lambda x: x.repeat(2, 1, 1),
    lambda x: x.unsqueeze(0).expand(3, 4, 3, 4),
    lambda x: x.half().float().bitcast("int32"),
    lambda x: -(x - x),
    lambda x: x[3],
    lambda x: x[1],
    lambda x: x[..., 1:],
    lambda x: x[::2],
    lambda x: x[1::2, ::-1],
    lambda x: x[:, :, [2, 0, 2, -1]],
    lambda x: x[Tensor([[1, 3], [0, 0]], device=x.device)],
    lambda x: x.flip(0, 2),
    lambda x: x.cat(x[1:3] * 2, x, dim=0),
    lambda x: x.stack(x + 1, dim=1),
    lambda x: x.roll(1, 0),
    lambda x: x.cumprod(2),
    lambda x: x.cummax(0)[0],
    lambda x: x.logcumsumexp(2),
    lambda x: x.unfold(0, 2, 1),
    lambda x: x.unsqueeze(0).avg_pool2d((2, 2), stride=1),
    lambda x: x.unsqueeze(0).max_pool2d((1, 3), padding=1),
    lambda x: x.pad((1, 2, 0, 0), mode="circular"),
    lambda x: x.sort(0)[0],
    lambda x: x.topk(2)[1],
    lambda x: x.split([1, 3])[1],
    lambda x: x.chunk(2, 2)[0].relu(),
    lambda x: x.transpose(0, 2).reshape(4, 12).T,
    lambda x: x.repeat_interleave(2, 0),
    lambda x: x.clone() + x.contiguous(),
    lambda x: x.tril(),
    lambda x: x.var(0) + x.std((1, 2)).mean(),
    lambda x: x.gather(2, x.argmax(2, keepdim=True)),
    lambda x: x.scatter(0, Tensor([[[0, 1, 2, 3]]], device=x.device), 7.0),
    lambda x: x.scatter_reduce(0, x.int().abs() % 4, x, "sum"),
    lambda x: x.full_like(2).scatter_reduce(2, x.int().abs() % 4, x + 1, "amax", include_self=False),
    lambda x: Tensor.ones(3, *x.shape[1:], device=x.device).scatter_reduce(0, x.int().abs() % 4, x, "prod"),
    lambda x: x.reshape(4, 12).one_hot(3) if x.dtype.name == "int32" else x.int().abs().one_hot(6),
    lambda x: Tensor.einsum("ijk,ljk->il", x, x),
    lambda x: x.zeros_like() + x.full_like(3),
    lambda x: x[:0],
    lambda x: x.pow(2).prod(0),
    lambda x: x.log_softmax(0).logsumexp(2),
]


@thorough
@given(st.data())
def test_a_sharded_program_equals_the_program_on_one_device(data: st.DataObject) -> None:
    array = random_array((4, 3, 4))
    first, second = data.draw(st.lists(st.sampled_from(PROGRAMS), min_size=2, max_size=2))
    axis = data.draw(st.sampled_from([None, 0, 2]))
    devices = data.draw(st.sampled_from([TWO, THREE, FOUR]))
    for program in (first, second):
        expected = program(Tensor(array, device="LLVM"))
        found = program(Tensor(array, device="LLVM").shard(devices, axis))
        assert found.shape == expected.shape and found.dtype is expected.dtype
        assert found.device == tuple(Device.canonicalize(one) for one in devices)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.to("LLVM").numpy(), found.numpy(), rtol=1e-5, atol=1e-6)


def test_only_necessary_data_moves() -> None:
    x, w = Tensor(random_array((4, 6))).shard(TWO, 0), Tensor(random_array((6, 4))).shard(TWO)
    product = (x @ w).relu()
    assert axis_of(product) == 0 and axis_of(product.T.reshape(2, 2, 4)) == 2 and axis_of(product.sum(0)) is None
    kernels = product.schedule()
    assert sorted(item.device for item in kernels if not item.is_copy) == ["LLVM", "LLVM", "LLVM:1"]
    assert sum(item.is_copy for item in kernels) == 2, "a part of x, which is packed before, and w"
    column = Tensor(random_array((6, 4))).shard(TWO, 1)
    assert axis_of(x.to(None).shard(TWO) @ column) == 1, "columns of a matrix may be divided too"
    assert axis_of(w.shrink(((0, 6), (0, 2)))) is None


def copied_bytes(tensor: Tensor) -> int:
    return sum(item.buffers[0].nbytes for item in tensor.schedule() if item.is_copy)


def test_movements_of_the_sharded_axis_copy_the_necessary_bytes() -> None:
    x = Tensor(random_array((12, 5))).shard(("LLVM", "LLVM:1", "LLVM:2"), 0).realize()
    for stays in (x[1:], x[2:11], x[::2], x.pad(((1, 2), None)), x[:, 1:], x.permute(1, 0), x.reshape(3, 4, 5)):
        assert axis_of(stays) is not None and copied_bytes(stays) == 0
    row = x.shape[1] * 4
    assert copied_bytes(x.flip(0)) == 2 * 4 * row, "the middle part stays"
    assert copied_bytes(x[5]) == 2 * row and copied_bytes(x[3:6]) == (1 + 2 + 3) * row
    assert copied_bytes(x.unfold(0, 3, 1)) == 2 * 2 * row and axis_of(x.unfold(0, 3, 1)) == 0
    assert copied_bytes(x.cumsum(0)) == 3 * row and axis_of(x.cumsum(0)) == 0
    few = x[Tensor([0, 11], device=x.device)]
    assert copied_bytes(few) == 6 * 2 * row + 16, "of a table, what is found in each part, and the index"
    assert copied_bytes(x[1:].assign(x[:-1] * 2)) <= 3 * 2 * row, "one row moves over each border, and back"


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_writing_to_parts_of_a_sharded_tensor(axis: int | None) -> None:
    array, values = random_array((5, 4)), random_array((3, 2))
    x, expected = Tensor(array).shard(THREE, axis).realize(), array.copy()
    layout = x.lazydata.layout  # type: ignore[attr-defined]
    expected[1:4, ::2] = values
    x[1:4, ::2] = Tensor(values).shard(THREE)
    expected[2] = 3
    x[2] = 3
    expected[[0, 4], 1] = [5, 6]
    x[[0, 4], 1] = Tensor([5.0, 6.0]).shard(THREE)
    np.testing.assert_array_equal(x.numpy(), expected)
    expected[1:3] = values[:, :1].T[:, :1]
    x[1:3].assign(Tensor(np.broadcast_to(values[:, :1].T[:, :1], (2, 4)).copy()).shard(THREE, 1))
    np.testing.assert_array_equal(x.numpy(), expected)
    x.assign(Tensor(array).shard(THREE, 1))
    np.testing.assert_array_equal(x.numpy(), array)
    assert x.lazydata.layout == layout, "assigning leaves it divided as it is"  # type: ignore[attr-defined]


def test_uneven_shards_and_shards_of_another_tensor() -> None:
    array = random_array((7, 5))
    for devices, splits in ((TWO, (6, 1)), (THREE, None), (FOUR, (1, 2, 3, 1))):
        x = Tensor(array).shard(devices, 0, splits)
        np.testing.assert_allclose((x.exp() @ x.T).sum(1).numpy(), (np.exp(array) @ array.T).sum(1), rtol=1e-4)
        y = (Tensor(array[:, :2]) * 2).shard_like(x)
        assert y.lazydata.layout == x.lazydata.layout and copied_bytes((x[:, :2] + y).realize()) == 0  # type: ignore[attr-defined]
        np.testing.assert_array_equal(x.to("PYTHON:2").shard_like(y[:, :1]).numpy(), array)
        np.testing.assert_array_equal(Tensor(array).shard(devices).shard_like(x).numpy(), array)
        assert x.shard_like(Tensor([1], device="LLVM:3")).device == "LLVM:3"
        assert x.zeros_like().lazydata.layout == x.lazydata.layout == x.rand_like().lazydata.layout  # type: ignore[attr-defined]
    assert [part.shape[0] for part in Tensor.ones(4).shard(THREE, 0).lazydata.parts] == [2, 1, 1]  # type: ignore[attr-defined]
    assert Tensor.ones(4).shard(("LLVM:1",), 0).device == "LLVM:1"


def test_negative_zero_and_nan_are_preserved() -> None:
    array = np.float32([[-0.0, np.nan], [0.0, -np.inf]])
    back = Tensor(array).shard(TWO, 0).numpy()
    np.testing.assert_array_equal(back.view(np.uint32), array.view(np.uint32))


def test_gradients_are_those_of_one_device() -> None:
    x, w = random_array((4, 3, 6, 6)), random_array((5, 3, 3, 3))

    def found(devices: tuple[str, ...] | None, axis: int | None = None) -> list[np.ndarray]:
        data, weight = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
        a, b = (data, weight) if devices is None else (data.shard(devices, axis), weight.shard(devices))
        ((a.conv2d(b, padding=1).relu() + a.mean()) ** 2).sum().backward()
        assert data.grad is not None and weight.grad is not None
        return [data.grad.numpy(), weight.grad.numpy()]

    for expected, *others in zip(found(None), found(TWO, 0), found(TWO, 2), found(TWO)):
        for other in others:
            np.testing.assert_allclose(other, expected, rtol=1e-4, atol=1e-4)


class Net:
    def __init__(self) -> None:
        self.conv, self.bn = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4)
        self.last = nn.Linear(4 * 16, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.bn(self.conv(x)).relu().flatten(1))


@pytest.mark.parametrize("make", [lambda p: nn.optim.SGD(p, 0.05, 0.9), lambda p: nn.optim.AdamW(p, 0.01)])
def test_training_on_parts_of_the_batch_is_training(make: Callable[[list[Tensor]], nn.optim.Optimizer]) -> None:
    x, y = random_array((8, 1, 6, 6)), np.arange(8, dtype=np.int32) % 3

    def trained(devices: tuple[str, ...] | None) -> dict[str, np.ndarray]:
        Tensor.manual_seed(5)
        net = Net()
        if devices is not None:
            for tensor in get_parameters(net):
                tensor.shard_(devices)
        optimizer = make(get_parameters(net))
        with Tensor.train():
            for _ in range(3):
                a, b = (Tensor(one) if devices is None else Tensor(one).shard(devices, 0) for one in (x, y))
                optimizer.zero_grad()
                net(a).sparse_categorical_crossentropy(b).backward()
                optimizer.step()
        return {name: tensor.numpy() for name, tensor in get_state_dict(net).items()}

    alone, together = trained(None), trained(TWO)
    for name, value in alone.items():
        np.testing.assert_allclose(together[name], value, rtol=2e-3, atol=2e-4, err_msg=name)


def test_weights_may_be_divided_and_loaded(tmp_path: Path) -> None:
    x, first, second = random_array((6, 4)), random_array((8, 4)), random_array((2, 8))

    def trained(is_sharded: bool) -> tuple[list[np.ndarray], list[Tensor]]:
        a, b, data = Tensor(first), Tensor(second), Tensor(x)
        if is_sharded:
            a.shard_(TWO, 0), b.shard_(TWO, 1), data.shard_(TWO)
        optimizer = nn.optim.AdamW([a, b], 0.05)
        for _ in range(3):
            optimizer.zero_grad()
            ((data @ a.T).relu() @ b.T).square().mean().backward()
            optimizer.step()
        return [a.numpy(), b.numpy()], [a, b]

    (alone, _), (found, tensors) = trained(False), trained(True)
    for one, other in zip(alone, found):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    assert [axis_of(tensor) for tensor in tensors] == [0, 1], "a step leaves the parts where they are"
    safe_save({"0": tensors[0]}, tmp_path / "x")
    new = [Tensor.zeros(8, 4).shard(TWO, 0)]
    load_state_dict(new, safe_load(tmp_path / "x"), verbose=False)
    assert axis_of(new[0]) == 0
    np.testing.assert_array_equal(new[0].numpy(), found[0])


def test_a_capture_shows_the_kernels_of_all_devices() -> None:
    x = Tensor(random_array((4, 3))).shard(TWO, 0).realize()
    with capture() as session:
        (x.exp().sum(0) * 2).realize()
    assert len(session.trace.kernels) >= 4
    first, second = ((x + 1).realize().cos() + 3).schedule()
    assert compile_item(first).runner is compile_item(second).runner, "compiled once for all instances"
    assert {first.device, second.device} == {"LLVM", "LLVM:1"}


def test_ring_allreduce_has_the_same_sum_on_every_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_RING_ELEMENTS", 1)
    array = random_array((4, 7))
    for count, op in ((3, "sum"), (4, "max")):
        devices = tuple(f"LLVM:{number}" for number in range(count))
        splits = (1, 2, 1) if count == 3 else None
        result = getattr(Tensor(array).shard(devices, 0, splits), op)(0).realize()
        assert isinstance(result.lazydata, ShardedBuffer)
        parts = [Tensor(part).numpy() for part in result.lazydata.parts]
        np.testing.assert_allclose(parts[0], getattr(array, op)(0), rtol=1e-5)
        assert all((part == parts[0]).all() for part in parts)


def test_random_numbers_are_the_same_stream() -> None:
    Tensor.manual_seed(3)
    alone = Tensor.rand(6, 4, device="LLVM").numpy()
    Tensor.manual_seed(3)
    np.testing.assert_array_equal(Tensor.rand(6, 4, device=TWO).numpy(), alone)
    assert Tensor.ones(3, device=TWO).shard_ is not None and Tensor([1, 2], device=TWO).tolist() == [1, 2]


def test_invalid_shardings_raise_an_error() -> None:
    x = Tensor.ones(4, 3).shard(TWO, 0)
    with pytest.raises(ValueError, match="LLVM, LLVM:1 and LLVM: shard both"):
        x + Tensor.ones(4, 3, device="LLVM")
    with pytest.raises(ShapeError, match="sum up to .*add up to 4"):
        Tensor.ones(4, 1).shard(TWO, 0, (1, 2))
    with pytest.raises(ValueError, match="need several devices"):
        Tensor.ones(4).shard("LLVM", 0)
    with pytest.raises(RuntimeError, match="cannot shard a multi-device tensor"):
        x.shard(TWO, 1)
    with pytest.raises(ValueError, match="repeated"):
        Tensor.ones(4).shard(("LLVM", "LLVM:0"), 0)
    with pytest.raises(IndexError, match="axis 3"):
        Tensor.ones(4).shard(TWO, 3)


def test_instances_have_names_of_their_own() -> None:
    assert Device.canonicalize("llvm:0") == "LLVM" and Device.canonicalize("python:2") == "PYTHON:2"
    x = Tensor([1, 2], device="LLVM:1")
    assert (x + 1).to("PYTHON:3").device == "PYTHON:3" and (x + 1).tolist() == [2, 3]
    with pytest.raises(ValueError, match="on LLVM:1 and LLVM"):
        x + Tensor([1, 2], device="LLVM")
    with pytest.raises(ValueError, match="after the colon"):
        Tensor([1], device="LLVM:x")
    with Context(DEVICE="LLVM:1"):
        assert Tensor([1]).device == "LLVM:1"


@pytest.mark.parametrize(("shape", "axis", "splits"), [((1, 3), 0, None), ((2,), 0, None), ((3, 2), 0, (3, 0, 0))])
def test_tensors_too_small_to_shard_are_replicated(shape: tuple[int, ...], axis: int, splits: Any) -> None:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = Tensor(values).shard(THREE, axis, splits)
    assert x.lazydata.axis is None and x.device == THREE  # type: ignore[attr-defined]
    np.testing.assert_array_equal((x + 1).numpy(), values + 1)
    assert x.max().item() == values.max()
    with pytest.raises(ShapeError, match="do not sum up"):
        Tensor(values).shard(THREE, axis, (shape[axis], 1, 0))

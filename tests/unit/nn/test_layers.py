"""Layers against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.support import random_array
from tinyexplore import Tensor, nn
from tinyexplore.nn.state import get_parameters, get_state_dict


def values(tensor: Tensor | None) -> np.ndarray:
    assert tensor is not None
    return tensor.numpy().astype(np.float64)


def test_linear() -> None:
    layer, x = nn.Linear(4, 3), random_array((2, 5, 4))
    np.testing.assert_allclose(
        layer(Tensor(x)).numpy(), x @ values(layer.weight).T + values(layer.bias), rtol=1e-4, atol=1e-5
    )
    assert nn.Linear(4, 3, bias=False).bias is None
    assert np.abs(values(layer.weight)).max() <= 0.5


def test_convolutions_have_as_many_axes_as_their_kernel() -> None:
    x = random_array((2, 2, 4, 5, 6))
    layer = nn.Conv2d(2, 3, (2, 3, 2), stride=(1, 2, 1), padding="valid")
    assert layer.weight.shape == (3, 2, 2, 3, 2) and layer(Tensor(x)).shape == (2, 3, 3, 2, 5)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), (2, 3, 4))[:, :, :, ::2]
    expected = (
        np.einsum("bidhwxyz,oixyz->bodhw", windows, values(layer.weight)) + values(layer.bias)[:, None, None, None]
    )
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-4)

    back = nn.ConvTranspose2d(2, 3, (2, 3, 2), stride=(2, 1, 2), output_padding=(1, 0, 1), bias=False)
    assert back.weight.shape == (2, 3, 2, 3, 2)
    expected = np.zeros((2, 3, 9, 7, 13), np.float32)
    for place in np.ndindex(4, 5, 6):
        spread = np.einsum("bi,ioxyz->boxyz", x[(..., *place)], values(back.weight))
        (d, h, w) = (at * step for at, step in zip(place, (2, 1, 2)))
        expected[:, :, d : d + 2, h : h + 3, w : w + 2] += spread
    np.testing.assert_allclose(back(Tensor(x)).numpy(), expected, rtol=1e-4, atol=1e-4)
    assert nn.Conv2d(1, 1, (3,))(Tensor.ones(1, 1, 5)).shape == (1, 1, 3)
    with pytest.raises(ValueError, match="need one int or 1"):
        nn.Conv1d(1, 1, (3, 3))


@pytest.mark.parametrize("training", [False, True])
def test_batchnorm_follows_the_batch_while_training(training: bool) -> None:
    layer, x = nn.BatchNorm(3), random_array((4, 3, 2, 2), -3, 5).astype(np.float64)
    with Tensor.train(training):
        found = layer(Tensor(x.astype(np.float32))).numpy()
    mean, var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    if training:
        np.testing.assert_allclose(values(layer.running_mean), 0.1 * mean, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(values(layer.running_var), 0.9 + 0.1 * var * 16 / 15, rtol=1e-4)
        assert layer.num_batches_tracked.item() == 1
    else:
        mean, var = np.zeros(3), np.ones(3)
    shape = (1, 3, 1, 1)
    np.testing.assert_allclose(
        found, (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5), rtol=1e-4, atol=1e-5
    )


def test_batchnorm_that_does_not_follow_uses_running_statistics_that_are_set() -> None:
    layer, x = nn.BatchNorm(3, track_running_stats=False), random_array((4, 3, 2), -3, 5)
    mean, var = x.mean((0, 2)), x.var((0, 2))
    by_the_batch = (x - mean[:, None]) / np.sqrt(var + 1e-5)[:, None]
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), by_the_batch, rtol=1e-4, atol=1e-5)
    layer.running_mean, layer.running_var = Tensor([1.0, 2.0, 3.0]), Tensor([4.0, 1.0, 0.25])
    by_the_set = (x - np.array([[1.0], [2], [3]])) / np.sqrt(np.array([[4.0], [1], [0.25]]) + 1e-5)
    np.testing.assert_allclose(layer(Tensor(x)).numpy(), by_the_set, rtol=1e-4, atol=1e-5)
    with Tensor.train():
        np.testing.assert_allclose(layer(Tensor(x)).numpy(), by_the_batch, rtol=1e-4, atol=1e-5)
    assert layer.running_mean.tolist() == [1, 2, 3]


def test_the_other_norms() -> None:
    x = random_array((2, 6, 3, 4), -3, 5).astype(np.float64)
    t = Tensor(x.astype(np.float32))

    def normal(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)

    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(nn.LayerNorm((3, 4))(t).numpy(), normal(x, (2, 3)), **close)
    np.testing.assert_allclose(nn.LayerNorm2d(6)(t).numpy(), normal(x, (1,)), **close)
    np.testing.assert_allclose(nn.InstanceNorm(6)(t).numpy(), normal(x, (2, 3)), **close)
    grouped = normal(x.reshape(2, 2, 36), (2,)).reshape(x.shape)
    np.testing.assert_allclose(nn.GroupNorm(2, 6)(t).numpy(), grouped, **close)
    rms = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    np.testing.assert_allclose(nn.RMSNorm(4)(t).numpy(), rms, **close)
    bare = nn.RMSNorm(4, elementwise_affine=False)
    np.testing.assert_allclose(bare(t).numpy(), rms, **close)
    assert get_parameters(bare) == []
    with pytest.raises(ValueError, match="the last axes have sizes"):
        nn.LayerNorm(3)(t)


def test_embedding_gathers_rows_and_has_gradients() -> None:
    layer = nn.Embedding(10, 4)
    layer.weight.requires_grad = True
    found = layer(Tensor([[1, 9], [0, 1]]))
    np.testing.assert_array_equal(found.numpy(), layer.weight.numpy()[[[1, 9], [0, 1]]])
    found.sum().backward()
    counts = np.zeros((10, 4))
    counts[[0, 9]], counts[1] = 1, 2
    np.testing.assert_array_equal(values(layer.weight.grad), counts)


def test_convolution_layers_have_the_shapes_of_their_geometry() -> None:
    x = Tensor.ones(2, 4, 9, 8)
    assert nn.Conv2d(4, 6, 3)(x).shape == (2, 6, 7, 6)
    assert nn.Conv2d(4, 6, (3, 1), stride=2, padding=1, groups=2)(x).shape == (2, 6, 5, 5)
    assert nn.Conv1d(4, 6, 3, dilation=2)(x[:, :, 0]).shape == (2, 6, 4)
    assert nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)(x).shape == (2, 6, 18, 16)
    assert nn.ConvTranspose1d(4, 6, 2, stride=2)(x[:, :, 0]).shape == (2, 6, 16)
    assert nn.Conv2d(4, 6, (4, 3), padding="same", dilation=2)(x).shape == (2, 6, 9, 8)
    assert nn.Conv1d(4, 6, 3, padding="valid", stride=2)(x[:, :, 0]).shape == (2, 6, 3)
    with pytest.raises(ValueError, match="must divide by groups"):
        nn.Conv2d(4, 6, 3, groups=4)
    with pytest.raises(ValueError, match="'same' with stride"):
        nn.Conv2d(4, 6, 3, padding="same", stride=2)


def test_convolution_layers_are_sums_over_windows() -> None:
    x = random_array((2, 4, 7, 6)).astype(np.float64)
    layer = nn.Conv2d(4, 6, (3, 2), stride=2, padding=1, dilation=(1, 2), groups=2)
    weight, padded = values(layer.weight), np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    expected = np.zeros((2, 6, 4, 3))
    for out, row, column in np.ndindex(6, 4, 3):
        group = slice(2 * (out // 3), 2 * (out // 3) + 2)
        window = padded[:, group, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3 : 2]
        expected[:, out, row, column] = (window * weight[out]).sum((1, 2, 3))
    expected += values(layer.bias).reshape(1, -1, 1, 1)
    np.testing.assert_allclose(layer(Tensor(x.astype(np.float32))).numpy(), expected, rtol=1e-4, atol=1e-5)
    back = nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)
    weight, spread = values(back.weight), np.zeros((2, 6, 16, 14))
    for place, row, column in np.ndindex(4, 7, 6):
        group = slice(3 * (place // 2), 3 * (place // 2) + 3)
        value = x[:, place, row, column].reshape(2, 1, 1, 1)
        spread[:, group, 2 * row : 2 * row + 3, 2 * column : 2 * column + 3] += value * weight[place]
    expected = spread[:, :, 1:15, 1:13] + values(back.bias).reshape(1, -1, 1, 1)
    np.testing.assert_allclose(back(Tensor(x.astype(np.float32))).numpy(), expected, rtol=1e-4, atol=1e-5)


def test_lstm_cell() -> None:
    cell, x = nn.LSTMCell(3, 2), random_array((4, 3))
    h, c = (random_array((4, 2), seed=i).astype(np.float64) for i in (1, 2))

    def sigmoid(x: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-x))

    gates = x @ values(cell.weight_ih).T + values(cell.bias_ih) + h @ values(cell.weight_hh).T + values(cell.bias_hh)
    i, f, g, o = np.split(gates, 4, axis=1)
    new_c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    found_h, found_c = cell(Tensor(x), (Tensor(h.astype(np.float32)), Tensor(c.astype(np.float32))))
    np.testing.assert_allclose(found_c.numpy(), new_c, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found_h.numpy(), sigmoid(o) * np.tanh(new_c), rtol=1e-4, atol=1e-5)
    assert [part.shape for part in cell(Tensor(x))] == [(4, 2), (4, 2)]


class Model:
    def __init__(self) -> None:
        self.layers = [nn.Linear(4, 3), nn.BatchNorm(3)]
        self.heads = {"a": nn.Linear(3, 2, bias=False), "b": (Tensor.ones(1), 3)}
        self.name = "model"


def test_a_state_dict_names_every_tensor_by_its_path() -> None:
    assert {name: tensor.shape for name, tensor in get_state_dict(Model()).items()} == {
        "layers.0.weight": (3, 4),
        "layers.0.bias": (3,),
        "layers.1.weight": (3,),
        "layers.1.bias": (3,),
        "layers.1.running_mean": (3,),
        "layers.1.running_var": (3,),
        "layers.1.num_batches_tracked": (),
        "heads.a.weight": (2, 3),
        "heads.b.0": (1,),
    }
    assert len(get_parameters(Model())) == 9
    assert list(get_state_dict(Tensor.ones(1), "x")) == ["x"]

"""Sorting, scattering and selecting, against NumPy and plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, check_gradient, computed, quick, random_array, shapes, tensor_on
from tinyexplore import Tensor
from tinyexplore.lazy.lazybuffer import ShapeError


@pytest.mark.parametrize("how", HOW)
def test_sorting_agrees_with_numpy(how: str) -> None:
    @quick
    @given(shapes(1, 3, 5), st.data(), st.booleans())
    def check(shape: tuple[int, ...], data: st.DataObject, descending: bool) -> None:
        x = random_array(shape, -3, 3, "int32").astype(np.float32)  # ties are likely
        axis = data.draw(st.integers(0, x.ndim - 1))
        values, places = tensor_on(how, x).sort(axis, descending)
        expected = np.argsort(-x if descending else x, axis, kind="stable")
        np.testing.assert_array_equal(computed(places, how), expected)
        np.testing.assert_array_equal(computed(values, how), np.take_along_axis(x, expected, axis))

    check()
    x = np.array([2.0, np.nan, -np.inf, 1.0, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(computed(tensor_on(how, x).sort()[0], how), np.sort(x))
    check_gradient(lambda t: t.sort(1)[0], random_array((2, 4)))


@pytest.mark.parametrize("how", HOW)
def test_topk(how: str) -> None:
    x = random_array((3, 7))
    values, places = tensor_on(how, x).topk(3, dim=1)
    np.testing.assert_array_equal(computed(values, how), -np.sort(-x, 1)[:, :3])
    np.testing.assert_array_equal(computed(places, how), np.argsort(-x, 1)[:, :3])
    smallest, _ = tensor_on(how, x).topk(2, dim=0, largest=False)
    np.testing.assert_array_equal(computed(smallest, how), np.sort(x, 0)[:2])
    with pytest.raises(ValueError, match="need 0 ≤ k ≤ 7"):
        Tensor(x).topk(8)


@pytest.mark.parametrize("how", HOW)
def test_running_products_and_extremes(how: str) -> None:
    x = random_array((4, 5), -2, 2, "int32").astype(np.float32)
    for axis in (0, 1):
        t = tensor_on(how, x)
        np.testing.assert_array_equal(computed(t.cumprod(axis), how), x.cumprod(axis))
        for found, kind in ((t.cummax(axis), np.maximum), (t.cummin(axis), np.minimum)):
            values, places = (computed(part, how) for part in found)
            np.testing.assert_array_equal(values, kind.accumulate(x, axis))
            np.testing.assert_array_equal(np.take_along_axis(x, places, axis), values)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("reduce", [None, "add", "multiply"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter(axis: int, reduce: str | None, how: str) -> None:
    x, source = random_array((4, 5)), random_array((3, 4), seed=1)
    index = random_array((3, 4), 0, 3, "int32", seed=2)
    expected = x.copy()
    for i, j in np.ndindex(index.shape):
        place = (index[i, j], j) if axis == 0 else (i, index[i, j])
        value = source[i, j]
        expected[place] = {None: value, "add": expected[place] + value, "multiply": expected[place] * value}[reduce]
    found = tensor_on(how, x).scatter(axis, tensor_on(how, index), tensor_on(how, source), reduce=reduce)
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-5, atol=1e-6)


def test_scatter_of_a_number_and_what_does_not_fit() -> None:
    assert Tensor.zeros(2, 3).scatter(1, Tensor([[2], [0]]), 1.5).tolist() == [[0, 0, 1.5], [1.5, 0, 0]]
    with pytest.raises(ShapeError, match="do not fit"):
        Tensor.zeros(2, 3).scatter(1, Tensor([[2], [0], [1]]), 1.5)
    with pytest.raises(ValueError, match="choose None, 'add' or 'multiply'"):
        Tensor.zeros(2, 3).scatter(1, Tensor([[2], [0]]), 1.5, reduce="max")


def test_selecting() -> None:
    x = random_array((3, 4))
    assert Tensor(x).masked_select(Tensor(x) > 0).tolist() == x[x > 0].tolist()
    np.testing.assert_array_equal((Tensor(x) > 0).nonzero().numpy(), np.argwhere(x > 0))
    assert Tensor.zeros(3).nonzero().shape == (0, 1)


def test_a_random_order_has_every_number_once() -> None:
    Tensor.manual_seed(1)
    first, second = Tensor.randperm(50).tolist(), Tensor.randperm(50).tolist()
    assert sorted(first) == sorted(second) == list(range(50)) and first != second


def test_axes_are_rearranged_by_name() -> None:
    x = random_array((2, 12, 5))
    found = Tensor(x).rearrange("b (h w) c -> b c h w", h=3)
    np.testing.assert_array_equal(found.numpy(), x.reshape(2, 3, 4, 5).transpose(0, 3, 1, 2))
    back = found.rearrange("b c h w -> b (h w) c")
    np.testing.assert_array_equal(back.numpy(), x)
    assert Tensor(x).rearrange("a b c -> (a b c) 1").shape == (120, 1)
    with pytest.raises(ShapeError, match="does not split"):
        Tensor(x).rearrange("b (h w) c -> b c h w", h=5)
    with pytest.raises(ValueError, match="must name the same axes"):
        Tensor(x).rearrange("a b c -> a b")

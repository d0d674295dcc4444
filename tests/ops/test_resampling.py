"""Interpolation against its definition, position by position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, Array, check_gradient, computed, quick, random_array, tensor_on
from tinyexplore import Tensor
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.uop import Ops
from tinyexplore.util import toposort

MODES = ("linear", "bicubic", "nearest", "nearest-exact", "area")


def keys(x: float) -> float:
    """The cubic convolution kernel with a = -0.75."""
    x = abs(x)
    if x <= 1:
        return 1.25 * x**3 - 2.25 * x**2 + 1
    return -0.75 * x**3 + 3.75 * x**2 - 6 * x + 3 if x < 2 else 0.0


def weights(have: int, wanted: int, mode: str, corners: bool) -> Array:
    """How much each of `have` elements counts for each of `wanted` places."""
    table = np.zeros((wanted, have))
    for i in range(wanted):
        middle = i * (have - 1) / max(wanted - 1, 1) if corners else (i + 0.5) * have / wanted - 0.5
        if mode == "nearest":
            table[i, i * have // wanted] = 1
        elif mode == "nearest-exact":
            table[i, min(math.floor(middle + 0.5), have - 1)] = 1
        elif mode == "area":
            start, stop = i * have // wanted, math.ceil((i + 1) * have / wanted)
            table[i, start:stop] = 1 / (stop - start)
        elif mode == "bicubic":
            for near in range(math.floor(middle) - 1, math.floor(middle) + 3):
                table[i, min(max(near, 0), have - 1)] += keys(middle - near)
        else:
            middle = min(max(middle, 0), have - 1)
            table[i] = np.maximum(1 - np.abs(np.arange(have) - middle), 0)
    return table


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mode", MODES)
def test_sampling_follows_its_definition(mode: str, how: str) -> None:
    @quick
    @given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 9), st.integers(1, 9), st.booleans())
    def check(rows: int, columns: int, new_rows: int, new_columns: int, corners: bool) -> None:
        corners = corners and mode in ("linear", "bicubic")
        x = random_array((2, rows, columns))
        options: dict[str, Any] = {"mode": mode, "align_corners": corners}
        found = computed(tensor_on(how, x).interpolate((new_rows, new_columns), **options), how)
        across = weights(columns, new_columns, mode, corners)
        expected = weights(rows, new_rows, mode, corners) @ x.astype(np.float64) @ across.T
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)

    check()


@pytest.mark.parametrize("mode", MODES)
def test_sampling_has_gradients(mode: str) -> None:
    check_gradient(lambda t: t.interpolate((5, 2), mode=mode), random_array((3, 4)))


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_the_weights_transposed(mode: str, corners: bool) -> None:
    """Each element adds up its samples: nothing is scattered, by the tape and by the graph."""
    if corners and mode not in ("linear", "bicubic"):
        pytest.skip("this mode has no corners")
    sizes = ((4, 8), (8, 4), (5, 7), (7, 5), (1, 6), (6, 1), (3, 17), (17, 3), (2, 2), (1, 1))
    inputs, results, expected = [], [], []
    for have, wanted in sizes:
        x, g = Tensor(random_array((2, have)), requires_grad=True), random_array((2, wanted), seed=1)
        results.append((x.interpolate((wanted,), mode, corners) * Tensor(g)).sum())
        expected.append(g.astype(np.float64) @ weights(have, wanted, mode, corners))
        inputs.append(x)
    total = sum(results[1:], results[0])
    graph = total.gradient(*inputs)
    total.backward()
    for x, found, wanted_gradient in zip(inputs, graph, expected):
        assert x.grad is not None
        for one in (x.grad, found):
            assert not any(node.op is Ops.SCATTER for node in toposort([one.lazydata], lambda node: node.src))
            np.testing.assert_allclose(one.numpy(), wanted_gradient, rtol=1e-4, atol=1e-5)


def test_gradients_of_positions_beyond_32_bits() -> None:
    """4 · 70 000 · 70 000 is no int32: places are computed with 64 bits."""
    x = Tensor(np.zeros((1, 70_000), np.float32), requires_grad=True)
    (found,) = x.interpolate((70_001,)).sum().gradient(x)
    np.testing.assert_allclose(found.numpy().sum(), 70_001, rtol=1e-5)
    assert abs(found.numpy()[0, 1:-1] - 1).max() < 0.6


def test_one_and_three_axes_and_other_names() -> None:
    x = random_array((2, 2, 3, 4))
    assert Tensor(x).interpolate((5,)).shape == (2, 2, 3, 5)
    three = Tensor(x).interpolate((4, 6, 8), mode="trilinear")
    assert three.shape == (2, 4, 6, 8)
    two = Tensor(x).interpolate((6, 8), mode="bilinear").numpy()
    np.testing.assert_array_equal(two, Tensor(x).interpolate((6, 8)).numpy())


def test_kinds_of_dtypes_are_preserved() -> None:
    assert Tensor([0, 10, 20]).interpolate((6,), mode="nearest").tolist() == [0, 0, 10, 10, 20, 20]
    assert Tensor([0, 10, 20]).interpolate((5,), align_corners=True).tolist() == [0, 5, 10, 15, 20]
    assert Tensor([math.inf, 1.0]).interpolate((4,), mode="nearest").tolist() == [math.inf, math.inf, 1.0, 1.0]


def test_invalid_sampling_raises_an_error() -> None:
    with pytest.raises(ValueError, match="mode 'cubic'; .*linear"):
        Tensor.ones(3).interpolate((2,), mode="cubic")
    with pytest.raises(ValueError, match="only linear and cubic"):
        Tensor.ones(3).interpolate((2,), mode="nearest", align_corners=True)
    with pytest.raises(ShapeError, match="1 to 1 sizes"):
        Tensor.ones(3).interpolate((2, 2))
    with pytest.raises(ShapeError, match="each 1 at least"):
        Tensor.ones(3).interpolate((0,))
    with pytest.raises(ShapeError, match="axis 0 has nothing to sample"):
        Tensor.ones(0).interpolate((2,))


def test_small_ints_are_rounded_to_nearest() -> None:
    x = np.array([[0, 90, 200, 255]], dtype=np.uint8)
    places = np.clip((np.arange(7) + 0.5) * 4 / 7 - 0.5, 0, 3)
    found = Tensor(x).interpolate((7,)).numpy()
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found[0], np.round(np.interp(places, np.arange(4), x[0])))

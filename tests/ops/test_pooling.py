"""Pooling with partial last windows, the indices of maxima, and unpooling."""

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


def windows(x: Array, kernel: int, stride: int, dilation: int, padding: int, ceil_mode: bool) -> list[list[list[Any]]]:
    """For each place the (row, column) of what its window reads; what is outside counts as padding or not at all."""
    sides = []
    for size in x.shape:
        reach = dilation * (kernel - 1) + 1
        room = size + 2 * padding - reach
        count = (math.ceil if ceil_mode else math.floor)(room / stride) + 1
        if ceil_mode and (count - 1) * stride >= size + padding:
            count -= 1
        sides.append([[o * stride - padding + k * dilation for k in range(kernel)] for o in range(count)])
    return [[[(r, c) for r in rows for c in columns] for columns in sides[1]] for rows in sides[0]]


def pooled(x: Array, places: list[list[list[Any]]], padding: int, kind: str) -> Array:
    height, width = x.shape

    def one(places: list[tuple[int, int]]) -> float:
        inside = [(r, c) for r, c in places if 0 <= r < height and 0 <= c < width]
        padded = [(r, c) for r, c in places if r < height + padding and c < width + padding]
        values = [x[place] for place in inside]
        if kind == "max":
            return max(values)
        if kind == "place":
            return next(r * width + c for r, c in inside if x[r, c] == max(values))
        return sum(values) / len(inside if kind == "mean of inside" else padded)

    return np.array([[one(window) for window in row] for row in places])


@pytest.mark.parametrize("how", HOW)
def test_pooling_agrees_with_its_definition(how: str) -> None:
    @quick
    @given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(0, 1), st.booleans())
    def check(kernel: int, stride: int, dilation: int, padding: int, ceil_mode: bool) -> None:
        padding = min(padding, kernel // 2)
        x = random_array((7, 6))
        places = windows(x, kernel, stride, dilation, padding, ceil_mode)
        t = tensor_on(how, x[None, None])
        options: dict[str, Any] = {"stride": stride, "dilation": dilation, "padding": padding, "ceil_mode": ceil_mode}
        largest, at = t.max_pool2d(kernel, return_indices=True, **options)
        np.testing.assert_array_equal(computed(largest, how)[0, 0], pooled(x, places, padding, "max"))
        np.testing.assert_array_equal(computed(at, how)[0, 0], pooled(x, places, padding, "place"))
        mean = t.avg_pool2d(kernel, **options)
        expected = pooled(x, places, padding, "mean")
        np.testing.assert_allclose(computed(mean, how)[0, 0], expected, rtol=1e-5, atol=1e-6)
        inside = t.avg_pool2d(kernel, count_include_pad=False, **options)
        expected = pooled(x, places, padding, "mean of inside")
        np.testing.assert_allclose(computed(inside, how)[0, 0], expected, rtol=1e-5, atol=1e-6)

    check()


@pytest.mark.parametrize("how", HOW)
def test_unpooling_restores_the_largest_values(how: str) -> None:
    x = random_array((2, 3, 6, 7))
    largest, at = tensor_on(how, x).max_pool2d(2, return_indices=True)
    back = computed(largest.max_unpool2d(at, 2, output_size=(6, 7)), how)
    expected = np.zeros_like(x)
    for i, j, a, b in np.ndindex(2, 3, 3, 3):
        block = x[i, j, 2 * a : 2 * a + 2, 2 * b : 2 * b + 2]
        row, column = np.unravel_index(block.argmax(), (2, 2))
        expected[i, j, 2 * a + row, 2 * b + column] = block.max()
    np.testing.assert_array_equal(back, expected)


def test_one_and_three_axes() -> None:
    x = Tensor(random_array((2, 8)))
    largest, at = x.max_pool2d((2,), return_indices=True)
    assert largest.shape == (2, 4) and largest.max_unpool2d(at, (2,)).shape == (2, 8)
    assert Tensor.ones(1, 4, 4, 4).avg_pool2d((2, 2, 2)).tolist() == Tensor.ones(1, 2, 2, 2).tolist()
    largest, at = Tensor.ones(1, 4, 4, 4).max_pool2d((3, 3, 3), 2, padding=1, return_indices=True)
    assert largest.shape == (1, 2, 2, 2) and at.tolist()[0][0][0] == [0, 1]


def test_pooling_and_unpooling_have_gradients() -> None:
    x = random_array((1, 5, 5))
    _, at = Tensor(x).max_pool2d(2, return_indices=True)
    check_gradient(lambda t: t.max_pool2d(2, ceil_mode=True), x)
    check_gradient(lambda t: t.avg_pool2d(3, 2, ceil_mode=True, padding=1), x)
    check_gradient(lambda t: t.max_unpool2d(at, 2), random_array((1, 2, 2)))


def test_ints_and_missing_numbers() -> None:
    assert Tensor([[1, 7], [3, 4]]).max_pool2d(2).tolist() == [[7]]
    assert Tensor([[1, 2], [3, 5]]).avg_pool2d(2).tolist() == [[2.75]]
    found, at = Tensor([[1.0, math.nan], [3.0, 4.0]]).max_pool2d(2, return_indices=True)
    assert math.isnan(found.item()) and at.item() == 1


def test_invalid_unpooling_raises_an_error() -> None:
    with pytest.raises(ShapeError, match="they must be equal"):
        Tensor.ones(1, 2, 2).max_unpool2d(Tensor([[0]]), 2)

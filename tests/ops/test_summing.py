"""Gradients of row lookups by index: each row is added once, and the cost is not rows times numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import Context, GlobalCounters, Tensor


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-3)])
def test_the_gradient_of_indexing_accumulates(dtype: str, tolerance: float) -> None:
    first = np.array([[0, 5, -1], [5, 5, 2]], np.int32)
    second = np.array([3, 3, 0], np.int32)
    given = {id(first): Tensor(first), id(second): Tensor(second)}
    reads = [
        (first,),
        (slice(None), first),
        (slice(1, None), slice(None), second),
        (first, second),
        (first, slice(None), second),
        ([0, 1, 1, 0], slice(1, 5), None, [2, 3, 3, 2]),
    ]
    for read in reads:
        values = numbers(6, 7, 8).astype(dtype)
        x = Tensor(values, requires_grad=True)
        x[tuple(given.get(id(part), part) for part in read)].float().square().sum().backward()
        expected = np.zeros(values.shape)
        np.add.at(expected, read, 2.0 * values[read])
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=tolerance, atol=tolerance)


def test_the_cost_of_an_embedding_gradient_depends_on_the_accessed_rows() -> None:
    vocabulary, width, length = 5000, 64, 1024
    places = np.random.default_rng(1).integers(0, vocabulary, length).astype(np.int32)
    places[:200] = 17
    above = numbers(length, width)
    expected = np.zeros((vocabulary, width))
    np.add.at(expected, places, above.astype(np.float64))
    found = []
    for threads in (1, 3):
        weight = Tensor(numbers(vocabulary, width), requires_grad=True)
        with Context(THREADS=threads):
            GlobalCounters.reset()
            (gradient,) = weight[Tensor(places)].gradient(weight, gradient=Tensor(above))
            found.append(gradient.numpy())
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(found[0], found[1])
    assert GlobalCounters.global_ops <= 2 * length * width

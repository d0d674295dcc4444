"""Gradients of reading rows by an index: added up by number, each once, at a cost that is not rows times numbers."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import Context, GlobalCounters, Tensor
from tinyexplore.tensor import indexing
from tinyexplore.tensor.summing import is_worth_it, summed_by_number


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
@pytest.mark.parametrize("rows, width, count", [(1, 3, 4), (9, 4, 5), (65, 3, 7), (130, 2, 40)])
def test_rows_are_added_by_number(rows: int, width: int, count: int, device: str) -> None:
    values = numbers(rows, width)
    for places in (
        np.random.default_rng(rows).integers(-2, count + 2, rows),
        np.full(rows, count - 1),
        np.arange(rows) % (count + 1),
    ):
        expected = np.zeros((count, width), dtype=np.float64)
        inside = (places >= 0) & (places < count)
        np.add.at(expected, places[inside], values[inside])
        given = Tensor(places.astype(np.int32), device=device)
        found = summed_by_number(Tensor(values, device=device), given, count)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-3)])
def test_the_gradient_is_that_of_comparing_all_with_all(
    dtype: str, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Tensor([[0, 5, -1], [5, 5, 2]], dtype="int32")
    second = Tensor([3, 3, 0], dtype="int32")
    reads = [
        lambda x: x[first],
        lambda x: x[:, first],
        lambda x: x[1:, :, second],
        lambda x: x[first, second],
        lambda x: x[first, :, second],
        lambda x: x[[0, 1, 1, 0], 1:5, None, [2, 3, 3, 2]],
        lambda x: x[first][second - 2],
    ]
    for read in reads:
        found = []
        for always in (False, True):
            monkeypatch.setattr(indexing, "is_worth_it", lambda *sizes, always=always: always)
            x = Tensor(numbers(6, 7, 8), requires_grad=True)
            read(x.cast(dtype)).float().square().sum().backward()
            found.append(x.grad.numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=tolerance, atol=tolerance)


def test_an_embedding_s_gradient_costs_what_it_touches() -> None:
    vocabulary, width, length = 5000, 64, 1024
    assert is_worth_it(length, width, vocabulary) and not is_worth_it(64, 8, 100)
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
    assert GlobalCounters.global_ops < length * width * vocabulary / 10

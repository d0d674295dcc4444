"""Helpers of the operation tests: the devices, random arrays, and finite differences."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.reference import evaluate
from tinyexplore import Tensor

HAS_COMPILER = any(shutil.which(name) for name in ("clang", "gcc", "cc"))
EVERYWHERE = "reference,LLVM,PYTHON,CLANG" if HAS_COMPILER else "reference,LLVM,PYTHON"
HOW = tuple(os.environ.get("OPS_ON", EVERYWHERE).split(","))  # OPS_ON=LLVM is quick while one works on an operation
Array = np.ndarray

quick = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
thorough = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


def computed(tensor: Tensor, how: str) -> Array:
    """The value of a tensor: by the oracle, or by the device it is on."""
    return evaluate(tensor.lazydata) if how == "reference" else tensor.numpy()


def all_computed(tensors: Sequence[Tensor], how: str) -> list[Array]:
    """The values of several tensors, scheduled together: few kernels to compile."""
    if how != "reference":
        tensors[0].realize(*tensors[1:])
    return [computed(tensor, how) for tensor in tensors]


def tensor_on(how: str, data: Array, *, requires_grad: bool | None = None) -> Tensor:
    """`data` as a tensor where `how` computes."""
    return Tensor(data, device="LLVM" if how == "reference" else how, requires_grad=requires_grad)


def random_array(
    shape: Sequence[int], low: float = -2, high: float = 2, dtype: str = "float32", seed: int = 0
) -> Array:
    """Repeatable numbers between `low` and `high`, different for each shape and seed."""
    generator = np.random.default_rng(zlib.crc32(repr((tuple(shape), seed)).encode()))
    if np.dtype(dtype).kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        return generator.integers(int(low), int(high) + 1, shape).astype(dtype)
    return generator.uniform(low, high, shape).astype(dtype)


def shapes(min_rank: int = 0, max_rank: int = 3, max_side: int = 4) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes without empty axes."""
    return st.lists(st.integers(1, max_side), min_size=min_rank, max_size=max_rank).map(tuple)


@st.composite
def broadcastable(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that broadcast against each other."""
    full = draw(shapes(0, 3))
    found = []
    for _ in range(2):
        cut = draw(st.integers(0, len(full)))
        found.append(tuple(draw(st.sampled_from((1, size))) for size in full[cut:]))
    return found[0], found[1]


def check_gradient(function: Callable[..., Tensor], *arrays: Array, tolerance: float = 1e-4) -> None:
    """The gradients by the tape against central differences, both in float64 and by the oracle."""
    arrays = tuple(np.asarray(array, dtype=np.float64) for array in arrays)
    inputs = [Tensor(array, requires_grad=True) for array in arrays]
    result = function(*inputs)
    weights = random_array(result.shape, 0.5, 1.5, "float64", seed=7)
    (result * Tensor(weights)).sum().backward()

    def total(parts: Sequence[Array]) -> float:
        value = evaluate(function(*(Tensor(part) for part in parts)).lazydata)
        return float((value * weights).sum())

    for place, (array, tensor) in enumerate(zip(arrays, inputs)):
        assert tensor.grad is not None, f"input {place} got no gradient"
        expected = np.empty_like(array)
        for index in np.ndindex(array.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = array.copy()
                moved[index] += step
                ends.append(total([moved if i == place else other for i, other in enumerate(arrays)]))
            expected[index] = (ends[0] - ends[1]) / 2e-5
        found = evaluate(tensor.grad.lazydata)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)

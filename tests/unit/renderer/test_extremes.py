"""MAX and MIN of floats: a NaN in either operand is the result, in vectors of every width."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernels import rendered, unread
from tinyexplore import Tensor

SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-40, 3e38]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [2, 3, 4, 8, 16, 17, 100, 1000])
def test_extremes_of_special_numbers_agree_with_numpy(size: int, dtype: str) -> None:
    rng = np.random.default_rng(size)
    a, b = (rng.choice(SPECIAL, size).astype(dtype) for _ in range(2))
    matrix = rng.normal(size=(64, size)).astype(dtype)
    matrix[::3] = rng.choice(SPECIAL, (22, size))
    for name, expected in (("maximum", np.maximum), ("minimum", np.minimum)):
        np.testing.assert_array_equal(getattr(Tensor(a), name)(Tensor(b)).numpy(), expected(a, b))
    for name in ("max", "min"):
        for axis in (0, 1, None):
            found = getattr(Tensor(matrix), name)(axis).numpy()
            np.testing.assert_array_equal(found, getattr(matrix, name)(axis))


@pytest.mark.parametrize("where", [0, 5, 999, 4095])
def test_one_nan_anywhere_in_a_row_is_its_maximum(where: int) -> None:
    matrix = np.random.default_rng(0).normal(size=(32, 4096)).astype(np.float32)
    matrix[7, where] = np.nan
    np.testing.assert_array_equal(Tensor(matrix).max(1).numpy(), matrix.max(1))
    np.testing.assert_array_equal(Tensor(matrix).min(1).numpy(), matrix.min(1))


@pytest.mark.parametrize(("target", "has_it"), [("znver4", True), ("cooperlake", True), ("x86-64-v3", False)])
def test_avx512_repairs_nans_in_one_instruction(target: str, has_it: bool) -> None:
    text = rendered(Tensor(unread(64, 4096)).max(1).lazydata, target).source
    assert ("fixupimm" in text) == has_it
    assert "fixupimm" not in rendered(Tensor(unread(64, 4096)).sum(1).lazydata, target).source

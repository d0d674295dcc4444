"""Methods with an underscore that tinygrad programs call."""

from __future__ import annotations

import numpy as np
import pytest

from tinyexplore import Tensor

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_exclusive_cumulative_sums() -> None:
    np.testing.assert_allclose(Tensor(X)._cumsum(1).numpy(), X.cumsum(1))
    before = np.concatenate([np.zeros((3, 1), np.float32), X.cumsum(1)[:, :-1]], 1)
    np.testing.assert_allclose(Tensor(X)._cumsum(-1, _first_zero=True).numpy(), before)
    assert Tensor(3.0)._cumsum().item() == 3.0


def test_a_slice_may_reach_beyond() -> None:
    np.testing.assert_allclose(Tensor(X)._slice([(1, 3), None]).numpy(), X[1:3])
    wider = np.pad(X, ((2, 0), (0, 3)), constant_values=7)[:4, 1:]
    np.testing.assert_allclose(Tensor(X)._slice(((-2, 2), (1, 7)), value=7).numpy(), wider)
    with pytest.raises(ValueError, match=r"_slice of \(3, 4\)"):
        Tensor(X)._slice([(0, 1)])

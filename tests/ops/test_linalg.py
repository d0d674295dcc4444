"""QR and singular values against their defining properties, and against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops.support import HOW, Array, check_gradient, computed, random_array, tensor_on
from tinyexplore import Tensor
from tinyexplore.lazy.lazybuffer import ShapeError

SHAPES = [(1, 1), (3, 3), (4, 2), (2, 4), (5, 1), (1, 3), (2, 4, 3)]


def matrices(how: str) -> list[tuple[int, ...]]:
    return SHAPES if how == "LLVM" else SHAPES[2:4]


def assert_orthogonal(x: Array) -> None:
    product = np.swapaxes(x, -1, -2) @ x
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(x.shape[-1]), product.shape), atol=2e-5)


@pytest.mark.parametrize("how", HOW)
def test_qr_is_an_orthogonal_and_a_triangular_factor(how: str) -> None:
    for shape in matrices(how):
        x = random_array(shape)
        q, r = (computed(part, how) for part in tensor_on(how, x).qr())
        assert q.shape == (*shape[:-1], shape[-2]) and r.shape == shape
        assert_orthogonal(q)
        np.testing.assert_array_equal(r, np.triu(r))
        np.testing.assert_allclose(q @ r, x, atol=1e-5)


@pytest.mark.parametrize("how", [how for how in HOW if how != "reference"])
@pytest.mark.parametrize("full", [True, False])
def test_singular_values_are_those_of_numpy(full: bool, how: str) -> None:
    for shape in matrices(how):
        x = random_array(shape)
        u, s, v = (part.numpy() for part in tensor_on(how, x).svd(full_matrices=full))
        expected = np.linalg.svd(x, full_matrices=full)
        assert [u.shape, s.shape, v.shape] == [part.shape for part in expected]
        np.testing.assert_allclose(s, expected[1], rtol=1e-5, atol=1e-6)
        count = s.shape[-1]
        np.testing.assert_allclose((u[..., :count] * s[..., None, :]) @ v[..., :count, :], x, atol=1e-5)
        assert_orthogonal(u)
        assert_orthogonal(np.swapaxes(v, -1, -2))


def test_matrices_without_full_rank() -> None:
    line = np.outer([1.0, 2, 3], [1, -1]).astype(np.float32)
    for x in (np.zeros((3, 2), np.float32), line, np.eye(4, dtype=np.float32)):
        q, r = (part.numpy() for part in Tensor(x).qr())
        np.testing.assert_allclose(q @ r, x, atol=1e-6)
        assert_orthogonal(q)
        u, s, v = (part.numpy() for part in Tensor(x).svd())
        np.testing.assert_allclose(s, np.linalg.svd(x)[1], atol=1e-6)
        assert_orthogonal(u)
        np.testing.assert_allclose((u[:, : len(s)] * s) @ v, x, atol=1e-6)


@pytest.mark.parametrize("size", [1e-30, 1e30, 1e-39])
def test_squares_neither_overflow_nor_underflow(size: float) -> None:
    x = (random_array((3, 2)) * size).astype(np.float32)
    (q, r), s = Tensor(x).qr(), Tensor(x).svd()[1]
    np.testing.assert_allclose((q @ r).numpy(), x, rtol=1e-5, atol=1e-6 * size)
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(x.astype(np.float64))[1], rtol=1e-5)


def test_double_precision_is_preserved() -> None:
    x = random_array((4, 4), dtype="float64")
    np.testing.assert_allclose(Tensor(x).svd()[1].numpy(), np.linalg.svd(x)[1], rtol=1e-12)
    q, r = (part.numpy() for part in Tensor(x).qr())
    np.testing.assert_allclose(q @ r, x, rtol=1e-12)


def test_factors_have_gradients() -> None:
    x = random_array((3, 2))
    check_gradient(lambda t: joined(t.qr()), x)
    for shape in ((3, 2), (2, 3)):
        check_gradient(lambda t: joined(t.svd(full_matrices=False)), random_array(shape))


def joined(parts: tuple[Tensor, ...]) -> Tensor:
    first, *rest = (part.flatten() for part in parts)
    return first.cat(*rest)


def test_inputs_that_are_no_matrices_raise_an_error() -> None:
    for name in ("qr", "svd"):
        with pytest.raises(ShapeError, match=rf"{name} of .*shape \(3,\): need non-empty matrices"):
            getattr(Tensor.ones(3), name)()
        with pytest.raises(ShapeError, match="need non-empty matrices"):
            getattr(Tensor.ones(0, 3), name)()

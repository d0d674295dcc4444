"""Pass "chained sums": a sum that is added to another one continues in its accumulator."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.kernels import kernel_of, unread
from tinyexplore import Tensor, dtypes
from tinyexplore.codegen import lower
from tinyexplore.kernel import apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops

DEVICES = ("LLVM", "CLANG", "PYTHON", "WASM")


def registers_of(node: LazyBuffer) -> tuple[int, int]:
    """How many registers start with 0, and how many with another sum."""
    starts = [uop.src[0].op for uop in lower(apply_heuristics(kernel_of(node))) if uop.op is Ops.DEFINE_ACC]
    return starts.count(Ops.CONST), starts.count(Ops.RESULT)


def products() -> tuple[Tensor, Tensor]:
    x, w, h, v = (Tensor(unread(*shape)) for shape in ((48, 20), (20, 32), (48, 36), (36, 32)))
    return x @ w, h @ v


def test_two_products_that_are_added_share_the_registers_of_their_tile() -> None:
    first, second = products()
    zeros, chained = registers_of((first + second).tanh().lazydata)
    assert zeros == chained > 1


def test_sums_that_are_used_twice_or_multiplied_keep_their_own() -> None:
    first, second = products()
    assert registers_of((first * second).lazydata)[1] == 0
    assert registers_of((first + second * 2).lazydata)[1] == 0
    total = Tensor(unread(64, 32)).sum(1)
    other = Tensor(unread(64, 48)).sum(1)
    assert registers_of(((total + other) * total).lazydata)[1] == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
@pytest.mark.parametrize("device", DEVICES)
def test_the_results_are_those_of_separate_sums(device: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    shapes = ((10, 7), (7, 33), (10, 5), (5, 33), (10, 4), (4, 33))
    x, w, h, v, y, u = (rng.integers(-3, 4, shape).astype(dtype) for shape in shapes)
    a, b, c, d, e, f = (Tensor(value, device=device) for value in (x, w, h, v, y, u))
    np.testing.assert_array_equal((a @ b + c @ d).numpy(), x @ w + h @ v)
    np.testing.assert_array_equal((a @ b + c @ d + e @ f).numpy(), x @ w + h @ v + y @ u)
    np.testing.assert_array_equal((a @ b + (c @ d + e @ f)).numpy(), x @ w + h @ v + y @ u)
    both = a.sum(1) + c.sum(1)
    expected = x.sum(1, dtype=dtype) + h.sum(1, dtype=dtype)
    np.testing.assert_array_equal(both.cast(dtypes.float32).numpy(), expected.astype(np.float32))
    np.testing.assert_array_equal((both * a.sum(1)).cast(dtypes.float32).numpy(), (expected * x.sum(1)).astype("f"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kernel", [2, 3, (2, 3), (5, 1)])
def test_sums_with_circular_dependences_are_not_chained(device: str, kernel: int | tuple[int, int]) -> None:
    """A mean without its padding adds two sums, and counts in two others, in the same loops."""
    x = np.random.default_rng(2).integers(-4, 5, (1, 1, 7, 6)).astype("f")
    rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
    found = Tensor(x, device=device).avg_pool2d(
        kernel, stride=1, padding=(rows // 2, columns // 2), count_include_pad=False
    )
    padded = np.pad(x[0, 0], ((rows // 2,) * 2, (columns // 2,) * 2), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (rows, columns))
    np.testing.assert_allclose(found.numpy()[0, 0], np.nanmean(windows, axis=(2, 3)), rtol=1e-6)


def test_a_sum_in_fewer_loops_is_not_chained() -> None:
    """`total` is one number; its sum would otherwise run again for each row."""
    row, total = Tensor(unread(64, 48)), Tensor(unread(4096))
    assert registers_of((row.sum(1) + total.sum()).lazydata)[1] <= 1
    x, y = np.arange(12, dtype="f").reshape(3, 4), np.arange(5, dtype="f")
    for first, second in ((Tensor(x).sum(1), Tensor(y).sum()), (Tensor(y).sum(), Tensor(x).sum(1))):
        np.testing.assert_array_equal((first + second).numpy(), x.sum(1) + y.sum())


def test_infinities_and_nans_are_preserved() -> None:
    x, y = np.array([[np.inf, 1], [np.nan, 1], [-0.0, -0.0]], "f"), np.array([[-np.inf] * 3, [1] * 3, [-0.0] * 3], "f")
    with np.errstate(invalid="ignore"):
        expected = x.sum(1) + y.sum(1)
    np.testing.assert_array_equal((Tensor(x).sum(1) + Tensor(y).sum(1)).numpy(), expected)

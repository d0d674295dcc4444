"""REMAINDER: the lowered remainder is exact for every pair of floats, for every rounding of MULACC."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.numpy_uops import evaluate_in_numpy
from tinyexplore import Tensor
from tinyexplore.dtype import DType, dtypes
from tinyexplore.uop import Ops, UOp, graph_rewrite
from tinyexplore.uop.ops import RARELY
from tinyexplore.uop.remainder import REMAINDER

KINDS = pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=lambda dtype: dtype.name)
SPECIAL = (0.0, -0.0, 1.0, -2.0, 3.5, np.inf, -np.inf, np.nan)


def pairs(dtype: DType, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Floats of all sizes, those close to a multiple of another, and every special one with every other."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype.name)
    least, most = int(np.log2(float(info.smallest_normal))) - info.nmant, int(info.maxexp)
    sizes = np.ldexp(rng.uniform(1, 2, (2, count)), rng.integers(least, most, (2, count)))
    x, y = (sizes * rng.choice([-1, 1], (2, count))).astype(dtype.name)
    near = rng.uniform(0.1, 3, count).astype(dtype.name)
    multiples = (near * rng.integers(1, 1 << 25, count)).astype(dtype.name)
    first, second = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))
    by = [y, near, near, near, second.astype(dtype.name)]
    of = [x, multiples, np.nextafter(multiples, np.inf), np.nextafter(multiples, -np.inf), first.astype(dtype.name)]
    return np.concatenate(of), np.concatenate(by)


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@KINDS
@pytest.mark.parametrize("fused", [False, True], ids=["rounded_twice", "rounded_once"])
def test_the_expanded_remainder_is_fmod(dtype: DType, fused: bool) -> None:
    a, b = (UOp(Ops.DEFINE_VAR, dtype, (), (name, 0, 0)) for name in "ab")
    written_out = graph_rewrite(a.alu(Ops.MOD, b), REMAINDER)
    assert [node.arg for node in written_out.find(Ops.MOD)] == [RARELY]
    x, y = pairs(dtype, 20_000)
    with np.errstate(all="ignore"):
        assert_same(evaluate_in_numpy(written_out, {a: x, b: y}, fused=fused), np.fmod(x, y))


@KINDS
@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_devices_give_fmod_and_the_remainder_of_python(dtype: DType, device: str) -> None:
    x, y = pairs(dtype, 3_000 if device == "LLVM" else 200)
    a, b = Tensor(x, device=device), Tensor(y, device=device)
    with np.errstate(all="ignore"):
        assert_same(a.fmod(b).numpy(), np.fmod(x, y))
        np.testing.assert_array_equal((a % b).numpy(), np.mod(x, y))


def test_a_quotient_rounded_to_a_whole_number_is_one_less() -> None:
    x, y = Tensor([5.0, -5.0, 1.0], dtype="float64"), Tensor([0.1, 0.1, 1e-3], dtype="float64")
    assert (x // y).tolist() == [49.0, -50.0, 999.0]
    assert (Tensor([1.0]) % 1e-38).tolist() == [float(np.mod(np.float32(1), np.float32(1e-38)))]

"""Square matrices of registers, transposed by shuffles: correct for every type, also after LLVM's combining."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs import from_numpy, to_numpy
from tests.support.kernels import compile_all
from tinyexplore.engine import create_schedule
from tinyexplore.util import Context

SHAPE = (131, 192)


@pytest.mark.parametrize("kind", ("int8", "uint16", "float16", "int32", "float32", "uint64", "float64"))
def test_a_transposition_moves_every_bit(kind: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, SHAPE).astype(kind)
    node = from_numpy(x).permute((1, 0)).contiguous()
    with Context(CACHELEVEL=0):
        (runner,) = compile_all(create_schedule([node]))
        np.testing.assert_array_equal(to_numpy(node), x.T)
    assert "shufflevector" in runner.spec.source

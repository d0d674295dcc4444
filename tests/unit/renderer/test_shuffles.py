"""Lanes from any number of vectors: combined by shuffles, with the correct lanes."""

from __future__ import annotations

import random

import pytest

from tests.backends.programs import call, compiled, linear, load, pointer, store
from tinyexplore.dtype import DType, dtypes
from tinyexplore.renderer.llvm.effort import MAX_SHUFFLED_VECTORS
from tinyexplore.uop import Ops, UOp

WIDTH = 8


@pytest.mark.parametrize("dtype", (dtypes.float32, dtypes.int8, dtypes.float64), ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("vectors", range(1, MAX_SHUFFLED_VECTORS + 2))
def test_picked_lanes_are_the_right_ones(vectors: int, dtype: DType) -> None:
    rng = random.Random(vectors)
    size = WIDTH * vectors
    values = [*range(1, size + 1)]
    out, source = pointer(0, dtype, 4 * WIDTH), pointer(1, dtype, size)
    loads = [load(source, WIDTH * number, WIDTH) for number in range(vectors)]
    stores, wanted = [], []
    for number in range(4):
        places = [*range(0, size, WIDTH), *(rng.randrange(size) for _ in range(WIDTH - vectors))]  # some of each
        rng.shuffle(places)
        lanes = [UOp(Ops.GEP, dtype, (loads[place // WIDTH],), place % WIDTH) for place in places]
        stores.append(store(out, number * WIDTH, UOp(Ops.VECTORIZE, dtype.vec(WIDTH), tuple(lanes))))
        wanted += [values[place] for place in places]
    program = compiled("LLVM", linear(out, source, *stores))
    assert call(program, [(dtype, 4 * WIDTH)], [(dtype, values)]) == [wanted]
    assert ("insertelement" in program.spec.source) == (vectors > MAX_SHUFFLED_VECTORS)

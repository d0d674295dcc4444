"""Adjacent scalar stores become vector stores, for values from any vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tinyexplore import Tensor, explore
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.transforms.coalescing import coalesce_accesses
from tinyexplore.codegen.transforms.vector_accesses import access_in_vectors
from tinyexplore.device import Device
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.runtime.gpu import gpu_target
from tinyexplore.target import GPUS
from tinyexplore.uop import Ops, UOp

LOWERING = Lowering(Device["PYTHON"].target)
GPU_LOWERING = Lowering(gpu_target("PYTHON", GPUS["gfx90a"], "gfx90a", "gfx90a"))
COUNT = 8


def stored(lanes: Sequence[tuple[int, int]]) -> UOp:
    """A program that stores, one by one, these lanes of these vectors next to each other."""
    out, source = (UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 64), (), number) for number in (0, 1))
    vectors = [
        UOp(Ops.LOAD, dtypes.float32.vec(COUNT), (source.index(UOp.const(dtypes.index, COUNT * number)),))
        for number in range(2)
    ]
    values = [UOp(Ops.GEP, dtypes.float32, (vectors[number],), lane) for number, lane in lanes]
    places = [out.index(UOp.const(dtypes.index, place)) for place in range(len(lanes))]
    return UOp.sink(*(UOp(Ops.STORE, dtypes.void, pair) for pair in zip(places, values)))


@pytest.mark.parametrize(
    "lanes",
    [
        pytest.param([(place % 2, place // 2) for place in range(2 * COUNT)], id="two vectors, interleaved"),
        pytest.param([(0, place // 2) for place in range(2 * COUNT)], id="one vector, each lane twice"),
        pytest.param([(0, COUNT - 1 - place) for place in range(COUNT)], id="one vector, backwards"),
    ],
)
def test_neighbors_are_stored_as_vectors(lanes: list[tuple[int, int]]) -> None:
    stores = coalesce_accesses(stored(lanes), LOWERING).src
    assert len(stores) == len(lanes) // COUNT
    taken = [(lane.src[0], lane.arg) for store in stores for lane in store.src[1].src]
    vectors = sorted({vector for vector, _ in taken}, key=lambda vector: vector.src[0].src[1].arg)
    assert [(vectors.index(vector), lane) for vector, lane in taken] == lanes


@pytest.mark.parametrize("target", ["x86-64-v2", "x86-64-v3", "neoverse-n1"])
def test_upsampled_values_are_stored_as_vectors(target: str) -> None:
    x = Tensor.rand(2, 4, 16, 16).realize()
    trace = explore(lambda: x.interpolate((32, 32), mode="nearest").contiguous(), target=target).trace
    (llvm,) = (program for program in trace.programs if program.language == "llvm")
    stores = [line.text.split()[1] for line in llvm.lines if line.text.lstrip().startswith("store ")]
    assert stores and all(kind.startswith("<") for kind in stores)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_upsampled_values_are_right(scale: int) -> None:
    values = np.arange(2 * 3 * 16 * 24, dtype=np.float32).reshape(2, 3, 16, 24)
    found = Tensor(values).interpolate((16 * scale, 24 * scale), mode="nearest").contiguous().numpy()
    assert np.array_equal(found, values.repeat(scale, 2).repeat(scale, 3))


@pytest.mark.parametrize(("joins", "lowering"), [(coalesce_accesses, LOWERING), (access_in_vectors, GPU_LOWERING)])
def test_joined_stores_keep_their_barriers(joins: Callable[[UOp, Lowering], UOp], lowering: Lowering) -> None:
    """Stores that wait for a BARRIER are one that waits for it; those that wait for different ones stay apart."""
    out = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 64), (), 0)
    zero = UOp.const(dtypes.float32, 0.0)
    copies = [
        UOp(Ops.BARRIER, dtypes.void, (UOp(Ops.STORE, dtypes.void, (out.index(UOp.const(dtypes.index, place)), zero)),))
        for place in (40, 50)
    ]
    plain = stored([(0, place) for place in range(COUNT)]).src

    def joined(*waits: UOp) -> list[tuple[UOp, ...]]:
        sink = UOp.sink(*(store.replace(src=(*store.src, wait)) for store, wait in zip(plain, waits)))
        return [store.src[2:] for store in joins(sink, lowering).src]

    together = joined(*copies[:1] * COUNT)
    assert len(together) < COUNT and set(together) == {(copies[0],)}
    assert joined(*copies * (COUNT // 2)) == [(copy,) for copy in copies * (COUNT // 2)]

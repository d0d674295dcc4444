"""Interleaved copies: the order of a program changes, not its results, and only if registers suffice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tinyexplore import Context, Tensor
from tinyexplore.codegen.lowering import Lowering
from tinyexplore.codegen.transforms.interleave import MIN_OPERATIONS, interleave
from tinyexplore.device import Device
from tinyexplore.dtype import PtrDType, dtypes
from tinyexplore.uop import Axis, AxisKind, Ops, UOp
from tinyexplore.uop.spec import LINEAR_SPEC, verify

TARGET = replace(Device["PYTHON"].target, vector_bytes=32, vector_registers=16)
LOWERING = Lowering(TARGET)
VECTOR = dtypes.float32.vec(8)


def program(copies: int, steps: int = 2 * MIN_OPERATIONS, *, source: int = 1, live: int = 0) -> list[UOp]:
    """A loop that stores `copies` vectors, each of them a chain of `steps` operations; `live` of its values wait for
    its end."""
    loop = UOp.range(10, Axis(0, AxisKind.GLOBAL))
    stores = []
    for copy in range(copies):
        place = loop * (8 * copies) + 8 * copy
        x = UOp(Ops.LOAD, VECTOR, (UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 999), (), source).index(place),))
        chain = [x]
        for _ in range(steps):
            chain.append(chain[-1] * x)
        for value in chain[1 : 1 + live]:
            chain.append(chain[-1] + value)
        out = UOp(Ops.DEFINE_GLOBAL, PtrDType(dtypes.float32, 999), (), 0).index(place)
        stores.append(UOp(Ops.STORE, dtypes.void, (out, chain[-1])))
    nodes = UOp(Ops.SINK, dtypes.void, tuple(stores)).toposort()[:-1]
    nodes.sort(key=lambda node: node.op is not Ops.DEFINE_GLOBAL)
    return [*nodes, UOp(Ops.ENDRANGE, dtypes.void, (loop,))]


def whose(uops: Sequence[UOp]) -> list[int]:
    """Which copy each of the products belongs to."""
    products = [node for node in uops if node.op is Ops.MUL and node.dtype is VECTOR]
    loads = [node for node in uops if node.op is Ops.LOAD]
    return [loads.index(node.src[1]) for node in products]


@pytest.mark.parametrize(("copies", "together"), [(2, 2), (4, 4), (8, 4)])
def test_operations_of_unrolled_copies_are_interleaved(copies: int, together: int) -> None:
    before = program(copies)
    after = interleave(before, LOWERING)
    verify(after, LINEAR_SPEC)
    assert len(after) == len(before) and set(after) == set(before)
    assert whose(before)[:3] == [0, 0, 0]
    assert whose(after)[: 2 * together] == [*range(together)] * 2
    stores = [node for node in before if node.op is Ops.STORE]
    assert [node for node in after if node.op is Ops.STORE] == stores


@pytest.mark.parametrize(
    "uops",
    [
        program(4, steps=4),  # short
        program(1),
        program(4, source=0),  # what is read may have been stored by another copy
        program(4, live=20),  # more values than registers
    ],
    ids=["short", "alone", "in place", "wide"],
)
def test_some_programs_are_not_interleaved(uops: list[UOp]) -> None:
    assert interleave(uops, LOWERING) == tuple(uops)
    assert interleave(program(4), Lowering(replace(TARGET, vector_bytes=16))) == tuple(program(4))


def test_fewer_copies_where_registers_are_few() -> None:
    assert whose(interleave(program(4, live=5), LOWERING))[:4] == [0, 1, 0, 1]


@pytest.mark.parametrize("name", ["exp", "gelu", "sigmoid", "silu", "tanh", "sin", "log"])
def test_kernels_keep_their_results(name: str) -> None:
    """Loops of several steps, the last of which overlaps; once more without opts, where nothing is in step."""
    x = np.random.default_rng(0).standard_normal(16 * 1000 + 7, dtype=np.float32)
    found = getattr(Tensor(x).abs(), name)().numpy()
    with Context(NOOPT=1):
        np.testing.assert_allclose(found, getattr(Tensor(x).abs(), name)().numpy(), rtol=1e-6)

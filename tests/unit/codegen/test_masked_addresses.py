"""Vector loads whose mask selects no lane: their addresses are in the buffer, and all values are correct."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs import from_numpy, to_numpy
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore import Tensor
from tinyexplore.codegen import lower
from tinyexplore.codegen.rewrites.simplify import simplified
from tinyexplore.device import Device
from tinyexplore.kernel import apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.target import LEVELS, NATIVE, choice_of, machine
from tinyexplore.uop import Ops, UOp, index_const
from tinyexplore.util import Context

FAR = 5000  # elements: more than a page


def levels_here() -> list[str]:
    """The levels of x86-64 whose code this machine can execute."""
    names = {name[1:] for name in Device["LLVM"].target.features.split(",") if name.startswith("+")}
    return [level for level in LEVELS if choice_of(level).features <= names] if machine() == "x86_64" else []


def concatenated(*lengths: int) -> LazyBuffer:
    return Tensor(unread(lengths[0])).cat(*(Tensor(unread(n)) for n in lengths[1:])).lazydata


def padded(before: int, length: int, after: int) -> LazyBuffer:
    return Tensor(unread(length)).pad(((before, after),)).exp().lazydata


def masked_loads(node: LazyBuffer) -> list[UOp]:
    program = lower(apply_heuristics(kernel_of(node, MACHINE)))
    return [uop for uop in program if uop.op is Ops.LOAD and len(uop.src[0].src) > 2 and uop.dtype.count > 1]


def positions(load: UOp) -> list[int]:
    """The first element that the load accesses, in each step of its loop."""
    position = load.src[0].src[1]
    (loop,) = {axis for axis in position.toposort() if axis.op is Ops.RANGE}
    return [int(simplified(position.substitute({loop: index_const(step)})).arg) for step in range(int(loop.size))]


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(lambda: concatenated(20_003, 30_001), id="two parts"),
        pytest.param(lambda: concatenated(10_000, 17, 20_000), id="three parts"),
        pytest.param(lambda: padded(FAR, 2003, FAR), id="padding on both sides"),
    ],
)
def test_addresses_are_at_most_a_page_outside_of_the_buffer(node: Callable[[], LazyBuffer]) -> None:
    loads = masked_loads(node())
    assert loads
    for load in loads:
        size, lanes = int(load.src[0].src[0].dtype.size), load.dtype.count
        assert all(-lanes < position < size for position in positions(load))


def test_addresses_close_to_the_buffer_stay() -> None:
    (load,) = masked_loads(padded(40, 2003, 40))
    assert load.src[0].src[1].op is not Ops.WHERE
    assert {min(positions(load)), max(positions(load))} == {-40, 2003 + 40 - load.dtype.count}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16", "int8"])
@pytest.mark.parametrize("lengths", [(6007, 9001), (8192, 8192), (4099, 1, 12_289)], ids=str)
@pytest.mark.parametrize("target", [NATIVE, *levels_here()])
def test_joined_and_padded_tensors_have_all_elements(lengths: tuple[int, ...], dtype: str, target: str) -> None:
    parts = [np.arange(1, length + 1).astype(dtype) for length in lengths]
    with Context(TARGET=target):
        first, *others = [Tensor(from_numpy(part)) for part in parts]
        np.testing.assert_array_equal(to_numpy(first.cat(*others).lazydata), np.concatenate(parts))
        np.testing.assert_array_equal(to_numpy(first.pad(((FAR, FAR),)).contiguous().lazydata), np.pad(parts[0], FAR))

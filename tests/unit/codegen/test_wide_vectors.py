"""Wide vectors: a product's tile in multi-register vectors equals the tile in single-register vectors, bit by bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.graphs import from_numpy, matmul
from tests.support.kernels import MACHINE, kernel_of, unread
from tinyexplore.codegen import lower
from tinyexplore.device import Device
from tinyexplore.engine import compile_optimized, create_schedule
from tinyexplore.kernel import Kernel, apply_heuristics
from tinyexplore.lazy import LazyBuffer
from tinyexplore.uop import Ops

WIDE = replace(MACHINE, registers_per_op=4)


def widths(kernel: Kernel, op: Ops) -> set[int]:
    """The numbers of lanes of a program's operations `op`."""
    uops = lower(apply_heuristics(kernel))
    return {(node.src[1] if op is Ops.STORE else node).dtype.count for node in uops if node.op is op}


def transposed(node: LazyBuffer) -> LazyBuffer:
    return node.permute((1, 0))


@pytest.mark.parametrize("flip", [False, True])
def test_rows_of_a_tile_are_one_vector(flip: bool) -> None:
    second = transposed(unread(512, 512)) if flip else unread(512, 512)
    product = matmul(unread(512, 512), second)
    assert widths(kernel_of(product), Ops.MULACC) == {16}
    assert widths(kernel_of(product, WIDE), Ops.MULACC) == {64}
    assert widths(kernel_of(product, replace(MACHINE, registers_per_op=2)), Ops.MULACC) == {16}, (
        "four vectors are a row"
    )


def test_packed_panels_are_copied_in_wide_vectors() -> None:
    assert widths(kernel_of(matmul(unread(1024, 1024), unread(1024, 1024)), WIDE), Ops.STORE) == {64}


def test_three_vectors_are_no_power_of_two() -> None:
    assert widths(kernel_of(matmul(unread(512, 512), unread(512, 48)), WIDE), Ops.MULACC) == {16}


def test_sums_and_long_computations_keep_their_vectors() -> None:
    summed = unread(64, 512, 64).reduce(Ops.ADD, (1,))
    assert widths(kernel_of(summed, WIDE), Ops.STORE) == {16}
    product = matmul(unread(512, 512), unread(512, 512)).alu(Ops.EXP2)
    assert widths(kernel_of(product, WIDE), Ops.MULACC) == {16}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("rows", "steps", "columns", "flip"), [(37, 45, 128, False), (300, 129, 500, True)])
def test_no_bit_of_a_product_changes(dtype: type, rows: int, steps: int, columns: int, flip: bool) -> None:
    rng = np.random.default_rng(rows)
    x, y = rng.standard_normal((rows, steps)), rng.standard_normal((columns, steps) if flip else (steps, columns))
    second = from_numpy(y.astype(dtype))
    (item,) = create_schedule([matmul(from_numpy(x.astype(dtype)), transposed(second) if flip else second)])
    assert item.ast is not None
    found = []
    for target in (Device["LLVM"].target, replace(Device["LLVM"].target, registers_per_op=1)):
        runner = compile_optimized("LLVM", apply_heuristics(Kernel.of(item.ast, target)))
        runner.run(runner.program.bind(item.buffers))
        found.append(item.buffers[0].copyout())
    assert found[0] == found[1]
    expected = x @ (y.T if flip else y)
    values = np.frombuffer(found[0], dtype).reshape(expected.shape)
    np.testing.assert_allclose(values, expected, rtol=1e-3, atol=1e-3)

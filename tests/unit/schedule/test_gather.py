"""A gather is a load: the kernel that uses it reads the table at the index."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graphs import from_numpy, matmul, numbers, to_numpy
from tests.reference import evaluate
from tinyexplore.engine import create_schedule
from tinyexplore.lazy import LazyBuffer
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.uop import Ops
from tinyexplore.util import Context


def rows(table: LazyBuffer, index: LazyBuffer) -> LazyBuffer:
    """table[index] for a table of rows and a vector of row numbers."""
    (count, width), (length,) = table.shape, index.shape
    spread = table.permute((1, 0)).reshape((1, width, count)).expand((length, width, count))
    return spread.gather(index.reshape((length, 1)).expand((length, width)))


def test_rows_of_a_table_are_copied_by_one_kernel_without_a_loop_over_the_table() -> None:
    index = np.array([3, 0, 49, 3, -1, 50], np.int32)
    node = rows(from_numpy(numbers(50, 40)), from_numpy(index))
    (item,) = create_schedule([node])
    assert not any(n.op is Ops.REDUCE for n in item.ast.toposort())
    expected = np.where(((index >= 0) & (index < 50))[:, None], numbers(50, 40)[index % 50], 0)
    with Context(SPEC=1):
        np.testing.assert_array_equal(to_numpy(node), expected)


def test_a_gathered_table_is_realized_first_with_a_reason() -> None:
    table = matmul(from_numpy(numbers(20, 8)), from_numpy(numbers(8, 16)))
    assert len(create_schedule([rows(table, from_numpy(np.arange(5, dtype=np.int32)))])) == 2


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_gathers_agree_with_numpy(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 9), max_size=2)))
    last = data.draw(st.integers(1, 20))
    seed = data.draw(st.integers(0, 99))
    table = from_numpy(np.random.default_rng(seed).standard_normal((*shape, last)).astype(np.float32))
    kind = data.draw(st.sampled_from([np.int32, np.int64, np.uint8]))
    index = from_numpy(
        np.random.default_rng(seed + 1).integers(0 if kind is np.uint8 else -3, last + 3, shape).astype(kind)
    )
    if data.draw(st.booleans()):
        table = table.flip((len(shape),)).pad((*((0, 0),) * len(shape), (1, 2)))
    node = table.gather(index)
    if data.draw(st.booleans()):
        node = node.alu(Ops.ADD, node.reduce(Ops.ADD, tuple(range(len(shape)))).expand(shape)) if shape else node
    if data.draw(st.booleans()) and shape:
        last_axis = node.shape[-1]
        second = from_numpy(np.random.default_rng(seed + 2).integers(0, last_axis, shape[:-1]).astype(np.int32))
        node = node.gather(second)
    with Context(SPEC=1):
        np.testing.assert_allclose(to_numpy(node), evaluate(node), rtol=1e-5, atol=1e-5)


def test_an_index_of_another_shape_or_of_floats_is_refused() -> None:
    table = from_numpy(numbers(3, 4))
    with pytest.raises(ShapeError, match=r"\(3, 4\) by .*\(4,\): need \(3,\)"):
        table.gather(from_numpy(np.zeros(4, np.int32)))
    with pytest.raises(TypeError, match="gather by float32: need ints"):
        table.gather(from_numpy(numbers(3)))

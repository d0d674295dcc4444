"""Indexing against NumPy; the position of index axes against PyTorch's rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, check_gradient, computed, random_array, shapes, tensor_on, thorough
from tinyexplore import Tensor
from tinyexplore.lazy.lazybuffer import ShapeError

X = random_array((3, 4, 5))

BASIC: list[Any] = [
    np.s_[1],
    np.s_[-1],
    np.s_[1, 2, 3],
    np.s_[...],
    np.s_[..., 2],
    np.s_[1, ..., 0],
    np.s_[None],
    np.s_[:, None, 1],
    np.s_[..., None],
    np.s_[1:],
    np.s_[:-1, 1:3],
    np.s_[::2],
    np.s_[::-1],
    np.s_[::-2, 3:0:-2],
    np.s_[:, ::3, ::-3],
    np.s_[2:1],
    np.s_[5:9],
    np.s_[-2:, -9:2],
    np.s_[:, 1, None, ::2],
]
ADVANCED: list[Any] = [
    np.s_[[0, 2, -1]],
    np.s_[[[0, 1], [2, 0]]],
    np.s_[:, [3, 0]],
    np.s_[..., [4, 4, 0]],
    np.s_[[0, 1], [2, 3]],
    np.s_[[0, 1], :, [2, 3]],
    np.s_[1, [0, 2]],
    np.s_[[[0], [1]], [[1, 2, 3]]],
    np.s_[None, [0, 1]],
    np.s_[[0, 1], None, [2, 3]],
    np.s_[1:, [0, 1], ::2],
    np.s_[[True, False, True]],
    np.s_[:, [True, False, True, True]],
    np.s_[[]],
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("index", BASIC + ADVANCED, ids=str)
def test_reading_agrees_with_numpy(index: Any, how: str) -> None:
    wanted = np.array([], int) if index == [] else index
    expected = X[wanted]
    found = tensor_on(how, X)[index]
    assert found.shape == expected.shape
    np.testing.assert_array_equal(computed(found, how), expected)


# of shapes (2, 3, 4, 5); PyTorch 2 and tinygrad 0.9.2 give the same
INTS_AND_PLACES: list[tuple[Any, tuple[int, ...]]] = [
    (np.s_[0, :, [0, 1, 1]], (3, 3, 5)),
    (np.s_[[0, 1, 1], :, 0], (3, 3, 5)),
    (np.s_[:, 0, :, [0, 1, 1]], (2, 4, 3)),
    (np.s_[0, :, :, [0, 1, 1]], (3, 4, 3)),
    (np.s_[0, None, [0, 1, 1]], (1, 3, 4, 5)),
    (np.s_[0, ..., [0, 1, 1]], (3, 4, 3)),
    (np.s_[[0, 1, 1], 0, [0, 1, 2]], (3, 5)),
    (np.s_[:, [0, 1, 1], 0, [0, 1, 2]], (2, 3)),
    (np.s_[[0, 1, 1], :, 0, [0, 1, 2]], (3, 3)),
    (np.s_[[0, 1, 1], ..., [0, 1, 2]], (3, 3, 4)),
    (np.s_[0, :, [[0, 1], [2, 3]], [4, 0]], (3, 2, 2)),
    (np.s_[-1, 1:, ::-1, [[0, 1]]], (2, 4, 1, 2)),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("index, shape", INTS_AND_PLACES, ids=str)
def test_ints_are_applied_before_index_tensors(index: Any, shape: tuple[int, ...], how: str) -> None:
    x = random_array((2, 3, 4, 5))
    ints = tuple(item if isinstance(item, int) or item is None else slice(None) for item in index)
    if Ellipsis in index:
        ints = tuple(Ellipsis if item is Ellipsis else part for item, part in zip(index, ints))
    left = tuple(slice(None) if item is None else item for item in index if not isinstance(item, int))
    expected = x[ints][left]
    assert expected.shape == shape
    np.testing.assert_array_equal(computed(tensor_on(how, x)[index], how), expected)
    as_tensors = tuple(tensor_on(how, np.array(item)) if isinstance(item, (list, int)) else item for item in index)
    np.testing.assert_array_equal(computed(tensor_on(how, x)[as_tensors], how), expected)

    value = random_array(shape, seed=1)
    view = (written := x.copy())[ints]
    view[left] = value
    for asked in (index, as_tensors):
        whole = tensor_on(how, x)
        whole[asked] = tensor_on(how, value)
        np.testing.assert_array_equal(computed(whole, how), written)


@pytest.mark.parametrize("index", [*BASIC[:15], *ADVANCED[:12]], ids=str)
def test_reading_has_gradients(index: Any) -> None:
    check_gradient(lambda t: t[index], random_array((3, 4, 5)))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float64"])
def test_tensors_index_tensors(dtype: str, how: str) -> None:
    x = random_array((6, 3), 0, 100, dtype)
    places = np.array([[5, 0], [-1, 2]])
    for kind in ("int8", "int32", "int64"):
        found = tensor_on(how, x)[tensor_on(how, places.astype(kind))]
        np.testing.assert_array_equal(computed(found, how), x[places])
    mask = random_array((6,), dtype="bool", seed=5)
    np.testing.assert_array_equal(computed(tensor_on(how, x)[Tensor(mask)], how), x[mask])
    both = random_array((6, 3), dtype="bool", seed=6)
    np.testing.assert_array_equal(computed(tensor_on(how, x)[Tensor(both)], how), x[both])
    np.testing.assert_array_equal(computed(tensor_on(how, x)[Tensor(2)], how), x[2])


def test_index_tensors_out_of_range_read_zero() -> None:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x[Tensor([0, 7, -9])].tolist() == [[1, 2], [0, 0], [0, 0]]
    assert x[Tensor([0, 1]), Tensor([3, 1])].tolist() == [0, 4]


def test_infinities_and_nans_are_read_unchanged() -> None:
    x = np.array([np.inf, np.nan, -np.inf, 1], np.float32)
    np.testing.assert_array_equal(Tensor(x)[Tensor([3, 0, 1])].numpy(), x[[3, 0, 1]])


@pytest.mark.parametrize("how", HOW)
def test_gather_agrees_with_numpy(how: str) -> None:
    @thorough
    @given(shapes(1, 3), st.data())
    def check(shape: tuple[int, ...], data: st.DataObject) -> None:
        x = random_array(shape)
        axis = data.draw(st.integers(0, x.ndim - 1))
        index = random_array((*shape[:axis], 3, *shape[axis + 1 :]), 0, shape[axis] - 1, "int32", seed=4)
        found = tensor_on(how, x).gather(axis, tensor_on(how, index))
        np.testing.assert_array_equal(computed(found, how), np.take_along_axis(x, index, axis))

    check()
    check_gradient(lambda t: t.gather(1, Tensor([[0, 0], [2, 1]])), random_array((3, 4)))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("index", BASIC, ids=str)
def test_writing_agrees_with_numpy(index: Any, how: str) -> None:
    for value in (7.5, random_array(X[index].shape, seed=9)):
        expected, t = X.copy(), tensor_on(how, X)
        before = t
        expected[index] = value
        t[index] = value
        assert t is before
        np.testing.assert_array_equal(computed(t, how), expected)


def test_writing_where_a_mask_is_true() -> None:
    x, t = X.copy(), Tensor(X)
    x[x > 0] = -1
    t[t > 0] = -1
    np.testing.assert_array_equal(t.numpy(), x)


def test_writing_inside_no_grad_and_of_lists() -> None:
    t = Tensor([1, 2, 3, 4])
    with Tensor.test():
        t[1:3] = [7, 8]
    assert t.tolist() == [1, 7, 8, 4]


@pytest.mark.parametrize(
    ("index", "kind", "says"),
    [
        (3, IndexError, "index 3 for axis 0 of size 3"),
        ((0, -5), IndexError, "index -5 for axis 1 of size 4"),
        ([0, 3], IndexError, "index 3 for axis 0 of size 3"),
        ((0, 0, 0, 0), IndexError, "4 indices"),
        ((..., ...), IndexError, "a single ellipsis"),
        (1.5, IndexError, "need ints, slices"),
        ("a", IndexError, "need ints, slices"),
        (slice(0.5, None), TypeError, "must be ints"),
        (True, IndexError, "a single bool"),
        (np.array(True), IndexError, "need ints, slices"),
        ((0, Tensor(True)), IndexError, "a bool without axes"),
        ([True, False], IndexError, "2 elements for axis 0"),
    ],
)
def test_wrong_indices_are_errors_at_the_call(index: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind) as caught:
        Tensor(X)[index]
    assert says in str(caught.value)


@pytest.mark.parametrize("is_there", [False, True])
def test_one_bool_for_all_as_numpy_has_it(is_there: bool) -> None:
    mask = np.array(is_there)
    for x in (X, np.float32(2.0)):
        np.testing.assert_array_equal(Tensor(x)[Tensor(is_there)].numpy(), np.asarray(x)[mask])
    for value in (7.0, random_array((5,), seed=1)):
        t, changed = Tensor(X), X.copy()
        t[Tensor(is_there)] = Tensor(value)
        changed[mask] = value
        np.testing.assert_array_equal(t.numpy(), changed)


def test_a_list_of_tensors_is_an_index_for_each_axis() -> None:
    rows, columns = Tensor([0, 2]), Tensor([1, 1])
    np.testing.assert_array_equal(Tensor(X)[[rows, columns]].numpy(), X[[0, 2], [1, 1]])
    np.testing.assert_array_equal(Tensor(X)[[rows, 1]].numpy(), X[[0, 2], 1])
    np.testing.assert_array_equal(Tensor(X)[[rows]].numpy(), X[[0, 2]])


def test_writes_that_do_not_fit_raise_an_error() -> None:
    t = Tensor(X)
    with pytest.raises(ShapeError, match="does not fit into"):
        t[0] = Tensor.ones(2, 4, 5)
    with pytest.raises(ShapeError, match="do not broadcast"):
        t[0] = Tensor.ones(7, 5)
    with pytest.raises(RuntimeError, match="has no gradient"):
        Tensor(X, requires_grad=True)[0] = 1


@pytest.mark.parametrize("length", [0, 1, 2, 5])
@pytest.mark.parametrize("step", [2, 3, -1, -2])
def test_steps_over_few_elements_or_none(length: int, step: int) -> None:
    x = np.arange(length)
    assert Tensor(x)[::step].tolist() == x[::step].tolist()

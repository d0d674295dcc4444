"""Writes by index, reductions of values at equal indices, and selections, against loops in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, Array, check_gradient, computed, quick, random_array, tensor_on
from tinyexplore import GlobalCounters, Tensor
from tinyexplore.engine import create_schedule
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor import scattering

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def reduced(x: Array, axis: int, index: Array, source: Array, reduce: str, include_self: bool) -> Array:
    """By the definition: gather all that go to a place, then reduce them."""
    expected = x.copy()
    meeting: dict[tuple[int, ...], list[Any]] = {}
    for at in np.ndindex(index.shape):
        place = (*at[:axis], int(index[at]), *at[axis + 1 :])
        meeting.setdefault(place, [x[place]] if include_self else []).append(source[at])
    for place, values in meeting.items():
        total = {
            "sum": lambda values: np.sum(values),
            "prod": lambda values: np.prod(values),
            "mean": lambda values: np.mean(values) if x.dtype.kind == "f" else np.sum(values) // len(values),
            "amax": lambda values: np.max(values),
            "amin": lambda values: np.min(values),
        }[reduce]
        expected[place] = total(values)
    return expected


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("include_self", [True, False])
def test_elements_with_equal_indices_are_reduced(reduce: str, include_self: bool, how: str) -> None:
    for axis, dtype in ((0, "float32"), (1, "float32"), (0, "int32")):
        x, source = random_array((4, 5), dtype=dtype), random_array((3, 4), dtype=dtype, seed=1)
        index = random_array((3, 4), 0, 3, "int32", seed=2)
        found = tensor_on(how, x).scatter_reduce(
            axis, tensor_on(how, index), tensor_on(how, source), reduce, include_self=include_self
        )
        expected = reduced(x, axis, index, source, reduce, include_self)
        np.testing.assert_allclose(computed(found, how), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("include_self", [True, False])
def test_an_index_that_is_repeated_is_counted_once(include_self: bool) -> None:
    """Rows that are named whole: of the mean, each row has one count."""
    x, source = random_array((6, 5)), random_array((4, 5), seed=1)
    rows = np.array([[1], [4], [1], [0]], np.int32)
    index = np.broadcast_to(rows, (4, 5))
    for axis, flip in ((0, lambda a: a), (1, np.transpose)):
        one, values = (Tensor(np.ascontiguousarray(flip(part))).realize() for part in (x, source))
        named = Tensor(np.ascontiguousarray(flip(rows))).realize().expand(*flip(index).shape)
        found = one.scatter_reduce(axis, named, values, "mean", include_self=include_self)
        expected = reduced(flip(x), axis, flip(index), flip(source), "mean", include_self)
        sizes = {item.outputs[0].size for item in create_schedule([found.lazydata]) if item.ast is not None}
        assert sizes == {30, 6}
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize(("shape", "axis"), [((60, 5), 0), ((5, 60), 1), ((3, 60, 2), 1), ((60,), 0)])
def test_a_mean_divides_only_the_rows_that_are_named(
    device: str, include_self: bool, dtype: str, shape: tuple[int, ...], axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bits are those of a division of all rows; rows that an index outside names are nowhere."""
    named = np.array([7, 50, 7, 7, 60, -1, 0, 59, 0], np.int32)
    x = random_array(shape, -9, 9, dtype)
    source = random_array((*shape[:axis], len(named), *shape[axis + 1 :]), -9, 9, dtype, seed=1)
    index = named.reshape([len(named) if i == axis else 1 for i in range(len(shape))])

    def mean() -> np.ndarray:
        one, places, values = (Tensor(part, device=device).realize() for part in (x, index, source))
        places = places.expand(*source.shape)
        found = one.scatter_reduce(axis, places, values, "mean", include_self=include_self).numpy()
        np.testing.assert_array_equal(one.numpy(), x)
        return found

    monkeypatch.setattr(scattering, "MIN_ELEMENTS_PER_INDEX", 1)
    in_part = mean()
    monkeypatch.setattr(scattering, "MIN_ELEMENTS_PER_INDEX", 1 << 30)
    np.testing.assert_array_equal(in_part, mean())
    inside = [i for i, row in enumerate(named) if 0 <= row < 60]
    kept, places = source.take(inside, axis), np.broadcast_to(index, source.shape).take(inside, axis)
    expected = reduced(x, axis, places, kept, "mean", include_self)
    np.testing.assert_allclose(in_part, expected, rtol=2e-3 if dtype == "float16" else 1e-5, atol=1e-5)


def test_a_mean_of_few_rows_is_divided_in_place() -> None:
    x, source = Tensor(random_array((6000, 64))).realize(), Tensor(random_array((20, 64))).realize()
    index = Tensor(random_array((20, 1), 0, 5999, "int32")).realize().expand(20, 64)
    mean = x.scatter_reduce(0, index, source, "mean")
    GlobalCounters.reset()
    mean.realize()
    assert (
        GlobalCounters.kernel_count == 6
    )  # sum, counts, counts + 1, the last index of each row, means, a write; no copy


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scattering_has_gradients(reduce: str) -> None:
    index = Tensor([[0, 2, 0], [2, 2, 1]])
    x, source = random_array((3, 3), 0.5, 2), random_array((2, 3), 0.5, 2, seed=1)
    check_gradient(lambda t, s: t.scatter_reduce(0, index, s, reduce), x, source)
    check_gradient(lambda t, s: t.scatter(0, Tensor([[0, 1, 2]]), s), x, source)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_target_of_a_write_may_be_repeated(axis: int) -> None:
    """Its loop is split for the copy, which must stay before all steps, of which the middle axis has but one."""
    x, shape = random_array((3, 1, 3), dtype="int32"), (6, 1, 3)
    index, source = random_array(shape, 0, shape[axis] - 1, "int32", seed=2), random_array(shape, dtype="int32", seed=1)
    found = Tensor(x).repeat(2, 1, 1).scatter_reduce(axis, Tensor(index), Tensor(source), "sum")
    np.testing.assert_array_equal(found.numpy(), reduced(np.tile(x, (2, 1, 1)), axis, index, source, "sum", True))


def test_narrow_indices_count_long_axes() -> None:
    index = Tensor([3], dtype="uint8")
    expected = np.zeros(300, np.float32)
    expected[3] = 1
    np.testing.assert_array_equal(Tensor.zeros(300).scatter(0, index, 1.0).numpy(), expected)
    np.testing.assert_array_equal(index.one_hot(300).numpy()[0], expected)
    x = random_array((300,))
    assert Tensor(x)[Tensor([-100, 5], dtype="int8")].tolist() == [x[200], x[5]]
    assert Tensor(x).gather(0, Tensor([-100, 5], dtype="int8")).tolist() == [x[200], x[5]]
    logits = Tensor(random_array((1, 300)))
    narrow, wide = Tensor([7], dtype="uint8"), Tensor([7])
    assert logits.sparse_categorical_crossentropy(narrow).item() == logits.sparse_categorical_crossentropy(wide).item()
    assert logits.nll_loss(narrow).item() == logits.nll_loss(wide).item()


X = random_array((3, 4, 5))
PLACES: list[Any] = [
    np.s_[[0, 2, -1]],
    np.s_[[[0, 1], [2, 0]]],
    np.s_[:, [3, 0]],
    np.s_[..., [4, 4, 0]],
    np.s_[[0, 1], [2, 3]],
    np.s_[[0, 1], :, [2, 3]],
    np.s_[1, [0, 2]],
    np.s_[1:, :, [0, 2]],
    np.s_[[[0], [1]], [[1, 2, 3]]],
    np.s_[None, [0, 1]],
    np.s_[1:, [0, 1], ::2],
    np.s_[[True, False, True]],
    np.s_[:, [True, False, True, True]],
    np.s_[::-1, [1, 2]],
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("index", PLACES, ids=str)
def test_writes_at_indices_agree_with_numpy(index: Any, how: str) -> None:
    for value in (7.5, random_array(X[index].shape, seed=9), random_array(X[index].shape[-1:], seed=8)):
        expected, t = X.copy(), tensor_on(how, X)
        expected[index] = value
        t[index] = value if isinstance(value, float) else tensor_on(how, value)
        np.testing.assert_array_equal(computed(t, how), expected)


def test_writing_by_tensors_and_masks() -> None:
    x, t = X.copy(), Tensor(X)
    x[np.array([2, 0]), 1] = -1
    t[Tensor([2, 0]), 1] = -1
    x[x > 1] = np.arange(np.count_nonzero(x > 1))
    mask = t > 1
    t[mask] = Tensor.arange(int(mask.sum().item())).float()
    np.testing.assert_array_equal(t.numpy(), x)
    t[Tensor([0, 9])] = 3.0  # 9 names nothing
    assert t[0].tolist() == [[3.0] * 5] * 4
    counts = Tensor([1, 2, 3])
    counts[[0, 0]] = [8, 9]
    assert counts.tolist() == [9, 2, 3]


@pytest.mark.parametrize("how", HOW)
def test_writes_at_arbitrary_indices_agree_with_numpy(how: str) -> None:
    def item(size: int) -> st.SearchStrategy[Any]:
        place = st.integers(-size, size - 1)
        edges = st.none() | st.integers(-size - 1, size + 1)
        steps = st.none() | st.sampled_from((-2, -1, 1, 2))
        return place | st.builds(slice, edges, edges, steps) | st.lists(place, min_size=1, max_size=2)

    @quick
    @given(st.tuples(*(item(size) for size in X.shape)), st.integers(1, 3))
    def check(index: tuple[Any, ...], kept: int) -> None:
        lengths = {len(part) for part in index[:kept] if isinstance(part, list)} - {1}
        if len(lengths) > 1:
            return
        index = index[:kept]
        np.testing.assert_array_equal(computed(tensor_on(how, X)[index], how), X[index])
        value = random_array(X[index].shape, seed=3)
        expected, t = X.copy(), tensor_on(how, X)
        expected[index] = value
        t[index] = tensor_on(how, value)
        np.testing.assert_array_equal(computed(t, how), expected)

    check()


def test_selections_of_a_fixed_size() -> None:
    x = Tensor([0.0, 3.0, 0.0, 5.0])
    assert x.masked_select(x > 0, size=3, fill_value=-1).tolist() == [3, 5, -1]
    assert x.masked_select(x > 0, size=1).tolist() == [3]
    assert x.nonzero(size=3, fill_value=9).tolist() == [[1], [3], [9]]
    assert x.nonzero(size=1).tolist() == [[1]]


def test_shapes_that_do_not_fit_raise_an_error() -> None:
    with pytest.raises(ValueError, match="reduce='max'; .*sum, prod, mean, amax, amin"):
        Tensor.ones(3).scatter_reduce(0, Tensor([0]), Tensor([1.0]), "max")
    with pytest.raises(ShapeError, match="do not fit"):
        Tensor.ones(3).scatter_reduce(0, Tensor([[0]]), Tensor([1.0]), "sum")
    with pytest.raises(TypeError, match="tensor of float32: need ints"):
        Tensor.ones(3).scatter(0, Tensor([0.0]), 1.0)
    with pytest.raises(ShapeError, match="does not fit into"):
        Tensor(X)[[0, 1]] = Tensor.ones(3, 2, 4, 5)

"""Sorting, scattering and selecting, against NumPy and plain loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, check_gradient, computed, quick, random_array, shapes, tensor_on, thorough
from tinyexplore import Tensor
from tinyexplore.dtype import dtypes
from tinyexplore.engine import schedule
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor import ordering, radix, selection
from tinyexplore.tensor.radix import digit_size, is_search_cheaper, run_size
from tinyexplore.tensor.selection import nth_index
from tinyexplore.uop import Ops


@pytest.mark.parametrize("how", HOW)
def test_sorting_agrees_with_numpy(how: str) -> None:
    @quick
    @given(shapes(1, 3, 5), st.data(), st.booleans())
    def check(shape: tuple[int, ...], data: st.DataObject, descending: bool) -> None:
        x = random_array(shape, -3, 3, "int32").astype(np.float32)  # ties are likely
        axis = data.draw(st.integers(0, x.ndim - 1))
        values, places = tensor_on(how, x).sort(axis, descending)
        expected = np.argsort(-x if descending else x, axis, kind="stable")
        np.testing.assert_array_equal(computed(places, how), expected)
        np.testing.assert_array_equal(computed(values, how), np.take_along_axis(x, expected, axis))

    check()
    x = np.array([2.0, np.nan, -np.inf, 1.0, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(computed(tensor_on(how, x).sort()[0], how), np.sort(x))
    check_gradient(lambda t: t.sort(1)[0], random_array((2, 4)))


def in_order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The places of a stable sort; NaN is the largest."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.argsort(np.flip(x, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - backwards, axis)


SORTABLE = "float32 float64 float16 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split()


def tied_array(shape: Sequence[int], name: str, seed: int) -> np.ndarray:
    """Full of ties, extremes, NaN and zeros of both signs."""
    dtype = np.dtype(name)
    generator = np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.kind == "f":
        limits = np.finfo(dtype)
        odd = np.array([np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1, -1, limits.max, limits.tiny], dtype)
        x = generator.standard_normal(shape).astype(dtype)
    else:
        info = np.iinfo(dtype)
        odd = np.array([info.min, info.max, 0, 1, info.max - 1, info.max // 2], dtype)
        x = generator.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(generator.random(shape) < 0.5, x, generator.choice(odd, shape))


@st.composite
def long_arrays(draw: st.DrawFn, longest: int) -> np.ndarray:
    """Arrays of any dtype with one axis that may be long, or empty."""
    shape = draw(st.lists(st.integers(0, 3), max_size=2))
    shape.insert(draw(st.integers(0, len(shape))), draw(st.integers(0, longest)))
    return tied_array(shape, draw(st.sampled_from(SORTABLE)), draw(st.integers(0, 99)))


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_searchsorted_agrees_with_numpy(device: str) -> None:
    """The loop over overlapping windows is split. Two of its parts read consecutive elements, and the place needs
    both."""
    x = np.random.default_rng(5).integers(0, 4, (15, 2)).astype(np.int32)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, 0)[::2]
    for order in permutations(range(3)):
        flat = windows.transpose(order).reshape(-1)
        tensor = Tensor(x, device=device).unfold(0, 3, 2).permute(order).reshape(-1)
        np.testing.assert_array_equal(tensor.argsort().numpy(), flat.argsort(kind="stable"))
        np.testing.assert_array_equal(tensor.topk(20, 0, False)[1].numpy(), flat.argsort(kind="stable")[:20])
        np.testing.assert_array_equal(tensor.argmax().numpy(), flat.argmax())


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_radix_sort_agrees_with_numpy(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "SHORT", 1)
    monkeypatch.setattr(ordering, "MAX_PAIRWISE_COMPARISONS", 0)

    @(thorough if device == "LLVM" else quick)
    @given(long_arrays(300 if device == "LLVM" else 20), st.data(), st.booleans())
    def check(x: np.ndarray, data: st.DataObject, descending: bool) -> None:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        expected = in_order(x, axis, descending)
        values, places = Tensor(x, device=device).sort(axis, descending)
        np.testing.assert_array_equal(places.numpy(), expected)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, axis))

    check()


@pytest.mark.parametrize("dtype", SORTABLE)
def test_radix_sort_sorts_every_dtype(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "MAX_PAIRWISE_COMPARISONS", 0)
    x = tied_array((70,), dtype, 1)
    for descending in (False, True):
        found = Tensor(x).argsort(descending=descending)
        np.testing.assert_array_equal(found.numpy(), in_order(x, 0, descending))


def test_long_axes_are_sorted_and_have_gradients() -> None:
    x = random_array((5000,))
    t = Tensor(x, requires_grad=True)
    values, places = t.sort(descending=True)
    np.testing.assert_array_equal(values.numpy(), -np.sort(-x))
    (values * Tensor(np.arange(5000, dtype=np.float32))).sum().backward()
    expected = np.empty(5000, np.float32)
    expected[places.numpy()] = np.arange(5000)
    assert t.grad is not None
    np.testing.assert_array_equal(t.grad.numpy(), expected)
    best, _ = Tensor(x).topk(5)
    np.testing.assert_array_equal(best.numpy(), -np.sort(-x)[:5])


def test_a_pass_is_five_kernels_for_a_digit_and_all_passes_are_the_same_ones() -> None:
    items = schedule([Tensor(random_array((1 << 14,))).realize().argsort().lazydata])
    bits = digit_size(32, 1 << 14)
    passes = -(-32 // bits)
    packed, memory, first_shift, further_shifts, places = 1, 1, 1, passes - 1, 1
    assert len(items) == packed + memory + first_shift + further_shifts + 5 * passes + places
    assert len({item.ast for item in items}) == packed + memory + first_shift + 1 + 5 + places


def test_digits_have_the_cheapest_number_of_bits() -> None:
    assert [digit_size(32, length) for length in (10, 100, 1000, 1 << 16)] == [4, 5, 8, 11]
    assert digit_size(64, 1 << 16) == 11


def test_long_rows_are_split_into_blocks_and_padded_with_the_last_value_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(radix, "SHORTEST_BLOCK", 100)
    monkeypatch.setattr(ordering, "MAX_PAIRWISE_COMPARISONS", 0)
    x = tied_array((3, 1001), "float32", 2)
    np.testing.assert_array_equal(Tensor(x).argsort().numpy(), in_order(x, 1, False))
    expected = np.take_along_axis(x, in_order(x, 1, True), 1)
    np.testing.assert_array_equal(Tensor(x).sort(descending=True)[0].numpy(), expected)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("largest", [True, False])
def test_the_first_of_long_axes_are_those_of_a_sort(dim: int, largest: bool) -> None:
    x = random_array((130, 1100)).round(1)
    x[3], x[4, ::2], x[:9, 10], x[6] = 0.0, -0.0, np.nan, -np.inf
    values, places = Tensor(x).topk(7, dim, largest)
    sorted_values, sorted_places = Tensor(x).sort(dim, descending=largest)
    np.testing.assert_array_equal(places.numpy(), sorted_places.numpy().take(range(7), dim))
    np.testing.assert_array_equal(values.numpy(), sorted_values.numpy().take(range(7), dim))
    kernels = len(schedule([Tensor(x).realize().topk(7, dim, largest)[1].lazydata]))
    assert kernels == {0: 9, 1: 17}[dim]  # no sort; of the longer rows, first the runs that have them


def test_few_of_a_long_row_are_found_without_sorting() -> None:
    """The cost depends on the reads of each element, not on the number of results."""
    assert is_search_cheaper(1024, 8) and is_search_cheaper(1024, 50) and is_search_cheaper(50_000, 100)
    assert not is_search_cheaper(1024, 100) and not is_search_cheaper(1 << 20, 129)
    x = random_array((2, 20_000)).round(2)
    order = np.argsort(-x, axis=1, kind="stable")[:, :40]
    values, places = Tensor(x).topk(40)
    np.testing.assert_array_equal(places.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("device", ["LLVM", "PYTHON"])
def test_selected_elements_are_the_first_of_a_sort(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "SHORT", 1)
    monkeypatch.setattr(ordering, "MAX_PAIRWISE_COMPARISONS", 0)
    monkeypatch.setattr(ordering, "is_search_cheaper", lambda length, count: False)

    @(thorough if device == "LLVM" else quick)
    @given(long_arrays(200 if device == "LLVM" else 12), st.data(), st.booleans())
    def check(x: np.ndarray, data: st.DataObject, descending: bool) -> None:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        count = data.draw(st.integers(0, x.shape[axis] // 2))
        expected = in_order(x, axis, descending).take(range(count), axis)
        values, places = Tensor(x, device=device).topk(count, axis, descending)
        np.testing.assert_array_equal(places.numpy(), expected)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, axis))
        if x.size:
            rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
            nth = data.draw(st.integers(1, x.shape[axis]))
            found = nth_index(Tensor(rows, device=device), nth)
            np.testing.assert_array_equal(found.numpy(), in_order(rows, 1, False)[:, nth - 1 : nth])

    check()


def test_counts_of_rows_of_any_length_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two counts share an integer: of 32 bits in short rows, of 64 bits in long ones."""
    x = tied_array((2, 3000), "float32", 3)
    expected = in_order(x, 1, True)[:, :1200]
    for short in (1 << 15, 1):
        monkeypatch.setattr(selection, "SHORT_COUNTS", short)
        np.testing.assert_array_equal(Tensor(x).topk(1200)[1].numpy(), expected)


def test_selecting_takes_few_programs() -> None:
    """The kernels of every other group of bits are the same."""
    items = schedule([Tensor(random_array((64, 1024))).realize().topk(100)[1].lazydata])
    reductions = [sum(node.op is Ops.REDUCE for node in item.ast.toposort()) for item in items]
    sums = [item.ast for item, number in zip(items, reductions) if number == selection.BITS_OF_KERNEL]
    assert len(sums) == 32 // selection.BITS_OF_KERNEL and len(set(sums)) == 2


@pytest.mark.parametrize("how", HOW)
def test_topk(how: str) -> None:
    x = random_array((3, 7))
    values, places = tensor_on(how, x).topk(3, dim=1)
    np.testing.assert_array_equal(computed(values, how), -np.sort(-x, 1)[:, :3])
    np.testing.assert_array_equal(computed(places, how), np.argsort(-x, 1)[:, :3])
    smallest, _ = tensor_on(how, x).topk(2, dim=0, largest=False)
    np.testing.assert_array_equal(computed(smallest, how), np.sort(x, 0)[:2])
    with pytest.raises(ValueError, match="need 0 ≤ k ≤ 7"):
        Tensor(x).topk(8)


@pytest.mark.parametrize("how", HOW)
def test_running_products_and_extremes(how: str) -> None:
    x = random_array((4, 5), -2, 2, "int32").astype(np.float32)
    for axis in (0, 1):
        t = tensor_on(how, x)
        np.testing.assert_array_equal(computed(t.cumprod(axis), how), x.cumprod(axis))
        for found, kind in ((t.cummax(axis), np.maximum), (t.cummin(axis), np.minimum)):
            values, places = (computed(part, how) for part in found)
            np.testing.assert_array_equal(values, kind.accumulate(x, axis))
            np.testing.assert_array_equal(np.take_along_axis(x, places, axis), values)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("reduce", [None, "add", "multiply"])
@pytest.mark.parametrize("axis", [0, 1])
def test_scatter(axis: int, reduce: str | None, how: str) -> None:
    x, source = random_array((4, 5)), random_array((3, 4), seed=1)
    index = random_array((3, 4), 0, 3, "int32", seed=2)
    expected = x.copy()
    for i, j in np.ndindex(index.shape):
        place = (index[i, j], j) if axis == 0 else (i, index[i, j])
        value = source[i, j]
        expected[place] = {None: value, "add": expected[place] + value, "multiply": expected[place] * value}[reduce]
    found = tensor_on(how, x).scatter(axis, tensor_on(how, index), tensor_on(how, source), reduce=reduce)
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-5, atol=1e-6)


def test_scatter_of_a_number_and_errors_of_scatter() -> None:
    assert Tensor.zeros(2, 3).scatter(1, Tensor([[2], [0]]), 1.5).tolist() == [[0, 0, 1.5], [1.5, 0, 0]]
    with pytest.raises(ShapeError, match="do not fit"):
        Tensor.zeros(2, 3).scatter(1, Tensor([[2], [0], [1]]), 1.5)
    with pytest.raises(ValueError, match="choose None, 'add' or 'multiply'"):
        Tensor.zeros(2, 3).scatter(1, Tensor([[2], [0]]), 1.5, reduce="max")


def test_selecting() -> None:
    x = random_array((3, 4))
    assert Tensor(x).masked_select(Tensor(x) > 0).tolist() == x[x > 0].tolist()
    np.testing.assert_array_equal((Tensor(x) > 0).nonzero().numpy(), np.argwhere(x > 0))
    assert Tensor.zeros(3).nonzero().shape == (0, 1)


def test_a_random_order_has_every_number_once() -> None:
    Tensor.manual_seed(1)
    first, second = Tensor.randperm(50).tolist(), Tensor.randperm(50).tolist()
    assert sorted(first) == sorted(second) == list(range(50)) and first != second


def test_axes_are_rearranged_by_name() -> None:
    x = random_array((2, 12, 5))
    found = Tensor(x).rearrange("b (h w) c -> b c h w", h=3)
    np.testing.assert_array_equal(found.numpy(), x.reshape(2, 3, 4, 5).transpose(0, 3, 1, 2))
    back = found.rearrange("b c h w -> b (h w) c")
    np.testing.assert_array_equal(back.numpy(), x)
    assert Tensor(x).rearrange("a b c -> (a b c) 1").shape == (120, 1)
    with pytest.raises(ShapeError, match="does not split"):
        Tensor(x).rearrange("b (h w) c -> b c h w", h=5)
    with pytest.raises(ValueError, match="must name the same axes"):
        Tensor(x).rearrange("a b c -> a b")


@pytest.mark.parametrize("how", HOW)
def test_running_extremes_return_the_index_of_nan(how: str) -> None:
    x = tensor_on(how, np.array([1.0, np.nan, 3.0, np.nan, 0.0], np.float32))
    for found in (x.cummax(0)[1], x.cummin(0)[1]):
        np.testing.assert_array_equal(computed(found, how), [0, 1, 1, 3, 3])


def test_running_totals_of_nothing_have_the_type_of_a_total() -> None:
    for t in (Tensor([], dtype="bool"), Tensor(True), Tensor([[]], dtype="int8")):
        assert t.cumsum(0).dtype is t.cumprod(0).dtype is t.sum().dtype
        assert t.cumsum(0).shape == t.shape


def test_one_number_without_axes() -> None:
    t = Tensor(3.0)
    for found in (*t.sort(0), *t.topk(1), t.transpose(0, -1), t.cummax(0)[0]):
        assert found.shape == ()
    assert (t.topk(1)[0].item(), t.topk(1)[1].item()) == (3.0, 0)
    for divide in (t.split, t.chunk):
        with pytest.raises(ShapeError, match="a tensor without axes"):
            divide(1)
    assert [part.shape for part in Tensor.zeros(0, 2).chunk(3)] == [(0, 2)] * 3


@pytest.mark.parametrize("dtype", [name for name in SORTABLE if np.dtype(name).itemsize < 8])
@pytest.mark.parametrize("length", [1000, 1024])
def test_the_first_of_a_long_row_are_found_in_the_runs_that_have_them(
    dtype: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "MAX_PAIRWISE_COMPARISONS", 0)
    assert run_size(length, 5) > 1
    x = tied_array((3, length), dtype, 2)
    for largest in (False, True):
        values, places = Tensor(x).topk(5, largest=largest)
        expected = in_order(x, 1, largest)[:, :5]
        np.testing.assert_array_equal(places.numpy(), expected)
        np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, expected, 1))


def test_values_sorted_without_indices_have_the_same_gradient() -> None:
    x = random_array((3, 700))
    weights = Tensor(np.arange(700, dtype=np.float32))
    expected = np.argsort(np.argsort(x, 1), 1).astype(np.float32)
    marked = Tensor(x, requires_grad=True)
    (marked.sort()[0] * weights).sum().backward()
    assert marked.grad is not None
    np.testing.assert_array_equal(marked.grad.numpy(), expected)
    plain = Tensor(x)
    (found,) = (plain.sort()[0] * weights).sum().gradient(plain)
    np.testing.assert_array_equal(found.numpy(), expected)
    # in 32 bits: the places are nowhere
    items = Tensor(x).sort()[0].schedule()
    assert not any(node.dtype is dtypes.int64 for item in items for node in item.ast.find(Ops.LOAD))

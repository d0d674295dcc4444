"""Movement operations against NumPy, and their gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, check_gradient, computed, quick, random_array, shapes, tensor_on, thorough
from tinyexplore import Tensor, dtypes
from tinyexplore.lazy.lazybuffer import ShapeError

X = random_array((2, 3, 4))
WIDE = random_array((4, 6))

# name → (operation, the same with NumPy, argument)
CASES: dict[str, tuple[Callable, Callable, np.ndarray]] = {
    "reshape": (lambda t: t.reshape(4, -1), lambda x: x.reshape(4, -1), X),
    "view": (lambda t: t.view((6, 4)), lambda x: x.reshape(6, 4), X),
    "flatten": (lambda t: t.flatten(1), lambda x: x.reshape(2, 12), X),
    "unflatten": (lambda t: t.unflatten(-1, (2, -1)), lambda x: x.reshape(2, 3, 2, 2), X),
    "permute": (lambda t: t.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1), X),
    "transpose": (lambda t: t.transpose(0, -1), lambda x: x.swapaxes(0, -1), X),
    "T": (lambda t: t.T, lambda x: x.swapaxes(0, 1), X),
    "expand": (lambda t: t.expand(5, -1, 3, 4), lambda x: np.broadcast_to(x, (5, 2, 3, 4)), X),
    "flip": (lambda t: t.flip(0, -1), lambda x: np.flip(x, (0, -1)), X),
    "squeeze": (lambda t: t.reshape(2, 1, 12, 1).squeeze(), lambda x: x.reshape(2, 12), X),
    "unsqueeze": (lambda t: t.unsqueeze(-1), lambda x: x[..., None], X),
    "shrink": (lambda t: t.shrink((None, (1, 3), (0, 2))), lambda x: x[:, 1:3, :2], X),
    "pad": (lambda t: t.pad(((1, 0), None, (2, 1))), lambda x: np.pad(x, ((1, 0), (0, 0), (2, 1))), X),
    "pad value": (
        lambda t: t.pad(((1, 2), None, None), value=3.5),
        lambda x: np.pad(x, ((1, 2), (0, 0), (0, 0)), constant_values=3.5),
        X,
    ),
    "pad negative": (
        lambda t: t.pad(((-1, 1), None, (0, -2))),
        lambda x: np.pad(x[1:, :, :2], ((0, 1), (0, 0), (0, 0))),
        X,
    ),
    "pad2d": (lambda t: t.pad2d((1, 2, 3, 0)), lambda x: np.pad(x, ((0, 0), (3, 0), (1, 2))), X),
    "repeat": (lambda t: t.repeat(2, 1, 3, 2), lambda x: np.tile(x, (2, 1, 3, 2)), X),
    "repeat_interleave": (lambda t: t.repeat_interleave(3, 1), lambda x: np.repeat(x, 3, 1), X),
    "cat": (lambda t: t.cat(t[:, 1:], t, dim=1), lambda x: np.concatenate((x, x[:, 1:], x), 1), X),
    "stack": (lambda t: t.stack(t + 1, dim=1), lambda x: np.stack((x, x + 1), 1), X),
    "split": (lambda t: t.split([1, 2], 1)[1], lambda x: x[:, 1:], X),
    "chunk": (lambda t: t.chunk(3, -1)[1], lambda x: x[..., 2:4], X),
    "roll": (lambda t: t.roll((1, -2), (0, 2)), lambda x: np.roll(x, (1, -2), (0, 2)), X),
    "roll flat": (lambda t: t.roll(5), lambda x: np.roll(x, 5), X),
    "diagonal": (lambda t: t.diagonal(1), lambda x: np.diagonal(x, 1), WIDE),
    "diagonal batched": (lambda t: t.diagonal(-1, 1, 2), lambda x: np.diagonal(x, -1, 1, 2), X),
    "diag": (lambda t: t[0].diag(), lambda x: np.diag(x[0]), WIDE),
    "tril": (lambda t: t.tril(1), lambda x: np.tril(x, 1), X),
    "triu": (lambda t: t.triu(-1), lambda x: np.triu(x, -1), X),
    "unfold": (
        lambda t: t.unfold(1, 3, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)[:, ::2],
        WIDE,
    ),
    "unfold apart": (
        lambda t: t.unfold(1, 2, 3),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1)[:, ::3],
        WIDE,
    ),
    "window dilated": (
        lambda t: t._window(1, 3, 1, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 5, axis=1)[..., ::2],
        WIDE,
    ),
    "window dilated, strided": (
        lambda t: t._window(1, 2, 2, 2),
        lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)[:, ::2, ::2],
        WIDE,
    ),
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", CASES)
def test_movements_agree_with_numpy(name: str, how: str) -> None:
    operation, expected, x = CASES[name]
    np.testing.assert_array_equal(computed(operation(tensor_on(how, x)), how), expected(x))


@pytest.mark.parametrize("name", CASES)
def test_movements_have_gradients(name: str) -> None:
    operation, _, x = CASES[name]
    check_gradient(operation, x)


@pytest.mark.parametrize("how", HOW)
def test_chains_of_movements_agree_with_numpy(how: str) -> None:
    @thorough
    @given(shapes(1, 3), st.data())
    def check(shape: tuple[int, ...], data: st.DataObject) -> None:
        x = random_array(shape)
        t = tensor_on(how, x)
        for _ in range(data.draw(st.integers(1, 5))):
            kind = data.draw(st.sampled_from(("permute", "flip", "pad", "slice", "reshape", "add")))
            axis = data.draw(st.integers(0, x.ndim - 1))
            if kind == "permute":
                order = data.draw(st.permutations(range(x.ndim)))
                t, x = t.permute(order), x.transpose(order)
            elif kind == "flip":
                t, x = t.flip(axis), np.flip(x, axis)
            elif kind == "pad" and x.size < 200:
                amounts = [(1, 2) if i == axis else (0, 0) for i in range(x.ndim)]
                t, x = t.pad(amounts), np.pad(x, amounts)
            elif kind == "slice":
                part = tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(x.ndim))
                t, x = t[part], x[part]
            elif kind == "reshape":
                t, x = t.flatten(), x.reshape(-1)
            elif kind == "add":
                t, x = t + 1, x + 1
        np.testing.assert_array_equal(computed(t, how), x)

    check()


def test_nothing_moves_where_nothing_changes() -> None:
    t = Tensor(X)
    assert t.reshape(2, 3, 4) is t
    assert t.permute(0, 1, 2) is t
    assert t.expand(2, 3, 4) is t
    assert t.pad((None, None, None)) is t
    assert t.squeeze(0) is t


@pytest.mark.parametrize(
    ("act", "says"),
    [
        (lambda t: t.reshape(5, 5), "24 elements are not 25"),
        (lambda t: t.reshape(-1, -1, 2), "only one size can be -1"),
        (lambda t: t.reshape(-1, 5), "24 elements do not divide by 5"),
        (lambda t: t.expand(2, 5, 4), "only axes of size 1"),
        (lambda t: t.permute(0, 0, 1), "need each of 0..2 once"),
        (lambda t: t.shrink((None, (0, 9), None)), "0 ≤ start ≤ stop ≤ size"),
        (lambda t: t.pad(((1, 1),)), "one (before, after) or None"),
        (lambda t: t.cat(Tensor(WIDE)), "all other axes must agree"),
        (lambda t: t.stack(Tensor(WIDE)), "they must be equal"),
        (lambda t: t.split([1, 1, 3], 1), "they add up to 5"),
        (lambda t: t.unfold(0, 5, 1), "need 0 ≤ size ≤ 2"),
        (lambda t: t + Tensor(WIDE), "(2, 3, 4) and (4, 6) do not broadcast: axis -1"),
    ],
)
def test_shapes_that_do_not_fit_are_errors_at_the_call(act: Callable, says: str) -> None:
    with pytest.raises(ShapeError) as caught:
        act(Tensor(X))
    assert says in str(caught.value)


def test_an_axis_that_is_not_there_is_an_index_error() -> None:
    for act in (lambda t: t.sum(3), lambda t: t.flip(-4), lambda t: t.unsqueeze(5), lambda t: t.transpose(0, 3)):
        with pytest.raises(IndexError, match="choose one of"):
            act(Tensor(X))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")])
def test_padding_with_existing_elements(mode: str, numpy_mode: str, how: str) -> None:
    @quick
    @given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=2))
    def check(amounts: list[tuple[int, int]]) -> None:
        x = random_array((3, 4))
        found = tensor_on(how, x).pad(amounts, mode=mode)
        np.testing.assert_array_equal(computed(found, how), np.pad(x, amounts, mode=numpy_mode))  # type: ignore[call-overload]

    check()
    check_gradient(lambda t: t.pad(((1, 2), (0, 3)), mode=mode), random_array((3, 4)))


@pytest.mark.parametrize(("mode", "numpy_mode"), [("reflect", "reflect"), ("replicate", "edge")])
def test_negative_padding_applies_after_positive_padding(mode: str, numpy_mode: str) -> None:
    x = random_array((3, 4))
    found = Tensor(x).pad((3, -4, -2, 1), mode=mode).numpy()
    np.testing.assert_array_equal(found, np.pad(x, ((0, 1), (3, 0)), mode=numpy_mode)[2:, :3])  # type: ignore[call-overload]
    assert Tensor(x).pad(padding=((1, 0), None), mode="circular").tolist() == x[[2, 0, 1, 2]].tolist()


def test_a_list_can_be_stacked() -> None:
    x, y = Tensor([1, 2]), Tensor([3, 4])
    for both in ([x, y], (x, y)):
        assert Tensor.stack(both, dim=1).tolist() == x.stack(y, dim=1).tolist() == [[1, 3], [2, 4]]
    assert Tensor([5, 6]).T.tolist() == [5, 6]


def test_windows_of_empty_tensors_are_counted() -> None:
    assert Tensor.ones(2, 5).unfold(1, 0, 2).shape == (2, 3, 0)  # at 0, 2 and 4
    assert Tensor.ones(4).unfold(0, 0, 1).shape == (5, 0)
    assert Tensor.ones(2, 0).unfold(1, 0, 3).shape == (2, 1, 0)


def test_padding_by_more_than_the_size() -> None:
    with pytest.raises(ShapeError, match=r"'reflect': at most 2"):
        Tensor.ones(3).pad((3, 0), mode="reflect")
    with pytest.raises(ShapeError, match=r"'circular': at most 3"):
        Tensor.ones(3).pad((4, 0), mode="circular")
    with pytest.raises(ValueError, match="mode 'mirror'; .*constant, reflect"):
        Tensor.ones(3).pad((1, 1), mode="mirror")


@pytest.mark.parametrize("how", HOW)
def test_rearranging_with_an_ellipsis(how: str) -> None:
    x = random_array((2, 3, 4, 6))
    t = tensor_on(how, x)
    np.testing.assert_array_equal(
        computed(t.rearrange("a ... (b c) -> c a ... b", b=2), how),
        np.transpose(x.reshape(2, 3, 4, 2, 3), (4, 0, 1, 2, 3)),
    )
    np.testing.assert_array_equal(
        computed(t.rearrange("a ... b -> b (a ...)"), how), x.transpose(3, 0, 1, 2).reshape(6, 24)
    )


def test_none_preserves_a_size() -> None:
    x = Tensor.arange(12).reshape(3, 1, 4)
    assert x.reshape(None, 2, 2).shape == x.reshape((3, 2, 2)).shape == (3, 2, 2)
    assert x.expand((None, 5, None)).shape == (3, 5, 4)
    assert x.expand(2, None, 5, -1).shape == (2, 3, 5, 4)


def test_empty_parts_that_are_joined_have_empty_gradients() -> None:
    parts = [Tensor.ones(2, size, requires_grad=True) for size in (0, 3, 0)]
    joined = parts[0].cat(*parts[1:], dim=1)
    (joined * 2).sum().backward()
    assert [part.grad.shape for part in parts if part.grad is not None] == [(2, 0), (2, 3), (2, 0)]
    np.testing.assert_array_equal(parts[1].grad.numpy(), 2)


def test_a_scalar_flattens_to_one_element() -> None:
    assert Tensor(2.0).flatten().tolist() == [2.0]
    assert Tensor(2.0).masked_select(Tensor(True)).tolist() == [2.0]


def test_padding_preserves_the_dtype_if_it_holds_the_value() -> None:
    assert Tensor([True]).pad(((1, 0),), value=1).dtype is dtypes.bool
    assert Tensor([3], dtype="uint8").pad(((1, 0),), value=7.0).dtype is dtypes.uint8
    assert Tensor([3]).pad(((1, 0),), value=0.5).tolist() == [0.5, 3.0]
    assert Tensor([True, False]).pad(((1, 0),), value=1).tolist() == [True, True, False]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_joined_zeros_keep_their_sign(dtype: str, how: str) -> None:
    parts = [np.array([[-0.0, 0.0, 1.0], [-0.0, -0.0, np.nan]], dtype) for _ in range(3)]
    for axis in (0, 1):
        joined = tensor_on(how, parts[0]).cat(*(tensor_on(how, part) for part in parts[1:]), dim=axis)
        found, expected = computed(joined, how), np.concatenate(parts, axis)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("how", [how for how in HOW if how != "reference"])
def test_realized_windows_can_be_moved(how: str) -> None:
    x = random_array((5, 3))
    windows = (tensor_on(how, x) < 0).unfold(1, 2, 2)
    moved = windows.permute(2, 1, 0)
    expected = np.lib.stride_tricks.sliding_window_view(x < 0, 2, 1)[:, ::2]
    np.testing.assert_array_equal(windows.numpy(), expected)
    np.testing.assert_array_equal(moved.numpy(), expected.transpose(2, 1, 0))
    np.testing.assert_array_equal((~windows.permute(2, 1, 0)).numpy(), ~expected.transpose(2, 1, 0))

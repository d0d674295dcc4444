"""Matrix products, convolutions, pooling, attention and losses, against NumPy; gradients against differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ops.support import HOW, Array, check_gradient, computed, quick, random_array, tensor_on, thorough
from tinyexplore import Context, Device, Tensor, dtypes, nn
from tinyexplore.engine import create_schedule
from tinyexplore.kernel import Kernel
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.nn.state import get_parameters
from tinyexplore.tensor import processing
from tinyexplore.tensor.winograd import minimal_filters
from tinyexplore.uop import Ops
from tinyexplore.util import GlobalCounters

PRODUCTS = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((2, 3), (3, 4)),
    ((5, 2, 3), (3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)),
    ((3,), (5, 3, 4)),
    ((2, 1, 2, 3), (5, 3, 4)),
    ((17, 33), (33, 9)),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul_agrees_with_numpy(left: tuple[int, ...], right: tuple[int, ...], how: str) -> None:
    x, w = random_array(left), random_array(right, seed=1)
    found = computed(tensor_on(how, x) @ tensor_on(how, w), how)
    np.testing.assert_allclose(found, x @ w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("left", "right"), PRODUCTS[:-1])
def test_matmul_has_gradients(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    check_gradient(lambda x, w: x @ w, random_array(left), random_array(right, seed=1))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float16", "float64"])
def test_matmul_preserves_the_dtype(dtype: str, how: str) -> None:
    x, w = random_array((4, 7), 0, 9, dtype), random_array((7, 3), 0, 9, dtype, seed=1)
    found = computed(tensor_on(how, x) @ tensor_on(how, w), how)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, x @ w, rtol=2e-3 if dtype == "float16" else 1e-6)


def test_matmul_errors_name_the_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match=r"first \(3\) .*second \(4\)"):
        Tensor.ones(2, 3) @ Tensor.ones(4, 5)
    with pytest.raises(ShapeError, match="a scalar"):
        Tensor.ones(2, 3).dot(Tensor(1.0))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("ij,kj,j->ik", [(2, 3), (4, 3), (3,)]),
        ("aij,jka->k", [(2, 3, 4), (4, 5, 2)]),
        ("...ij,...jk->...ik", [(5, 1, 2, 3), (2, 3, 4)]),
        ("i...,i", [(2, 3), (2,)]),
        ("...->...", [(2, 3)]),
    ],
)
def test_einsum_agrees_with_numpy(formula: str, shapes: list[tuple[int, ...]], how: str) -> None:
    xs = [random_array(shape, seed=i) for i, shape in enumerate(shapes)]
    found = computed(Tensor.einsum(formula, *(tensor_on(how, x) for x in xs)), how)
    np.testing.assert_allclose(found, np.einsum(formula, *xs), rtol=1e-5, atol=1e-5)


def convolution(x: Array, w: Array, groups: int, stride: int, dilation: int, padding: int) -> Array:
    """By the definition, in float64."""
    x = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    batch, out, per_group = x.shape[0], w.shape[0], w.shape[1]
    size = [(x.shape[2 + i] - dilation * (w.shape[2 + i] - 1) - 1) // stride + 1 for i in range(2)]
    y = np.zeros((batch, out, *size))
    for o in range(out):
        first = o // (out // groups) * per_group
        for a, b in np.ndindex(w.shape[2:]):
            rows = slice(a * dilation, a * dilation + stride * (size[0] - 1) + 1, stride)
            columns = slice(b * dilation, b * dilation + stride * (size[1] - 1) + 1, stride)
            part = x[:, first : first + per_group, rows, columns]
            y[:, o] += (part * w[o, :, a, b][None, :, None, None]).sum(1)
    return y


@pytest.mark.parametrize(("batch", "order"), [(1, [66, 16, 67]), (2, [2, 16, 66, 67])])
def test_the_padded_copy_of_one_picture_is_parallel_by_rows(batch: int, order: list[int]) -> None:
    """Cores share its rows in the copy as in the convolution; of several pictures each core has its own."""
    x, w = Tensor.rand(batch, 16, 64, 65).realize(), Tensor.rand(16, 16, 3, 3).realize()
    copy, _ = (item.ast for item in x.conv2d(w, padding=1).schedule() if item.ast is not None)
    assert [axis.size for axis in sorted(copy.find(Ops.RANGE), key=lambda axis: axis.arg.id)] == order


@pytest.mark.parametrize("how", HOW)
def test_convolutions_agree_with_their_definition(how: str) -> None:
    @thorough
    @given(
        st.sampled_from((1, 2)),
        st.integers(1, 2),
        st.integers(1, 2),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(1, 3),
        st.integers(1, 2),
        st.integers(0, 2),
        st.integers(1, 2),
    )
    def check(
        groups: int, per_in: int, per_out: int, kh: int, kw: int, stride: int, dilation: int, padding: int, batch: int
    ) -> None:
        x = random_array((batch, groups * per_in, 6, 7))
        w = random_array((groups * per_out, per_in, kh, kw), seed=1)
        found = computed(
            tensor_on(how, x).conv2d(
                tensor_on(how, w), groups=groups, stride=stride, dilation=dilation, padding=padding
            ),
            how,
        )
        expected = convolution(x, w, groups, stride, dilation, padding)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)

    check()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"padding": 1},
        {"stride": 2, "padding": (0, 1, 2, 1)},
        {"dilation": 2},
        {"groups": 2},
        {"stride": 3, "dilation": 2, "padding": 2},
    ],
)
def test_convolutions_have_gradients(options: dict[str, Any]) -> None:
    x, b = random_array((1, 2, 5, 5)), random_array((2,), seed=2)
    w = random_array((2, 2 // options.get("groups", 1), 2, 3), seed=1)
    check_gradient(lambda x, w, b: x.conv2d(w, b, **options), x, w, b)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2},
        {"padding": 1},
        {"stride": 2, "output_padding": 1, "padding": 1},
        {"stride": (4, 1), "output_padding": (3, 0), "groups": 2},
        {"stride": (3, 2), "groups": 2, "padding": (2, 0)},
        {"stride": 2, "dilation": 2},
        {"dilation": 2},
        {"groups": 2},
    ],
)
def test_transposed_convolution_is_the_gradient_of_convolution(options: dict[str, Any], how: str) -> None:
    """Σ y · conv(x) = Σ x · conv_transpose(y) for any x and y"""
    y, w = random_array((2, 4, 3, 3)), random_array((4, 2, 3, 2), seed=1)
    found = tensor_on(how, y).conv_transpose2d(tensor_on(how, w), **options)
    forward = {key: value for key, value in options.items() if key != "output_padding"}
    x = tensor_on(how, random_array(found.shape, seed=2))
    back = x.conv2d(tensor_on(how, w), **forward)
    assert back.shape == y.shape
    left = computed((back * tensor_on(how, y)).sum(), how)
    right = computed((found * x).sum(), how)
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "extra", "groups", "size"),
    [
        (1, 2, 0, 1, 1, 5),
        (2, 2, 0, 0, 1, 5),
        (3, 2, 1, 1, 2, 5),
        (5, 2, 0, 1, 1, 5),
        (4, 3, 1, 0, 2, 5),
        (1, 3, 0, 0, 1, 5),
        # phases whose positions differ, at the length of one and of two cache lines
        (4, 2, 1, 0, 1, 16),
        (4, 2, 1, 1, 2, 32),
        (5, 3, 2, 1, 1, 16),
        (6, 4, 3, 2, 1, 16),
        (3, 4, 2, 1, 1, 16),
        (4, 2, 3, 0, 1, 18),
    ],
)
def test_transposed_convolution_sums_the_contributions_of_each_element(
    kernel: int, stride: int, padding: int, extra: int, groups: int, size: int
) -> None:
    """y[out] = Σ x[in] · w[out - stride · in], and its gradients, element by element."""
    x, w = random_array((2, 4, size)), random_array((4, 3, kernel), seed=1)
    end = (size - 1) * stride + kernel + extra
    expected = np.zeros((2, groups * 3, end))
    for place, tap in np.ndindex(size, kernel):
        for group in range(groups):
            part = slice(group * 4 // groups, (group + 1) * 4 // groups)
            product = x[:, part, place] @ w[part, :, tap]
            expected[:, 3 * group : 3 * group + 3, place * stride + tap] += product
    inside = slice(padding, end - padding)
    xs, ws = Tensor(x, requires_grad=True), Tensor(w, requires_grad=True)
    options: dict[str, Any] = {"stride": stride, "padding": padding, "output_padding": extra, "groups": groups}
    found = xs.conv_transpose2d(ws, **options)
    np.testing.assert_allclose(found.numpy(), expected[..., inside], rtol=1e-4, atol=1e-5)
    given = random_array(found.shape, seed=2)
    (found * Tensor(given)).sum().backward()
    whole = np.zeros((2, groups * 3, end))
    whole[..., inside] = given
    dx, dw = np.zeros(x.shape), np.zeros(w.shape)
    for place, tap in np.ndindex(size, kernel):
        for group in range(groups):
            part = slice(group * 4 // groups, (group + 1) * 4 // groups)
            above = whole[:, 3 * group : 3 * group + 3, place * stride + tap]
            dx[:, part, place] += above @ w[part, :, tap].T
            dw[part, :, tap] += x[:, part, place].T @ above
    for tensor, gradient in ((xs, dx), (ws, dw)):
        assert tensor.grad is not None
        np.testing.assert_allclose(tensor.grad.numpy(), gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "size, padding, positions",
    [(32, 1, [(1, 33), (0, 32)]), (24, 1, [(0, 25)]), (16, 0, [(0, 17)]), (32, 2, [(1, 32)])],
)
def test_phases_of_a_transposed_convolution_are_split_if_each_needs_fewer_cache_lines(
    size: int, padding: int, positions: list[tuple[int, int]]
) -> None:
    span = (padding, 2 * size + 2 - padding)
    (run,) = processing._group_phases(4, 2, size + 1, span)
    assert [(part.start, part.stop) for part in processing._split_phases([run], 2, span)] == positions


def test_transposed_convolution_multiplies_nothing_by_zero() -> None:
    """Places between steps without a weight are 0 beside an infinite element; 3 × 3 weights are 9 multiplications."""
    x = Tensor([[[math.inf, 1.0]]])
    assert x.conv_transpose2d(Tensor([[[2.0]]]), stride=2).tolist() == [[[math.inf, 0.0, 2.0]]]
    found = Tensor.rand(2, 8, 16, 16).realize().conv_transpose2d(Tensor.rand(8, 8, 3, 3).realize(), stride=2)
    items = [item for item in create_schedule([found.lazydata]) if item.ast is not None]
    kernels = [Kernel.of(item.ast, Device[item.device].target) for item in items]
    steps = sum(kernel.steps for kernel in kernels if kernel.reduces)
    assert 2 * 8 * 8 * 9 * 16 * 16 <= steps <= 2 * 8 * 8 * 9 * 17 * 17


def test_convolutions_in_one_and_three_dimensions() -> None:
    x, w = random_array((2, 3, 8)), random_array((4, 3, 3), seed=1)
    found = Tensor(x).conv2d(Tensor(w), padding=1, stride=2).numpy()
    expected = convolution(x[:, :, None], w[:, :, None], 1, 1, 1, 0)
    padded = convolution(np.pad(x, ((0, 0), (0, 0), (1, 1)))[:, :, None], w[:, :, None], 1, 1, 1, 0)[:, :, 0, ::2]
    assert expected.shape == (2, 4, 1, 6)
    np.testing.assert_allclose(found, padded, rtol=1e-4, atol=1e-5)
    assert (
        Tensor.ones(1, 2, 4, 4, 4).conv2d(Tensor.ones(3, 2, 2, 2, 2)).numpy().tolist()
        == np.full((1, 3, 3, 3, 3), 16).tolist()
    )


def test_named_paddings_of_convolutions() -> None:
    x, w = Tensor(random_array((1, 2, 7, 6))), Tensor(random_array((3, 2, 4, 3), seed=1))
    np.testing.assert_array_equal(x.conv2d(w, padding="valid").numpy(), x.conv2d(w).numpy())
    same = x.conv2d(w, padding="same", dilation=(1, 2)).numpy()
    np.testing.assert_array_equal(same, x.pad((2, 2, 1, 2)).conv2d(w, dilation=(1, 2)).numpy())
    assert same.shape == (1, 3, 7, 6)


def test_convolution_errors_name_the_sizes_that_do_not_fit() -> None:
    with pytest.raises(ShapeError, match="3 input channels"):
        Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(1, 3, 2, 2))
    with pytest.raises(ShapeError, match="a smaller kernel"):
        Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(1, 2, 5, 2))
    with pytest.raises(ShapeError, match=r"weights \(3,\).*at least 3"):
        Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(3))
    with pytest.raises(ShapeError, match="output channels, 3,"):
        Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(3, 1, 2, 2), groups=2)
    with pytest.raises(ShapeError, match=r"stride \(0, 0\).* at least 1"):
        Tensor.ones(1, 2, 4, 4).conv2d(Tensor.ones(3, 2, 2, 2), stride=0)
    with pytest.raises(ShapeError, match=r"kernel \(0, 0\).* at least 1"):
        Tensor.ones(1, 2, 4, 4).avg_pool2d(0)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1), ((2, 3), 1, 0), (3, 3, (1, 0))])
def test_pooling_agrees_with_numpy(kernel: Any, stride: Any, padding: Any, how: str) -> None:
    x = random_array((2, 3, 7, 8))
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    steps = sides if stride is None else (stride, stride)
    pads = (padding, padding) if isinstance(padding, int) else padding
    around = ((0, 0), (0, 0), (pads[0],) * 2, (pads[1],) * 2)

    def windows(x: Array, fill: float) -> Array:
        padded = np.pad(x, around, constant_values=fill)
        return np.lib.stride_tricks.sliding_window_view(padded, sides, (2, 3))[:, :, :: steps[0], :: steps[1]]

    t = tensor_on(how, x)
    np.testing.assert_array_equal(
        computed(t.max_pool2d(kernel, stride, padding=padding), how), windows(x, -np.inf).max((-1, -2))
    )
    mean = windows(x, 0).mean((-1, -2))
    np.testing.assert_allclose(computed(t.avg_pool2d(kernel, stride, padding=padding), how), mean, rtol=1e-5, atol=1e-6)
    counted = windows(x, 0).sum((-1, -2)) / windows(np.ones_like(x), 0).sum((-1, -2))
    found = computed(t.avg_pool2d(kernel, stride, padding=padding, count_include_pad=False), how)
    np.testing.assert_allclose(found, counted, rtol=1e-5, atol=1e-6)


def test_pooling_has_gradients() -> None:
    x = random_array((1, 2, 5, 6))
    check_gradient(lambda t: t.max_pool2d(2), x)
    check_gradient(lambda t: t.max_pool2d(3, 2, padding=1), x)
    check_gradient(lambda t: t.avg_pool2d(3, 2), x)
    check_gradient(lambda t: t.avg_pool2d(2), x)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "added"])
def test_attention(mask: str, how: str) -> None:
    q, k, v = (random_array((2, 2, 5, 4), seed=i) for i in range(3))
    added = {
        "none": np.zeros((5, 5)),
        "causal": np.where(np.tri(5), 0, -np.inf),
        "bool": np.where(np.eye(5) + np.tri(5, k=-2), 0, -np.inf),
        "added": random_array((5, 5), seed=4).astype(np.float64),
    }[mask]
    scores = q.astype(np.float64) @ k.swapaxes(-1, -2) / 2 + added
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    expected = grown / grown.sum(-1, keepdims=True) @ v
    given_mask = {"bool": np.isfinite(added), "added": added.astype(np.float32)}.get(mask)
    found = tensor_on(how, q).scaled_dot_product_attention(
        tensor_on(how, k),
        tensor_on(how, v),
        attn_mask=None if given_mask is None else tensor_on(how, given_mask),
        is_causal=mask == "causal",
    )
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-4, atol=1e-5)


def log_softmax(x: Array) -> Array:
    centered = x - x.max(1, keepdims=True)
    return centered - np.log(np.exp(centered).sum(1, keepdims=True))


@pytest.mark.parametrize("how", HOW)
def test_losses_agree_with_their_formulas(how: str) -> None:
    x = random_array((6, 4), -3, 3)
    labels = np.array([0, 3, 1, 2, -1, 3])
    logs = log_softmax(x.astype(np.float64))
    t, y = tensor_on(how, x), tensor_on(how, labels)
    chosen = np.array([logs[i, label] for i, label in enumerate(labels) if label >= 0])
    np.testing.assert_allclose(computed(t.sparse_categorical_crossentropy(y), how), -chosen.mean(), rtol=1e-5)
    smoothed = 0.9 * chosen.mean() + 0.1 * logs[labels >= 0].mean()
    found = t.sparse_categorical_crossentropy(y, label_smoothing=0.1)
    np.testing.assert_allclose(computed(found, how), -smoothed, rtol=1e-5)
    kept = tensor_on(how, np.maximum(labels, 0))
    picked = logs[np.arange(6), np.maximum(labels, 0)]
    np.testing.assert_allclose(computed(t.cross_entropy(kept), how), -picked.mean(), rtol=1e-5)
    np.testing.assert_allclose(computed(t.cross_entropy(kept, reduction="none"), how), -picked, rtol=1e-5)
    weight = np.array([1.0, 2.0, 0.5, 3.0], np.float32)
    shares = weight[np.maximum(labels, 0)]
    found = t.log_softmax(1).nll_loss(kept, weight=tensor_on(how, weight))
    np.testing.assert_allclose(computed(found, how), -(picked * shares).sum() / shares.sum(), rtol=1e-5)
    p, target = random_array((9,), 0.1, 0.9), random_array((9,), 0, 1, seed=1)
    expected = -(target * np.log(p) + (1 - target) * np.log(1 - p)).mean()
    logits = np.log(p / (1 - p))
    np.testing.assert_allclose(
        computed(tensor_on(how, p).binary_crossentropy(tensor_on(how, target)), how), expected, rtol=1e-5
    )
    found = tensor_on(how, logits).binary_crossentropy_logits(tensor_on(how, target))
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-5)
    weight = random_array((9,), 0.5, 4, seed=2)
    expected = -(weight * target * np.log(p) + (1 - target) * np.log(1 - p)).sum()
    found = tensor_on(how, logits).binary_crossentropy_logits(tensor_on(how, target), "sum", tensor_on(how, weight))
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-5)


def test_positive_weights_preserve_the_precision_of_large_logits() -> None:
    x, y = Tensor([-200.0, -80.0, 80.0, 200.0]), Tensor([1.0, 1.0, 0.0, 0.0])
    assert x.binary_crossentropy_logits(y, "none", 2.0).tolist() == [400.0, 160.0, 80.0, 200.0]
    tail = x.binary_crossentropy_logits(1 - y, "none", 2.0).numpy()[1:3]
    np.testing.assert_allclose(tail, np.exp(-80.0) * np.array([1, 2]), rtol=1e-5)


def test_losses_have_gradients() -> None:
    x = random_array((4, 3), -3, 3)
    y, target = Tensor([0, 2, 1, 1]), Tensor(random_array((4, 3), 0, 1, "float64"))
    check_gradient(lambda t: t.sparse_categorical_crossentropy(y), x)
    check_gradient(lambda t: t.cross_entropy(y, label_smoothing=0.2), x)
    check_gradient(lambda t: t.binary_crossentropy_logits(target), x)
    check_gradient(lambda t: t.sigmoid().binary_crossentropy(target), x)


@pytest.mark.parametrize("how", HOW)
def test_interpolation(how: str) -> None:
    x = random_array((1, 1, 4))
    places = np.clip((np.arange(6) + 0.5) * 4 / 6 - 0.5, 0, 3)
    found = computed(tensor_on(how, x).interpolate((6,)), how)
    np.testing.assert_allclose(found[0, 0], np.interp(places, np.arange(4), x[0, 0]), rtol=1e-5, atol=1e-6)
    corners = computed(tensor_on(how, x).interpolate((6,), align_corners=True), how)
    np.testing.assert_allclose(
        corners[0, 0], np.interp(np.linspace(0, 3, 6), np.arange(4), x[0, 0]), rtol=1e-5, atol=1e-5
    )
    nearest = computed(tensor_on(how, x).interpolate((8,), mode="nearest"), how)
    np.testing.assert_array_equal(nearest[0, 0], np.repeat(x[0, 0], 2))


@quick
@given(st.floats(0.1, 0.9))
def test_dropout_preserves_the_mean_while_training(p: float) -> None:
    x = Tensor.ones(4000)
    assert x.dropout(p) is x
    with Tensor.train():
        found = x.dropout(p).numpy()
    assert set(np.unique(found)) <= {np.float32(0), np.float32(1 / (1 - p))}
    assert math.isclose(found.mean(), 1, abs_tol=0.2)


def test_one_hot() -> None:
    assert Tensor([0, 2, 1]).one_hot(3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    assert Tensor([[1], [0]]).one_hot(2).shape == (2, 1, 2)
    assert Tensor([0]).one_hot(2).dtype is dtypes.default_int
    assert Tensor([[1], [3]]).one_hot().tolist() == [[[0, 1, 0, 0]], [[0, 0, 0, 1]]]


def test_a_linear_map_computes_in_the_requested_dtype() -> None:
    x, w = Tensor([[1.0, 2.0]]), Tensor([[3], [2]])
    assert x.linear(w, Tensor([0.5]), dtype=dtypes.float16).dtype is dtypes.float16
    assert x.linear(w, Tensor([0.5]), "float64").tolist() == [[7.5]]


def test_labels_may_be_bools() -> None:
    p, y = Tensor([0.1, 0.8]), Tensor([True, False])
    assert p.binary_crossentropy(y).item() == p.binary_crossentropy(y.float()).item() > 0
    logits = p.binary_crossentropy_logits(y, pos_weight=2.0)
    assert logits.item() == p.binary_crossentropy_logits(y.float(), pos_weight=2.0).item() > 0


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("size", [(3, 3), (4, 7), (9, 8)])
def test_winograd_filters_agree_with_their_definition(size: tuple[int, int], how: str) -> None:
    x, w = random_array((2, 4, *size)), random_array((6, 2, 3, 3), seed=1)
    padded = tensor_on(how, x).pad((1, 1, 1, 1))
    found = computed(minimal_filters(padded, tensor_on(how, w), 2), how)
    np.testing.assert_allclose(found, convolution(x, w, 2, 1, 1, 1), rtol=1e-4, atol=1e-4)


def test_winograd_filters_on_one_axis_in_other_types_and_their_gradients() -> None:
    x, w = random_array((1, 2, 9)), random_array((3, 2, 3), seed=1)
    plain = Tensor(x).conv2d(Tensor(w)).numpy()
    np.testing.assert_allclose(minimal_filters(Tensor(x), Tensor(w), 1).numpy(), plain, rtol=1e-4, atol=1e-4)
    wide = minimal_filters(Tensor(x).double(), Tensor(w).double(), 1)
    assert wide.dtype is dtypes.float64
    np.testing.assert_allclose(wide.numpy(), plain, rtol=1e-5, atol=1e-5)
    check_gradient(lambda x, w: minimal_filters(x, w, 1), random_array((1, 1, 5, 5)), random_array((1, 1, 3, 3)))


def test_winograd_filters_are_used_where_they_save_work_in_five_kernels() -> None:
    x, w = Tensor(random_array((1, 64, 24, 24))).realize(), Tensor(random_array((64, 64, 3, 3), seed=1)).realize()
    plain = x.conv2d(w, padding=1)
    with Context(WINO=1):
        fast = x.conv2d(w, padding=1)
    assert len(fast.schedule()) == 5
    work = []
    for y in (plain, fast):
        GlobalCounters.reset()
        y.realize()
        work.append(GlobalCounters.global_ops)
    assert work[1] < 0.6 * work[0]
    np.testing.assert_allclose(fast.numpy(), plain.numpy(), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(1, 4, 9, 9), (2, 32, 8, 8), (1, 1, 4, 4, 4)])
def test_winograd_filters_are_not_used_where_they_cost_more(shape: tuple[int, ...]) -> None:
    x = Tensor(random_array(shape)).realize()
    w = Tensor(random_array((shape[1], shape[1], *(3,) * (len(shape) - 2)), seed=1)).realize()
    plain = [item.ast for item in x.conv2d(w, padding=1).schedule()]
    with Context(WINO=1):
        assert [item.ast for item in x.conv2d(w, padding=1).schedule()] == plain


@pytest.mark.parametrize("size", [4, 16])
def test_a_residual_block_in_evaluation_takes_two_kernels(size: int) -> None:
    """Each convolution with its normalization, its activation and what is added, at sizes where masks cost little."""
    convolutions = [nn.Conv2d(16, 16, 3, padding=1, bias=False) for _ in range(2)]
    norms = [nn.BatchNorm2d(16) for _ in range(2)]
    for tensor in get_parameters([convolutions, norms]):
        if dtypes.is_float(tensor.dtype):
            tensor.assign(Tensor.rand(*tensor.shape)).realize()
    x = Tensor(random_array((2, 16, size, size))).realize()
    first = norms[0](convolutions[0](x)).relu()
    assert len(first.schedule()) == 1
    assert len((norms[1](convolutions[1](first)) + x).relu().schedule()) == 2


@pytest.mark.parametrize("how", HOW)
def test_image_operations_equal_the_plain_ones(how: str) -> None:
    x, w = tensor_on(how, random_array((1, 4, 5, 5))), tensor_on(how, random_array((4, 4, 3, 3), seed=1))
    plain = computed(x.conv2d(w, padding=1), how)
    np.testing.assert_array_equal(computed(x.image_conv2d(w, padding=1), how), plain)
    a, b = tensor_on(how, random_array((4, 8))), tensor_on(how, random_array((8, 4), seed=1))
    np.testing.assert_array_equal(computed(a.image_dot(b), how), computed(a.dot(b), how))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("kind", ["bool", "float32"])
def test_a_mask_and_causal_attention_both_hold(kind: str, how: str) -> None:
    q, k, v = (random_array((2, 4, 3), seed=seed) for seed in range(3))
    mask = random_array((4, 4), dtype="bool", seed=5) | np.eye(4, dtype=bool)
    given = mask if kind == "bool" else random_array((4, 4), seed=6)
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(3)
    scores = np.where(mask, scores, -np.inf) if kind == "bool" else scores + given
    scores = np.where(np.tril(np.ones((4, 4), bool)), scores, -np.inf)
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    one, two, three = (tensor_on(how, part) for part in (q, k, v))
    found = one.scaled_dot_product_attention(two, three, tensor_on(how, given), is_causal=True)
    expected = grown / grown.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", HOW)
def test_integral_floats_are_class_labels(how: str) -> None:
    x = np.array([[0.0, 2.0], [1.5, 3000.0]])
    for kind in ("float16", "float32", "float64"):
        found = computed(tensor_on(how, x.astype(kind)).one_hot(3001), how)
        np.testing.assert_array_equal(found, x[..., None] == np.arange(3001))
    assert Tensor([0.0, 2.0]).one_hot().tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("how", HOW)
def test_heads_of_key_and_value_serve_several_of_the_query(how: str) -> None:
    q, k, v = random_array((2, 6, 3, 4)), random_array((2, 2, 5, 4), seed=1), random_array((2, 2, 5, 4), seed=2)
    found = tensor_on(how, q).scaled_dot_product_attention(tensor_on(how, k), tensor_on(how, v), enable_gqa=True)
    scores = q @ np.repeat(k, 3, 1).swapaxes(-1, -2) / 2
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    expected = grown / grown.sum(-1, keepdims=True) @ np.repeat(v, 3, 1)
    np.testing.assert_allclose(computed(found, how), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ShapeError, match="a multiple of .*key and value"):
        Tensor.ones(1, 3, 2, 4).scaled_dot_product_attention(
            Tensor.ones(1, 2, 2, 4), Tensor.ones(1, 2, 2, 4), enable_gqa=True
        )


def test_attention_drops_out_while_training() -> None:
    x = Tensor.ones(1, 1, 64, 8)
    Tensor.manual_seed(0)
    with Tensor.train():
        found = x.scaled_dot_product_attention(x, x, dropout_p=0.5).numpy()
    assert abs(found.mean() - 1) < 0.2 and found.std() > 0.05
    np.testing.assert_allclose(x.scaled_dot_product_attention(x, x, dropout_p=0.5).numpy(), 1, rtol=1e-6)


@pytest.mark.parametrize("name", ["acc_dtype", "dtype"])
def test_the_type_in_which_is_summed_is_the_result_s(name: str) -> None:
    x, wide = Tensor.ones(2, 3, dtype="float16"), {name: "float32"}
    results = [
        x.sum(**wide),
        x.prod(**wide),
        x.dot(x.T, **wide),
        x.matmul(x.T, **wide),
        Tensor.einsum("ij,kj->ik", x, x, **wide),
        x.reshape(1, 1, 2, 3).conv2d(x.reshape(1, 1, 2, 3), **wide),
    ]
    assert [result.dtype for result in results] == [dtypes.float32] * 6
    assert x.sum(dtype="int64").item() == 6


@pytest.mark.parametrize("how", HOW)
def test_layers_without_state(how: str) -> None:
    x, w, b = random_array((4, 3)), random_array((3, 2), seed=1), random_array((2,), seed=2)
    t = tensor_on(how, x)
    found = t.linear(tensor_on(how, w), tensor_on(how, b))
    np.testing.assert_allclose(computed(found, how), x @ w + b, rtol=1e-5, atol=1e-6)
    scale = random_array((3,), seed=3)
    np.testing.assert_allclose(computed(t.linear(tensor_on(how, scale)), how), x * scale, rtol=1e-6)
    mean, spread = x.mean(0), x.std(0)
    shift = random_array((3,), seed=4)
    parts = [tensor_on(how, part) for part in (scale, shift, mean, 1 / spread)]
    found = t.batchnorm(parts[0], parts[1], parts[2], parts[3])
    np.testing.assert_allclose(computed(found, how), (x - mean) / spread * scale + shift, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        computed(t.batchnorm(None, None, parts[2], parts[3]), how), (x - mean) / spread, rtol=1e-4, atol=1e-5
    )


def test_an_empty_batch_passes_through_networks() -> None:
    x, w = Tensor.zeros(0, 4, 6, 6, requires_grad=True), Tensor.ones(4, 2, 3, 3, requires_grad=True)
    results = [
        x.conv2d(w, groups=2, padding=1),
        x.conv_transpose2d(w, stride=2, padding=1, output_padding=1),
        nn.GroupNorm(2, 4)(x),
        x.max_pool2d(2).interpolate((6, 6)),
    ]
    assert [found.shape for found in results] == [(0, 4, 6, 6), (0, 2, 12, 12), (0, 4, 6, 6), (0, 4, 6, 6)]
    assert [found.tolist() for found in results] == [[]] * 4
    results[0].sum().backward()
    assert x.grad is not None and x.grad.shape == x.shape
    assert w.grad is not None and not w.grad.numpy().any()

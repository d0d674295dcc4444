"""Products of matrices, convolutions and pooling: movement, one multiplication and one reduction."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from tinyexplore.dtype import dtypes, least_upper_dtype, to_dtype
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.base import DTypeLike, Shape
from tinyexplore.tensor.reduction import Reduction, sum_dtype
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int, what: str) -> Shape:
    """`value` for each of `count` spatial axes."""
    found = (value,) * count if isinstance(value, int) else tuple(value)
    if len(found) != count:
        raise ValueError(f"{what} {value}: need one int, or one for each of {count} spatial axes")
    return found


def padding_pairs(padding: Sizes, count: int) -> tuple[tuple[int, int], ...]:
    """(before, after) for each of `count` spatial axes, in their order.

    Given as one int, one per axis, or pairs from the last axis backwards: (left, right, top, bottom).
    """
    if isinstance(padding, int):
        return ((padding, padding),) * count
    if len(padding) == count:
        return tuple((amount, amount) for amount in padding)
    if len(padding) == 2 * count:
        return tuple((padding[i], padding[i + 1]) for i in reversed(range(0, 2 * count, 2)))
    raise ValueError(f"padding {tuple(padding)}: need one int, {count} ints or {2 * count} ints")


class Processing(Reduction):
    __slots__ = ()

    # *** matrices ***

    def dot(self, w: Tensor, acc_dtype: DTypeLike | None = None) -> Tensor:
        """The matrix product: the last axis of this tensor against the last but one of `w`; the others broadcast.

        Built so that the summed axis is last: (…, m, 1, k) · (…, 1, n, k) → (…, m, n).
        """
        x = cast("Tensor", self)
        n_axis = 0 if w.ndim == 1 else w.ndim - 2
        if x.ndim == 0 or w.ndim == 0 or x.shape[-1] != w.shape[n_axis]:
            raise ShapeError(
                f"matmul of shapes {x.shape} and {w.shape}: the last axis of the first "
                f"({x.shape[-1] if x.ndim else 'a scalar'}) must equal the last but one of the second "
                f"({w.shape[n_axis] if w.ndim else 'a scalar'})"
            )
        result_dtype = least_upper_dtype(x.dtype, w.dtype)
        wide = sum_dtype(result_dtype) if acc_dtype is None else to_dtype(acc_dtype)
        x, w = x.cast(wide), w.cast(wide)
        left = x
        right = w if w.ndim == 1 else w.transpose(-1, -2)
        if x.ndim > 1 and w.ndim > 1:
            left = x._reshaped((*x.shape[:-1], 1, x.shape[-1]))
            right = right._reshaped((*right.shape[:-2], 1, *right.shape[-2:]))
        shape = broadcast_shape(f"matmul of shapes {x.shape} and {w.shape}", left.shape, right.shape)
        product = left._broadcast_to(shape)._alu(Ops.MUL, right._broadcast_to(shape))
        result = product._reduce(Ops.ADD, -1, False, 0, "sum")
        return result.cast(result_dtype) if acc_dtype is None else result

    def matmul(self, x: Tensor, reverse: bool = False, acc_dtype: DTypeLike | None = None) -> Tensor:
        """The matrix product self @ x, or x @ self if `reverse`."""
        if reverse:
            return x.dot(cast("Tensor", self), acc_dtype)
        return self.dot(x, acc_dtype)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """self @ weight + bias; a weight with one axis multiplies element by element."""
        x = cast("Tensor", self) * weight if weight.ndim == 1 else self.dot(weight)
        return x if bias is None else x + bias

    def sequential(self, ll: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
        """Through all functions, one after the other."""
        x = cast("Tensor", self)
        for layer in ll:
            x = layer(x)
        return x

    # *** windows over the last axes ***

    def _windows(self, kernel: Shape, stride: Shape, dilation: Shape) -> Tensor:
        """(…, *spatial) → (…, *places, *kernel)"""
        result = cast("Tensor", self)
        first = self.ndim - len(kernel)
        if min((*kernel, *stride, *dilation), default=1) < 1:
            raise ShapeError(f"kernel {kernel}, stride {stride}, dilation {dilation}: each must be at least 1")
        for number, (size, step, gap) in enumerate(zip(kernel, stride, dilation)):
            reach = gap * (size - 1) + 1
            if result.shape[first + number] < reach:
                raise ShapeError(
                    f"kernel {kernel} with dilation {dilation} on {self.shape[first:]} (padding included): "
                    f"axis {number} needs at least {reach}; add padding or take a smaller kernel"
                )
            result = result._window(first + number, size, step, gap)
        return result

    def avg_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        count_include_pad: bool = True,
    ) -> Tensor:
        """The mean of each window over the last axes; without `count_include_pad` padding does not count."""
        kernel, axes, places = self._pool_geometry(kernel_size)
        step = kernel if stride is None else per_axis(stride, places, "stride")
        gap = per_axis(dilation, places, "dilation")
        pairs = ((0, 0),) * (self.ndim - places) + padding_pairs(padding, places)
        windows = self.pad(pairs)._windows(kernel, step, gap)
        if count_include_pad:
            return windows.mean(axes)
        counted = self._const(1.0, dtypes.default_float).pad(pairs)._windows(kernel, step, gap)
        return windows.sum(axes) / counted.sum(axes).cast(windows.dtype)

    def max_pool2d(
        self,
        kernel_size: Sizes = (2, 2),
        stride: Sizes | None = None,
        dilation: Sizes = 1,
        padding: Sizes = 0,
    ) -> Tensor:
        """The largest of each window over the last axes; padding never wins."""
        kernel, axes, places = self._pool_geometry(kernel_size)
        step = kernel if stride is None else per_axis(stride, places, "stride")
        pairs = ((0, 0),) * (self.ndim - places) + padding_pairs(padding, places)
        padded = self.pad(pairs, value=dtypes.min(self.dtype))
        return padded._windows(kernel, step, per_axis(dilation, places, "dilation")).max(axes)

    def _pool_geometry(self, kernel_size: Sizes) -> tuple[Shape, Shape, int]:
        kernel = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
        if self.ndim < len(kernel):
            raise ShapeError(f"pooling by {kernel} of a tensor of shape {self.shape}: it has too few axes")
        return kernel, tuple(range(self.ndim, self.ndim + len(kernel))), len(kernel)

    # *** convolution ***

    def conv2d(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        acc_dtype: DTypeLike | None = None,
    ) -> Tensor:
        """Cross-correlation of (batch, in, *spatial) with weights (out, in / groups, *kernel), for any number of axes.

        Windows (batch, group, 1, *places, in, *kernel) times weights (group, out / groups, in, *kernel), summed over
        the last axes.
        """
        places = weight.ndim - 2
        self._check_convolution(weight, groups)
        result_dtype = least_upper_dtype(self.dtype, weight.dtype)
        wide = sum_dtype(result_dtype) if acc_dtype is None else to_dtype(acc_dtype)
        kernel = weight.shape[2:]
        per_group, out = weight.shape[1], weight.shape[0] // groups
        padded = self.cast(wide).pad(((0, 0), (0, 0), *padding_pairs(padding, places)))
        windows = padded._windows(kernel, per_axis(stride, places, "stride"), per_axis(dilation, places, "dilation"))
        batch, size = self.shape[0], windows.shape[2 : 2 + places]
        split = windows.reshape((batch, groups, 1, per_group, *size, *kernel))
        spatial = tuple(range(4, 4 + places))
        taps = tuple(range(4 + places, 4 + 2 * places))
        columns = split.permute((0, 1, 2, *spatial, 3, *taps))
        filters = weight.cast(wide).reshape((1, groups, out, *(1,) * places, per_group, *kernel))
        summed = tuple(range(-1 - places, 0))
        result = (columns * filters).sum(summed, acc_dtype=wide).reshape((batch, groups * out, *size))
        result = result.cast(result_dtype if acc_dtype is None else wide)
        return result if bias is None else result + bias.reshape((1, -1, *(1,) * places))

    def _check_convolution(self, weight: Tensor, groups: int) -> None:
        what = (
            f"convolution of shape {self.shape} (batch, in, *spatial) with weights {weight.shape} "
            f"(out, in / groups, *kernel), groups={groups}"
        )
        if weight.ndim < 3 or self.ndim != weight.ndim:
            raise ShapeError(f"{what}: need as many axes in both, 3 at least; reshape the one that lacks some")
        if groups < 1 or weight.shape[0] % groups:
            raise ShapeError(f"{what}: the output channels, {weight.shape[0]}, must divide by groups")
        if self.shape[1] != weight.shape[1] * groups:
            raise ShapeError(f"{what}: these weights need {weight.shape[1] * groups} input channels")

    def conv_transpose2d(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
    ) -> Tensor:
        """The gradient of a convolution, as an operation: weights are (in, out / groups, *kernel).

        Each element is spread `stride` apart, and the flipped kernel slides over that.
        """
        places = weight.ndim - 2
        fits = places >= 1 and self.ndim == weight.ndim and self.shape[1] == weight.shape[0]
        if not fits or groups < 1 or weight.shape[0] % groups:
            raise ShapeError(
                f"transposed convolution of shape {self.shape} (batch, in, *spatial) with weights {weight.shape} "
                f"(in, out / groups, *kernel), groups={groups}: need equal input channels that divide by groups"
            )
        step = per_axis(stride, places, "stride")
        gap = per_axis(dilation, places, "dilation")
        extra = per_axis(output_padding, places, "output_padding")
        kernel = weight.shape[2:]
        spread = cast("Tensor", self)
        for number, apart in enumerate(step):
            spread = spread._spread(2 + number, apart)
        amounts = [(0, 0), (0, 0)]
        for size, dist, (before, after), more in zip(kernel, gap, padding_pairs(padding, places), extra):
            reach = (size - 1) * dist
            amounts.append((reach - before, reach - after + more))
        turned = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
        turned = turned.flip(tuple(range(2, 2 + places)))
        return spread.pad(amounts).conv2d(turned, bias, groups=groups, dilation=gap)

    def _spread(self, axis: int, apart: int) -> Tensor:
        """`apart - 1` zeros between neighbours along `axis`."""
        if apart == 1:
            return cast("Tensor", self)
        head, size, tail = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
        amounts = [(0, 0)] * (self.ndim + 1)
        amounts[axis + 1] = (0, apart - 1)
        joined = self.reshape((*head, size, 1, *tail)).pad(amounts).reshape((*head, size * apart, *tail))
        bounds: list[tuple[int, int] | None] = [None] * self.ndim
        bounds[axis] = (0, (size - 1) * apart + 1)
        return joined.shrink(bounds)

    # *** resizing ***

    def interpolate(self, size: Sequence[int], mode: str = "linear", align_corners: bool = False) -> Tensor:
        """The last axes sampled at `size` places: "linear" between neighbours, or "nearest"."""
        if mode not in ("linear", "nearest"):
            raise ValueError(f"interpolate mode {mode!r}: choose 'linear' or 'nearest'")
        result = cast("Tensor", self)
        for number, wanted in enumerate(size):
            axis = self.ndim - len(size) + number
            result = result._resampled(axis, wanted, mode, align_corners)
        return result.cast(self.dtype)

    def _resampled(self, axis: int, wanted: int, mode: str, align_corners: bool) -> Tensor:
        """One axis times a matrix of weights, which are hats around the places asked for."""
        have = self.shape[axis]
        rows = self._wrap_iota(wanted).reshape((wanted, 1))
        columns = self._wrap_iota(have).reshape((1, have))
        if mode == "nearest":
            weights = ((rows * (have / wanted)).floor() == columns).cast(dtypes.default_float)
        else:
            if align_corners:
                places = rows * ((have - 1) / max(wanted - 1, 1))
            else:
                places = ((rows + 0.5) * (have / wanted) - 0.5).clip(0, have - 1)
            weights = (1.0 - (places - columns).abs()).relu()
        moved = self.transpose(axis, -1).dot(weights.T.cast(dtypes.default_float))
        return moved.transpose(axis, -1)

    def _wrap_iota(self, size: int) -> Tensor:
        from tinyexplore.lazy import LazyBuffer

        return self._wrap(LazyBuffer.iota(size, dtypes.default_int, self.device)).cast(dtypes.default_float)

    # *** attention ***

    def scaled_dot_product_attention(
        self,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
    ) -> Tensor:
        """softmax(q · kᵀ / √d + mask) · v; a bool mask keeps where it is true."""
        scores = self.dot(key.transpose(-2, -1)) * (1.0 / math.sqrt(self.shape[-1]))
        if is_causal:
            if attn_mask is not None:
                raise ValueError("attention: give attn_mask or is_causal, not both")
            attn_mask = scores._const(True, dtypes.bool, scores.shape[-2:]).tril()
        if attn_mask is not None:
            if attn_mask.dtype is dtypes.bool:
                scores = attn_mask.where(scores, -math.inf)
            else:
                scores = scores + attn_mask
        return scores.softmax(-1).dropout(dropout_p).dot(value)

    # *** sums over named axes ***

    @staticmethod
    def einsum(formula: str, *raw_xs: Tensor | Sequence[Tensor], acc_dtype: DTypeLike | None = None) -> Tensor:
        """Einstein's notation: "ij,jk->ik" multiplies along shared letters and sums those that the result drops."""
        xs = cast("list[Tensor]", list(raw_xs[0]) if isinstance(raw_xs[0], (tuple, list)) else list(raw_xs))
        text = formula.replace(" ", "")
        left, arrow, right = text.partition("->")
        inputs = left.split(",")
        if not arrow:
            right = "".join(sorted(letter for letter in set(left) - {","} if left.count(letter) == 1))
        if len(inputs) != len(xs):
            raise ValueError(f"einsum {formula!r}: {len(inputs)} operands are named, {len(xs)} given")
        sizes: dict[str, int] = {}
        for letters, x in zip(inputs, xs):
            if len(letters) != x.ndim or not (letters == "" or letters.isalpha()):
                raise ValueError(f"einsum {formula!r}: {letters!r} does not name the {x.ndim} axes of shape {x.shape}")
            for letter, size in zip(letters, x.shape):
                if sizes.setdefault(letter, size) != size:
                    raise ShapeError(f"einsum {formula!r}: {letter!r} is {sizes[letter]} and {size}")
        if len(set(right)) != len(right) or not set(right) <= set(sizes):
            raise ValueError(f"einsum {formula!r}: the result must name each of its axes once, from {sorted(sizes)}")
        summed = [letter for letter in sizes if letter not in right]
        order = [*right, *summed]
        spread = [_named_axes(x, letters, order) for letters, x in zip(inputs, xs)]
        product = spread[0]
        for x in spread[1:]:
            product = product * x
        full = product._broadcast_to(tuple(sizes[letter] for letter in order))
        if not summed:
            return full
        axes = tuple(range(len(right), len(order)))
        result = full.sum(axes, acc_dtype=acc_dtype)
        return result if acc_dtype is not None else result.cast(product.dtype)


def _named_axes(x: Tensor, letters: str, order: Sequence[str]) -> Tensor:
    """The axes of `x` in `order`, missing ones with size 1; a letter that stands twice takes the diagonal."""
    while len(set(letters)) < len(letters):
        second = next(i for i, letter in enumerate(letters) if letter in letters[:i])
        first = letters.index(letters[second])
        x = x._moved(Ops.DIAGONAL, x.lazydata.diagonal(first, second))
        letters = letters[:second] + letters[second + 1 :]
    present = [letter for letter in order if letter in letters]
    moved = x.permute(tuple(letters.index(letter) for letter in present))
    return moved.reshape(tuple(moved.shape[present.index(letter)] if letter in present else 1 for letter in order))

"""Convolutions, attention and einsum, built of movements, one multiplication and one reduction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_letters
from typing import TYPE_CHECKING, Any, TypeVar

from tinyexplore.dtype import DType, dtypes, least_upper_dtype, to_dtype
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.arithmetic import broadcast_shape
from tinyexplore.tensor.base import DTypeLike, Shape, TensorBase
from tinyexplore.tensor.checks import need_int, need_tensor, shown
from tinyexplore.tensor.gradients import gradient_by_tensors
from tinyexplore.tensor.loss import Loss
from tinyexplore.tensor.pooling import Pairs, Pooling, Sizes, named_padding, padding_pairs, per_axis
from tinyexplore.tensor.precision import rounded_once, wide_float
from tinyexplore.tensor.reduction import sum_dtype
from tinyexplore.tensor.winograd import TAPS, Convolvable, is_cheaper, minimal_filters
from tinyexplore.uop import Ops, UOp
from tinyexplore.util import config

if TYPE_CHECKING:
    from typing_extensions import Self

    from tinyexplore.autograd.tape import TapeEntry


T = TypeVar("T", bound="Pooling")
LINE = 16  # floats in a cache line, and in the longest vectors


class Processing(Convolvable, Loss):
    __slots__ = ()

    # *** convolution ***

    def conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes | str = 0,
        acc_dtype: DTypeLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Cross-correlates (batch, in, *spatial) with weights (out, in / groups, *kernel), for any number of axes.

        Multiplies windows (batch, group, 1, *positions, in, *kernel) by weights (group, out / groups, in, *kernel).
        Sums over the last axes in `acc_dtype` (`dtype` is its later name). `padding` may be "valid" (none) or "same":
        with stride 1 the result is as large as the input; the end gets the larger half of an odd amount. With WINO=1,
        kernels of size 3 on each axis, with stride 1 and dilation 1, use Winograd's minimal filters if these save more
        than their transforms cost: on two axes from about 40 channels on.
        """
        acc_dtype = dtype if acc_dtype is None else acc_dtype
        need_tensor(weight, "convolution: the weight")
        need_int(groups, "convolution: groups", 1)
        if bias is not None:
            need_tensor(bias, "convolution: the bias")
            if bias.numel() not in (1, weight.shape[0]):
                raise ShapeError(
                    f"convolution with weights {weight.shape} (out, in / groups, *kernel) and a bias of shape "
                    f"{bias.shape}: need one number for each of {weight.shape[0]} output channels"
                )
        axis_count = weight.ndim - 2
        self._check_convolution(weight, groups)
        result_dtype = least_upper_dtype(self.dtype, weight.dtype)
        wide_dtype = sum_dtype(result_dtype) if acc_dtype is None else to_dtype(acc_dtype)
        kernel = weight.shape[2:]
        steps, gaps = per_axis(stride, axis_count, "stride"), per_axis(dilation, axis_count, "dilation")
        if isinstance(padding, str):
            pairs = named_padding(padding, kernel, steps, gaps)
        else:
            pairs = padding_pairs(padding, axis_count)
        padded = self.cast(wide_dtype)._pad_for_windows(pairs, groups)
        if self._is_winograd(padded, weight, groups, steps, gaps):
            result = minimal_filters(padded, weight.cast(wide_dtype), groups)
            return result._add_bias(bias, axis_count, result_dtype if acc_dtype is None else wide_dtype)
        filters = weight.cast(wide_dtype)
        result = padded._detach_value()._convolve(filters._detach_value(), groups, steps, gaps)
        how = (type(self), groups, steps, gaps)
        result = padded._wrap_with_rule(result.lazydata, convolution_gradient, (padded, filters), how)
        return result._add_bias(bias, axis_count, result_dtype if acc_dtype is None else wide_dtype)

    def _add_bias(self, bias: Self | None, axis_count: int, target: DType) -> Self:
        """Adds `bias`, one number per channel, then rounds to `target`, or to the promoted dtype of it and `bias`."""
        if bias is None:
            return self.cast(target)
        target = least_upper_dtype(target, bias.dtype)
        x = self if dtypes.is_float(target) else self.cast(target)
        return (x + bias.reshape((1, -1, *(1,) * axis_count))).cast(target)

    @staticmethod
    def _is_winograd(padded: TensorBase, weight: TensorBase, groups: int, steps: Shape, gaps: Shape) -> bool:
        """Whether WINO=1 is set, and minimal filters exist for this kernel and save more than they cost."""
        if not config().WINO or set(weight.shape[2:]) != {TAPS} or {*steps, *gaps} != {1}:
            return False
        size = [axis_size - TAPS + 1 for axis_size in padded.shape[2:]]
        is_float = dtypes.is_float(padded.dtype)
        return is_float and is_cheaper(padded.shape[0], size, weight.shape[0], padded.shape[1], groups)

    def _pad_for_windows(self, pairs: Pairs, groups: int) -> Self:
        """Pads (batch, in, *spatial) with zeros. The copy of a single image is stored row by row, with all channels.

        Cores share the rows of one image, and each row of results sums over all channels. With this layout a core reads
        the rows that it has written itself, not another core's cache. With several images, or groups, each core
        computes images or groups of its own.
        """
        is_single_image = isinstance(self.shape[0], int) and self.shape[0] == 1
        if len(pairs) < 2 or groups > 1 or not is_single_image or pairs == ((0, 0),) * len(pairs):
            return self.pad(((0, 0), (0, 0), *pairs))
        return self.transpose(1, 2).pad(((0, 0), pairs[0], (0, 0), *pairs[1:])).transpose(1, 2)

    def _unfold(self, kernel: Shape, groups: int, steps: Shape, gaps: Shape) -> Self:
        """Returns the windows that each filter multiplies: (batch, group, 1, *positions, in, *kernel)."""
        axis_count = len(kernel)
        windows = self._make_windows(kernel, steps, gaps)
        split = windows.reshape((windows.shape[0], groups, 1, windows.shape[1] // groups, *windows.shape[2:]))
        spatial, taps = tuple(range(4, 4 + axis_count)), tuple(range(4 + axis_count, 4 + 2 * axis_count))
        return split.permute((0, 1, 2, *spatial, 3, *taps))

    def _convolve(self, filters: Self, groups: int, steps: Shape, gaps: Shape) -> Self:
        """Computes a convolution without padding and bias, in one dtype."""
        batch, (out, per_group), kernel = self.shape[0], filters.shape[:2], filters.shape[2:]
        axis_count = len(kernel)
        columns = self._unfold(kernel, groups, steps, gaps)
        size = columns.shape[3 : 3 + axis_count]
        group_filters = filters.reshape((1, groups, out // groups, *(1,) * axis_count, per_group, *kernel))
        summed = tuple(range(-1 - axis_count, 0))
        return (columns * group_filters).sum(summed, acc_dtype=self.dtype).reshape((batch, out, *size))

    def image_conv2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes | str = 0,
        acc_dtype: DTypeLike | None = None,
    ) -> Self:
        """Calls `conv2d`. A device with texture memory may keep the operands there."""
        return self.conv2d(weight, bias, groups, stride, dilation, padding, acc_dtype)

    def _check_convolution(self, weight: Self, groups: int) -> None:
        operation = (
            f"convolution of shape {self.shape} (batch, in, *spatial) with weights {weight.shape} "
            f"(out, in / groups, *kernel), groups={groups}"
        )
        if weight.ndim < 3 or self.ndim != weight.ndim:
            raise ShapeError(
                f"{operation}: the input and the weights must have the same number of axes, at least 3; reshape the "
                "one that has fewer"
            )
        if groups < 1 or weight.shape[0] % groups:
            raise ShapeError(f"{operation}: the output channels, {weight.shape[0]}, must divide by groups")
        if self.shape[1] != weight.shape[1] * groups:
            raise ShapeError(f"{operation}: these weights need {weight.shape[1] * groups} input channels")

    @rounded_once
    def conv_transpose2d(
        self,
        weight: Self,
        bias: Self | None = None,
        groups: int = 1,
        stride: Sizes = 1,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
    ) -> Self:
        """Computes a transposed convolution (the gradient of a convolution); weights are (in, out / groups, *kernel).

        Puts elements `stride` apart, with zeros in between, and convolves the result with the flipped kernel. Without
        dilation, it does not multiply these zeros: see `_convolve_phases`.
        """
        need_tensor(weight, "transposed convolution: the weight")
        axis_count = weight.ndim - 2
        fits = axis_count >= 1 and self.ndim == weight.ndim and self.shape[1] == weight.shape[0]
        if not fits or groups < 1 or weight.shape[0] % groups:
            raise ShapeError(
                f"transposed convolution of shape {self.shape} (batch, in, *spatial) with weights {weight.shape} "
                f"(in, out / groups, *kernel), groups={groups}: need equal input channels that divide by groups"
            )
        step = per_axis(stride, axis_count, "stride")
        gap = per_axis(dilation, axis_count, "dilation")
        extra = per_axis(output_padding, axis_count, "output_padding")
        kernel = weight.shape[2:]
        if set(gap) == {1} and max(step) > 1 and min(step) > 0:
            dtype = least_upper_dtype(self.dtype, weight.dtype)
            operands, pairs = (self.cast(dtype), weight.cast(dtype)), padding_pairs(padding, axis_count)
            reach = [n + extra_size for n, extra_size in zip(kernel, extra)]
            spans = tuple(
                (before, (n - 1) * stride + width - after)
                for n, stride, width, (before, after) in zip(self.shape[2:], step, reach, pairs)
            )
            result = operands[0]._detach_value()._convolve_phases(operands[1]._detach_value(), groups, step, spans)
            result = result._remove_padding(step, spans)
            how = (type(self), groups, step, pairs)
            result = operands[0]._wrap_with_rule(result.lazydata, transposed_gradient, operands, how)
            return result if bias is None else result + bias.reshape((1, -1, *(1,) * axis_count))
        dilated = self
        for number, stride_of_axis in enumerate(step):
            dilated = dilated._insert_zeros(2 + number, stride_of_axis)
        amounts = [(0, 0), (0, 0)]
        for size, dist, (before, after), extra_size in zip(kernel, gap, padding_pairs(padding, axis_count), extra):
            kernel_reach = (size - 1) * dist
            amounts.append((kernel_reach - before, kernel_reach - after + extra_size))
        flipped = weight.unflatten(0, (groups, -1)).transpose(1, 2).flatten(0, 1)
        flipped = flipped.flip(tuple(range(2, 2 + axis_count)))
        return dilated.pad(amounts).conv2d(flipped, bias, groups=groups, dilation=gap)

    def _convolve_phases(self, weight: Self, groups: int, step: Shape, spans: Pairs) -> Self:
        """Computes a transposed convolution whose size is a multiple of the step on each axis.

        Results at the same distance (phase) after a multiple of `step` use the same part of the kernel, every `step`-th
        weight. Phases with the same number of weights form one convolution, whose filters are those of each phase.

        spans: the results that are kept on each axis, as (first, end); others may be 0.
        """
        axis_count = len(step)
        taps = [-(-size // stride) for size, stride in zip(weight.shape[2:], step)]
        fill_amounts = [(0, count * stride - size) for count, stride, size in zip(taps, step, weight.shape[2:])]
        taps_and_phases = [length for pair in zip(taps, step) for length in pair]
        split = weight.pad([(0, 0), (0, 0), *fill_amounts]).reshape((groups, -1, weight.shape[1], *taps_and_phases))
        size = tuple(axis_size + count - 1 for axis_size, count in zip(self.shape[2:], taps))
        runs = [_group_phases(*lengths) for lengths in zip(weight.shape[2:], step, size, spans)]
        runs[-1] = _split_phases(runs[-1], step[-1], spans[-1])
        paddings = [amount for n in reversed(taps) for amount in (n - 1, n - 1)]
        padded = self._pad_for_windows(padding_pairs(paddings, axis_count), groups)
        phases = padded._convolve_runs(split, groups, runs, size)
        order = [axis for number in range(axis_count) for axis in (2 + axis_count + number, 2 + number)]
        interleaved = phases.permute((0, 1, *order))
        return interleaved.reshape((*interleaved.shape[:2], *(n * axis_step for n, axis_step in zip(size, step))))

    def _remove_padding(self, step: Shape, spans: Pairs) -> Self:
        """Keeps the results `spans` of a transposed convolution on each axis.

        The size is first rounded up to a multiple of `step`, because the phases of a position are neighboring lanes of
        a vector. The excess is then sliced off.
        """
        amounts, excess = [(0, 0), (0, 0)], [0, 0]
        for stride, (first, end), size in zip(step, spans, self.shape[2:]):
            rounding = (first - end) % stride
            excess.append(rounding)
            amounts.append((-first, end + rounding - size))
        result = self.pad(amounts)
        if any(excess):
            result = result.contiguous().pad([(0, -count) for count in excess])
        return result

    def _convolve_runs(
        self, split: Self, groups: int, runs: Sequence[Sequence[PhaseRun]], size: Shape, *chosen_runs: PhaseRun
    ) -> Self:
        """Computes one convolution for each run of phases and concatenates them: (batch, channels, *phases, *size).

        split: the weights as (group, in, out, and for each axis tap and phase).
        chosen_runs: the run on each of the first axes.
        """
        number = len(chosen_runs)
        if number < len(runs):
            results = [self._convolve_runs(split, groups, runs, size, *chosen_runs, run) for run in runs[number]]
            return results[0].cat(*results[1:], dim=2 + number)
        channels, counts = groups * split.shape[2], [run.count for run in chosen_runs]
        if not all(run.taps and run.start < run.stop for run in chosen_runs):
            return self._const(0, shape=(self.shape[0], channels, *counts, *size))
        bounds = [bound for run in chosen_runs for bound in ((0, run.taps), (run.first, run.first + run.count))]
        weights = split.shrink([(0, extent) for extent in split.shape[:3]] + bounds)
        tap_axes, phase_axes = tuple(range(3, 3 + 2 * number, 2)), tuple(range(4, 4 + 2 * number, 2))
        filters = weights.flip(tap_axes).permute((0, 2, *phase_axes, 1, *tap_axes))
        filters = filters.reshape((-1, split.shape[1], *(run.taps for run in chosen_runs)))
        positions = [(run.start, run.stop) for run in chosen_runs]
        # a run with fewer taps than others reads from a later element on
        bounds_inside = [
            (most - run.taps + run.start, most + run.stop - 1) for most, run in zip(split.shape[3::2], chosen_runs)
        ]
        result = self.shrink([(0, bound) for bound in self.shape[:2]] + bounds_inside).conv2d(filters, None, groups)
        computed = [stop - start for start, stop in positions]
        unmerged = result.contiguous().reshape((self.shape[0], channels, *counts, *computed))
        return unmerged.pad(
            [(0, 0)] * (2 + number) + [(start, full_size - stop) for full_size, (start, stop) in zip(size, positions)]
        )

    def _insert_zeros(self, axis: int, distance: int) -> Self:
        """Inserts `distance - 1` zeros between neighbors along `axis`."""
        if distance == 1:
            return self
        head, size, tail = self.shape[:axis], self.shape[axis], self.shape[axis + 1 :]
        amounts = [(0, 0)] * (self.ndim + 1)
        amounts[axis + 1] = (0, distance - 1)
        joined = self.reshape((*head, size, 1, *tail)).pad(amounts).reshape((*head, size * distance, *tail))
        bounds: list[tuple[int, int] | None] = [None] * self.ndim
        bounds[axis] = (0, (size - 1) * distance + 1)
        return joined.shrink(bounds)

    # *** attention ***

    @rounded_once
    def scaled_dot_product_attention(
        self,
        key: Self,
        value: Self,
        attn_mask: Self | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        enable_gqa: bool = False,
    ) -> Self:
        """Computes softmax(q · kᵀ / √d + mask) · v.

        A bool mask selects the scores to use. `is_causal` also excludes keys after the query's position. `enable_gqa`:
        the third axis from the end has heads, and several heads of the query share a head of key and value.
        """
        for name, operand in (("key", key), ("value", value), ("attn_mask", attn_mask)):
            if operand is not None or name != "attn_mask":
                need_tensor(operand, f"attention: {name}")
        if enable_gqa:
            key, value = self._repeat_heads(key), self._repeat_heads(value)
        width = self.shape[-1]
        scale = self._const(width, shape=()).rsqrt() if isinstance(width, UOp) else 1.0 / math.sqrt(width)
        scores = self.dot(key.transpose(-2, -1)) * scale
        if attn_mask is not None and attn_mask.dtype is not dtypes.bool:
            scores = scores + attn_mask
            attn_mask = None
        if is_causal:
            not_later = scores._const(True, dtypes.bool, scores.shape[-2:]).tril()
            attn_mask = not_later if attn_mask is None else attn_mask & not_later
        if attn_mask is not None:
            scores = attn_mask.where(scores, -math.inf)
        weights = scores.softmax(-1).dropout(dropout_p)
        if value.dtype is dtypes.bfloat16:  # machines multiply pairs of bfloat16, whose range is that of float32
            weights = weights.cast(dtypes.bfloat16)
        return weights.dot(value, acc_dtype=scores.dtype)

    def _repeat_heads(self, x: Self) -> Self:
        if self.ndim < 3 or x.ndim < 3 or self.shape[-3] % max(x.shape[-3], 1):
            raise ShapeError(
                f"attention with enable_gqa: the heads (third axis from the end) of the query, {self.shape}, "
                f"must be a multiple of those of key and value, {x.shape}"
            )
        return x.repeat_interleave(self.shape[-3] // x.shape[-3], x.ndim - 3)

    # *** sums over named axes ***

    @classmethod
    def einsum(
        cls,
        formula: str,
        *raw_xs: Self | Sequence[Self],
        acc_dtype: DTypeLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> Self:
        """Evaluates Einstein's notation: "ij,jk->ik" multiplies along shared letters and sums over letters that are not
        in the result.

        `...` stands for further axes in front of the named ones, which broadcast.
        """
        acc_dtype = dtype if acc_dtype is None else acc_dtype
        given_xs: Any = raw_xs[0] if isinstance(raw_xs[0], (tuple, list)) else raw_xs
        xs: list[Self] = list(given_xs)
        if not isinstance(formula, str):
            raise TypeError(f"einsum: the formula is {shown(formula)}: need text, such as 'ij,jk->ik'")
        for number, operand in enumerate(xs):
            need_tensor(operand, f"einsum {formula!r}: operand {number}")
        text, xs = _with_letters_for_dots(formula.replace(" ", ""), xs)
        inputs_text, arrow, output_letters = text.partition("->")
        inputs = inputs_text.split(",")
        if not arrow:
            output_letters = "".join(
                sorted(letter for letter in set(inputs_text) - {","} if inputs_text.count(letter) == 1)
            )
        if len(inputs) != len(xs):
            raise ValueError(f"einsum {formula!r}: {len(inputs)} operands are named, {len(xs)} given")
        sizes = _collect_letter_sizes(formula, inputs, [x.shape for x in xs])
        if len(set(output_letters)) != len(output_letters) or not set(output_letters) <= set(sizes):
            raise ValueError(f"einsum {formula!r}: the result must name each of its axes once, from {sorted(sizes)}")
        summed = [letter for letter in sizes if letter not in output_letters]
        order = [*output_letters, *summed]
        spread = [_order_axes(x, letters, order) for letters, x in zip(inputs, xs)]
        target = least_upper_dtype(*[x.dtype for x in xs])
        if dtypes.is_float(target):
            wide_dtype = wide_float(target) if acc_dtype is None else to_dtype(acc_dtype)
            spread = [x.cast(wide_dtype) for x in spread]
        product = spread[0]
        for x in spread[1:]:
            product = product * x
        full = product._broadcast_to(tuple(sizes[letter] for letter in order))
        if not summed:
            return full.cast(target)
        axes = tuple(range(len(output_letters), len(order)))
        result = full.sum(axes, acc_dtype=acc_dtype)
        return result if acc_dtype is not None else result.cast(target)


def _with_letters_for_dots(text: str, xs: list[T]) -> tuple[str, list[T]]:
    """Replaces `...` by a letter for each of its axes. Returns the formula, and operands with all of these axes."""
    inputs_text, arrow, output_letters = text.partition("->")
    inputs = inputs_text.split(",")
    if "..." not in text or len(inputs) != len(xs):
        return text, xs
    free = [letter for letter in ascii_letters if letter not in text]
    counts = [x.ndim - len(letters.replace("...", "")) if "..." in letters else 0 for letters, x in zip(inputs, xs)]
    if min(counts) < 0:
        return text, xs
    dots = "".join(free[: max(counts)])
    shapes = []
    for letters, x, count in zip(inputs, xs, counts):
        start = letters.index("...") if "..." in letters else 0
        shapes.append(x.shape[start : start + count])
    shape = broadcast_shape(f"einsum {text!r}", *shapes)
    formulas = []
    for letters, x, count in zip(inputs, xs, counts):
        if "..." in letters:
            start = letters.index("...")
            x = x.reshape((*x.shape[:start], *(1,) * (len(dots) - count), *x.shape[start:]))
            x = x._broadcast_to((*x.shape[:start], *shape, *x.shape[start + len(dots) :]))
        formulas.append(x)
    if not arrow:
        named = inputs_text.replace("...", "").replace(",", "")
        output_letters = "..." + "".join(sorted(letter for letter in set(named) if named.count(letter) == 1))
    return ",".join(inputs).replace("...", dots) + "->" + output_letters.replace("...", dots), formulas


def _order_axes(x: T, letters: str, order: Sequence[str]) -> T:
    """Permutes the axes of `x` to `order`. Missing axes get size 1, and a repeated letter takes the diagonal."""
    while len(set(letters)) < len(letters):
        second = next(i for i, letter in enumerate(letters) if letter in letters[:i])
        first = letters.index(letters[second])
        x = x._wrap_movement(Ops.DIAGONAL, x.lazydata.diagonal(first, second))
        letters = letters[:second] + letters[second + 1 :]
    letters_present = [letter for letter in order if letter in letters]
    permuted = x.permute(tuple(letters.index(letter) for letter in letters_present))
    return permuted.reshape(
        tuple(permuted.shape[letters_present.index(letter)] if letter in letters_present else 1 for letter in order)
    )


@dataclass(frozen=True)
class PhaseRun:
    """Phases of a transposed convolution that one convolution computes, on one axis.

    first, count: the phases.
    taps: the number of weights of each.
    start, stop: the positions that are computed.
    """

    first: int
    count: int
    taps: int
    start: int
    stop: int


def _group_phases(kernel: int, step: int, size: int, span: tuple[int, int]) -> list[PhaseRun]:
    """Groups the phases of a transposed convolution on an axis by their number of weights.

    size: the number of positions on the axis; span: the results that are kept.
    """
    weights, longer_count = divmod(kernel, step)
    fewer = -(-kernel // step) - weights  # a phase with a weight less has a position less
    runs = [(0, longer_count, weights + 1, size), (longer_count, step - longer_count, weights, size - fewer)]
    return [
        PhaseRun(first, count, taps, *_positions_within(first, count, step, span, positions))
        for first, count, taps, positions in runs
        if count
    ]


def _positions_within(first: int, count: int, step: int, span: tuple[int, int], size: int) -> tuple[int, int]:
    """Returns the positions, as (start, stop) within `size`, at which any of `count` phases has a result in `span`."""
    start, end = span
    return max(-((first + count - 1 - start) // step), 0), min(-((first - end) // step), size)


def _split_phases(runs: list[PhaseRun], step: int, span: tuple[int, int]) -> list[PhaseRun]:
    """Splits runs into phases with equal positions where each of these then needs fewer cache lines.

    Example: a kernel of 4 with step 2 and padding 1 has 33 positions for 32 inputs, of which each phase needs 32.
    """
    split: list[PhaseRun] = []
    for run in runs:
        parts: list[PhaseRun] = []
        for phase in range(run.first, run.first + run.count):
            start, stop = _positions_within(phase, 1, step, span, run.stop)
            if parts and (parts[-1].start, parts[-1].stop) == (start, stop):
                parts[-1] = replace(parts[-1], count=parts[-1].count + 1)
            else:
                parts.append(PhaseRun(phase, 1, run.taps, start, stop))
        lines = max(-(-(part.stop - part.start) // LINE) for part in parts)
        split += parts if lines < -(-(run.stop - run.start) // LINE) else [run]
    return split


@gradient_by_tensors
def convolution_gradient(step: TapeEntry, values: Sequence[Processing], g: Processing) -> tuple[Processing | None, ...]:
    """Gradient rule of y = x ⋆ w: dx is the transposed convolution of g with w; dw sums windows of x times g.

    dw sums over batch and positions. The rules of the single operations would instead add up overlapping windows: as
    many values as the convolution multiplies.
    """
    _, groups, steps, gaps = step.arg
    x, w = values
    out, kernel, size = w.shape[0], w.shape[2:], g.shape[2:]
    dx = dw = None
    if step.needs(0):
        least_sizes = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(size, steps, kernel, gaps)]
        output_padding = [axis_size - least_size for axis_size, least_size in zip(x.shape[2:], least_sizes)]
        dx = g.conv_transpose2d(w, None, groups, steps, gaps, 0, output_padding)
    if step.needs(1):
        columns = x._unfold(kernel, groups, steps, gaps)
        factors = g.reshape((g.shape[0], groups, out // groups, *size, *(1,) * (1 + len(kernel))))
        summed = (0, *range(3, 3 + len(size)))
        dw = (columns * factors).sum(summed, acc_dtype=x.dtype).reshape(w.shape)
    return dx, dw


@gradient_by_tensors
def transposed_gradient(step: TapeEntry, values: Sequence[Processing], g: Processing) -> tuple[Processing | None, ...]:
    """Gradient rule of a transposed convolution y of x with w: dx is the convolution of g with w, dw the windows of g
    times x."""
    _, groups, steps, pairs = step.arg
    x, w = values
    size, kernel = x.shape[2:], w.shape[2:]
    least_sizes = [(n - 1) * stride + taps for n, stride, taps in zip(size, steps, kernel)]
    paddings = [
        (before, least_size - axis_size - before)
        for least_size, axis_size, (before, _) in zip(least_sizes, g.shape[2:], pairs)
    ]
    padded = g.pad(((0, 0), (0, 0), *paddings))
    dx = padded.conv2d(w, None, groups, steps) if step.needs(0) else None
    if not step.needs(1):
        return dx, None
    columns = padded._unfold(kernel, groups, steps, (1,) * len(steps))
    factors = x.reshape((x.shape[0], groups, x.shape[1] // groups, *size, *(1,) * (1 + len(kernel))))
    dw = (columns * factors).sum((0, *range(3, 3 + len(size))), acc_dtype=x.dtype).reshape(w.shape)
    return dx, dw


def _collect_letter_sizes(formula: str, inputs: Sequence[str], shapes: Sequence[Any]) -> dict[str, Any]:
    """Returns the size of each letter of einsum's `formula`. Raises ShapeError if two operands differ."""
    sizes: dict[str, Any] = {}
    for letters, shape in zip(inputs, shapes):
        if len(letters) != len(shape) or not (letters == "" or letters.isalpha()):
            raise ValueError(f"einsum {formula!r}: {letters!r} does not name the {len(shape)} axes of shape {shape}")
        for letter, size in zip(letters, shape):
            if sizes.setdefault(letter, size) != size:
                raise ShapeError(f"einsum {formula!r}: the sizes of axis {letter!r} differ: {sizes[letter]} and {size}")
    return sizes

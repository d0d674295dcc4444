"""Losses and regularisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes, least_upper_dtype
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.checks import need_int, need_number, need_tensor
from tinyexplore.tensor.creation import Creation
from tinyexplore.tensor.errors import ArgumentError
from tinyexplore.tensor.gradients import gradient_by_tensors
from tinyexplore.tensor.precision import rounded_once
from tinyexplore.tensor.reduction import position_dtype

if TYPE_CHECKING:
    from typing_extensions import Self

    from tinyexplore.autograd.tape import TapeEntry


class Loss(Creation):
    __slots__ = ()

    def dropout(self, p: float = 0.5) -> Self:
        """Sets each element to 0 with probability p during training, and scales the others by 1 / (1 - p)."""
        need_number(p, "dropout: p")
        if not 0 <= p <= 1:
            raise ValueError(f"dropout with p={p}: need a probability, 0 ≤ p ≤ 1")
        if not type(self).training or p == 0:
            return self
        if p == 1:
            return self * 0
        keep = type(self).rand(*self.shape, device=self.device) >= p
        return keep.where(self * (1 / (1 - p)), 0.0)

    def one_hot(self, num_classes: int = -1) -> Self:
        """Adds a last axis of `num_classes` that is 1 at the index given by each int, else 0. -1: the largest int plus
        1.

        Floats must be whole numbers.
        """
        need_int(num_classes, "one_hot: num_classes")
        if num_classes == -1:
            num_classes = int(self.max().item()) + 1
        if num_classes < 0:
            raise ArgumentError(f"one_hot into {num_classes} classes: a count cannot be negative")
        x = self.unsqueeze(-1)
        if dtypes.is_float(x.dtype):
            x = x.cast(least_upper_dtype(x.dtype, dtypes.float32))  # a dtype that represents all indices
        spread = x._broadcast_to((*self.shape, num_classes))
        dtype = dtypes.default_int if dtypes.is_float(x.dtype) else position_dtype(x.dtype)
        return (spread == spread._positions_along(spread.ndim - 1, dtype)).cast(dtypes.default_int)

    def _average_loss(self, reduction: str) -> Self:
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction {reduction!r}: choose 'mean', 'sum' or 'none'")
        if reduction == "none":
            return self
        return self.mean() if reduction == "mean" else self.sum()

    @rounded_once
    def binary_crossentropy(self, y: Self, reduction: str = "mean") -> Self:
        """Returns -(y · ln p + (1 - y) · ln(1 - p)) with p = this tensor. As in PyTorch, each logarithm is at least
        -100."""
        need_tensor(y, "binary cross entropy: y")
        taped = self._to_float()._match_operands(y._to_float(), "binary cross entropy")
        p, y = (operand._detach_value() for operand in taped)
        losses = y.neg() * p.log().clip(MIN_LOG) - (1 - y) * p.neg()._log1p().clip(MIN_LOG)
        losses = taped[0]._wrap_with_rule(losses.lazydata, binary_crossentropy_gradient, taped, (type(self),))
        return losses._average_loss(reduction)

    @rounded_once
    def binary_crossentropy_logits(
        self, y: Self, reduction: str = "mean", pos_weight: Self | float | None = None
    ) -> Self:
        """Returns the binary cross entropy of p = sigmoid(x), without overflow: |x| · (1 - y if x > 0, else y) + ln(1 +
        e^-|x|).

        `pos_weight` w, which broadcasts, weights positive examples: -(w · y · ln p + (1 - y) · ln(1 - p)).
        """
        need_tensor(y, "binary cross entropy: y")
        taped = list(self._to_float()._match_operands(y._to_float(), "binary cross entropy"))
        if pos_weight is not None:
            x, weight = taped[0]._match_operands(pos_weight, "binary cross entropy: pos_weight")
            taped = [*x._match_operands(taped[1], "binary cross entropy"), weight]
        x, y, *weights = (operand._detach_value() for operand in taped)
        tail = x.abs().neg().exp()._log1p()
        if not weights:
            share = (x > 0).where(1 - y, y)
            losses = share.eq(0).where(0.0, share * x.abs()) + tail  # x may be infinite where its factor is 0
        else:
            of_positive, of_negative = x.neg().relu() + tail, x.relu() + tail  # -ln p and -ln(1 - p)
            losses = y.eq(0).where(0.0, weights[0] * y * of_positive) + y.eq(1).where(0.0, (1 - y) * of_negative)
        losses = self._wrap_with_rule(losses.lazydata, binary_crossentropy_logits_gradient, tuple(taped), (type(self),))
        return losses._average_loss(reduction)

    def _class_axis(self, y: Self) -> int:
        """Returns the class axis of logits (batch, classes, …) or (classes,). `y` holds class indices or
        probabilities."""
        need_tensor(y, "class labels: Y")
        axis = 0 if self.ndim == 1 else 1
        expected = self.shape[:axis] + self.shape[axis + 1 :]
        if self.ndim == 0 or y.shape not in (expected, self.shape):
            raise ShapeError(f"class labels of shape {y.shape} for scores of shape {self.shape}: need {expected}")
        return axis

    @rounded_once
    def sparse_categorical_crossentropy(
        self, Y: Self, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Self:
        """Returns -ln softmax over the last axis, at the class index in `Y`. Elements whose index is `ignore_index` do
        not count."""
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing {label_smoothing}: need 0 ≤ label_smoothing ≤ 1")
        need_tensor(Y, "class labels: Y")
        need_int(ignore_index, "class labels: ignore_index")
        if Y.shape != self.shape[:-1]:
            raise ShapeError(f"labels of shape {Y.shape} for scores of shape {self.shape}: need {self.shape[:-1]}")
        logs = self.log_softmax(-1)
        classes = self.shape[-1]
        counts = Y.ne(ignore_index)
        is_label = Y.unsqueeze(-1) == logs._positions_along(logs.ndim - 1, position_dtype(Y.dtype))
        label_logs = (is_label & counts.unsqueeze(-1)).where(logs, 0.0).sum(-1)
        if label_smoothing:
            even_loss = counts.where(logs.sum(-1), 0.0) * (1.0 / classes)
            label_logs = label_logs * (1 - label_smoothing) + even_loss * label_smoothing
        if reduction == "mean":
            return label_logs.sum().neg() / counts.sum()
        return label_logs.neg()._average_loss(reduction)

    @rounded_once
    def nll_loss(
        self, Y: Self, weight: Self | None = None, ignore_index: int | None = None, reduction: str = "mean"
    ) -> Self:
        """Returns -x at the class index in `Y`, for log-probabilities x (batch, classes, …). `weight` has a weight for
        each class."""
        logs, axis = self._to_float(), self._class_axis(Y)
        classes = self._positions_along(axis, position_dtype(Y.dtype))
        is_label = Y.unsqueeze(axis) == classes
        if ignore_index is not None:
            is_label = is_label & Y.ne(ignore_index).unsqueeze(axis)
        shape = tuple(size if i == axis else 1 for i, size in enumerate(self.shape))
        share = (
            is_label.cast(logs.dtype) if weight is None else is_label.where(weight.reshape(shape).cast(logs.dtype), 0.0)
        )
        losses = share.ne(0).where(logs * share, 0.0).sum(axis).neg()  # a term with weight 0 may be infinite
        if reduction == "mean":
            return losses.sum() / share.sum()
        return losses._average_loss(reduction)

    @rounded_once
    def cross_entropy(self, Y: Self, reduction: str = "mean", label_smoothing: float = 0.0) -> Self:
        """Returns -Σ y · ln softmax over axis 1 (axis 0 of a vector). `Y` holds class indices or probabilities."""
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing {label_smoothing}: need 0 ≤ label_smoothing ≤ 1")
        axis = self._class_axis(Y)
        classes = self.shape[axis]
        logs = self.log_softmax(axis)
        smoothing_share = label_smoothing / classes
        if Y.shape != self.shape:
            is_label = Y.unsqueeze(axis) == self._positions_along(axis, position_dtype(Y.dtype))
            terms = is_label.where(
                logs * (1 - label_smoothing + smoothing_share), logs * smoothing_share if label_smoothing else 0.0
            )
        else:
            share = Y * (1 - label_smoothing) + smoothing_share if label_smoothing else Y
            terms = share.eq(0).where(0.0, logs * share)  # a term with weight 0 may be infinite
        return terms.sum(axis).neg()._average_loss(reduction)


@gradient_by_tensors
def binary_crossentropy_logits_gradient(step: TapeEntry, values: Sequence[Loss], g: Loss) -> tuple[Loss | None, ...]:
    """Gradient rule of `binary_crossentropy_logits`, with p = sigmoid(x) and the weight w.

    dx = g · ((1 + (w - 1) · y) · p - w · y), dy = g · (ln(1 - p) - w · ln p), dw = -g · y · ln p
    """
    x, y, *weights = values
    p = x.sigmoid()
    if not weights:
        return g * (p - y), g * -x if step.needs(1) else None
    (weight,) = weights
    dx = g * ((1 + (weight - 1) * y) * p - weight * y)
    dy = g * (x.logsigmoid() * -weight - x.softplus()) if step.needs(1) else None
    return dx, dy, g * y * -x.logsigmoid() if step.needs(2) else None


MIN_LOG = -100.0
MIN_PRODUCT = 1e-12  # the least divisor p · (1 - p) in the gradient


@gradient_by_tensors
def binary_crossentropy_gradient(step: TapeEntry, values: Sequence[Loss], g: Loss) -> tuple[Loss | None, ...]:
    """Gradient rule of `binary_crossentropy`: dp = g · (p - y) / (p · (1 - p)) and dy = g · (ln(1 - p) - ln p).

    As in PyTorch, the divisor of dp is at least 1e-12.
    """
    p, y = values
    of_y = g * (p.neg()._log1p() - p.log()) if step.needs(1) else None
    return g * (p - y) / ((1 - p) * p).maximum(MIN_PRODUCT) if step.needs(0) else None, of_y

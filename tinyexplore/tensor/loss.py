"""Losses and regularisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tinyexplore.dtype import dtypes, least_upper_dtype
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.checks import need_int, need_number, need_tensor
from tinyexplore.tensor.errors import ArgumentError
from tinyexplore.tensor.reduction import place_dtype

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor


class Loss:
    __slots__ = ()

    def dropout(self: Tensor, p: float = 0.5) -> Tensor:
        """While training: each element 0 with probability p, the others scaled up by 1 / (1 - p)."""
        need_number(p, "dropout: p")
        if not 0 <= p <= 1:
            raise ValueError(f"dropout with p={p}: need a probability, 0 ≤ p ≤ 1")
        if not type(self).training or p == 0:
            return self
        if p == 1:
            return self * 0
        keep = type(self).rand(*self.shape, device=self.device) >= p
        return keep.where(self * (1 / (1 - p)), 0.0)

    def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
        """A new last axis that is 1 at the place that each int names, else 0; -1: as long as the largest int needs.

        Of floats, whole ones name a place.
        """
        need_int(num_classes, "one_hot: num_classes")
        if num_classes == -1:
            num_classes = int(self.max().item()) + 1
        if num_classes < 0:
            raise ArgumentError(f"one_hot into {num_classes} classes: a count cannot be negative")
        x = self.unsqueeze(-1)
        if dtypes.is_float(x.dtype):
            x = x.cast(least_upper_dtype(x.dtype, dtypes.float32))  # one that tells places apart
        spread = x._broadcast_to((*self.shape, num_classes))
        places = dtypes.default_int if dtypes.is_float(x.dtype) else place_dtype(x.dtype)
        return (spread == spread._places(spread.ndim - 1, places)).cast(dtypes.default_int)

    def _averaged(self: Tensor, reduction: str) -> Tensor:
        if reduction not in ("mean", "sum", "none"):
            raise ValueError(f"reduction {reduction!r}: choose 'mean', 'sum' or 'none'")
        if reduction == "none":
            return self
        return self.mean() if reduction == "mean" else self.sum()

    def binary_crossentropy(self: Tensor, y: Tensor, reduction: str = "mean") -> Tensor:
        """-(y · ln p + (1 - y) · ln(1 - p)), where this tensor is p"""
        need_tensor(y, "binary cross entropy: y")
        p, y = self, y._float()
        return (y.neg() * p.log() - (1 - y) * (1 - p).log())._averaged(reduction)

    def binary_crossentropy_logits(
        self: Tensor, y: Tensor, reduction: str = "mean", pos_weight: Tensor | float | None = None
    ) -> Tensor:
        """The same for p = sigmoid(x), without overflow: max(x, 0) - x·y + ln(1 + e^-|x|)

        With `pos_weight` w, which broadcasts, positive examples count w times: -(w · y · ln p + (1 - y) · ln(1 - p)).
        """
        need_tensor(y, "binary cross entropy: y")
        x, y = self._float(), y._float()
        tail = x.abs().neg().exp()._log1p()
        if pos_weight is None:
            return (x.relu() - x * y + tail)._averaged(reduction)
        of_positive, of_negative = x.neg().relu() + tail, x.relu() + tail  # -ln p and -ln(1 - p)
        return (pos_weight * y * of_positive + (1 - y) * of_negative)._averaged(reduction)

    def _class_axis(self: Tensor, y: Tensor) -> int:
        """The axis of classes of logits (batch, classes, …) or (classes,), for ints or probabilities `y`."""
        need_tensor(y, "class labels: Y")
        axis = 0 if self.ndim == 1 else 1
        expected = self.shape[:axis] + self.shape[axis + 1 :]
        if self.ndim == 0 or y.shape not in (expected, self.shape):
            raise ShapeError(f"class labels of shape {y.shape} for scores of shape {self.shape}: need {expected}")
        return axis

    def sparse_categorical_crossentropy(
        self: Tensor, Y: Tensor, ignore_index: int = -1, label_smoothing: float = 0.0, reduction: str = "mean"
    ) -> Tensor:
        """-ln softmax at the class that `Y` names, over the last axis; where Y is `ignore_index` none counts."""
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing {label_smoothing}: need 0 ≤ label_smoothing ≤ 1")
        need_tensor(Y, "class labels: Y")
        need_int(ignore_index, "class labels: ignore_index")
        if Y.shape != self.shape[:-1]:
            raise ShapeError(f"labels of shape {Y.shape} for scores of shape {self.shape}: need {self.shape[:-1]}")
        logs = self.log_softmax(-1)
        classes = self.shape[-1]
        counts = Y != ignore_index
        wanted = Y.unsqueeze(-1) == logs._places(logs.ndim - 1, place_dtype(Y.dtype))
        chosen = (wanted & counts.unsqueeze(-1)).where(logs, 0.0).sum(-1)
        if label_smoothing:
            even = counts.where(logs.sum(-1), 0.0) * (1.0 / classes)
            chosen = chosen * (1 - label_smoothing) + even * label_smoothing
        if reduction == "mean":
            return chosen.sum().neg() / counts.sum()
        return chosen.neg()._averaged(reduction)

    def nll_loss(
        self: Tensor, Y: Tensor, weight: Tensor | None = None, ignore_index: int | None = None, reduction: str = "mean"
    ) -> Tensor:
        """-x at the class that `Y` names, for log-probabilities (batch, classes, …), each class with its weight."""
        axis = self._class_axis(Y)
        places = self._places(axis, place_dtype(Y.dtype))
        wanted = Y.unsqueeze(axis) == places
        if ignore_index is not None:
            wanted = wanted & (Y != ignore_index).unsqueeze(axis)
        shape = tuple(size if i == axis else 1 for i, size in enumerate(self.shape))
        share = wanted.cast(self.dtype) if weight is None else wanted.where(weight.reshape(shape).cast(self.dtype), 0.0)
        losses = (wanted.where(self, 0.0) * share).sum(axis).neg()
        if reduction == "mean":
            return losses.sum() / share.sum()
        return losses._averaged(reduction)

    def cross_entropy(self: Tensor, Y: Tensor, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
        """-Σ y · ln softmax over axis 1 (axis 0 of a vector); `Y` holds class numbers or probabilities."""
        if not 0 <= label_smoothing <= 1:
            raise ValueError(f"label_smoothing {label_smoothing}: need 0 ≤ label_smoothing ≤ 1")
        axis = self._class_axis(Y)
        classes = self.shape[axis]
        share = Y
        if Y.shape != self.shape:
            share = (Y.unsqueeze(axis) == self._places(axis, place_dtype(Y.dtype))).cast(self._float().dtype)
        if label_smoothing:
            share = share * (1 - label_smoothing) + label_smoothing / classes
        losses = (self.log_softmax(axis) * share).sum(axis).neg()
        return losses._averaged(reduction)

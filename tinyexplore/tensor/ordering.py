"""Sorting, running extremes, and named axes. Short axes are sorted by comparing all pairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

from tinyexplore.autograd import take_gradient
from tinyexplore.dtype import dtypes
from tinyexplore.lazy.lazybuffer import ShapeError
from tinyexplore.tensor.checks import need_int, shown
from tinyexplore.tensor.indexing import Indexing
from tinyexplore.tensor.radix import comparable, first_indices, is_search_cheaper, sort_rows, sorted_indices
from tinyexplore.tensor.selection import is_selected, selected_indices
from tinyexplore.uop import Ops

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T", bound="Ordering")

# Up to this length, comparing all pairs in a few kernels takes less time than the passes of a radix sort
SHORT = 128
MAX_PAIRWISE_COMPARISONS = 1 << 18


class Ordering(Indexing):
    __slots__ = ()

    # *** sorting ***

    def _rank_elements(self, descending: bool) -> Self:
        """Returns for each element of the last axis the number of elements that precede it in sorted order.

        Equal elements keep their order. NaN is last.
        """
        element, other = self.unsqueeze(-1), self.unsqueeze(-2)
        positions = self._positions_along(self.ndim - 1)
        earlier = positions.unsqueeze(-2) < positions.unsqueeze(-1)
        precedes = other > element if descending else other < element
        is_equal = other == element
        if dtypes.is_float(self.dtype):
            lost = self.isnan()
            mine_lost, other_lost = lost.unsqueeze(-1), lost.unsqueeze(-2)
            # as in NumPy and PyTorch, NaN is larger than any number
            precedes = precedes | ((mine_lost & ~other_lost) if not descending else (other_lost & ~mine_lost))
            is_equal = is_equal | (mine_lost & other_lost)
        return (precedes | (is_equal & earlier)).sum(-1)

    def argsort(self, dim: int = -1, descending: bool = False) -> Self:
        """Returns the indices that sort the elements along `dim`. Equal elements keep their order."""
        axis = self._resolve_axis(dim)
        if self.ndim == 0:
            return self._const(0, dtypes.default_int)
        x = self._detach_value().transpose(axis, -1)
        length = x.shape[-1]
        if x.numel() == 0:
            return self._const(0, dtypes.default_int)
        if x._is_long(x.ndim - 1):
            indices = sorted_indices(x.reshape((x.numel() // length, length)), descending)
            return indices.cast(dtypes.default_int).reshape(x.shape).transpose(axis, -1)
        ranks = x._rank_elements(descending)
        indices = ranks._positions_along(ranks.ndim - 1)._broadcast_to(ranks.shape)
        ordered = ranks._const(0, indices.dtype, ranks.shape)._scatter_into(None, ranks.ndim - 1, ranks, indices)
        return ordered.transpose(axis, -1)

    def sort(self, dim: int = -1, descending: bool = False) -> tuple[Self, Self]:
        """Returns the sorted elements along `dim`, and their indices. If the indices are not used, the sort processes
        less data."""
        indices = self.argsort(dim, descending)
        if self.ndim == 0:
            return self, indices
        axis = self._resolve_axis(dim)
        if not self.numel() or not self._is_long(axis):
            return self.gather(dim, indices), indices
        x = self.transpose(axis, -1)
        rows = x.reshape((-1, x.shape[-1]))
        numbers = indices.transpose(axis, -1).reshape(rows.shape).lazydata
        ordered = sort_rows(rows._detach_value(), descending)
        values = rows._wrap_with_rule(ordered.lazydata, take_gradient, (rows,), (1, numbers))
        return values.reshape(x.shape).transpose(axis, -1), indices

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted_: bool = True) -> tuple[Self, Self]:
        """Returns the `k` largest (or smallest) elements along `dim`, in order, and their indices."""
        axis = self._resolve_axis(dim)
        need_int(k, "topk: k")
        if not self.ndim:
            values, positions = self.reshape((1,)).topk(k, 0, largest)
            return (values.reshape(()), positions.reshape(())) if k else (values, positions)
        if not 0 <= k <= self.shape[axis]:
            raise ValueError(f"topk of {k} along axis {dim} of shape {self.shape}: need 0 ≤ k ≤ {self.shape[axis]}")
        length = self.shape[axis]
        is_partial = k > 0 and self._is_long(axis) and self.dtype.itemsize < 8 and is_search_cheaper(length, k)
        if is_partial or (k > 0 and self._is_long(axis) and is_selected(length, k)):
            x = self._detach_value().transpose(axis, -1)
            rows = x.reshape((-1, length))
            indices = first_indices(rows, k, largest) if is_partial else _select_sorted(rows, k, largest)
            positions = indices.cast(dtypes.default_int).reshape((*x.shape[:-1], k)).transpose(axis, -1)
        else:
            bounds: list[tuple[int, int] | None] = [None] * self.ndim
            bounds[axis] = (0, k)
            positions = self.argsort(dim, descending=largest).shrink(bounds)
        return self.gather(dim, positions), positions

    def _is_long(self, axis: int) -> bool:
        """Whether radix sort takes less time along this axis than comparing all pairs."""
        length = self.shape[axis]
        return bool(length > SHORT and self.numel() * length > MAX_PAIRWISE_COMPARISONS)

    # *** running products and extremes ***

    def cumprod(self, axis: int = 0) -> Self:
        """Returns the running product along `axis`."""
        return self._scan_total(Ops.MUL, axis)

    def _scan_extreme(self, axis: int, op: Ops) -> tuple[Self, Self]:
        dim = self._resolve_axis(axis)
        if self.ndim == 0 or self.numel() == 0:
            return self, self._const(0, dtypes.default_int)
        x = self._detach_value()
        values = x._scan_by(op, dim)
        is_extreme = x == values
        if dtypes.is_float(x.dtype):
            is_extreme = is_extreme | x.isnan()
        indices = is_extreme.where(self._positions_along(dim), -1)._scan_by(Ops.MAX, dim)
        return self.gather(dim, indices) if self.requires_grad else values, indices

    def cummax(self, axis: int = 0) -> tuple[Self, Self]:
        """Returns the running maximum along `axis`, and its last index. The gradient flows to the element at that
        index."""
        return self._scan_extreme(axis, Ops.MAX)

    def cummin(self, axis: int = 0) -> tuple[Self, Self]:
        """Returns the running minimum along `axis`, and its last index. The gradient flows to the element at that
        index."""
        return self._scan_extreme(axis, Ops.MIN)

    # *** axes by name ***

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Regroups and reorders named axes: "b (h w) ... -> b h w ..." with h=…. `...` stands for further axes."""
        if not isinstance(formula, str):
            raise TypeError(f"rearrange: the formula is {shown(formula)}: need text, such as 'b h w -> b (h w)'")
        input_text, arrow, output_text = formula.partition("->")
        input_groups, output_groups = _parse_axis_groups(input_text), _parse_axis_groups(output_text)
        extra_axes = self.ndim - len(input_groups) + 1
        if [_ELLIPSIS] in input_groups and extra_axes >= 0:
            extra_names = [f"...{number}" for number in range(extra_axes)]
            input_groups, output_groups = (
                _without_ellipsis(input_groups, extra_names),
                _without_ellipsis(output_groups, extra_names),
            )
        names = [name for group in input_groups for name in group]
        if (
            not arrow
            or sorted(names) != sorted(name for group in output_groups for name in group)
            or len(set(names)) < len(names)
        ):
            raise ValueError(f"rearrange {formula!r}: both sides of '->' must name the same axes, each once")
        if len(input_groups) != self.ndim:
            raise ShapeError(
                f"rearrange {formula!r} of shape {self.shape}: {len(input_groups)} axes are named, not {self.ndim}"
            )
        split = _split_sizes(formula, input_groups, self.shape, sizes)
        permuted = self.reshape(tuple(split)).permute(
            tuple(names.index(name) for group in output_groups for name in group)
        )
        by_name = dict(zip(names, split))
        return permuted.reshape(tuple(math.prod(by_name[name] for name in group) for group in output_groups))


def _select_sorted(rows: T, count: int, descending: bool) -> T:
    """Returns the first `count` columns of `sorted_indices`: selects the elements, then sorts only these."""
    selected = selected_indices(rows, count, descending)
    return selected.gather(1, comparable(rows.gather(1, selected)).argsort(1, descending))


_ELLIPSIS = "..."


def _without_ellipsis(groups: list[list[str]], names: list[str]) -> list[list[str]]:
    """Replaces `...` by several axes, or by one axis inside parentheses."""
    result: list[list[str]] = []
    for group in groups:
        if group == [_ELLIPSIS]:
            result.extend([name] for name in names)
        elif _ELLIPSIS in group:
            position = group.index(_ELLIPSIS)
            result.append(group[:position] + names + group[position + 1 :])
        else:
            result.append(group)
    return result


def _parse_axis_groups(text: str) -> list[list[str]]:
    """Parses one side of a formula: "b (h w) c" → [[b], [h, w], [c]]. "()" and "1" are axes without a name."""
    groups: list[list[str]] = []
    in_group = False
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word in "()":
            if in_group == (word == "("):
                raise ValueError(f"rearrange: parentheses in {text!r} do not match")
            in_group = word == "("
            if in_group:
                groups.append([])
        elif in_group:
            groups[-1].append(word)
        else:
            groups.append([] if word == "1" else [word])
    return groups


def _split_sizes(
    formula: str, groups: Sequence[Sequence[str]], shape: Sequence[Any], sizes: Mapping[str, int]
) -> list[int]:
    """Returns the size of each named axis. Raises ShapeError if an axis does not split into its group."""
    split: list[int] = []
    for group, axis_size in zip(groups, shape):
        known_size = prod(sizes.get(name, 1) for name in group)
        open_names = [name for name in group if name not in sizes]
        if len(open_names) > 1 or axis_size % max(known_size, 1) or (not open_names and known_size != axis_size):
            raise ShapeError(
                f"rearrange {formula!r}: an axis of size {axis_size} does not split into {group}; give sizes"
            )
        split.extend(sizes.get(name, axis_size // known_size) for name in group)
    return split

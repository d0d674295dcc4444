"""Convolutions with kernels of 3 places by minimal filters, F(4, 3) along each axis.

Four results need 6 products instead of 12. On tiles d of 6 elements and filters g: Aᵀ · ((G · g) ⊙ (Bᵀ · d)).
Sources: Winograd, "Arithmetic complexity of computations" (1980); Lavin and Gray, "Fast algorithms for convolutional
neural networks" (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

RESULTS, TAPS = 4, 3
TILE = RESULTS + TAPS - 1
Matrix = Sequence[Sequence[float]]

FILTER: Matrix = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
INPUT: Matrix = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
OUTPUT: Matrix = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)


def minimal_filters(x: Tensor, weight: Tensor, groups: int) -> Tensor:
    """The convolution, by single steps, of a padded (batch, in, *spatial) with (out, in / groups, 3, 3, …)."""
    places = weight.ndim - 2
    size = tuple(have - TAPS + 1 for have in x.shape[2:])
    tiles = tuple(-(-count // RESULTS) for count in size)
    whole = x.pad([(0, 0), (0, 0), *((0, t * RESULTS - count) for t, count in zip(tiles, size))])
    windows = whole._windows((TILE,) * places, (RESULTS,) * places, (1,) * places)
    batch, inside = x.shape[0], weight.shape[1]
    last = tuple(range(-places, 0))
    # (batch, group, 1, in, *tiles, 6, …) times (1, group, out, in, 1, …, 6, …)
    data = _transformed(windows, INPUT, last).contiguous()
    data = data.reshape((batch, groups, 1, inside, *tiles, *(TILE,) * places))
    filters = _transformed(weight, FILTER, last).contiguous()
    filters = filters.reshape((1, groups, -1, inside, *(1,) * places, *(TILE,) * places))
    products = (data * filters).sum(3)
    found = _transformed(products, OUTPUT, last)  # (batch, group, out, *tiles, 4, …)
    order = [0, 1, 2]
    for axis in range(places):
        order += [3 + axis, 3 + places + axis]
    joined = found.permute(tuple(order)).reshape((batch, weight.shape[0], *(t * RESULTS for t in tiles)))
    return joined.shrink([None, None, *((0, count) for count in size)])


def _transformed(x: Tensor, matrix: Matrix, axes: Sequence[int]) -> Tensor:
    """Each of `axes` (counted from the end) multiplied by the matrix."""
    for axis in axes:
        at = x.ndim + axis
        columns = x.split(1, at)
        rows = [_combined(columns, row) for row in matrix]
        x = rows[0].cat(*rows[1:], dim=at)
    return x


def _combined(columns: Sequence[Tensor], factors: Sequence[float]) -> Tensor:
    parts = [column * factor for column, factor in zip(columns, factors) if factor]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total

"""Convolutions with kernels of size 3 by minimal filters, F(4, 3) along each axis.

Four results need 6 products instead of 12. For tiles d of 6 elements and filters g: Aᵀ · ((G · g) ⊙ (Bᵀ · d)). Each of
the three transforms is one product with a constant matrix over all axes (its Kronecker power). Between them there is
one matrix product for each position of a tile. With the copy that lays out the tiles, that makes five kernels. Sources:
Winograd, "Arithmetic complexity of computations" (1980); Lavin and Gray, "Fast algorithms for convolutional neural
networks" (2016).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeVar

from tinyexplore.device import Buffer, Device
from tinyexplore.dtype import DType, dtypes
from tinyexplore.lazy import LazyBuffer
from tinyexplore.tensor.pooling import Pooling
from tinyexplore.tensor.products import Products
from tinyexplore.uop import Ops
from tinyexplore.uop.semantics import evaluate, to_bits


class Convolvable(Pooling, Products):
    """A tensor with windows and matrix products: the operations that a convolution needs."""

    __slots__ = ()


T = TypeVar("T", bound=Convolvable)

RESULTS, TAPS = 4, 3
TILE_SIZE = RESULTS + TAPS - 1
# cost of a transform's multiplication relative to one of a matrix product: transforms mainly move data
TRANSFORM_COST = 2
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


def is_cheaper(batch: int, size: Sequence[int], outs: int, ins: int, groups: int) -> bool:
    """Whether the transforms cost fewer multiplications than they save. `size`: the spatial shape of the result.

    False for more than two axes: the transforms would then be products with matrices of 216 columns.
    """
    axis_count = len(size)
    if axis_count > 2 or any(not isinstance(count, int) for count in (batch, *size)):
        return False
    tiles = batch * prod(-(-count // RESULTS) for count in size)
    tile, results, taps = TILE_SIZE**axis_count, RESULTS**axis_count, TAPS**axis_count
    pairs = ins // groups * outs
    transforms = tiles * (tile * tile * ins + results * tile * outs) + tile * taps * pairs
    return bool(TRANSFORM_COST * transforms + tiles * tile * pairs < batch * prod(size) * taps * pairs)


def minimal_filters(x: T, weight: T, groups: int) -> T:
    """Convolves a padded (batch, in, *spatial) with weights (out, in / groups, 3, 3, …), with stride 1."""
    axis_count = weight.ndim - 2
    size = tuple(axis_size - TAPS + 1 for axis_size in x.shape[2:])
    tiles = tuple(-(-count // RESULTS) for count in size)
    padded = x.pad([(0, 0), (0, 0), *((0, t * RESULTS - count) for t, count in zip(tiles, size))])
    windows = padded._make_windows((TILE_SIZE,) * axis_count, (RESULTS,) * axis_count, (1,) * axis_count)
    batch, ins, outs = x.shape[0], x.shape[1], weight.shape[0]
    tile, count = TILE_SIZE**axis_count, batch * prod(tiles)
    # for each position of a tile: (group, position, in, tiles of all images)
    data = windows.reshape((batch, groups, ins // groups, prod(tiles), tile))
    # stored, because a product reads it repeatedly
    data = data.permute((1, 4, 2, 0, 3)).reshape((groups, tile, -1)).contiguous()
    data = _transform_tiles(data, INPUT, axis_count)
    data = data.reshape((groups, tile, ins // groups, count)).contiguous()
    filters = weight.reshape((groups, outs // groups, ins // groups, TAPS**axis_count)).permute((0, 3, 1, 2))
    filters = _transform_tiles(filters.reshape((groups, TAPS**axis_count, -1)), FILTER, axis_count)
    filters = filters.reshape((groups, tile, outs // groups, ins // groups)).contiguous()
    products = filters.dot(data).contiguous()  # (group, position, out, tiles of all images)
    result = _transform_tiles(products.reshape((groups, tile, -1)), OUTPUT, axis_count)
    result = result.reshape((groups, *(RESULTS,) * axis_count, outs // groups, batch, *tiles))
    order = [1 + axis_count + 1, 0, 1 + axis_count]
    for axis in range(axis_count):
        order += [3 + axis_count + axis, 1 + axis]
    joined = result.permute(tuple(order)).reshape((batch, outs, *(t * RESULTS for t in tiles)))
    return joined.shrink([None, None, *((0, count) for count in size)])


def _transform_tiles(x: T, matrix: Matrix, axis_count: int) -> T:
    """Multiplies all axes of the tile in (group, positions of a tile, …) by `matrix`."""
    return _make_kronecker_power(x, matrix, axis_count).dot(x)


def _make_kronecker_power(x: T, matrix: Matrix, axis_count: int) -> T:
    """Returns the Kronecker power of a matrix, with the dtype and device of `x`."""
    rows, columns = len(matrix) ** axis_count, len(matrix[0]) ** axis_count
    device = x.lazydata.device
    buffer = Buffer(Device.members(device)[0], rows * columns, x.dtype).copyin(
        _compute_power_elements(matrix, axis_count, x.dtype)
    )
    return x._wrap(LazyBuffer.from_buffer(buffer, (rows, columns)).copy_to_device(device))


@lru_cache(16)
def _compute_power_elements(matrix: Matrix, axis_count: int, dtype: DType) -> bytes:
    """Returns the elements of the Kronecker power as bytes, row-major."""
    elements = [prod(factors) for row in product(matrix, repeat=axis_count) for factors in product(*row)]
    rounded = [evaluate(Ops.CAST, dtype, float(element), src_dtypes=(dtypes.float64,)) for element in elements]
    return b"".join([to_bits(number, dtype).to_bytes(dtype.itemsize, "little") for number in rounded])

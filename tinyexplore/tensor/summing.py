"""Rows added up by number: the gradient of reading rows by an index, without comparing every row with every number.

The rows are brought into the order of their numbers, so that those to be added stand together. Then each row adds what
stands 1, 2, … 7 places before it and has its number; the sums of eight are added in the same way, 8, 16, … 56 places
apart, and so on: the last row of a number ends up with the sum of all. What each number gets is found by bisection.
For n rows of m elements and v numbers that is n·m·log(n) + v·(m + log(n)) steps instead of n·m·v, always in the same
order: the same bits every time, and the error of a sum in pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyexplore.autograd import Step
from tinyexplore.dtype import dtypes
from tinyexplore.lazy import LazyBuffer

if TYPE_CHECKING:
    from tinyexplore.tensor.tensor import Tensor

FEW_STEPS = 1 << 24  # up to here, comparing all with all is one kernel that takes a millisecond or so
AT_ONCE = 8  # rows added in one kernel; from as many cache lines


def is_worth_it(rows: int, width: int, numbers: int) -> bool:
    """True where comparing every row with every number would be (much) more work."""
    levels = max(1, (max(rows, 2) - 1).bit_length() // 3)
    return rows * width * numbers > max(FEW_STEPS, 8 * (rows * width * AT_ONCE * levels + numbers * width))


def summed_by_number(rows: Tensor, numbers: Tensor, count: int) -> Tensor:
    """Row v of the result is the sum of the `rows` (n, m) whose number (n,) is v; numbers outside 0 … count - 1 are
    left out."""
    kind: Any = type(rows)
    length = rows.shape[0]
    places = numbers.argsort().contiguous()
    key = numbers.gather(0, places).contiguous()
    total = _rows_at(rows, places).contiguous()
    step = 1
    while step < length:
        found = total
        for back in range(step, min(AT_ONCE * step, length), step):
            same = key == _moved(key, back)
            found = found + same.unsqueeze(1).where(_moved(total, back), 0)
        total = found.contiguous()
        step *= AT_ONCE
    wanted = kind._wrap(LazyBuffer.iota(count, key.dtype, rows.device))
    before = wanted._const(0)  # how many rows have at most this number
    step = 1 << (length.bit_length() - 1)
    while step:
        probe = before + step
        fits = (probe <= length) & (key._picked((probe - 1).minimum(length - 1).unsqueeze(1)) <= wanted)
        before = fits.where(probe, before)
        step >>= 1
    last = before - 1
    has_any = (before > 0) & (key._picked(last.maximum(0).unsqueeze(1)) == wanted)
    return _rows_at(total, has_any.where(last, -1).contiguous())


def _rows_at(rows: Tensor, places: Tensor) -> Tensor:
    """Row n of the result is row places[n] of `rows`; zeros where there is none."""
    return rows.permute((1, 0)).unsqueeze(0)._picked(places.reshape((places.shape[0], 1, 1)))


def _moved(x: Tensor, back: int) -> Tensor:
    """Row n is row n - back of `x`; zeros before the first."""
    kept = x.shrink([(0, x.shape[0] - back), *(None for _ in x.shape[1:])])
    return kept.pad([(back, 0), *((0, 0) for _ in x.shape[1:])])


def picked_rows_gradient(step: Step, g: LazyBuffer) -> tuple[LazyBuffer | None, ...]:
    """y(a…, n…, b…) = x(a…, b…, index(n…)): dx(a…, b…, v) = Σ g(a…, n…, b…) over the n with index(n) = v"""
    (x,), (kind, index, at) = step.sources, step.arg
    rank = len(index.shape)
    gradient: Any = kind._wrap(g)
    inner = range(at, at + rank)
    outer = [axis for axis in range(gradient.ndim) if axis not in inner]
    rows = gradient.permute((*inner, *outer)).reshape((index.numel(), x.size // x.shape[-1]))
    wide = rows.dtype if rows.dtype in (dtypes.float32, dtypes.float64) else dtypes.float32
    total = summed_by_number(rows.cast(wide), index.reshape((index.numel(),)), x.shape[-1])
    return (total.cast(rows.dtype).permute((1, 0)).reshape(x.shape).lazydata,)

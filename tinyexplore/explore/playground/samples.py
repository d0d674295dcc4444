"""Values on which two graphs are compared: the odd ones of each dtype first, in every combination while these are few,
then values drawn at random within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import product
from random import Random
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.playground.meaning import Wanted
from tinyexplore.uop.semantics import FP8, from_bits, to_bits, to_dtype_range

_MANTISSA = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}
_USUAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.5, 0.1, 7.0, 1 / 3, -1e-3, 100.0, 1e30, -1e30)
_SMALL = (0, 1, -1, 2, -2, 3, -3, 4, 5, 7, -7, 8, 15, 16)
Choose = Callable[[Wanted], Any]


@cache
def odd_floats(dtype: DType) -> tuple[float, ...]:
    """Zeros, ones, infinities, NaN, the least and greatest of each kind, and what is rounded just so."""
    mantissa = _MANTISSA.get(dtype) or FP8[dtype].mantissa
    infinite = to_bits(math.inf, dtype) if dtype not in FP8 else FP8[dtype].greatest + 1
    bits = (1, (1 << mantissa) - 1, 1 << mantissa, infinite - 1)  # denormals, the least normal one, the greatest
    limits = [from_bits(one, dtype) for one in bits]
    whole = float(1 << mantissa + 1)  # from here on not every whole number is there
    step = to_dtype_range(1.0 + 2.0**-mantissa, dtype)
    found = [*_USUAL, math.inf, -math.inf, math.nan, *limits, *[-one for one in limits], whole, whole - 1, step]
    kept = {}
    for value in (to_dtype_range(float(one), dtype) for one in found):
        kept[repr(value)] = value
    return tuple(kept.values())


@cache
def odd_ints(low: int, high: int) -> tuple[int, ...]:
    """Small numbers, the ends of the range and their neighbours, powers of two and theirs."""
    found = [*_SMALL, low, low + 1, high, high - 1, (low + high) // 2]
    for power in (7, 8, 15, 16, 23, 24, 25, 30, 31, 32, 33, 53, 62, 63):
        found += [(1 << power) - 1, 1 << power, (1 << power) + 1, -(1 << power), -(1 << power) - 1]
    return tuple(dict.fromkeys(one for one in found if low <= one <= high))


def odd_values(wanted: Wanted) -> tuple[Any, ...]:
    """The values of a dtype, within the bounds, at which rules go wrong."""
    if dtypes.is_float(wanted.dtype):
        return odd_floats(wanted.dtype)
    if wanted.dtype is dtypes.bool:
        return tuple([bool(one) for one in range(wanted.low, wanted.high + 1)])
    return odd_ints(wanted.low, wanted.high)


def any_value(wanted: Wanted, random: Random) -> Any:
    """One value within the bounds: an odd one, a small one, or one from anywhere."""
    pick = random.random()
    if pick < 0.4 or wanted.dtype is dtypes.bool:
        return random.choice(odd_values(wanted))
    if dtypes.is_float(wanted.dtype):
        if pick < 0.8:
            return to_dtype_range(random.uniform(-100, 100), wanted.dtype)
        return to_dtype_range(math.ldexp(random.uniform(-1, 1), random.randint(-40, 40)), wanted.dtype)
    low, high = wanted.low, wanted.high
    if pick < 0.7:
        low, high = max(low, -40), min(high, 100)
        low, high = (low, high) if low <= high else (wanted.low, wanted.high)
    return random.randint(low, high)


def usual_value(wanted: Wanted, random: Random) -> Any:
    """One value of a size at which a result that may be rounded otherwise can be compared."""
    if not dtypes.is_float(wanted.dtype):
        return any_value(wanted, random)
    if random.random() < 0.15:
        return to_dtype_range(random.choice((0.0, 1.0, -1.0, 0.5, 2.0)), wanted.dtype)
    number = math.ldexp(random.uniform(0.5, 1.0), random.randint(-2, 4))
    return to_dtype_range(number if random.random() < 0.5 else -number, wanted.dtype)


def simpler_values(wanted: Wanted, value: Any) -> tuple[Any, ...]:
    """Values that a reader takes in sooner, the simplest first."""
    if wanted.dtype is dtypes.bool or (type(value) is float and value != value):
        return ()
    found: tuple[Any, ...] = (
        (0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 10.0) if dtypes.is_float(wanted.dtype) else (0, 1, -1, 2, 3, 5, 7)
    )
    if not dtypes.is_float(wanted.dtype):
        found = tuple([one for one in (*found, wanted.low, wanted.high) if wanted.low <= one <= wanted.high])
    return found[: found.index(value)] if value in found else found


def choices(inputs: Sequence[Wanted], count: int, *, usual: bool = False) -> Iterator[Choose]:
    """`count` ways to choose: first every combination of the odd values of `inputs`, if these are at most half of them,
    then at random. Always the same ones. `usual`: floats of usual sizes only."""
    draw = usual_value if usual else any_value
    odd = [odd_values(one) for one in inputs]
    if inputs and not usual and math.prod(map(len, odd)) <= count:
        for values in product(*odd):
            yield _given(dict(zip(inputs, values)), Random(0), draw)
    elif inputs and not usual:
        for lane in range(max(map(len, odd))):  # each odd value once, in company of any others
            for place, one in enumerate(inputs):
                if lane < len(odd[place]) and lane * len(inputs) + place < count // 2:
                    yield _given({one: odd[place][lane]}, Random(lane * len(inputs) + place), draw)
    for seed in range(count):
        yield _given({}, Random(seed + 1), draw)


def _given(known: dict[Wanted, Any], random: Random, draw: Callable[[Wanted, Random], Any]) -> Choose:
    return lambda wanted: known[wanted] if wanted in known else draw(wanted, random)


__all__ = ["Choose", "any_value", "choices", "odd_floats", "odd_ints", "odd_values", "simpler_values", "usual_value"]

"""Chooses the values on which two graphs are compared.

First come special values of each dtype and values near the constants of the graphs, in every combination if these are
few. Then come random values within bounds. Each lane of a vector gets another combination, so one sample tries several.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice, product
from random import Random
from typing import Any

from tinyexplore.dtype import DType, dtypes
from tinyexplore.explore.whatif.playground.evaluator import InputRequirement
from tinyexplore.uop.semantics import FP8, from_bits, to_bits, to_dtype_range

_MANTISSA = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.float32: 23, dtypes.float64: 52}
_USUAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -2.5, 0.1, 7.0, 1 / 3, -1e-3, 100.0, 1e30, -1e30)
_SMALL = (0, 1, -1, 2, -2, 3, -3, 4, 5, 7, -7, 8, 15, 16)
_WIDTHS = (24, 11, 8)  # bits of the significands of float32, float16 and bfloat16, to which integers round
MAX_CONSTANTS = 8
Choose = Callable[[InputRequirement], Any]
Draw = Callable[[InputRequirement, Random], Any]


@cache
def edge_floats(dtype: DType) -> tuple[float, ...]:
    """Returns special floats: zeros, ones, infinities, NaN, limits, and values at rounding boundaries."""
    mantissa = _MANTISSA.get(dtype) or FP8[dtype].mantissa
    infinite = to_bits(math.inf, dtype) if dtype not in FP8 else FP8[dtype].greatest + 1
    bits = (1, (1 << mantissa) - 1, 1 << mantissa, infinite - 1)  # denormals, the smallest normal number, the largest
    limits = [from_bits(bit, dtype) for bit in bits]
    largest_exact = float(1 << mantissa + 1)  # above this value, not every integer can be represented
    last = 2.0**-mantissa
    # halfway between two values of a narrower type, plus one last bit: double rounding changes the result
    ties = [1.0 + 2.0 ** -(fewer + 1) + last for fewer in (23, 10, 7, 3, 2) if fewer + 1 < mantissa]
    edges = [*limits, *[-limit for limit in limits], largest_exact, largest_exact - 1, 1.0 + last, *ties]
    floats = [*_USUAL, math.inf, -math.inf, math.nan, *edges]
    distinct = {}
    for value in (to_dtype_range(float(number), dtype) for number in floats):
        distinct[repr(value)] = value
    return tuple(distinct.values())


@cache
def edge_ints(low: int, high: int) -> tuple[int, ...]:
    """Returns special integers: small ones, the ends of the range, powers of two, and their neighbors."""
    ints = [*_SMALL, low, low + 1, high, high - 1, (low + high) // 2]
    for power in (7, 8, 15, 16, 23, 24, 25, 30, 31, 32, 33, 53, 62, 63):
        ints += [(1 << power) - 1, 1 << power, (1 << power) + 1, -(1 << power), -(1 << power) - 1]
    for power in (30, 62):  # double rounding changes the result for these
        ints += [(1 << power) + (1 << power - width) + 1 for width in _WIDTHS]
    return tuple(dict.fromkeys(number for number in ints if low <= number <= high))


def edge_values(requirement: InputRequirement, constants: tuple[Any, ...] = ()) -> tuple[Any, ...]:
    """Returns the special values of a requirement: those of its dtype in its bounds, and values near `constants`."""
    return _list_edge_values(requirement.dtype, requirement.low, requirement.high, constants)


@lru_cache(256)
def _list_edge_values(dtype: DType, low: int, high: int, constants: tuple[Any, ...]) -> tuple[Any, ...]:
    if dtype is dtypes.bool:
        return tuple([bool(number) for number in range(low, high + 1)])
    if dtypes.is_float(dtype):
        near = [number for value in constants for number in _list_float_neighbors(float(value), dtype)]
        return tuple({repr(odd_float): odd_float for odd_float in (*edge_floats(dtype), *near)}.values())
    near = [int(value) + step for value in constants if value == int(value) for step in (-1, 0, 1)]
    return tuple(dict.fromkeys((*edge_ints(low, high), *[number for number in near if low <= number <= high])))


def _list_float_neighbors(value: float, dtype: DType) -> list[float]:
    """Returns a float and its neighbors in its dtype."""
    rounded = to_dtype_range(value, dtype)
    if rounded == 0 or not math.isfinite(rounded):
        return []
    bits = to_bits(rounded, dtype)
    return [rounded, from_bits(bits - 1, dtype), from_bits(bits + 1, dtype)]


def constants_of(constants: Iterable[Any]) -> tuple[Any, ...]:
    """Returns the numbers at which a graph may change: its constants, their sums and differences."""
    numbers = dict.fromkeys(
        constant
        for constant in constants
        if type(constant) is not bool and math.isfinite(constant) and abs(constant) not in (0, 1)
    )
    chosen = list(islice(numbers, MAX_CONSTANTS))
    between = [
        first + sign * other for first in chosen[:3] for other in chosen[:3] if first != other for sign in (1, -1)
    ]
    return tuple(dict.fromkeys((*chosen, *[-number for number in chosen], *between)))


def draw_any_value(requirement: InputRequirement, random: Random, constants: tuple[Any, ...] = ()) -> Any:
    """Returns one value within the bounds: a special one, a small one, or a random one."""
    pick = random.random()
    if pick < 0.4 or requirement.dtype is dtypes.bool:
        return random.choice(edge_values(requirement, constants))
    if dtypes.is_float(requirement.dtype):
        if pick < 0.8:
            return to_dtype_range(random.uniform(-100, 100), requirement.dtype)
        return to_dtype_range(math.ldexp(random.uniform(-1, 1), random.randint(-40, 40)), requirement.dtype)
    low, high = requirement.low, requirement.high
    if pick < 0.7:
        low, high = max(low, -40), min(high, 100)
        low, high = (low, high) if low <= high else (requirement.low, requirement.high)
    return random.randint(low, high)


def draw_usual_value(requirement: InputRequirement, random: Random) -> Any:
    """Returns one value of ordinary magnitude, at which differently rounded results can be compared."""
    if not dtypes.is_float(requirement.dtype):
        return draw_any_value(requirement, random)
    if random.random() < 0.15:
        return to_dtype_range(random.choice((0.0, 1.0, -1.0, 0.5, 2.0)), requirement.dtype)
    number = math.ldexp(random.uniform(0.5, 1.0), random.randint(-2, 4))
    return to_dtype_range(number if random.random() < 0.5 else -number, requirement.dtype)


def simpler_values(requirement: InputRequirement, value: Any) -> tuple[Any, ...]:
    """Returns values that are easier to read than `value`, the simplest first."""
    if requirement.dtype is dtypes.bool:
        return (False,) if value and requirement.low == 0 else ()
    candidates: list[Any]
    if dtypes.is_float(requirement.dtype):
        candidates = [0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 10.0]
        if math.isfinite(value):
            candidates += [
                to_dtype_range(number, requirement.dtype)
                for number in (float(int(value)), round(value, 1), round(value, 3))
            ]
    else:
        candidates = [0, 1, -1, 2, 3, 5, 7]
        candidates += [int(math.copysign(abs(value) % 10**digits, value)) for digits in (1, 2, 3, 5)]
        candidates = [
            number
            for number in (*candidates, requirement.low, requirement.high)
            if requirement.low <= number <= requirement.high
        ]
    texts = [repr(candidate) for candidate in candidates]
    return tuple(candidates[: texts.index(repr(value))] if repr(value) in texts else candidates)


def choices(
    inputs: Sequence[InputRequirement],
    count: int,
    *,
    usual: bool = False,
    constants: tuple[Any, ...] = (),
    budget: int | None = None,
) -> Iterator[Choose]:
    """Yields functions that choose input values, always the same ones.

    First comes every combination of special values of `inputs` if that takes at most `budget` samples (default:
    `count`), else each special value once. Then each special value is used for all inputs together, then `count` random
    choices.

    usual: whether floats are only of ordinary magnitude.
    """
    draw = draw_usual_value if usual else _draw_from(constants)
    if inputs and not usual:
        groups = _group_by_node(inputs)
        odd = [edge_values(lanes[0], constants) for lanes in groups]
        wide = max(map(len, groups))
        rows = [values for values, lanes in zip(odd, groups) if len(lanes) == wide]
        single = [values for values, lanes in zip(odd, groups) if len(lanes) < wide]
        if math.prod(map(len, single)) * -(-math.prod(map(len, rows)) // wide) <= (budget or count):
            yield from _yield_combinations(groups, odd, wide, draw)
        else:
            yield from _yield_each_once(groups, odd, count // 2, draw)
        for number in range(min(max(map(len, odd)), count // 2)):
            yield _choose_alike(number, constants)
    for seed in range(count):
        sign = (0, 0, 1, -1)[seed % 4]  # of one sign, which a reduction of random values may never see
        yield _choose_given({}, Random(seed + 1), draw if sign == 0 or usual else _restrict_sign(draw, sign))


def _choose_alike(number: int, constants: tuple[Any, ...]) -> Choose:
    """Returns a function that chooses special value number `number` for each requirement."""

    def choose(requirement: InputRequirement) -> Any:
        odd = edge_values(requirement, constants)
        return odd[number % len(odd)]

    return choose


def _restrict_sign(draw: Draw, sign: int) -> Draw:
    """Returns `draw` restricted to one sign, if the bounds permit it."""

    def drawn(requirement: InputRequirement, random: Random) -> Any:
        value = draw(requirement, random)
        if requirement.dtype is dtypes.bool or not value * sign < 0:
            return value
        return -value if dtypes.is_float(requirement.dtype) or requirement.low <= -value <= requirement.high else value

    return drawn


def _group_by_node(inputs: Sequence[InputRequirement]) -> list[list[InputRequirement]]:
    """Groups the lanes of each node."""
    groups: dict[Any, list[InputRequirement]] = {}
    for requirement in inputs:
        groups.setdefault((requirement.node, requirement.place), []).append(requirement)
    return list(groups.values())


def _yield_combinations(
    groups: Sequence[Sequence[InputRequirement]], odd: Sequence[Sequence[Any]], wide: int, draw: Draw
) -> Iterator[Choose]:
    """Yields every combination of special values. The lanes of the widest vectors get a different one each."""
    rows = [number for number, lanes in enumerate(groups) if len(lanes) == wide]
    single = [number for number, lanes in enumerate(groups) if len(lanes) < wide]
    for odd_value in product(*[odd[number] for number in single]):
        fixed = {lane: value for number, value in zip(single, odd_value) for lane in groups[number]}
        combinations = product(*[odd[number] for number in rows])
        while some := list(islice(combinations, wide)):
            for lane in range(wide):
                for number, value in zip(rows, some[lane % len(some)]):
                    fixed[groups[number][lane]] = value
            yield _choose_given(dict(fixed), Random(0), draw)


def _yield_each_once(
    groups: Sequence[Sequence[InputRequirement]], odd: Sequence[Sequence[Any]], most_samples: int, draw: Draw
) -> Iterator[Choose]:
    """Yields each special value of each node in some lane, with arbitrary other values."""
    seed = 0
    for first in range(max(map(len, odd))):
        for number, lanes in enumerate(groups):
            start = first * len(lanes)
            if start >= len(odd[number]) or seed >= most_samples:
                continue
            seed += 1
            values = odd[number][start : start + len(lanes)]
            yield _choose_given(dict(zip(lanes, values)), Random(seed), draw)


def _draw_from(constants: tuple[Any, ...]) -> Draw:
    return lambda requirement, random: draw_any_value(requirement, random, constants)


def _choose_given(fixed: Mapping[InputRequirement, Any], random: Random, draw: Draw) -> Choose:
    return lambda requirement: fixed[requirement] if requirement in fixed else draw(requirement, random)


__all__ = [
    "Choose",
    "draw_any_value",
    "choices",
    "constants_of",
    "edge_floats",
    "edge_ints",
    "edge_values",
    "simpler_values",
    "draw_usual_value",
]
